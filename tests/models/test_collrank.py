"""CollRank beyond the contract: the objective of Primal-CR, reached another way, and what it costs in memory."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import corank as cr
from reference import primal_cr_objective, svm_primal


def ratings(seed=0, levels=5, users=25, items=18, share=0.6):
    rng = np.random.default_rng(seed)
    taste = rng.normal(size=(users, 3)) @ rng.normal(size=(3, items)) + 0.3 * rng.normal(size=(users, items))
    user, item = np.nonzero(rng.random((users, items)) < share)
    value = taste[user, item] if levels is None else np.digitize(taste[user, item], np.linspace(-2, 2, levels - 1))
    return cr.from_arrays(user=user, item=item, value=value)


def comparisons(seed=6):
    rng = np.random.default_rng(seed)
    quality = rng.normal(size=12)
    triples = [
        (u, *sorted(rng.choice(12, 2, replace=False), key=lambda i: -quality[i])) for u in range(20) for _ in range(25)
    ]
    return zip(*sorted(set(triples)), strict=True)


@pytest.mark.parametrize("levels", [2, 5, None])
def test_objective_is_the_sum_over_pairs(levels):
    data = ratings(levels=levels)
    model = cr.CollRank(dim=4, reg=1.0, epochs=3).fit(data)
    U = model.user_factors_.copy()
    for u in range(len(U)):  # who rated all alike is folded in afterwards, and is not part of the objective
        if np.unique(data.value[data.user == u]).size < 2:
            U[u] = 0
    expected = primal_cr_objective(U, model.item_factors_, data, 1.0)
    assert model.history_[-1]["objective"] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("options", [{}, {"passes": 3}, {"reg": 0.01}, {"reg": 30.0}, {"passes": 20}, {"dim": 1}])
def test_objective_never_rises(options):
    model = cr.CollRank(**{"dim": 5, "reg": 0.5, "epochs": 25, **options}).fit(ratings())
    values = [h["objective"] for h in model.history_]
    assert all(b <= a for a, b in itertools.pairwise(values)), values
    assert values[-1] < values[0]


def test_ends_where_primal_cr_ends():
    """The same objective by two methods: with a strong regulariser both find the one valley."""
    data = ratings(seed=1)
    ends = [m(dim=3, reg=8.0, epochs=60).fit(data).history_[-1]["objective"] for m in (cr.CollRank, cr.PrimalCR)]
    assert ends[0] == pytest.approx(ends[1], rel=2e-3)


def test_both_sides_are_at_a_minimum_after_many_epochs():
    """The gradient of the whole objective, by differences, is nearly nothing beside that at the start."""
    data = ratings(seed=2, users=8, items=7)
    model = cr.CollRank(dim=2, reg=4.0, epochs=200).fit(data)
    U, V = model.user_factors_.astype(np.float64), model.item_factors_.astype(np.float64)
    rng = np.random.default_rng(0)
    here = primal_cr_objective(U, V, data, 4.0)
    for _ in range(20):
        A, B = rng.normal(size=U.shape), rng.normal(size=V.shape)
        up, down = (primal_cr_objective(U + s * A, V + s * B, data, 4.0) for s in (1e-4, -1e-4))
        assert abs(up - down) / 2e-4 < 2e-3 * here


def test_fold_in_is_the_minimum():
    data = ratings(seed=4)
    model = cr.CollRank(dim=3, reg=0.7).fit(data)
    rows = data.csr()
    folded = model._solve_users(rows).astype(np.float64)
    for u in range(rows.rows):
        mine = slice(rows.indptr[u], rows.indptr[u + 1])
        value, vectors = rows.value[mine], model.item_factors_[rows.index[mine]].astype(np.float64)
        better = [(a, b) for a in range(value.size) for b in range(value.size) if value[a] > value[b]]
        if better:
            X = np.array([vectors[a] - vectors[b] for a, b in better])
            assert np.abs(svm_primal(folded[u], X, 0.7)[1]).max() < 0.02 * len(X)


def test_order_is_learned():
    split = cr.holdout(ratings(seed=5), test=0.2, valid=0.0)
    model = cr.CollRank(dim=3, reg=1.0).fit(split.train)
    assert cr.evaluate(model, split, ["pairwise_error"], protocol="rated")["pairwise_error"] < 0.25


def test_comparisons_teach_the_order():
    user, preferred, other = comparisons()
    data = cr.Dataset.from_comparisons(user, preferred, other)
    model = cr.CollRank(dim=2, reg=0.1).fit(data)
    assert (model.predict(user, preferred) > model.predict(user, other)).mean() > 0.95


def test_comparisons_and_ratings_of_the_same_pairs_give_the_same_objective():
    data = ratings(seed=7)
    triples = [
        (u, i, j)
        for u in range(len(data.users))
        for (i, a), (j, b) in itertools.permutations(
            zip(data.item[data.user == u], data.value[data.user == u], strict=True), 2
        )
        if a > b
    ]
    user, preferred, other = zip(*triples, strict=True)
    pairs = cr.Dataset.from_comparisons(user, preferred, other)
    assert (pairs.users, pairs.items) == (data.users, data.items)  # so that both start from the same factors
    ends = [cr.CollRank(dim=3, reg=8.0, epochs=60, seed=1).fit(d).history_[-1]["objective"] for d in (data, pairs)]
    assert ends[0] == pytest.approx(ends[1], rel=2e-3)


def test_same_factors_for_any_number_of_threads():
    factors = []
    for count in (1, 2, 3):
        cr.set_threads(count)
        model = cr.CollRank(dim=6, reg=1.0, epochs=4, passes=2).fit(ratings())
        factors.append(np.concatenate([model.user_factors_, model.item_factors_]))
    assert all(np.array_equal(factors[0], f) for f in factors[1:])


def test_too_many_pairs_are_a_sentence():
    with pytest.raises(cr.CorankError, match=r"[\d,]+ pairs, which take [\d,]+ bytes.*primal_cr"):
        cr.CollRank(max_pairs=100).fit(ratings())


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
        cr.CollRank().fit(data)


@pytest.mark.parametrize("bad", [{"reg": 0.0}, {"dim": 0}, {"passes": 0}, {"epochs": 0}])
def test_bad_values_are_sentences(bad):
    with pytest.raises(cr.CorankError, match=next(iter(bad))):
        cr.CollRank(**bad).fit(ratings())


@pytest.mark.parametrize("reg", [1e-6, 1e12])
def test_extreme_regularisation_gives_finite_factors(reg):
    model = cr.CollRank(dim=3, reg=reg, epochs=10).fit(ratings())
    assert np.isfinite(model.user_factors_).all()
    assert np.isfinite(model.item_factors_).all()


def test_who_rated_everything_alike_is_answered_too():
    data = ratings(seed=8)
    more = cr.from_arrays(
        user=np.append(data.user, [99, 99]), item=np.append(data.item, [0, 1]), value=np.append(data.value, [3, 3])
    )
    model = cr.CollRank(dim=3, reg=1.0).fit(more)
    assert model.user_factors_[-1].any()
    scores = model._score(np.array([len(model.users_) - 1], np.int32))
    np.testing.assert_allclose(scores, model._score_histories(more.csr().take([len(model.users_) - 1])), rtol=1e-4)


def test_beginning_of_the_published_curve(shared_data):
    """MovieLens-1M, 200 ratings a user, rank 100, reg 5000: two epochs of Primal-CR end at 17.95 million."""
    split = cr.datasets.load_split("ml-1m-wu-200", root=shared_data)
    model = cr.CollRank(dim=100, reg=5000.0, epochs=4).fit(split.train)
    assert model.history_[-1]["objective"] < 17_750_000
