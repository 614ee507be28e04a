"""Models with scores that can be looked up, and evaluation by sorting lists."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

import corank as cr
from corank.data import CSR
from corank.model import Model
from corank.params import param
from reference import list_metrics


@dataclass(kw_only=True, eq=False)
class Table(Model):
    """Random scores from a table; a history is scored by its last item and its length."""

    levels: int = param(10**6, "number of different scores")
    predicts_ratings: ClassVar[bool] = True

    def _fit(self, data: cr.Dataset, rows: CSR, training) -> None:
        shape = (len(data.users), len(data.items))
        self.table_ = (training.rng.integers(0, self.levels, shape) / self.levels * 5).astype(np.float32)

    def _score(self, users):
        return self.table_[users]

    def _score_histories(self, histories: CSR):
        last = [histories.index[b - 1] if b > a else 0 for a, b in pairwise(histories.indptr)]
        place = np.arange(len(self.items_)) * 7919
        length = np.diff(histories.indptr)[:, None]
        return ((place * (3 + np.array(last)[:, None]) + length) % 1013).astype(np.float32)


@dataclass(kw_only=True, eq=False)
class Ordered(Table):
    """Reads histories, keeps what it was given, and must never be asked by user code."""

    order_matters: ClassVar[bool] = True

    def _fit(self, data: cr.Dataset, rows: CSR, training) -> None:
        self.asked_: list[list[int]] = []

    def _score(self, users):
        raise AssertionError("a model that reads histories was asked by user code")

    def _score_histories(self, histories: CSR):
        self.asked_ += [histories.index[a:b].tolist() for a, b in pairwise(histories.indptr)]
        return super()._score_histories(histories)


def play_counts(users: int = 400, items: int = 300, rows: int = 12_000, seed: int = 0) -> cr.Dataset:
    """Plays of songs: a heavy tail of habits (users), songs that fit and chance, from 1 to some ten thousand."""
    data = cr.synthetic.realistic(users=users, items=items, rows=rows, seed=seed).data
    rng = np.random.default_rng(seed)
    habit = rng.lognormal(2, 1.2, users)[data.user]
    plays = np.ceil(habit * np.exp2(data.value - 3) * rng.lognormal(0, 1.5, len(data)))
    return cr.from_arrays(user=data.user, item=data.item, value=plays, time=data.time)


def some_data() -> cr.Dataset:
    rng = np.random.default_rng(0)
    user, item = rng.integers(0, 60, 1200), (45 * rng.random(1200) ** 2).astype(int)
    return cr.from_arrays(user=user, item=item, value=rng.integers(1, 6, 1200), time=rng.integers(0, 500, 1200))


def items_of(part: cr.Dataset, user: int) -> dict[int, float]:
    mine = part.user == user
    return dict(zip(part.item[mine].tolist(), part.value[mine].tolist(), strict=True))


def brute(
    scores, split: cr.Split, candidates_of, name: str, k: int, threshold: float = -np.inf, gain: str = "binary"
) -> dict[int, float]:
    """The metric of each test user by sorting a list of candidates (scores are distinct)."""
    out = {}
    for user in np.unique(split.test.user).tolist():
        test = items_of(split.test, user)
        order = sorted(candidates_of(user, test), key=lambda i: -scores[user, i])
        relevant = [i in test and test[i] >= threshold for i in order]
        graded = name not in ("ndcg", "hlu") or gain == "exponential"
        out[user] = list_metrics([test.get(i, 0) for i in order] if graded else relevant, relevant, k)[name]
    return out
