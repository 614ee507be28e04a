"""Quality against training time: each model is fitted twice with the same seed, once timed and once evaluated.

Evaluating after each epoch takes time that must not count as training, so the two are kept apart; with a fixed seed
both fits go through the same epochs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..data.split import Split
from ..errors import CorankError, reason
from ..evaluation.evaluate import evaluate
from ..evaluation.metrics import Metric, metrics_of
from ..report import machine_facts, md_table, svg
from ..report.formatting import format_duration, format_value, metric_title
from ..report.palette import styles
from ..system.atomic import write_text
from ..system.names import file_name
from .entries import Entry
from .experiment import Experiment
from .runner import Progress, Watch, rows_of
from .stated import how_chosen


@dataclass(frozen=True)
class Curve:
    """One model: training seconds and metrics after each epoch, and the objective where the model reports one."""

    label: str
    setting: str
    chosen: str  # how the setting was chosen, in words
    protocol: str
    seconds: list[float]
    metrics: dict[str, list[float]]


def run(experiment: Experiment, on_progress: Progress | None = None) -> tuple[str, list[Curve], dict[str, str]]:
    """The split and the protocol in words, one curve per entry, and why others have none: label -> reason."""
    experiment.check()
    split = experiment.make_split()
    if split.valid_from_train:  # nothing is chosen here, so all training rows of a given split are learned from
        split = split.refit()
    metrics = metrics_of(experiment.metrics_used())
    curves = []
    failed: dict[str, str] = {}
    entries = experiment.entries()
    for place, entry in enumerate(entries, 1):
        watch = Watch(entry.label, on_progress)
        if watch(event="start", row=place, of=len(entries)):
            break
        try:
            curves.append(_curve(experiment, entry, split, metrics, watch))
        except Exception as why:  # the curves of the others are kept
            failed[entry.label] = reason(why)
            watch(event="failed", why=reason(why))
    if not curves:
        raise CorankError("; ".join(f"{k}: {v}" for k, v in failed.items()) or "stopped before any row was finished")
    return f"{split.name}; {curves[0].protocol}", curves, failed


def _curve(experiment: Experiment, entry: Entry, split: Split, metrics: tuple[Metric, ...], watch: Watch) -> Curve:
    train = rows_of(split.train, entry, experiment.seed)
    timed = entry.model.fit(train, on_epoch=watch.goes_on)
    seconds = [h["seconds"] for h in timed.history_]
    if not seconds:
        raise CorankError(f"{entry.model.name()} has no epochs to measure after: leave it out where curves = true")
    objective = [h["objective"] for h in timed.history_ if "objective" in h]
    values: dict[str, list[float]] = {"objective": objective} if objective else {}
    protocol = ""
    model = timed._copy()

    def measure(_: dict[str, Any]) -> bool:
        nonlocal protocol
        report = evaluate(model, split, metrics, bootstrap=0, **experiment.protocol_options())
        protocol = str(report.protocol)
        for name, mean in report.mean.items():
            values.setdefault(name, []).append(mean)
        return not watch.asked_to_stop()

    model.fit(train, on_epoch=measure)
    if watch.asked_to_stop():
        raise CorankError("stopped before it was finished")
    params = ", ".join(f"{k}={v}" for k, v in timed.params().items() if v is not None)
    return Curve(entry.label, params, how_chosen(entry.chosen, 0, entry.given), protocol, seconds, values)


def write(
    experiment: Experiment,
    setting: str,
    curves: Sequence[Curve],
    path: Path,
    command: str,
    failed: Mapping[str, str] | None = None,
) -> None:
    """Write a page with a table and a chart per metric; the charts are files beside the page."""
    names = list(dict.fromkeys(name for curve in curves for name in curve.metrics))
    page = [f"# {experiment.title or experiment.name}", f"{setting}. Seconds are those of training alone."]
    page += experiment.remarks
    page += [f"Skipped: {label}: {why}" for label, why in (failed or {}).items()]
    for name in names:
        picture = path.with_name(f"{path.stem}-{file_name(name.replace('@', ''))}.svg")
        try:
            write_text(picture, _draw(name, curves))
            page.append(f"![{metric_title(name)} against seconds of training]({picture.name})")
        except Exception as why:  # the tables are worth more than a chart
            page.append(f"The chart of {metric_title(name)} is missing: {reason(why)}.")
    last = []
    for curve in curves:
        ends = [format_value(curve.metrics[n][-1]) if n in curve.metrics else "" for n in names]
        last.append([curve.label, str(len(curve.seconds)), format_duration(curve.seconds[-1]), *ends])
    page += ["## At the end", md_table(["", "epochs", "time", *map(metric_title, names)], last)]
    for name in names:
        rows = [
            [c.label, *(format_value(c.metrics[name][e - 1]) for e in _shown(c))] for c in curves if name in c.metrics
        ]
        longest = max(curves, key=lambda c: len(c.seconds))
        page += [f"## {metric_title(name)} after epoch", md_table(["", *map(str, _shown(longest))], _padded(rows))]
    settings = [[c.label, c.setting, c.chosen] for c in curves]
    page += ["## Hyper-parameters", md_table(["", "hyper-parameters", "how they were chosen"], settings)]
    page += [machine_facts(), f"Made with\n\n    {command}"]
    write_text(path, "\n\n".join(page) + "\n")


def _shown(curve: Curve) -> list[int]:
    return [e for e in (1, 2, 3, 5, 8, 10, 15, 20, 30, 50, 100) if e <= len(curve.seconds)]


def _padded(rows: list[list[str]]) -> list[list[str]]:
    width = max(map(len, rows))
    return [row + [""] * (width - len(row)) for row in rows]


def _settled(curves: Sequence[Sequence[float]]) -> tuple[float, float]:
    """The range of the values after the first tenth of the epochs: from random vectors on, nothing else would show."""
    values = np.array([v for curve in curves for v in curve[len(curve) // 10 :] if math.isfinite(v)] or [0.0])
    margin = 0.05 * (float(np.ptp(values)) or 1.0)
    return float(values.min()) - margin, float(values.max()) + margin


def _draw(name: str, curves: Sequence[Curve]) -> str:
    shown = [c for c in curves if name in c.metrics]
    looks = styles([c.label for c in curves])
    lowest = 0.0
    if name == "objective":
        # Distance to the lowest value, of the rows with the objective of the first one: those that end near it.
        end = shown[0].metrics[name][-1]
        shown = [c for c in shown if abs(c.metrics[name][-1] / end - 1) < 0.05]
        lowest = min(min(c.metrics[name]) for c in shown)

    def paint(ax: Any) -> None:
        for curve in shown:
            values = curve.metrics[name]
            if lowest:
                values = [v / lowest - 1 if v > lowest * (1 + 1e-7) else float("nan") for v in values]
            look = looks[curve.label]
            ax.plot(curve.seconds, values, color=look.colour, marker=look.shape, ms=3, lw=1.2)
        ax.set_xscale("log")
        if lowest:
            ax.set_yscale("log")
            svg.log_ticks(ax, lambda v: np.format_float_positional(float(f"{100 * v:.3g}"), trim="-") + "%", "y")
        else:
            ax.set_ylim(*_settled([c.metrics[name] for c in shown]))
        svg.log_ticks(ax, lambda s: f"{s:g} s")
        ax.set_xlabel("seconds of training")
        ax.set_ylabel("objective above the lowest" if lowest else metric_title(name))
        ax.legend([svg.short(c.label, 32) for c in shown])

    return svg.draw(f"curve-{name.replace('@', '')}", paint, f"{metric_title(name)} against seconds of training", 3.0)
