"""Primal-CR beyond the contract: its objective, its two paths, its Newton steps, and the authors' figures."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import corank as cr
from corank.models._rated import by_item
from reference import hinge_list, primal_cr_objective


def ratings(seed=0, levels=5, users=25, items=18):
    rng = np.random.default_rng(seed)
    taste = rng.normal(size=(users, 3)) @ rng.normal(size=(3, items)) + 0.3 * rng.normal(size=(users, items))
    user, item = np.nonzero(rng.random((users, items)) < 0.6)
    value = taste[user, item] if levels is None else np.digitize(taste[user, item], np.linspace(-2, 2, levels - 1))
    return cr.from_arrays(user=user, item=item, value=value)


@pytest.mark.parametrize("levels", [2, 5, 10, None])
def test_objective_is_the_sum_over_pairs(levels):
    data = ratings(levels=levels)
    model = cr.PrimalCR(dim=4, reg=1.0, epochs=3).fit(data)
    U = model.user_factors_.copy()
    for u in range(len(U)):  # who rated all alike is folded in afterwards, and is not part of the objective
        if np.unique(data.value[data.user == u]).size < 2:
            U[u] = 0
    expected = primal_cr_objective(U, model.item_factors_, data, 1.0)
    assert model.history_[-1]["objective"] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    "options", [{}, {"pairwise": True}, {"loss": "logistic"}, {"reg_bias": 2.0}, {"steps": 1}, {"reg": 0.0}]
)
def test_objective_never_rises(options):
    model = cr.PrimalCR(**{"dim": 5, "reg": 0.5, "epochs": 25, **options}).fit(ratings())
    values = [h["objective"] for h in model.history_]
    rounding = 1e-8 * values[0]  # without regularisation it falls to 0, as a difference of sums of the first size
    assert all(b <= a * (1 + 1e-6) + rounding for a, b in itertools.pairwise(values))
    assert values[-1] < values[0]


def test_pairs_and_windows_walk_the_same_path():
    data = ratings()
    one, two = (cr.PrimalCR(dim=4, reg=2.0, epochs=5, pairwise=p).fit(data) for p in (False, True))
    for a, b in zip(one.history_, two.history_, strict=True):
        assert a["objective"] == pytest.approx(b["objective"], rel=1e-3)


def test_newton_step_equals_a_dense_solve():
    """With enough conjugate-gradient steps the user step is the minimum of the user's own quadratic model, at least."""
    data = ratings(seed=2)
    model = cr.PrimalCR(dim=3, reg=0.7, epochs=2).fit(data)
    rows = data.csr()
    lists, kind, _ = model._lists(rows)
    users = np.zeros((rows.rows, 3), np.float32)
    model._evaluate(lists, kind, lists.score)
    model.steps, model.tolerance = 60, 0.0
    model._user_steps(lists, kind, 1, users)
    V = model.item_factors_.astype(np.float64)
    for u in range(rows.rows):
        mine = slice(rows.indptr[u], rows.indptr[u + 1])
        X = V[rows.index[mine]]
        _, gradient, hessian = hinge_list(np.zeros(len(X)), rows.value[mine])
        if not gradient.any():
            continue
        step = -np.linalg.solve(X.T @ hessian @ X + 0.7 * np.eye(3), X.T @ gradient)
        along = users[u] / np.where(np.abs(step) > 1e-9, step, 1)  # the line search may have halved the step
        share = np.median(along)
        assert np.log2(share) == pytest.approx(round(np.log2(share)), abs=1e-2)
        np.testing.assert_allclose(users[u], share * step, rtol=1e-2, atol=1e-4)


def test_item_gradient_equals_differences():
    data = ratings(seed=3, users=8, items=6)
    model = cr.PrimalCR(dim=3, reg=0.5, epochs=1).fit(data)
    from corank.kernels.vectors import inner_products, weighted_sums

    rows = data.csr()
    lists, kind, _ = model._lists(rows)
    U, V = model.user_factors_, model.item_factors_
    inner_products(0, rows.rows, rows.indptr, rows.index, U, V, lists.score)
    model._evaluate(lists, kind, lists.score)
    out = np.empty_like(V)
    weighted_sums(0, len(V), *by_item(rows), lists.gradient, U, np.float32(0.5), V, out)
    for j, f in itertools.product(range(len(V)), range(3)):
        step = np.zeros(V.shape)
        step[j, f] = 1e-4
        up, down = (primal_cr_objective(U, V + sign * step, data, 0.5) for sign in (1, -1))
        assert out[j, f] == pytest.approx((up - down) / 2e-4, rel=1e-2, abs=1e-2)


