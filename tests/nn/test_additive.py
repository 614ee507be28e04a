"""Additive attention: equal to a plain program over pairs, in any number of chunks; its gradient is a difference."""

from __future__ import annotations

import numpy as np
import pytest

from corank.nn.batches import pack

torch = pytest.importorskip("torch")

from corank.nn import additive  # noqa: E402

D = 3
LENGTH = np.array([4, 1, 7, 6, 2])


def tensors(slots, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    q, k, x = (torch.randn(slots, D, generator=generator, dtype=dtype) for _ in range(3))
    return q, k, torch.randn(D, generator=generator, dtype=dtype), x


@pytest.mark.parametrize("pairs", [1, 100, 1 << 18])
def test_equals_a_loop_over_pairs(monkeypatch, pairs):
    monkeypatch.setattr(additive, "PAIRS", pairs)
    packed = pack(np.zeros_like(LENGTH), LENGTH, slack=4)
    q, k, v, x = tensors(packed.at.size)
    found = additive.additive_attention(q, k, v, x, packed)
    for row, length in enumerate(LENGTH):
        first = packed.last[row] - length + 1
        for t in range(first, first + length):
            expected = sum((v * torch.sigmoid(q[t] + k[i])).sum() * x[i] for i in range(first, t + 1))
            torch.testing.assert_close(found[t], expected)


@pytest.mark.parametrize("pairs", [1, 100])
def test_gradient_is_that_of_differences(monkeypatch, pairs):
    monkeypatch.setattr(additive, "PAIRS", pairs)
    packed = pack(np.zeros_like(LENGTH), LENGTH, slack=4)
    given = [part.requires_grad_() for part in tensors(packed.at.size)]
    assert torch.autograd.gradcheck(lambda q, k, v, x: additive.additive_attention(q, k, v, x, packed), given)
