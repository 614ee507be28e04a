"""Pooling runs: every tested user counts, and a user who is tested in several runs is one user."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import corank as cr
from corank.evaluation.seeds import pooled
from made_reports import report


def runs(shift: float = 0.0, *, users: int = 300, seeds: int = 4, name: str = "a", seed: int = 0) -> list:
    """Each run tests a random half of the users, whose values vary more between users than between runs."""
    rng = np.random.default_rng(seed)
    own = rng.random(users)
    out = []
    for _ in range(seeds):
        tested = np.sort(rng.permutation(users)[: users // 2 + int(rng.integers(20))])
        values = own[tested] + shift + 0.05 * rng.standard_normal(tested.size)
        out.append(report(name, values, users=tested))
    return out


def test_the_mean_is_that_of_the_runs_and_nobody_is_dropped():
    reports = runs()
    one = pooled(reports)
    assert one["ndcg@10"] == pytest.approx(np.mean([r["ndcg@10"] for r in reports]))
    assert one.users.tolist() == sorted(set(np.concatenate([r.users for r in reports]).tolist()))
    assert one.rows.sum() == sum(r.rows.sum() for r in reports)


def test_by_hand():
    first = report("a", [0.2, 0.4], users=np.array([1, 2]))
    second = report("a", [0.6, 0.0, 0.3], users=np.array([2, 3, 4]))
    one = pooled([first, second], bootstrap=0)
    assert one["ndcg@10"] == pytest.approx((0.3 + 0.3) / 2)
    weights = one.weights["ndcg@10"]
    assert weights == pytest.approx([1 / 2, 1 / 2 + 1 / 3, 1 / 3, 1 / 3])
    assert one.values["ndcg@10"][1] == pytest.approx((0.4 / 2 + 0.6 / 3) / (1 / 2 + 1 / 3))


def test_a_user_for_whom_the_metric_is_undefined_in_one_run():
    first = report("a", [np.nan, 0.4], users=np.array([1, 2]))
    second = report("a", [0.6, np.nan], users=np.array([1, 2]))
    one = pooled([first, second], bootstrap=0)
    assert one["ndcg@10"] == pytest.approx(0.5)
    assert one.values["ndcg@10"] == pytest.approx([0.6, 0.4])


def test_errors_of_rows():
    """RMSE is a mean over rows: a user with three test rows counts three times."""
    squared = report("a", [1.0, 4.0], what="rmse", rows=np.array([3, 1]), users=np.array([1, 2]))
    other = report("a", [9.0], what="rmse", rows=np.array([2]), users=np.array([3]))
    one = pooled([squared, other], bootstrap=0)
    assert one["rmse"] == pytest.approx(np.sqrt((7 / 4 + 9) / 2))


def test_repeated_users_do_not_make_an_interval_narrower():
    """The same run four times tells as much as one run; as independent users it would look like four times as many."""
    values = np.random.default_rng(1).random(400)
    single = report("a", values)
    span = np.diff(pooled([single, dataclasses.replace(single)], bootstrap=2000).interval["ndcg@10"])[0]
    expected = 2 * 1.96 * values.std() / np.sqrt(values.size)
    assert span == pytest.approx(expected, rel=0.1)


def test_the_interval_covers_the_truth():
    """Users are the sample: over many samples of them, 95 % intervals hold the mean of all users most of the time."""
    held = 0
    for seed in range(60):
        low, high = pooled(runs(users=120, seed=seed), bootstrap=300).interval["ndcg@10"]
        held += low <= 0.5 <= high
    assert held >= 52


def test_paired_tests_of_pooled_runs():
    same = [pooled(runs(0.0, name="a")), pooled(runs(0.0, name="b"))]
    assert cr.compare(same).rows[0].p_randomization == 1.0
    better = [pooled(runs(0.0, name="a")), pooled(runs(0.03, name="b"))]
    found = cr.compare(better)
    assert found.reference == "b"
    assert found.rows[0].difference == pytest.approx(-0.03)
    assert found.rows[0].p_randomization < 0.001
