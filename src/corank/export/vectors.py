"""Vectors of users and items as a file: NumPy's npz or Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..answering.vectors import Vectors
from ..data import Array
from ..errors import CorankError
from ..system.atomic import replacing

if TYPE_CHECKING:
    from ..model import Model

ENDINGS = (".npz", ".parquet")


def export_vectors(model: Model, path: str | Path) -> Vectors:
    """Write the vectors of `model.vectors()` to a file whose ending says how; returns them.

    Inner products of the vectors of users and items are the scores. `.npz` holds the arrays `user_ids`, `item_ids`,
    `user_vectors` (users, dim) and `item_vectors` (items, dim), without pickled objects. `.parquet` is one table with
    the columns `kind` ("user" or "item"), `id`, `title` (where the model has titles) and `vector`, of float32; ids are
    text there unless all of them are whole numbers.
    """
    check_ending(path)
    found = model.vectors()
    with replacing(path) as target:
        if Path(path).suffix.lower() == ".npz":
            with target.open("wb") as file:
                np.savez(
                    file,
                    user_ids=plain(found.users),
                    item_ids=plain(found.items),
                    user_vectors=found.user_vectors,
                    item_vectors=found.item_vectors,
                )
        else:
            _frame(found, model.titles_).write_parquet(target)
    return found


def check_ending(path: str | Path) -> None:
    """Raise an error unless the ending of a name says how vectors are written."""
    if Path(path).suffix.lower() not in ENDINGS:
        raise CorankError(f"cannot write vectors to '{path}': end the name in {' or '.join(ENDINGS)}")


def plain(ids: Array) -> Array:
    """Ids as an array of integers or of text of fixed width, which needs no pickle."""
    return ids if ids.dtype.kind == "i" else np.array(ids.tolist(), np.str_)


def _frame(found: Vectors, titles: list[str]) -> Any:
    import polars as pl

    parts = (("user", found.users, found.user_vectors), ("item", found.items, found.item_vectors))
    text = any(ids.dtype.kind != "i" for _, ids, _ in parts)
    frames = []
    for kind, ids, values in parts:
        columns = {
            "kind": pl.repeat(kind, len(ids), eager=True),
            "id": pl.Series([str(one) for one in ids.tolist()] if text else ids, dtype=pl.String if text else pl.Int64),
        }
        if titles:
            columns["title"] = pl.Series(titles if kind == "item" else [None] * len(ids), dtype=pl.String)
        columns["vector"] = pl.Series(values, dtype=pl.Array(pl.Float32, values.shape[1]))
        frames.append(pl.DataFrame(columns))
    return pl.concat(frames)
