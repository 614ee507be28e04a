"""What every model promises about its answers to every kind of question."""

from __future__ import annotations

import dataclasses
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import corank as cr
from board import ITEMS, USERS, assert_same_ranking, assert_sane, missing_item
from corank.answering.newer import continued
from corank.data import CSR

# Not personal: the same list for everyone, so there is no right colour and no similarity.
NOT_PERSONAL = ("popularity",)


def personal(cls):
    if cls.name() in NOT_PERSONAL:
        pytest.skip("not personal")


# ---- recommend ---------------------------------------------------------------------------------------------------


def test_all_users_by_default(model):
    ranking = model.recommend(k=3)
    assert_sane(ranking, USERS, 3)
    assert ranking.users.tolist() == list(range(USERS))


def test_one_id_is_enough(model):
    assert_same_ranking(model.recommend(5, k=3), model.recommend([5], k=3))


def test_users_keep_their_order_and_may_repeat(model):
    ranking = model.recommend([7, 2, 7], k=3)
    assert ranking.users.tolist() == [7, 2, 7]
    np.testing.assert_allclose(ranking.scores[0], ranking.scores[2], rtol=1e-4, atol=1e-5)


def test_ids_may_be_an_array(model):
    assert_same_ranking(model.recommend(np.array([1, 2])), model.recommend([1, 2]))


def test_no_users_give_an_empty_ranking(model):
    assert len(model.recommend([], k=3)) == 0


def test_batch_equals_single(model):
    batch = model.recommend(k=5)
    for user in range(USERS):
        at = slice(user, user + 1)
        part = dataclasses.replace(batch, users=batch.users[at], items=batch.items[at], scores=batch.scores[at])
        assert_same_ranking(model.recommend(user, k=5), part)


def test_seen_items_do_not_come_back(board, model):
    ranking = model.recommend(k=ITEMS)
    for user in range(USERS):
        assert not set(board.item[board.user == user]) & set(ranking.items[user].tolist())


def test_seen_items_can_be_asked_for(model):
    ranking = model.recommend(k=ITEMS, exclude_seen=False)
    assert (np.sort(ranking.items) == np.arange(ITEMS)).all()


def test_only_candidates_are_recommended(model):
    ranking = model.recommend(k=5, items=[3, 8, 9], exclude_seen=False)
    assert_sane(ranking, USERS, 5)
    assert (np.sort(ranking.items[:, :3]) == [3, 8, 9]).all()
    assert (ranking.items[:, 3:] == -1).all()


def test_candidates_and_seen_items_together(board, model):
    ranking = model.recommend(k=5, items=[0, 1])
    for user in range(USERS):
        left = {0, 1} - set(board.item[board.user == user].tolist())
        assert set(ranking.items[user].tolist()) - {-1} == left


def test_candidates_keep_the_order_of_the_full_list(model):
    full = [i for i, _ in model.recommend(3, k=ITEMS, exclude_seen=False)[3] if i in (1, 4, 6, 11)]
    assert [i for i, _ in model.recommend(3, k=4, items=[11, 6, 4, 1], exclude_seen=False)[3]] == full


def test_one_candidate_is_enough(model):
    assert [i for i, _ in model.recommend(0, items=5, exclude_seen=False)[0]] == [5]


def test_nothing_left_is_an_empty_list(board, model):
    seen = int(board.item[board.user == 4][0])
    ranking = model.recommend([4], k=3, items=[seen])
    assert ranking.items.tolist() == [[-1, -1, -1]]
    assert ranking[4] == []
    assert len(ranking.to_frame()) == 0


def test_k_beyond_the_catalogue_gives_all(model):
    ranking = model.recommend(k=10_000, exclude_seen=False)
    assert_sane(ranking, USERS, ITEMS)


@pytest.mark.parametrize("k", [0, -1, 1.5, "3", None])
def test_bad_k_is_a_sentence(model, k):
    with pytest.raises(cr.CorankError, match="k=") as error:
        model.recommend([0], k=k)
    assert "\n" not in str(error.value)
    with pytest.raises(cr.CorankError, match="k="):
        model.similar_items([0], k=k)


def test_unknown_user_is_named(model):
    with pytest.raises(cr.CorankError, match="4711"):
        model.recommend([1, 4711])


