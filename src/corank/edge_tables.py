"""Tables of edges: a row an edge, with the two ends and perhaps a weight, of which the columns are found by name."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from . import layout as layouts
from .columns import convert
from .data import CSR, Vocab
from .edges import from_edges
from .errors import CorankError, shorten

log = logging.getLogger("corank.tables")

# What the ends of an edge are called; "friend", "friend_id", "FriendID" and "friend_user" all have the word "friend".
_WORDS = {
    "source": "source src from follower truster trustor sender who",
    "target": "target dst dest destination to followee followed following trustee trusted receiver whom friend "
    "neighbour neighbor related similar also other contact",
    "weight": "weight",
}
_ENDINGS = ("id", "index", "idx", "key", "code", "number", "name")
_TIME = 1e8  # a third column without a name whose numbers are all beyond this holds unix times
# The tables of this package know users, items and values.
_ROLES = {"source": "user", "target": "item", "weight": "value"}
_REWORDED = (
    ("(user)", "(source)"),
    ("(item)", "(target)"),
    ("(value)", "(weight)"),
    ("value=", "weight="),
    ("a user and an item", "the two ends of an edge"),
    ("the interactions", "the edges"),
)


def read_edges(
    path: str | PathLike[str],
    *,
    source: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    separator: str | None = None,
    nodes: Vocab | None = None,
    directed: bool = False,
) -> tuple[CSR, Vocab]:
    """A graph from a table of edges, text or Parquet, a row an edge; `nodes` and `directed` as in `from_edges`.

    source, target, weight : column names, or positions ("0", "1", ...) where the file has no header. What is left out
        is found by name (source, from, follower, trustor, user, ...; target, to, followee, trustee, friend, related,
        ...; user1 and user2; weight), or is the first, second and third column where there is no header, and the first
        two where a header has two columns of other names; `weight=""` says that there is none.

    A first line is a header where it has such a name, or words above a column of numbers, and its words do not come
    again below. What was found is logged.
    """
    with _reworded():
        columns = _read(path, {"source": source, "target": target, "weight": weight}, separator)
    return from_edges(columns["source"], columns["target"], columns.get("weight"), nodes=nodes, directed=directed)


def edge_file(path: str | PathLike[str]) -> None:
    """One sentence where there is no such file: work that comes before it is read may take long."""
    with _reworded():
        layouts.existing_file(path)


@contextlib.contextmanager
def _reworded() -> Iterator[None]:
    """Sentences about tables of interactions become sentences about edges."""
    try:
        yield
    except CorankError as why:
        text = str(why)
        for old, new in _REWORDED:
            text = text.replace(old, new)
        raise CorankError(text) from None


def _read(path: str | PathLike[str], wanted: Mapping[str, str | None], separator: str | None) -> dict[str, Any]:
    """The columns of a table of edges: source, target and, where there is one, weight."""
    from .tables import drop_blank, is_parquet, not_parquet, read_text, row_number

    where, guessed = f"file '{path}'", False
    if is_parquet(layouts.existing_file(path)):
        import polars as pl

        try:
            chosen = _choose(list(pl.read_parquet_schema(Path(path))), wanted, where)
            frame = pl.read_parquet(Path(path), columns=list(chosen.values()), glob=False)
        except (pl.exceptions.PolarsError, OSError) as error:
            raise not_parquet(path, error) from None
        log.info("%s: %s", path, _shown(chosen))
        series, of_row = {_ROLES[part]: frame[name] for part, name in chosen.items()}, row_number
    else:
        layout = layouts.sniff(path, separator=separator, header=False)
        if _has_header(layout.sample, [name for name in wanted.values() if name]):
            layout = layouts.sniff(path, separator=separator, header=True)
        chosen = _choose(layout.names, wanted, where, header=layout.header)
        guessed = not layout.header and wanted["weight"] is None and "weight" in chosen
        if guessed and all(layouts.kind([f]) == "text" for f in layouts.column(layout, chosen["weight"])):
            del chosen["weight"]
        form = f"(separator {layout.separator!r}, {'header' if layout.header else 'no header'})"
        log.info("%s: %s %s", path, _shown(chosen), form)
        columns = layouts.Columns(chosen["source"], chosen["target"], chosen.get("weight"))
        series, lines = drop_blank(read_text(layout, columns))

        def of_row(row: int) -> str:
            return f"line {(row if lines is None else int(lines[row])) + 1 + layout.skip:,}"

    names = {_ROLES[part]: f"column {name!r} of '{path}'" for part, name in chosen.items()}
    found = convert(series, names, of_row)
    edges = {part: found[role] for part, role in _ROLES.items() if role in found}
    if guessed and "weight" in edges and (edges["weight"] >= _TIME).all():
        log.info("%s: column %s looks like times, and is no weight", path, chosen["weight"])
        del edges["weight"]
    return edges


def _shown(chosen: Mapping[str, str]) -> str:
    return " ".join(f"{part}={name}" for part, name in chosen.items())


def _has_header(rows: Sequence[Sequence[str]], given: Sequence[str]) -> bool:
    """Whether the first of these rows names the columns; see `read_edges`."""
    top, body = [field.strip() for field in rows[0]], rows[1:]
    if any(name in top and not name.isdecimal() for name in given):
        return True
    if any(layouts.kind([field]) != "text" for field in top if field):
        return False
    below = {_shape(field) for row in body for field in row[:2]}
    if any(_shape(field) in below for field in top):  # somebody is called so, or user3 is beside user1
        return False
    columns = ([row[at] for row in body if len(row) > at and row[at].strip()] for at in range(len(top)))
    named = _ends(top) or (_called(top, "user") and _called(top, "item"))
    return bool(named) or any(column and layouts.kind(column) != "text" for column in columns)


def _choose(
    names: Sequence[str], wanted: Mapping[str, str | None], where: str, *, header: bool = True
) -> dict[str, str]:
    """source, target and weight -> the name of the column: what was asked for, else what is found."""
    chosen = layouts.choose(names, {part: name for part, name in wanted.items() if name}, where, header=header)
    free = [name for name in names if name not in chosen.values()]
    if not header:
        found = dict(zip([part for part in wanted if part not in chosen], free, strict=False))
    else:
        found = _ends(free)
        plain = [name for name in free if name not in found.values()]  # columns whose names say nothing
        missing = [part for part in ("source", "target") if part not in chosen and part not in found]
        user, item = _called(plain, "user"), _called(plain, "item")
        if len(missing) == 2 and user and item:
            raise CorankError(
                f"{where} has users and items ({shorten(', '.join(names), 400)}), and an edge ties two users or two "
                "items: say source=... and target=..., or give another file"
            )
        if len(missing) == len(plain):
            found |= dict(zip(missing, plain, strict=True))
            if len(missing) == 2:
                log.info("%s: the first line (%s) is taken for a header", where, shorten(", ".join(names), 400))
        elif len(missing) == 1 and (near := user or item):
            found[missing[0]] = near
        elif missing:
            raise CorankError(
                f"cannot tell which column of {where} is the {missing[0]} of an edge: it has "
                f"{shorten(', '.join(names), 400)}; call it {missing[0]} in the first line, or say {missing[0]}=... "
                f"(`corank graph encode` has --{missing[0]})"
            )
    chosen = {part: chosen.get(part) or found[part] for part in wanted if part in chosen or part in found}
    if wanted["weight"] == "":
        chosen.pop("weight", None)
    if "source" not in chosen or "target" not in chosen:
        raise CorankError(f"{where} has no column left for the other end of an edge: say source=... and target=...")
    return chosen


def _shape(field: str) -> str:
    """A field with any number in place of its numbers."""
    return re.sub(r"\d+", "0", field.strip().lower())


def _ends(names: Sequence[str]) -> dict[str, str]:
    """source, target and weight -> the column that is called so, where one is."""
    words = {name: _split(name) for name in names}
    found: dict[str, str] = {}
    for part, text in _WORDS.items():
        known = set(text.split())
        free = [name for name in names if name not in found.values()]
        whole = [name for name in free if "".join(words[name]) in known]
        some = [name for name in free if part != "weight" and known & set(words[name])]
        if whole or some:
            found[part] = (whole or some)[0]
    if "source" in found or "target" in found:
        return found
    stems = {"".join(words[name]): name for name in reversed(names)}
    for stem, name in stems.items():  # user1 and user2, item_a and item_b
        other = stems.get(stem[:-1] + {"1": "2", "a": "b"}.get(stem[-1:], "?"))
        if len(stem) > 1 and other is not None:
            return {**found, "source": name, "target": other}
    return found


def _split(name: str) -> list[str]:
    """The words of a column name without what ids are called: "fromUser_ID" has from and user, "friendid" friend."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name.split(":")[0])
    words = [word for word in re.split(r"[\W_]+", apart.lower()) if word]
    kept = [re.sub(rf"(?<=.)({'|'.join(_ENDINGS)})$", "", word) for word in words if word not in _ENDINGS]
    return kept if any(map(str.isalpha, "".join(kept))) else words


def _called(names: Sequence[str], role: Literal["user", "item"]) -> str | None:
    """The column that a table of interactions would have as its users (or items)."""
    try:
        return layouts.choose(names, {role: None}, "")[role]
    except CorankError:
        return None