def test_fold_in_is_the_minimum():
    """The folded-in vector cannot be improved: no nearby vector has a lower objective."""
    data = ratings(seed=4)
    model = cr.PrimalCR(dim=3, reg=0.7).fit(data)
    rows = data.csr()
    folded = model._solve_users(rows)
    rng = np.random.default_rng(0)
    for u in range(rows.rows):
        mine = slice(rows.indptr[u], rows.indptr[u + 1])
        X = model.item_factors_[rows.index[mine]].astype(np.float64)

        def value(w, X=X, mine=mine):
            return hinge_list(X @ w, rows.value[mine])[0] + 0.35 * w @ w

        best = value(folded[u].astype(np.float64))
        for _ in range(30):
            assert value(folded[u] + rng.normal(size=3) * 0.05) >= best - 1e-3


def test_order_is_learned():
    data = ratings(seed=5)
    split = cr.holdout(data, test=0.2, valid=0.0)
    model = cr.PrimalCR(dim=3, reg=1.0).fit(split.train)
    error = cr.evaluate(model, split, ["pairwise_error"], protocol="rated")["pairwise_error"]
    assert error < 0.25


def test_comparisons_teach_the_same_order():
    rng = np.random.default_rng(6)
    quality = rng.normal(size=12)
    triples = [
        (u, *sorted(rng.choice(12, 2, replace=False), key=lambda i: -quality[i])) for u in range(20) for _ in range(25)
    ]
    user, preferred, other = zip(*sorted(set(triples)), strict=True)
    data = cr.Dataset.from_comparisons(user, preferred, other)
    model = cr.PrimalCR(dim=2, reg=0.1).fit(data)
    agree = model.predict(user, preferred) > model.predict(user, other)
    assert agree.mean() > 0.95


@pytest.mark.parametrize(
    "data",
    [
        cr.from_arrays(user=[1, 1, 2, 2], item=[1, 2, 1, 2], value=[3.0, 3.0, 3.0, 3.0]),
        cr.from_arrays(user=[1, 2, 3], item=[1, 2, 3], value=[1.0, 2.0, 3.0]),
    ],
    ids=["one level", "one item a user"],
)
def test_nothing_to_compare_is_a_sentence(data):
    with pytest.raises(cr.CorankError, match="two items of different rating"):
        cr.PrimalCR().fit(data)


@pytest.mark.parametrize("bad", [{"reg": -1.0}, {"dim": 0}, {"loss": "hinge"}, {"tolerance": 2.0}, {"epochs": 0}])
def test_bad_values_are_sentences(bad):
    with pytest.raises(cr.CorankError, match=next(iter(bad))):
        cr.PrimalCR(**bad).fit(ratings())


def test_some_users_rate_all_alike():
    """They get an answer from what they touched, and do not disturb the others."""
    data = ratings(seed=7)
    flat = cr.from_arrays(
        user=np.append(data.user, [90, 90, 91]),
        item=np.append(data.item, [1, 2, 3]),
        value=np.append(data.value, [2, 2, 2]),
    )
    with_flat, without = cr.PrimalCR(dim=3, reg=1.0).fit(flat), cr.PrimalCR(dim=3, reg=1.0).fit(data)
    assert np.isfinite(with_flat.user_factors_).all()
    assert np.abs(with_flat.user_factors_[-2:]).max() > 0
    assert with_flat.history_[-1]["objective"] == pytest.approx(without.history_[-1]["objective"], rel=0.05)


@pytest.mark.slow
def test_authors_figures(shared_data):
    """Their split, rank and lambda: 20 outer iterations end at 17,638,127, error .1801 and NDCG@10 .799 (their log)."""
    split = cr.datasets.load_split("ml-1m-wu-200", root=shared_data)
    model = cr.PrimalCR(dim=100, reg=5000.0, epochs=20).fit(split.train)
    assert model.history_[-1]["objective"] == pytest.approx(17_638_127, rel=1e-4)
    report = cr.evaluate(model, split, ["pairwise_error_authors", "ndcg@10"], protocol="rated", bootstrap=0)
    assert report["pairwise_error_authors"] == pytest.approx(0.1801, abs=0.0005)
    assert report["ndcg@10"] == pytest.approx(0.799, abs=0.001)