def test_user_of_another_type_is_unknown(model):
    with pytest.raises(cr.CorankError, match="'1'"):
        model.recommend(["1"])


def test_unknown_candidate_is_named(model):
    with pytest.raises(cr.CorankError, match="4711"):
        model.recommend([1], items=[2, 4711])


def test_right_answer_on_the_checkerboard(cls, trained):
    personal(cls)
    ranking = trained.recommend(k=1)
    assert ranking.items[:, 0].tolist() == [missing_item(user) for user in range(USERS)]


def test_asking_changes_nothing(model):
    before = model.recommend(k=4)
    model._score(np.arange(3, dtype=np.int32))[:] = -1
    model.recommend(histories=[[1, 2]])
    model.predict([1], [2])
    assert_same_ranking(model.recommend(k=4), before)


def test_many_threads_at_once_get_the_same_answer(model):
    alone = model.recommend(k=5)
    with ThreadPoolExecutor(4) as pool:
        for ranking in pool.map(lambda _: model.recommend(k=5), range(8)):
            assert_same_ranking(ranking, alone)


def test_scores_are_float32_of_the_right_shape(model):
    scores = model._score(np.array([3, 1, 3], np.int32))
    assert scores.dtype == np.float32
    assert scores.shape == (3, ITEMS)
    assert np.isfinite(scores).all()


def test_frame_has_the_four_columns(model):
    frame = model.recommend([2, 9], k=3).to_frame()
    assert frame.columns == ["user", "rank", "item", "score"]
    assert frame["user"].to_list() == [2, 2, 2, 9, 9, 9]
    assert frame["rank"].to_list() == [1, 2, 3, 1, 2, 3]


# ---- histories ---------------------------------------------------------------------------------------------------


def test_history_of_one_item(model):
    ranking = model.recommend(histories=[[3]], k=4)
    assert_sane(ranking, 1, 4)
    assert 3 not in ranking.items


def test_empty_history_still_gives_a_list(model):
    ranking = model.recommend(histories=[[], [1], []], k=4)
    assert_sane(ranking, 3, 4)
    assert (ranking.items >= 0).all()


def test_no_histories_give_an_empty_ranking(model):
    assert len(model.recommend(histories=[], k=4)) == 0


def test_repeated_items_in_a_history(model):
    ranking = model.recommend(histories=[[2, 2, 2, 4]], k=5)
    assert_sane(ranking, 1, 5)
    assert not {2, 4} & set(ranking.items[0].tolist())


def test_history_filter_can_be_switched_off(model):
    ranking = model.recommend(histories=[[2, 4]], k=ITEMS, exclude_seen=False)
    assert set(ranking.items[0].tolist()) == set(range(ITEMS))


def test_histories_in_any_form(model):
    lists = model.recommend(histories=[[2, 4, 6], [3]], k=4)
    named = model.recommend(histories={"ann": [2, 4, 6], "bob": [3]}, k=4)
    valued = model.recommend(histories=[dict.fromkeys([2, 4, 6], 5.0), {3: 5.0}], k=4)
    likes = cr.from_arrays(user=["ann"] * 3 + ["bob"], item=[2, 4, 6, 3], value=[5.0] * 4)
    table = model.recommend(histories=likes, k=4)
    assert lists.users.tolist() == [0, 1]
    assert named.users.tolist() == table.users.tolist() == ["ann", "bob"]
    assert_same_ranking(lists, named)
    assert_same_ranking(valued, table)


def test_histories_make_frames(model):
    frame = model.recommend(histories=[[2], [3]], k=2).to_frame()
    assert frame["user"].to_list() == [0, 0, 1, 1]
    assert model.recommend(histories={"ann": [2]}, k=1).to_frame()["user"].to_list() == ["ann"]


def test_users_with_newer_histories(model):
    """The lists are named by the users, the items of the histories are excluded, and the histories count."""
    together = model.recommend([1, 4], histories=[[3, 5], [2]], k=ITEMS)
    assert together.users.tolist() == [1, 4]
    for user, given in ((1, {3, 5}), (4, {2})):
        assert {item for item, _ in together[user]} == set(range(ITEMS)) - given
    alone = model.recommend(4, histories=[[2]], k=ITEMS)
    np.testing.assert_allclose(together.scores[1], alone.scores[0], rtol=1e-4, atol=1e-5)
    with pytest.raises(cr.CorankError, match="2 users and 1 histories: give one history per user"):
        model.recommend([1, 4], histories=[[2]])


