"""What every model promises about its explanations: they name the history, and they add up to the score."""

from __future__ import annotations

import numpy as np
import pytest

import corank as cr
from board import ITEMS

NOT_PERSONAL = ("popularity",)
EXACT = ("ease", "sparse_ease", "item_knn")
# Fold-ins that are solved exactly or step by step, so that no part of the score of a history is left.
ADDITIVE = ("wmf", "grwmf", "als", "mf", "grmf", "co_factor", "bpr")
OPTIMUM = ("primal_cr", "collrank", "list_mf", "cofirank", "sql_rank")  # by the gradient at the optimum


@pytest.fixture
def asked(cls, board):
    if cls.name() in NOT_PERSONAL:
        pytest.skip("not personal")
    values = {0: 5.0, 2: 5.0, 1: 1.0, 4: 5.0, 9: 1.0} if board.values == "ratings" else {0: 1.0, 2: 1.0, 4: 1.0, 6: 1.0}
    return values


def total(found, at):
    return sum(value for _, value in found.contributions[at]) + sum(rest[at] for rest in found.rest.values())


def test_contributions_and_rest_are_the_score(model, asked):
    found = model.explain(history=asked, items=[8, 3, 10])
    assert found.items == [8, 3, 10]
    scores = dict(model.recommend(histories=[asked], items=[8, 3, 10], exclude_seen=False, k=3)[0])
    for at, item in enumerate(found.items):
        assert found.scores[at] == pytest.approx(scores[item], rel=1e-4, abs=1e-5)
        assert total(found, at) == pytest.approx(found.scores[at], rel=2e-3, abs=2e-3 * max(map(abs, found.scores)))
        assert {item for item, _ in found.contributions[at]} == set(asked)
        values = [value for _, value in found.contributions[at]]
        assert values == sorted(values, reverse=True)


def test_nothing_is_left_where_the_algebra_is_exact(cls, model, asked):
    """The remainder is where a wrong decomposition would hide: it must not be there."""
    found = model.explain(history=asked, items=list(range(ITEMS)))
    if cls.name() in EXACT:
        assert (found.kind, found.rest) == ("exact", {})
    elif cls.name() in ADDITIVE:
        assert found.kind == "decomposition"
        assert "fold-in" not in found.rest
    elif cls.name() in OPTIMUM:
        assert found.kind == "decomposition"
        left = np.abs(found.rest.get("fold-in", [0.0])).max()
        resampled = cls.name() == "sql_rank"  # its steps end before the mean over the samples is reached
        assert left < (0.7 if resampled else 0.25) * np.abs(found.scores).max()
    else:
        assert found.kind == "leave-one-out"
        assert found.rest.keys() <= {"together"}


def test_known_users_are_explained_by_their_rows(cls, board, model, asked):
    found = model.explain(3, k=4)
    assert found.user == 3
    assert found.items == [item for item, _ in model.recommend([3], k=4)[3]]
    own = set(board.item[board.user == 3].tolist())
    for at in range(len(found)):
        assert {item for item, _ in found.contributions[at]} == own
        assert total(found, at) == pytest.approx(found.scores[at], rel=2e-3, abs=2e-3 * max(map(abs, found.scores)))
    if cls.name() in EXACT:
        assert not found.rest


def test_leave_one_out_is_there_for_every_model(model, asked):
    found = model.explain(history=asked, items=[8, 3], kind="leave-one-out")
    assert found.kind == "leave-one-out"
    all_of_it = dict(model.recommend(histories=[asked], items=[8, 3], exclude_seen=False)[0])
    for item in asked:
        without = {i: v for i, v in asked.items() if i != item}
        scores = dict(model.recommend(histories=[without], items=[8, 3], exclude_seen=False)[0])
        for at, one in enumerate(found.items):
            want = all_of_it[one] - scores[one]
            assert dict(found.contributions[at])[item] == pytest.approx(want, rel=1e-3, abs=2e-4)


def test_items_of_the_right_colour_are_the_reason(cls, trained, asked):
    """Even items speak for an even one: together more than the odd ones, which were disliked or are not there."""
    found = trained.explain(history=asked, items=[8])
    even = sum(value for item, value in found.contributions[0] if item % 2 == 0)
    odd = sum(value for item, value in found.contributions[0] if item % 2 == 1)
    if found.kind != "leave-one-out":  # without one of them a network may be surer than before
        assert even > 0
        assert even > odd or board_is_rated(cls)


def board_is_rated(cls):
    return cls.predicts_ratings or cls.needs_ratings


def test_a_user_with_a_newer_history_is_explained_by_it(cls, model):
    if cls.name() in NOT_PERSONAL:
        pytest.skip("not personal")
    found = model.explain(3, items=[6], history=[0, 2, 4])
    assert found.user == 3
    assert sorted(item for item, _ in found.contributions[0]) == [0, 2, 4]
    expected = model.recommend([3], histories=[[0, 2, 4]], k=30, exclude_seen=False)
    assert found.scores[0] == pytest.approx(dict(expected[3])[6], rel=1e-4, abs=1e-5)
    rest = sum(values[0] for values in found.rest.values())
    assert sum(value for _, value in found.contributions[0]) + rest == pytest.approx(
        found.scores[0], rel=1e-3, abs=1e-4
    )


def test_mistakes_are_sentences(cls, model):
    with pytest.raises(cr.CorankError, match="one user or one history"):
        model.explain()
    with pytest.raises(cr.CorankError, match="unknown user 4711"):
        model.explain(4711)
    with pytest.raises(cr.CorankError, match="one user at a time"):
        model.explain([1, 2])
    with pytest.raises(cr.CorankError, match="no kind of explanation 'exakt'; did you mean 'exact'"):
        model.explain(3, kind="exakt")
    with pytest.raises(cr.CorankError, match="has no items"):
        model.explain(history=[])
    if cls.name() in NOT_PERSONAL:
        with pytest.raises(cr.CorankError, match="the same items to everyone"):
            model.explain(3)
        return
    with pytest.raises(cr.CorankError, match="unknown item 4711"):
        model.explain(3, items=[4711])
    if not hasattr(model, "attention"):
        with pytest.raises(cr.CorankError, match="no attention weights"):
            model.explain(3, kind="attention")
