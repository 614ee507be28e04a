"""Results for people: leaderboards, charts, and reports as one HTML or Markdown file."""

from .report import machine_facts, md_table, notes, write_html, write_markdown

__all__ = ["machine_facts", "md_table", "notes", "write_html", "write_markdown"]
