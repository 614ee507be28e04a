"""Tables of items from files and frames of any kind."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pytest

import corank as cr

TEXT = 'movieId,title,genres,year\n3,Heat (1995),Action|Crime,1995\n1,"Toy, Story",Comedy,\n'
WANT = {"title": ["Toy, Story", "Heat (1995)"], "genres": [["Comedy"], ["Action", "Crime"]], "year": [None, 1995]}


def listed(table):
    return {name: column.listed() for name, column in table.labels.columns.items()}


def test_csv(tmp_path):
    path = tmp_path / "items.csv"
    path.write_text(TEXT)
    table = cr.item_table(path)
    assert table.items.ids.tolist() == [1, 3]
    assert listed(table) == WANT


def test_the_same_from_parquet_and_frames(tmp_path):
    frame = pl.DataFrame(
        {
            "movieId": [3, 1],
            "title": ["Heat (1995)", "Toy, Story"],
            "genres": [["Action", "Crime"], ["Comedy"]],
            "year": [1995, None],
        }
    )
    frame.write_parquet(tmp_path / "items.parquet")
    for source in (tmp_path / "items.parquet", frame, frame.to_pandas(), frame.to_arrow()):
        assert listed(cr.item_table(source)) == WANT
    plain = pd.DataFrame({"year": [2, 1], "sku": ["b", "a"]})
    table = cr.item_table(plain)
    assert table.items.ids.tolist() == ["a", "b"]
    assert listed(table) == {"year": [1, 2]}


def test_a_file_without_a_header(tmp_path):
    path = tmp_path / "movies.dat"
    path.write_bytes("1::Misérables, Les (1995)::Drama|Musical\n2::1984::Drama\n".encode("latin-1"))
    table = cr.item_table(path)
    assert listed(table) == {"title": ["Misérables, Les (1995)", "1984"], "2": [["Drama", "Musical"], ["Drama"]]}


def test_the_column_of_the_ids(tmp_path):
    columns = {"year": [1990, 1991], "id": [8, 9]}
    assert cr.item_table(columns).items.ids.tolist() == [8, 9]
    assert cr.item_table(columns, item="year").items.ids.tolist() == [1990, 1991]
    with pytest.raises(cr.CorankError, match=r"no column 'ids' for item.*did you mean 'id'"):
        cr.item_table(columns, item="ids")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("item,year\n1,2\n2\n", "line 3 .* has 1 field"),
        ("item,year\n1,2\n1,3\n", "has item 1 more than once"),
        ("item,year,year\n1,2,3\n", "two columns of one name"),
        ("item,year\n1,2\n,3\n", "empty id in row 2"),
        ("", "is empty"),
        ("item\n1\n2\n", "only one column .* at least two, the id and a label such as the title"),
        ("item,year\n", "no rows"),
    ],
)
def test_a_broken_table_is_one_sentence(tmp_path, text, what):
    path = tmp_path / "items.csv"
    path.write_text(text)
    with pytest.raises(cr.CorankError, match=what) as error:
        cr.item_table(path)
    assert "\n" not in str(error.value)


def test_what_is_no_table(tmp_path):
    with pytest.raises(cr.CorankError, match="does not exist"):
        cr.item_table(tmp_path / "nowhere.csv")
    with pytest.raises(cr.CorankError, match="not a data frame"):
        cr.item_table(3)
    with pytest.raises(cr.CorankError, match="no rows"):
        cr.item_table(pl.DataFrame({"item": []}))
    with pytest.raises(cr.CorankError, match="1 empty ids"):
        cr.item_table(pl.DataFrame({"item": ["a", None], "x": [1, 2]}))
