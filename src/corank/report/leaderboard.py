"""The leaderboard of an experiment: the best model, by how much, and whether that is significant.

Each row is compared with the best contender on the first metric by a paired test over users. An oracle is an upper
bound, not a contender: it takes no part in the tests.
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

from ..errors import reason
from .formatting import count_of, format_duration, format_interval, format_p, format_value, metric_title, plain

if TYPE_CHECKING:
    import polars as pl

    from ..evaluation.significance import PairedTest
    from ..experiment.results import Results, Row

logger = logging.getLogger("corank")

STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))
STARS_MEAN = "*** p < 0.001, ** p < 0.01, * p < 0.05"


@dataclass(frozen=True)
class Line:
    """A row of the results, compared with the best one."""

    label: str  # unique, unlike the row's own
    row: Row
    best: bool
    versus: PairedTest | None = None  # against the best row; None for the best row itself and for oracles

    @property
    def p(self) -> float | None:
        """The p-value of the paired randomisation test, Holm-corrected."""
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
        except Exception as why:  # the metric is defined for no user: a leaderboard without tests is still one
            logger.warning("no significance tests: %s", reason(why))
    return [Line(label, row, row is best, versus.get(label)) for label, row in named]


def p_note(metric: str, best: str) -> str:
    """What the p-values of a table are."""
    return f"p: two-sided paired randomisation test of {metric} against {best}, Holm-corrected"


def setting(row: Row) -> str:
    """The hyper-parameters as `name=value`, without the seed and those that are None."""
    params = row.report.params.items()
    return ", ".join(
        f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}" for k, v in params if k != "seed" and v is not None
    )


def verdict(results: Results) -> str:
    """What was found, in plain sentences; the first word is the label of the best row."""
    first, best = results.metrics[0], results.best
    report = best.report
    users = count_of(report.users.size, "test user")
    mean = f"{metric_title(first)} {format_value(report[first])} {format_interval(report.interval[first])}".strip()
    verb = "predicts" if "prediction" in results.metric(first).needs else "ranks"
    says = [f"{best.label} {verb} best on {users}: {mean}."]
    rivals = [line for line in results.lines if not line.best and not line.row.oracle]
    if rivals:
        second = rivals[0]
        score = f"{second.label} ({format_value(second.row.report[first])})"
        if second.row.report[first] == report[first]:
            says = [f"{best.label} and {second.label} tie on {users}: {mean}."]
        elif second.p is None:
            says.append(f"The runner-up is {score}.")
        elif second.p < 0.05:
            says.append(f"The difference to the runner-up {score} is significant, p {_equals(second.p)}.")
        else:
            level = next((i for i, line in enumerate(rivals) if line.p is not None and line.p < 0.05), len(rivals))
            after = {1: "", 2: ", nor is that to the next model"}.get(
                level, f", nor are those to the next {level - 1} models"
            )
            says.append(f"The difference to the runner-up {score} is not significant, p {_equals(second.p)}{after}.")
    elif not best.oracle:
        says.append("No other model was evaluated, so there is nothing to compare it with.")
    ceiling = next((row for row in results.rows if row.oracle and row is not best), None)
    if ceiling is not None:
        higher = results.metric(first).higher_is_better
        says.append(_against_oracle(report[first], ceiling.report[first], ceiling.label, higher))
    return " ".join(says)


def _against_oracle(mean: float, top: float, label: str, higher: bool) -> str:
    oracle = f"{label}, which knows the parameters of the synthetic data, has {format_value(top)}"
    if not higher:
        return f"For reference, {oracle}."
    if not 0 < mean < top:
        return f"It is on a par with the best possible: {oracle}."
    return f"It reaches {mean / top:.0%} of the best possible: {oracle}."


def frame(results: Results) -> pl.DataFrame:
    """One row per model: label, each metric with `_low` and `_high`, the test against the best, seconds, params."""
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
    """Plain values for JSON; numbers that are not finite become None."""
    rows = []
    for line in results.lines:
        own = {"label": line.label, "oracle": line.row.oracle, "best": line.best, "trials": line.row.trials}
        own |= {"chosen": line.row.chosen}
        if line.row.published:
            own |= {"published": dict(line.row.published), "published_under": line.row.published_under}
        rows.append({**own, **line.row.report.as_dict(), "against_best": _compared(line)})
    return {
        "name": results.name,
        "split": results.split.name,
        "notes": list(results.split.notes),
        "protocol": str(results.best.report.protocol),
        "metrics": list(results.metrics),
        "verdict": verdict(results),
        "seconds": results.seconds,
        "rows": rows,
        "failed": dict(results.failed),
        "left_out": dict(results.left_out),
    }


def _cells(results: Results) -> tuple[list[str], list[list[str]]]:
    """Heads and rows of the leaderboard as text: the first metric with its interval, the others without."""
    first, *others = results.metrics
    cells = []
    for line in results.lines:
        report = line.row.report
        mark = "oracle" if line.row.oracle else "best" if line.best else f"{format_p(line.p)} {line.stars}".strip()
        values = [f"{format_value(report[first])} {format_interval(report.interval[first])}"]
        values += [format_value(report[m]) for m in others]
        cells.append([plain(line.label), *values, mark, format_duration(report.fit_seconds)])
    return ["", first, *others, "p", "fit"], cells


def _remarks(results: Results) -> list[str]:
    """What is printed below the table."""
    out = []
    if any(line.p is not None for line in results.lines):
        against = next(line.label for line in results.lines if line.best)
        out.append(f"{p_note(results.metrics[0], against)}; {STARS_MEAN}")
    out += [f"skipped: {label}: {why}" for label, why in results.failed.items()]
    return out + [f"left out: {label}: {why}" for label, why in results.left_out.items()]


def _caption(results: Results) -> str:
    report = results.best.report
    return f"{results.name}: {report.split}, {report.users.size:,} users; {report.protocol}"


def text(results: Results) -> str:
    """The leaderboard for a terminal."""
    heads, cells = _cells(results)
    widths = [max(len(row[i]) for row in (heads, *cells)) for i in range(len(heads))]
    left = (0, 1, len(heads) - 2)

    def put(row: Sequence[str]) -> str:
        return "  ".join(
            c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
        )

    remarks = _remarks(results)
    notes = [f"note: {note}" for note in results.split.notes]
    apart = [""] if remarks and remarks[0].startswith("p:") else []
    lines = [_caption(results), *notes, "", put(heads), *map(put, cells), *apart, *remarks]
    return "\n".join(map(plain, lines))


def html(results: Results) -> str:
    """The same for a notebook."""
    from ..notebook import html_table

    heads, cells = _cells(results)
    return html_table(cells, heads, caption=_caption(results), more="; ".join(_remarks(results)))


def _compared(line: Line) -> dict[str, float | None]:
    """The test against the best row, by name; None where there was no test or no finite number."""
    names = {"difference": "difference", "difference_low": "low", "difference_high": "high", "p": "p_randomization"}
    names |= {name: name for name in ("effect", "better", "worse")}
    values = {name: getattr(line.versus, source, None) for name, source in names.items()}
    return {name: None if v is None or not math.isfinite(v) else float(v) for name, v in values.items()}


def _distinct(labels: Sequence[str]) -> list[str]:
    """The labels; a repeated one gets a number."""
    out: list[str] = []
    for label in labels:
        name, n = label, 1
        while name in out:
            n += 1
            name = f"{label} ({n})"
        out.append(name)
    return out


def _equals(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"= {format_p(p)}"
