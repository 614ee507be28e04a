"""Bayesian personalised ranking: gradient steps for triples of a user, an item of the user and a negative.

Loss of a triple, with x = u.(v_i - v_j) + b_i - b_j:

    log(1 + exp(-x)) + reg / 2 (|u|^2 + |v_i|^2 + |v_j|^2 + b_i^2 + b_j^2)

A step moves all five against its gradient (Rendle et al. 2009). Negatives j are uniform over the items that the user
does not have: in training, over those of the positive item's stripe, which changes in each epoch (see `sgd`), so that
over the epochs they are uniform over all items. A block has all entries of its users and items, so one bit per pair
says which items a user has. An epoch costs about 8 d multiply-adds per triple.

Triples with a replaced user or item (see `sse`) are entries of their own, in the block of the replacing rows. Their
negative is one that the original user does not have, other than the replacing item (a triple of an item and itself has
no gradient): also from the stripe, so over the epochs uniform over all of those.

Dropout: each coordinate of the three vectors is updated only with probability keep / FULL, with the update divided by
that probability; x uses the whole vectors, and biases are always updated. keep = None means no dropout; it is a
specialisation of its own without overhead.

Shapes: indptr int64[rows + 1], index int32[n] (increasing and distinct within a row); U float32[users, d], V
float32[items, d] and bias float32[items] are updated. bias_lr = 0 leaves the biases unchanged.
"""

from __future__ import annotations

import math

import numpy as np

from .random import FULL, LOW, SHIFT, next_word, scatter, seek
from .sgd import Blocks, Partition, random_absent, random_below, shuffle
from .threads import inline, kernel

TRIES = 64  # draws per negative; a user with nearly every item of a stripe sometimes gets none, and the step is skipped


@inline
def _margin(u: np.ndarray, v: np.ndarray, w: np.ndarray) -> np.float32:
    """u.(v - w)."""
    total = np.float32(0)
    for f in range(u.size):
        total += u[f] * (v[f] - w[f])
    return total


@inline
def pull(x: np.float32) -> np.float32:
    """Minus the derivative of log(1 + exp(-x))."""
    pull: np.float32 = np.float32(1) / (np.float32(1) + np.exp(x))
    return pull


@kernel
def negatives(
    start: int,
    stop: int,
    seed: int,
    partition: Partition,
    indptr: np.ndarray,
    index: np.ndarray,
    item: np.ndarray,
    value: np.ndarray,
) -> None:
    """Draw the negatives of the replaced triples start..stop; each has its own random stream.

    item int32[m]: the item of the triple; value int32[m]: -1 - the original user before, -1 - the negative after, or
    -1 - the item where none was found.
    """
    state = np.empty(1, np.uint64)
    members, member_first, stripe = partition.members, partition.member_first, partition.stripe
    # The triples of a user are adjacent: marking the user's row once is faster than searching it for each of them.
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
            j = members[first + random_below(state, count)]
            if j != i and holder[j] != user:
                found = j
                break
        value[p] = -1 - found


@inline
def _dropout_step(
    state: np.ndarray,
    keep: np.uint32,
    rate: np.float32,
    shrink: np.float32,
    u: np.ndarray,
    v: np.ndarray,
    w: np.ndarray,
) -> None:
    """The step of a triple in randomly chosen coordinates; shrink = lr * reg."""
    boost = np.float32(FULL) / np.float32(keep)
    rate, shrink = rate * boost, shrink * boost
    word, another = next_word(state), next_word(state)
    zero = np.float32(0)
    for f in range(u.size):
        coins, third = scatter(word, f), scatter(another, f)
        a, b, c = u[f], v[f], w[f]
        u[f] = a + (rate * (b - c) - shrink * a if (coins & LOW) < keep else zero)
        v[f] = b + (rate * a - shrink * b if (coins >> SHIFT) < keep else zero)
        w[f] = c - (rate * a + shrink * c if (third & LOW) < keep else zero)


