"""The service under load and under trials: measures what is missing and writes one page.

    python -m benchmarks.serve --prepare            fits and saves the models (10 minutes on a busy machine)
    python -m benchmarks.serve --page docs/results  everything that is not recorded yet, and the page
    python -m benchmarks.serve load start soak      only these, 20 minutes: needs a quiet machine
    python -m benchmarks.serve trials               the rows of reliability, an hour: any machine
    python -m benchmarks.serve --short              all of it in a few minutes, recorded nowhere

What is measured is recorded, part by part, in benchmarks/recorded/service and not measured again: it can be stopped
and continued. Everything is on the loopback interface; client and server share the machine.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import records
from . import serve_measures as measures
from .reliability import service, service_feedback
from .reliability.part import SHOWN, Part
from .tools import ROOT, Table, versions

TRIALS = [*service.PARTS, *service_feedback.PARTS]
PARTS = ("load", "start", "soak", "trials")
Line = Mapping[str, Any]


def main(arguments: Sequence[str]) -> int:
    usage = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serve", description=__doc__, formatter_class=usage)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="default: all")
    parser.add_argument("--models", type=Path, default=ROOT / "out" / "serve", help="folder of the models")
    parser.add_argument("--prepare", action="store_true", help="only fit and save the models that are missing")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement under load")
    parser.add_argument("--soak", type=float, default=600.0, help="seconds of the soak")
    parser.add_argument("--seed", type=int, default=0, help="of the trials")
    parser.add_argument("--short", action="store_true", help="a short form, recorded nowhere")
    parser.add_argument("--page", type=Path, default=ROOT / "out" / "bench", help="folder of the page service.md")
    given = parser.parse_args(arguments)
    parts = given.parts or PARTS
    if given.prepare or set(parts) - {"trials"}:
        measures.prepare(given.models)
    if given.prepare:
        return 0
    if given.short:
        with tempfile.TemporaryDirectory() as folder:
            measure(parts, given.models, Path(folder), seconds=0.5, soak=30.0, share=0.01, seed=given.seed)
            print(page(Path(folder)))
        return 0
    kept = records.ROOT / "service"
    measure(parts, given.models, kept, seconds=given.seconds, soak=given.soak, share=1.0, seed=given.seed)
    given.page.mkdir(parents=True, exist_ok=True)
    (given.page / "service.md").write_text(page(kept))
    return 0


def measure(
    parts: Sequence[str], models: Path, kept: Path, *, seconds: float, soak: float, share: float, seed: int
) -> None:
    """Measure what has no record in the folder `kept`."""

    def once(words: Sequence[str], work: Callable[[], Mapping[str, Any]]) -> None:
        file = records.path(kept, *words)
        if not file.exists():
            print(f"{' '.join(words)} ...", file=sys.stderr, flush=True)
            line = records.append(file, work())
            print({key: value for key, value in line.items() if key != "sizes"}, file=sys.stderr, flush=True)

    if "load" in parts:
        for items, name in measures.CASES:
            once(["load", str(items), name], lambda i=items, n=name: measures.measure_load(models, i, n, seconds))
    if "start" in parts:
        once(["start"], lambda: measures.measure_start(models))
    if "soak" in parts:
        once(["soak"], lambda: measures.measure_soak(models, soak))
    for part in TRIALS if "trials" in parts else ():
        once(["trials", part.name], lambda p=part: tried(p, max(1, round(p.trials * share)), seed))


def tried(part: Part, trials: int, seed: int) -> dict[str, Any]:
    """The outcome of a row of reliability."""
    with tempfile.TemporaryDirectory() as folder:
        outcome = part.outcome(trials, seed, Path(folder), lambda done, of: None)
    return {**dataclasses.asdict(outcome), "seed": seed}


# ---- the page ----------------------------------------------------------------------------------------------------


def page(kept: Path) -> str:
    """The page of all records in a folder; what is missing is named."""
    found = {file.stem: records.read(file)[-1] for file in sorted(kept.glob("*.jsonl"))}
    tables = [load_table(found), start_table(found), soak_table(found), trial_table(found)]
    wanted = [records.path(kept, "load", str(items), name).stem for items, name in measures.CASES]
    wanted += ["start", "soak", *(records.path(kept, "trials", part.name).stem for part in TRIALS)]
    missing = [name for name in wanted if name not in found]
    lines = [
        "# The service under load",
        f"`python -m benchmarks.serve` wrote this page. {versions()} {records.commits(found.values())}",
        *(str(table).strip() for table in tables if table.rows),
    ]
    if missing:
        lines.append(f"Not measured yet: {', '.join(missing)}.")
    return "\n\n".join(lines) + "\n"


def load_table(found: Mapping[str, Line]) -> Table:
    """Requests per second of each model, and their ratio to the constant endpoint."""
    rows = []
    for items, name in sorted(measures.CASES):
        line = found.get(records.path(Path(), "load", str(items), name).stem)
        if line is None:
            continue
        rate = line["rate"]
        rows.append(
            [
                f"{items:,}",
                f"`{name}`",
                f"{rate['constant']:,.0f}",
                f"{rate['framework']:,.0f}",
                *(_against(rate, kind) for kind in ("users", "histories")),
                f"{1000 * line['median']:.1f} ms",
                f"{1000 * line['p99']:.1f} ms",
                f"{line['failed']}",
            ]
        )
    note = (
        f"{measures.CLIENTS} connections, k = {measures.K}, {measures.USERS:,} users, one server process; medians of 2 "
        "or 3 turns. Two constants of the same server: `/health/live`, which like `/recommend` is answered without the "
        "framework, and `/health/ready`, a FastAPI route; in brackets the ratios to both. Histories have 10 items. "
        "Latency: known users, at 70 % of the rate in the table, counted from when a request was due. `ease` has "
        "weights for 5,000 items where there are more. Goals, for 20,000 items and `wmf`: users at least 0.5x and "
        "histories at least 0.25x of a constant, 99 % under 50 ms."
    )
    head = ["items", "model", "constant, 1/s", "FastAPI constant, 1/s", "users, 1/s", "histories, 1/s"]
    return Table("Requests per second", [*head, "median at 70 %", "99 % at 70 %", "failed"], rows, note)


def _against(rate: Mapping[str, float], kind: str) -> str:
    """A rate, and its ratios to those of the two constants."""
    ratios = ", ".join(f"{rate[kind] / rate[base]:.2f}x" for base in ("constant", "framework"))
    return f"{rate[kind]:,.0f} ({ratios})"


def start_table(found: Mapping[str, Line]) -> Table:
    rows = []
    if (line := found.get("start")) is not None:
        size, most = line["file"], 1.5 * line["file"] / 1e6 + 150
        rows = [
            ["model file", f"{size / 1e6:,.0f} MB", ""],
            ["from the command to ready", f"{min(line['seconds']):.2f} s", "goal: under 2 s"],
            ["resident memory", f"{line['resident'] / 1e6:,.0f} MB", f"goal: {most:,.0f} MB at the most"],
        ]
    return Table("Start and memory", ["what", "measured", ""], rows, "Shortest of 3 starts with compiled kernels.")


def soak_table(found: Mapping[str, Line]) -> Table:
    rows, note = [], ""
    if (line := found.get("soak")) is not None:
        sizes = line["sizes"]
        quarter = max(1, len(sizes) // 4)
        early, late = max(sizes[:quarter]), max(sizes[-quarter:])
        grown = f"{early / 1e6:,.0f} MB, {late / 1e6:,.0f} MB ({late / early - 1:+.1%})"
        rows = [
            ["answers", f"{line['answers']:,}", ""],
            ["failed answers", f"{line['failed']}", "goal: 0"],
            ["swaps", f"{line['swaps']}", ""],
            ["feedback events written", f"{line['written']:,}", ""],
            ["failed swaps and writes", "; ".join(line["failures"]) or "0", "goal: 0"],
            ["largest memory, first and last quarter", grown, "goal: within 5 %"],
            ["exit code, tracebacks in the log", f"{line['code']}, {'some' if line['traceback'] else 'none'}", ""],
        ]
        note = f"{line['seconds']:g} s at full load, {measures.CLIENTS} connections, a swap every 30 s."
    return Table("Soak", ["what", "measured", ""], rows, note)


def trial_table(found: Mapping[str, Line]) -> Table:
    rows, details = [], []
    for part in TRIALS:
        line = found.get(records.path(Path(), "trials", part.name).stem)
        if line is None:
            continue
        failed = len(line["failures"])
        rows.append([part.name, part.holds, f"{line['tried']:,}", f"{line['tried'] - failed:,}", f"{failed:,}"])
        said = "; ".join([*line["notes"], *(f"failed: {text}" for text in line["failures"][:SHOWN])])
        details.append(f"- {part.name} (seed {line['seed']}, {line['seconds']:,.0f} s): {said or 'nothing to add'}.")
    return Table("Reliability", ["tried", "holds if", "tried", "held", "failed"], rows, "\n".join(details))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
