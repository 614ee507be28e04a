"""Hostile tables: a clean table, something done to it at the start, in the middle or at the end, in several formats.

What corank reads must equal what a slow twin reads (`twin_reader`), or be refused in one sentence.
"""

from __future__ import annotations

import gzip
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import corank as cr
from corank.reading import large_files, text_columns

from .part import Outcome, Part, Tell
from .twin_reader import Refused, Rows, twin_lists, twin_rows

NAMES = ["user", "item", "value", "time", "note"]
PLACES = ("first", "beyond the sample", "last")
FORMATS = {"csv": ",", "tsv": "\t", "semicolons": ";", "colons": "::", "lists": " "}
Cells = list[list[str]]
PARSER = ("polars", "pyarrow", "dtype", "schema", "infer", "traceback", "codec", "ComputeError", "errno", "n_extra")


def cell(column: int, text: str) -> Callable[[Cells, int], None]:
    """Replace one field."""

    def change(cells: Cells, row: int) -> None:
        cells[row][column] = text

    return change


def append(*texts: str) -> Callable[[Cells, int], None]:
    return lambda cells, row: cells[row].extend(texts)


def shorter(cells: Cells, row: int) -> None:
    cells[row].pop()


def joined(cells: Cells, row: int) -> None:
    """One row short, the next one long."""
    moved = cells[row].pop()
    cells[max(row - 1, 0)].append(moved)


CELLS: dict[str, Callable[[Cells, int], None]] = {
    **{
        f"user {text!r}": cell(0, text)
        for text in (
            "007",
            "+1",
            "-0",
            " 7",
            "7 ",
            "7.0",
            "1e3",
            "0x10",
            "1_000",
            "9223372036854775808",
            "-9223372036854775809",
            "1,000",
            "",
            " ",
            "\u00a0",
            "\uff17",
            "\ufeff7",
            "x",
            "a:b",
            "NaN",
            "null",
            "\u0660",
            "7\x1f8",
            "\x0c7",
            "e\u0301",
            "99999999999999999999999",
            "--1",
            "- 1",
            "00",
            "-",
            "#7",
        )
    },
    **{
        f"item {text!r}": cell(1, text)
        for text in ("03", "+3", "3.", " 3", "\t3", "", "3\u2028", "'3'", '3"', '5" x 7"')
    },
    **{
        f"value {text!r}": cell(2, text)
        for text in (
            "inf",
            "-nan",
            "1e400",
            "3,5",
            "1.000,5",
            "1 000",
            "",
            "five",
            "0x3",
            " 4",
            "4 ",
            "+4",
            "4e0",
            ".5",
            "4.",
            "1e-50",
            "3.4028235e39",
            "4_0",
            "\u0664",
            "True",
            "00004",
            "16777217",
            "0.1000000000000000055",
            "123456789012345678901",
        )
    },
    **{
        f"time {text!r}": cell(3, text)
        for text in (
            "2024-01-31T25:00:00",
            "2024-02-30",
            "2024-13-01",
            "2024-01-31 10:61:00",
            "2024-01-31 10:00:61",
            "soon",
            "",
            "1700000000000",
            "1700000000000000",
            "2024-01-31",
            "31.01.2024",
            "nan",
            "1e300",
            "+1700000000",
            "01700000000",
            "99999999999999999999",
        )
    },
    "a quote that opens": cell(4, '"open'),
    "a quote that closes": cell(4, 'close"'),
    "a quoted field": cell(4, '"a b"'),
    "a quoted id": cell(1, '"12"'),
    "an empty quoted id": cell(1, '""'),
    "quotes inside": cell(4, 'a "b" c'),
    "text after a quote": cell(4, '"a"b'),
    "doubled quotes": cell(4, '"a ""b"" c"'),
    "a quoted line break": cell(4, '"a\nb"'),
    "a quoted separator": cell(4, '"a,b;c\td"'),
    "a trailing separator": append(""),
    "one field more": append("more"),
    "one field less": shorter,
    "a field in the wrong row": joined,
    "200 kB": cell(1, "z" * 200_000),
    "a carriage return inside": cell(4, "a\rb"),
}


