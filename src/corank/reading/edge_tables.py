"""Tables of edges: one row per edge with its two ends and an optional weight; the columns are found by name."""

from __future__ import annotations

import dataclasses
import logging
import re
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from ..data.columns import Where, Wording, convert, row_number, text_kind
from ..data.csr import CSR
from ..data.edges import check_weights, from_edges
from ..data.vocab import Vocab
from ..errors import CorankError, shorten
from .column_names import Columns, choose
from .csv_format import sniff
from .parquet import is_parquet, parquet_columns, parquet_names
from .text_columns import read_text
from .text_files import existing_file

log = logging.getLogger("corank.reading")

# Names of the two ends of an edge; "friend", "friend_id", "FriendID" and "friend_user" all count as "friend".
_WORDS = {
    "source": "source src from follower followers truster trustor sender who",
    "target": "target dst dest destination to followee followees followed following follows trustee trusted trusts "
    "receiver whom friend friends knows neighbour neighbours neighbor neighbors related similar also other contact "
    "contacts",
    "weight": "weight",
}
_ASIDE = "at on date datetime day time ts timestamp since until when created createdat updated count"
_ENDINGS = ("id", "index", "idx", "key", "code", "number", "name")
_TIME = 1e8  # a third column without a name holds unix times, not weights, if all its numbers are above this
# The readers of tables know the roles user, item and value.
_ROLES = {"source": "user", "target": "item", "weight": "value"}
_EDGES = Wording("edges", "the two ends of an edge", {role: part for part, role in _ROLES.items()})
_ATTACHED = dataclasses.replace(_EDGES, to=" in Python (corank.graph.read_edges)")  # the caller gave only a path


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
    """A graph from a text or Parquet table with one row per edge; `nodes` and `directed` as in `from_edges`.

    source, target, weight : column names, or positions ("0", "1", ...) where the file has no header. Columns that are
        not given are found by name (source, from, follower, trustor, user, ...; target, to, followee, trustee, friend,
        related, ...; user1 and user2; weight). Without a header they are the first, second and third column; a header
        of exactly two other names also gives source and target. `weight=""` means that there is no weight. Columns
        about times or counts (followed_at, since) are never taken for an end of an edge.

    The first line is a header if it has such a name, or text above a column of numbers, and its fields do not occur
    again in later rows. The columns that were found are logged.
    """
    columns = _read(path, {"source": source, "target": target, "weight": weight}, separator, _EDGES, nodes)
    return from_edges(columns["source"], columns["target"], columns.get("weight"), nodes=nodes, directed=directed)


def read_known(path: str | PathLike[str], known: Vocab) -> tuple[CSR, Vocab]:
    """The graph of a file that is attached to data with these users or items, where the caller can only give a path."""
    columns = _read(path, dict.fromkeys(_ROLES), None, _ATTACHED, known)
    return from_edges(columns["source"], columns["target"], columns.get("weight"))


def edge_file(path: str | PathLike[str], rows: object = None) -> None:
    """Raise early if the file of edges does not exist or is the file of the ratings: work before it may take long."""
    found = existing_file(path, _EDGES)
    if isinstance(rows, str | PathLike) and Path(rows).exists() and found.samefile(rows):
        raise CorankError(
            f"file '{path}' is given for the ratings and for the edges: give the edges, which connect two users or two "
            "items, a file of their own"
        )


def _read(
    path: str | PathLike[str],
    wanted: Mapping[str, str | None],
    separator: str | None,
    wording: Wording,
    known: Vocab | None,
) -> dict[str, Any]:
    """The columns of a table of edges: source, target and, if there is one, weight."""
    where, guessed, headless = f"file '{path}'", False, False
    of_row: Where = row_number
    file = existing_file(path, wording)
    if is_parquet(file):
        chosen = _choose(parquet_names(file), wanted, where, wording)
        frame = parquet_columns(file, chosen.values())
        log.info("%s: %s", path, _shown(chosen))
        series = {_ROLES[part]: frame[name] for part, name in chosen.items()}
    else:
        layout = sniff(path, separator=separator, header=False, wording=wording)
        if _has_header(layout.sample, [name for name in wanted.values() if name]):
            layout = sniff(path, separator=separator, header=True, wording=wording)
        headless = not layout.header
        chosen = _choose(layout.names, wanted, where, wording, header=layout.header)
        guessed = headless and wanted["weight"] is None and "weight" in chosen
        if guessed and all(text_kind([f]) == "text" for f in layout.column(chosen["weight"])):
            del chosen["weight"]
        form = f"(separator {layout.separator!r}, {'header' if layout.header else 'no header'})"
        log.info("%s: %s %s", path, _shown(chosen), form)
        columns = Columns(chosen["source"], chosen["target"], chosen.get("weight"))
        series, of_row = read_text(layout, columns)
    names = {_ROLES[part]: f"column {name!r} of '{path}'" for part, name in chosen.items()}
    found = convert(series, names, of_row, wording)
    edges = {part: found[role] for part, role in _ROLES.items() if role in found}
    if guessed and "weight" in edges and (edges["weight"] >= _TIME).all():
        log.info("%s: column %s looks like times, and is no weight", path, chosen["weight"])
        del edges["weight"]
    if "weight" in edges:
        column = names[_ROLES["weight"]]
        check_weights(edges["source"], edges["target"], edges["weight"], lambda row: f"{of_row(row)} of {column}")
    if headless:
        _doubt_first(edges, where, known)
    return edges


