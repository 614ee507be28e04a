"""The loop: Adam on one flat vector, gradients of parts added up, the same bits for any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from corank.nn.loop import Trainer, one_thread  # noqa: E402
from corank.nn.noise import Noise, dropout  # noqa: E402
from corank.nn.parameters import Layout, Parameter  # noqa: E402
from corank.nn.tables import rows  # noqa: E402

PARAMETERS = {"item": Parameter((30, 5), "table"), "w": Parameter((4, 5), "matrix"), "b": Parameter((4,), "bias")}


def losses(seed, parts=2):
    """A loss that looks rows up twice, scores all items and uses every parameter; one function a part."""
    generator = torch.Generator().manual_seed(seed)
    made = []
    for _ in range(parts):
        index = torch.randint(0, 30, (8,), generator=generator)
        other = torch.randint(0, 30, (8,), generator=generator)

        def loss(w, index=index, other=other):
            x = rows(w["item"], index) * rows(w["item"], other)
            y = torch.nn.functional.linear(x, w["w"], w["b"])
            return (y.square().mean() + (x @ w["item"].t()).logsumexp(1).mean()) / parts

        made.append(loss)
    return made


def train(steps=6, threads=1, parts=2, **options):
    layout = Layout(PARAMETERS)
    weights = layout.initial_weights(np.random.default_rng(0))
    first, second = layout.empty(), layout.empty()
    trainer = Trainer(layout, weights, first, second, lr=0.01, threads=threads, **options)
    with trainer.workers() as pool:
        values = [trainer.step(number, losses(number, parts), pool) for number in range(1, steps + 1)]
    return weights, first, second, values


@pytest.mark.parametrize(
    ("options", "kind"),
    [({}, torch.optim.Adam), ({"l2": 0.3}, torch.optim.Adam), ({"weight_decay": 0.2}, torch.optim.AdamW)],
    ids=["adam", "l2", "adamw"],
)
def test_steps_are_those_of_torch(options, kind):
    """Against plain tensors, autograd's own embedding gradient and torch's optimiser."""
    layout = Layout(PARAMETERS)
    start = layout.views(torch.from_numpy(layout.initial_weights(np.random.default_rng(0))))
    plain = {name: view.clone().requires_grad_() for name, view in start.items()}
    decay = options.get("weight_decay", 0.0)
    groups = [{"params": [plain[n]], "weight_decay": 0.0 if n == "b" else decay} for n in PARAMETERS]
    optimizer = kind(groups, lr=0.01, betas=(0.9, 0.98), eps=1e-8)
    expected = []
    for number in range(1, 7):
        optimizer.zero_grad()
        loss = sum(part(plain) for part in losses(number))
        expected.append(loss.item())
        (loss + options.get("l2", 0.0) / 2 * plain["item"].square().sum()).backward()
        optimizer.step()
    weights, _, _, values = train(**options)
    np.testing.assert_allclose(values, expected, rtol=1e-5)
    for name, view in layout.views(torch.from_numpy(weights)).items():
        torch.testing.assert_close(view, plain[name].detach(), rtol=1e-4, atol=1e-6)


def test_threads_change_no_bit():
    one = train(threads=1, parts=3)
    for threads in (2, 3):
        for mine, theirs in zip(one, train(threads=threads, parts=3), strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_goes_on_from_weights_and_moments_alone():
    whole = train(steps=6)
    layout = Layout(PARAMETERS)
    weights, first, second, _ = train(steps=3)
    kept = [layout.empty() for _ in range(3)]
    for array, value in zip(kept, (weights, first, second), strict=True):
        array[:] = value
    trainer = Trainer(layout, *kept, lr=0.01)
    with trainer.workers() as pool:
        for number in range(4, 7):
            trainer.step(number, losses(number), pool)
    for mine, theirs in zip(kept, whole[:3], strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_torch_gets_its_threads_back():
    before = torch.get_num_threads()
    with one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before


def test_parameters_are_apart_and_aligned():
    layout = Layout(PARAMETERS)
    flat = layout.empty()
    assert flat.ctypes.data % 64 == 0
    for number, view in enumerate(layout.views(torch.from_numpy(flat)).values()):
        assert not view.any()
        assert view.data_ptr() % 64 == 0
        view.fill_(number + 1)
    with pytest.raises(ValueError, match="these parameters need"):
        layout.views(torch.zeros(7))


@pytest.mark.parametrize("p", [0.1, 0.2, 0.5])
def test_dropout_has_its_rate_and_keeps_the_mean(p):
    """A million draws: five standard deviations, and the rounding to 1/256."""
    mask = Noise(3).mask((1000, 1000), p)
    gone = float((mask == 0).double().mean())
    assert abs(gone - p) < 1 / 512 + 5 * np.sqrt(p / 1e6)
    assert mask.unique().numel() == 2
    assert abs(float(mask.double().mean()) - 1) < 5 * np.sqrt(p / (1 - p) / 1e6)


def test_dropout_by_seed_and_off():
    x = torch.ones(50, 7)
    assert torch.equal(dropout(x, 0.3, Noise((1, 2))), dropout(x, 0.3, Noise((1, 2))))
    assert not torch.equal(dropout(x, 0.3, Noise((1, 2))), dropout(x, 0.3, Noise((1, 3))))
    noise = Noise(1)
    assert not torch.equal(dropout(x, 0.3, noise), dropout(x, 0.3, noise))
    assert dropout(x, 0.3, None) is x
    assert dropout(x, 0.0, Noise(1)) is x
