"""Means over users and their bootstrap intervals."""

from __future__ import annotations

import numpy as np

from ..data import Array
from .metrics import Metric
from .positions import Floats


def summary(
    wanted: tuple[Metric, ...], values: dict[str, Floats], weights: dict[str, Floats], bootstrap: int, seed: int
) -> tuple[dict[str, float], dict[str, tuple[float, float]]]:
    """Mean and 95 % bootstrap interval of each metric, by name; all metrics share the resamples.

    values : per metric float64[users], or [1] for a metric of all users together, which has no interval.
    weights : what each user counts, float64[users]; see `user_weights`.
    """
    mean = {m.name: float(values[m.name][0]) for m in wanted if m.scope == "all"}
    interval = dict.fromkeys(mean, (np.nan, np.nan))
    plain = [m for m in wanted if m.scope != "all"]
    if plain:
        parts = [totals(values[m.name], weights[m.name]) for m in plain]
        low, middle, high = resampled_means(plain, parts, bootstrap, seed)
        for i, m in enumerate(plain):
            mean[m.name] = float(middle[i])
            interval[m.name] = (float(low[i]), float(high[i]))
    return {m.name: mean[m.name] for m in wanted}, {m.name: interval[m.name] for m in wanted}


def user_weights(wanted: tuple[Metric, ...], values: dict[str, Floats], rows: Array) -> dict[str, Floats]:
    """What each user counts in the mean of a metric: 1, or the number of test rows; 0 where it is not defined."""
    return {
        m.name: np.where(np.isnan(values[m.name]), 0, rows if m.scope == "row" else 1).astype(np.float64)
        for m in wanted
        if m.scope != "all"
    }


def totals(values: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Weighted values and weights, float64[users] each; the mean is the ratio of their sums."""
    return np.where(weight > 0, values, 0) * weight, weight


def resample(users: int, columns: Floats, times: int, seed: int) -> Floats:
    """Column sums over `times` bootstrap samples of the users: float64[users, c] -> float64[times, c]."""
    rng = np.random.default_rng([seed, 1])
    out = np.empty((times, columns.shape[1]))
    for t in range(times):
        drawn = np.bincount(rng.integers(0, users, users, np.int32), minlength=users)
        out[t] = drawn @ columns
    return out


def resampled_means(
    wanted: list[Metric], parts: list[tuple[Floats, Floats]], times: int, seed: int
) -> tuple[Floats, Floats, Floats]:
    """Lower bound, mean and upper bound of each metric, float64[metrics] each; parts : `totals` of each."""
    columns = np.column_stack([p[0] for p in parts] + [p[1] for p in parts])

    def means(sums: Floats) -> Floats:
        part, whole = sums[..., : len(wanted)], sums[..., len(wanted) :]
        mean = np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole > 0)
        return np.stack([m.finish(mean[..., i]) for i, m in enumerate(wanted)], axis=-1)

    middle = means(columns.sum(axis=0))
    if times == 0:
        return np.full(len(wanted), np.nan), middle, np.full(len(wanted), np.nan)
    drawn = means(resample(len(columns), columns, times, seed))
    low, high = np.full(len(wanted), np.nan), np.full(len(wanted), np.nan)
    for i in range(len(wanted)):
        real = drawn[~np.isnan(drawn[:, i]), i]
        if real.size:
            low[i], high[i] = np.quantile(real, [0.025, 0.975])
    return low, middle, high
