"""Quality against training time: each model is fitted twice with one seed, once for the clock and once to be measured.

Measuring after each epoch costs time that training does not, so the two are kept apart; a fixed seed makes them one
and the same run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..atomic import write_text
from ..evaluation.evaluate import evaluate
from ..evaluation.metrics import metrics_of
from ..report import machine_facts, md_table, svg
from ..report.formatting import format_duration, format_value, metric_title
from ..report.palette import styles
from .experiment import Experiment, Progress


@dataclass(frozen=True)
class Curve:
    """One model: seconds and figures after each epoch; `objective` is among them where the model has one."""

    label: str
    setting: str
    seconds: list[float]
    figures: dict[str, list[float]]


def run(experiment: Experiment, on_progress: Progress | None = None) -> tuple[str, list[Curve]]:
    """(name of the split, a curve for each row of the experiment)."""
    experiment.check()
    split = experiment.make_split()
    metrics = metrics_of(experiment.measured())
    curves = []
    for row in experiment.rows_asked():
        timed = row.model.fit(split.train, on_epoch=lambda entry, row=row: tell(on_progress, row.label, entry))  # type: ignore[misc]
        seconds = [h["seconds"] for h in timed.history_]
        objective = [h["objective"] for h in timed.history_ if "objective" in h]
        values: dict[str, list[float]] = {"objective": objective} if objective else {}
        model = type(timed)(**timed.params())

        def measure(entry: dict[str, Any], model: Any = model, values: dict[str, list[float]] = values) -> None:
            report = evaluate(model, split, metrics, bootstrap=0, **experiment.how())
            for name, mean in report.mean.items():
                values.setdefault(name, []).append(mean)

        model.fit(split.train, on_epoch=measure)
        params = ", ".join(f"{k}={v}" for k, v in timed.params().items() if v is not None)
        curves.append(Curve(row.label, params, seconds, values))
    return split.name, curves


def tell(on_progress: Progress | None, label: str, entry: dict[str, Any]) -> bool:
    return on_progress is None or on_progress(label, {"event": "epoch", **entry}) is not False


def write(experiment: Experiment, split: str, curves: Sequence[Curve], path: Path, command: str) -> None:
    """A page with a table and a picture for each figure; the pictures stand beside the page."""
    names = list(dict.fromkeys(name for curve in curves for name in curve.figures))
    intro = f"{split}; {experiment.how()['protocol']} protocol. Seconds are those of training alone."
    page = [f"# {experiment.name}", intro]
    for name in names:
        picture = path.with_name(f"{path.stem}-{name.replace('@', '')}.svg")
        write_text(picture, _draw(name, curves))
        page.append(f"![{metric_title(name)} against seconds of training]({picture.name})")
    last = []
    for curve in curves:
        ends = [format_value(curve.figures[n][-1]) if n in curve.figures else "" for n in names]
        last.append([curve.label, str(len(curve.seconds)), format_duration(curve.seconds[-1]), *ends])
    page += ["## At the end", md_table(["", "epochs", "time", *map(metric_title, names)], last)]
    for name in names:
        rows = [
            [c.label, *(format_value(c.figures[name][e - 1]) for e in _shown(c))] for c in curves if name in c.figures
        ]
        longest = max(curves, key=lambda c: len(c.seconds))
        page += [f"## {metric_title(name)} after epoch", md_table(["", *map(str, _shown(longest))], _padded(rows))]
    page += ["## Settings", md_table(["", "hyper-parameters"], [[c.label, c.setting] for c in curves])]
    page += [machine_facts(), f"Made with\n\n    {command}"]
    write_text(path, "\n\n".join(page) + "\n")


def _shown(curve: Curve) -> list[int]:
    return [e for e in (1, 2, 3, 5, 8, 10, 15, 20, 30, 50, 100) if e <= len(curve.seconds)]


def _padded(rows: list[list[str]]) -> list[list[str]]:
    width = max(map(len, rows))
    return [row + [""] * (width - len(row)) for row in rows]


def _draw(name: str, curves: Sequence[Curve]) -> str:
    shown = [c for c in curves if name in c.figures]
    looks = styles([c.label for c in curves])
    lowest = 0.0
    if name == "objective":
        # What is left to gain, of those that minimise the same thing as the first row: its last figure tells which.
        end = shown[0].figures[name][-1]
        shown = [c for c in shown if abs(c.figures[name][-1] / end - 1) < 0.05]
        lowest = min(min(c.figures[name]) for c in shown)

    def paint(ax: Any) -> None:
        from matplotlib.ticker import FuncFormatter

        for curve in shown:
            values = curve.figures[name]
            if lowest:
                values = [v / lowest - 1 if v > lowest * (1 + 1e-7) else float("nan") for v in values]
            look = looks[curve.label]
            ax.plot(curve.seconds, values, color=look.colour, marker=look.shape, ms=3, lw=1.2)
        ax.set_xscale("log")
        if lowest:
            ax.set_yscale("log")
            ax.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{100 * v:g}%"))
        svg.log_ticks(ax, lambda s: f"{s:g} s")
        ax.set_xlabel("seconds of training")
        ax.set_ylabel("objective above the lowest" if lowest else metric_title(name))
        ax.legend([svg.short(c.label) for c in shown])

    return svg.draw(f"curve-{name.replace('@', '')}", paint, f"{metric_title(name)} against seconds of training", 3.0)
