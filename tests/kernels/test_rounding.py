"""A loop of a kernel that sums does not store: see `FAST` in `kernels.threads`."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from corank.kernels import threads

FILES = sorted(Path(threads.__file__).parent.glob("*.py"))
# Each step of these needs the one before it, or stores to places that an array gives: the compiler keeps their order.
IN_ORDER = {
    ("ndcg_bound.py", "gains"),
    ("pairs.py", "evaluate"),
    ("plackett_luce.py", "evaluate"),
    ("ranks.py", "first_relevant"),
    ("sample.py", "choices"),
    ("windows.py", "evaluate"),
}


def loops(tree):
    """(function, innermost loop over a range) of a file."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for loop in ast.walk(function):
                inner = [node for node in ast.walk(loop) if isinstance(node, ast.For | ast.While)]
                if isinstance(loop, ast.For) and inner == [loop]:
                    yield function.name, loop


def sums_and_stores(loop):
    """Whether a loop adds to a variable, other than to count, and stores into an array."""
    changed = [node for node in ast.walk(loop) if isinstance(node, ast.AugAssign)]
    sums = any(isinstance(n.target, ast.Name) and not _whole(n.value) for n in changed)
    return sums and any(isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store) for n in ast.walk(loop))


def _whole(value):
    counted = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "_ones"
    return counted or (isinstance(value, ast.Constant) and isinstance(value.value, int))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_loop_that_sums_does_not_store(file):
    tree = ast.parse(file.read_text("utf-8"))
    found = {(file.name, name) for name, loop in loops(tree) if sums_and_stores(loop)}
    assert found <= IN_ORDER, "sum in a loop of its own, or the result depends on where arrays lie in memory"


def test_exceptions_are_alive():
    found = {(f.name, name) for f in FILES for name, loop in loops(ast.parse(f.read_text())) if sums_and_stores(loop)}
    assert found == IN_ORDER


def test_the_rule_sees_a_sum_and_a_store():
    bad = "def f(n, x, y):\n    t = 0.0\n    for i in range(n):\n        t += x[i]\n        y[i] = x[i]\n"
    assert [sums_and_stores(loop) for _, loop in loops(ast.parse(bad))] == [True]
    assert [sums_and_stores(loop) for _, loop in loops(ast.parse(bad.replace("t += x[i]", "t += 1")))] == [False]
