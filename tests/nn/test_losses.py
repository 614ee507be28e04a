"""Losses: each equals its paper's formula on three numbers, and every gradient equals differences."""

from __future__ import annotations

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from corank.nn import losses  # noqa: E402


def s(x):
    return 1 / (1 + math.exp(-x))


POSITIVE, NEGATIVE = 0.7, (-0.4, 1.3)


def value(loss, **options):
    return float(loss(torch.tensor([POSITIVE]), torch.tensor([NEGATIVE]), **options))


def test_bce():
    expected = -math.log(s(0.7)) - math.log(1 - s(-0.4)) - math.log(1 - s(1.3))
    assert value(losses.bce) == pytest.approx(expected, rel=1e-6)


def test_gbce():
    """Petrov and Macdonald, equations 8 to 10, with 2 of 10 negatives."""
    a, t = 2 / 10, 0.75
    beta = a * (t * (1 - 1 / a) + 1 / a)
    expected = -(beta * math.log(s(0.7)) + math.log(1 - s(-0.4)) + math.log(1 - s(1.3))) / 3
    assert value(losses.gbce, items=11, t=t) == pytest.approx(expected, rel=1e-6)


def test_gbce_ends():
    assert losses.gbce_beta(2, 11, 0.0) == pytest.approx(1.0)
    assert losses.gbce_beta(2, 11, 1.0) == pytest.approx(0.2)
    assert losses.gbce_beta(50, 11, 1.0) == pytest.approx(1.0)


def test_sampled_softmax():
    top, rest = math.exp(0.7), math.exp(-0.4) + math.exp(1.3)
    assert value(losses.sampled_softmax) == pytest.approx(-math.log(top / (top + rest)), rel=1e-6)
    assert value(losses.sampled_softmax, log_weight=math.log(5)) == pytest.approx(
        -math.log(top / (top + 5 * rest)), rel=1e-6
    )
    rest = 5 * math.exp(-0.4) + 0.5 * math.exp(1.3)
    assert value(losses.sampled_softmax, log_weight=torch.tensor([5.0, 0.5]).log()) == pytest.approx(
        -math.log(top / (top + rest)), rel=1e-6
    )


def test_bpr():
    assert value(losses.bpr) == pytest.approx(-(math.log(s(1.1)) + math.log(s(-0.6))) / 2, rel=1e-6)


def test_bpr_max():
    w = np.exp(NEGATIVE) / np.exp(NEGATIVE).sum()
    expected = -math.log(w[0] * s(1.1) + w[1] * s(-0.6)) + 0.5 * (w[0] * 0.4**2 + w[1] * 1.3**2)
    assert value(losses.bpr_max, reg=0.5) == pytest.approx(expected, rel=1e-6)


def test_top1():
    expected = (s(-1.1) + s(0.4**2) + s(0.6) + s(1.3**2)) / 2
    assert value(losses.top1) == pytest.approx(expected, rel=1e-6)


PAIRWISE = {
    "bce": losses.bce,
    "gbce": lambda p, n: losses.gbce(p, n, items=20, t=0.75),
    "sampled_softmax": lambda p, n: losses.sampled_softmax(p, n, log_weight=0.4),
    "bpr": losses.bpr,
    "bpr_max": losses.bpr_max,
    "top1": losses.top1,
}


@pytest.mark.parametrize("name", PAIRWISE)
def test_gradient_is_the_difference_quotient(name):
    generator = torch.Generator().manual_seed(1)
    positive = torch.randn(4, dtype=torch.float64, generator=generator, requires_grad=True)
    negative = torch.randn(4, 3, dtype=torch.float64, generator=generator, requires_grad=True)
    assert torch.autograd.gradcheck(PAIRWISE[name], (positive, negative))


