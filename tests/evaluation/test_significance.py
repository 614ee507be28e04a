"""Paired tests: calibrated under the null, decisive for real differences, and refused where nothing can be paired."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import corank as cr
from corank.evaluation.protocol import Protocol
from corank.evaluation.significance import holm, sign_flip
from made_reports import report


def test_holm_by_hand() -> None:
    # Sorted .01 .02 .03 .04 times 4 3 2 1: .04 .06 .06 .04, and never falling: .04 .06 .06 .06.
    assert holm(np.array([0.04, 0.01, 0.03, 0.02])) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm(np.array([0.6, 0.7])) == [1.0, 1.0]
    assert holm(np.array([0.02])) == [0.02]


def test_sign_flip_by_hand() -> None:
    # Eight flips of (1, 2, 3): sums 6 4 2 0 0 -2 -4 -6; two of eight are as large as 6.
    assert sign_flip(np.array([[1.0], [2.0], [3.0]]), 40_000)[0] == pytest.approx(2 / 8, abs=0.01)
    # Counted in whole units 164 of the 256 flips are as large; in tenths rounding would lose 15 of them.
    units = np.array([6, 7, -8, -8, 3, -3, 1, -7])
    flips = np.abs(np.array(list(itertools.product([-1, 1], repeat=8))) @ units)
    assert (flips >= abs(units.sum())).sum() == 164
    assert sign_flip(units[:, None] / 10, 40_000)[0] == pytest.approx(164 / 256, abs=0.01)
    assert sign_flip(np.zeros((5, 2)), 100).tolist() == [1, 1]
    assert sign_flip(np.ones((60, 1)), 999)[0] == 1 / 1000  # the smallest that so many flips can say


def test_p_values_are_uniform_when_nothing_differs() -> None:
    rng = np.random.default_rng(0)
    gaps = rng.exponential(1, (80, 400)) * rng.choice([-1, 1], (80, 400))
    p = sign_flip(gaps, 999)
    assert abs(p.mean() - 0.5) < 0.05
    for level in (0.05, 0.2, 0.5):
        assert abs((p <= level).mean() - level) < 3.5 * np.sqrt(level * (1 - level) / 400)
    base = report("a", rng.random(50))
    wilcoxon = [
        cr.compare([base, report("b", base.values["ndcg@10"] + g)], test="wilcoxon", bootstrap=1).rows[0].p_wilcoxon
        for g in rng.normal(0, 0.1, (200, 50))
    ]
    assert abs(np.mean(np.array(wilcoxon) <= 0.1) - 0.1) < 0.07


def test_a_real_difference_is_found_and_described() -> None:
    rng = np.random.default_rng(1)
    base = rng.random(300)
    shift = np.where(np.arange(300) < 30, 0, rng.normal(0.05, 0.1, 300))
    reports = [report("low", base), report("high", base + shift), report("same", base + rng.normal(0, 0.05, 300))]
    found = cr.compare(reports)
    assert found.reference == "high"
    row = next(r for r in found.rows if r.model == "low")
    assert row.difference == pytest.approx(-shift.mean())
    assert row.low < row.difference < row.high < 0
    assert row.p_randomization == pytest.approx(2 / 10_001)  # nothing reached it; two models were tested
    assert row.p_wilcoxon < 1e-6
    assert row.effect == pytest.approx(-shift.mean() / shift.std(ddof=1))
    assert (row.better, row.worse, row.equal) == pytest.approx((np.mean(shift < 0), np.mean(shift > 0), 0.1))
    back = cr.compare(reports, against="low", test="randomization")
    row = next(r for r in back.rows if r.model == "high")
    assert row.difference == pytest.approx(shift.mean())
    assert row.p_wilcoxon is None
    assert next(r for r in back.rows if r.model == "same").p_randomization > 0.01


def test_wilcoxon_is_scipys() -> None:
    from scipy.stats import wilcoxon

    rng = np.random.default_rng(2)
    a, b = rng.random(40), rng.random(40)
    row = cr.compare([report("a", a), report("b", b)], against="a", test="wilcoxon").rows[0]
    assert row.p_wilcoxon == wilcoxon(b, a).pvalue
    assert row.p_randomization is None


def test_lower_is_better_where_it_is() -> None:
    rows = np.array([1, 3, 2, 4])
    a = report("a", [1.0, 4.0, 0.0, 1.0], what="rmse", rows=rows)
    b = report("b", [1.0, 1.0, 1.0, 1.0], what="rmse", rows=rows)
    assert a["rmse"] == pytest.approx(np.sqrt((1 + 12 + 0 + 4) / 10))
    found = cr.compare([a, b])
    assert found.reference == "b"
    assert found.rows[0].difference == pytest.approx(np.sqrt(1.7) - 1)
    assert (found.rows[0].better, found.rows[0].worse, found.rows[0].equal) == (0.25, 0.25, 0.5)
    # Squared errors, weighted by rows, differ by +9 and -2: no flip of the two gives less than 7.
    assert found.rows[0].p_randomization == pytest.approx(1, abs=0.02)


def test_rmse_weighs_users_by_their_rows() -> None:
    rows = np.array([10, 1, 1, 1, 1])
    a = report("a", [0, 1, 1, 1, 1], what="rmse", rows=rows)
    b = report("b", [1, 0, 0, 0, 0], what="rmse", rows=rows)
    found = cr.compare([a, b], test="randomization", permutations=4000)
    # +10 against four times -1: no flip gives a sum below 6.
    assert found.reference == "a"
    assert found.rows[0].p_randomization == 1
    unweighted = cr.compare([report("a", [0, 1, 1, 1, 1]), report("b", [1, 0, 0, 0, 0])], permutations=4000)
    assert unweighted.rows[0].p_randomization == pytest.approx(12 / 32, abs=0.03)  # |sum| >= 3 of five signs


def test_users_without_the_metric_are_left_out() -> None:
    a, b = [0.1, np.nan, 0.3, 0.5], [0.2, np.nan, 0.1, 0.5]
    found = cr.compare([report("a", a), report("b", b)])
    assert found.users == 3
    assert found.rows[0].equal == pytest.approx(1 / 3)
    with pytest.raises(cr.CorankError, match="defined for other users"):
        cr.compare([report("a", a), report("b", [0.2, 0.1, 0.1, 0.5])])
    with pytest.raises(cr.CorankError, match="defined for no user"):
        cr.compare([report("a", [np.nan]), report("b", [np.nan])], against="a")


def test_equal_and_constant_differences() -> None:
    base = np.linspace(0, 1, 20)
    found = cr.compare([report("a", base + 0.1), report("b", base + 1e-15), report("c", base)], against="c")
    same = next(r for r in found.rows if r.model == "b")
    assert (same.p_randomization, same.p_wilcoxon, same.effect, same.equal) == (1, 1, 0, 1)
    steady = next(r for r in found.rows if r.model == "a")
    assert steady.effect > 1e6
    assert steady.better == 1


def test_the_seed_fixes_everything() -> None:
    rng = np.random.default_rng(5)
    reports = [report("a", rng.random(30)), report("b", rng.random(30))]
    assert cr.compare(reports) == cr.compare(reports)
    assert cr.compare(reports, seed=1) != cr.compare(reports)


def test_text_and_frame() -> None:
    rng = np.random.default_rng(6)
    found = cr.compare([report("wmf", rng.random(30)), report("popularity", rng.random(30) / 9)])
    text = str(found)
    assert "full ranking of 100 items" in text
    assert "Holm" in text
    assert text.index("wmf") < text.index("popularity")
    assert f"{found.rows[0].difference:+.4f}" in text
    frame = found.to_frame()
    assert frame["model"].to_list() == ["wmf", "popularity"]
    assert frame["p_randomization"].to_list() == [None, found.rows[0].p_randomization]
    assert frame["difference"][0] == 0


def test_what_cannot_be_compared_is_refused() -> None:
    a, b = report("a", [0.1, 0.2]), report("b", [0.3, 0.1])
    sampled = report("b", [0.3, 0.1], protocol=Protocol("sampled", items=100))
    cases = [
        ([a], {}, "at least two"),
        ([a, sampled], {}, "protocols never mix in one table: a has full ranking .* b has sampled"),
        ([a, report("b", [0.3, 0.1], protocol=Protocol("full", relevant=4, items=100))], {}, "never mix"),
        ([a, report("b", [0.3, 0.1], split="other")], {}, "evaluate both on one split"),
        ([a, report("b", [0.3, 0.1], part="valid")], {}, "evaluate both on one split"),
        ([a, report("b", [0.3, 0.1], fingerprint="y")], {}, "of the same data"),
        ([a, report("b", [0.3, 0.1], users=np.array([0, 7]))], {}, "different users"),
        ([a, report("a", [0.3, 0.1])], {}, "two reports are called 'a'"),
        ([a, b], {"metric": "recall@5"}, "recall@5 was not evaluated for a"),
        ([a, b], {"against": "aa"}, "no report of 'aa'"),
        ([a, b], {"test": "t-test"}, "no test 't-test'"),
        ([a, b], {"permutations": 0}, "permutations=0"),
    ]
    for reports, options, sentence in cases:
        with pytest.raises(cr.CorankError, match=sentence):
            cr.compare(reports, **options)


def test_figures_of_all_users_cannot_be_paired() -> None:
    data = cr.from_arrays(user=np.repeat(np.arange(6), 4), item=np.tile(np.arange(8), 3), time=range(24))
    split = cr.leave_last_out(data)
    model = cr.Popularity().fit(split.train)
    two = [cr.evaluate(model, split, ["coverage@2", "mrr"], name=name) for name in "ab"]
    with pytest.raises(cr.CorankError, match="no values per user to pair"):
        cr.compare(two)
    assert cr.compare(two, "mrr").rows[0].equal == 1
    assert cr.compare(two, "MRR", against="b").reference == "b"


def test_relative_graph_gain() -> None:
    # The dissertation's table: MF .73107, GRMF with G .72398, with DNA-3 .71811: 82.79 %.
    assert cr.relative_graph_gain(0.73107, 0.72398, 0.71811) == pytest.approx(82.79, abs=0.01)
    assert cr.relative_graph_gain(1.0, 0.9, 0.9) == pytest.approx(0)
    one, two, three = (report(n, [v**2], what="rmse") for n, v in (("mf", 1.0), ("g", 0.9), ("x", 0.7)))
    assert cr.relative_graph_gain(one, two, three) == pytest.approx(200)
    with pytest.raises(cr.CorankError, match="only where the graph helps"):
        cr.relative_graph_gain(0.9, 0.9, 0.8)
