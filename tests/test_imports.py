"""Who may import whom: a rule that is not tested is a wish (see docs/design.md)."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "corank"

# Layer of each top-level part; a module may import parts of its own layer or of a lower one.
LAYERS = [
    {"errors", "atomic", "memory"},
    {"kernels", "nn", "params"},
    {"data", "comparisons", "describe", "tables", "columns", "files", "layout"}
    | {"graph", "edges", "edge_tables", "features", "shells"},
    {"split", "ranking"},
    {"metrics", "protocol", "counting", "evaluate", "pooling", "compare"},
    {"model", "store", "checkpoint", "checks"},
    {"models"},
    {"oracles", "synthetic", "readers", "catalogue", "datasets", "download"},
    {"tune", "results", "parts", "experiment", "leaderboard"},
    {"canvas", "plots", "figures", "report", "curves"},
    {"cli", "__main__"},
]
# Beyond the layers: kernels, nn and the command line are the ends.
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
FILES = sorted(p for p in SOURCE.rglob("*.py") if p != SOURCE / "__init__.py")
# Reached inside functions only, where the lower layer offers the upper one's work as a method.
LATER = {("data", "describe"), ("data", "tables"), ("model", "evaluate"), ("model", "store"), ("model", "models")}
LATER |= {("evaluate", "model"), ("counting", "model")}  # the type only


def part(path: Path) -> str:
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def imports(path: Path) -> list[tuple[str, bool]]:
    """(part of corank, inside a function or TYPE_CHECKING?) of every import of corank's own modules in a file."""
    tree = ast.parse(path.read_text("utf-8"))
    top = set(map(id, tree.body))
    depth = len(path.relative_to(SOURCE).parts)
    found = []
    for node in ast.walk(tree):
        inner = id(node) not in top
        if isinstance(node, ast.ImportFrom) and node.level:
            inside = node.level < depth  # `from .x` within a folder such as kernels/
            if inside:
                continue
            names = [node.module.split(".")[0]] if node.module else [alias.name for alias in node.names]
            found += [(name, inner) for name in names if name in LEVEL]
        elif isinstance(node, ast.ImportFrom | ast.Import):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
            found += [(n.split(".")[1], inner) for n in names if n.startswith("corank.")]
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_down(path: Path) -> None:
    here = part(path)
    assert here in LEVEL, f"{here} has no layer: add it to LAYERS in {Path(__file__).name}"
    for other, inner in imports(path):
        allowed = LEVEL[other] <= LEVEL[here] or (inner and (here, other) in LATER)
        assert allowed, f"{here} must not import {other}"
        assert not (here == "kernels" and other not in ("kernels", "errors")), "kernels know nothing of corank"
        assert not (here == "nn" and other != "nn"), "nn knows nothing of corank: its parts are for any torch model"


def test_experiment_names_no_model() -> None:
    names = {p.stem for p in (SOURCE / "models").glob("*.py") if p.stem != "__init__"}
    words = {
        node.value
        for node in ast.walk(ast.parse((SOURCE / "experiment.py").read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert not names & words


def test_import_is_light() -> None:
    """`import corank` pulls nothing heavy; the public names are resolved when they are used."""
    heavy = "numba torch polars scipy matplotlib optuna pandas rich"
    code = f"import sys, corank; print([m for m in '{heavy}'.split() if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_finding_a_model_does_not_import_torch() -> None:
    """Torch takes a second to import and may not be installed: only learning and answering need it."""
    code = "import sys, corank; [corank.find(name) for name in corank.available()]; print('torch' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"


def test_public_names_resolve() -> None:
    import corank

    for name in corank.__all__:
        assert getattr(corank, name) is not None
    for _ in range(
        2
    ):  # importing corank.evaluation.evaluate, the module, must not hide corank.evaluation.evaluate, the function
        assert callable(corank.evaluation.evaluate)
        assert callable(corank.evaluation.significance)


def test_every_model_is_a_public_name() -> None:
    import corank

    assert {corank.find(name).__name__ for name in corank.available()} <= set(corank.__all__)


def test_nothing_that_is_loaded_can_run_code() -> None:
    banned = ("pickle", "dill", "joblib", "marshal", "shelve")
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [a.name for a in node.names] + [getattr(node, "module", None) or ""]
                assert not any(n.split(".")[0] in banned for n in names), f"{path.name} imports {names}"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec", "compile"), f"{path.name} calls {node.func.id}"
            if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
                assert isinstance(node.value, ast.Constant)
                assert node.value.value is False
