"""The leaderboard of an experiment: who is best, how sure that is, and by how much; as a frame, a text or a dict.

Each row is compared with the best contender on the first metric, user by user. An oracle row is a ceiling, not a
contender: it takes no part in the tests.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import CorankError

if TYPE_CHECKING:
    import polars as pl

    from ..evaluation.significance import PairedTest
    from ..experiment.results import Results, Row

logger = logging.getLogger("corank")

_CAPITALS = ("ndcg", "mrr", "map", "auc", "hlu", "rmse", "mae")
STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))
STARS_MEAN = "*** p < 0.001, ** p < 0.01, * p < 0.05"


@dataclass(frozen=True)
class Line:
    """A row with its place among the others."""

    label: str  # unlike the row's own, never used twice
    row: Row
    best: bool
    versus: PairedTest | None = None  # the comparison with the best; None for the best itself and for oracles

    @property
    def p(self) -> float | None:
        """Of the paired randomisation test, Holm-corrected."""
        return None if self.versus is None else self.versus.p_randomization

    @property
    def stars(self) -> str:
        p = self.p
        return "" if p is None else next((mark for limit, mark in STARS if p < limit), "")


def lines(results: Results) -> list[Line]:
    """The rows in order, each compared with the best contender on the first metric."""
    from ..evaluation.significance import compare

    first, best = results.metrics[0], results.best
    named = list(zip(_distinct([row.label for row in results.rows]), results.rows, strict=True))
    contenders = [dataclasses.replace(row.report, model=label) for label, row in named if not row.oracle]
    versus: dict[str, PairedTest] = {}
    if len(contenders) > 1 and results.metric(first).scope != "all":
        reference = next(label for label, row in named if row is best)
        try:
            found = compare(contenders, first, against=reference, test="randomization")
            versus = {row.model: row for row in found.rows}
        except CorankError as why:  # the metric is defined for nobody: a leaderboard without tests is still one
            logger.warning("no significance tests: %s", why)
    return [Line(label, row, row is best, versus.get(label)) for label, row in named]


def these_users(n: int) -> str:
    return "this one user" if n == 1 else f"these {n:,} users"


def plain(text: object) -> str:
    """One line that can be shown anywhere: control characters become blanks."""
    return "".join(c if c.isprintable() else " " for c in str(text))


def title(name: str) -> str:
    """A metric as people write it: NDCG@10, Recall@10."""
    word, at, k = name.partition("@")
    spoken = word.upper() if word in _CAPITALS else word.replace("_", " ").capitalize()
    return spoken + at + k


def figure(value: float | None) -> str:
    """A metric as text: four decimals below 10, fewer above."""
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value:.4f}" if abs(value) < 10 else f"{value:.2f}" if abs(value) < 1000 else f"{value:,.0f}"


def bracket(interval: tuple[float, float]) -> str:
    """[low, high], or nothing where there is no interval."""
    return "" if not np.isfinite(interval).all() else f"[{figure(interval[0])}, {figure(interval[1])}]"


def chance(p: float | None) -> str:
    """A p-value as text."""
    if p is None or math.isnan(p):
        return ""
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def duration(seconds: float) -> str:
    """Seconds as text, three digits at most."""
    if not math.isfinite(seconds):
        return "–"
    if seconds < 0.0995:
        return f"{1000 * seconds:.0f} ms" if seconds >= 0.0005 else "< 1 ms"
    if seconds < 600:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def setting(row: Row) -> str:
    """The hyper-parameters, but the seed, as `name=value`; what is not set is left out."""
    params = row.report.params.items()
    return ", ".join(
        f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}" for k, v in params if k != "seed" and v is not None
    )


def verdict(results: Results) -> str:
    """What was found, in plain sentences."""
    first, best = results.metrics[0], results.best
    report = best.report
    mean = f"{title(first)} {figure(report[first])} {bracket(report.interval[first])}".strip()
    verb = "predicts" if "prediction" in results.metric(first).needs else "ranks"
    says = [f"{best.label} {verb} best for {these_users(report.users.size)}: {mean}."]
    rivals = [line for line in results.lines if not line.best and not line.row.oracle]
    if rivals:
        second = rivals[0]
        score = f"{second.label} ({figure(second.row.report[first])})"
        if second.row.report[first] == report[first]:
            says = [f"No row is ahead: {best.label} and {second.label} have the same {mean}."]
        elif second.p is None:
            says.append(f"The runner-up is {score}.")
        elif second.p < 0.05:
            says.append(f"The difference to the runner-up {score} is significant, p {_equals(second.p)}.")
        else:
            level = next((i for i, line in enumerate(rivals) if line.p is not None and line.p < 0.05), len(rivals))
            after = {1: "", 2: ", nor is that to the next one"}.get(level, f", nor are those to the next {level - 1}")
            says.append(
                f"The difference to the runner-up {score} is not significant, p {_equals(second.p)}{after}: "
                "these users do not tell them apart."
            )
    elif not best.oracle:
        says.append("No other row was finished, so there is nothing to compare it with.")
    ceiling = next((row for row in results.rows if row.oracle and row is not best), None)
    if ceiling is not None:
        higher = results.metric(first).higher_is_better
        says.append(_reached(report[first], ceiling.report[first], ceiling.label, higher))
    return " ".join(says)


def _reached(mean: float, top: float, label: str, higher: bool) -> str:
    knows = f"{label}, which knows the truth behind the data, has {figure(top)}"
    if not higher:
        return f"The best possible is about that of {knows}."
    if not 0 < mean < top:
        return f"It is level with the best possible: {knows}."
    return f"It reaches {mean / top:.0%} of what is possible: {knows}."


def frame(results: Results) -> pl.DataFrame:
    """One row a model: label, each metric with `_low` and `_high`, what compares with the best, seconds, params."""
    import polars as pl

    rows = []
    for line in results.lines:
        report = line.row.report
        out: dict[str, Any] = {"label": line.label, "model": report.model, "oracle": line.row.oracle, "best": line.best}
        for name in results.metrics:
            out[name] = report[name]
            out[f"{name}_low"], out[f"{name}_high"] = report.interval[name]
        out |= {name: math.nan if value is None else value for name, value in _compared(line).items()}
        params = {k: v.item() if isinstance(v, np.generic) else v for k, v in report.params.items()}
        out |= {"fit_seconds": report.fit_seconds, "seconds": report.seconds, "trials": line.row.trials}
        rows.append(out | {"params": json.dumps(params, default=str)})
    return pl.DataFrame(rows)


def as_dict(results: Results) -> dict[str, Any]:
    """Plain values for JSON; what is not a finite number is None."""
    rows = []
    for line in results.lines:
        own = {"label": line.label, "oracle": line.row.oracle, "best": line.best, "trials": line.row.trials}
        rows.append({**own, **line.row.report.as_dict(), "against_best": _compared(line)})
    return {
        "name": results.name,
        "split": results.split.name,
        "protocol": str(results.best.report.protocol),
        "metrics": list(results.metrics),
        "verdict": verdict(results),
        "seconds": results.seconds,
        "rows": rows,
        "failed": dict(results.failed),
    }


def text(results: Results) -> str:
    """The leaderboard for a terminal: the first metric with its interval, the others as they are."""
    first, *others = results.metrics
    heads = ["", first, *others, "p", "fit"]
    cells = []
    for line in results.lines:
        report = line.row.report
        mark = "oracle" if line.row.oracle else "best" if line.best else f"{chance(line.p)} {line.stars}".strip()
        figures = [f"{figure(report[first])} {bracket(report.interval[first])}", *(figure(report[m]) for m in others)]
        cells.append([plain(line.label), *figures, mark, duration(report.fit_seconds)])
    widths = [max(len(row[i]) for row in (heads, *cells)) for i in range(len(heads))]
    left = (0, 1, len(heads) - 2)

    def put(row: Sequence[str]) -> str:
        return "  ".join(
            c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
        )

    report = results.best.report
    out = [f"{results.name}: {report.split}, {report.users.size:,} users; {report.protocol}", "", put(heads)]
    out += map(put, cells)
    if any(line.p is not None for line in results.lines):
        against = next(line.label for line in results.lines if line.best)
        out += ["", f"p: paired randomisation test of {first} against {against}, Holm-corrected; {STARS_MEAN}"]
    return "\n".join(out + [f"left out: {label}: {why}" for label, why in results.failed.items()])


def _compared(line: Line) -> dict[str, float | None]:
    """What compares a line with the best, by name; None where there is nothing or no finite number."""
    names = {"difference": "difference", "difference_low": "low", "difference_high": "high", "p": "p_randomization"}
    names |= {name: name for name in ("effect", "better", "worse")}
    values = {name: getattr(line.versus, source, None) for name, source in names.items()}
    return {name: None if v is None or not math.isfinite(v) else float(v) for name, v in values.items()}


def _distinct(labels: Sequence[str]) -> list[str]:
    """The labels; one that was there before gets a number."""
    out: list[str] = []
    for label in labels:
        name, n = label, 1
        while name in out:
            n += 1
            name = f"{label} ({n})"
        out.append(name)
    return out


def _equals(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"= {chance(p)}"
