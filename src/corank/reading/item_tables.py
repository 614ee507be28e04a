"""Tables of items: one row per item with its id and any labels, from text files, Parquet files and data frames."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

from ..data.columns import Wording, text_kind
from ..data.labels import ItemTable
from ..errors import CorankError, shorten
from .column_names import choose, guess
from .csv_format import ragged, sniff
from .frames import polars_columns
from .parquet import is_parquet, parquet_columns, parquet_names
from .text_files import existing_file

ITEMS = Wording(
    rows="items",
    least="an item id and a label",
    split="a table of items has at least two, the id and a label such as the title, separated by commas or tabs (with "
    "another separator, read it by item_table(..., separator=...))",
)


def item_table(source: Any, *, item: str | None = None, separator: str | None = None) -> ItemTable:
    """A table of items with their labels, for `Model.with_items`: one row per item.

    Parameters
    ----------
    source : a text file (plain or packed, as in `read_csv`), a Parquet file, a pandas, polars or pyarrow table, or a
        {name: column} mapping.
    item : the column with the ids; by default the one that is called so (item, movieId, asin, ...), else the first.
    separator : of a text file; detected by default.

    All other columns are labels: numbers, yes or no, texts, or several texts per item ("Comedy|Drama", or lists). A
    column called title (or name, movieTitle, ...) has the titles. In a text file without a header, the first column is
    the id, the second the title, and the others are called by their position: "2", "3", ...
    """
    if isinstance(source, ItemTable):
        return source
    if isinstance(source, str | PathLike):
        path = existing_file(source, ITEMS)
        where = f"file '{path}'"
        if not is_parquet(path):
            return _from_text(path, item, separator)
        frame = parquet_columns(path, parquet_names(path))
    else:
        import polars as pl

        where = "the item table"
        frame = pl.DataFrame(source, strict=False) if isinstance(source, Mapping) else polars_columns(source)
    if not frame.width or not frame.height:
        raise CorankError(f"{where} has no rows: give at least one item")
    names = frame.columns
    key = _key(names, item, where)
    if frame[key].null_count():
        raise CorankError(f"column {key!r} of {where} has {frame[key].null_count():,} empty ids: drop those rows first")
    ids = frame[key] if str(frame[key].dtype) == "String" else frame[key].to_list()
    columns = {name: frame[name].to_list() for name in names if name != key}
    return ItemTable.build(ids, _titled(columns), where)


def _from_text(path: Any, item: str | None, separator: str | None) -> ItemTable:
    layout = sniff(
        path,
        separator=separator,
        given=[item] if item else [],
        expected=("item",),
        encodings=("utf-8-sig", "latin-1"),
        whole=True,
        wording=ITEMS,
    )
    where, names = f"file '{path}'", list(layout.names)
    for number, row in enumerate(layout.sample):
        if len(row) != len(names):
            raise ragged(layout.path, layout.skip + number + 1, len(row), len(names), layout.separator, ITEMS)
    if len(set(names)) < len(names):
        raise CorankError(f"{where} has two columns of one name: it has {shorten(', '.join(names), 400)}")
    key = _key(names, item, where, header=layout.header)
    fields = dict(zip(names, zip(*layout.sample, strict=True), strict=True))
    ids = [field.strip() for field in fields.pop(key)]
    if not all(ids):
        raise CorankError(f"{where} has an empty id in row {ids.index('') + 1:,}: drop or fill such rows first")
    columns = {name: list(column) for name, column in fields.items()}
    if not layout.header and "1" in columns:
        columns = {"title" if name == "1" else name: column for name, column in columns.items()}
    return ItemTable.build([int(i) for i in ids] if text_kind(ids) == "int" else ids, _titled(columns), where)


def _key(names: list[str], item: str | None, where: str, *, header: bool = True) -> str:
    """The column with the ids."""
    if item is not None:
        return choose(names, {"item": item}, where, header=header)["item"]
    return (guess(names, "item") if header else None) or next((n for n in names if n.lower() == "id"), names[0])


def _titled(columns: dict[str, Any]) -> dict[str, Any]:
    """The columns, with the one that means titles called title."""
    title = "title" if "title" in columns else guess(list(columns), "title")
    return {"title" if name == title else name: column for name, column in columns.items()}
