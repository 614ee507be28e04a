"""The numbers behind the pictures."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import corank as cr
from corank.report import data_charts, figures, model_charts
from results import measured, small


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What each chart function was given first."""
    seen: dict[str, Any] = {}
    models = ("intervals", "hit_rates", "distribution", "scatter", "by_group", "stacked_bars")
    for module, name in [(model_charts, n) for n in models] + [(data_charts, n) for n in ("over_time", "ratings")]:

        def heard(*args: Any, name: str = name, **options: Any) -> str:
            seen.setdefault(name, args)
            return "<svg/>"

        monkeypatch.setattr(module, name, heard)
    return seen


def titles(results: Any) -> list[str]:
    return [f.title for f in figures.model_figures(results, results.lines)]


def test_leave_last_out_shows_where_the_item_stands(drawn: dict[str, Any]) -> None:
    gains = 1 / np.log2(np.array([2, 3, 11, np.inf]))  # places 1, 2, 10 and none
    titles(measured({"a": gains}))
    assert drawn["hit_rates"][0]["a"].tolist() == [0.25] + [0.5] * 8 + [0.75]
    assert "distribution" not in drawn


def test_reciprocal_ranks_tell_the_place_too(drawn: dict[str, Any]) -> None:
    titles(measured({"a": [1, 1 / 3, 0, 0]}, "mrr@5"))
    assert drawn["hit_rates"][0]["a"].tolist() == [0.25, 0.25, 0.5, 0.5, 0.5]


def test_several_test_rows_show_the_spread(drawn: dict[str, Any]) -> None:
    results = small("holdout")
    assert "Distribution over users" in titles(results)
    row = results.rows[0]
    values = row.report.per_user["ndcg@10"]
    assert drawn["distribution"][0][row.label].tolist() == values[~np.isnan(values)].tolist()


def test_groups_of_users_hold_everybody_once(drawn: dict[str, Any]) -> None:
    results = small()
    titles(results)
    names, means = drawn["by_group"][:2]
    assert len(names) == 4
    known = results.split.known()
    rows = np.bincount(known.user, minlength=len(known.users))[known.users.codes(results.best.report.users)]
    bounds = [tuple(map(int, name.split("–"))) for name in names]
    sizes = np.array([np.sum((rows >= b[0]) & (rows <= b[-1])) for b in bounds])
    assert sizes.sum() == rows.size
    overall = (means[results.best.label] * sizes).sum() / rows.size
    assert overall == pytest.approx(results.best.report["ndcg@10"])


def test_tiers_by_training_popularity() -> None:
    user = np.concatenate([np.arange(i + 1) for i in range(100)])
    item = np.repeat(np.arange(100), np.arange(1, 101))  # item 99 is the most popular
    tiers = figures._tiers(cr.from_arrays(user=user, item=item))
    assert np.flatnonzero(tiers == 0).tolist() == [99]
    assert np.flatnonzero(tiers == 1).tolist() == list(range(90, 99))


def test_popularity_bias_is_that_of_the_evaluated_lists(drawn: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The lists of the evaluation, without a second inference: neither training nor validation items are in them."""
    results = small()
    split = results.split
    row = next(r for r in results.rows if r.label == "popularity")
    everything = row.model.recommend(split.users, k=len(split.train.items))
    known = split.known()
    expected = []
    for user, items in zip(split.train.users.codes(everything.users), everything.items, strict=True):
        left = items[(items >= 0) & ~np.isin(items, known.item[known.user == user])]
        expected += left[:10].tolist()

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the lists are there")

    monkeypatch.setattr(cr.Popularity, "recommend", refuse)
    assert "Popularity bias" in titles(results)
    shares = np.bincount(figures._tiers(split.train)[expected], minlength=3) / len(expected)
    line = next(one for one in results.lines if one.row is row)
    items = figures._recommended(line, split)
    assert items is not None
    assert figures._tier_shares(figures._tiers(split.train)[items]) == pytest.approx(tuple(shares))


def test_models_recommend_where_the_evaluation_kept_no_lists() -> None:
    results = small()
    line = next(one for one in results.lines if one.label == "popularity")
    ranking = line.row.model.recommend(results.split.users, k=10)
    top = line.row.report.top
    assert top is not None
    shorter = dataclasses.replace(top, items=top.items[:, :5], scores=top.scores[:, :5])
    for kept in (None, shorter):
        report = dataclasses.replace(line.row.report, top=kept)
        bare = dataclasses.replace(line, row=dataclasses.replace(line.row, report=report))
        items = figures._recommended(bare, results.split)
        assert items is not None
        assert items.tolist() == ranking.items[ranking.items >= 0].tolist()


def test_held_out_users_are_asked_by_their_history() -> None:
    results = small("strong_generalization")
    line = next(one for one in results.lines if one.label == "item_knn")
    items = figures._recommended(line, results.split)
    assert items is not None
    assert items.size == 10 * results.split.users.size


def test_what_says_nothing_is_left_out(drawn: dict[str, Any]) -> None:
    shown = titles(measured({"alone": [0.5]}))
    assert shown[0] == "NDCG@10 of each model"
    assert not any(t.startswith(("Wins and losses", "Accuracy by user activity", "Novelty")) for t in shown)
    assert titles(measured({"a": [np.nan, np.nan]})) == []


def test_portrait_fits_the_data() -> None:
    plain = cr.from_arrays(user=[1, 1, 1, 2, 2, 2], item=[1, 2, 3, 1, 2, 3])
    split = cr.holdout(plain, by="user", test=0.34, valid=0)
    assert [f.title for f in figures.data_figures(split, split.all_rows())] == ["Popularity", "Activity"]
    split = small().split
    assert [f.title for f in figures.data_figures(split, split.all_rows())][2:] == ["Values", "Time"]
    for part in ("leave_last_out", "strong_generalization"):
        split = small(part).split
        extra = 0 if split.history is None else len(split.history)
        assert len(split.all_rows()) == len(split.train) + len(split.valid) + len(split.test) + extra


def test_many_models_show_the_best_and_the_last_in_colours_of_their_own(drawn: dict[str, Any]) -> None:
    titles(measured({f"m{i:02}": np.full(9, 0.9 - 0.05 * i) for i in range(12)}))
    shown, looks = drawn["hit_rates"][:2]
    assert list(shown) == [f"m{i:02}" for i in range(7)] + ["m11"]
    assert len({looks[label].colour for label in shown}) == 8
