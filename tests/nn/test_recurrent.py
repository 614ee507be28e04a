"""Recurrent layers: torch's own GRU on packed sequences, a plain loop, gradients against autograd and differences."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from corank.nn.batches import by_step, pack  # noqa: E402
from corank.nn.recurrent import gru, linear_recurrence  # noqa: E402

ALIVE = [4, 4, 2, 1, 1]


def made(d=3, c=2, seed=0):
    """Inputs (n, c), matrices and biases."""
    generator = torch.Generator().manual_seed(seed)
    shapes = ((sum(ALIVE), c), (3 * d, c), (3 * d, d), (3 * d,), (3 * d,))
    return [torch.randn(shape, generator=generator).requires_grad_() for shape in shapes]


def test_equals_torch():
    x, *weights = made()
    mine = gru(x, ALIVE, *weights)
    theirs, _ = torch.gru(x, torch.tensor(ALIVE), torch.zeros(1, 4, 3), weights, True, 1, 0.0, False, False)
    torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-6)
    seen = torch.randn(mine.shape, generator=torch.Generator().manual_seed(1))
    for one, other in zip(
        torch.autograd.grad(mine, [x, *weights], seen), torch.autograd.grad(theirs, [x, *weights], seen), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_gradient_is_that_of_differences():
    x, *weights = made()
    seen = torch.randn((sum(ALIVE), 3), generator=torch.Generator().manual_seed(2))
    loss = (gru(x, ALIVE, *weights) * seen).sum()
    loss.backward()
    for leaf in (x, *weights):
        direction = torch.randn(leaf.shape, generator=torch.Generator().manual_seed(3))
        with torch.no_grad():
            values = []
            for step in (1e-2, -1e-2):
                moved = [part + step * direction if part is leaf else part for part in (x, *weights)]
                values.append(float((gru(moved[0], ALIVE, *moved[1:]) * seen).sum()))
        assert float((leaf.grad * direction).sum()) == pytest.approx((values[0] - values[1]) / 2e-2, rel=2e-3, abs=2e-3)


def test_packed_sequences_step_by_step():
    """Slots of a step are those of the sequences that have it, the longest first; places lead back."""
    length = np.array([3, 7, 1, 7, 4])
    begin = np.cumsum(length) - length
    packed = pack(begin, length, slack=4)
    slots, alive, place = by_step(packed)
    assert alive.tolist() == [(length > t).sum() for t in range(7)]
    assert slots.size == length.sum()
    np.testing.assert_array_equal(slots[place[slots]], slots)
    starts = np.cumsum(alive) - alive
    for t, (start, count) in enumerate(zip(starts, alive, strict=True)):
        at = slots[start : start + count]
        assert (packed.step[at] == t).all()
        np.testing.assert_array_equal(packed.row[at], packed.row[slots[:count]])  # in the order of step 0
    assert (np.diff(length[packed.row[slots[: length.size]]]) <= 0).all()


def looped(x, alive, decay):
    """The linear recurrence as it is defined, sequence by sequence."""
    out, start = torch.zeros_like(x), [sum(alive[:t]) for t in range(len(alive))]
    for row in range(alive[0]):
        h = torch.zeros_like(decay)
        for t, count in enumerate(alive):
            if row < count:
                h = decay * h + x[start[t] + row]
                out = out.index_put((torch.tensor(start[t] + row),), h)
    return out


@pytest.mark.parametrize("alive", [[1], [3], [1, 1, 1, 1], [4, 4, 3, 1], [5, 2, 2, 2, 1, 1, 1]])
def test_linear_recurrence_is_its_definition(alive):
    generator = torch.Generator().manual_seed(len(alive))
    x = torch.randn(sum(alive), 3, dtype=torch.complex128, generator=generator, requires_grad=True)
    decay = torch.polar(
        torch.tensor([0.9, 0.5, 0.99]).double(), torch.tensor([0.3, 2.0, 5.0]).double()
    ).requires_grad_()
    found, expected = linear_recurrence(x, alive, decay), looped(x, alive, decay)
    torch.testing.assert_close(found, expected)
    weight = torch.randn(found.shape, dtype=torch.complex128, generator=generator)
    mine = torch.autograd.grad((found * weight).real.sum(), (x, decay))
    theirs = torch.autograd.grad((expected * weight).real.sum(), (x, decay), allow_unused=True)
    for one, other in zip(mine, theirs, strict=True):
        torch.testing.assert_close(one, torch.zeros_like(one) if other is None else other)
    assert torch.autograd.gradcheck(lambda x, decay: linear_recurrence(x, alive, decay), (x, decay))
