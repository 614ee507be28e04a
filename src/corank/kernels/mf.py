"""Ratings as a mean, two biases and an inner product, by stochastic gradient descent.

Objective of a rating y of item i by user u, with the error e = y - mean - b_u - c_i - x_u.v_i:

    e^2 + s_u |x_u|^2 + t_i |v_i|^2 + h_u b_u^2 + g_i c_i^2

and a step moves all of them along half of its gradient (Funk 2006; Koren, Bell and Volinsky 2009). An epoch costs about
4 d multiply-adds a rating. How blocks are worked on: see `sgd`; steps with other rows: see `sse`.

Dropout as in the code of Wu et al. (2019): the prediction is that of the whole vectors, but each coordinate of x_u and
of v_i moves only with probability keep / FULL, and then 1 / that as far, so that on average the step is the same.
keep = None is no dropout, and compiled apart: it costs nothing then. Biases always move.

Arrays: s, h float32[users], t, g float32[items]: the penalties; X float32[users, d], b float32[users], V float32[items,
d], c float32[items] are updated. bias_lr = 0 leaves b and c alone.
"""

from __future__ import annotations

import numpy as np

from .random import FULL, LOW, SHIFT, next_word, scatter, seek
from .sgd import Blocks, shuffle
from .threads import kernel


@kernel
def _move_some(
    state: np.ndarray,
    keep: np.uint32,
    move: np.float32,
    hold_x: np.float32,
    hold_v: np.float32,
    x: np.ndarray,
    v: np.ndarray,
) -> None:
    """x and v a step along move * (v, x) - (hold_x x, hold_v v), in coordinates drawn one by one."""
    longer = np.float32(FULL) / np.float32(keep)
    move, hold_x, hold_v = move * longer, hold_x * longer, hold_v * longer
    word = next_word(state)
    none = np.float32(0)
    for f in range(x.size):
        coins = scatter(word, f)
        a, b = x[f], v[f]
        x[f] = a + (move * b - hold_x * a if (coins & LOW) < keep else none)
        v[f] = b + (move * a - hold_v * b if (coins >> SHIFT) < keep else none)


@kernel
def step(
    start: int,
    stop: int,
    turn: int,
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
    """One pass over the blocks that are the groups' turn, in random order."""
    d = X.shape[1]
    state = np.empty(1, np.uint64)
    one = np.float32(1)
    for group in range(start, stop):
        block = group * blocks.side + (group + turn) % blocks.side
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
            move = lr * error
            if keep is None:
                keep_x, keep_v = one - lr * s[u], one - lr * t[i]
                for f in range(d):
                    old = x[f]
                    x[f] = keep_x * old + move * v[f]
                    v[f] = keep_v * v[f] + move * old
            else:
                _move_some(state, keep, move, lr * s[u], lr * t[i], x, v)
            b[u] += bias_lr * (error - h[u] * b[u])
            c[i] += bias_lr * (error - g[i] * c[i])
