"""Rows one after the other: quotes, line ends, encodings, and what is refused with its line."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

import corank as cr
from corank.reading.records import lines, split
from rows import rows_of, write


def rows(text: str, separator: str = ",", quotes: bool = True) -> list[tuple[int, list[str]]]:
    return list(split(lines(io.StringIO(text, newline=""), Path("x")), separator, Path("x"), quotes))


def test_rows_know_their_lines() -> None:
    assert rows('a,b\r\n\r\n"c\nd",e\rf,g') == [(1, ["a", "b"]), (3, ["c\nd", "e"]), (5, ["f", "g"])]
    assert rows("a,b\n,\n \nc,") == [(1, ["a", "b"]), (4, ["c", ""])]


def test_quotes() -> None:
    assert rows('"a ""b"", c",7" disc\n') == [(1, ['a "b", c', '7" disc'])]
    assert rows('"a,b\n', quotes=False) == [(1, ['"a', "b"])]
    assert rows('"a::b"::c\n', "::") == [(1, ['"a', 'b"', "c"])]
    for text in ('a,"b\nc,d\n', 'a,"b"c\n'):
        with pytest.raises(cr.CorankError, match="line 1 of file 'x'"):
            rows(text)


def test_fields_of_any_length() -> None:
    assert rows("z" * 300_000 + ",2\n")[0][1] == ["z" * 300_000, "2"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b'user,item\n1,"2\n3,4\n', "line 2 of .* opens a quote that is never closed: enclose whole fields"),
        (b'user,item\n1,"2"3\n3,4\n', "line 2 of .* has a quote that ends inside of a field"),
        (b'"' + b"z" * 200_000 + b'",2\n1,2\n', "line 1 of .* that is not closed within 131,072 characters"),
        (b"user,item\na,b\nuser,item\nc,d\n", "line 3 of .* repeats the header"),
        (b"user,item\na,b\n\xef\xbb\xbfc,d\n", "line 3 of .* begins with a byte order mark"),
        (b"user,item\na,b\nc\0,d\n", "line 3 has zero bytes"),
        (b"user,item,item\n1,2,3\n", "has 2 columns called 'item', and one of them is the item"),
        (b'"1"\t"2"\n"3\t"4"\n', "line 2 of .* has a quote that ends inside of a field"),
        (b"user;item;rating\n1;2;3,5\n", r"'3,5', which is not a number \(decimals are written with a point\)"),
        ("user,item\n1,2\n".encode("utf-16")[:-1], "is not UTF-8 text|is damaged utf-16 text"),
    ],
)
def test_what_is_refused(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    with pytest.raises(cr.CorankError, match=sentence) as caught:
        cr.read_csv(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"user,item,rating\r1,10,4.5\r2,20,3\r", [(1, 10, 4.5), (2, 20, 3.0)]),
        (b"user,item,rating\n1,10,4.5\r2,20,3\r\n", [(1, 10, 4.5), (2, 20, 3.0)]),
        (b"user,item,rating\n\n1,10,4.5\n2,20,3\n", [(1, 10, 4.5), (2, 20, 3.0)]),
        (b"user,item,rating\n1,10,4.5\n,,\n2,20,3\n", [(1, 10, 4.5), (2, 20, 3.0)]),
        (b"a:b::10::3\nc::20::4\n", [("a:b", 10, 3.0), ("c", 20, 4.0)]),
        (b'user\titem\n1\t"ab\n2\tcd\n', [(1, '"ab', 1.0), (2, "cd", 1.0)]),
        ("user\titem\n1\té\n".encode("utf-16"), [(1, "é", 1.0)]),
        ("user\titem\n1\té\n".encode("utf-32"), [(1, "é", 1.0)]),
    ],
)
def test_what_is_read(tmp_path: Path, content: bytes, expected: list[tuple[object, ...]]) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    assert [row[:3] for row in rows_of(cr.read_csv(path))] == expected


@pytest.mark.parametrize(
    "content",
    [
        b"1 2 3\r2 5\r3 7 8 9\r4 5 6 7 8\r",
        b"\n\n1 2 3\n2 5\n3 7 8 9\n4 5 6 7 8",
        b"\xef\xbb\xbf1 2 3\n2 5\n3 7 8 9\n4 5 6 7 8\n",
        "1 2 3\n2 5\n3 7 8 9\n4 5 6 7 8\n".encode("utf-16"),
    ],
)
def test_lists_with_other_line_ends_and_encodings(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(content)
    data = cr.read_csv(path)
    assert (len(data), data.users.ids.tolist()) == (10, [1, 2, 3, 4])


@pytest.mark.parametrize(("odd", "sentence"), [(b"\xe9", "0xe9, in line 5"), (b"\0", "line 5 has zero bytes")])
def test_lists_that_are_no_text(tmp_path: Path, odd: bytes, sentence: str) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(b"1 2 3\n2 5\n3 7 8 9\n4 5 6 7 8\n5 " + odd + b"\n")
    with pytest.raises(cr.CorankError, match=sentence):
        cr.read_csv(path, layout="lists")


def test_a_title_that_holds_the_separator_is_refused(tmp_path: Path) -> None:
    from corank.reading.tables import read_titles

    with pytest.raises(cr.CorankError, match=r"have more than 2 fields .*'2,Net, The'\): enclose titles"):
        read_titles(write(tmp_path, "movieId,title\n1,Heat\n2,Net, The\n"))
