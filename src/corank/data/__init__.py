"""Datasets, vocabularies, sparse rows, graphs of users or items, and splits."""

from .csr import CSR, Array, from_scipy, row_ends, tally
from .dataset import DUPLICATES, Dataset, Duplicates, from_arrays, restricted, settle_duplicates
from .values import VALUES, Values
from .vocab import Vocab, frozen

__all__ = [
    "CSR",
    "DUPLICATES",
    "VALUES",
    "Array",
    "Dataset",
    "Duplicates",
    "Values",
    "Vocab",
    "from_arrays",
    "from_scipy",
    "frozen",
    "restricted",
    "row_ends",
    "settle_duplicates",
    "tally",
]
