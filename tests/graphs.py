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
