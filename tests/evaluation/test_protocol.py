"""Protocols: which candidates a test item meets, and who is asked for their scores."""

from __future__ import annotations

import dataclasses
import importlib
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest

import corank as cr
from corank.answering import ranking
from corank.data import CSR
from corank.data.values import declared
from corank.evaluation.protocol import Protocol, draw_negatives
from corank.evaluation.seeds import pooled
from toys import Ordered, Table, brute, items_of, play_counts, some_data


@pytest.fixture(scope="module")
def data() -> cr.Dataset:
    return some_data()


@pytest.fixture(scope="module")
def split(data: cr.Dataset) -> cr.Split:
    return cr.holdout(data, test=0.25, valid=0.1, by="user", seed=1)


# ---- protocols ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threshold", [None, 4])
def test_full_ranking_equals_sorting_the_whole_catalogue(split: cr.Split, threshold: float | None) -> None:
    model = Table().fit(split.train)
    wanted = ("ndcg@10", "recall@10", "precision@5", "map@10", "mrr@10", "hit@3", "auc@", "hlu@10")
    report = cr.evaluate(model, split, [w.rstrip("@") for w in wanted], relevant=threshold)

    def candidates(user: int, test: dict[int, float]) -> list[int]:
        known = {**items_of(split.train, user), **items_of(split.valid, user)}
        return [i for i in range(len(split.train.items)) if i not in known or i in test]

    for name in wanted:
        word, _, k = name.partition("@")
        expected = brute(model.table_, split, candidates, word, int(k or 1), threshold or -np.inf)
        assert report.users.tolist() == split.train.users.ids[list(expected)].tolist()
        values = report.per_user[name.rstrip("@")]
        np.testing.assert_allclose(values, list(expected.values()), rtol=0, atol=1e-9, err_msg=name)
        assert report[name.rstrip("@")] == pytest.approx(np.nanmean(values))


def test_validation_knows_the_training_rows_only(split: cr.Split) -> None:
    report = cr.evaluate(Table(levels=1).fit(split.train), split, "recall@5", part="valid")
    for user, value in zip(np.unique(split.valid.user), report.per_user["recall@5"], strict=True):
        free = len(split.train.items) - len(items_of(split.train, int(user)))
        assert value == pytest.approx(5 / free)  # a constant scorer finds by chance among what is left


def test_a_test_item_stays_a_candidate_even_if_it_is_known() -> None:
    user, item = [0, 0, 0, 0, 1], [0, 1, 2, 0, 3]
    data = cr.from_arrays(user=user, item=item, time=range(5), duplicates="keep")
    split = cr.leave_last_out(data)
    model = Table().fit(split.train)
    model.table_ = np.array([[3, 9, 9, 4], [0, 0, 0, 0]], np.float32)
    # Item 0 is consumed again; 1 and 2 are known and gone, 3 is free and better.
    assert cr.evaluate(model, split, "mrr")["mrr"] == 0.5


def test_sampled_ranks_test_items_and_negatives_only(split: cr.Split) -> None:
    model = Table().fit(split.train)
    report = cr.evaluate(model, split, ["ndcg@10", "auc"], protocol="sampled", negatives=7, seed=3)
    rows = draw_negatives(report.protocol, split, np.unique(split.test.user))
    users = np.unique(split.test.user).tolist()
    negatives = {u: rows.index[a:b].tolist() for u, (a, b) in zip(users, pairwise(rows.indptr), strict=True)}
    for name in ("ndcg", "auc"):
        expected = brute(model.table_, split, lambda u, test: [*test, *negatives[u]], name, 10)
        values = report.per_user["ndcg@10" if name == "ndcg" else name]
        np.testing.assert_allclose(values, list(expected.values()), rtol=0, atol=1e-9)


@pytest.mark.parametrize("popular", [False, True])
@pytest.mark.parametrize("kind", ["holdout", "strong"])
def test_negatives_are_unknown_items_fixed_by_the_seed(data: cr.Dataset, kind: str, popular: bool) -> None:
    split = cr.holdout(data, by="user") if kind == "holdout" else cr.strong_generalization(data, users=0.2)
    users = np.unique(split.test.user)
    drawn = [draw_negatives(Protocol("sampled", 10, popular, seed), split, users) for seed in (0, 0, 1)]
    assert np.array_equal(drawn[0].index, drawn[1].index)
    assert not np.array_equal(drawn[0].index, drawn[2].index)
    for u, (a, b) in zip(users.tolist(), pairwise(drawn[0].indptr), strict=True):
        mine = drawn[0].index[a:b].tolist()
        parts = (split.train, split.valid, split.test, *([split.history] if split.history else []))
        taken = set().union(*(items_of(p, u) for p in parts))
        assert not set(mine) & taken
        assert len(set(mine)) == len(mine) == min(10, len(data.items) - len(taken))
    if popular:
        counts = np.bincount(split.train.item, minlength=len(data.items))
        plain = draw_negatives(Protocol("sampled", 10, False, 0), split, users)
        assert counts[drawn[0].index].mean() > counts[plain.index].mean()


