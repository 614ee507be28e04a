"""`corank reproduce`: run an experiment file and write its page, or run it again and say which figures moved."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import CorankError, show, suggest
from .experiments import FINISHING, failed, planned, print_and_keep, run_experiment
from .keeping import keep
from .options import Args, writable
from .show import Steps, say
from .stopping import Stop

PACKAGE = Path(__file__).resolve().parents[1]
SHIPPED = PACKAGE / "experiments"  # of an installed package, see pyproject.toml
CHECKOUT = PACKAGE.parents[1] / "experiments" if PACKAGE.parent.name == "src" else SHIPPED


def reproduce(args: Args) -> int:
    """Run an experiment file and write its result page."""
    from ..experiment.experiment import Experiment

    path = experiment_file(args.name)
    if args.plan and args.check:
        raise CorankError("--plan fits nothing and --check runs everything: give one of them")
    if args.page is not None and not args.check:
        raise CorankError(f"--page {args.page} is the page to compare with: give --check too")
    experiment = Experiment.from_toml(path)
    if args.plan:
        print(planned(experiment))
        return 0
    page, command = Path(args.out) / f"{path.stem}.md", f"corank reproduce {path.stem}"
    if args.check:
        return _check(experiment, Path(args.page) if args.page is not None else page, command)
    writable(page.parent, page, sources=[path])
    missing, reasons, stop = _write(experiment, page, Path(".corank-tune"), command)
    if not missing:
        say(f"page written to {page}")
    stop.raise_if_asked()
    return int(bool(missing) or failed(experiment, reasons))


def _write(experiment: Any, page: Path, storage: Path, command: str) -> tuple[list[str], Mapping[str, str], Stop]:
    """Run an experiment and write its page: what is missing on it, why rows failed, and whether a signal came."""
    from ..experiment import curves
    from ..report import write_markdown

    if experiment.curves:
        with Stop() as stop, Steps(stop) as steps:
            setting, found, reasons = curves.run(experiment, steps)
            stop.message = FINISHING
            keep("page", page, lambda place: curves.write(experiment, setting, found, place, command, reasons))
        missing = []
    else:
        with Stop() as stop:
            results = run_experiment(experiment, storage, stop)
            stop.message = FINISHING
            missing = print_and_keep(
                results,
                {"page": (page, lambda to: write_markdown(results, to, command=command, title=experiment.title))},
            )
        reasons = results.failed
    return missing, reasons, stop


def _check(experiment: Any, page: Path, command: str) -> int:
    """Run a page again, all fits anew, and say which of its figures moved: 1 if any did."""
    from ..report.moved import compare_pages

    before = _page(page)
    if not compare_pages(before, before)[0]:
        raise CorankError(f"{page} is no result page: it has no table with figures")
    with tempfile.TemporaryDirectory(prefix="corank-check-") as folder:
        again = Path(folder) / page.name
        missing, reasons, stop = _write(experiment, again, Path(folder) / "state", command)
        stop.raise_if_asked()  # a part of the rows says nothing about the others
        after = again.read_text("utf-8") if again.exists() else ""
    torch_rows = [entry.label for entry in experiment.entries() if _uses_torch(type(entry.model))]
    compared, moved = compare_pages(before, after, torch_rows)
    for sentence in missing:
        say(f"corank: {sentence}")
    if not compared:
        raise CorankError(f"{page} has no figures of {experiment.name}: it is not the page of this experiment")
    for one in moved:
        print(f"  {one}")
    verdict = f"{len(moved)} moved" if moved else "none moved"
    print(f"{page}: {compared} figures compared, {verdict}; times are not compared")
    return int(bool(moved or missing) or failed(experiment, reasons))


def _page(path: Path) -> str:
    """The text of the page to compare with, read before anything runs."""
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        raise CorankError(f"there is no page {path} to compare with: name one with --page, or write it first") from None
    except (OSError, ValueError) as why:
        raise CorankError(f"{path} cannot be read as a page: {why}") from None


def _uses_torch(model: type) -> bool:
    """Whether torch trains a model: its file, or that of a class that it extends, imports it."""
    homes = (sys.modules[cls.__module__] for cls in model.__mro__ if cls.__module__.startswith("corank.models"))
    return any(hasattr(home, "torch") for home in homes)


def experiment_file(name: str) -> Path:
    """An experiment file by its path, or by its name among those here and those that come with corank."""
    folders = (Path("experiments"), SHIPPED, CHECKOUT)
    try:
        paths = Path(name), Path(f"{name}.toml"), *(folder / f"{name}.toml" for folder in folders)
        found = next((path for path in paths if path.is_file()), None)
    except (OSError, ValueError):  # too long, or with a NUL in it
        found = None
    if found is None:
        known = sorted({path.stem for folder in folders for path in folder.glob("*.toml")})
        raise CorankError(f"there is no experiment {show(name)}{suggest(name, known) if known else ''}")
    return found
