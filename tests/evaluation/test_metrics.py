"""Metrics against hand values, other people's programs, and every way in which ties can fall."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corank.errors import CorankError
from corank.evaluation.metrics import Metric, Positions, hlu, metric, metrics_of, names, ndcg, precision
from reference import expected_list_metrics, list_metrics, pair_counts, tie_orders

CUT = ("ndcg", "hlu", "precision", "recall", "hit", "mrr", "map")


def lists(scores, value, relevant=None, **more) -> Positions:
    """Positions of several lists of any length."""
    indptr = np.r_[0, np.cumsum([len(one) for one in scores])]
    flat = [np.concatenate([np.asarray(one, np.float64) for one in many]) for many in (scores, value)]
    binary = flat[1] > 0 if relevant is None else np.concatenate([np.asarray(one, np.bool_) for one in relevant])
    return Positions.of_lists(indptr, flat[0], flat[1], binary, **more)


def value_of(name: str, positions: Positions) -> np.ndarray:
    return metric(name).function(positions)


@pytest.fixture(scope="module")
def random_lists():
    """300 lists of 30 with distinct scores and many equal ratings; a few lists have nothing relevant."""
    rng = np.random.default_rng(0)
    scores = [rng.permutation(30) + 1.0 for _ in range(300)]
    value = [rng.choice(5, 30, p=[0.6, 0.1, 0.1, 0.1, 0.1]).astype(float) for _ in range(300)]
    value[7][:] = 0
    return scores, value


def ranx_values(qrels, run, wanted) -> dict[str, np.ndarray]:
    """ranx in a process of its own with its compiler off: the same code in 2 s instead of a minute."""
    code = (
        "import json, sys, ranx; q, r, m = json.load(sys.stdin);"
        "out = ranx.evaluate(ranx.Qrels(q), ranx.Run(r), m, return_mean=False);"
        "print(json.dumps({k: v.tolist() for k, v in out.items()}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps([qrels, run, wanted]),
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return {name: np.array(values) for name, values in json.loads(done.stdout).items()}


# ---- other people's answers --------------------------------------------------------------------------------------


def test_equal_to_ranx(random_lists) -> None:
    scores, value = random_lists
    keep = [q for q in range(300) if value[q].any()]
    qrels = {f"q{q:03}": {f"d{i}": int(v) for i, v in enumerate(value[q]) if v > 0} for q in keep}
    run = {f"q{q:03}": {f"d{i}": s for i, s in enumerate(scores[q].tolist())} for q in keep}
    theirs = {
        "ndcg_burges": "ndcg",
        "ndcg_burges@10": "ndcg@10",
        "precision@5": "precision@5",
        "recall@10": "recall@10",
        "hit_rate@3": "hit@3",
        "mrr": "mrr",
        "mrr@3": "mrr@3",
        "map": "map",
    }
    answers = ranx_values(qrels, run, list(theirs))
    positions = lists([scores[q] for q in keep], [value[q] for q in keep])
    for name, ours in theirs.items():
        np.testing.assert_allclose(value_of(ours, positions), answers[name], rtol=0, atol=1e-9, err_msg=ours)


def test_equal_to_ir_measures(random_lists) -> None:
    import ir_measures
    from ir_measures import AP, RR, P, R, Success, nDCG

    scores, value = random_lists
    keep = [q for q in range(300) if value[q].any()]
    qrels = {f"q{q:03}": {f"d{i}": int(v) for i, v in enumerate(value[q])} for q in keep}
    run = {f"q{q:03}": {f"d{i}": s for i, s in enumerate(scores[q].tolist())} for q in keep}
    gains = {r: 2**r - 1 for r in range(5)}
    theirs = {
        nDCG(gains=gains) @ 10: "ndcg@10",
        nDCG(gains=gains): "ndcg",
        P @ 5: "precision@5",
        R @ 10: "recall@10",
        Success @ 3: "hit@3",
        RR: "mrr",
        AP: "map",
        AP @ 5: "map@5",
    }
    positions = lists([scores[q] for q in keep], [value[q] for q in keep])
    found = {m: np.full(len(keep), np.nan) for m in theirs}
    for one in ir_measures.iter_calc(list(theirs), qrels, run):
        found[one.measure][keep.index(int(one.query_id[1:]))] = one.value
    # trec_eval divides AP@k by the number of relevant items, so that a perfect top k need not score 1.
    found[AP @ 5] *= positions.n_relevant / np.minimum(positions.n_relevant, 5)
    for measure, ours in theirs.items():
        np.testing.assert_allclose(value_of(ours, positions), found[measure], rtol=0, atol=1e-9, err_msg=ours)


@pytest.mark.parametrize("levels", [4, 1000])
def test_equal_to_scikit_learn(levels: int) -> None:
    from sklearn.metrics import average_precision_score, ndcg_score, roc_auc_score

    rng = np.random.default_rng(levels)
    scores = [rng.choice(levels, 20, replace=levels < 20).astype(float) for _ in range(100)]
    value = [np.r_[rng.integers(0, 5, 18), 0, 3].astype(float) for _ in range(100)]
    positions = lists(scores, value)
    for k in (1, 5, 10, None):
        # scikit-learn averages the gain over ties too.
        theirs = [ndcg_score([2**v - 1], [s], k=k) for v, s in zip(value, scores, strict=True)]
        np.testing.assert_allclose(ndcg(positions, k), theirs, rtol=0, atol=1e-9)
    theirs = [roc_auc_score(v > 0, s) for v, s in zip(value, scores, strict=True)]
    np.testing.assert_allclose(value_of("auc", positions), theirs, rtol=0, atol=1e-9)
    if levels >= 20:
        theirs = [average_precision_score(v > 0, s) for v, s in zip(value, scores, strict=True)]
        np.testing.assert_allclose(value_of("map", positions), theirs, rtol=0, atol=1e-9)


@pytest.mark.slow
def test_ties_equal_the_mean_of_ranx_over_all_orders() -> None:
    cases = [([2, 2, 2, 1], [0, 3, 1, 2]), ([1, 1, 1, 1, 1], [0, 0, 2, 1, 0]), ([3, 2, 2, 2, 1, 1], [0, 0, 1, 0, 4, 0])]
    qrels, run, owner = {}, {}, []
    for c, (scores, value) in enumerate(cases):
        for t, order in enumerate(tie_orders(scores)):
            key = f"q{c}_{t:04}"
            qrels[key] = {f"d{i}": v for i, v in enumerate(value) if v}
            run[key] = {f"d{i}": float(len(order) - place) for place, i in enumerate(order)}
            owner.append(c)
    theirs = {"ndcg_burges@3": "ndcg@3", "recall@2": "recall@2", "hit_rate@2": "hit@2", "mrr@3": "mrr@3", "map": "map"}
    answers = ranx_values(qrels, run, list(theirs))
    positions = lists(*zip(*cases, strict=True))
    for name, ours in theirs.items():
        means = np.bincount(owner, answers[name]) / np.bincount(owner)
        np.testing.assert_allclose(value_of(ours, positions), means, rtol=0, atol=1e-9, err_msg=ours)


# ---- every way in which ties can fall ----------------------------------------------------------------------------

entries = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from([-1.0, 0.0, 0.5, 1.0, 3.0, 5.0]), st.booleans()),
    min_size=1,
    max_size=6,
)


@settings(max_examples=150, deadline=None)
@given(entries, st.integers(1, 7))
def test_ties_equal_the_mean_over_all_orders(rows, k: int) -> None:
    scores, value, relevant = (list(column) for column in zip(*rows, strict=True))
    expected = expected_list_metrics(scores, value, relevant, k)
    positions = lists([scores], [value], [relevant])
    for name in (*(f"{n}@{k}" for n in CUT), "auc"):
        np.testing.assert_allclose(value_of(name, positions)[0], expected[name.split("@")[0]], rtol=0, atol=1e-9)
    wrong, tied, comparable, pairs = pair_counts(scores, value)
    ours = value_of("pairwise_error", positions)[0], value_of("pairwise_error_authors", positions)[0]
    assert np.isnan(ours[0]) if comparable == 0 else ours[0] == (wrong + tied / 2) / comparable
    assert np.isnan(ours[1]) if pairs == 0 else ours[1] == (wrong + tied) / pairs


@settings(max_examples=100, deadline=None)
@given(entries, st.integers(1, 7))
def test_within_zero_and_one_and_perfect_is_one(rows, k: int) -> None:
    scores, value, _ = (list(column) for column in zip(*rows, strict=True))
    liked = [v > 0.5 for v in value]
    every = [f"{n}@{k}" for n in CUT] + ["auc", "pairwise_error", "pairwise_error_authors"]
    for name in every:
        one = value_of(name, lists([scores], [value], [liked]))[0]
        assert np.isnan(one) or -1e-12 <= one <= 1 + 1e-12, name
    best = lists([value], [value], [liked])
    for name in (f"ndcg@{k}", f"map@{k}", f"mrr@{k}", f"hlu@{k}", f"hit@{k}", "auc"):
        one = value_of(name, best)[0]
        assert np.isnan(one) or one == pytest.approx(1, abs=1e-12), name
    assert np.nan_to_num(value_of("pairwise_error", best))[0] == 0


def test_constant_scorer_is_chance_exactly() -> None:
    n, good, k = 40, 3, 10
    value = np.r_[np.ones(good), np.zeros(n - good)]
    positions = lists([np.zeros(n)], [value])
    assert value_of(f"precision@{k}", positions)[0] == pytest.approx(good / n, abs=1e-12)
    assert value_of(f"recall@{k}", positions)[0] == pytest.approx(k / n, abs=1e-12)
    assert value_of("auc", positions)[0] == 0.5
    miss = (30 / 40) * (29 / 39) * (28 / 38)  # none of the three among ten of forty
    assert value_of(f"hit@{k}", positions)[0] == pytest.approx(1 - miss, abs=1e-12)
    discounts = 1 / np.log2(np.arange(2, n + 2))
    assert ndcg(positions, k)[0] == pytest.approx(good / n * discounts[:k].sum() / discounts[:good].sum(), abs=1e-12)
    assert value_of("pairwise_error", positions)[0] == 0.5
    assert value_of("pairwise_error_authors", positions)[0] == good * (n - good) / (n * (n - 1) / 2)


def test_plain_order_equals_the_reference_on_long_lists() -> None:
    rng = np.random.default_rng(3)
    scores = [rng.permutation(500).astype(float) for _ in range(20)]
    value = [rng.choice([0.0, 1.0, 4.0], 500, p=[0.9, 0.05, 0.05]) for _ in range(20)]
    positions = lists(scores, value)
    for u in range(20):
        order = np.argsort(-scores[u])
        expected = list_metrics(value[u][order].tolist(), (value[u] > 0)[order].tolist(), 50)
        for name in (*(f"{n}@50" for n in CUT), "auc"):
            assert value_of(name, positions)[u] == pytest.approx(expected[name.split("@")[0]], abs=1e-9), name


# ---- by hand -----------------------------------------------------------------------------------------------------


def test_half_life_utility_by_hand() -> None:
    # Ranked: ratings 2, 5, 0, 3. Half-life 5: weights 1, 2^-1/4, 2^-1/2, 2^-3/4.
    positions = lists([[4, 3, 2, 1]], [[2, 5, 0, 3]])
    w = [1, 2**-0.25, 2**-0.5, 2**-0.75]
    assert hlu(positions)[0] == pytest.approx((2 + 5 * w[1] + 3 * w[3]) / (5 + 3 * w[1] + 2 * w[2]), abs=1e-12)
    assert hlu(positions, 2)[0] == pytest.approx((2 + 5 * w[1]) / (5 + 3 * w[1]), abs=1e-12)
    # Against a neutral rating of 2 only the 5 and the 3 count; half-life 2 halves at each place.
    assert hlu(positions, neutral=2, half_life=2)[0] == pytest.approx((3 / 2 + 1 / 8) / (3 + 1 / 2), abs=1e-12)
    with pytest.raises(CorankError, match="half_life=1"):
        hlu(positions, half_life=1)


def test_pairwise_errors_by_hand() -> None:
    # Ratings 5 4 4 1, scores 3 3 1 2: (5,4) tied, (5,4) right, (5,1) right, (4,4) none, (4,1) right, (4,1) wrong.
    positions = lists([[3, 3, 1, 2]], [[5, 4, 4, 1]])
    assert value_of("pairwise_error", positions)[0] == (1 + 0.5) / 5
    assert value_of("pairwise_error_authors", positions)[0] == 2 / 6
    same = lists([[1, 2], [1]], [[3, 3], [3]])
    assert np.isnan(value_of("pairwise_error", same)).all()
    assert value_of("pairwise_error_authors", same)[0] == 0
    assert np.isnan(value_of("pairwise_error_authors", same)[1])


def test_errors_of_predictions_by_hand() -> None:
    positions = Positions.of_lists([0, 1, 3], [1, 2, 3], [3, 5, 1], prediction=np.array([4.0, 5.0, 4.0]))
    assert value_of("rmse", positions).tolist() == [1, 4.5]  # squared; the root is taken of the mean over rows
    assert value_of("mae", positions).tolist() == [1, 1.5]
    assert metric("rmse").finish(4.0) == 2
    with pytest.raises(CorankError, match="no predicted ratings"):
        value_of("rmse", lists([[1]], [[1]]))


def test_coverage_and_novelty_by_hand() -> None:
    top = np.array([[0, 1], [0, -1]], np.int32)
    positions = Positions.of_lists([0, 1, 2], [1, 1], [1, 1], top=top, owners=np.array([4, 1, 2, 0, 0]), train_users=4)
    assert value_of("coverage@2", positions).tolist() == [2 / 5]
    assert value_of("coverage@1", positions).tolist() == [1 / 5]
    assert value_of("novelty@2", positions).tolist() == [1.0, 0.0]  # -log2(4/4) = 0, -log2(1/4) = 2
    with pytest.raises(CorankError, match="no top lists"):
        value_of("coverage@2", lists([[1]], [[1]]))


def test_gain_is_two_to_the_rating_even_for_play_counts() -> None:
    assert ndcg(lists([[2, 1]], [[1, 2]]))[0] == pytest.approx((1 + 3 / np.log2(3)) / (3 + 1 / np.log2(3)), abs=1e-12)
    huge = ndcg(lists([[2, 1]], [[1, 5000]]))[0]
    assert huge == pytest.approx(1 / np.log2(3), abs=1e-12)  # 2^5000 does not fit a float, the ratio does


def test_binary_gain_counts_relevant_rows() -> None:
    positions = lists([[3, 2, 1], [3, 2, 1]], [[1, 5000, 7], [4, 1, 5]], gain="binary")
    np.testing.assert_allclose(ndcg(positions), [1, 1])  # all are relevant, so every order is ideal
    liked = Positions.of_lists([0, 3, 6], [3, 2, 1] * 2, [1, 3, 4, 1, 2, 3], [0, 0, 1, 0, 0, 0], gain="binary")
    values = ndcg(liked, 3)
    assert values[0] == pytest.approx(1 / np.log2(4), abs=1e-12)  # one relevant row, in the third place
    assert np.isnan(values[1])  # none


def test_users_without_anything_relevant_are_not_defined() -> None:
    positions = lists([[1, 2], [1, 2]], [[0, 0], [0, 1]])
    for name in (*(f"{n}@2" for n in CUT), "auc"):
        values = value_of(name, positions)
        assert np.isnan(values[0]), name
        assert values[1] == (0.5 if name == "precision@2" else 1), name


def test_precision_of_all_users_is_the_printed_formula() -> None:
    """The sum over all n users of relevant items among the first k, over n k; `precision` leaves one of three out."""
    scores, value = [[4, 3, 2, 1]] * 3, [[1, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 1]]
    positions = lists(scores, value)
    for k, hits in ((1, 1), (3, 2), (4, 3), (8, 3)):
        assert value_of(f"precision_all@{k}", positions).mean() == pytest.approx(hits / (3 * k), abs=1e-12)
        kept = value_of(f"precision@{k}", positions)
        assert np.isnan(kept).tolist() == [False, True, False]
        assert np.nanmean(kept) == pytest.approx(hits / (2 * k), abs=1e-12)
    tied = lists([[0, 0, 0, 0]] * 3, value)
    assert value_of("precision_all@2", tied).tolist() == pytest.approx([0.5, 0, 0.25])


def test_with_binary_gains_the_first_place_counts_the_same_for_ndcg_hlu_and_precision() -> None:
    """As in the dissertation's tables of implicit feedback, whatever the ratings of the positives are."""
    rng = np.random.default_rng(4)
    scores = [rng.permutation(12).astype(float) for _ in range(30)]
    value = [rng.choice([0.0, 1.0, 2.5, 5.0], 12, p=[0.7, 0.1, 0.1, 0.1]) for _ in range(30)]
    positions = lists(scores, value, gain="binary")
    for name in ("ndcg@1", "hlu@1"):
        np.testing.assert_allclose(value_of(name, positions), value_of("precision@1", positions), atol=1e-12)
    assert 0 < np.nanmean(value_of("precision@1", positions)) < 1