def test_every_model_meets_the_same_negatives(split: cr.Split, monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("corank.evaluation.evaluate")
    seen: list[CSR] = []
    real = module.draw_negatives
    monkeypatch.setattr(module, "draw_negatives", lambda *a: seen.append(real(*a)) or seen[-1])
    for model in (Table().fit(split.train), Ordered().fit(split.train), cr.Popularity().fit(split.train)):
        cr.evaluate(model, split, protocol="sampled", bootstrap=0)
    assert len(seen) == 3
    assert all(np.array_equal(seen[0].index, other.index) for other in seen[1:])


def test_a_user_with_few_free_items_gets_them_all() -> None:
    user, item = np.repeat([0, 1], [5, 2]), [0, 1, 2, 3, 4, 5, 6]
    split = cr.leave_last_out(cr.from_arrays(user=user, item=item, time=range(7)))
    drawn = draw_negatives(Protocol("sampled", 100), split, np.array([0], np.int32))
    assert sorted(drawn.index.tolist()) == [5, 6]
    report = cr.evaluate(Table(levels=1).fit(split.train), split, "mrr", protocol="sampled")
    assert report["mrr"] == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)


def test_rated_ranks_the_test_items_by_prediction(split: cr.Split) -> None:
    @dataclass(kw_only=True, eq=False)
    class Predicting(Table):
        def _predict(self, users, items):
            return -self.table_[users, items].astype(np.float64)

    model = Predicting().fit(split.train)
    report = cr.evaluate(model, split, "ndcg@10", protocol="rated")
    expected = brute(-model.table_, split, lambda u, test: list(test), "ndcg", 10, gain="exponential")
    np.testing.assert_allclose(report.per_user["ndcg@10"], list(expected.values()), rtol=0, atol=1e-9)


def test_constant_scorer_is_chance_in_every_protocol(split: cr.Split) -> None:
    model = Table(levels=1).fit(split.train)
    for protocol in ("full", "sampled"):
        report = cr.evaluate(model, split, ["auc", "recall@4"], protocol=protocol, negatives=12)
        assert report["auc"] == 0.5
    sizes = np.bincount(split.test.user)
    expected = np.mean(4 / (12 + sizes[sizes > 0]))
    assert report["recall@4"] == pytest.approx(expected)  # each user has 12 free items here


# ---- who is asked what -------------------------------------------------------------------------------------------


def test_models_that_read_histories_get_the_newest_ones_in_order(data: cr.Dataset) -> None:
    split = cr.leave_last_out(data)
    for part in ("valid", "test"):
        model = Ordered().fit(split.train)
        cr.evaluate(model, split, part=part, bootstrap=0)
        known = split.known(part).sequences()
        users = np.unique(getattr(split, part).user)
        assert model.asked_ == [known.index[known.indptr[u] : known.indptr[u + 1]].tolist() for u in users]


@pytest.mark.parametrize("protocol", ["full", "sampled", "rated"])
def test_held_out_users_are_folded_in(data: cr.Dataset, protocol: str) -> None:
    split = cr.strong_generalization(data, users=0.2, target=0.3)
    assert split.history is not None
    model = Table().fit(split.train)
    model.table_[:] = np.nan  # must not be read: fit never saw these users
    report = cr.evaluate(model, split, "ndcg@10", protocol=protocol, negatives=9)
    scores = np.full((len(data.users), len(data.items)), np.nan)
    users = np.unique(split.test.user)
    scores[users] = model._score_histories(split.history.sequences().take(users))
    rows = draw_negatives(Protocol("sampled", 9), split, users)
    drawn = {u: rows.index[a:b].tolist() for u, (a, b) in zip(users.tolist(), pairwise(rows.indptr), strict=True)}

    def candidates(user: int, test: dict[int, float]) -> list[int]:
        if protocol != "full":
            return [*test, *(drawn[user] if protocol == "sampled" else [])]
        return [i for i in range(len(data.items)) if i not in items_of(split.history, user)]

    expected = brute(scores, split, candidates, "ndcg", 10, gain="exponential" if protocol == "rated" else "binary")
    np.testing.assert_allclose(report.per_user["ndcg@10"], list(expected.values()), rtol=0, atol=1e-9)


