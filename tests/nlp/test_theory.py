"""The closed form of the loss averaged over replacements equals the average, replacement by replacement."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from benchmarks.sse_theory import Factors, Ratings, smoothed, worst  # noqa: E402


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_smoothed_loss(p) -> None:
    torch.manual_seed(0)
    at = Factors(torch.randn(5, 3), torch.randn(7, 3))
    on = Ratings(torch.tensor([0, 4, 2]), torch.tensor([6, 1, 1]), torch.randn(3))
    moves = [(1 - p) * np.eye(n) + p / n for n in (5, 7)]  # of users, of items
    for row, (i, j, y) in enumerate(zip(on.user, on.item, on.value, strict=True)):
        loss = np.square(y.item() - (at.u @ at.v.T).numpy())
        assert smoothed(at, on, p)[row].item() == pytest.approx(moves[0][i] @ loss @ moves[1][j], rel=1e-4)


def test_worst_parameters_of_one_rating() -> None:
    """The supremum for one rating y = 1 is (1 + radius^2)^2: opposite vectors of the longest length."""
    on = Ratings(torch.tensor([0]), torch.tensor([0]), torch.ones(1))
    assert worst(on, torch.ones(1), 0.0, users=1, items=1, dim=2) == pytest.approx((1 + 1.5**2) ** 2, rel=1e-3)
