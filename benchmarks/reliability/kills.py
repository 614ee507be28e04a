"""kill -9: fits that resume from their checkpoint, and saves.

The trials of one model run in one process, which forks a child per attempt: a child starts in a millisecond with all
kernels loaded, so that most kills hit training or saving and not an import.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..tools import ROOT
from ._commands import ENVIRONMENT, parts_in
from .part import Outcome, Part, Tell

FITS: dict[str, dict[str, Any]] = {
    "wmf": {"dim": 16, "epochs": 40},
    "bpr": {"dim": 16, "epochs": 60},
    "sql_rank": {"dim": 8, "epochs": 12},
    "primal_cr": {"dim": 8, "epochs": 12},
    "sasrec": {"dim": 16, "epochs": 8, "blocks": 1, "max_len": 20},
    "gru4rec": {"dim": 16, "epochs": 8, "max_len": 20},
}
KILLS = 4  # of one fit; then it may finish
SAVES = ("model", "checkpoint", "text")


def training(trials: int, seed: int, folder: Path, tell: Tell) -> Outcome:
    return _in_processes("training", list(FITS), trials, seed, folder, tell)


def saving(trials: int, seed: int, folder: Path, tell: Tell) -> Outcome:
    return _in_processes("saving", list(SAVES), trials, seed, folder, tell)


def _in_processes(what: str, kinds: list[str], trials: int, seed: int, folder: Path, tell: Tell) -> Outcome:
    """The trials divided over the kinds, one process each; a line of JSON per trial."""
    out, kills = Outcome(), 0
    for number, kind in enumerate(kinds[:trials]):
        share = trials // len(kinds) + (number < trials % len(kinds))
        place = folder / kind
        place.mkdir()
        command = [sys.executable, "-m", __name__, what, kind, str(place), str(share), str(seed + number)]
        process = subprocess.Popen(command, cwd=ROOT, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        before = out.tried
        for line in process.stdout:
            if line.startswith("{"):
                result = json.loads(line)
                kills += result["kills"]
                out.trial(result["failure"] and f"{kind}: {result['failure']}")
                tell(out.tried, trials)
        if process.wait() != 0 or out.tried - before != share:
            out.trial(f"{kind}: the process of the trials ended with {process.returncode}")
    out.notes.append(f"{kills:,} kills; {', '.join(kinds)}")
    return out


# ---- in the process of one kind --------------------------------------------------------------------------------------


def _attempt(work: Callable[[], object], kill_after: float | None) -> bool:
    """Do the work in a child that is killed after so many seconds, unless None; whether it was done before."""
    child = os.fork()
    if child == 0:
        code = 1
        with contextlib.suppress(BaseException):
            work()
            code = 0
        os._exit(code)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, -signal.SIGKILL):
        raise AssertionError(f"the fit ended with {code}")
    return code == 0


def _trials_of_training(name: str, folder: Path, trials: int, draw: random.Random) -> Iterator[tuple[int, str]]:
    import corank as cr

    data = cr.synthetic.realistic(users=150, items=80, rows=3_000, groups=4, seed=3).data
    whole, path, checkpoint = folder / "whole.corank", folder / "m.corank", folder / "m.checkpoint"
    model = cr.find(name)

    def fit(to: Path, kept: Path | None) -> None:
        model(**FITS[name], seed=1).fit(data, checkpoint=kept).save(to)

    model(**{**FITS[name], "epochs": 1}).fit(data)  # kernels are loaded here, once
    fit(whole, None)
    start = time.perf_counter()
    _attempt(lambda: fit(path, checkpoint), None)
    seconds = time.perf_counter() - start
    expected = _learned(cr.load(whole))
    for _ in range(trials):
        path.unlink(missing_ok=True)
        kills = 0
        try:
            while not _attempt(lambda: fit(path, checkpoint), draw.uniform(0, seconds) if kills < KILLS else None):
                kills += 1
                if path.exists():
                    cr.load(path)  # whole, or an error
            found = _learned(cr.load(path))
            differing = [k for k in expected if not _same(expected[k], found.get(k))]
            failure = f"{', '.join(differing)} differ after {kills} kills" if differing else ""
            left = [*parts_in(folder), *(["the checkpoint"] if checkpoint.exists() else [])]
            failure = failure or (f"left behind: {', '.join(left)}" if left else "")
        except Exception as why:
            failure = f"{type(why).__name__}: {why}"
        yield kills, failure


def _learned(model: Any) -> dict[str, Any]:
    """All that was learned but the time that it took."""
    state = {k: v for k, v in model._learned().items() if k not in ("fit_seconds_", "users_", "items_")}
    state["history_"] = [{k: v for k, v in entry.items() if k != "seconds"} for entry in state["history_"]]
    return state


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return bool(a == b)


def _trials_of_saving(kind: str, folder: Path, trials: int, draw: random.Random) -> Iterator[tuple[int, str]]:
    """A process saves two states in turn until it is killed: the file must be one of them, whole."""
    from corank.model_file import read_file, write_file
    from corank.system.atomic import sweep, write_text

    rng = np.random.default_rng(2)
    path = folder / f"file.{kind}"
    if kind == "text":
        states: list[Any] = [letter * 2_000_000 for letter in "ab"]
    else:
        sizes = {"model": 100_000, "checkpoint": 400_000}
        states = [{"x": rng.random(sizes[kind]), "y": rng.integers(0, 9, 1_000)} for _ in "ab"]

    def save(state: Any) -> None:
        if kind == "text":
            write_text(path, state)
        else:
            write_file(path, state, {"model": kind, "params": {}, "state": {}})

    def whole() -> bool:
        if kind == "text":
            return path.read_text() in states
        found = read_file(path)[1]
        return any(all(_same(state[k], found[k]) for k in state) for state in states)

    def forever() -> None:
        while True:
            for state in states:
                save(state)

    start = time.perf_counter()
    for state in states:
        save(state)
    seconds = time.perf_counter() - start
    for _ in range(trials):
        failure = ""
        try:
            _attempt(forever, draw.uniform(0, 3 * seconds))
            if not whole():
                failure = "the file is neither the old nor the new one"
            sweep(folder)
            failure = failure or ("parts were left" if parts_in(folder) else "")
        except Exception as why:
            failure = f"{type(why).__name__}: {why}"
        yield 1, failure


if __name__ == "__main__":
    _what, _kind, _folder, _trials, _seed = sys.argv[1:]
    _work = _trials_of_training if _what == "training" else _trials_of_saving
    for _kills, _failure in _work(_kind, Path(_folder), int(_trials), random.Random(int(_seed))):
        print(json.dumps({"kills": _kills, "failure": _failure}), flush=True)

PARTS = [
    Part(
        "kill -9 in training",
        200,
        training,
        "resumed from its checkpoint until it is done, the fit is equal bit for bit to an undisturbed one",
    ),
    Part("kill -9 in saving", 500, saving, "the file is whole, the old or the new one, and no part stays"),
]
