"""`given_split`: training and test rows that come apart, from files, data frames or datasets, as one split."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..data import Dataset
from ..data.given import align, with_validation
from ..data.split import Split, require_dataset
from ..errors import CorankError
from ..reading.frames import from_frame
from ..reading.tables import guess_columns
from .loading import open_any


def given_split(
    train: Any,
    test: Any,
    valid: Any = None,
    *,
    name: str = "",
    ordered: bool = False,
    seed: int = 0,
    **columns: Any,
) -> Split:
    """A split whose parts are given.

    Parameters
    ----------
    train, test, valid : a `Dataset`, a file (as `read_csv` and `read_parquet` read it), or a pandas, polars or pyarrow
        table, each.
    name : of the split, in reports; made of the names of the files when absent.
    ordered : the order of the rows (their times, else their order in the file) matters, as for sequential models.
    columns : `user`, `item`, `value`, `time`, `separator`, `duplicates` ..., for all parts; guessed by default.

    Rows keep their part. The parts share one vocabulary, that of all their users and items. Test rows whose user or
    item has no training rows are kept: no model can predict such items, so that they count as misses. How many there
    are, and how many pairs are in two parts, is logged and kept in `notes`, which reports print.

    Without a validation part one is cut from the training rows: 10 % of the rows of each user, drawn with `seed`, or
    the last row of each user if `ordered`. The name of the split says so. These rows are for choosing hyper-parameters
    and for early stopping; the final fit of an `Experiment` uses all given training rows.
    """
    parts = {"train": train, "test": test, "valid": valid}
    read = {part: _rows(source, part, columns) for part, source in parts.items() if source is not None}
    if missing := [part for part in ("train", "test") if part not in read]:
        raise CorankError(f"{missing[0]}=None: give the {missing[0]} rows, as a file, a table or a Dataset")
    if not name:
        files = [Path(source).name for source in parts.values() if isinstance(source, str | Path)]
        name = f"given split ({', '.join(files)})" if files else "given split"
    split = align(read["train"], read["test"], read.get("valid"), name=name)
    return with_validation(split, ordered=ordered, seed=seed)


def _rows(source: Any, part: str, columns: dict[str, Any]) -> Dataset:
    if isinstance(source, str | Path):
        return open_any(source, **columns)
    if isinstance(source, Dataset | Split):
        require_dataset(source, f"{part} of given_split")
        return source  # type: ignore[return-value]
    import narwhals as nw

    try:
        names = [str(column) for column in nw.from_native(source, eager_only=True).columns]
    except TypeError:
        raise CorankError(
            f"{part} is a {type(source).__name__}: give a Dataset, a file, or a pandas, polars or pyarrow table"
        ) from None
    roles = {role: columns.get(role) for role in ("user", "item", "value", "time")}
    chosen: dict[str, Any] = guess_columns(names, **roles).roles()
    options: dict[str, Any] = {k: v for k, v in columns.items() if k not in roles}
    return from_frame(source, **chosen, **options)