def test_histories_may_be_rows_of_codes(model):
    listed = model.recommend(histories=[[2, 4, 6], [3]], k=4)
    value = np.full(4, getattr(model, "liked_", 1.0), np.float32)
    rows = CSR(np.array([0, 3, 4]), np.array([2, 4, 6, 3], np.int32), value, ITEMS)
    assert_same_ranking(model.recommend(histories=rows, k=4), listed)


def test_training_rows_with_newer_events(model):
    """Nothing new: the item that is best by the user's id is the best; what is new is excluded as seen."""
    users = np.array([3, 8], np.int32)
    rows = continued(model, users, [[], []], [[], []])
    np.testing.assert_array_equal(rows.indptr, [0, *np.cumsum(np.diff(model.seen_indptr_)[users])])
    own = model.recommend([3, 8], k=3)
    same = model.recommend([3, 8], histories=rows, k=3)
    if not model.predicts_ratings:  # all ratings of the board are equal
        assert same.items[:, 0].tolist() == own.items[:, 0].tolist()
    new = [int(own.items[0, 0]), int(own.items[1, 0])]
    after = model.recommend([3, 8], histories=continued(model, users, [[n] for n in new], [[5.0], [5.0]]), k=ITEMS)
    assert not set(after.items[0]) & {new[0], *_seen(model, 3)}
    assert not set(after.items[1]) & {new[1], *_seen(model, 8)}


def _seen(model, user):
    return model.seen_index_[model.seen_indptr_[user] : model.seen_indptr_[user + 1]].tolist()


def test_unknown_item_in_a_history_is_skipped_with_a_warning(model, caplog):
    ranking = model.recommend(histories=[[1, 4711], [3]], k=4)
    assert "skipped 1 of 3 items of the histories, which the model does not know: 4711" in caplog.text
    assert_same_ranking(ranking, model.recommend(histories=[[1], [3]], k=4))


def test_a_history_without_known_items_is_empty_beside_others_and_else_an_error(model, caplog):
    ranking = model.recommend(histories=[[4711, 4712], [3]], k=4)
    assert "1 of 2 histories have no known item: they are treated as empty" in caplog.text
    assert_same_ranking(ranking, model.recommend(histories=[[], [3]], k=4))
    with pytest.raises(cr.CorankError, match="none of the 2 items of the histories is known; unknown item 4711"):
        model.recommend(histories=[[4711, 4712]])
    table = cr.from_arrays(user=["x", "x"], item=[4711, 2])
    assert_same_ranking(model.recommend(histories=table, k=4), model.recommend(histories={"x": {2: 1.0}}, k=4))


def test_candidates_of_each_user(model):
    own = {7: [3, 8, 9], 2: [1], 5: []}
    ranking = model.recommend([2, 7, 5], k=5, items=own, exclude_seen=False)
    for user, row in ranking:
        alone = model.recommend([user], k=5, items=own[user], exclude_seen=False)[user] if own[user] else []
        assert [item for item, _ in row] == [item for item, _ in alone]
    listed = model.recommend([2, 7, 5], k=5, items=[own[2], np.array(own[7]), ()], exclude_seen=False)
    assert_same_ranking(ranking, listed)
    assert model.recommend(items=own, k=1).users.tolist() == [7, 2, 5]  # without users: those who have candidates
    named = model.recommend(histories={"x": [2], "y": [3]}, items={"y": [5], "x": [4]}, k=3)
    assert named.items.tolist() == [[4, -1, -1], [5, -1, -1]]


def test_candidates_that_do_not_fit_the_users_are_a_sentence(model):
    with pytest.raises(cr.CorankError, match=r"no candidates for 2 \(1 of 2 users are missing\)"):
        model.recommend([7, 2], items={7: [1]})
    with pytest.raises(cr.CorankError, match="has 3 lists for 2 users"):
        model.recommend([7, 2], items=[[1], [2], [3]])
    with pytest.raises(cr.CorankError, match="mixes ids and lists"):
        model.recommend([7, 2], items=[1, [2]])
    with pytest.raises(cr.CorankError, match="unknown item 4711"):
        model.recommend([7, 2], items={7: [1], 2: [4711]})


