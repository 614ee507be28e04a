"""Who may import whom: a rule that is not tested is a wish (see docs/design.md)."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys

import pytest

from layers import LEVEL, SOURCE, UPWARD, closure, modules

MODULES = modules()
FILES = [module.path for module in MODULES.values()]


@pytest.mark.parametrize("name", MODULES)
def test_imports_point_down(name: str) -> None:
    module = MODULES[name]
    assert module.part in LEVEL, f"{module.part} has no layer: add it to LAYERS in layers.py"
    for other in module.imports:
        part = MODULES[other].part
        assert LEVEL[part] <= LEVEL[module.part] or (name, other) in UPWARD, f"{name} must not import {other}"
        assert not (module.part == "kernels" and part not in ("kernels", "errors", "system")), (
            "kernels know nothing of corank"
        )
        assert not (module.part == "nn" and part != "nn"), "nn knows nothing of corank: its parts are for any network"


def test_exceptions_are_alive() -> None:
    for name, other in UPWARD:
        assert other in MODULES[name].imports, f"{name} no longer imports {other}: remove it from UPWARD"


def test_no_knots() -> None:
    """No two modules import each other, directly or by a detour."""
    reach = {name: closure(name, MODULES) for name in MODULES}
    knots = {tuple(sorted((a, b))) for a in reach for b in reach[a] if a != b and a in reach[b]}
    assert not knots


def test_experiment_names_no_model() -> None:
    names = {p.stem for p in (SOURCE / "models").glob("*.py") if p.stem != "__init__"}
    words = {
        node.value
        for path in (SOURCE / "experiment").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
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
    importlib.import_module("corank.evaluation.evaluate")  # a module must not hide the function
    assert callable(corank.evaluate)
    assert callable(corank.compare)


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
