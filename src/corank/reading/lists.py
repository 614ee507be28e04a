"""Recommendation lists of any origin: files and tables with a user, an item, and a rank or a score per row."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..data import Array, Vocab
from ..errors import CorankError, shorten
from .column_names import choose, guess
from .csv_format import sniff
from .frames import polars_columns
from .parquet import is_parquet, parquet_columns, parquet_names
from .text_columns import read_fields
from .text_files import existing_file

RANKS = ("rank", "position", "pos", "place")
TREC = ("user", "q0", "item", "rank", "score", "run")  # a run file of trec_eval, which has no header


@dataclass(frozen=True, eq=False)
class Lists:
    """One row per recommended item, in any order; a smaller key is a better place, equal keys are ties."""

    user: pl.Series
    item: pl.Series
    key: Array  # float64[rows]: the rank, or the negative score
    by: str  # 'rank' or 'score'

    def codes(self, users: Vocab, items: Vocab) -> tuple[Array, Array]:
        """The user and the item of each row as codes of a dataset, -1 where unknown."""
        return _codes(self.user, users), _codes(self.item, items)


def read_lists(source: Any) -> Lists:
    """Lists from a file (CSV, TSV, Parquet, JSON lines, a TREC run; text also gzipped) or from a data frame."""
    if isinstance(source, str | PathLike):
        path = existing_file(source)
        return _lists(_read(path), f"file '{path}'")
    return _lists(polars_columns(source), "the table of lists")


def _read(path: Path) -> pl.DataFrame:
    if is_parquet(path):
        return parquet_columns(path, parquet_names(path))
    endings = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    if endings in ("jsonl", "ndjson"):
        try:
            return pl.read_ndjson(path)
        except (pl.exceptions.PolarsError, OSError):
            raise CorankError(
                f"file '{path}' cannot be read as lists: each line must be a JSON object with the same names"
            ) from None
    layout = sniff(path, given=[*RANKS, "score"], expected=("user", "item"))
    names = list(layout.names)
    if not layout.header:
        if len(names) != len(TREC):
            raise CorankError(
                f"file '{path}' has no header: its first line must name the columns user, item, and rank or score"
            )
        names = list(TREC)
    if len(set(names)) < len(names):
        raise CorankError(f"file '{path}' has two columns of one name: it has {shorten(', '.join(names), 400)}")
    return pl.DataFrame(read_fields(layout, dict(zip(names, layout.names, strict=True)))[0])


def _lists(frame: pl.DataFrame, where: str) -> Lists:
    names = frame.columns
    lower = {name.lower(): name for name in names}
    rank = next((lower[word] for word in RANKS if word in lower), None)
    chosen = choose([name for name in names if name != rank], {"user": None, "item": None}, where)
    score = None if rank else guess([name for name in names if name not in chosen.values()], "value")
    by, column = ("rank", rank) if rank else ("score", score)
    if column is None:
        raise CorankError(
            f"{where} has neither a rank nor a score: it has {shorten(', '.join(names), 400)}; name one column "
            "'rank' (1 is the best) or 'score' (the highest is the best)"
        )
    numbers = frame[column].cast(pl.Float64, strict=False)
    bad = np.flatnonzero(~np.isfinite(numbers.fill_null(np.nan).to_numpy()))
    if bad.size:
        raise CorankError(
            f"column {column!r} of {where} holds {frame[column][int(bad[0])]!r} in row {bad[0] + 1:,}: a {by} must be "
            "a finite number"
        )
    for role in ("user", "item"):
        missing = frame[chosen[role]].null_count()
        if missing:
            raise CorankError(f"column {chosen[role]!r} of {where} has {missing:,} empty fields: drop those rows first")
    key = numbers.to_numpy()
    return Lists(frame[chosen["user"]], frame[chosen["item"]], key if rank else -key, by)


def _codes(column: pl.Series, vocab: Vocab) -> Array:
    """Codes of ids; a table may hold as text what the data has as integers, and the other way round."""
    if vocab.strings:
        column = column.cast(pl.String)
    elif not column.dtype.is_integer():
        whole = column.cast(pl.Int64, strict=False)
        # "007" is not 7
        known_form = whole.cast(pl.String) == column if column.dtype == pl.String else whole == column
        column = pl.DataFrame({"id": whole, "same": known_form}).select(pl.when("same").then("id")).to_series()
    distinct = column.unique().drop_nulls()
    known = pl.DataFrame(
        {"id": distinct, "code": vocab.codes(distinct.to_numpy())}, schema_overrides={"code": pl.Int32}
    )
    found = pl.DataFrame({"id": column}).join(known, on="id", how="left", maintain_order="left")["code"]
    return found.fill_null(-1).to_numpy()