def test_similar_users_have_the_same_colour(model):
    if getattr(model, "user_factors_", None) is None:
        with pytest.raises(cr.CorankError, match="no vector per user"):
            model.similar_users([0])
        return
    ranking = model.similar_users([4, 7], k=3)
    assert ranking.vocab is model.users_
    assert (ranking.items % 2 == [[0], [1]]).all()
    assert ranking.to_frame().columns == ["user", "rank", "similar", "score"]
    everyone = model.similar_users(list(range(USERS)), k=USERS)
    assert (everyone.items != np.arange(USERS)[:, None]).all()
    with pytest.raises(cr.CorankError, match="unknown user 4711"):
        model.similar_users(4711)


@pytest.mark.parametrize("wrong", [["abc"], [5], [None]])
def test_a_history_that_is_no_list_is_a_sentence(model, wrong):
    with pytest.raises(cr.CorankError, match="history"):
        model.recommend(histories=wrong)


def test_history_is_answered_in_its_colour(cls, trained):
    personal(cls)
    ranking = trained.recommend(histories=[[0, 2, 4], [1, 3, 5]], k=5)
    assert (ranking.items % 2 == [[0], [1]]).all()


def test_history_of_a_known_user_gives_the_right_item(cls, board, trained):
    personal(cls)
    ranking = trained.recommend(histories=board, k=1)
    assert ranking.items[:, 0].tolist() == [missing_item(user) for user in range(USERS)]


def test_histories_batch_equals_single(model):
    histories = [[0, 2], [1, 3, 5], [7], []]
    batch = model.recommend(histories=histories, k=6)
    for row, one in enumerate(histories):
        single = model.recommend(histories=[one], k=6)
        np.testing.assert_allclose(single.scores[0], batch.scores[row], rtol=1e-4, atol=1e-5)


# ---- predict and similar -----------------------------------------------------------------------------------------


def test_predict_gives_a_number_a_pair(model):
    out = model.predict([1, 2, 1], [3, 4, 5])
    assert out.shape == (3,)
    assert out.dtype == np.float64
    assert np.isfinite(out).all()


def test_predict_agrees_with_recommend(model):
    ranking = model.recommend([3, 8], k=4)
    for row, user in enumerate([3, 8]):
        np.testing.assert_allclose(
            model.predict([user] * 4, ranking.items[row]), ranking.scores[row], rtol=1e-4, atol=1e-5
        )


def test_predict_needs_pairs(model):
    with pytest.raises(cr.CorankError, match="pairs"):
        model.predict([1, 2], [3])


def test_predict_names_what_it_does_not_know(model):
    with pytest.raises(cr.CorankError, match="4711"):
        model.predict([1], [4711])
    with pytest.raises(cr.CorankError, match="4712"):
        model.predict([4712], [1])


def test_predict_of_nothing(model):
    assert model.predict([], []).shape == (0,)


def test_predict_tells_the_colours_apart(cls, trained):
    personal(cls)
    right = trained.predict(list(range(USERS)), [missing_item(u) for u in range(USERS)])
    wrong = trained.predict(list(range(USERS)), [missing_item(u + 1) for u in range(USERS)])
    assert (right > wrong).all()


def test_similar_items_have_the_same_colour(cls, trained):
    if cls.name() in NOT_PERSONAL:
        with pytest.raises(cr.CorankError, match="similar"):
            trained.similar_items([0])
        return
    ranking = trained.similar_items([4, 7], k=3)
    assert ranking.users.tolist() == [4, 7]
    assert (ranking.items % 2 == [[0], [1]]).all()


def test_no_item_is_similar_to_itself(cls, trained):
    personal(cls)
    ranking = trained.similar_items(list(range(ITEMS)), k=ITEMS)
    assert_sane(ranking, ITEMS, ITEMS)
    assert (ranking.items != np.arange(ITEMS)[:, None]).all()


def test_similar_to_an_unknown_item_is_a_sentence(model):
    with pytest.raises(cr.CorankError, match="4711"):
        model.similar_items([4711])
