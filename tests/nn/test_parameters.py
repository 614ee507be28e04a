"""Flat parameters: their order in the vector, initial values and alignment follow from their roles."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from corank.nn.parameters import Layout, Parameter  # noqa: E402

PARAMETERS = {
    "gain": Parameter((7,), "gain"),
    "stack": Parameter((30, 10), "matrix", stacked=3),
    "bias": Parameter((5,), "bias"),
    "item": Parameter((200, 10), "table"),
    "matrix": Parameter((30, 10), "matrix"),
}


def test_tables_then_matrices_then_biases_and_gains():
    layout = Layout(PARAMETERS)
    assert list(layout.parameters) == ["item", "stack", "matrix", "gain", "bias"]
    assert layout.tables == ["item"]
    assert layout.offset == {"item": 0, "stack": 2000, "matrix": 2304, "gain": 2608, "bias": 2624}
    assert (layout.tables_end, layout.decayed_end, layout.size) == (2000, 2608, 2640)


def test_initial_values_follow_the_roles():
    layout = Layout(PARAMETERS)
    views = layout.views(torch.from_numpy(layout.initial_weights(np.random.default_rng(0))))
    assert (views["gain"] == 1).all()
    assert (views["bias"] == 0).all()
    for name, height in (("item", 200), ("stack", 10), ("matrix", 30)):
        bound = np.sqrt(6 / (height + 10))  # Glorot's
        assert 0.9 * bound < float(views[name].abs().max()) <= bound, name
    std = layout.views(torch.from_numpy(layout.initial_weights(np.random.default_rng(0), table_std=0.02)))
    assert float(std["item"].std()) == pytest.approx(0.02, rel=0.05)
    bound = np.sqrt(6 / 40)
    assert 0.9 * bound < float(std["matrix"].abs().max()) <= bound


def test_the_rest_of_a_line_is_zero():
    layout = Layout(PARAMETERS)
    flat = layout.initial_weights(np.random.default_rng(0))
    covered = np.zeros(layout.size, bool)
    for name, parameter in layout.parameters.items():
        covered[layout.offset[name] : layout.offset[name] + parameter.size] = True
    assert not flat[~covered].any()
    assert flat.ctypes.data % 64 == 0
