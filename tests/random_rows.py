"""Small random data without any structure, and its dense matrix."""

from __future__ import annotations

import numpy as np

import corank as cr


def random_data(seed=0, users=25, items=14, n=120):
    rng = np.random.default_rng(seed)
    return cr.from_arrays(user=rng.integers(0, users, n), item=rng.integers(0, items, n), value=rng.integers(1, 6, n))


def presence(data):
    X = np.zeros((len(data.users), len(data.items)))
    X[data.user, data.item] = 1
    return X
