"""Trials in processes of their own, since a trial may kill or hang the one that it runs in."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from pathlib import Path

from .part import Outcome, Tell

MANY = 2_000  # trials from which a second process is worth its start
PATIENCE = 60.0  # seconds for one trial
STARTING = 900.0  # seconds for anything before the first one, such as compiling kernels


def in_workers(command: list[str], trials: int, tell: Tell, *, env: dict[str, str] | None = None) -> Outcome:
    """Run trials 0 to `trials` - 1 with `command FIRST STEP STOP`, in one process, or in two if they are many.

    A worker prints "N: kind|failure" (the failure may be empty) after trial N, and before the first one whatever it
    likes, as a sign of life. One that dies or hangs fails the trial after its
    last line, and another takes over behind that.
    """
    workers = 1 if trials <= MANY else 2
    out, kinds = Outcome(), dict[str, int]()
    running = {_start(command, first, workers, trials, env): first for first in range(workers)}
    heard = dict.fromkeys(running, (time.monotonic(), True))
    while running:
        ready, _, _ = select.select([p.stdout for p in running], [], [], 1.0)
        for process, at in list(running.items()):
            since, starting = heard[process]
            if process.stdout in ready and (line := process.stdout.readline()):
                number, _, said = line.rstrip("\n").partition(": ")
                heard[process] = (time.monotonic(), starting and not number.isdigit())
                if number.isdigit():
                    running[process] = int(number) + workers
                    word, _, failure = said.partition("|")
                    kinds[word] = kinds.get(word, 0) + 1
                    out.trial(f"trial {number}: {failure}" if failure else "")
                    tell(out.tried, trials)
                continue
            died = process.poll() is not None
            hung = time.monotonic() - since > (STARTING if starting else PATIENCE)
            if not died and not hung:
                continue
            del running[process], heard[process]
            if hung:
                process.kill()
            process.wait()
            if at < trials:
                said = f"ended by signal {-process.returncode}" if process.returncode < 0 else "ended"
                errors = (process.stderr.read() if died else "")[-300:].strip().replace("\n", " / ")
                out.trial(f"trial {at}: {'hung' if hung else f'the process {said}'}: {errors}")
                if at + workers < trials:
                    other = _start(command, at + workers, workers, trials, env)
                    running[other], heard[other] = at + workers, (time.monotonic(), True)
    out.notes.append(", ".join(f"{count:,} {word}" for word, count in sorted(kinds.items()) if word))
    return out


def _start(command: list[str], first: int, step: int, stop: int, env: dict[str, str] | None) -> subprocess.Popen[str]:
    root = Path(__file__).resolve().parents[2]
    quiet = {"OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1", "PYTHONPATH": f"{root / 'src'}:{root}"}
    return subprocess.Popen(
        [sys.executable, *command, str(first), str(step), str(stop)],
        env={**os.environ, **quiet, **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        bufsize=1,
    )
