"""What a person sees while a command works: progress, messages, lists. All but results goes to standard error."""

from __future__ import annotations

import contextlib
import logging
import signal
import sys
import time
from collections.abc import Iterator
from importlib.machinery import ModuleSpec, PathFinder
from types import FrameType, ModuleType, TracebackType
from typing import Any, Self

QUIET = 10.0  # seconds without a word that a log should bear
NOTICES = (
    "corank.kernels",
    "corank.checkpoint",
    "corank.reading",
    "corank.datasets",
)  # what a person should see: how a file was read, compiling


class _Lines(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        say(f"corank: {record.getMessage()}")


def show_log() -> None:
    """Send the library's warnings, and the notices a person should see, to standard error, a line each."""
    logger = logging.getLogger("corank")
    if logger.handlers:
        return
    for name, level in (("corank", logging.WARNING), *((name, logging.INFO) for name in NOTICES)):
        handler = _Lines(level)
        part = logging.getLogger(name)
        part.addHandler(handler)
        part.setLevel(level)
        part.propagate = name == "corank"


class _Loading:
    """Says, once a process, that torch is being loaded: some seconds in which nothing else can be seen."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path) if name == "torch" else None
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def told(module: ModuleType) -> None:  # looking whether there is a torch, as others do, is not loading it
            say("corank: loading PyTorch, which takes some seconds")
            load(module)

        spec.loader.exec_module = told  # type: ignore[method-assign]
        return spec


@contextlib.contextmanager
def loading_told() -> Iterator[None]:
    """Within, `import torch` says so."""
    finder = _Loading()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


def compiled() -> None:
    """How long kernels were compiled, when any were."""
    threads = sys.modules.get("corank.kernels.threads")
    if threads is not None and threads.compile_seconds() > 0:
        say(f"corank: compiling kernels took {threads.compile_seconds():.1f} s of this; the next run does not need it")


def say(text: str) -> None:
    """A line for the person, not for a pipe."""
    print(text, file=sys.stderr, flush=True)


class Stop:
    """The first Ctrl-C asks for a clean stop, the second one ends at once."""

    def __init__(self) -> None:
        self.asked = False

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self._heard)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, why: BaseException | None, where: TracebackType | None
    ) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _heard(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        say("\nstopping after this step and keeping what is done; Ctrl-C again stops at once")


class Steps:
    """Progress of fits and searches: a bar on a terminal, a line a step elsewhere."""

    def __init__(self, total: int) -> None:
        self.stop = Stop()
        self.total = total
        self.bar: Any = None
        self.said = time.monotonic()  # when a line was last written where there is no bar

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
            self.task = self.bar.add_task("", total=self.total, note="")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, why: BaseException | None, where: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.__exit__(kind, why, where)
        self.stop.__exit__(kind, why, where)

    def __call__(self, label: str, event: dict[str, Any]) -> bool:
        """Hear of a step; False asks the work to stop."""
        what = event.get("event", "epoch")
        note = ""
        if what == "epoch":
            note = "  ".join([f"epoch {event['epoch']}", *aims(event)])
        elif what == "trial":
            note = f"trial {event['trial']}/{event['of']}" + (
                f"  best {event['best']:.5f}" if event["best"] is not None else ""
            )
        elif what == "done":
            report = event["report"]
            first = next(iter(report.mean))
            note = f"{first} {report[first]:.4f}  fit {report.fit_seconds:.1f} s  evaluation {report.seconds:.1f} s"
        elif what == "failed":
            note = f"left out: {event['why']}"
        if self.bar is not None:
            self.bar.update(self.task, description=label, note=note, advance=what in ("done", "failed"))
        if what == "epoch" and self.bar is None and time.monotonic() - self.said > QUIET:
            self.said = time.monotonic()
            say(f"  {label:<14}  {note}")
        if what in ("done", "failed") or (what == "trial" and self.bar is None):
            (self.bar.console.print if self.bar is not None else say)(f"  {label:<14}  {note}")
        return not self.stop.asked


def aims(entry: dict[str, Any]) -> list[str]:
    """What training reports of an epoch, for people: objective or loss, and the validation metric."""
    return [
        f"{name} {entry[name]:{',.1f' if abs(entry[name]) >= 1000 else '.4g'}}"
        for name in ("objective", "loss", "ndcg@10")
        if name in entry
    ]


def lists(ranking: Any, titles: dict[Any, str], what: str) -> str:
    """Recommendations as plain text, a block a user."""
    blocks = []
    for owner, items in ranking:
        head = f"{what} {owner}".strip() + (f"  {titles[owner]}" if what == "item" and owner in titles else "")
        width = max((len(str(i)) for i, _ in items), default=0)
        lines = [
            f"  {rank:>3}  {item!s:<{width}}  {score:>9.4f}  {titles.get(item, '')}".rstrip()
            for rank, (item, score) in enumerate(items, 1)
        ]
        blocks.append("\n".join([head, *(lines or ["  nothing left to recommend"])]))
    return "\n".join(blocks)
