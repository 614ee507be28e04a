"""Interactions as values: datasets, vocabularies, compressed rows, graphs of users or items, and splits."""

from .dataset import (
    CSR,
    DUPLICATES,
    Array,
    Dataset,
    Duplicates,
    Vocab,
    from_arrays,
    from_frame,
    from_scipy,
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
    "settle_duplicates",
]
