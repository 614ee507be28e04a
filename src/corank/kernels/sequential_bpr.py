"""Sequential BPR: gradient steps for samples (user u, last item i, next item j, negative k) of first-order transitions.

Loss of a sample, with the scores x_j and x_k of next item and negative after i (Rendle et al. 2010):

    log(1 + exp(-(x_j - x_k))) + L2 regularisation of the rows that the sample uses

    chains         x_j = [U_u | P_i] . V_j, two tables side by side: p_u . q_j + P_i . Q_j of FPMC; FMC has no columns U
    translations   x_j = b_j - d(G_i + t + T_u, G_j), d the squared Euclidean or the L1 distance (He et al. 2017); after
                   each step the rows of G that moved are put back into the unit ball

Negatives are uniform over the items that the user does not have; a user who has all of them has none, and the sample is
skipped. They are drawn for many samples at once, on several threads, with a random stream per sample. The steps
themselves are taken one after the other on one thread, since any two samples may share rows of three tables: the result
cannot depend on the number of threads. A step costs about 8 d multiply-adds per negative.

Shapes: n samples; user, last, following int32[n]; negative int32[n, c], -1 where there is none; indptr int64[users + 1]
and index int32 (increasing and distinct within a row) the items of each user; U float32[users, a], P float32[items, d],
V float32[items, a + d]; G float32[items, d], t float32[d], T float32[users, d], bias float32[items].
"""

from __future__ import annotations

import numpy as np

from .bpr import pull
from .random import seek
from .sgd import random_absent
from .threads import inline, kernel


@kernel
def negatives(
    start: int,
    stop: int,
    seed: int,
    user: np.ndarray,
    indptr: np.ndarray,
    index: np.ndarray,
    items: int,
    negative: np.ndarray,
) -> None:
    """Draw the negatives of the samples start..stop; each sample has its own random stream."""
    state = np.empty(1, np.uint64)
    for p in range(start, stop):
        low, high = indptr[user[p]], indptr[user[p] + 1]
        seek(state, seed, p)
        for c in range(negative.shape[1]):
            negative[p, c] = -1 if high - low == items else random_absent(state, index, low, high, items)


# ---- chains ----------------------------------------------------------------------------------------------------------


@inline
def _chain_margin(u: np.ndarray, q: np.ndarray, v: np.ndarray, w: np.ndarray) -> np.float32:
    """[u | q] . (v - w)."""
    a = u.size
    total = np.float32(0)
    for f in range(a):
        total += u[f] * (v[f] - w[f])
    for f in range(q.size):
        total += q[f] * (v[a + f] - w[a + f])
    return total


@kernel
def chain_steps(
    user: np.ndarray,
    last: np.ndarray,
    following: np.ndarray,
    negative: np.ndarray,
    lr: np.float32,
    reg_user: np.float32,
    reg: np.float32,
    U: np.ndarray,
    P: np.ndarray,
    V: np.ndarray,
) -> None:
    """One step per sample and negative, in this order; regularisation reg_user / 2 |u|^2 + reg / 2 (all others)."""
    a = U.shape[1]
    shrink_user, shrink = np.float32(1) - lr * reg_user, np.float32(1) - lr * reg
    for p in range(user.size):
        u, q, v = U[user[p]], P[last[p]], V[following[p]]
        for c in range(negative.shape[1]):
            if negative[p, c] < 0:
                continue
            w = V[negative[p, c]]
            rate = lr * pull(_chain_margin(u, q, v, w))
            for f in range(a):
                x, y, z = u[f], v[f], w[f]
                u[f] = shrink_user * x + rate * (y - z)
                v[f] = shrink * y + rate * x
                w[f] = shrink * z - rate * x
            for f in range(P.shape[1]):
                x, y, z = q[f], v[a + f], w[a + f]
                q[f] = shrink * x + rate * (y - z)
                v[a + f] = shrink * y + rate * x
                w[a + f] = shrink * z - rate * x


@kernel
def chain_margins(
    start: int,
    stop: int,
    user: np.ndarray,
    last: np.ndarray,
    following: np.ndarray,
    negative: np.ndarray,
    U: np.ndarray,
    P: np.ndarray,
    V: np.ndarray,
    margin: np.ndarray,
) -> None:
    """margin[p, c] = x_j - x_k, float32[n, c]; NaN where there is no negative."""
    for p in range(start, stop):
        for c in range(negative.shape[1]):
            k = negative[p, c]
            margin[p, c] = _chain_margin(U[user[p]], P[last[p]], V[following[p]], V[k]) if k >= 0 else np.nan


