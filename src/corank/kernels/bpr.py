"""Bayesian personalised ranking: steps for triples of a user, an item that the user has and one that the user has not.

Loss of a triple, with x = u.(v_i - v_j) + b_i - b_j:

    log(1 + exp(-x)) + reg / 2 (|u|^2 + |v_i|^2 + |v_j|^2 + b_i^2 + b_j^2)

and a step moves all of them against its gradient (Rendle et al. 2009). Negatives j are uniform over what the user has
not: in training, over those of the item's stripe, which is dealt anew each epoch (see `sgd`), so that over the deals
they are uniform over all items. A block holds all entries of its users and items, so one bit a pair says what is taken.
An epoch costs about 8 d multiply-adds a triple.

Triples whose user or item was replaced (see `sse`) are entries of their own, in the block of the rows that stand in.
Their negative is one that the user whom the triple belongs to has not, other than the item that stands in (a triple of
an item and itself says nothing): from the stripe again, so over the deals uniform over all of those.

Dropout: each coordinate of the three vectors moves only with probability keep / FULL, and then 1 / that as far; x is
that of the whole vectors, and biases always move. keep = None is no dropout, and compiled apart: it
costs nothing then.

Arrays: indptr int64[rows + 1], index int32[n] (rising and distinct within a row); U float32[users, d], V float32[items,
d] and bias float32[items] are updated. bias_lr = 0 leaves the biases alone.
"""

from __future__ import annotations

import math

import numpy as np

from .random import FULL, LOW, SHIFT, next_word, scatter, seek
from .sgd import Blocks, Parts, below, free, shuffle
from .threads import kernel

TRIES = 64  # draws for a negative; who has nearly every item of a stripe goes without, once in a while


@kernel
def _margin(u: np.ndarray, v: np.ndarray, w: np.ndarray) -> np.float32:
    """u.(v - w)."""
    total = np.float32(0)
    for f in range(u.size):
        total += u[f] * (v[f] - w[f])
    return total


@kernel
def _pull(x: np.float32) -> np.float32:
    """Minus the derivative of log(1 + exp(-x))."""
    pull: np.float32 = np.float32(1) / (np.float32(1) + np.exp(x))
    return pull


@kernel
def negatives(
    start: int,
    stop: int,
    seed: int,
    parts: Parts,
    indptr: np.ndarray,
    index: np.ndarray,
    item: np.ndarray,
    value: np.ndarray,
) -> None:
    """Draw the negatives of the triples start..stop, in which something is replaced; each has its own random stream.

    item int32[m]: the item of the triple; value int32[m]: -1 - the user whom it belongs to becomes -1 - the negative,
    or -1 - the item where none was found.
    """
    state = np.empty(1, np.uint64)
    members, member_first, stripe = parts.members, parts.member_first, parts.stripe
    # The triples of a user stand together: to mark the user's row once beats a search in it for each of them.
    holder = np.full(stripe.size, -1, np.int32)
    user = -1
    for p in range(start, stop):
        if user != -1 - value[p]:
            user = -1 - value[p]
            for k in range(indptr[user], indptr[user + 1]):
                holder[index[k]] = user
        seek(state, seed, p)
        i = item[p]
        first = member_first[stripe[i]]
        count = member_first[stripe[i] + 1] - first
        found = i
        for _ in range(TRIES):
            j = members[first + below(state, count)]
            if j != i and holder[j] != user:
                found = j
                break
        value[p] = -1 - found


@kernel
def _move_some(
    state: np.ndarray,
    keep: np.uint32,
    move: np.float32,
    hold: np.float32,
    u: np.ndarray,
    v: np.ndarray,
    w: np.ndarray,
) -> None:
    """The step of a triple in coordinates drawn one by one; hold = lr * reg."""
    longer = np.float32(FULL) / np.float32(keep)
    move, hold = move * longer, hold * longer
    word, another = next_word(state), next_word(state)
    none = np.float32(0)
    for f in range(u.size):
        coins, third = scatter(word, f), scatter(another, f)
        a, b, c = u[f], v[f], w[f]
        u[f] = a + (move * (b - c) - hold * a if (coins & LOW) < keep else none)
        v[f] = b + (move * a - hold * b if (coins >> SHIFT) < keep else none)
        w[f] = c - (move * a + hold * c if (third & LOW) < keep else none)


