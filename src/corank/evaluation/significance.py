"""Is the best model significantly better? Paired tests over users, Holm-corrected, with effect sizes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..errors import CorankError, suggest
from .intervals import resample, totals
from .metrics import AnyMetric, Metric
from .positions import Floats
from .protocol import Protocol
from .report import Report

TESTS = ("randomization", "wilcoxon", "both")


@dataclass(frozen=True)
class PairedTest:
    """The test of one model against the reference; differences are model minus reference, in units of the metric."""

    model: str
    mean: float
    difference: float
    low: float  # 95 % bootstrap interval of the difference, users resampled in pairs
    high: float
    p_randomization: float | None  # Holm-corrected, as is p_wilcoxon; None where the test was not run
    p_wilcoxon: float | None
    effect: float  # Cohen's dz: mean difference over its standard deviation; positive = the model is better
    better: float  # share of users for whom the model is better
    worse: float
    equal: float


@dataclass(frozen=True)
class Comparison:
    """All models tested against one reference, under one protocol; `rows` are sorted best first."""

    metric: str
    reference: str
    reference_mean: float
    protocol: str
    split: str
    part: str
    users: int  # for whom the metric is defined
    rows: tuple[PairedTest, ...]

    def __str__(self) -> str:
        width = max(len(name) for name in [self.reference, "model", *(r.model for r in self.rows)])
        lines = [
            f"{self.metric} on {self.split} ({self.part}, {self.users:,} users)",
            self.protocol,
            f"{'model':<{width}}  {'mean':>8}  {'difference':>29}  {'p rand.':>8}  {'p Wilc.':>8}  {'effect':>7}"
            "  better/worse/equal",
            f"{self.reference:<{width}}  {self.reference_mean:8.4f}  {'reference':>29}",
        ]
        for r in self.rows:
            span = f"{r.difference:+.4f} [{r.low:+.4f}, {r.high:+.4f}]"
            shares = f"{r.better:.0%}/{r.worse:.0%}/{r.equal:.0%}"
            lines.append(
                f"{r.model:<{width}}  {r.mean:8.4f}  {span:>29}  {_p(r.p_randomization):>8}  {_p(r.p_wilcoxon):>8}"
                f"  {r.effect:+7.3f}  {shares}"
            )
        return "\n".join([*lines, "p-values: paired by user, two-sided, Holm-corrected"])

    def to_frame(self) -> Any:
        """One row per model, the reference first."""
        import polars as pl

        names = PairedTest.__dataclass_fields__
        first = PairedTest(self.reference, self.reference_mean, 0.0, 0.0, 0.0, None, None, 0.0, 0.0, 0.0, 1.0)
        floats = {name: pl.Float64 for name in names if name != "model"}
        rows = [{name: getattr(r, name) for name in names} for r in (first, *self.rows)]
        return pl.DataFrame(rows, schema_overrides=floats)


def compare(
    reports: Sequence[Report],
    metric: AnyMetric | None = None,
    *,
    against: str = "best",
    test: Literal["randomization", "wilcoxon", "both"] = "both",
    permutations: int = 10_000,
    bootstrap: int = 1000,
    seed: int = 0,
) -> Comparison:
    """Test each report against one of them, paired by user.

    Parameters
    ----------
    metric : one that all reports have; the first one of the first report when None.
    against : the name of the reference, or 'best' for the one with the best mean.
    test : 'randomization' (signs of the differences flipped at random), 'wilcoxon' (signed ranks) or 'both'; p-values
        are two-sided and Holm-corrected over the models compared, separately for each test.

    For rmse and mae, which are means over rows, the randomisation test uses the sum of a user's (squared) errors, the
    Wilcoxon test and the effect size their mean.
    """
    if len(reports) < 2:
        raise CorankError(f"{len(reports)} report: a comparison needs at least two")
    if test not in TESTS:
        raise CorankError(f"there is no test {test!r}{suggest(str(test), TESTS)}")
    if permutations < 1 or bootstrap < 1:
        raise CorankError(f"permutations={permutations}, bootstrap={bootstrap}: both must be at least 1")
    _check_same_task(reports)
    what = reports[0].metric(metric if metric is not None else reports[0].metrics[0])
    if what.scope == "all":
        raise CorankError(f"{what.name} is one number for all users together: there are no values per user to pair")
    names = [r.model for r in reports]
    sign = 1 if what.higher_is_better else -1
    if against == "best":
        against = names[int(np.nanargmax([sign * r[what.name] for r in reports]))]
    if against not in names:
        raise CorankError(f"there is no report of {against!r}{suggest(against, names)}")
    reference = reports[names.index(against)]
    others = sorted((r for r in reports if r is not reference), key=lambda r: -sign * r[what.name])
    defined = ~np.isnan(reference.values[what.name])
    for r in others:
        if not np.array_equal(defined, ~np.isnan(r.values[what.name])):
            raise CorankError(f"{what.name} is defined for other users in {r.model} than in {against}: not comparable")
    if not defined.any():
        raise CorankError(f"{what.name} is defined for no user: choose another metric")
    gaps = np.column_stack([_clean(r.values[what.name] - reference.values[what.name])[defined] for r in others])
    weight = reference.weights[what.name][defined]
    spans = _spans(what, [reference, *others], defined, bootstrap, seed)
    randomized: list[float] | list[None] = [None] * len(others)
    wilcoxon: list[float] | list[None] = [None] * len(others)
    if test != "wilcoxon":
        randomized = holm(sign_flip(gaps * weight[:, None], permutations, seed))
    if test != "randomization":
        wilcoxon = holm(np.array([_wilcoxon(gaps[:, i]) for i in range(len(others))]))
    rows = [
        PairedTest(
            r.model,
            r[what.name],
            r[what.name] - reference[what.name],
            *spans[i],
            randomized[i],
            wilcoxon[i],
            _dz(sign * gaps[:, i]),
            float(np.mean(sign * gaps[:, i] > 0)),
            float(np.mean(sign * gaps[:, i] < 0)),
            float(np.mean(gaps[:, i] == 0)),
        )
        for i, r in enumerate(others)
    ]
    return Comparison(
        what.name,
        against,
        reference[what.name],
        str(reference.protocol),
        reference.split,
        reference.part,
        int(defined.sum()),
        tuple(rows),
    )


def sign_flip(gaps: Floats, permutations: int, seed: int = 0) -> Floats:
    """Two-sided p-value per column of paired differences float64[users, c]: how often random signs give as large a sum.

    p = (hits + 1) / (permutations + 1), as the observed signs are one of the permutations.
    """
    rng = np.random.default_rng([seed, 2])
    gaps = gaps[(gaps != 0).any(axis=1)]
    seen = np.abs(gaps.sum(axis=0))
    slack = 1e-12 * np.abs(gaps).sum(axis=0)  # sums of the same numbers in another order must count as equal
    hits = np.zeros(gaps.shape[1], np.int64)
    size = max(1, 4_000_000 // max(len(gaps), 1))
    for start in range(0, permutations, size):
        now = min(size, permutations - start)
        bits = np.unpackbits(rng.integers(0, 256, (now, -(-len(gaps) // 8)), np.uint8), axis=1, count=len(gaps))
        flipped = 2 * (bits.astype(np.float64) @ gaps) - gaps.sum(axis=0)
        hits += (np.abs(flipped) >= seen - slack).sum(axis=0)
    return (hits + 1) / (permutations + 1)


def holm(p: Floats) -> list[float]:
    """Holm's step-down correction: the i-th smallest of m p-values times m - i + 1, non-decreasing, at most 1."""
    order = np.argsort(p, kind="stable")
    raised = np.minimum(np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1)), 1)
    out = np.empty(p.size)
    out[order] = raised
    return [float(x) for x in out]


