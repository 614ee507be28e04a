"""Made-up ratings with graphs, and rows of many lengths, that tests of models with a graph share."""

from __future__ import annotations

import dataclasses

import numpy as np

import corank as cr


def random_graph(n, seed, share=0.15, weighted=False):
    rng = np.random.default_rng(seed)
    A = np.triu(rng.random((n, n)) < share, 1).astype(float)
    if weighted:
        A *= rng.uniform(0.5, 2, (n, n))
    return cr.from_scipy(A + A.T)


def tribes(users, items, cold, seed=0):
    """Two tribes with a taste each and ties within; the last `cold` users have ties and no ratings."""
    rng = np.random.default_rng(seed)
    tribe, kind = np.arange(users) % 2, np.arange(items) % 2
    user, item = np.nonzero(rng.random((users, items)) < 0.6)
    value = np.where(tribe[user] == kind[item], 5, 1) + rng.integers(-1, 2, user.size)
    ties = (rng.random((users, users)) < 0.3) & (tribe[:, None] == tribe)
    data = cr.from_arrays(user=user, item=item, value=np.clip(value, 1, 5).astype(float))
    data = dataclasses.replace(data, user_graph=cr.from_scipy(np.maximum(ties, ties.T).astype(float)))
    return data.take(data.user < users - cold)


def rated(seed=0, *, users, items, n, levels=5, cold=(), **graph):
    """Ratings of 1 to `levels` with a graph on both sides; users in `cold` have none."""
    rng = np.random.default_rng(seed)
    user = np.concatenate([np.arange(users), rng.integers(0, users, n)])
    item = np.concatenate([np.arange(users) % items, rng.integers(0, items, n)])
    data = cr.from_arrays(user=user, item=item, value=rng.integers(1, levels + 1, user.size))
    user_graph, item_graph = (random_graph(size, seed + k, **graph) for k, size in ((1, users), (2, items)))
    return dataclasses.replace(data.take(~np.isin(data.user, cold)), user_graph=user_graph, item_graph=item_graph)


def ragged(d, seed=0, columns=30):
    """Rows of many lengths: empty ones, those shorter than the 8 entries taken at a time, and longer ones."""
    rng = np.random.default_rng(seed)
    lengths = np.array([0, 1, 2, 7, 8, 9, 15, 16, 17, 24, 29, 0])
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    index = np.concatenate([rng.permutation(columns)[:n] for n in lengths]).astype(np.int32)
    value = rng.integers(1, 6, index.size).astype(np.float32)
    reg = rng.uniform(0.1, 2, lengths.size).astype(np.float32)
    V = rng.standard_normal((columns, d)).astype(np.float32)
    c = rng.standard_normal(columns).astype(np.float32)
    return indptr, index, value, 3.2, reg, 0.7, V, c
