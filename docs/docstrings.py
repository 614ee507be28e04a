"""Docstrings as Markdown: sections of NumPy style, `name : meaning` entries, formulas, links to public names."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable

Link = Callable[[str], str]  # prose -> Markdown, with links where the prose names something public

SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)
ENTRY = re.compile(r"^([*\w][\w*, ]*?) : (.*)$")


def linker(targets: dict[str, str]) -> Link:
    """A function that escapes prose and links `names` in backticks to where they are explained."""

    def link(text: str) -> str:
        parts = re.split(r"(`[^`]+`)", text)
        return "".join(_code(part, targets) if at % 2 else escaped(part) for at, part in enumerate(parts))

    return link


def _code(span: str, targets: dict[str, str]) -> str:
    name = span.strip("`").removeprefix("corank.").removeprefix("cr.").removesuffix("()")
    return f"[{span}]({targets[name]})" if name in targets else span


def escaped(text: str) -> str:
    """Prose in which Markdown sees no markup; what is in backticks stays."""
    parts = re.split(r"(`[^`]+`)", text)
    out = [part if at % 2 else re.sub(r"([\\*_\[\]<|#])", r"\\\1", part) for at, part in enumerate(parts)]
    return "".join(part.replace("|", "\\|") if at % 2 else part for at, part in enumerate(out))


def first_sentence(doc: str) -> str:
    """The first sentence of a docstring, on one line, with its full stop."""
    line = " ".join(doc.split("\n\n")[0].split())
    end = re.search(r"(?<!e\.g)(?<!i\.e)(?<!al)\.(?= [A-Z`]|$)", line)
    return line[: end.end()] if end else line


def to_markdown(doc: str, link: Link) -> str:
    """A docstring (dedented) as Markdown."""
    parts = SECTION.split(doc)
    out = [_prose(parts[0], link)]
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        entries, _, rest = body.strip("\n").partition("\n\n")
        out.append(f"**{title}**")
        out.append(_references(entries, link) if title == "References" else _paragraph(entries, link))
        out.append(_prose(rest, link))
    return "\n\n".join(part for part in out if part)


def _prose(text: str, link: Link) -> str:
    return "\n\n".join(_paragraph(part, link) for part in re.split(r"\n\s*\n", text.strip("\n")) if part.strip())


def _paragraph(text: str, link: Link) -> str:
    lines = text.split("\n")
    if all(line.startswith("    ") for line in lines):  # a formula or code
        return text
    if ENTRY.match(lines[0]):
        return _entries(lines, link)
    if all(re.match(r"(- |  )", line) for line in lines):  # a list
        items = re.split(r"\n?^- ", text, flags=re.MULTILINE)[1:]
        return "\n".join(f"- {link(' '.join(item.split()))}" for item in items)
    return link(" ".join(line.strip() for line in lines))


def _entries(lines: list[str], link: Link) -> str:
    """`name : meaning` lines, each with indented continuations, as a list."""
    items: list[tuple[str, str]] = []
    for line in lines:
        found = ENTRY.match(line)
        if found:
            items.append((found[1], found[2]))
        else:
            name, said = items[-1]
            items[-1] = name, f"{said} {line.strip()}"
    shown = [(", ".join(f"`{one.strip()}`" for one in name.split(",")), link(said)) for name, said in items]
    return "\n".join(f"- {name}: {said}" for name, said in shown)


def _references(text: str, link: Link) -> str:
    """One reference per line; a line that does not end with a full stop goes on."""
    items = re.split(r"(?<=\.)\n", text)
    return "\n".join(f"- {link(' '.join(item.split()))}" for item in items)


def field_comments(cls: type) -> dict[str, str]:
    """The comments behind the fields of a dataclass: `name: type = default  # comment`."""
    try:
        source = inspect.getsource(cls)
    except OSError:
        return {}
    return dict(re.findall(r"^    (\w+): [^#\n]*?  # (.*)$", source, re.MULTILINE))
