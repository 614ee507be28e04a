"""SQL-Rank beyond the contract: its objective, its queues, its two solvers, its fold-in, and published figures."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import corank as cr
from corank.evaluation.evaluate import validation_ndcg
from reference import listwise_objective, plackett_luce_loss
from toys import play_counts


def ratings(users=40, items=25, levels=5, seed=0):
    """Ratings of rank 3; with levels = None no two of a user are alike, so that there is one queue only."""
    rng = np.random.default_rng(seed)
    taste = rng.normal(size=(users, 3)) @ rng.normal(size=(items, 3)).T + 0.3 * rng.normal(size=(users, items))
    user, item = np.nonzero(rng.random((users, items)) < 0.5)
    value = taste[user, item]
    return cr.from_arrays(user=user, item=item, value=value if levels is None else np.round(value).clip(-2, 2) + 3)


def objective(model, data, top=None):
    """For data without ties."""
    rows = data.csr()
    lists = [rows.index[a:b] for a, b in itertools.pairwise(rows.indptr)]
    orders = [np.argsort(-rows.value[a:b]).tolist() for a, b in itertools.pairwise(rows.indptr)]

    def loss(x, u):
        return plackett_luce_loss(x, orders[u], top)

    return lambda U, V: listwise_objective(U, V, lists, loss, model.reg_)


@pytest.fixture(scope="module")
def split():
    return cr.leave_last_out(cr.synthetic.realistic(users=600, items=300, rows=20_000, seed=3).data)


# ---- objective ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["newton", "authors"])
@pytest.mark.parametrize("top", [None, 4])
def test_objective_is_the_likelihood_of_the_lists(solver, top):
    data = ratings(levels=None)
    model = cr.SQLRank(dim=4, epochs=6, reg=0.5, requeue=False, solver=solver, top_k=top).fit(data)
    expected = objective(model, data, top)(model.user_factors_, model.item_factors_)
    assert model.history_[-1]["objective"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("options", [{"reg": 0.1}, {"reg": 2.0}, {"reg": 0.5, "top_k": 3}, {"feedback": "implicit"}])
def test_objective_never_rises_over_lists_that_stay(options):
    model = cr.SQLRank(dim=5, epochs=40, requeue=False, **options).fit(ratings())
    values = [entry["objective"] for entry in model.history_]
    assert all(b <= a * (1 + 2e-8) for a, b in itertools.pairwise(values))
    assert values[-1] < values[0]


def test_newton_ends_where_nothing_is_left_to_gain():
    """The gradient of the whole objective, by differences along random ways, is nearly nothing beside the start's."""
    data = ratings(levels=None)
    slopes = []
    for epochs in (1, 80):
        model = cr.SQLRank(dim=3, reg=0.5, epochs=epochs, requeue=False).fit(data)
        U, V, f = model.user_factors_.astype(float), model.item_factors_.astype(float), objective(model, data)
        rng = np.random.default_rng(0)
        ways = [(rng.normal(size=U.shape), rng.normal(size=V.shape)) for _ in range(5)]
        slopes.append([(f(U + 1e-4 * a, V + 1e-4 * b) - f(U - 1e-4 * a, V - 1e-4 * b)) / 2e-4 for a, b in ways])
    assert np.abs(slopes[1]).max() < 0.02 * np.abs(slopes[0]).max()


def test_newton_needs_fewer_epochs_than_the_authors():
    newton, authors = (
        cr.SQLRank(dim=4, reg=0.5, epochs=15, requeue=False, solver=solver).fit(ratings()).history_[-1]["objective"]
        for solver in ("newton", "authors")
    )
    assert newton < authors


def test_authors_schedule_is_two_gradient_steps_that_shrink():
    """One epoch from a known start, with the gradient by differences."""
    data = ratings(users=6, items=7, levels=None)
    shape = {"dim": 2, "reg": 4.0, "requeue": False, "solver": "authors"}
    start = cr.SQLRank(lr=1e-9, epochs=1, **shape).fit(data)  # does not move: shows the start
    after = cr.SQLRank(lr=0.2, epochs=1, **shape).fit(data)
    U, V, f = start.user_factors_.astype(float), start.item_factors_.astype(float), objective(start, data)

    def gradient(g, X):
        out = np.zeros(X.size)
        for i in range(X.size):
            move = np.zeros(X.size)
            move[i] = 1e-5
            out[i] = (g(X + move.reshape(X.shape)) - g(X - move.reshape(X.shape))) / 2e-5
        return out.reshape(X.shape)

    U = U - 0.2 * gradient(lambda X: f(X, V), U)
    np.testing.assert_allclose(after.user_factors_, U, atol=1e-4)
    V = V - 0.2 * gradient(lambda X: f(U, X), V)
    np.testing.assert_allclose(after.item_factors_, V, atol=1e-4)
    second = cr.SQLRank(lr=0.2, epochs=2, **shape).fit(data)
    np.testing.assert_allclose(second.user_factors_, U - 0.18 * gradient(lambda X: f(X, V), U), atol=2e-4)


