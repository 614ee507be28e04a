"""Ridge regressions of items on a few other items each, from the sparse counts of common users.

Objective, for item j with the set S of k other items: |x_j - X_S b|^2 + reg |b|^2. With G = X'X the solution solves
(G_SS + reg I) b = G_Sj. S grows in a few rounds, each followed by a solution. A round takes the items i with the
largest |r_i| / sqrt(G_ii + reg), where r = G_j - G_S b is the correlation of each item with what S leaves unexplained:
those that lower the objective most by themselves (matching pursuit, in batches). With S all other items this is EASE.

Shapes: item_* are the CSR parts of X^T, user_* those of X (indptr int64, index int32), without repeated entries; indptr
int64[n + 1], index int32[m] and count float32[m] are the rows of G without its diagonal, which is users float32[n].
"""

from __future__ import annotations

import numpy as np

from .knn import insert
from .normal import rounded, solve
from .threads import kernel


@kernel
def row_lengths(
    start: int,
    stop: int,
    item_indptr: np.ndarray,
    item_index: np.ndarray,
    user_indptr: np.ndarray,
    user_index: np.ndarray,
    length: np.ndarray,
) -> None:
    """length int64[n]: how many other items have a user in common with each."""
    last = np.full(length.size, -1, np.int32)  # the item with which each was met last
    for i in range(start, stop):
        last[i] = i
        found = 0
        for p in range(item_indptr[i], item_indptr[i + 1]):
            u = item_index[p]
            for q in range(user_indptr[u], user_indptr[u + 1]):
                if last[user_index[q]] != i:
                    last[user_index[q]] = i
                    found += 1
        length[i] = found


@kernel
def counts(
    start: int,
    stop: int,
    item_indptr: np.ndarray,
    item_index: np.ndarray,
    user_indptr: np.ndarray,
    user_index: np.ndarray,
    indptr: np.ndarray,
    index: np.ndarray,
    count: np.ndarray,
) -> None:
    """The rows of G, in the order in which the other items are met; `indptr` comes from `row_lengths`."""
    place = np.full(indptr.size - 1, -1, np.int64)
    for i in range(start, stop):
        end = indptr[i]
        for p in range(item_indptr[i], item_indptr[i + 1]):
            u = item_index[p]
            for q in range(user_indptr[u], user_indptr[u + 1]):
                j = user_index[q]
                if j == i:
                    continue
                if place[j] < indptr[i]:  # met with an earlier item, or never
                    place[j] = end
                    index[end] = j
                    count[end] = 0
                    end += 1
                count[place[j]] += 1


@kernel
def regressions(
    start: int,
    stop: int,
    targets: np.ndarray,
    indptr: np.ndarray,
    index: np.ndarray,
    count: np.ndarray,
    users: np.ndarray,
    reg: float,
    rounds: int,
    chosen: np.ndarray,
    weight: np.ndarray,
    error: np.ndarray,
) -> None:
    """The regression of each target on `chosen` int32[t, k] (-1 padded) with `weight` float32[t, k].

    error float32[t] is the least value of the objective, whose inverse is the diagonal of (G + reg I)^-1 if S is all.
    """
    n = users.size
    k = chosen.shape[1]
    width = rounded(k)
    residual = np.zeros(n, np.float32)  # all zero between two rounds
    met = np.empty(n, np.int32)
    stamp = np.full(n, -1, np.int64)  # the round in which each was met last
    place = np.full(n, -1, np.int32)  # in S
    gram = np.zeros((width, width), np.float32)
    work = np.zeros((width, width), np.float32)
    floor = np.empty(width, np.float32)
    goal = np.zeros(width, np.float32)
    b = np.zeros(width, np.float32)
    new = np.empty(k, np.int32)
    best = np.empty(k, np.float32)
    for t in range(start, stop):
        j = targets[t]
        mine = chosen[t]
        mine[:] = -1
        size = 0
        for turn in range(rounds):
            now = t * rounds + turn
            ahead = 0
            for p in range(indptr[j], indptr[j + 1]):
                i = index[p]
                residual[i] = count[p]
                stamp[i] = now
                met[ahead] = i
                ahead += 1
            for a in range(size):
                step = b[a]
                for p in range(indptr[mine[a]], indptr[mine[a] + 1]):
                    i = index[p]
                    if stamp[i] != now:
                        stamp[i] = now
                        met[ahead] = i
                        ahead += 1
                    residual[i] -= step * count[p]
            wanted = k * (turn + 1) // rounds - size
            kept = 0
            for q in range(ahead):
                i = met[q]
                if i != j and place[i] < 0 and residual[i] != 0:
                    gain = abs(residual[i]) / np.sqrt(users[i] + reg)
                    if kept < wanted or gain >= best[wanted - 1]:
                        kept = insert(i, gain, kept, new[:wanted], best[:wanted])
                residual[i] = 0
            if kept == 0:
                break
            for a in range(size, size + kept):
                mine[a] = new[a - size]
                place[mine[a]] = a
            for a in range(size, size + kept):
                gram[a, : a + 1] = 0
                for p in range(indptr[mine[a]], indptr[mine[a] + 1]):
                    c = place[index[p]]
                    if 0 <= c < a:
                        gram[a, c] = count[p]
                gram[a, a] = users[mine[a]] + reg
            size += kept
            goal[:size] = 0
            for p in range(indptr[j], indptr[j + 1]):
                c = place[index[p]]
                if c >= 0:
                    goal[c] = count[p]
            for a in range(size):
                work[a, : a + 1] = gram[a, : a + 1]
                b[a] = goal[a]
            solve(work, size, floor, b)
        explained = 0.0
        for a in range(size):
            explained += np.float64(goal[a]) * np.float64(b[a])
        error[t] = max(users[j] + reg - explained, reg)
        for a in range(size):
            weight[t, a] = b[a]
            place[mine[a]] = -1