def relative_graph_gain(mf: float | Report, g: float | Report, x: float | Report) -> float:
    """Relative Graph Gain in percent, the dissertation's measure of what deeper graph information adds.

    ((RMSE without graph - RMSE with x) / (RMSE without graph - RMSE with g) - 1) * 100: 0 when x is no better than the
    plain graph. The arguments are RMSEs, or reports with rmse.
    """
    without, graph, deep = (v["rmse"] if isinstance(v, Report) else float(v) for v in (mf, g, x))
    if not without - graph > 0:
        raise CorankError(
            f"RMSE is {without:g} without and {graph:g} with the graph: the gain is defined only where the graph helps"
        )
    return ((without - deep) / (without - graph) - 1) * 100


def _check_same_task(reports: Sequence[Report]) -> None:
    first = reports[0]
    for r in reports[1:]:
        if _without_unknown(r.protocol) != _without_unknown(first.protocol):
            raise CorankError(
                f"protocols never mix in one table: {first.model} has {first.protocol}; {r.model} has {r.protocol}"
            )
        if (r.split, r.part, r.fingerprint) != (first.split, first.part, first.fingerprint):
            raise CorankError(
                f"{first.model} was measured on {first.split} ({first.part}) and {r.model} on {r.split} ({r.part}): "
                "evaluate both on one split of the same data"
            )
        if not np.array_equal(r.users, first.users):
            raise CorankError(
                f"{first.model} and {r.model} were measured on different users: evaluate them on one split"
            )
    names = [r.model for r in reports]
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise CorankError(f"two reports are called {twice!r}: give them different names with evaluate(..., name=...)")


def _without_unknown(protocol: Protocol) -> Protocol:
    """What lists have learned from is not known: they stand beside models without refit."""
    return dataclasses.replace(protocol, refit=bool(protocol.refit))


def _spans(what: Metric, reports: list[Report], defined: Any, bootstrap: int, seed: int) -> list[tuple[float, float]]:
    """Bootstrap interval of the difference to the first report, for each of the others."""
    parts = [totals(r.values[what.name], r.weights[what.name]) for r in reports]
    columns = np.column_stack([parts[0][1], *(p[0] for p in parts)])[defined]
    sums = resample(len(columns), columns, bootstrap, seed)
    means = what.finish(sums[:, 1:] / sums[:, :1])
    low, high = np.quantile(means[:, 1:] - means[:, :1], [0.025, 0.975], axis=0)
    return [(float(a), float(b)) for a, b in zip(low, high, strict=True)]


def _clean(gaps: Floats) -> Floats:
    """Differences of the size of rounding errors count as 0."""
    return np.where(np.abs(gaps) < 1e-12, 0, gaps)


def _wilcoxon(gaps: Floats) -> float:
    from scipy.stats import wilcoxon

    gaps = gaps[gaps != 0]
    return 1.0 if gaps.size == 0 else float(wilcoxon(gaps).pvalue)


def _dz(gaps: Floats) -> float:
    spread = float(gaps.std(ddof=1)) if gaps.size > 1 else 0.0
    mean = float(gaps.mean())
    if spread == 0:
        return 0.0 if mean == 0 else math.copysign(math.inf, mean)
    return mean / spread


def _p(value: float | None) -> str:
    return "" if value is None else ("<0.0001" if value < 0.0001 else f"{value:.4f}")
