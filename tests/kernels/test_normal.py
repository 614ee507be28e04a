"""The shared solver of small systems against numpy, singular ones included."""

from __future__ import annotations

import numpy as np
import pytest

from corank.kernels import normal


def system(A, b):
    """A and b in the layout of the kernel: sides rounded up, everything right of the diagonal spoiled."""
    n = len(b)
    width = normal.rounded(n)
    wide = np.full((width, width), np.nan, np.float32)
    wide[:n, :n] = np.where(np.tri(n, dtype=bool), A, np.nan)
    y = np.full(width, np.nan, np.float32)
    y[:n] = b
    return wide, y


@pytest.mark.parametrize("n", [1, 2, 5, 8, 9, 33, 64])
def test_solve(n):
    rng = np.random.default_rng(n)
    half = rng.normal(size=(n, n + 3))
    A, b = half @ half.T + np.eye(n), rng.normal(size=n)
    wide, y = system(A, b)
    normal.solve(wide, n, np.empty(n, np.float32), y)
    np.testing.assert_allclose(y[:n], np.linalg.solve(A, b), rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("n", [1, 3, 8, 20])
def test_singular_systems_give_tame_answers(n):
    rng = np.random.default_rng(n)
    direction = rng.normal(size=n)
    A = np.outer(direction, direction)  # rank one, and a right side that it can reach
    wide, y = system(A, A @ np.ones(n))
    normal.solve(wide, n, np.empty(n, np.float32), y)
    np.testing.assert_allclose(A @ y[:n], A @ np.ones(n), rtol=1e-3, atol=1e-3)
    wide, y = system(np.zeros((n, n)), np.ones(n))
    normal.solve(wide, n, np.empty(n, np.float32), y)
    assert np.isfinite(y[:n]).all()


@pytest.mark.parametrize("n", [1, 2, 7, 8, 17])
def test_add_outer(n):
    rng = np.random.default_rng(n)
    width = normal.rounded(n)
    left, rows = (rng.normal(size=(normal.ROWS, width)).astype(np.float32) for _ in range(2))
    A = np.zeros((width, width), np.float32)
    normal.add_outer(left, rows, n, A)
    lower = np.tri(n, dtype=bool)
    np.testing.assert_allclose(A[:n, :n][lower], (left.T @ rows)[:n, :n][lower], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("filled", [0, 3, 8])
@pytest.mark.parametrize("entries", [0, 2, 5, 20])
def test_gather(filled, entries):
    """Rows that are filled stay, free ones take scaled vectors and a constant, and what remains is 0."""
    rng = np.random.default_rng(entries)
    V = rng.normal(size=(9, 3)).astype(np.float32)
    index = rng.integers(0, 9, entries + 4).astype(np.int32)
    rows = np.full((normal.ROWS, 8), 7, np.float32)
    rows[:, 4:] = 0
    end = normal.gather(filled, index, 4, 4 + entries, V, np.float32(2), np.float32(5), rows)
    assert end == min(filled + entries, normal.ROWS)
    assert (rows[:filled, :4] == 7).all()
    np.testing.assert_array_equal(rows[filled:end, :3], 2 * V[index[4 : 4 + end - filled]])
    assert (rows[filled:end, 3] == 5).all()
    assert not rows[end:].any()
    assert not rows[:, 4:].any()