@kernel
def step(
    start: int,
    stop: int,
    turn: int,
    blocks: Blocks,
    seed: int,
    lr: np.float32,
    bias_lr: np.float32,
    reg: np.float32,
    keep: np.uint32 | None,
    U: np.ndarray,
    V: np.ndarray,
    bias: np.ndarray,
) -> None:
    """One pass over the blocks that are the groups' turn, in random order.

    blocks.value int32[n]: the number of triples of an entry, or, for a triple with something replaced, -1 - its
    negative.
    """
    side = blocks.side
    shrink, shrink_bias = np.float32(1) - lr * reg, np.float32(1) - bias_lr * reg
    state = np.empty(1, np.uint64)
    taken = np.zeros((U.shape[0] // side + 1, V.shape[0] // side // 8 + 1), np.uint8)
    for group in range(start, stop):
        stripe = (group + turn) % side
        block = group * side + stripe
        low, high = blocks.first[block], blocks.first[block + 1]
        members = blocks.members[blocks.member_first[stripe] : blocks.member_first[stripe + 1]]
        seek(state, seed, block)
        shuffle(state, low, high, blocks.user, blocks.item, blocks.value)
        for p in range(low, high):
            place = blocks.item_place[blocks.item[p]]
            if blocks.value[p] >= 0:
                taken[blocks.user_place[blocks.user[p]], place >> 3] |= np.uint8(1 << (place & 7))
        for p in range(low, high):
            i = blocks.item[p]
            u, v = U[blocks.user[p]], V[i]
            row = taken[blocks.user_place[blocks.user[p]]]
            count = blocks.value[p]
            for _ in range(count if count >= 0 else 1):
                j = i
                if count < 0:
                    j = -1 - count
                else:
                    for _ in range(TRIES):
                        k: int = below(state, members.size)
                        if (row[k >> 3] >> (k & 7)) & 1 == 0:
                            j = members[k]
                            break
                if j == i:
                    continue
                w = V[j]
                e = _pull(_margin(u, v, w) + bias[i] - bias[j])
                move = lr * e
                if keep is not None:
                    _move_some(state, keep, move, lr * reg, u, v, w)
                else:
                    for f in range(u.size):
                        a, b, c = u[f], v[f], w[f]
                        u[f] = shrink * a + move * (b - c)
                        v[f] = shrink * b + move * a
                        w[f] = shrink * c - move * a
                bias[i] = shrink_bias * bias[i] + bias_lr * e
                bias[j] = shrink_bias * bias[j] - bias_lr * e
        for p in range(low, high):
            taken[blocks.user_place[blocks.user[p]], blocks.item_place[blocks.item[p]] >> 3] = 0


@kernel
def losses(
    start: int,
    stop: int,
    indptr: np.ndarray,
    index: np.ndarray,
    every: int,
    negatives: int,
    reg: float,
    U: np.ndarray,
    V: np.ndarray,
    bias: np.ndarray,
    loss: np.ndarray,
    count: np.ndarray,
) -> None:
    """loss[r], count[r] = total loss and number of the triples of user r, in a sample that is always the same.

    It has every `every`-th entry, with `negatives` negatives each; loss float64[users], count int64[users].
    """
    state = np.empty(1, np.uint64)
    for r in range(start, stop):
        low, high = indptr[r], indptr[r + 1]
        loss[r] = 0
        count[r] = 0
        if high - low == V.shape[0]:
            continue
        seek(state, 0, r)
        for p in range((low + every - 1) // every * every, high, every):
            i = index[p]
            for _ in range(negatives):
                j = free(state, index, low, high, V.shape[0])
                x = np.float64(_margin(U[r], V[i], V[j]) + bias[i] - bias[j])
                held = bias[i] * bias[i] + bias[j] * bias[j]
                for f in range(U.shape[1]):
                    held += U[r, f] * U[r, f] + V[i, f] * V[i, f] + V[j, f] * V[j, f]
                # log(1 + exp(-x)) without overflow
                loss[r] += max(-x, 0.0) + math.log1p(math.exp(-abs(x))) + 0.5 * reg * held
                count[r] += 1


@kernel
def fold_in(
    start: int,
    stop: int,
    indptr: np.ndarray,
    index: np.ndarray,
    passes: int,
    negatives: int,
    lr: np.float32,
    reg: np.float32,
    V: np.ndarray,
    bias: np.ndarray,
    X: np.ndarray,
) -> None:
    """The vector of each row from 0: passes over the row with steps that fall to 0, the items staying as they are.

    All rows draw from the same stream: a user gets the same vector alone and in company.
    """
    state = np.empty(1, np.uint64)
    for r in range(start, stop):
        low, high = indptr[r], indptr[r + 1]
        x = X[r]
        x[:] = 0
        if high - low == V.shape[0]:
            continue
        seek(state, 0, 0)
        for turn in range(passes):
            rate = lr * np.float32(passes - turn) / np.float32(passes)
            for p in range(low, high):
                for _ in range(negatives):
                    i = index[p]
                    j = free(state, index, low, high, V.shape[0])
                    v, w = V[i], V[j]
                    move = rate * _pull(_margin(x, v, w) + bias[i] - bias[j])
                    keep = np.float32(1) - rate * reg
                    for f in range(x.size):
                        x[f] = keep * x[f] + move * (v[f] - w[f])
