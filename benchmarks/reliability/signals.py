"""SIGINT and SIGTERM at random moments of commands, from their imports to their end."""

from __future__ import annotations

import random
import re
import shutil
import signal
import time
from pathlib import Path

from ._commands import finish, last_line, parts_in, ratings, start
from .part import Outcome, Part, Tell

COMMANDS = {
    "fit": "fit wmf ratings.csv -o m.corank --epochs 300 --dim 16 --checkpoint m.checkpoint",
    "compare": "compare ratings.csv -o out --models popularity,ease",
    "tune": "tune wmf ratings.csv -o best.toml --trials 6 --epochs 3 --dim 8",
    "recommend": "recommend old.corank --all -o lists.csv",
    "sequential": "fit gru4rec ratings.csv -o m.corank --epochs 30 --dim 16",
}
COMPARED = ("best.corank", "results.json", "report.html")
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


def run(trials: int, seed: int, folder: Path, tell: Tell) -> Outcome:
    out, draw = Outcome(), random.Random(seed)
    given = folder / "given"
    given.mkdir()
    ratings(given / "ratings.csv")
    seconds: dict[str, float] = {}
    ended = dict.fromkeys(("before it could handle signals", "at once", "with results kept", "after the end"), 0)
    finish(start(["fit", "popularity", "ratings.csv", "-o", "old.corank"], given))
    for number in range(trials):
        name, sent = list(COMMANDS)[number % len(COMMANDS)], draw.choice(list(CODES))
        place = folder / str(number)
        if name not in seconds:  # how long it takes undisturbed, with kernels on disk
            for copy in (folder / f"{name}-first", folder / f"{name}-second"):
                shutil.copytree(given, copy)
                began = time.monotonic()
                finish(start(COMMANDS[name].split(), copy))
                seconds[name] = time.monotonic() - began
        shutil.copytree(given, place)
        process = start(COMMANDS[name].split(), place)
        while process.poll() is None and not _ours(process.pid):
            time.sleep(0.001)
        delay = draw.uniform(0, 0.9 * seconds[name])  # most are under way then
        try:
            process.wait(delay)
        except Exception:
            process.send_signal(sent)
        code, text, err = finish(process)
        failure = _failure(name, sent, code, text, err, place)
        out.trial(failure and f"{name}, {sent.name} after {delay:.2f} s: {failure}")
        ended[_kind(code, err)] += 1
        shutil.rmtree(place)
        tell(number + 1, trials)
    out.notes.append(", ".join(f"{count} ended {how}" for how, count in ended.items()))
    return out


def _ours(pid: int) -> bool:
    """Whether the first line of corank has run: Python's own start ends in its own way."""
    try:
        found = re.search(r"SigCgt:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return True
    caught = int(found[1], 16) if found else 0
    started = b"corank" in Path(f"/proc/{pid}/cmdline").read_bytes()

    def catches(number: int) -> bool:
        return bool(caught >> (number - 1) & 1)

    # Python catches SIGINT from its start on; corank first lets it go, and later catches SIGTERM too.
    if catches(signal.SIGTERM):
        return True
    if catches(signal.SIGINT):
        _seen.add(pid)
        return False
    return started and pid in _seen


_seen: set[int] = set()


def _kind(code: int | None, err: str) -> str:
    if code is not None and code < 0:
        return "before it could handle signals"
    if code == 0:
        return "after the end"
    return "with results kept" if "saved to" in err or "report   " in err or "written to" in err else "at once"


def _failure(name: str, sent: signal.Signals, code: int | None, text: str, err: str, place: Path) -> str:
    """What is wrong with how a command ended, or nothing."""
    if code is None:
        return "it hangs"
    if "Traceback" in err or "Exception ignored" in err or "Error:" in err:
        return f"a traceback: {last_line(err)}"
    if code not in (0, CODES[sent], -sent):
        return f"exit code {code}: {last_line(err)}"
    if code > 0 and "stopped" not in err:
        return f"no word of it: {last_line(err)}"
    if parts_in(place):
        return f"left behind: {', '.join(parts_in(place))}"
    import corank as cr

    for file in place.rglob("*.corank"):
        cr.load(file)  # raises where it is not whole
    saved = {"fit": "m.corank", "sequential": "m.corank", "tune": "best.toml", "recommend": "lists.csv"}
    said = re.search(r"(saved|written) to", err)
    if name in saved and said and not (place / saved[name]).exists():
        return f"{saved[name]} is said to be written and is not there"
    if name == "compare" and "ndcg@10" in text:
        missing = [file for file in COMPARED if not (place / "out" / file).exists()]
        unsaid = [file for file in missing if file not in err]
        if unsaid:
            return f"missing without a word: {', '.join(unsaid)}"
    return ""


PARTS = [
    Part(
        "SIGINT and SIGTERM",
        100,
        run,
        "exit code 130 or 143, no traceback, no part stays, files are whole, and what is missing is said",
    )
]
