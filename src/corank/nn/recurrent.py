"""A layer of gated recurrent units over packed sequences, with a hand-written backward pass.

The backward pass of torch's own GRU takes several times as long as the forward pass, because it adds to
the gradient of the weights at every step. Here that gradient is one matrix product after the last step.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def gru(x: Tensor, alive: list[int], w_in: Tensor, w_state: Tensor, b_in: Tensor, b_state: Tensor) -> Tensor:
    """Hidden states (n, d) of tokens x (n, c) that are given step by step: `alive[t]` rows of step t, never rising.

    With i = w_in x + b_in and g = w_state h + b_state, cut into three parts each: r = sigmoid(i_1 + g_1), z =
    sigmoid(i_2 + g_2), m = tanh(i_3 + r g_3) and h' = (1 - z) m + z h, as in `torch.nn.GRU`. h is 0 before step 0.
    """
    out: Tensor = _GRU.apply(torch.addmm(b_in, x, w_in.t()), alive, w_state, b_state)  # type: ignore[no-untyped-call]
    return out


class _GRU(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)  # type: ignore[untyped-decorator]
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