def test_a_step_that_is_too_long_is_a_sentence():
    with pytest.raises(cr.CorankError, match=r"lower lr \(now 1000\) or raise reg") as error:
        cr.SQLRank(solver="authors", lr=1000.0, epochs=60).fit(ratings())
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("reg", [0.0, 1e-6, 1e12])
@pytest.mark.parametrize("feedback", ["explicit", "implicit", "mixed"])
def test_any_regularisation_gives_finite_factors(reg, feedback):
    model = cr.SQLRank(dim=3, reg=reg, epochs=30, feedback=feedback).fit(ratings())
    assert np.isfinite(model.user_factors_).all()
    assert np.isfinite(model.item_factors_).all()


# ---- feedback and queues -----------------------------------------------------------------------------------------


def test_the_data_says_which_feedback_it_is():
    rated, liked = ratings(), cr.from_arrays(user=[1, 1, 2], item=[1, 2, 2])
    alike = cr.from_arrays(user=[1, 1, 2], item=[1, 2, 2], value=[3.0, 3.0, 4.0])  # nobody has two levels
    assert cr.SQLRank(dim=2, epochs=1).fit(rated).feedback_ == "explicit"
    assert cr.SQLRank(dim=2, epochs=1).fit(liked).feedback_ == "implicit"
    assert cr.SQLRank(dim=2, epochs=1).fit(alike).feedback_ == "implicit"
    assert cr.SQLRank(dim=2, epochs=1, feedback="implicit").fit(rated).feedback_ == "implicit"


@pytest.mark.parametrize("feedback", ["explicit", "mixed"])
def test_ratings_of_one_level_have_no_order(feedback):
    data = cr.from_arrays(user=[1, 1, 2, 2], item=[1, 2, 1, 2], value=[3.0] * 4)
    with pytest.raises(cr.CorankError, match=r"two items of different rating.*implicit"):
        cr.SQLRank(feedback=feedback).fit(data)


def test_rows_need_something_after_them():
    with pytest.raises(cr.CorankError, match="rho > 0"):
        cr.SQLRank(rho=0).fit(cr.from_arrays(user=[1, 1, 2], item=[1, 2, 2]))


def test_implicit_feedback_does_not_look_at_values():
    data = ratings()
    bare = cr.from_arrays(user=data.user, item=data.item)
    one, other = (cr.SQLRank(dim=4, epochs=3, feedback="implicit").fit(d) for d in (data, bare))
    np.testing.assert_array_equal(one.user_factors_, other.user_factors_)


def test_explicit_feedback_looks_at_the_order_only():
    data = ratings()
    other = cr.from_arrays(user=data.user, item=data.item, value=np.exp(data.value))
    one, two = (cr.SQLRank(dim=4, epochs=3).fit(d) for d in (data, other))
    np.testing.assert_array_equal(one.user_factors_, two.user_factors_)


def test_ratings_are_ranked_by_explicit_feedback():
    data = ratings(levels=None)
    model = cr.SQLRank(dim=4, reg=0.2).fit(data)
    scores = model.predict(data.users.ids[data.user], data.items.ids[data.item])
    rows = [np.flatnonzero(data.user == u) for u in range(len(data.users))]
    agree = [np.corrcoef(scores[mine].argsort().argsort(), data.value[mine].argsort().argsort())[0, 1] for mine in rows]
    assert np.mean(agree) > 0.8


def test_mixed_feedback_puts_ratings_in_order_and_above_the_rest():
    data = ratings(users=80, items=60)
    low = data.value < 3  # seldom: so the rest would come before them by chance
    explicit, mixed = (cr.SQLRank(dim=5, feedback=f, reg=0.3, rho=1).fit(data) for f in ("explicit", "mixed"))
    seen = np.zeros((80, 60), bool)
    seen[data.user, data.item] = True
    above = []
    for model in (explicit, mixed):
        scores = model._score(np.arange(80, dtype=np.int32))
        rest = np.array([np.median(scores[u, ~seen[u]]) for u in range(80)])
        own = scores[data.user, data.item]
        assert own[~low].mean() > own[low].mean()
        above.append((own > rest[data.user]).mean())
    assert above[1] > above[0] + 0.1


def test_new_queues_beat_one_queue(split):
    """The paper's ablation; one draw is learned by heart."""
    again, once = (cr.SQLRank(dim=32, feedback="implicit", requeue=r).fit(split.train) for r in (True, False))
    assert validation_ndcg(again, split.valid) > 1.1 * validation_ndcg(once, split.valid)


def test_a_cut_likelihood_is_another_one():
    data = ratings()
    full, cut, long = (cr.SQLRank(dim=4, epochs=3, top_k=k).fit(data).item_factors_ for k in (None, 2, 1000))
    np.testing.assert_array_equal(full, long)
    assert np.abs(full - cut).max() > 1e-3


@pytest.mark.parametrize("options", [{}, {"feedback": "implicit"}, {"feedback": "mixed", "solver": "authors"}])
def test_same_factors_for_any_number_of_threads(options):
    factors = []
    for count in (1, 2, 3):
        cr.set_threads(count)
        model = cr.SQLRank(dim=8, epochs=4, **options).fit(ratings(users=90))
        factors.append(np.concatenate([model.user_factors_, model.item_factors_]))
    assert all(np.array_equal(factors[0], f) for f in factors[1:])


