"""Sequential BPR equals its twin, goes along the gradient, and draws what it says."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import reference
from corank.kernels import sequential_bpr as kernels
from corank.kernels.random import seek
from corank.kernels.sgd import random_absent
from corank.kernels.threads import run, set_threads

USERS, ITEMS, D = 9, 20, 5


def some_samples(n=60, c=2, seed=0, users=USERS, items=ITEMS):
    """user, last, next, negatives: with repeated rows, an item after itself, and samples without a negative."""
    rng = np.random.default_rng(seed)
    user, last, following = (rng.integers(0, of, n).astype(np.int32) for of in (users, items, items))
    following[::7] = last[::7]
    # Never the user's own items, of which last and next are two.
    negative = ((np.maximum(last, following)[:, None] + rng.integers(1, 4, (n, c))) % items).astype(np.int32)
    own = (negative == last[:, None]) | (negative == following[:, None])
    negative[own] = -1
    return user, last, following, negative


def listed(samples):
    """(user, last, next, negative) one by one, in the order of the steps."""
    for u, i, j, ks in zip(*(column.tolist() for column in samples), strict=True):
        yield from ((u, i, j, k) for k in ks if k >= 0)


def chain_tables(width, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=s).astype(np.float32) for s in ((USERS, width), (ITEMS, D), (ITEMS, width + D))]


def translation_tables(seed=0):
    rng = np.random.default_rng(seed)
    G, t, T, bias = (rng.normal(size=s).astype(np.float32) for s in ((ITEMS, D), D, (USERS, D), ITEMS))
    G /= np.linalg.norm(G, axis=1, keepdims=True) * rng.uniform(1, 2, (ITEMS, 1)).astype(np.float32)
    return [G.astype(np.float32), 0.1 * t, 0.1 * T, 0.1 * bias]


def float32(*numbers):
    return [np.float32(x) for x in numbers]


@pytest.mark.parametrize("width", [0, 3])
def test_chains_equal_the_twin(width):
    samples, tables = some_samples(), chain_tables(width)
    slow = [array.astype(np.float64) for array in tables]
    kernels.chain_steps(*samples, *float32(0.1, 0.03, 0.01), *tables)
    reference.chain_steps(listed(samples), 0.1, 0.03, 0.01, *slow)
    for fast, expected in zip(tables, slow, strict=True):
        np.testing.assert_allclose(fast, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("l1", [False, True])
def test_translations_equal_the_twin(l1):
    samples, tables = some_samples(seed=1), translation_tables()
    slow = [array.astype(np.float64) for array in tables]
    kernels.translation_steps(*samples, *float32(0.1, 0.03, 0.01), l1, *tables)
    reference.translation_steps(listed(samples), 0.1, 0.03, 0.01, l1, *slow)
    for fast, expected in zip(tables, slow, strict=True):
        np.testing.assert_allclose(fast, expected, rtol=1e-3, atol=1e-4)
    norms = np.linalg.norm(tables[0], axis=1)
    assert norms.max() <= 1 + 1e-6
    assert (norms > 1 - 1e-6).any()  # the ball was reached, so the twin has put rows back


def numeric(loss, tables):
    """Central differences of a loss in all numbers of some tables."""
    out = []
    for table in tables:
        slope = np.zeros_like(table)
        for at in np.ndindex(table.shape):
            kept, values = table[at], []
            for step in (1e-5, -1e-5):
                table[at] = kept + step
                values.append(loss())
            table[at] = kept
            slope[at] = (values[0] - values[1]) / 2e-5
        out.append(slope)
    return out


def one_sample(user, last, following, negative):
    return *(np.array([x], np.int32) for x in (user, last, following)), np.array([[negative]], np.int32)


@pytest.mark.parametrize("width", [0, 3])
def test_a_step_of_a_chain_goes_along_the_gradient(width):
    tables, lr, reg_user, reg = chain_tables(width, 2), 1e-3, 0.7, 0.3
    u, i, j, k = 4, 7, 2, 11
    at = [table.astype(np.float64) for table in tables]

    def loss():
        U, P, V = at
        squares = reg_user * U[u] @ U[u] + reg * (P[i] @ P[i] + V[j] @ V[j] + V[k] @ V[k])
        return reference.bpr_loss_of(reference.chain_score, (u, i, j, k), *at) + squares / 2

    slopes = numeric(loss, at)
    kernels.chain_steps(*one_sample(u, i, j, k), *float32(lr, reg_user, reg), *tables)
    for before, after, slope in zip(at, tables, slopes, strict=True):
        np.testing.assert_allclose((before - after) / lr, slope, atol=2e-3)


@pytest.mark.parametrize("l1", [False, True])
@pytest.mark.parametrize("following", [2, 7])  # 7: an item after itself
def test_a_step_of_a_translation_goes_along_the_gradient(l1, following):
    tables, lr, reg, reg_bias = translation_tables(3), 1e-3, 0.7, 0.3
    tables[0] *= np.float32(0.5)  # inside the ball, where nothing is put back
    u, i, j, k = 4, 7, following, 11
    at = [table.astype(np.float64) for table in tables]

    def loss():
        _, t, T, bias = at
        squares = reg * (t @ t + T[u] @ T[u]) + reg_bias * (bias[j] ** 2 + bias[k] ** 2)
        score = lambda u, i, j, *rest: reference.translation_score(u, i, j, l1, *rest)  # noqa: E731
        return reference.bpr_loss_of(score, (u, i, j, k), *at) + squares / 2

    slopes = numeric(loss, at)
    kernels.translation_steps(*one_sample(u, i, j, k), *float32(lr, reg, reg_bias), l1, *tables)
    for before, after, slope in zip(at, tables, slopes, strict=True):
        np.testing.assert_allclose((before - after) / lr, slope, atol=3e-3)


def test_margins_are_differences_of_scores():
    samples, tables, items = some_samples(seed=4), chain_tables(3), translation_tables()
    for l1 in (None, False, True):
        out = np.empty(samples[3].shape, np.float32)
        if l1 is None:
            kernels.chain_margins(0, len(out), *samples, *tables, out)
            score, rest = reference.chain_score, tables
        else:
            kernels.translation_margins(0, len(out), *samples, l1, *items, out)
            score, rest = reference.translation_score, [l1, *items]
        np.testing.assert_array_equal(np.isnan(out), samples[3] < 0)
        expected = [score(u, i, j, *rest) - score(u, i, k, *rest) for u, i, j, k in listed(samples)]
        np.testing.assert_allclose(out[samples[3] >= 0], expected, rtol=1e-4, atol=1e-5)


def test_l1_distances():
    rng = np.random.default_rng(0)
    X, G = rng.normal(size=(4, D)).astype(np.float32), rng.normal(size=(ITEMS, D)).astype(np.float32)
    out = np.empty((4, ITEMS), np.float32)
    kernels.l1_distances(0, 4, X, G, out)
    np.testing.assert_allclose(out, np.abs(X[:, None] - G).sum(axis=2), rtol=1e-5)


def rows_of(lists):
    """indptr and index of sets of items."""
    index = np.concatenate([np.sort(x) for x in lists]).astype(np.int32)
    return np.cumsum([0, *map(len, lists)]).astype(np.int64), index


def test_negatives_are_free_uniform_and_the_same_on_any_threads():
    own = [np.array([0, 3, 19]), np.arange(ITEMS), np.arange(ITEMS - 1)]
    user = np.repeat(np.arange(3, dtype=np.int32), [3000, 5, 5])
    drawn = []
    try:
        for count in (1, 2, 3):
            set_threads(count)
            out = np.empty((user.size, 4), np.int32)
            run(kernels.negatives, user.size, 7, user, *rows_of(own), ITEMS, out)
            drawn.append(out)
    finally:
        set_threads(None)
    np.testing.assert_array_equal(drawn[0], drawn[1])
    np.testing.assert_array_equal(drawn[0], drawn[2])
    counts = np.bincount(drawn[0][user == 0].ravel(), minlength=ITEMS)
    assert counts[own[0]].sum() == 0
    expected = 12_000 / (ITEMS - 3)
    assert np.abs(np.delete(counts, own[0]) - expected).max() < 5 * np.sqrt(expected)
    assert (drawn[0][user == 1] == -1).all()  # who has everything
    assert (drawn[0][user == 2] == ITEMS - 1).all()


def fold_in(lists, tables, passes=20, negatives=2, lr=0.1, reg=0.05):
    sequence = np.concatenate([np.asarray(x, np.int32) for x in lists])
    indptr = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    X = np.full((len(lists), 3), np.nan, np.float32)
    sets = rows_of([np.unique(x) for x in lists])
    kernels.chain_fold_in(0, len(X), indptr, sequence, *sets, passes, negatives, *float32(lr, reg), *tables[1:], X)
    return X


def test_fold_in_equals_the_twin():
    """The steps of training with everything fixed but the user, whose learning rate falls to 0."""
    history, tables, passes = [3, 8, 8, 5, 1], chain_tables(3, 5), 20
    found = fold_in([history], tables)[0]
    x, own = np.zeros((1, 3)), np.unique(history).astype(np.int32)
    P, V = (table.astype(np.float64) for table in tables[1:])
    state = np.empty(1, np.uint64)
    seek(state, 0, 0)
    for done in range(passes):
        for i, j in itertools.pairwise(history):
            for _ in range(2):
                k = random_absent(state, own, 0, own.size, ITEMS)
                reference.chain_steps([(0, i, j, k)], 0.1 * (passes - done) / passes, 0.05, 0.0, x, P.copy(), V.copy())
    np.testing.assert_allclose(found, x[0], rtol=1e-3, atol=1e-4)


def test_fold_in_of_nothing_one_item_and_everything_is_zero_and_company_does_not_matter():
    tables, history = chain_tables(3, 6), [4, 9, 2, 4]
    together = fold_in([[], [5], list(range(ITEMS)), history, [1, 2]], tables)
    assert not together[:3].any()
    assert together[3].any()
    np.testing.assert_array_equal(together[3], fold_in([history], tables)[0])
