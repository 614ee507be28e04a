"""corank: collaborative filtering and ranking.

The public names are resolved when they are first used (PEP 562), so that `import corank` stays as light as `import
numpy`.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "data": ("CSR", "Dataset", "Vocab", "from_arrays", "from_frame", "from_scipy"),
    "tables": ("read_csv", "read_parquet"),
    "split": (
        "Split",
        "cold_users",
        "fixed_per_user",
        "holdout",
        "leave_last_out",
        "strong_generalization",
        "time_cut",
    ),
    "model": ("Model", "available", "find"),
    "store": ("load",),
    "ranking": ("Ranking",),
    "evaluate": ("Report", "evaluate"),
    "compare": ("Comparison", "compare", "relative_graph_gain"),
    "experiment": ("Experiment",),
    "results": ("Results",),
    "errors": ("CorankError", "MissingExtra", "ModelFileError", "NotFitted"),
    "kernels.threads": ("set_threads", "threads"),
    "models.als": ("ALS",),
    "models.bpr": ("BPR",),
    "models.co_factor": ("CoFactor",),
    "models.cofirank": ("CofiRank",),
    "models.collrank": ("CollRank",),
    "models.ease": ("EASE",),
    "models.gcmc": ("GCMC",),
    "models.graph_ae": ("GraphAE",),
    "models.grmf": ("GRMF",),
    "models.grwmf": ("GRWMF",),
    "models.item_knn": ("ItemKNN",),
    "models.list_mf": ("ListMF",),
    "models.mf": ("MF",),
    "models.popularity": ("Popularity",),
    "models.primal_cr": ("PrimalCR",),
    "models.sasrec": ("SASRec",),
    "models.sql_rank": ("SQLRank",),
    "models.sse_pt": ("SSEPT",),
    "models.wmf": ("WMF",),
}
_MODULES = ("datasets", "features", "graph", "metrics", "report", "synthetic")
_WHERE = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted([*_WHERE, *_MODULES])


class _Package(types.ModuleType):
    """Keeps `corank.evaluate` the function: Python binds a submodule of that name over it when it is first imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _WHERE and isinstance(value, types.ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
