"""What commands print: progress, messages and rankings. Everything but results goes to standard error."""

from __future__ import annotations

import contextlib
import logging
import math
import sys
import time
from collections.abc import Iterator
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType, TracebackType
from typing import Any, Self

from ..errors import visible
from .stopping import Stop

WORTH_TELLING = 5.0  # seconds from which an estimate is worth a line
QUIET = 10.0  # seconds between progress lines where there is no progress bar
# Loggers whose INFO messages are shown: how a file was read, resuming, downloads, compilation.
NOTICES = ("corank.kernels", "corank.checkpoint", "corank.reading", "corank.datasets")


class _Lines(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        say(f"corank: {record.getMessage()}")


def show_log() -> None:
    """Send the library's warnings, and its notices to users, to standard error, one line each."""
    logger = logging.getLogger("corank")
    if logger.handlers:
        return
    for name, level in (("corank", logging.WARNING), *((name, logging.INFO) for name in NOTICES)):
        handler = _Lines(level)
        part = logging.getLogger(name)
        part.addHandler(handler)
        part.setLevel(level)
        part.propagate = name == "corank"


class _TorchFinder:
    """Announces the import of torch, which takes some seconds without any other output."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path) if name == "torch" else None
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def announced(module: ModuleType) -> None:  # only when it is executed: others just look whether it is there
            say("corank: loading PyTorch, which takes some seconds")
            load(module)

        spec.loader.exec_module = announced  # type: ignore[method-assign]
        return spec


@contextlib.contextmanager
def announcing_torch() -> Iterator[None]:
    """Within this context, the first `import torch` prints a line."""
    finder = _TorchFinder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


def report_compilation() -> None:
    """Print how long the compilation of kernels took, where any were compiled."""
    threads = sys.modules.get("corank.kernels.threads")
    if threads is not None and threads.compile_seconds() > 0:
        say(f"corank: compiling kernels took {threads.compile_seconds():.1f} s (once per machine)")


def say(text: str) -> None:
    """Print a line for the user, not for a pipe."""
    with contextlib.suppress(OSError):  # a log on a full disk must not end hours of work
        print(visible(text), file=sys.stderr, flush=True)


class Steps:
    """Progress of fits and searches: a bar on a terminal, one line per step elsewhere."""

    def __init__(self, stop: Stop | None = None) -> None:
        self.stop = stop or Stop()
        self.bar: Any = None
        self.last_line = time.monotonic()  # time of the last line, where there is no bar

    def __enter__(self) -> Self:
        self.stop.__enter__()
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (
                TextColumn("{task.description:<14}"),
                BarColumn(),
                TextColumn("{task.fields[note]}"),
                TimeElapsedColumn(),
            )
            self.bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self.bar.__enter__()
            self.task = self.bar.add_task("", total=None, note="")  # the first "start" event knows the total
        return self

    def __exit__(
        self, kind: type[BaseException] | None, why: BaseException | None, where: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.__exit__(kind, why, where)
        self.stop.__exit__(kind, why, where)

    def __call__(self, label: str, event: dict[str, Any]) -> bool:
        """Show an event (`on_progress`, `on_epoch`, `on_trial`); returns False to stop."""
        from ..report.formatting import plain

        what, label = event.get("event", "epoch"), plain(label)
        note = ""
        if what == "epoch":
            epochs = event.get("epochs")
            left = [] if not epochs else [_left(event["seconds"] / event["epoch"] * (epochs - event["epoch"]))]
            note = "  ".join(
                [f"epoch {event['epoch']}" + (f"/{epochs}" if epochs else ""), *epoch_values(event), *left]
            )
        elif what == "progress":
            where = f"epoch {event['epoch']}/{event['epochs']}" if "epoch" in event else event["what"]
            trial = f"trial {event['trial']}/{event['of']}  " if "trial" in event else ""
            note = f"{trial}{where}  {event['share']:.0%} done  {_left(event['left'])}"
        elif what == "estimating":
            note = f"estimating seconds and memory ({event['row']}/{event['of']})"
        elif what == "plan":
            self._print(*plan_lines(event["plan"]))
        elif what == "trial":
            note = f"trial {event['trial']}/{event['of']}" + (
                f"  best {event['best']:.5f}" if event["best"] is not None else ""
            )
        elif what == "done":
            report = event["report"]
            first = next(iter(report.mean))
            note = f"{first} {report[first]:.4f}  fit {report.fit_seconds:.1f} s  evaluation {report.seconds:.1f} s"
        elif what == "failed":
            note = f"skipped: {event['why']}"
        if self.bar is not None:
            if what == "start":
                self.bar.update(self.task, total=event["of"])
            self.bar.update(self.task, description=label, note=note, advance=what in ("done", "failed"))
        if (
            what in ("epoch", "progress", "estimating")
            and self.bar is None
            and time.monotonic() - self.last_line > QUIET
        ):
            self.last_line = time.monotonic()
            say(f"  {label:<14}  {note}")
        if what in ("done", "failed") or (what == "trial" and self.bar is None):
            self._print(f"  {label:<14}  {note}")
        return not self.stop.asked

    def _print(self, *lines: str) -> None:
        for line in lines:
            if self.bar is not None:
                self.bar.console.print(line, highlight=False, markup=False)
            else:
                say(line)


def _left(seconds: float) -> str:
    from ..estimate import in_words

    return f"{in_words(seconds)} left" if math.isfinite(seconds) else "time left unknown"


def plan_lines(plan: Any) -> list[str]:
    """What an experiment is expected to take: per row where that is worth a line, and in all."""
    from ..estimate import in_words
    from ..system.memory import in_gigabytes

    if not plan.estimates:
        return []
    most = f"{in_gigabytes(plan.memory)} at a time"
    told = plan.left_out or plan.seconds >= WORTH_TELLING
    lines = [f"  {label:<14}  {needed}" for label, needed in plan.estimates.items() if label not in plan.left_out]
    out = ["estimated before the start, from fits to small samples:", *lines] if told else []
    out.append(f"estimated in all: {in_words(plan.seconds)}, {most}")
    return out + [f"left out: {label}: {why}" for label, why in plan.left_out.items()]


def epoch_values(entry: dict[str, Any]) -> list[str]:
    """What training reports after an epoch, as text: objective or loss, and the validation metric."""
    return [
        f"{name} {entry[name]:{',.1f' if abs(entry[name]) >= 1000 else '.4g'}}"
        for name in ("objective", "loss", "ndcg@10")
        if name in entry
    ]


def titles_of(model: Any, path: str | None = None) -> dict[Any, str]:
    """Item id -> title: from a table of titles, or as the training data had them."""
    if path is None:
        return dict(zip(model.items_.ids.tolist(), model.titles_, strict=True)) if model.titles_ else {}
    from ..reading.tables import read_titles

    ids, titles = read_titles(path)
    return {model.items_.parse(str(i)): t for i, t in zip(ids, titles, strict=True)}


def ranking_text(ranking: Any, titles: dict[Any, str], what: str) -> str:
    """A ranking as plain text, one block per user (or per item, for similar items)."""
    blocks = []
    for owner, items in ranking:
        head = f"{what} {cell(owner)}".strip()
        if what == "item" and owner in titles:
            head += f"  {cell(titles[owner])}"
        width = max((len(cell(i)) for i, _ in items), default=0)
        lines = [
            f"  {rank:>3}  {cell(item):<{width}}  {score:>9.4f}  {cell(titles.get(item, ''))}".rstrip()
            for rank, (item, score) in enumerate(items, 1)
        ]
        blocks.append("\n".join([head, *(lines or ["  nothing left to recommend"])]))
    return "\n".join(blocks)


def cell(value: Any) -> str:
    """An id or title within a line."""
    return visible(str(value)).replace("\n", "\\n")
