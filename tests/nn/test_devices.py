"""Devices: which one a name means, sentences for those that are not there, and dropout masks on a GPU."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from corank.nn import devices  # noqa: E402
from corank.nn.noise import Noise  # noqa: E402
from elsewhere import elsewhere  # noqa: E402


@pytest.fixture
def here(monkeypatch):
    """Pretend that devices of these kinds, and no others, are there."""

    def pretend(*kinds, count=2):
        monkeypatch.setattr(devices, "available", lambda kind: kind in (*kinds, "cpu"))
        monkeypatch.setattr(torch.cuda, "device_count", lambda: count)

    return pretend


@pytest.mark.parametrize(
    ("kinds", "allowed", "expected"),
    [
        ((), devices.KINDS, "cpu"),
        (("cuda",), devices.KINDS, "cuda"),
        (("mps",), devices.KINDS, "mps"),
        (("cuda", "mps"), devices.KINDS, "cuda"),
        (("mps",), ("cpu", "cuda"), "cpu"),
    ],
)
def test_auto_is_the_best_that_is_there(here, kinds, allowed, expected):
    here(*kinds)
    assert devices.choose("auto", allowed) == torch.device(expected)


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("cuda", "no cuda device on this machine; use 'auto' or 'cpu'"),
        ("mps", "runs on cpu or cuda only"),
        ("gpu", "no name of a device"),
        ("", "no name of a device"),
        ("cuda:x", "no name of a device"),
        ("meta", "runs on cpu or cuda only"),
    ],
)
def test_what_is_not_there_is_a_sentence(here, name, word):
    here()
    with pytest.raises(ValueError, match=word):
        devices.choose(name, ("cpu", "cuda"))


def test_devices_have_numbers(here):
    here("cuda", count=2)
    assert devices.choose("cuda:1") == torch.device("cuda", 1)
    with pytest.raises(ValueError, match="numbered from 0 to 1"):
        devices.choose("cuda:2")


def test_on_a_cpu_nothing_is_copied():
    array = np.arange(5)
    tensor = devices.send(array, devices.CPU)
    array[0] = 7
    assert tensor[0] == 7
    assert devices.beside(torch.zeros(2), array).data_ptr() == tensor.data_ptr()


def test_the_second_device_of_the_tests_refuses_to_meet_the_cpu():
    with elsewhere() as there:
        x = torch.ones(2, 3).to(there).requires_grad_()
        assert x.device == there
        for mixed in (lambda: x + torch.ones(2, 3), lambda: x.index_select(0, torch.tensor([0]))):
            with pytest.raises(RuntimeError, match="two devices"):
                mixed()
        with pytest.raises((RuntimeError, TypeError)):
            x.detach().numpy()
        (2 * x * torch.full((3,), 2.0, device=there)).sum().backward()
        assert x.grad.device == there
        assert x.grad.cpu().tolist() == [[4.0] * 3] * 2


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_masks_that_are_drawn_on_the_device(p):
    """By the generator of a CPU, which is drawn from in the same way."""
    cut = round(256 * p)
    one, same, other = (Noise(seed)._drawn_there((200, 100), cut, devices.CPU) for seed in ((7, 1), (7, 1), (7, 2)))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert set(one.unique().tolist()) == {0.0, float(np.float32(256 / (256 - cut)))}
    assert abs(float((one == 0).float().mean()) - cut / 256) < 5 * (0.25 / 20_000) ** 0.5
    noise = Noise(3)
    assert not torch.equal(*(noise._drawn_there((50,), cut, devices.CPU) for _ in range(2)))
