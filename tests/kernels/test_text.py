"""The shape of a table, byte by byte, against Python's csv module."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corank.kernels import text as kernels


def shape(data: bytes, columns: int, cut: int = 0) -> tuple[bool, list[int]]:
    kept = np.zeros(10, np.int64)
    blocks = [data[:cut], data[cut:]] if cut else [data]
    good = all(kernels.shape(np.frombuffer(block, np.uint8), ord(","), columns, kept) for block in blocks)
    return good and not kept[kernels.STATE], kept.tolist()


FIELD = st.text(st.sampled_from('ab,"\n '), max_size=4)


@given(st.lists(st.tuples(FIELD, FIELD, FIELD), min_size=1, max_size=6), st.data())
def test_what_csv_writes_is_regular_however_it_is_cut(rows: list[tuple[str, ...]], draw: st.DataObject) -> None:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows)
    data = out.getvalue().encode()
    good, kept = shape(data, 3, draw.draw(st.integers(0, len(data))))
    assert good
    assert kept[kernels.RECORDS] == len(rows)
    assert kept[kernels.QUOTED] == 3 * len(rows)
    assert kept[kernels.BROKEN] == sum(field.count("\n") for row in rows for field in row)


@pytest.mark.parametrize(
    "text",
    ["a,b\n", "a,b,c,d\n", "a,b,c\n\na,b,c\n", "a,b,c\ra,b,c\n", "a,b\0,c\n", '"a"b,c,d\n', '"a,b,c\n', 'a,"b\0",c\n'],
)
def test_what_is_not_regular(text: str) -> None:
    assert not shape(text.encode(), 3)[0]


@given(st.text(st.sampled_from("a,\n"), max_size=40))
def test_even_lines(text: str) -> None:
    data = (text + "\n").encode()
    counts = np.zeros(1, np.int64)
    kernels.even(0, 1, np.frombuffer(data, np.uint8), np.array([0, len(data)]), ord(","), 2, counts)
    lines = data.decode().split("\n")[:-1]
    assert counts[0] == (len(lines) if all(line.count(",") == 1 for line in lines) else -1)
