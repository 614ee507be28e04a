"""Given splits: one vocabulary for all parts, what is said of rows that cannot be predicted, and validation rows."""

from __future__ import annotations

import numpy as np
import pytest

import corank as cr
from corank.data.given import align, codes_in, stack, with_validation


def rows(*pairs: tuple, **more) -> cr.Dataset:
    user, item = zip(*pairs, strict=True)
    return cr.from_arrays(user=list(user), item=list(item), **more)


def ids(data: cr.Dataset) -> list[tuple]:
    return list(zip(data.users.ids[data.user].tolist(), data.items.ids[data.item].tolist(), strict=True))


TRAIN = [(1, 10), (1, 20), (2, 10), (2, 30), (3, 20)]


def test_rows_keep_their_part_and_their_ids():
    split = align(rows(*TRAIN), rows((1, 30), (3, 10)), rows((2, 20)))
    assert ids(split.train) == TRAIN
    assert ids(split.test) == [(1, 30), (3, 10)]
    assert ids(split.valid) == [(2, 20)]
    assert split.train.users is split.test.users
    assert split.notes == ()


def test_unknown_users_and_items_are_kept_and_counted(caplog):
    split = align(rows(*TRAIN), rows((1, 99), (7, 10), (7, 20)), name="mine")
    assert ids(split.test) == [(1, 99), (7, 10), (7, 20)]
    cold, new = split.notes
    assert cold.startswith("1 of 3 test rows have an item without training rows (1 item, such as 99)")
    assert new.startswith("2 of 3 test rows have a user without training rows (1 user, such as 7)")
    assert f"mine: {cold}" in caplog.text
    report = cr.evaluate(cr.Popularity().fit(split.train), split, "recall@10")
    assert f"note: {cold}" in str(report)


def test_pairs_in_two_parts_are_said():
    split = align(rows(*TRAIN), rows((1, 10), (1, 30)))
    assert split.notes[0].startswith("1 of 2 test rows repeat a (user, item) pair of the training rows")
    with pytest.raises(cr.CorankError, match="all 2 test rows are training rows"):
        align(rows(*TRAIN), rows((1, 10), (2, 10)))


@pytest.mark.parametrize(
    ("test", "says"), [(rows((8, 10)), "no user of the 1 test rows"), (rows((1, 90)), "no item of the 1 test rows")]
)
def test_files_about_other_things_are_refused(test, says):
    with pytest.raises(cr.CorankError, match=says):
        align(rows(*TRAIN), test)


def test_integers_and_texts_are_one_vocabulary():
    train = rows(("1", "a"), ("2", "a"), ("2", "b"), ("x", "b"))
    split = align(train, rows((1, "b"), (10, "a")))
    assert ids(split.test) == [("1", "b"), ("10", "a")]
    assert split.notes[0] == "some user ids are integers and some are not ('x'): all are compared as text"
    assert codes_in(cr.Vocab(np.array([1, 2, 10])), train.users).tolist() == [0, 1, -1]


def test_graphs_and_labels_follow_the_new_codes():
    graph = cr.from_scipy(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]], np.float32))
    train = rows(*TRAIN, user_graph=graph, item_labels={"title": np.array(["ten", "twenty", "thirty"], object)})
    test = rows((0, 10), (1, 15), item_labels={"title": np.array(["ten", "fifteen"], object)})
    split = align(train, test)
    assert split.train.users.ids.tolist() == [0, 1, 2, 3]
    assert split.train.user_graph.scipy().toarray()[1, 2] == 1
    assert split.train.item_labels["title"].tolist() == ["ten", "fifteen", "twenty", "thirty"]
    assert split.test.user_graph is split.train.user_graph


def many(users: int = 30, items: int = 20) -> cr.Dataset:
    return rows(*((u, (u + i) % 40) for u in range(users) for i in range(items)))


def test_validation_is_cut_from_training_and_named():
    split = align(many(), rows((0, 39), (1, 39)))
    cut = with_validation(split, seed=3)
    assert cut.name == "given split; validation: 10 % of each user's training rows, seed 3"
    assert np.bincount(cut.valid.user).tolist() == [2] * 30
    assert sorted(ids(cut.train) + ids(cut.valid)) == sorted(ids(split.train))
    assert cut.valid_from_train
    assert ids(with_validation(split, seed=3).valid) == ids(cut.valid)
    assert ids(with_validation(split, seed=4).valid) != ids(cut.valid)
    last = with_validation(split, ordered=True)
    assert ids(last.valid) == [(u, (u + 19) % 40) for u in range(30)]
    assert with_validation(cut) is cut


def test_users_with_few_rows_take_part_in_validation_and_keep_one_row():
    cut = with_validation(align(many(users=400, items=3), rows((0, 30))))
    assert 0.05 < len(cut.valid) / 1200 < 0.15
    assert np.bincount(cut.train.user).min() >= 1


def test_the_final_fit_uses_all_given_training_rows():
    split = with_validation(align(many(), rows((0, 39), (1, 39))))
    results = cr.Experiment(data=split, models=["popularity"]).run()
    assert results.best.model.seen_index_.size == 600
    assert any("final fit uses the validation rows too" in note for note in results.split.notes)
    assert "note: the final fit" in str(results)


def test_stack():
    data = stack([rows((1, 10), (2, 10)), rows((1, 5), (9, 10))])
    assert ids(data) == [(1, 10), (2, 10), (1, 5), (9, 10)]
