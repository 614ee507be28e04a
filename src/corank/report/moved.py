"""Two versions of a result page, figure by figure: what moved by more than rounding explains.

Tables are read from the Markdown itself, so that any page can be compared, whatever wrote it. Times, versions and
what a page states in words are not figures and are not compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

Place = tuple[str, str, str]  # section, row, column

NOT_COMPARED = {"fit", "fit time", "time", "Time", "Written", "Versions", "Commit", "Processor", "published"}
NOT_COMPARED |= {"how they were chosen", "settings tried on validation", "Order"}
SECTIONS = {"Settings": "Hyper-parameters", "Data": "Dataset", "Method": "Evaluation setup"}  # as they were called
POINTS = {"p": 0.01, "effect": 0.02}  # how far these may move
PERCENT = 1.0  # points, for shares of users and of a gain
TORCH = 0.01  # of the figure, for rows that torch trains: its sums depend on the processor
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


@dataclass(frozen=True)
class Moved:
    """A figure that is not the same on both pages; empty where a page does not have it."""

    row: str
    what: str
    before: str
    after: str

    def __str__(self) -> str:
        if not self.after:
            return f"{self.row}: {self.what} is gone (was {self.before})"
        if not self.before:
            return f"{self.row}: {self.what} is new ({self.after})"
        return f"{self.row}: {self.what} {self.before} -> {self.after}"


def compare_pages(before: str, after: str, torch_rows: Collection[str] = ()) -> tuple[int, list[Moved]]:
    """How many figures two pages have in common, and what moved.

    Figures of a metric may move by one in their last printed digit, those of `torch_rows` (labels) by 1 %; p-values by
    0.01, effects by 0.02, shares by a point. Hyper-parameters, counts and the protocol must be equal. A row of a table
    of results that only one page has counts as moved.
    """
    old, new = dict(_cells(before)), dict(_cells(after))
    found: list[Moved] = []
    for pages, gone in (((old, new), True), ((new, old), False)):
        rows = {place[:2] for place in pages[1]}
        for (section, row, column), cell in pages[0].items():
            if _results(section) and (section, row) not in rows and cell and _is_figure(section, column):
                found.append(Moved(row, _named(section, column), *((cell, "") if gone else ("", cell))))
    compared = 0
    for place, was in old.items():
        now = new.get(place)
        section, row, column = place
        if now is None or NOT_COMPARED & {row, column}:
            continue
        compared += 1
        if not _same(section, row, column, was, now, any(_belongs(row, label) for label in torch_rows)):
            found.append(Moved(row or section, _named(section, column), was, now))
    return compared, found


def _cells(page: str) -> Iterator[tuple[Place, str]]:
    """The cells of all tables of a page, without the escapes of Markdown."""
    section, heads = "", []  # type: str, list[str]
    for line in page.splitlines():
        if line.startswith("## "):
            section, heads = SECTIONS.get(line[3:].strip(), line[3:].strip()), []
        elif not line.startswith("|"):
            heads = []
        elif line.startswith("|--"):
            continue
        else:
            cells = [_plain(cell) for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            if not heads:
                heads = cells
                continue
            row, *rest = cells
            for head, cell in zip(heads[1:], rest, strict=False):
                yield (section, row, head), cell


def _plain(cell: str) -> str:
    out = re.sub(r"\\(.)", r"\1", cell.strip())
    return out.replace("&lt;", "<").replace("&amp;", "&")


def _results(section: str) -> bool:
    return section in ("Leaderboard", "At the end") or section.endswith(" after epoch")


def _is_figure(section: str, column: str) -> bool:
    return column not in NOT_COMPARED and column not in ("p", "effect", "better / worse")


def _named(section: str, column: str) -> str:
    return f"{section} {column}" if section.endswith(" after epoch") else column or section


def _belongs(row: str, label: str) -> bool:
    """Whether a row has that label: the name of the model may follow it."""
    return row == label or row.startswith(f"{label} ")


def _same(section: str, row: str, column: str, was: str, now: str, by_torch: bool) -> bool:
    if column == "hyper-parameters":
        return _same_settings(was, now)
    if not _results(section):
        return was == now if row == "Protocol" else _numbers(was) == _numbers(now)
    if column in POINTS:
        return _near(was, now, lambda text: POINTS[column])
    if "%" in was + now:
        return _near(was, now, lambda text: PERCENT)
    if column == "epochs":
        return was == now
    return _near(was, now, lambda text: max(_last_digit(text), TORCH * abs(_value(text)) if by_torch else 0.0))


def _near(was: str, now: str, tolerance: Callable[[str], float]) -> bool:
    """Whether two texts have the same words, and numbers that differ by no more than the tolerance of the first."""
    old, new = _NUMBER.findall(was), _NUMBER.findall(now)
    if not old or not new:
        return was == now
    slack = 1e-9
    return len(old) == len(new) and all(
        abs(_value(a) - _value(b)) <= tolerance(a) + slack for a, b in zip(old, new, strict=True)
    )


def _numbers(text: str) -> list[str]:
    """Numbers of a text, and what looks like a fingerprint."""
    return re.findall(r"\b[0-9a-f]{16}\b", text) + _NUMBER.findall(re.sub(r"\b[0-9a-f]{16}\b", "", text))


def _value(text: str) -> float:
    return float(text.replace(",", ""))


def _last_digit(text: str) -> float:
    return float(10.0 ** -len(text.partition(".")[2]))


def _same_settings(was: str, now: str) -> bool:
    """Whether the hyper-parameters that both name are equal; searched ones to four digits."""
    old, new = (dict(part.split("=", 1) for part in text.split(", ") if "=" in part) for text in (was, now))
    return all(_same_value(old[name], new[name]) for name in old.keys() & new.keys())


def _same_value(was: str, now: str) -> bool:
    try:
        a, b = float(was), float(now)
    except ValueError:
        return was == now
    return abs(a - b) <= 1e-4 * max(abs(a), abs(b))
