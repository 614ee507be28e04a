"""How values are shown in a notebook: a caption, a table and remarks, as HTML with every text escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

_TABLE = """\
<div>
{%- if caption %}<p><strong>{{ caption }}</strong></p>{% endif %}
{%- for note in notes %}<p>{{ note }}</p>{% endfor -%}
<table>
{%- if heads %}<thead><tr>{% for head in heads %}<th>{{ head }}</th>{% endfor %}</tr></thead>{% endif -%}
<tbody>
{%- for row in rows %}<tr>{% for cell in row %}<td>{{ cell }}</td>{% endfor %}</tr>{% endfor -%}
</tbody></table>
{%- if more %}<p>{{ more }}</p>{% endif -%}
</div>"""


def html_table(
    rows: Iterable[Sequence[Any]],
    heads: Sequence[str] = (),
    *,
    caption: str = "",
    notes: Sequence[str] = (),
    more: str = "",
) -> str:
    """A table as HTML, with a caption and notes above it and one more line below."""
    return str(_template().render(rows=list(rows), heads=heads, caption=caption, notes=notes, more=more))


@cache
def _template() -> Any:
    from jinja2 import Environment

    return Environment(autoescape=True).from_string(_TABLE)