@kernel
def chain_fold_in(
    start: int,
    stop: int,
    indptr: np.ndarray,
    sequence: np.ndarray,
    has_indptr: np.ndarray,
    has: np.ndarray,
    passes: int,
    negatives: int,
    lr: np.float32,
    reg_user: np.float32,
    P: np.ndarray,
    V: np.ndarray,
    X: np.ndarray,
) -> None:
    """The user part of each history, from 0: steps of training on it alone, with a learning rate that falls to 0.

    indptr, sequence : the histories in time order; has_indptr, has : their distinct items in increasing order.
    X float32[rows, a]. All rows draw from the same stream: a user gets the same vector, whatever the other rows are.
    """
    state = np.empty(1, np.uint64)
    for r in range(start, stop):
        x = X[r]
        x[:] = 0
        low, high = has_indptr[r], has_indptr[r + 1]
        if high - low == V.shape[0]:
            continue
        seek(state, 0, 0)
        for done in range(passes):
            lr_now = lr * np.float32(passes - done) / np.float32(passes)
            shrink = np.float32(1) - lr_now * reg_user
            for p in range(indptr[r] + 1, indptr[r + 1]):
                q, v = P[sequence[p - 1]], V[sequence[p]]
                for _ in range(negatives):
                    w = V[random_absent(state, has, low, high, V.shape[0])]
                    rate = lr_now * pull(_chain_margin(x, q, v, w))
                    for f in range(x.size):
                        x[f] = shrink * x[f] + rate * (v[f] - w[f])


# ---- translations ----------------------------------------------------------------------------------------------------


@inline
def _translation_margin(
    l1: bool, i: np.ndarray, t: np.ndarray, u: np.ndarray, j: np.ndarray, k: np.ndarray
) -> np.float32:
    """d(i + t + u, k) - d(i + t + u, j)."""
    total = np.float32(0)
    if l1:
        for f in range(t.size):
            x = i[f] + t[f] + u[f]
            total += abs(x - k[f]) - abs(x - j[f])
    else:
        for f in range(t.size):
            x = i[f] + t[f] + u[f]
            total += (x - k[f]) * (x - k[f]) - (x - j[f]) * (x - j[f])
    return total


@inline
def _into_ball(row: np.ndarray) -> None:
    """Scale a row that is longer than 1 to length 1."""
    square = np.float32(0)
    for f in range(row.size):
        square += row[f] * row[f]
    if square > 1:
        scale = np.float32(1) / np.sqrt(square)
        for f in range(row.size):
            row[f] *= scale


@kernel
def translation_steps(
    user: np.ndarray,
    last: np.ndarray,
    following: np.ndarray,
    negative: np.ndarray,
    lr: np.float32,
    reg: np.float32,
    reg_bias: np.float32,
    l1: bool,
    G: np.ndarray,
    t: np.ndarray,
    T: np.ndarray,
    bias: np.ndarray,
) -> None:
    """One step per sample and negative, in this order.

    Regularisation reg / 2 (|t|^2 + |T_u|^2) + reg_bias / 2 (b_j^2 + b_k^2). Rows are changed by increments: where
    i = j, the row gets both.
    """
    shrink_bias = np.float32(1) - lr * reg_bias
    half = np.float32(0.5)
    for p in range(user.size):
        j = following[p]
        u, gi, gj = T[user[p]], G[last[p]], G[j]
        for c in range(negative.shape[1]):
            k = negative[p, c]
            if k < 0:
                continue
            gk = G[k]
            rate = lr * pull(_translation_margin(l1, gi, t, u, gj, gk) + bias[j] - bias[k])
            for f in range(t.size):
                x = gi[f] + t[f] + u[f]
                # Half of the derivative of the distance to j and to k.
                to_j, to_k = x - gj[f], x - gk[f]
                if l1:
                    to_j, to_k = half * np.sign(to_j), half * np.sign(to_k)
                forward = np.float32(2) * rate * (to_k - to_j)
                gi[f] += forward
                t[f] += forward - lr * reg * t[f]
                u[f] += forward - lr * reg * u[f]
                gj[f] += np.float32(2) * rate * to_j
                gk[f] -= np.float32(2) * rate * to_k
            _into_ball(gi)
            _into_ball(gj)
            _into_ball(gk)
            bias[j] = shrink_bias * bias[j] + rate
            bias[k] = shrink_bias * bias[k] - rate


@kernel
def translation_margins(
    start: int,
    stop: int,
    user: np.ndarray,
    last: np.ndarray,
    following: np.ndarray,
    negative: np.ndarray,
    l1: bool,
    G: np.ndarray,
    t: np.ndarray,
    T: np.ndarray,
    bias: np.ndarray,
    margin: np.ndarray,
) -> None:
    """margin[p, c] = x_j - x_k, float32[n, c]; NaN where there is no negative."""
    for p in range(start, stop):
        for c in range(negative.shape[1]):
            j, k = following[p], negative[p, c]
            margin[p, c] = np.nan
            if k >= 0:
                distances = _translation_margin(l1, G[last[p]], t, T[user[p]], G[j], G[k])
                margin[p, c] = distances + bias[j] - bias[k]


@kernel
def l1_distances(start: int, stop: int, X: np.ndarray, G: np.ndarray, out: np.ndarray) -> None:
    """out[r, j] = |X_r - G_j|_1, float32[rows, items]."""
    for r in range(start, stop):
        for j in range(G.shape[0]):
            total = np.float32(0)
            for f in range(G.shape[1]):
                total += abs(X[r, f] - G[j, f])
            out[r, j] = total