# ---- stopping and strangers --------------------------------------------------------------------------------------


def test_patience_keeps_the_best_epoch(split):
    model = cr.SQLRank(dim=16, reg=0.05, epochs=60, patience=3, feedback="implicit", requeue=False)
    model.fit(split.train, valid=split.valid)
    found = [entry["ndcg@10"] for entry in model.history_]
    best = int(np.argmax(found))
    assert len(found) == best + 1 + 3 < 60
    assert validation_ndcg(model, split.valid) == pytest.approx(found[best], abs=1e-9)
    assert found[-1] < found[best]


def test_patience_needs_validation():
    with pytest.raises(cr.CorankError, match="patience=1 needs validation rows"):
        cr.SQLRank(dim=4, epochs=5, patience=1).fit(ratings())


@pytest.mark.parametrize("feedback", ["implicit", "explicit"])
def test_strangers_are_seen_as_known_users_are(split, feedback):
    """The history of a training user, folded in, ranks as the trained vector does."""
    data = split.train if feedback == "implicit" else ratings(users=300, items=80)
    model = cr.SQLRank(dim=16, feedback=feedback).fit(data)
    rows = data.csr()
    trained = model._score(np.arange(rows.rows, dtype=np.int32))
    long = np.diff(rows.indptr) > 5
    pairs = zip(model._score_histories(rows)[long], trained[long], strict=True)
    assert np.median([np.corrcoef(a, b)[0, 1] for a, b in pairs]) > 0.95


def test_who_rated_everything_alike_is_read_as_rows():
    """Ratings of a colour: whoever names three items of it, without saying which is best, wants more of it."""
    rng = np.random.default_rng(0)
    user, item = np.nonzero(rng.random((60, 20)) < 0.7)
    data = cr.from_arrays(
        user=user, item=item, value=np.where(user % 2 == item % 2, 5, 1) - (rng.random(user.size) < 0.5)
    )
    model = cr.SQLRank(dim=8).fit(data)
    assert model.feedback_ == "explicit"
    ranking = model.recommend(histories=[{0: 4.0, 2: 4.0, 4: 4.0}, [1, 3, 5]], k=5)
    assert (ranking.items % 2 == [[0], [1]]).all()


@pytest.mark.parametrize("kind", [cr.SQLRank, cr.ListMF])
def test_a_user_of_one_level_is_answered_as_a_stranger_is(kind):
    data = ratings()
    more = cr.from_arrays(
        user=np.append(data.user, [99, 99]), item=np.append(data.item, [0, 1]), value=np.append(data.value, [3, 3])
    )
    model = kind(dim=3).fit(more)
    last = len(model.users_) - 1
    scores = model._score(np.array([last], np.int32))
    assert np.ptp(scores) > 1e-3
    np.testing.assert_allclose(scores, model._score_histories(more.csr().take([last])), rtol=1e-4, atol=1e-6)


# ---- published figures -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_implicit_table_of_the_dissertation(shared_data):
    """ML-1M, 50 rows a user, any rating a positive: published .737 .672 .618, without queuing .628 .584 .550."""
    split = cr.fixed_per_user(cr.datasets.load("ml-1m", root=shared_data), train=50)
    names = ["precision@1", "precision@5", "precision@10"]
    reports = [
        cr.evaluate(cr.SQLRank(feedback="implicit", requeue=requeue).fit(split.train), split, names, bootstrap=0)
        for requeue in (True, False)
    ]
    assert all(reports[0][name] > goal for name, goal in zip(names, (0.738, 0.673, 0.618), strict=True))
    assert all(reports[1][name] < reports[0][name] - 0.1 for name in names)


@pytest.mark.slow
def test_explicit_table_of_the_dissertation(shared_data):
    """ML-1M, 50 ratings a user: published NDCG@10 .751 of rated items, precision of unseen ones .507 / .437 / .402."""
    split = cr.fixed_per_user(cr.datasets.load("ml-1m", root=shared_data), train=50)
    explicit, mixed = (cr.SQLRank(feedback=f).fit(split.train) for f in ("explicit", "mixed"))
    for model in (explicit, mixed):
        assert cr.evaluate(model, split, ["ndcg@10"], protocol="rated", bootstrap=0)["ndcg@10"] > 0.751
    assert cr.evaluate(mixed, split, ["precision@1"], relevant=4, bootstrap=0)["precision@1"] > 0.507


def test_auto_orders_ratings_and_not_counts():
    """Counts say how often, not how good: by default their rows are implicit feedback."""
    plays = play_counts(users=30, items=40, rows=300)
    assert cr.SQLRank(dim=2, epochs=1).fit(plays).feedback_ == "implicit"
    stars = cr.from_arrays(user=[0, 0, 1, 1], item=[0, 1, 0, 1], value=[5, 3, 2, 4])
    assert cr.SQLRank(dim=2, epochs=1).fit(stars).feedback_ == "explicit"
