"""The polynomials against numpy."""

from __future__ import annotations

import numpy as np

from corank.kernels.vectors import sigmoids


def both(score):
    bits = np.empty(score.size, np.int32)
    h, growth = np.empty((2, score.size), np.float32)
    sigmoids(score.size, score, bits, bits.view(np.float32), h, growth)
    return h.astype(float), growth.astype(float)


def test_right_to_single_precision():
    score = np.linspace(-40, 40, 200_001).astype(np.float32)
    h, growth = both(score)
    expected = 1 / (1 + np.exp(-score.astype(float)))
    np.testing.assert_allclose(h, expected, rtol=2e-6, atol=1e-30)
    np.testing.assert_allclose(growth, np.exp(expected), rtol=5e-7)


def test_ends_and_middle():
    h, growth = both(np.array([0, 1e-30, 500, -500, 3e38, -3e38, np.inf, -np.inf], np.float32))
    np.testing.assert_allclose(h, [0.5, 0.5, 1, 0, 1, 0, 1, 0], atol=1e-30)
    np.testing.assert_allclose(growth, np.exp(h), rtol=5e-7)


def test_nan_stays_nan():
    h, growth = both(np.array([1.0, np.nan, 2.0], np.float32))
    assert np.isnan([h[1], growth[1]]).all()
    assert np.isfinite([h[0], growth[0], h[2], growth[2]]).all()
