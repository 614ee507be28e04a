"""CSR, Dataset and the rules for repeated pairs."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array, csr_matrix, random_array

import corank as cr
from corank.data import settle_duplicates


def small(**options: object) -> cr.Dataset:
    """Users a, b, c and items 10, 20, 30; b touched 20 twice."""
    columns = {
        "user": ["b", "a", "b", "b", "c", "a"],
        "item": [20, 10, 30, 20, 10, 30],
        "value": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        "time": [50, 10, 20, 40, 30, 10],
    }
    return cr.from_arrays(**{**columns, **options})  # type: ignore[arg-type]


# ---- CSR ----


def test_csr_takes_rows_in_any_order() -> None:
    dense = np.array([[0, 1, 2], [0, 0, 0], [3, 0, 4], [5, 0, 0]], np.float32)
    csr = cr.from_scipy(dense)
    rows = np.array([3, 0, 1, 0, -1])
    assert np.array_equal(csr.take(rows).scipy().toarray(), dense[rows])
    mask = np.array([True, False, True, False])
    assert np.array_equal(csr.take(mask).scipy().toarray(), dense[mask])
    empty = csr.take(np.zeros(0, np.int64))
    assert (empty.rows, empty.columns, empty.index.size) == (0, 3, 0)


def test_csr_of_scipy_has_our_types() -> None:
    csr = cr.from_scipy(random_array((5, 7), density=0.4, format="coo", rng=0))
    assert (csr.indptr.dtype, csr.index.dtype, csr.value.dtype) == (np.int64, np.int32, np.float32)
    assert (csr.rows, csr.columns) == (5, 7)


# ---- Dataset ----


def test_rows_keep_the_order_of_the_file() -> None:
    data = small(duplicates="keep")
    assert data.users.ids[data.user].tolist() == ["b", "a", "b", "b", "c", "a"]
    assert data.items.ids[data.item].tolist() == [20, 10, 30, 20, 10, 30]
    assert len(data) == 6
    assert repr(data) == "Dataset(6 rows, 3 users, 3 items)"
    assert (data.user.dtype, data.value.dtype, data.time.dtype) == (np.int32, np.float32, np.int64)  # type: ignore[union-attr]


def test_without_a_value_each_row_counts_one() -> None:
    data = cr.from_arrays(user=[1, 2], item=[1, 1])
    assert data.value.tolist() == [1.0, 1.0]
    assert data.time is None


def test_csr_is_sorted_and_adds_repeated_pairs() -> None:
    data = small(duplicates="keep")
    expected = np.array([[2, 0, 6], [0, 5, 3], [5, 0, 0]], np.float32)
    for by, dense in (("user", expected), ("item", expected.T)):
        csr = data.csr(by)  # type: ignore[arg-type]
        assert np.array_equal(csr.scipy().toarray(), dense)
        for r in range(csr.rows):
            row = csr.index[csr.indptr[r] : csr.indptr[r + 1]]
            assert (np.diff(row) > 0).all()


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 5), st.integers(1, 9)), max_size=60))
def test_csr_equals_scipy(rows: list[tuple[int, int, int]]) -> None:
    user, item, value = (np.array(c, np.int64) for c in (zip(*rows, strict=True) if rows else ([], [], [])))
    data = cr.from_arrays(user=user, item=item, value=value, duplicates="keep")
    shape = (len(data.users), len(data.items))
    twin = csr_array((data.value, (data.user, data.item)), shape=shape)
    assert np.array_equal(data.csr().scipy().toarray(), twin.toarray())
    assert np.array_equal(data.csr("item").scipy().toarray(), twin.toarray().T)


def test_sequences_follow_time_and_then_the_file() -> None:
    data = small(duplicates="keep")
    steps = data.sequences()
    read = [data.items.ids[steps.index[steps.indptr[u] : steps.indptr[u + 1]]].tolist() for u in range(3)]
    assert read == [[10, 30], [30, 20, 20], [10]]  # a: equal times, so the file's order
    assert steps.value[steps.indptr[1] : steps.indptr[2]].tolist() == [3.0, 4.0, 1.0]
    unordered = small(duplicates="keep", time=None).sequences()
    assert data.items.ids[unordered.index[unordered.indptr[1] : unordered.indptr[2]]].tolist() == [20, 30, 20]


def test_take_keeps_the_vocabularies_and_join_undoes_it() -> None:
    data = small(duplicates="keep")
    mask = np.array([True, False, False, True, False, False])
    one, two = data.take(mask), data.take(np.flatnonzero(~mask))
    assert one.users is data.users
    assert one.value.tolist() == [1.0, 4.0]
    both = one.join(two)
    assert sorted(both.value.tolist()) == sorted(data.value.tolist())
    assert both.time is not None
    assert sorted(both.time.tolist()) == [10, 10, 20, 30, 40, 50]
    assert one.join(small(duplicates="keep", time=None)).time is None
    with pytest.raises(cr.CorankError, match="different users or items"):
        one.join(cr.from_arrays(user=["z"], item=[10]))


def test_compact_drops_what_does_not_occur() -> None:
    friends = cr.from_scipy(np.array([[0, 1, 2], [3, 0, 4], [5, 6, 0]]))
    data = small(user_graph=friends, user_labels={"age": [30, 40, 50]}, item_labels={"kind": np.array(["x", "y", "z"])})
    part = data.take(data.users.ids[data.user] != "b").compact()
    assert part.users.ids.tolist() == ["a", "c"]
    assert part.items.ids.tolist() == [10, 30]
    assert part.items.ids[part.item].tolist() == [10, 10, 30]
    assert part.user_graph is not None
    assert part.user_graph.scipy().toarray().tolist() == [[0, 2], [5, 0]]
    assert part.user_labels["age"].tolist() == [30, 50]
    assert part.item_labels["kind"].tolist() == ["x", "z"]


def test_dataset_cannot_be_changed() -> None:
    data = small()
    with pytest.raises(ValueError, match="read-only"):
        data.value[0] = 3
    with pytest.raises(AttributeError):
        data.value = np.zeros(3, np.float32)  # type: ignore[misc]


def test_empty_dataset_is_a_dataset() -> None:
    for ids in ([], pl.Series([], dtype=pl.String)):
        data = cr.from_arrays(user=ids, item=[], value=[], time=[])  # type: ignore[arg-type]
        assert len(data) == 0
        assert data.csr().rows == data.sequences().rows == len(data.compact()) == 0


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"value": [1.0, float("nan"), float("inf")]}, r"row 1 has the value nan, .* \(2 of 3\)"),
        ({"value": [1e39, 1, 1]}, "row 0 has the value inf"),
        ({"value": ["a", 1, 1]}, "value column holds something that is not a number"),
        ({"value": [1.0, 2.0]}, "value has 2 entries and user has 3"),
        ({"value": np.array([1j, 2, 3])}, "values must be plain numbers"),
        ({"value": np.array(["2020", "2021", "2022"], "datetime64[D]")}, "values must be plain numbers"),
        ({"time": [1, 2, float("nan")]}, "row 2 has the time nan"),
        ({"time": [1, 1e30, 2]}, r"row 1 has the time 1e\+30"),
        ({"time": np.array([1, 2, 2**63], np.uint64)}, "row 2 has the time 9223372036854775808"),
        ({"time": ["x", "y", "z"]}, "time column holds something that is not a number"),
        ({"time": np.array(["2020", "NaT", "2022"], "datetime64[s]")}, "row 1 has the time"),
        ({"item": [1, 2]}, "item has 2 entries and user has 3"),
        ({"duplicates": "lst"}, "duplicates='lst' is not a rule; did you mean 'last'?"),
        ({"user_graph": cr.from_scipy(np.eye(2))}, "the user graph is 2 x 2 and there are 3 users"),
        ({"user_labels": {"age": [1, 2]}}, "label 'age' has 2 entries and there are 3 users"),
        ({"item_labels": {"kind": 7}}, "label 'kind' has 1 entries and there are 3 items"),
    ],
)
def test_bad_columns_are_refused(change: dict[str, object], sentence: str) -> None:
    columns = {"user": [1, 2, 3], "item": [1, 2, 3], **change}
    with pytest.raises(cr.CorankError, match=sentence) as caught:
        cr.from_arrays(**columns)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_datetimes_become_unix_seconds() -> None:
    when = np.array(["1970-01-02", "2001-09-09T01:46:40"], "datetime64[ns]")
    data = cr.from_arrays(user=[1, 2], item=[1, 2], time=when)
    assert data.time is not None
    assert data.time.tolist() == [86_400, 1_000_000_000]
    floats = cr.from_arrays(user=[1, 2], item=[1, 2], time=[5.0, 6.9])
    assert floats.time is not None
    assert floats.time.tolist() == [5, 6]


# ---- repeated pairs ----


@pytest.mark.parametrize(
    ("rule", "value", "place"),
    [("last", 1.0, 0), ("first", 4.0, 3), ("sum", 5.0, 0), ("mean", 2.5, 0), ("max", 4.0, 0)],
)
def test_repeated_pairs_are_settled_by_time(rule: str, value: float, place: int) -> None:
    """(b, 20) has the value 1 at time 50 in row 0 and 4 at time 40 in row 3: the later one comes first in the file."""
    data = small(duplicates=rule)
    everything = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    everything[place] = value
    del everything[3 - place]
    assert data.value.tolist() == everything
    assert data.time is not None
    assert (50 in data.time.tolist()) == (place == 0)


def test_repeated_pairs_without_time_go_by_the_file() -> None:
    assert small(duplicates="last", time=None).value.tolist() == [2.0, 3.0, 4.0, 5.0, 6.0]
    assert small(duplicates="first", time=None).value.tolist() == [1.0, 2.0, 3.0, 5.0, 6.0]
    tied = small(duplicates="last", time=[40, 10, 20, 40, 30, 10])
    assert tied.value.tolist() == [2.0, 3.0, 4.0, 5.0, 6.0]


def test_repeated_pairs_can_be_kept_or_refused() -> None:
    assert len(small(duplicates="keep")) == 6
    with pytest.raises(cr.CorankError, match=r"user 'b' and item 20 occur together more than once \(1 repeated"):
        small(duplicates="error")
    distinct = small(duplicates="last")
    assert settle_duplicates(distinct, "error") is distinct


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 5), st.integers(0, 4)), max_size=40),
    st.sampled_from(["last", "first", "sum", "mean", "max"]),
)
def test_settling_equals_the_obvious_way(rows: list[tuple[int, int, int, int]], rule: str) -> None:
    groups: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for at, (u, i, v, t) in enumerate(rows):
        groups.setdefault((u, i), []).append((t, at, v))
    expected = {}
    for pair, events in groups.items():
        events.sort()
        values = [v for _, _, v in events]
        settle = {"last": values[-1], "first": values[0], "sum": sum(values), "max": max(values)}
        kept = events[0] if rule == "first" else events[-1]
        expected[kept[1]] = (*pair, settle.get(rule, sum(values) / len(values)), kept[0])
    columns = [list(c) for c in zip(*rows, strict=True)] if rows else [[], [], [], []]
    data = cr.from_arrays(**dict(zip(("user", "item", "value", "time"), columns, strict=True)), duplicates=rule)  # type: ignore[arg-type]
    assert data.time is not None
    got = list(
        zip(
            data.users.ids[data.user].tolist(),
            data.items.ids[data.item].tolist(),
            data.value.tolist(),
            data.time.tolist(),
            strict=True,
        )
    )
    want = [expected[at] for at in sorted(expected)]
    assert [g[:2] for g in got] == [w[:2] for w in want]
    assert [g[3] for g in got] == [w[3] for w in want]
    assert np.allclose([g[2] for g in got], [w[2] for w in want])


@pytest.mark.parametrize("make", [np.array, coo_array, csr_matrix], ids=["dense", "coo", "matrix"])
def test_a_graph_may_be_any_matrix(make):
    data = cr.from_arrays(user=[0, 1, 2], item=[0, 1, 0], user_graph=make([[0, 2, 0], [2, 0, 0], [0, 0, 0]]))
    assert data.user_graph.scipy().toarray().tolist() == [[0, 2, 0], [2, 0, 0], [0, 0, 0]]
