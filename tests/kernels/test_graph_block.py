"""The parts of the half-step of a side that a graph ties together, beside dense matrices."""

from __future__ import annotations

import numpy as np
import pytest

import corank as cr
from corank.kernels import graph_block as kernels
from corank.kernels.normal import rounded, solve
from corank.kernels.threads import run, set_threads
from corank.models._laplacian import Iterated, Laplacian, Powers, sums


def random_graph(n=14, seed=0, weighted=True):
    """A symmetric adjacency, dense; the last node has no neighbours."""
    rng = np.random.default_rng(seed)
    A = np.triu(rng.random((n, n)) < 0.3, 1) * (rng.uniform(0.5, 2, (n, n)) if weighted else 1.0)
    A[-1] = A[:, -1] = 0
    return A + A.T


def laplacian(A):
    return np.diag(A.sum(1)) - A


def normal(shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.fixture(autouse=True)
def same_threads():
    yield
    set_threads(None)


@pytest.mark.parametrize("width", [1, 5, 8, 17])
def test_laplacian_of_a_graph(width):
    A, X = random_graph(), normal((14, width))
    lap, out = Laplacian(cr.from_scipy(A), 14), np.ones((14, width), np.float32)
    lap.add(0.7, X, width, out)
    np.testing.assert_allclose(out, 1 + 0.7 * laplacian(A) @ X, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(lap.energy(X), np.trace(X.T @ laplacian(A) @ X), rtol=1e-5)
    np.testing.assert_allclose(lap.degree, A.sum(1), rtol=1e-6)


def test_only_the_first_columns_are_tied():
    A, X = random_graph(), normal((14, 6))
    out = np.zeros((14, 6), np.float32)
    Laplacian(cr.from_scipy(A), 14).add(1.0, X, 4, out)
    np.testing.assert_allclose(out[:, :4], laplacian(A) @ X[:, :4], rtol=1e-4, atol=1e-4)
    assert not out[:, 4:].any()


@pytest.mark.parametrize("rows", [3, 9, 13])
def test_nodes_without_rows_are_at_their_best_place(rows):
    """Eliminated = kept: minimising over the other nodes' vectors gives the Schur complement and its energy."""
    A = random_graph(seed=3)
    A[rows:, rows:] = 0  # such nodes are tied to rows only
    full, X = laplacian(A), normal((rows, 4))
    P = np.linalg.lstsq(full[rows:, rows:], -full[rows:, :rows] @ X, rcond=None)[0]
    kept = np.vstack([X, P])
    lap, out = Laplacian(cr.from_scipy(A), rows), np.zeros((rows, 4), np.float32)
    lap.add(1.0, X, 4, out)
    np.testing.assert_allclose(out, (full @ kept)[:rows], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(lap.energy(X), np.trace(kept.T @ full @ kept), rtol=1e-5)


@pytest.mark.parametrize("weights", [(1.0,), (1.0, 0.3), (1.0, 0.0, 0.05), (1.0, 0.3, 0.1, 0.01, 0.002, 0.0001)])
def test_powers_that_are_never_written_down(weights):
    A, X = random_graph(seed=4), normal((14, 5))
    total = sum(a * np.linalg.matrix_power(A, k + 1) for k, a in enumerate(weights))
    lap, out = Powers(cr.from_scipy(A), weights), np.zeros((14, 5), np.float32)
    lap.add(2.0, X, 5, out)
    np.testing.assert_allclose(out, 2 * laplacian(total) @ X, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(lap.energy(X), np.trace(X.T @ laplacian(total) @ X), rtol=1e-5)
    np.testing.assert_allclose(lap.degree, total.sum(1), rtol=1e-5)


@pytest.mark.parametrize("order", [2, 3, 4, 5])
def test_smoothness_of_higher_order(order):
    A, X = random_graph(seed=9), normal((14, 5))
    L = laplacian(A)
    D = np.diag(np.where(A.sum(1) > 0, 1 / np.maximum(A.sum(1), 1e-9), 0))
    whole = L @ np.linalg.matrix_power(D @ L, order - 1)
    lap, out = Iterated(Laplacian(cr.from_scipy(A), 14), order), np.zeros((14, 6), np.float32)
    lap.add(0.5, np.hstack([X, X[:, :1]]), 5, out)
    np.testing.assert_allclose(out[:, :5], 0.5 * whole @ X, rtol=1e-3, atol=1e-3)
    assert not out[:, 5].any()
    np.testing.assert_allclose(lap.energy(X), np.trace(X.T @ whole @ X), rtol=1e-4)


def test_vectors_that_are_nearly_equal_keep_their_energy():
    """Sums of large vectors would cancel: the differences here are a ten-thousandth of the vectors."""
    A = random_graph(seed=5)
    X = 1 + 1e-4 * normal((14, 3))
    exact = X.astype(np.float64)
    for lap in (Laplacian(cr.from_scipy(A), 14), Powers(cr.from_scipy(A), (1.0,))):
        np.testing.assert_allclose(lap.energy(X), np.trace(exact.T @ laplacian(A) @ exact), rtol=1e-3)


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 33])
def test_packed_factors_solve_their_rows(size):
    n = 5
    L, Z = np.empty((n, size * (size + 1) // 2), np.float32), np.empty((n, size), np.float32)
    R, product = normal((n, size), 7), np.empty(n)
    M = []
    for r in range(n):
        B = normal((size + 3, size), 10 + r)
        M.append(B.T @ B + np.eye(size, dtype=np.float32))
        A = np.zeros((rounded(size), rounded(size)), np.float32)
        A[:size, :size] = M[r]
        solve(A, size, np.empty(size, np.float32), np.zeros(rounded(size), np.float32))
        kernels.pack(A, size, L[r])
    run(kernels.solve_rows, n, L, R, Z, product)
    for r in range(n):
        np.testing.assert_allclose(Z[r], np.linalg.solve(M[r].astype(float), R[r]), rtol=2e-3, atol=2e-4)
        np.testing.assert_allclose(product[r], R[r].astype(float) @ Z[r], rtol=1e-5)


def test_a_coordinate_that_is_held_at_zero_stays_there():
    A = np.zeros((8, 8), np.float32)
    A[0, 0], A[1, 1], A[1, 0] = 2, np.inf, 3
    solve(A, 2, np.empty(2, np.float32), np.zeros(8, np.float32))
    L, Z = np.empty((1, 3), np.float32), np.empty((1, 2), np.float32)
    kernels.pack(A, 2, L[0])
    run(kernels.solve_rows, 1, L, np.array([[4, 5]], np.float32), Z, np.empty(1))
    np.testing.assert_allclose(Z, [[2, 0]], rtol=1e-6)


@pytest.mark.parametrize("count", [2, 3])
def test_threads_change_no_bit(count):
    A = random_graph(60, seed=6)
    A[40:, 40:] = 0
    X = normal((60, 9))
    answers = []
    for threads in (1, count):
        set_threads(threads)
        out = np.zeros((40, 9), np.float32)
        lap, powers = Laplacian(cr.from_scipy(A), 40), Powers(cr.from_scipy(A[:40, :40]), (1.0, 0.1))
        lap.add(1.0, X[:40], 9, out)
        powers.add(1.0, X[:40], 9, out)
        answers.append((out, lap.energy(X[:40]), powers.energy(X[:40])))
    np.testing.assert_array_equal(answers[0][0], answers[1][0])
    assert answers[0][1:] == answers[1][1:]


@pytest.mark.parametrize("width", [None, 4])
def test_product_of_a_sparse_matrix_and_vectors(width):
    matrix, X = np.random.default_rng(8).integers(0, 3, (7, 5)).astype(np.float32), normal((5, 6))
    np.testing.assert_allclose(sums(cr.from_scipy(matrix), X, width), matrix @ X[:, :width], rtol=1e-5, atol=1e-5)
