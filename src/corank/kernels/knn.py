"""Item-item neighbourhoods from two orientations of one sparse matrix.

Objective: for each row i of X^T the k largest shrunk similarities to the other rows, without a dense items x items
array. With dot = sum_u x_ui x_uj and n_i = sum_u x_ui^2:

    cosine       dot / (sqrt(n_i n_j) + shrink)
    jaccard      dot / (n_i + n_j - dot + shrink)
    conditional  dot / (n_i + shrink)            for binary data: the share of the users of i who have j too

(Deshpande and Karypis 2004 for the method and the conditional probability.) Each row adds the rows of its users to one
dense accumulator, and collects and clears the result by visiting them again (or in one scan, where that is shorter), so
the cost is the sum over users of their squared length, independent of the number of columns.

Shapes: item_* are the CSR parts of X^T, user_* those of X (indptr int64, index int32, value float32); size float32[n]
holds n_i; items int32[n, k] (-1 padded) and best float32[n, k] (-inf padded) are filled; sim_* are the CSR parts of
the result.
"""

from __future__ import annotations

import numpy as np

from .threads import inline, kernel

COSINE, JACCARD, CONDITIONAL = 0, 1, 2


@inline
def insert(item: int, score: float, kept: int, items: np.ndarray, best: np.ndarray) -> int:
    """Insert into a list of the largest scores, decreasing, ties by increasing item; returns the new length."""
    if kept == best.size:
        if score < best[kept - 1] or (score == best[kept - 1] and item > items[kept - 1]):
            return kept
        kept -= 1
    at = kept
    while at > 0 and (best[at - 1] < score or (best[at - 1] == score and items[at - 1] > item)):
        best[at] = best[at - 1]
        items[at] = items[at - 1]
        at -= 1
    best[at] = score
    items[at] = item
    return kept + 1


@kernel
def neighbors(
    start: int,
    stop: int,
    item_indptr: np.ndarray,
    item_index: np.ndarray,
    item_value: np.ndarray,
    user_indptr: np.ndarray,
    user_index: np.ndarray,
    user_value: np.ndarray,
    size: np.ndarray,
    similarity: int,
    shrink: float,
    items: np.ndarray,
    best: np.ndarray,
) -> None:
    """The most similar other rows of rows start..stop with positive similarity, most similar first, ties by index."""
    n = size.size
    dots = np.zeros(n, np.float32)  # all zero between two rows
    near = np.empty(n, np.int32)
    shared = np.empty(n, np.float32)
    for i in range(start, stop):
        steps = 0
        for p in range(item_indptr[i], item_indptr[i + 1]):
            u = item_index[p]
            weight = item_value[p]
            steps += user_indptr[u + 1] - user_indptr[u]
            for q in range(user_indptr[u], user_indptr[u + 1]):
                dots[user_index[q]] += weight * user_value[q]
        dots[i] = 0
        count = 0
        if steps < n:
            for p in range(item_indptr[i], item_indptr[i + 1]):
                u = item_index[p]
                for q in range(user_indptr[u], user_indptr[u + 1]):
                    j = user_index[q]
                    if dots[j] > 0:
                        near[count] = j
                        shared[count] = dots[j]
                        count += 1
                    dots[j] = 0
        else:
            for j in range(n):
                if dots[j] > 0:
                    near[count] = j
                    shared[count] = dots[j]
                    count += 1
                dots[j] = 0
        kept = 0
        row, top = items[i], best[i]
        row[:] = -1
        top[:] = -np.inf
        for t in range(count):
            dot = np.float64(shared[t])
            if similarity == COSINE:
                scale = np.sqrt(np.float64(size[i]) * np.float64(size[near[t]]))
            elif similarity == JACCARD:
                scale = np.float64(size[i]) + np.float64(size[near[t]]) - dot
            else:
                scale = np.float64(size[i])
            score = np.float32(dot / (scale + shrink))
            if score >= top[-1]:
                kept = insert(near[t], score, kept, row, top)


@kernel
def add_rows(
    start: int,
    stop: int,
    indptr: np.ndarray,
    index: np.ndarray,
    value: np.ndarray,
    sim_indptr: np.ndarray,
    sim_index: np.ndarray,
    sim_value: np.ndarray,
    out: np.ndarray,
) -> None:
    """out float32[rows, n]: out[b] = sum over the entries of row b of value times the similarity row of the entry."""
    for b in range(start, stop):
        row = out[b]
        row[:] = 0
        for p in range(indptr[b], indptr[b + 1]):
            weight = value[p]
            for q in range(sim_indptr[index[p]], sim_indptr[index[p] + 1]):
                row[sim_index[q]] += weight * sim_value[q]