@pytest.mark.parametrize("name", PAIRWISE)
def test_a_negative_of_minus_infinity_was_not_drawn(name):
    positive = torch.tensor([0.3, -0.2], requires_grad=True)
    kept = torch.tensor([[0.5, -1.0], [0.1, 0.9]])
    some = torch.cat([kept, torch.full((2, 1), -math.inf)], 1).requires_grad_()
    with_it, without = PAIRWISE[name](positive, some), PAIRWISE[name](positive, kept)
    if name != "gbce":  # it counts the draws
        assert float(with_it.detach()) == pytest.approx(float(without.detach()), rel=1e-6)
    with_it.backward()
    assert torch.isfinite(positive.grad).all()
    assert torch.isfinite(some.grad).all()
    assert not some.grad[:, 2].any()


@pytest.mark.parametrize("tilt", [0.0, 1.0, 100.0], ids=["no bias", "bias", "bias needs a shift"])
@pytest.mark.parametrize("scale", [0.5, 40.0], ids=["small", "needs a shift"])
@pytest.mark.parametrize("rows", [1, 3, 100])
def test_softmax_is_cross_entropy(scale, rows, tilt):
    generator = torch.Generator().manual_seed(2)
    hidden = (scale * torch.randn(7, 5, generator=generator)).requires_grad_()
    table = torch.randn(11, 5, generator=generator).requires_grad_()
    target = torch.randint(0, 11, (7,), generator=generator)
    bias = (tilt * torch.randn(11, generator=generator)).requires_grad_() if tilt else None
    learned = (hidden, table) if bias is None else (hidden, table, bias)
    ours = losses.softmax(hidden, table, target, rows, bias=bias)
    found = torch.autograd.grad(3 * ours, learned)
    plain = torch.nn.functional.cross_entropy(hidden @ table.t() + (0 if bias is None else bias), target)
    expected = torch.autograd.grad(3 * plain, learned)
    assert float(ours) == pytest.approx(float(plain), rel=1e-5)
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-6)


def test_softmax_gradient_is_the_difference_quotient():
    generator = torch.Generator().manual_seed(3)
    hidden = torch.randn(4, 3, dtype=torch.float64, generator=generator, requires_grad=True)
    table = torch.randn(6, 3, dtype=torch.float64, generator=generator, requires_grad=True)
    bias = torch.randn(6, dtype=torch.float64, generator=generator, requires_grad=True)
    target = torch.tensor([0, 5, 2, 2])
    assert torch.autograd.gradcheck(lambda h, t: losses.softmax(h, t, target, 3), (hidden, table))
    assert torch.autograd.gradcheck(lambda h, t, b: losses.softmax(h, t, target, 3, bias=b), (hidden, table, bias))


@pytest.mark.parametrize("name", ["softmax", *PAIRWISE])
@pytest.mark.parametrize("shared", [True, False], ids=["shared", "own"])
def test_a_bias_is_one_more_column_of_the_table(name, shared):
    """h . v + b = [h, 1] . [v, b]: the same loss and the same gradients."""
    generator = torch.Generator().manual_seed(4)
    hidden, table, bias = (torch.randn(shape, generator=generator) for shape in ((5, 3), (9, 3), (9,)))
    target = torch.randint(0, 9, (5,), generator=generator)
    negative = torch.randint(0, 9, (4,) if shared else (5, 4), generator=generator)
    wide = torch.cat([table, bias[:, None]], 1).requires_grad_()
    expected = losses.next_item_loss(name, torch.cat([hidden, torch.ones(5, 1)], 1), wide, target, negative)
    bias.requires_grad_(), table.requires_grad_()
    found = losses.next_item_loss(name, hidden, table, target, negative, bias=bias)
    assert float(found) == pytest.approx(float(expected), rel=1e-5)
    both = torch.autograd.grad(found, (table, bias))
    torch.testing.assert_close(torch.cat([both[0], both[1][:, None]], 1), *torch.autograd.grad(expected, wide))


def test_softmax_of_the_wrong_shape_is_a_sentence():
    with pytest.raises(ValueError, match="softmax takes"):
        losses.softmax(torch.zeros(3, 2), torch.zeros(5, 4), torch.zeros(3, dtype=torch.int64))
