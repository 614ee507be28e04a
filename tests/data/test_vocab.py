"""Vocabularies: ids in, codes out, and what is said about ids that are unknown or unusable."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import corank as cr
from corank.data import Vocab

INTS = st.lists(st.integers(-(2**62), 2**62), max_size=30)
WORDS = st.lists(st.text(st.characters(codec="utf-8"), max_size=4), min_size=1, max_size=30)


@given(INTS | WORDS)
def test_vocab_codes_lead_back_to_the_ids(column: list[int] | list[str]) -> None:
    vocab, codes = Vocab.build(column)
    assert vocab.ids.tolist() == sorted(set(column))
    assert vocab.ids[codes].tolist() == column
    assert vocab.codes(column).tolist() == codes.tolist()


def test_vocab_of_dense_and_of_sparse_integers_agree() -> None:
    dense, codes = Vocab.build(np.array([5, 3, 5, 9]))
    sparse, far = Vocab.build(np.array([5, 3, 5, 9]) * 10**12)
    assert (sparse.ids // 10**12).tolist() == dense.ids.tolist() == [3, 5, 9]
    assert codes.tolist() == far.tolist() == [1, 0, 1, 2]
    assert codes.dtype == far.dtype == np.int32


@pytest.mark.parametrize(
    "column",
    [
        np.array(["b", "a", "b"]),
        np.array(["b", "a", "b"], dtype=object),
        pl.Series(["b", "a", "b"]),
        pl.Series(["b", "a", "b"], dtype=pl.Categorical),
        ("b", "a", "b"),
    ],
)
def test_vocab_takes_strings_in_any_container(column: object) -> None:
    vocab, codes = Vocab.build(column)
    assert vocab.strings
    assert vocab.ids.tolist() == ["a", "b"]
    assert codes.tolist() == [1, 0, 1]
    assert all(type(i) is str for i in vocab.ids.tolist())


def test_vocab_says_unknown_with_minus_one() -> None:
    ints, _ = Vocab.build([10, 20, 30])
    assert ints.codes([20, 25, "20", None, float("nan")]).tolist() == [1, -1, -1, -1, -1]
    assert ints.codes(np.array([30, 31, -5, 10])).tolist() == [2, -1, -1, 0]
    assert ints.codes(np.array([20, 2**63 + 20], np.uint64)).tolist() == [1, -1]
    words, _ = Vocab.build(["x", "y"])
    assert words.codes(["y", 0, "z"]).tolist() == [1, -1, -1]
    assert Vocab(np.zeros(0, np.int64)).codes(np.array([1, 2])).tolist() == [-1, -1]


def test_vocab_requires_known_ids_in_a_sentence() -> None:
    ints, _ = Vocab.build([10, 20])
    words, _ = Vocab.build(["alice", "bob"])
    assert ints.require([20, 10], "user").tolist() == [1, 0]
    with pytest.raises(cr.CorankError, match="unknown user 11: it is not among the 2 users the data has"):
        ints.require([10, 11], "user")
    with pytest.raises(cr.CorankError, match=r"unknown user '10': .* ids here are integers"):
        ints.require(["10"], "user")
    with pytest.raises(cr.CorankError, match=r"unknown user 'alise': .* did you mean 'alice'"):
        words.require(["alise"], "user")


def test_vocab_parses_words_of_the_command_line() -> None:
    assert Vocab.build([10])[0].parse("10") == 10
    assert Vocab.build(["10"])[0].parse("10") == "10"
    with pytest.raises(cr.CorankError, match="id 'ten' is not an integer"):
        Vocab.build([10])[0].parse("ten")


def test_vocab_is_frozen_and_compares_by_ids() -> None:
    vocab, _ = Vocab.build([1, 2])
    with pytest.raises(ValueError, match="read-only"):
        vocab.ids[0] = 7
    assert vocab == Vocab.build([2, 1, 1])[0]
    assert vocab != Vocab.build(["1", "2"])[0]
    assert vocab != [1, 2]
    assert repr(Vocab.build([1, 2, 3, 4])[0]) == "Vocab(4 ints: 1, 2, 3, ...)"


@pytest.mark.parametrize(
    ("ids", "sentence"),
    [
        ([1, "a"], "user ids are of type int, str"),
        (["a", None], "user ids are of type NoneType, str"),
        ([b"a"], "user ids are of type bytes"),
        ([1.5, 2.0], "got 1.5: missing, fractional"),
        ([1.0, float("nan")], "got nan: missing"),
        ([1e30], "too large"),
        ([2**63 + 1, 2], "too large|does not fit"),
        ([2**70, 2], "do not fit in signed 64-bit"),
        (np.array([2**63 + 1], np.uint64), "9223372036854775809 does not fit"),
        (pl.Series(["a", None]), "1 .*user ids are missing"),
        ([[1, 2]], r"one column, got an array of shape \(1, 2\)"),
        ("alice", r"one column, got an array of shape \(\)"),
    ],
)
def test_bad_ids_are_refused(ids: object, sentence: str) -> None:
    with pytest.raises(cr.CorankError, match=sentence):
        cr.from_arrays(user=ids, item=[1, 2])  # type: ignore[arg-type]


def test_whole_floats_and_booleans_are_integers() -> None:
    assert cr.from_arrays(user=[3.0, 1.0], item=[True, False]).users.ids.tolist() == [1, 3]


@pytest.mark.parametrize("column", [range(-30, 3000, 3), [f"ä{n}" for n in range(1000)], [2**53, 2**53 + 2, 2**62]])
def test_few_and_many_ids_are_found_alike(column: list[int] | list[str]) -> None:
    """A few ids are found by bisection, many by a dict; both must agree, whatever is asked for."""
    asked = [*list(column)[::300], 0, 1, True, 3.0, 4.5, -np.inf, np.nan, 2.0**53, 2**53 + 1, 2**70, np.int64(3)]
    asked += ["ä3", "ä", "zz", "", np.str_("ä7"), None, b"x", (1, 2), Decimal(3), Decimal("3.5"), "3"]
    vocab, _ = Vocab.build(list(column))
    expected = {key: code for code, key in enumerate(vocab.ids.tolist())}
    few = [int(vocab.codes([one])[0]) if not isinstance(one, tuple) else -1 for one in asked]
    if len(vocab) > 20:
        assert vocab._codes is None  # nothing was built for single ids
    many = vocab.codes([*asked, *[None] * len(vocab)])[: len(asked)].tolist()
    assert vocab._codes is not None
    assert few == many == [expected.get(one.item() if isinstance(one, np.generic) else one, -1) for one in asked]
