from __future__ import annotations

import numpy as np
import pytest

from corank.kernels import inverse


def positive_definite(n, dtype, seed=0):
    """The matrix in double precision, and its lower triangle with other numbers above it."""
    X = np.random.default_rng(seed).standard_normal((2 * n + 3, n))
    whole = X.T @ X + np.eye(n)
    lower = np.tril(whole).astype(dtype)
    lower[np.triu_indices(n, 1)] = 7
    return whole, lower


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "block"), [(1, 4), (3, 4), (4, 4), (7, 3), (50, 16), (64, 64), (65, 64)])
def test_blocks_give_the_inverse(monkeypatch, n, block, dtype):
    monkeypatch.setattr(inverse, "BLOCK", block)
    whole, lower = positive_definite(n, dtype)
    assert inverse.invert(lower)
    at = np.tril_indices(n)
    np.testing.assert_allclose(
        lower[at], np.linalg.inv(whole)[at], rtol=1e-3, atol=1e-5 if dtype == np.float32 else 1e-12
    )
    assert (lower[np.triu_indices(n, 1)] == 7).all()


def test_progress_grows_to_the_whole(monkeypatch):
    monkeypatch.setattr(inverse, "BLOCK", 8)
    heard = []
    inverse.invert(positive_definite(30, np.float64)[1], lambda done, of: heard.append(done / of))
    assert len(heard) == 3 * 4
    assert heard == sorted(heard)
    assert heard[0] > 0
    assert 0.9 < heard[-1] <= 1


def test_it_can_be_stopped_between_blocks(monkeypatch):
    monkeypatch.setattr(inverse, "BLOCK", 8)

    def stop(done, of):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        inverse.invert(positive_definite(30, np.float64)[1], stop)


@pytest.mark.parametrize("block", [1, 2, 64])
def test_a_matrix_that_is_not_positive_definite_has_none(monkeypatch, block):
    monkeypatch.setattr(inverse, "BLOCK", block)
    assert not inverse.invert(np.array([[1.0, 0.0], [2.0, 1.0]]))


def test_other_matrices_are_refused():
    for wrong in (np.eye(3, dtype=np.int64), np.ones((2, 3)), np.eye(4)[::2, ::2]):
        with pytest.raises(ValueError, match="square float32 or float64"):
            inverse.invert(wrong)
