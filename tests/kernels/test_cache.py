"""Machine code on disk: the same numbers from a process that compiles and one that loads, and never stale code."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from layers import SOURCE

KERNELS = sorted((SOURCE / "kernels").glob("*.py"))

FIT = """
import hashlib, numpy as np, corank as cr
rng = np.random.default_rng(0)
data = cr.from_arrays(user=rng.integers(0, 40, 900), item=rng.integers(0, 30, 900), value=rng.integers(1, 6, 900))
model = cr.ALS(dim=19, epochs=2).fit(data)
print(hashlib.sha256(model.user_factors_.tobytes() + model.item_factors_.tobytes()).hexdigest())
"""

CALLEE = """
from corank.kernels.threads import inline

@inline
def amount(x):
    return x + {}
"""
CALLER = """
from corank.kernels.threads import kernel
from callee import amount

@kernel
def total(start, stop):
    out = 0
    for i in range(start, stop):
        out += amount(i)
    return out
"""


def python(code: str, cache: Path, **environment: str) -> str:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), **environment}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    ).stdout


def test_compiling_and_loading_processes_give_the_same_bits(tmp_path):
    compiled, loaded = (python(FIT, tmp_path) for _ in range(2))
    assert compiled == loaded


def test_a_kernel_is_compiled_again_when_what_it_calls_has_changed(tmp_path):
    code = "import caller; print(caller.total(0, 3))"
    (tmp_path / "caller.py").write_text(CALLER)
    path = f"{tmp_path}{os.pathsep}{SOURCE.parent}"
    for more, want in ((1, 6), (10, 33)):
        (tmp_path / "callee.py").write_text(CALLEE.format(more) + "# " + "x" * more)
        assert python(code, tmp_path / "cache", PYTHONPATH=path, PYTHONDONTWRITEBYTECODE="1").strip() == str(want)


def decorated(path: Path) -> dict[str, tuple[str, ast.FunctionDef]]:
    """name -> (decorator, function) of the compiled functions of a file."""
    found = {}
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            names = [d.id for d in node.decorator_list if isinstance(d, ast.Name)]
            if names and names[0] in ("kernel", "inline"):
                found[node.name] = (names[0], node)
    return found


def called(path: Path) -> set[tuple[str, str]]:
    """(file, function) of what the compiled functions of a file call."""
    home: dict[str, tuple[str, str]] = {}
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            for alias in node.names:
                home[alias.asname or alias.name] = (node.module or alias.name, alias.name if node.module else "")
    out = set()
    for _, function in decorated(path).values():
        for call in (node.func for node in ast.walk(function) if isinstance(node, ast.Call)):
            if isinstance(call, ast.Name):
                out.add(home.get(call.id, (path.stem, call.id)))
            elif isinstance(call, ast.Attribute) and isinstance(call.value, ast.Name) and call.value.id in home:
                out.add((home[call.value.id][0], call.attr))
    return out


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_what_kernels_call_is_inline_and_nothing_else(path):
    everything = set().union(*(called(one) for one in KERNELS))
    for name, (decorator, _) in decorated(path).items():
        assert decorator == ("inline" if (path.stem, name) in everything else "kernel"), name
