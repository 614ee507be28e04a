"""Sparse products against dense ones: values, derivatives, entries in any order, places that hold several."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from corank.nn.sparse import Pattern, sampled_matmul, sparse_matmul  # noqa: E402

ROWS, COLUMNS, WIDTH = 7, 5, 3


def some(count, *, ordered=False, seed=0):
    """(pattern, row, column) of random entries; row 0 and column 0 stay empty."""
    rng = np.random.default_rng(seed)
    row, column = rng.integers(1, ROWS, count), rng.integers(1, COLUMNS, count)
    if ordered:
        order = np.lexsort((column, row))
        row, column = row[order], column[order]
    return Pattern(row, column, (ROWS, COLUMNS)), torch.from_numpy(row), torch.from_numpy(column)


def dense(row, column, value):
    return torch.zeros(ROWS, COLUMNS, dtype=value.dtype).index_put((row, column), value, accumulate=True)


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("count", [0, 1, 40])
def test_product_and_its_derivative_are_those_of_the_dense_matrix(count, ordered):
    pattern, row, column = some(count, ordered=ordered)
    value, seen = torch.randn(count), torch.randn(ROWS, WIDTH)
    table = torch.randn(COLUMNS, WIDTH, requires_grad=True)
    twin = table.detach().clone().requires_grad_()
    out, right = sparse_matmul(pattern, value, table), dense(row, column, value) @ twin
    torch.testing.assert_close(out, right)
    (out * seen).sum().backward()
    (right * seen).sum().backward()
    torch.testing.assert_close(table.grad, twin.grad)


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("count", [0, 1, 40])
def test_sampled_product_and_its_derivatives(count, ordered):
    pattern, row, column = some(count, ordered=ordered, seed=1)
    left, right = torch.randn(ROWS, WIDTH, requires_grad=True), torch.randn(COLUMNS, WIDTH, requires_grad=True)
    twins = [x.detach().clone().requires_grad_() for x in (left, right)]
    seen = torch.randn(count)
    out, truth = sampled_matmul(pattern, left, right), (twins[0][row] * twins[1][column]).sum(1)
    torch.testing.assert_close(out, truth)
    (out * seen).sum().backward()
    (truth * seen).sum().backward()
    for mine, twin in zip((left, right), twins, strict=True):
        torch.testing.assert_close(mine.grad, twin.grad)


def test_places_of_a_pattern_are_those_given():
    rng = np.random.default_rng(0)
    row, column = rng.integers(0, 7, 40), rng.integers(0, 5, 40)
    for order in (np.arange(40), np.argsort(row, kind="stable")):
        found = Pattern(row[order], column[order], (7, 5)).places()
        np.testing.assert_array_equal(found[0].numpy(), row[order])
        np.testing.assert_array_equal(found[1].numpy(), column[order])


def test_patterns_warn_of_nothing():
    import subprocess
    import sys

    code = "import numpy as np, torch; from corank.nn.sparse import Pattern, sampled_matmul; "
    code += "x = torch.ones(2, 3); print(sampled_matmul(Pattern(np.array([0]), np.array([1]), (2, 2)), x, x).item())"
    out = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "3.0"
    assert not out.stderr
