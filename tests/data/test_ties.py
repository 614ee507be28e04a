"""The order of rows with equal timestamps: as in the file, or by item id, in the split and in what models read."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import corank as cr


def rated(item, time, **more) -> cr.Dataset:
    return cr.from_arrays(user=[7] * len(item), item=item, time=time, **more)


def ids(part: cr.Dataset) -> list:
    return part.items.ids[part.sequences().index].tolist()


def test_the_rule_decides_which_row_is_the_last() -> None:
    data = rated([10, 9, 2, 30, 4], [5, 5, 5, 1, 5])
    file = cr.leave_last_out(data)
    assert (ids(file.train), ids(file.valid), ids(file.test)) == ([30, 10, 9], [2], [4])
    item = cr.leave_last_out(data, ties="item")  # as numbers: 9 before 10
    assert (ids(item.train), ids(item.valid), ids(item.test)) == ([30, 2, 4], [9], [10])
    assert file.name == "leave-last-out"
    assert item.name == "leave-last-out, equal times by item id"
    assert (file.ties, item.ties) == ("file", "item")


def test_text_ids_are_ordered_as_text() -> None:
    split = cr.leave_last_out(rated(["b10", "b9", "a", "c"], [1, 1, 1, 0]), ties="item")
    assert (ids(split.train), ids(split.valid), ids(split.test)) == (["c", "a"], ["b10"], ["b9"])


def test_every_part_and_every_join_keeps_the_order() -> None:
    rng = np.random.default_rng(0)
    data = cr.from_arrays(user=rng.integers(0, 30, 800), item=rng.integers(0, 90, 800), time=rng.integers(0, 5, 800))
    split = cr.leave_last_out(data, ties="item")
    order = np.lexsort((data.item, data.time, data.user))
    expected = np.split(data.item[order], np.cumsum(np.bincount(data.user))[:-1])
    for together in (split.known("test").join(split.test), split.all_rows(), split.refit().train.join(split.test)):
        rows = together.sequences()
        assert [rows.index[a:b].tolist() for a, b in zip(rows.indptr[:-1], rows.indptr[1:], strict=True)] == [
            mine.tolist() for mine in expected
        ]
    assert split.refit().ties == "item"


def test_a_cut_in_time_holds_out_the_same_rows_in_another_order() -> None:
    data = rated([9, 3, 7, 2, 8, 1], [1, 1, 1, 2, 2, 2])
    file, item = (cr.time_cut(data, test=0.5, valid=0, ties=ties) for ties in ("file", "item"))
    assert (ids(file.train), ids(file.test)) == ([9, 3, 7], [2, 8, 1])
    assert (ids(item.train), ids(item.test)) == ([3, 7, 9], [1, 2, 8])
    assert item.name == "time cut 0.5 test 0 valid, equal times by item id"


def test_models_learn_from_the_order_of_the_rule() -> None:
    data = cr.from_arrays(user=np.repeat(np.arange(50), 4), item=np.tile([3, 2, 1, 0], 50), time=np.zeros(200, int))
    file = cr.leave_last_out(data).train.sequences().index.reshape(-1, 2)
    item = cr.leave_last_out(data, ties="item").train.sequences().index.reshape(-1, 2)
    assert (file == [3, 2]).all()
    assert (item == [0, 1]).all()


def test_without_ties_the_rules_differ_in_name_and_fingerprint_alone() -> None:
    rng = np.random.default_rng(1)
    data = cr.from_arrays(user=np.arange(400) % 40, item=rng.integers(0, 60, 400), time=np.arange(400))
    parts = [cr.leave_last_out(data, ties=ties) for ties in ("file", "item")]
    for name in ("train", "valid", "test"):
        one, other = (getattr(split, name) for split in parts)
        np.testing.assert_array_equal(one.sequences().index, other.sequences().index)
    reports = [cr.evaluate(cr.Popularity().fit(s.train), s, ["ndcg@10"], bootstrap=0) for s in parts]
    assert reports[0]["ndcg@10"] == reports[1]["ndcg@10"]
    assert reports[0].fingerprint != reports[1].fingerprint
    assert "leave-last-out, equal times by item id (test" in str(reports[1])
    with pytest.raises(cr.CorankError, match="split"):
        cr.compare(reports)


def test_a_bad_rule_and_data_without_times_are_sentences() -> None:
    data = rated([1, 2, 3, 4], [1, 1, 1, 1])
    for wrong in ("id", None, 3):
        with pytest.raises(cr.CorankError, match=r"ties=.* ordered as in the 'file' or by 'item' id"):
            cr.leave_last_out(data, ties=wrong)  # type: ignore[arg-type]
    timeless = dataclasses.replace(data, time=None)
    with pytest.raises(cr.CorankError, match="ties='item' orders rows of equal timestamps and this data has none"):
        cr.leave_last_out(timeless, ties="item")
    assert len(cr.leave_last_out(timeless, ties="file").test) == 1
