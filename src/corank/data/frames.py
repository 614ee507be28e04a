"""Tables that go out: polars frames, converted to the library that was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import CorankError

if TYPE_CHECKING:
    import polars as pl


def in_backend(frame: pl.DataFrame, backend: str) -> Any:
    """The frame as a table of 'polars', 'pandas' or 'pyarrow'."""
    if backend not in ("polars", "pandas", "pyarrow"):
        raise CorankError(f"backend {backend!r} is not known: use 'polars', 'pandas' or 'pyarrow'")
    if backend == "polars":
        return frame
    try:
        return frame.to_pandas() if backend == "pandas" else frame.to_arrow()
    except ImportError:
        raise CorankError(
            f"a table for {backend} needs {'pandas and pyarrow' if backend == 'pandas' else backend}: install it with  "
            f"pip install {'pandas pyarrow' if backend == 'pandas' else backend}"
        ) from None
