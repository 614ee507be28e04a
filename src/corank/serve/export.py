"""Feedback as a table for the next fit: CSV, TSV or Parquet, written page by page."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from ..errors import CorankError
from ..system.atomic import replacing
from .store import LIKED, Store, StoreDown

HEADER = ("user", "item", "value", "time", "event", "model")


def plain_row(row: Any) -> tuple[Any, ...] | None:
    """A row of the table; None for an entry that is no interaction."""
    if row.item is None:
        return None
    value = row.value if row.value is not None else 1.0 if row.event in LIKED else 0.0
    return row.user, row.item, value, row.time, row.event, row.model


def write_feedback(url: str, out: str | Path) -> int:
    """Write all feedback of a store to a file; returns the number of rows."""
    path = Path(out)
    separators = {".csv": ",", ".tsv": "\t"}
    if path.suffix not in (*separators, ".parquet"):
        raise CorankError(f"{path.name}: the ending of the table must be .csv, .tsv or .parquet")
    store = Store(url, new=False)
    count = 0
    try:
        with replacing(path) as part:
            if path.suffix == ".parquet":
                import polars as pl

                rows = [row for page in store.export() for row in map(plain_row, page) if row is not None]
                pl.DataFrame(rows, schema=_schema(), orient="row").write_parquet(part)
                return len(rows)
            with part.open("w", encoding="utf-8", newline="") as file:
                table = csv.writer(file, delimiter=separators[path.suffix], lineterminator="\n")
                table.writerow(HEADER)
                for page in store.export():
                    rows = [row for row in map(plain_row, page) if row is not None]
                    table.writerows(rows)
                    count += len(rows)
    except StoreDown as why:
        raise CorankError(f"the feedback store {store.shown} does not answer: {why}") from None
    finally:
        store.close()
    return count


def _schema() -> dict[str, Any]:
    import polars as pl

    return dict(zip(HEADER, (pl.String, pl.String, pl.Float64, pl.Int64, pl.String, pl.String), strict=True))
