"""Recurrent layers over packed sequences, with hand-written backward passes.

The backward pass of torch's own GRU takes several times as long as the forward pass, because it adds to
the gradient of the weights at every step. Here that gradient is one matrix product after the last step.

Tokens are given step by step (see `batches.by_step`): `alive[t]` rows of step t, never rising.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from .devices import full_precision


def gru(x: Tensor, alive: list[int], w_in: Tensor, w_state: Tensor, b_in: Tensor, b_state: Tensor) -> Tensor:
    """A layer of gated recurrent units: hidden states (n, d) of tokens x (n, c), given step by step.

    With i = w_in x + b_in and g = w_state h + b_state, cut into three parts each: r = sigmoid(i_1 + g_1), z =
    sigmoid(i_2 + g_2), m = tanh(i_3 + r g_3) and h' = (1 - z) m + z h, as in `torch.nn.GRU`. h is 0 before step 0.
    """
    inputs = torch.addmm(b_in, x, w_in.t()).to(w_state.dtype)
    with full_precision(x):
        out: Tensor = _GRU.apply(inputs, alive, w_state, b_state)  # type: ignore[no-untyped-call]
    return out


class _GRU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, alive: list[int], w_state: Tensor, b_state: Tensor) -> Tensor:
        n, d = inputs.shape[0], w_state.shape[1]
        gates = inputs.new_empty((n, 3 * d))  # r, z, m
        third = inputs.new_empty((n, d))  # g_3
        hidden = inputs.new_empty((n, d))
        before = inputs.new_zeros((n, d))  # h of the step before
        start, w = 0, w_state.t()
        for t, count in enumerate(alive):
            at = slice(start, start + count)
            if t > 0:
                before[at] = hidden[start - alive[t - 1] : start - alive[t - 1] + count]
            g = torch.addmm(b_state, before[at], w)  # (count, 3 d)
            torch.add(inputs[at, : 2 * d], g[:, : 2 * d], out=gates[at, : 2 * d]).sigmoid_()
            r, z, m = torch.split(gates[at], d, 1)
            third[at] = g[:, 2 * d :]
            torch.addcmul(inputs[at, 2 * d :], r, third[at], out=m).tanh_()
            torch.lerp(m, before[at], z, out=hidden[at])
            start += count
        ctx.alive = alive
        ctx.save_for_backward(gates, third, before, w_state)
        return hidden

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, Tensor, Tensor]:
        gates, third, before, w_state = ctx.saved_tensors
        n, d = third.shape
        r, z, m = torch.split(gates, d, 1)
        # Per element, what each gate's input does to the state: computed for all tokens at once.
        to_m = (1 - z) * (1 - m * m)
        to_z = (before - m) * z * (1 - z)
        to_r = third * r * (1 - r)  # times what reaches m
        d_inputs = torch.empty_like(gates)
        d_state = torch.empty_like(gates)  # of g
        carried = grads[0].new_zeros((ctx.alive[0], d))  # gradient of h from the steps after
        stop = n
        for count in reversed(ctx.alive):
            at = slice(stop - count, stop)
            total = carried[:count].add_(grads[0][at])
            new, state = d_inputs[at], d_state[at]
            torch.mul(total, to_m[at], out=new[:, 2 * d :])
            torch.mul(total, to_z[at], out=new[:, d : 2 * d])
            torch.mul(new[:, 2 * d :], to_r[at], out=new[:, :d])
            state[:, : 2 * d] = new[:, : 2 * d]
            torch.mul(new[:, 2 * d :], r[at], out=state[:, 2 * d :])
            carried[:count] = torch.addmm(total * z[at], state, w_state)
            stop -= count
        return d_inputs, None, d_state.t() @ before, d_state.sum(0)


def linear_recurrence(x: Tensor, alive: list[int], decay: Tensor) -> Tensor:
    """h_t = decay * h_(t-1) + x_t for each element: complex (n, m) from x (n, m), given step by step, and decay (m,).

    One multiply-add per step, forward and backward. A scan in log2(steps) rounds, as on GPUs, would go over all tokens
    in each round, which takes a CPU longer.
    """
    out: Tensor = _LinearRecurrence.apply(x, alive, decay)  # type: ignore[no-untyped-call]
    return out


def linear_recurrence_of_rectangle(x: Tensor, rate: Tensor, angle: Tensor) -> Tensor:
    """`linear_recurrence` of b sequences of L steps in real numbers, for exported networks: (b, L, m, 2) from the same.

    The decay is exp(rate + i angle), (m,) each. In log2(L) rounds: after each of them a state sums twice as many steps.
    """
    reach, steps = 1, x.shape[1]
    while reach < steps:
        size, real, imaginary = (reach * rate).exp(), (reach * angle).cos(), (reach * angle).sin()  # decay^reach
        re, im = x[:, :-reach, :, 0], x[:, :-reach, :, 1]  # (b, L - reach, m)
        turned = torch.stack([size * (real * re - imaginary * im), size * (real * im + imaginary * re)], -1)
        x = torch.cat([x[:, :reach], x[:, reach:] + turned], 1)
        reach *= 2
    return x


class _LinearRecurrence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, alive: list[int], decay: Tensor) -> Tensor:
        hidden = torch.empty_like(x)
        hidden[: alive[0]] = x[: alive[0]]
        for now, before in _steps(alive):
            torch.addcmul(x[now], hidden[before], decay, out=hidden[now])
        ctx.alive = alive
        ctx.save_for_backward(hidden, decay)
        return hidden

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, Tensor]:
        hidden, decay = ctx.saved_tensors
        total, back = grads[0].clone(), decay.conj_physical()  # of h, with what the steps after it add
        steps = list(_steps(ctx.alive))
        for now, before in reversed(steps):
            total[before].addcmul_(total[now], back)
        earlier = torch.cat([hidden[:0], *(hidden[before] for _, before in steps)])  # h_(t-1)
        return total, None, (total[ctx.alive[0] :] * earlier.conj_physical()).sum(0)


def _steps(alive: list[int]) -> Iterator[tuple[slice, slice]]:
    """For each step but the first: its rows, and the rows of the same sequences one step earlier."""
    start = alive[0]
    for t in range(1, len(alive)):
        before = start - alive[t - 1]
        yield slice(start, start + alive[t]), slice(before, before + alive[t])
        start += alive[t]
