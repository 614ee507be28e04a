"""corank: collaborative filtering and ranking.

Public names are resolved on first use (PEP 562), so that `import corank` is as light as `import numpy`. Model classes
are discovered: `corank.SQLRank` is the class in `models/sql_rank.py`.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

__version__ = "0.1.0"

_NAMES = {
    "data": ("CSR", "Dataset", "Vocab", "from_arrays", "from_scipy"),
    "reading.frames": ("from_frame",),
    "reading.tables": ("read_csv", "read_parquet"),
    "reading.item_tables": ("item_table",),
    "data.labels": ("ItemTable",),
    "datasets.given": ("given_split",),
    "datasets.partitioned": ("read_partitions",),
    "data.split": (
        "Split",
        "fixed_per_user",
        "holdout",
        "leave_last_out",
        "time_cut",
    ),
    "data.held_out_users": ("cold_users", "strong_generalization"),
    "model": ("Model",),
    "models": ("available", "find", "load"),
    "answering.ranking": ("Ranking",),
    "answering.explain": ("Explanation",),
    "answering.diversity": ("diversify",),
    "evaluation.evaluate": ("evaluate",),
    "evaluation.report": ("Report",),
    "evaluation.significance": ("Comparison", "compare", "relative_graph_gain"),
    "experiment.experiment": ("Experiment",),
    "experiment.results": ("Results",),
    "answering.vectors": ("Vectors",),
    "export.vectors": ("export_vectors",),
    "export.index": ("export_index",),
    "export.onnx": ("export_onnx",),
    "cluster.ray_cluster": ("Ray",),
    "errors": ("CorankError", "MissingExtra", "ModelFileError", "NotFitted"),
    "kernels.threads": ("set_threads", "threads"),
}
_MODULES = {
    "datasets": "datasets",
    "features": "graph.node2vec",
    "graph": "graph",
    "metrics": "evaluation.metrics",
    "report": "report",
    "synthetic": "datasets.synthetic",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    if name in _MODULES:
        return importlib.import_module(f".{_MODULES[name]}", __name__)
    if name == "__all__":
        return __dir__()
    if not name.startswith("_"):
        models = importlib.import_module(".models", __name__)
        for file in pkgutil.iter_modules(models.__path__):
            if file.name.replace("_", "") == name.lower():  # SQLRank is in sql_rank.py
                return models.find(file.name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    models = importlib.import_module(".models", __name__)
    return sorted([*_HOME, *_MODULES, *(models.find(name).__name__ for name in models.available())])