def test_blocks_and_threads_change_nothing(split: cr.Split, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Table(levels=9).fit(split.train)
    wanted = ["ndcg@10", "map", "mrr", "auc", "hit@5", "coverage@3", "novelty@5", "pairwise_error", "rmse"]
    base = cr.evaluate(model, split, wanted)
    sizes: list[int] = []
    score = model._score
    model._score = lambda users: sizes.append(users.size) or score(users)  # type: ignore[method-assign]
    monkeypatch.setattr(ranking, "BLOCK_BYTES", 1)
    cr.set_threads(3)
    try:
        small = cr.evaluate(model, split, wanted)
    finally:
        cr.set_threads(None)
    assert max(sizes) == 16 < base.users.size
    for name in wanted:
        np.testing.assert_array_equal(small.values[name], base.values[name])
    assert small.interval == base.interval or np.isnan(small.interval["coverage@3"][0])


# ---- gains -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "protocol", "expected"),
    [
        ("ratings", "full", "binary"),
        ("ratings", "sampled", "binary"),
        ("ratings", "rated", "exponential"),
        ("counts", "full", "binary"),
        ("counts", "rated", "binary"),
        ("none", "rated", "binary"),
    ],
)
def test_gains_are_graded_only_where_ratings_are_ordered(split: cr.Split, values, protocol, expected) -> None:
    split = cr.Split(*(dataclasses.replace(p, values=values) for p in (split.train, split.valid, split.test)), "s")
    model = Table().fit(split.train)
    report = cr.evaluate(model, split, "ndcg@10", protocol=protocol, bootstrap=0)
    assert report.protocol.gain == expected
    assert f", {expected} gains" in str(report).splitlines()[1]
    for gain in ("binary", "exponential"):
        again = cr.evaluate(model, split, "ndcg@10", protocol=protocol, gain=gain, bootstrap=0)
        assert (again["ndcg@10"] == report["ndcg@10"]) == (gain == expected)


def test_ndcg_of_play_counts_is_that_of_rows_without_values() -> None:
    """With gains of 2^plays, the song that each user plays most would decide alone."""
    plays = play_counts(users=80, items=120, rows=2400)
    split = cr.holdout(plays, by="user", seed=0)
    bare = cr.Split(*(declared(p, "none") for p in (split.train, split.valid, split.test)), split.name)
    model = cr.Popularity().fit(split.train)
    figure = cr.evaluate(model, split, "ndcg@10")
    assert figure["ndcg@10"] == cr.evaluate(model, bare, "ndcg@10")["ndcg@10"]
    assert abs(figure["ndcg@10"] - cr.evaluate(model, split, "ndcg@10", gain="exponential")["ndcg@10"]) > 0.02


def test_results_of_other_gains_are_never_compared(split: cr.Split) -> None:
    model = Table().fit(split.train)
    one, other = (cr.evaluate(model, split, "ndcg@10", gain=g, name=g) for g in ("binary", "exponential"))
    with pytest.raises(
        cr.CorankError, match=r"never mix in one table: binary has .* binary gains, .*; exponential has full"
    ):
        cr.compare([one, other])
    with pytest.raises(cr.CorankError, match="only runs of one protocol"):
        pooled([one, other])


def test_a_gain_that_does_not_exist(split: cr.Split) -> None:
    with pytest.raises(cr.CorankError, match="gain='graded' is not a gain of NDCG; known: binary, exponential"):
        cr.evaluate(Table().fit(split.train), split, gain="graded")


def test_what_was_learned_from_is_part_of_the_protocol(split: cr.Split) -> None:
    """On leave-last-out data the validation item is the one before the test item: learning from it helps a lot."""
    plain = cr.evaluate(cr.Popularity().fit(split.train), split, "ndcg@10", name="plain")
    assert plain.protocol.refit is False
    assert str(plain.protocol).endswith(", trained without validation rows")
    final = split.refit()
    refitted = cr.evaluate(cr.Popularity().fit(final.train), final, "ndcg@10", name="refitted")
    assert refitted.protocol.refit is True
    assert str(refitted.protocol).endswith(", trained with validation rows")
    assert plain.fingerprint != refitted.fingerprint
    with pytest.raises(cr.CorankError, match="never mix in one table"):
        cr.compare([plain, refitted])
    by_hand = cr.evaluate(cr.Popularity().fit(split.train.join(split.valid)), split, "ndcg@10")
    assert by_hand.protocol.refit is True
    assert cr.evaluate(cr.Popularity().fit(split.train), split, "ndcg@10", part="valid").protocol.refit is None


def test_without_validation_rows_there_is_nothing_to_say() -> None:
    data = cr.from_arrays(user=[0, 0, 0, 1, 1, 1], item=[0, 1, 2, 1, 2, 3])
    split = cr.holdout(data, by="user", test=0.4, valid=0.0)
    report = cr.evaluate(cr.Popularity().fit(split.train), split, "ndcg@10", bootstrap=0)
    assert report.protocol.refit is None
    assert "validation" not in str(report)
