"""What a report says, whatever its format: the table of results, the notes on it, the dataset, the evaluation setup."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from ..errors import reason
from .formatting import count_of, format_duration, format_interval, format_p, format_value, metric_title
from .leaderboard import STARS_MEAN, Line, p_note
from .machine import commit, processor, versions

if TYPE_CHECKING:
    from ..data.describe import Description, Spread
    from ..experiment.results import Results

Made = TypeVar("Made")
logger = logging.getLogger("corank")
ORDER = {
    "file": "equal timestamps keep the order of the file",
    "item": "events of equal timestamps are ordered by item id",
}
TARGETS = "every position of a history is a target in training"


def attempt(missing: list[str], what: str, make: Callable[[], Made]) -> Made | None:
    """What `make` returns. If it fails, None: the report goes on, and `missing` says what is not in it, and why."""
    try:
        return make()
    except Exception as why:
        missing.append(f"Missing in this report: {what}: {reason(why)}")
        logger.warning("%s cannot be reported: %s", what, reason(why))
        return None


def table(results: Results, board: Sequence[Line]) -> tuple[list[str], list[list[tuple[str, str]]]]:
    """Column heads, and for each row its cells as (value, small print)."""
    published = any(line.row.published for line in board)
    heads = [
        "",
        *map(metric_title, results.metrics),
        *(["gain"] if results.between else []),
        *(["published"] if published else []),
        "p",
        "effect",
        "better / worse",
        "fit time",
    ]
    cells = []
    for line in board:
        report = line.row.report
        small = "" if report.model == line.label else report.model
        row = [(line.label, small)]
        row += [(format_value(report[m]), format_interval(report.interval[m])) for m in results.metrics]
        if results.between:
            gained = results.gained(line.row)
            row.append(("" if gained is None else f"{round(gained, 2) + 0.0:.0%}", ""))  # not -0%
        if published:
            row.append((", ".join(f"{metric_title(m)} {v:g}" for m, v in line.row.published.items()), ""))
        row.append((format_p(line.p), line.stars) if line.p is not None else ("best" if line.best else "–", ""))
        versus = line.versus
        row.append(("" if versus is None else f"{versus.effect:+.2f}" if math.isfinite(versus.effect) else "–", ""))
        row.append(("" if versus is None else f"{versus.better:.0%} / {versus.worse:.0%}", ""))
        tried = f"{count_of(line.row.trials, 'setting')} tried" if line.row.trials else ""
        row.append((format_duration(report.fit_seconds), tried))
        cells.append(row)
    return heads, cells


def notes(results: Results, board: Sequence[Line]) -> list[str]:
    """What a reader of the table must know."""
    best, first = results.best, metric_title(results.metrics[0])
    down = [metric_title(m) for m in results.metrics if not results.metric(m).higher_is_better]
    lower = f" Lower is better: {', '.join(down)}." if down else ""
    protocol = str(best.report.protocol)
    users = count_of(best.report.users.size, "user")
    out = [
        f"{protocol[:1].upper()}{protocol[1:]}; {best.report.split}.",
        f"In brackets: 95% bootstrap confidence interval over {users}.{lower}",
    ]
    out += [f"{note[:1].upper()}{note[1:]}." for note in results.split.notes]
    if best.runs > 1:
        over = ", ".join(f"{line.label} {format_value(line.row.deviation[results.metrics[0]])}" for line in board)
        seeds = "different seeds on the same split" if results.one_split else "different seeds and splits"
        out.append(f"Mean of {best.runs} runs with {seeds}; standard deviation of {first} over the runs: {over}.")
    if results.overlap:
        out.append(
            "Hyper-parameters were searched on the validation rows of the first split alone; "
            f"{results.overlap:.0%} of the test rows of the other splits are among those rows."
        )
    out += _published(board)
    if results.between:
        start, end = results.between
        out.append(f"Gain: {first} on a scale from {start} (0%) to {end} (100%).")
    if any(line.p is not None for line in board):
        out.append(
            f"{p_note(first, best.label)} ({STARS_MEAN}). "
            "Effect: Cohen's d of the paired differences (mean / standard deviation), negative = worse than the best "
            "model. Better / worse: share of users for whom the model is better / worse than the best one."
        )
    if any(line.row.oracle for line in board):
        out.append(
            "The oracle knows the parameters that generated the synthetic data: an upper bound, not a contender."
        )
    out += results.remarks
    out += [f"Skipped: {label}: {why}" for label, why in results.failed.items()]
    return out + [f"Left out: {label}: {why}" for label, why in results.left_out.items()]


def _published(board: Sequence[Line]) -> list[str]:
    """What the published figures were measured under; rows with the same answer are together."""
    under: dict[str, list[str]] = {}
    for line in board:
        if line.row.published:
            under.setdefault(line.row.published_under or "source and protocol not recorded", []).append(line.label)
    if len(under) == 1:
        return [f"Published: {next(iter(under))}."]
    return [f"Published ({', '.join(labels)}): {words}." for words, labels in under.items()]


def portrait(facts: Description) -> list[tuple[str, str]]:
    """The statistics of the dataset."""
    out = [
        ("Interactions", f"{facts.rows:,}"),
        ("Users", f"{facts.users:,}"),
        ("Items", f"{facts.items:,}"),
        ("Density", f"{100 * facts.density:.3g}%"),
        ("Interactions per user", _spread(facts.user_rows)),
        ("Interactions per item", _spread(facts.item_rows)),
        ("Most popular items", f"1% have {facts.top1_share:.0%} of the interactions, 10% have {facts.top10_share:.0%}"),
    ]
    spread = f" from {facts.value.min:,.6g} to {facts.value.max:,.6g}, mean {facts.value.mean:.3g}"
    out.append(("Values", "none" if facts.values == "none" else f"{facts.values}{spread}"))
    if facts.dates is not None:
        out.append(("Time", f"{facts.dates[0][:10]} to {facts.dates[1][:10]}"))
    edges = [f"{n:,} {side}" for side, n in (("user", facts.user_edges), ("item", facts.item_edges)) if n is not None]
    return out + [("Graph edges", ", ".join(edges))] * bool(edges)


def method(results: Results) -> list[tuple[str, str]]:
    """Everything that must be known to reproduce the numbers, but the command."""
    split, report = results.split, results.best.report
    seeds = sorted({str(row.report.params["seed"]) for row in results.rows if "seed" in row.report.params})
    parts = f"{len(split.train):,} training, {len(split.valid):,} validation and {len(split.test):,} test interactions"
    known = "" if split.history is None else f", {len(split.history):,} known interactions of held-out users"
    users = count_of(report.users.size, "user")
    reads_order = any(row.model.order_matters for row in results.rows)
    return [
        ("Protocol", str(report.protocol)),
        ("Split", f"{split.name}: {parts}{known}"),
        ("Evaluated on", f"{report.part} interactions of {users}, fingerprint {report.fingerprint}"),
        *([("Order", f"{ORDER[split.ties]}; {TARGETS}")] if reads_order else []),
        ("Seed", ", ".join(seeds) or "none"),
        ("Time", _time(results)),
        ("Processor", processor()),
        ("Versions", versions()),
        ("Commit", commit()),
        ("Written", f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"),
    ]


def _time(results: Results) -> str:
    """The time of the run; fits that an earlier run kept count with the time that they took then."""
    fits, loaded = sum(row.runs for row in results.rows), sum(row.loaded for row in results.rows)
    if not loaded:
        return f"{format_duration(results.seconds)} in total"
    earlier = sum(row.report.fit_seconds * row.loaded for row in results.rows)  # the mean over the runs of a row
    return (
        f"{format_duration(results.seconds + earlier)} in total, of which {format_duration(earlier)} in earlier runs: "
        f"{loaded} of {count_of(fits, 'fit')} were kept from them, and the commit below is that of this run"
    )


def _spread(counts: Spread) -> str:
    return f"{counts.median:g} median, {counts.min:g} to {counts.max:,g}"
