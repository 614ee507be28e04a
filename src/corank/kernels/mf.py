"""Biased matrix factorisation of ratings by stochastic gradient descent.

Objective of a rating y of item i by user u, with the error e = y - mean - b_u - c_i - x_u.v_i:

    e^2 + s_u |x_u|^2 + t_i |v_i|^2 + h_u b_u^2 + g_i c_i^2

A step moves all parameters against half of its gradient (Funk 2006; Koren, Bell and Volinsky 2009). An epoch costs
about 4 d multiply-adds per rating. For the blocks see `sgd`, for steps with replaced rows see `sse`.

Dropout as in the code of Wu et al. (2019): the prediction uses the whole vectors, but each coordinate of x_u and of v_i
is updated only with probability keep / FULL, with the update divided by that probability, so that the expected step is
the same. Biases are always updated. keep = None means no dropout; it is a specialisation of its own without overhead.

Shapes: s, h float32[users], t, g float32[items], the regularisation; X float32[users, d], b float32[users], V
float32[items, d], c float32[items] are updated. bias_lr = 0 leaves b and c unchanged.
"""

from __future__ import annotations

import numpy as np

from .random import FULL, LOW, SHIFT, next_word, scatter, seek
from .sgd import Blocks, shuffle
from .threads import inline, kernel


@inline
def _dropout_step(
    state: np.ndarray,
    keep: np.uint32,
    rate: np.float32,
    shrink_x: np.float32,
    shrink_v: np.float32,
    x: np.ndarray,
    v: np.ndarray,
) -> None:
    """Update x by rate * v - shrink_x x and v by rate * x - shrink_v v, in randomly chosen coordinates."""
    boost = np.float32(FULL) / np.float32(keep)
    rate, shrink_x, shrink_v = rate * boost, shrink_x * boost, shrink_v * boost
    word = next_word(state)
    zero = np.float32(0)
    for f in range(x.size):
        coins = scatter(word, f)
        a, b = x[f], v[f]
        x[f] = a + (rate * b - shrink_x * a if (coins & LOW) < keep else zero)
        v[f] = b + (rate * a - shrink_v * b if (coins >> SHIFT) < keep else zero)


@kernel
def step(
    start: int,
    stop: int,
    round_: int,
    blocks: Blocks,
    seed: int,
    lr: np.float32,
    bias_lr: np.float32,
    keep: np.uint32 | None,
    mean: np.float32,
    s: np.ndarray,
    h: np.ndarray,
    t: np.ndarray,
    g: np.ndarray,
    X: np.ndarray,
    b: np.ndarray,
    V: np.ndarray,
    c: np.ndarray,
) -> None:
    """Process the blocks of this round for the groups start..stop, entries in random order."""
    d = X.shape[1]
    state = np.empty(1, np.uint64)
    one = np.float32(1)
    for group in range(start, stop):
        block = group * blocks.side + (group + round_) % blocks.side
        low, high = blocks.first[block], blocks.first[block + 1]
        seek(state, seed, block)
        shuffle(state, low, high, blocks.user, blocks.item, blocks.value)
        for p in range(low, high):
            u, i = blocks.user[p], blocks.item[p]
            x, v = X[u], V[i]
            dot = np.float32(0)
            for f in range(d):
                dot += x[f] * v[f]
            error = blocks.value[p] - mean - b[u] - c[i] - dot
            rate = lr * error
            if keep is None:
                keep_x, keep_v = one - lr * s[u], one - lr * t[i]
                for f in range(d):
                    old = x[f]
                    x[f] = keep_x * old + rate * v[f]
                    v[f] = keep_v * v[f] + rate * old
            else:
                _dropout_step(state, keep, rate, lr * s[u], lr * t[i], x, v)
            b[u] += bias_lr * (error - h[u] * b[u])
            c[i] += bias_lr * (error - g[i] * c[i])