def test_binary_half_life_utility_counts_relevant_rows() -> None:
    positions = lists([[3, 2, 1], [3, 2, 1]], [[1, 5000, 7], [0, 0, 5]], gain="binary")
    np.testing.assert_allclose(hlu(positions), [1, 2**-0.5])  # whatever the ratings of the relevant rows are


def test_precision_divides_by_k_even_when_the_list_is_shorter() -> None:
    assert precision(lists([[1, 2]], [[1, 1]]), 10)[0] == 0.2


# ---- names -------------------------------------------------------------------------------------------------------


def test_names_and_what_they_mean() -> None:
    assert {n.split("@")[0] for n in names()} >= {"ndcg", "rmse", "mae", "auc", "pairwise_error_authors", "coverage"}
    for name in names():
        assert metric(name).name == name
    assert metric(" NDCG@010 ").name == "ndcg@10"
    assert metric("ndcg@5").k == 5
    assert metric("map").k is None
    lower = {n for n in names() if not metric(n).higher_is_better}
    assert lower == {"rmse", "mae", "pairwise_error", "pairwise_error_authors"}


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("ndgc@10", "there is no metric 'ndgc@10'; did you mean 'ndcg@10'"),
        ("zzz", "there is no metric 'zzz'; known: auc"),
        ("ndcg@0", "whole number of at least 1, as in 'ndcg@10'"),
        ("ndcg@-3", "whole number of at least 1"),
        ("ndcg@x", "whole number of at least 1"),
        ("ndcg@", "whole number of at least 1"),
        ("ndcg@1.5", "whole number of at least 1"),
        ("recall", "write 'recall@10'"),
        ("rmse@10", "so write 'rmse'"),
        ("", "there is no metric ''"),
    ],
)
def test_bad_names_are_answered_with_a_sentence(name: str, sentence: str) -> None:
    with pytest.raises(CorankError, match=sentence.replace("'", ".")):
        metric(name)


def test_functions_go_wherever_names_go() -> None:
    def reaches_top(p: Positions) -> np.ndarray:
        return (p.above == 0).astype(float)

    mine = metric(reaches_top)
    assert (mine.name, mine.k, mine.higher_is_better) == ("reaches_top", None, True)
    assert metric(mine) is mine
    assert [m.name for m in metrics_of(["ndcg@5", reaches_top, "NDCG@5"])] == ["ndcg@5", "reaches_top"]
    assert metrics_of("auc")[0].name == "auc"
    assert metrics_of(Metric("x", None, reaches_top))[0].name == "x"
    for bad, sentence in ((5, "is not a metric"), (None, "is not a metric")):
        with pytest.raises(CorankError, match=sentence):
            metric(bad)
    with pytest.raises(CorankError, match="no metric is given"):
        metrics_of([])