def _doubt_first(edges: Mapping[str, Any], where: str, known: Vocab | None) -> None:
    """Warn if the first line may be a header after all: its two names occur nowhere else."""
    ends = [edges["source"], edges["target"]]
    first = [str(end[0]) for end in ends]
    if len(ends[0]) < 2 or any(text_kind([name]) != "text" for name in first):
        return
    again = any(bool((end[1:] == name).any()) for end in ends if isinstance(end[0], str) for name in first)
    if not again and not (known is not None and known.strings and (known.codes(first) >= 0).any()):
        log.warning(
            "%s: the first line (%s) is read as an edge, and neither name occurs again: if it is a header, call its "
            "columns source and target",
            *(where, shorten(", ".join(first), 400)),
        )


def _shown(chosen: Mapping[str, str]) -> str:
    return " ".join(f"{part}={name}" for part, name in chosen.items())


def _has_header(rows: Sequence[Sequence[str]], given: Sequence[str]) -> bool:
    """Whether the first of these rows names the columns; see `read_edges`."""
    top, body = [field.strip() for field in rows[0]], rows[1:]
    if any(name in top and not name.isdecimal() for name in given):
        return True
    if any(text_kind([field]) != "text" for field in top if field):
        return False
    below = {_shape(field) for row in body for field in row[:2]}
    if any(_shape(field) in below for field in top):  # it is the id of a node, or like one (user3 beside user1)
        return False
    columns = ([row[at] for row in body if len(row) > at and row[at].strip()] for at in range(len(top)))
    user, item = _called(top, "user"), _called(top, "item")
    named = _ends(top) or (user and item) or (top[0] == top[1] and (user or item))
    return bool(named) or any(column and text_kind(column) != "text" for column in columns)


def _choose(
    names: Sequence[str],
    wanted: Mapping[str, str | None],
    where: str,
    wording: Wording,
    *,
    header: bool = True,
) -> dict[str, str]:
    """source, target and weight -> column name: the wanted one, else the one that is found."""
    chosen = choose(names, {part: name for part, name in wanted.items() if name}, where, header=header)
    free = [name for name in names if name not in chosen.values()]
    if not header:
        found = dict(zip([part for part in wanted if part not in chosen], free, strict=False))
    else:
        found = _ends(free)
        # Columns whose names tell nothing.
        plain = [name for name in free if name not in found.values() and not _aside(name)]
        missing = [part for part in ("source", "target") if part not in chosen and part not in found]
        user, item = _called(plain, "user"), _called(plain, "item")
        if len(missing) == 2 and user and item:
            raise CorankError(
                f"{where} has users and items ({shorten(', '.join(names), 400)}), and an edge connects two users or "
                f"two items: give another file, call its ends source and target, or say source=... and target=..."
                f"{wording.to}"
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
                f"{shorten(', '.join(names), 400)}; call it {missing[0]} in the first line, or say {missing[0]}=..."
                f"{wording.to or f' (`corank graph encode` has --{missing[0]})'}"
            )
    chosen = {part: chosen.get(part) or found[part] for part in wanted if part in chosen or part in found}
    if wanted["weight"] == "":
        chosen.pop("weight", None)
    if "source" not in chosen or "target" not in chosen:
        raise CorankError(
            f"{where} has no column left for the other end of an edge: say source=... and target=...{wording.to}"
        )
    for name in chosen.values():
        if list(names).count(name) > 1:
            raise CorankError(f"{where} has two columns called {name!r}: call the ends of an edge source and target")
    return chosen


def _shape(field: str) -> str:
    """A field in lower case with every number replaced by 0."""
    return re.sub(r"\d+", "0", field.strip().lower())


def _ends(names: Sequence[str]) -> dict[str, str]:
    """source, target and weight -> the column with such a name, if there is one."""
    names = [name for name in names if not _aside(name)]
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


def _aside(name: str) -> bool:
    """Whether a column holds times or counts, like "followed_at": it is no end of an edge."""
    return not set(_ASIDE.split()).isdisjoint(_split(name))


def _split(name: str) -> list[str]:
    """The words of a column name without endings like "id": "fromUser_ID" gives from and user, "friendid" friend."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name.split(":")[0])
    words = [word for word in re.split(r"[\W_]+", apart.lower()) if word]
    kept = [re.sub(rf"(?<=.)({'|'.join(_ENDINGS)})$", "", word) for word in words if word not in _ENDINGS]
    return kept if any(map(str.isalpha, "".join(kept))) else words


def _called(names: Sequence[str], role: Literal["user", "item"]) -> str | None:
    """The column that would be the users (or items) of a table of interactions."""
    try:
        return choose(names, {role: None}, "")[role]
    except CorankError:
        return None