@kernel
def step(
    start: int,
    stop: int,
    round_: int,
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
    """Process the blocks of this round for the groups start..stop, entries in random order.

    blocks.value int32[n]: the number of triples of an entry, or -1 - the negative of a replaced triple.
    """
    side = blocks.side
    shrink, shrink_bias = np.float32(1) - lr * reg, np.float32(1) - bias_lr * reg
    state = np.empty(1, np.uint64)
    has = np.zeros((U.shape[0] // side + 1, V.shape[0] // side // 8 + 1), np.uint8)
    for group in range(start, stop):
        stripe = (group + round_) % side
        block = group * side + stripe
        low, high = blocks.first[block], blocks.first[block + 1]
        members = blocks.members[blocks.member_first[stripe] : blocks.member_first[stripe + 1]]
        seek(state, seed, block)
        shuffle(state, low, high, blocks.user, blocks.item, blocks.value)
        for p in range(low, high):
            place = blocks.item_place[blocks.item[p]]
            if blocks.value[p] >= 0:
                has[blocks.user_place[blocks.user[p]], place >> 3] |= np.uint8(1 << (place & 7))
        for p in range(low, high):
            i = blocks.item[p]
            u, v = U[blocks.user[p]], V[i]
            row = has[blocks.user_place[blocks.user[p]]]
            count = blocks.value[p]
            for _ in range(count if count >= 0 else 1):
                j = i
                if count < 0:
                    j = -1 - count
                else:
                    for _ in range(TRIES):
                        k: int = random_below(state, members.size)
                        if (row[k >> 3] >> (k & 7)) & 1 == 0:
                            j = members[k]
                            break
                if j == i:
                    continue
                w = V[j]
                e = pull(_margin(u, v, w) + bias[i] - bias[j])
                rate = lr * e
                if keep is not None:
                    _dropout_step(state, keep, rate, lr * reg, u, v, w)
                else:
                    for f in range(u.size):
                        a, b, c = u[f], v[f], w[f]
                        u[f] = shrink * a + rate * (b - c)
                        v[f] = shrink * b + rate * a
                        w[f] = shrink * c - rate * a
                bias[i] = shrink_bias * bias[i] + bias_lr * e
                bias[j] = shrink_bias * bias[j] - bias_lr * e
        for p in range(low, high):
            has[blocks.user_place[blocks.user[p]], blocks.item_place[blocks.item[p]] >> 3] = 0


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
    """loss[r], count[r] = total loss and number of triples of user r in a fixed sample.

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
                j = random_absent(state, index, low, high, V.shape[0])
                x = np.float64(_margin(U[r], V[i], V[j]) + bias[i] - bias[j])
                squares = bias[i] * bias[i] + bias[j] * bias[j]
                for f in range(U.shape[1]):
                    squares += U[r, f] * U[r, f] + V[i, f] * V[i, f] + V[j, f] * V[j, f]
                # log(1 + exp(-x)) without overflow
                loss[r] += max(-x, 0.0) + math.log1p(math.exp(-abs(x))) + 0.5 * reg * squares
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
    """The vector of each row, from 0: passes over the row with a learning rate that falls to 0 and fixed items.

    All rows draw from the same stream: a user gets the same vector, whatever the other rows of the request.
    """
    state = np.empty(1, np.uint64)
    for r in range(start, stop):
        low, high = indptr[r], indptr[r + 1]
        x = X[r]
        x[:] = 0
        if high - low == V.shape[0]:
            continue
        seek(state, 0, 0)
        for done in range(passes):
            lr_now = lr * np.float32(passes - done) / np.float32(passes)
            for p in range(low, high):
                for _ in range(negatives):
                    i = index[p]
                    j = random_absent(state, index, low, high, V.shape[0])
                    v, w = V[i], V[j]
                    rate = lr_now * pull(_margin(x, v, w) + bias[i] - bias[j])
                    shrink = np.float32(1) - lr_now * reg
                    for f in range(x.size):
                        x[f] = shrink * x[f] + rate * (v[f] - w[f])


@kernel
def fold_in_parts(
    index: np.ndarray,
    passes: int,
    negatives: int,
    lr: np.float32,
    reg: np.float32,
    V: np.ndarray,
    bias: np.ndarray,
    parts: np.ndarray,
) -> None:
    """The steps of `fold_in` on one row of items, each added to the part of its item: parts float64[n, dim], from 0.

    The parts add up to the vector. They shrink together, so that their common factor is kept aside.
    """
    state = np.empty(1, np.uint64)
    n, d = index.size, V.shape[1]
    if n == V.shape[0]:
        return
    x = np.zeros(d, np.float32)
    factor = np.float64(1)
    seek(state, 0, 0)
    for done in range(passes):
        lr_now = lr * np.float32(passes - done) / np.float32(passes)
        for p in range(n):
            for _ in range(negatives):
                i = index[p]
                j = random_absent(state, index, 0, n, V.shape[0])
                v, w = V[i], V[j]
                rate = lr_now * pull(_margin(x, v, w) + bias[i] - bias[j])
                shrink = np.float32(1) - lr_now * reg
                factor *= shrink
                if abs(factor) < 1e-100:
                    parts *= factor
                    factor = np.float64(1)
                for f in range(d):
                    x[f] = shrink * x[f] + rate * (v[f] - w[f])
                    parts[p, f] += rate * (v[f] - w[f]) / factor
    for p in range(n):
        for f in range(d):
            parts[p, f] *= factor
