"""Interactions as values: datasets, vocabularies, compressed rows, graphs of users or items, and splits."""

from .csr import CSR, Array, from_scipy, row_ends
from .dataset import (
    DUPLICATES,
    Dataset,
    Duplicates,
    Vocab,
    from_arrays,
    from_frame,
    frozen,
    settle_duplicates,
)

__all__ = [
    "CSR",
    "DUPLICATES",
    "Array",
    "Dataset",
    "Duplicates",
    "Vocab",
    "from_arrays",
    "from_frame",
    "from_scipy",
    "frozen",
    "row_ends",
    "settle_duplicates",
]
