"""Evaluation: protocols, candidates, reports, and the sentences for what cannot be measured."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import corank as cr
from corank import ranking
from corank.data import CSR
from corank.evaluate import validation_ndcg
from corank.metrics import Metric, Positions
from corank.model import Model
from corank.params import param
from corank.protocol import Protocol, draw_negatives
from reference import counts_in_list, list_metrics


@dataclass(kw_only=True, eq=False)
class Table(Model):
    """Random scores from a table; a history is scored by its last item and its length."""

    levels: int = param(10**6, "number of different scores")
    predicts_ratings: ClassVar[bool] = True

    def _fit(self, data: cr.Dataset, rows: CSR, rng: np.random.Generator) -> None:
        shape = (len(data.users), len(data.items))
        self.table_ = (rng.integers(0, self.levels, shape) / self.levels * 5).astype(np.float32)

    def _score(self, users):
        return self.table_[users]

    def _score_histories(self, histories: CSR):
        last = [histories.index[b - 1] if b > a else 0 for a, b in pairwise(histories.indptr)]
        place = np.arange(len(self.items_)) * 7919
        length = np.diff(histories.indptr)[:, None]
        return ((place * (3 + np.array(last)[:, None]) + length) % 1013).astype(np.float32)


@dataclass(kw_only=True, eq=False)
class Ordered(Table):
    """Reads histories, keeps what it was given, and must never be asked by user code."""

    order_matters: ClassVar[bool] = True

    def _fit(self, data: cr.Dataset, rows: CSR, rng: np.random.Generator) -> None:
        self.asked_: list[list[int]] = []

    def _score(self, users):
        raise AssertionError("a model that reads histories was asked by user code")

    def _score_histories(self, histories: CSR):
        self.asked_ += [histories.index[a:b].tolist() for a, b in pairwise(histories.indptr)]
        return super()._score_histories(histories)


@pytest.fixture(scope="module")
def data() -> cr.Dataset:
    rng = np.random.default_rng(0)
    user, item = rng.integers(0, 60, 1200), (45 * rng.random(1200) ** 2).astype(int)
    return cr.from_arrays(user=user, item=item, value=rng.integers(1, 6, 1200), time=rng.integers(0, 500, 1200))


@pytest.fixture(scope="module")
def split(data: cr.Dataset) -> cr.Split:
    return cr.holdout(data, test=0.25, valid=0.1, by="user", seed=1)


def items_of(part: cr.Dataset, user: int) -> dict[int, float]:
    mine = part.user == user
    return dict(zip(part.item[mine].tolist(), part.value[mine].tolist(), strict=True))


def brute(scores, split: cr.Split, candidates_of, name: str, k: int, threshold: float = -np.inf) -> dict[int, float]:
    """The metric of each test user by sorting a list of candidates (scores are distinct)."""
    out = {}
    for user in np.unique(split.test.user).tolist():
        test = items_of(split.test, user)
        order = sorted(candidates_of(user, test), key=lambda i: -scores[user, i])
        relevant = [i in test and test[i] >= threshold for i in order]
        out[user] = list_metrics([test.get(i, 0) for i in order], relevant, k)[name]
    return out


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
    touched: dict[int, set[int]] = {}
    for u, i in zip(data.user.tolist(), data.item.tolist(), strict=True):
        touched.setdefault(u, set()).add(i)
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
    import sys

    from corank import evaluate as function  # noqa: F401 (loads the module)

    module, seen = sys.modules["corank.evaluate"], []
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
    expected = brute(-model.table_, split, lambda u, test: list(test), "ndcg", 10)
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

    expected = brute(scores, split, candidates, "ndcg", 10)
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


# ---- figures -----------------------------------------------------------------------------------------------------


def test_errors_of_ratings_are_pooled_over_rows(split: cr.Split) -> None:
    model = Table().fit(split.train)
    for protocol in ("full", "sampled", "rated"):
        report = cr.evaluate(model, split, ["rmse", "mae"], protocol=protocol)
        miss = model.table_[split.test.user, split.test.item].astype(np.float64) - split.test.value
        assert report["rmse"] == pytest.approx(np.sqrt(np.mean(miss**2)), abs=1e-9)
        assert report["mae"] == pytest.approx(np.mean(np.abs(miss)), abs=1e-9)
        first = split.test.user == np.unique(split.test.user)[0]
        assert report.per_user["rmse"][0] == pytest.approx(np.sqrt(np.mean(miss[first] ** 2)), abs=1e-9)
        low, high = report.interval["rmse"]
        assert low < report["rmse"] < high


def test_coverage_and_novelty_look_at_what_recommend_gives(split: cr.Split) -> None:
    known = cr.Split(split.train, split.valid.take(slice(0, 0)), split.test, "no validation")
    model = Table().fit(split.train)
    report = cr.evaluate(model, known, ["coverage@3", "novelty@3", "coverage@1"])
    lists = model.recommend(report.users, k=3).items
    assert report["coverage@3"] == np.unique(lists).size / len(split.train.items)
    assert report["coverage@1"] == np.unique(lists[:, 0]).size / len(split.train.items)
    share = np.bincount(split.train.item, minlength=len(split.train.items)) / np.unique(split.train.user).size
    assert report["novelty@3"] == pytest.approx(np.mean(-np.log2(share[lists])))
    assert np.isnan(report.per_user["coverage@3"]).all()


def test_interval_covers_the_mean_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    from corank.evaluate import resampled_means
    from corank.metrics import metric

    inside = 0
    for trial in range(200):
        values = rng.exponential(1.0, 150)
        low, _, high = resampled_means([metric("ndcg@10")], [values], np.ones(150, np.int64), 300, trial)
        inside += bool(low[0] <= 1.0 <= high[0])
    assert 178 <= inside <= 199  # 190 expected, a little fewer for so skewed a law


def test_intervals_are_fixed_by_the_seed(split: cr.Split) -> None:
    model = Table().fit(split.train)
    first, same, other = (cr.evaluate(model, split, "ndcg@10", seed=s) for s in (0, 0, 1))
    assert first.interval == same.interval != other.interval
    none = cr.evaluate(model, split, "ndcg@10", bootstrap=0)
    assert np.isnan(none.interval["ndcg@10"]).all()
    assert "[" not in str(none)


def test_report_prints_the_protocol_and_converts(split: cr.Split) -> None:
    model = Table().fit(split.train)
    report = cr.evaluate(model, split, ["ndcg@10", "coverage@5"], relevant=4)
    text = str(report)
    assert "full ranking of 45 items, seen items excluded, relevant from 4" in text
    assert split.name in text
    assert f"ndcg@10     {report['ndcg@10']:.4f}  [{report.interval['ndcg@10'][0]:.4f}," in text
    frame = report.to_frame()
    assert frame["metric"].to_list() == ["ndcg@10", "coverage@5"]
    assert frame["mean"].to_list() == [report["ndcg@10"], report["coverage@5"]]
    plain = json.loads(json.dumps(report.as_dict(per_user=True), allow_nan=False))
    assert plain["metrics"]["ndcg@10"]["mean"] == report["ndcg@10"]
    assert plain["metrics"]["coverage@5"]["low"] is None
    assert plain["params"] == {"seed": 0, "levels": 10**6}
    assert len(plain["per_user"]["ndcg@10"]) == len(plain["ids"]) == report.users.size
    assert report.fit_seconds == model.fit_seconds_
    assert report.seconds > 0
    assert cr.evaluate(model, split, name="mine").model == "mine"
    assert str(Protocol("sampled", 50, seed=3)) == "sampled: 50 uniform negatives, seed 3"
    assert str(Protocol("sampled", 50, True)) == "sampled: 50 popular negatives, seed 0"
    assert "test items only" in str(Protocol("rated"))
    assert Protocol("full", seed=3) == Protocol("full")  # nothing is drawn


def test_own_functions_are_metrics(split: cr.Split) -> None:
    def first_place(p: Positions) -> Any:
        return p.sum((p.above == 0) & (p.tied == 1))

    model = Table().fit(split.train)
    report = cr.evaluate(model, split, [first_place, "precision@1", Metric("same", 1, first_place)])
    assert report["first_place"] == report["precision@1"] == report["same"] == report[first_place]
    with pytest.raises(cr.CorankError, match="one a user"):
        cr.evaluate(model, split, lambda p: p.above)


def test_of_repeated_test_pairs_the_last_row_counts() -> None:
    part = cr.from_arrays(user=[0, 0, 0, 0], item=[0, 1, 2, 3], value=[1, 1, 1, 1])
    again = dataclasses.replace(
        part, user=np.zeros(3, np.int32), item=np.array([2, 3, 3], np.int32), value=np.array([2, 5, 1], np.float32)
    )
    split = cr.Split(part.take([0, 1]), part.take(slice(0, 0)), again, "by hand")
    model = Table().fit(split.train)
    model.table_ = np.array([[0, 0, 1, 2]], np.float32)
    report = cr.evaluate(model, split, ["ndcg", "mae"])
    assert report["ndcg"] == pytest.approx((1 + 3 / np.log2(3)) / (3 + 1 / np.log2(3)))
    assert report["mae"] == 1


def test_validation_ndcg_is_the_figure_of_evaluate(data: cr.Dataset) -> None:
    split = cr.leave_last_out(data)
    model = Table(levels=40).fit(split.train)
    whole = cr.evaluate(model, split, "ndcg@10", part="valid", bootstrap=0)["ndcg@10"]
    assert validation_ndcg(model, split.valid) == pytest.approx(whole, abs=1e-12)
    strong = cr.strong_generalization(data, users=0.2)
    model = Table().fit(strong.train)
    whole = cr.evaluate(model, strong, "ndcg@10", part="valid", bootstrap=0)["ndcg@10"]
    assert validation_ndcg(model, strong.valid, strong.history) == pytest.approx(whole, abs=1e-12)


# ---- what cannot be measured -------------------------------------------------------------------------------------


def test_bad_requests_get_a_sentence(split: cr.Split, data: cr.Dataset) -> None:
    model = Table().fit(split.train)
    cases: list[tuple[Any, str]] = [
        (lambda: cr.evaluate(model, split, "ndgc@10"), "did you mean 'ndcg'"),
        (lambda: cr.evaluate(model, split, protocol="ful"), "no protocol 'ful'; did you mean 'full'"),
        (lambda: cr.evaluate(model, split, part="train"), "part='train' is not known"),
        (lambda: cr.evaluate(model, split, protocol="sampled", negatives=0), "negatives=0"),
        (lambda: cr.evaluate(model, split, seed=-1), "seed=-1"),
        (lambda: cr.evaluate(model, split, bootstrap=-1), "bootstrap=-1"),
        (lambda: cr.evaluate(model, split, relevant=float("nan")), "relevant=nan"),
        (lambda: cr.evaluate(model, split, "coverage@5", protocol="sampled"), "coverage@5 looks at whole lists"),
        (lambda: cr.evaluate(cr.Popularity().fit(split.train), split, "rmse"), "popularity gives only scores"),
        (lambda: cr.evaluate(model, split.test), "takes a Split, not Dataset"),
        (lambda: cr.evaluate(Table(), split), "has not learned yet"),
        (lambda: cr.evaluate(Table().fit(data.take(data.user < 9).compact()), split), "other users or items"),
        (lambda: cr.evaluate(model, cr.holdout(data, valid=0), part="valid"), "valid part of .* is empty"),
        (lambda: cr.evaluate(model, split, "ndcg@10")["recall@5"], "recall@5 was not evaluated"),
    ]
    for ask, sentence in cases:
        with pytest.raises(cr.CorankError, match=sentence):
            ask()


@pytest.mark.parametrize("protocol", ["full", "sampled", "rated"])
def test_nan_scores_are_an_error_that_names_the_user(split: cr.Split, protocol: str) -> None:
    model = Table().fit(split.train)
    user = int(split.test.user[3])
    model.table_[user] = np.nan
    with pytest.raises(cr.CorankError, match=f"scores NaN for user .*{split.train.users.ids[user]}"):
        cr.evaluate(model, split, protocol=protocol)


def test_scores_of_the_wrong_shape_are_an_error(split: cr.Split) -> None:
    model = Table().fit(split.train)
    model.table_ = model.table_[:, :-1]
    with pytest.raises(cr.CorankError, match="gave scores of shape"):
        cr.evaluate(model, split)


def test_a_metric_that_nobody_has_is_not_a_number_and_is_logged(split: cr.Split, caplog) -> None:
    report = cr.evaluate(Table().fit(split.train), split, ["auc", "recall@3"], relevant=99)
    assert np.isnan(report["auc"])
    assert np.isnan(report["recall@3"])
    assert "auc is defined for no user" in caplog.text
    assert json.dumps(report.as_dict(), allow_nan=False)


# ---- real data ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_random_scores_on_movielens_match_the_published_start(shared_data: Path) -> None:
    """The dissertation's split of MovieLens-1M (200 ratings a user): its log begins at error 0.351 and NDCG@10 0.475."""
    split = cr.fixed_per_user(cr.datasets.load("ml-1m", shared_data), train=200)
    assert (split.users.size, len(split.train), len(split.test)) == (1496, 299_200, 338_787)
    wanted = ["pairwise_error_authors", "pairwise_error", "ndcg@10"]
    report = cr.evaluate(Table().fit(split.train), split, wanted, protocol="rated")
    assert report["pairwise_error_authors"] == pytest.approx(0.351, abs=0.003)
    assert report["pairwise_error"] == pytest.approx(0.5, abs=0.003)
    assert report["ndcg@10"] == pytest.approx(0.475, abs=0.01)


@pytest.mark.slow
def test_popularity_on_movielens_100k_matches_other_libraries(shared_data: Path) -> None:
    split = cr.leave_last_out(cr.datasets.load("ml-100k", shared_data))
    report = cr.evaluate(cr.Popularity().fit(split.train), split, "ndcg@10")
    assert report["ndcg@10"] == pytest.approx(0.025, abs=0.005)
    assert counts_in_list(2, [1, 2, 3]) == (1, 1)
