"""What an experiment found, to read and to share: leaderboards, charts, and reports as one HTML or Markdown file.

write_html(results, "report.html", command="corank compare ratings.csv")
write_markdown(results, "docs/results/ml-1m.md", command="corank reproduce ml-1m")
"""

from .html import write_html
from .machine import machine_facts
from .markdown import md_table, write_markdown
from .sections import notes

__all__ = ["machine_facts", "md_table", "notes", "write_html", "write_markdown"]