def insert(line: bytes) -> Callable[[list[bytes], int], list[bytes]]:
    return lambda lines, at: [*lines[:at], line, *lines[at:]]


def every(change: Callable[[bytes], bytes]) -> Callable[[list[bytes], int], list[bytes]]:
    return lambda lines, at: [change(line) for line in lines]


def one(change: Callable[[bytes], bytes]) -> Callable[[list[bytes], int], list[bytes]]:
    return lambda lines, at: [*lines[:at], change(lines[at]), *lines[at + 1 :]]


def from_here(change: Callable[[bytes], bytes]) -> Callable[[list[bytes], int], list[bytes]]:
    return lambda lines, at: [*lines[:at], *map(change, lines[at:])]


LINES: dict[str, Callable[[list[bytes], int], list[bytes]]] = {
    "carriage returns": every(lambda line: line.replace(b"\n", b"\r")),
    "both line ends": every(lambda line: line.replace(b"\n", b"\r\n")),
    "mixed line ends": from_here(lambda line: line.replace(b"\n", b"\r")),
    "mixed line ends, both": from_here(lambda line: line.replace(b"\n", b"\r\n")),
    "one carriage return": one(lambda line: line.replace(b"\n", b"\r")),
    "a blank line": insert(b"\n"),
    "blank lines": insert(b"\n\r\n\n"),
    "a line of blanks": insert(b"   \n"),
    "a line of separators": insert(b",,,,\n"),
    "a header again": lambda lines, at: [*lines[:at], lines[0], *lines[at:]],
    "a zero byte": one(lambda line: line.replace(b"n", b"\0", 1)),
    "a zero byte at the end": lambda lines, at: [*lines, b"\0"],
    "Latin-1": one(lambda line: line.replace(b"n", b"\xe9", 1)),
    "a byte order mark": lambda lines, at: [b"\xef\xbb\xbf" + lines[0], *lines[1:]],
    "a byte order mark inside": one(lambda line: b"\xef\xbb\xbf" + line),
    "UTF-16": lambda lines, at: [b"".join(lines).decode().encode("utf-16")],
    "UTF-16 big-endian": lambda lines, at: [b"\xfe\xff" + b"".join(lines).decode().encode("utf-16-be")],
    "UTF-16 without a mark": lambda lines, at: [b"".join(lines).decode().encode("utf-16-le")],
    "UTF-32": lambda lines, at: [b"".join(lines).decode().encode("utf-32")],
    "no line end at the end": lambda lines, at: [*lines[:-1], lines[-1].rstrip(b"\n")],
    "another separator": one(lambda line: line.replace(b",", b";").replace(b"\t", b",").replace(b"::", b":")),
    "a comment": insert(b"# a comment\n"),
    "half a line": lambda lines, at: [*lines[: at + 1], lines[-1][: len(lines[-1]) // 2]],
    "nothing": lambda lines, at: lines,
}


def clean_cells(rng: random.Random, rows: int, dates: bool) -> Cells:
    def when() -> str:
        second = 1_600_000_000 + rng.randrange(10**8)
        if not dates:
            return str(second)
        day = f"{rng.randrange(2000, 2025)}-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}"
        return f"{day} {rng.randrange(24):02}:{rng.randrange(60):02}:{rng.randrange(60):02}"

    text = rng.random() < 0.3
    return [
        [
            f"u{rng.randrange(10**6)}" if text else str(rng.randrange(10**6)),
            str(rng.randrange(10**4)),
            rng.choice(["1", "2.5", "3", "4.5", "5.0"]),
            when(),
            rng.choice(["note", "n", "nine lives"]),
        ]
        for _ in range(rows)
    ]


def make(rng: random.Random, path: Path, sizes: tuple[int, ...]) -> tuple[str, str, list[str] | None]:
    """Write a hostile table; what it is, its separator, and its header."""
    form = rng.choice(list(FORMATS))
    separator = FORMATS[form]
    place = rng.choice(PLACES)
    rows = rng.choice(sizes)
    header = NAMES if form != "lists" and rng.random() < 0.7 else None
    what = rng.choice([*CELLS, *LINES])
    cells = clean_cells(rng, rows, dates=rng.random() < 0.3)
    if header is None:
        cells = [row[:4] for row in cells]
    if form == "lists":
        cells = [[str(user), *(str(rng.randrange(10**4)) for _ in range(rng.randrange(1, 6)))] for user in range(rows)]
    at = {"first": 0, "last": rows - 1}.get(place, rows - 1 - rows // 10)
    if what in CELLS:
        try:
            CELLS[what](cells, at)
        except IndexError:  # no such column in this table
            what = "nothing"
    lines = [(separator.join(row) + "\n").encode() for row in ([header] if header else []) + cells]
    if what in LINES:
        lines = LINES[what](lines, at + bool(header))
    data = b"".join(lines)
    if packed := rng.random() < 0.2:
        data = gzip.compress(data, 1)
        if rng.random() < 0.2:
            data, what = data[: len(data) * 2 // 3], f"{what}, cut off"
    path.write_bytes(data)
    return f"{what} ({place} of {rows:,} rows, {form}{', gz' * packed})", separator, header


def read_rows(path: Path, separator: str) -> Rows:
    layout = {"layout": "lists"} if separator == " " else {"layout": "rows", "separator": separator}
    data = cr.read_csv(path, duplicates="keep", **layout)  # type: ignore[arg-type]
    users, items = data.users.ids[data.user].tolist(), data.items.ids[data.item].tolist()
    times = [None] * len(users) if data.time is None else data.time.tolist()
    return list(zip(users, items, data.value.tolist(), times, strict=True))


def compared(path: Path, separator: str, header: list[str] | None) -> tuple[str, bool]:
    """What is wrong with the reading of a table, if anything; whether it was refused."""
    try:
        got = read_rows(path, separator)
    except cr.CorankError as error:
        said = str(error)
        if "\n" in said or any(word.lower() in said.replace(str(path), "").lower() for word in PARSER):
            return f"refused in the words of a parser: {said[:200]}", True
        return "", True
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}", True
    try:
        want = twin_lists(path, separator) if separator == " " else twin_rows(path, separator, header)
    except Refused as why:
        return f"accepted, though: {why}", False
    if len(got) != len(want):
        return f"{len(got):,} rows instead of {len(want):,}", False
    for a, b in zip(got, want, strict=True):
        if a != b:
            return f"read {a!r} instead of {b!r}"[:300], False
    return "", False


def hostile_tables(trials: int, seed: int, folder: Path, tell: Tell) -> Outcome:
    """Tables that are read row by row, and tables that the readers of large files are made to read in small blocks."""
    out = Outcome()
    refused: Counter[bool] = Counter()
    usual = text_columns.SMALL, large_files.BLOCK
    path = folder / "table.csv"
    try:
        for trial in range(trials):
            rng = random.Random(f"{seed} {trial}")
            sizes = (30, 30, 10_500, 150_000 if trial % 20 == 0 else 10_500)  # 10,000 are the sample; 150,000 are many
            what, separator, header = make(rng, path, sizes)
            text_columns.SMALL, large_files.BLOCK = usual if rng.random() < 0.3 else (1 << 9, 1 << 16)
            failure, was_refused = compared(path, separator, header)
            if was_refused and what.startswith("nothing") and "cut off" not in what:
                failure = failure or "a clean table was refused"
            refused[was_refused] += 1
            out.trial(f"trial {trial}, {what}: {failure}" if failure else "")
            tell(trial + 1, trials)
    finally:
        text_columns.SMALL, large_files.BLOCK = usual
    out.notes.append(f"{refused[False]:,} read like the twin, {refused[True]:,} refused in a sentence")
    return out


PARTS = [
    Part("hostile tables", 500, hostile_tables, "the same rows as a slow twin reader, or one sentence"),
]
