"""Damaged experiment files: each is refused with a sentence before the first fit, or it runs.

The files are those of `experiments/` on small synthetic data, so that a file which is still valid really runs: loaded,
checked, fitted, evaluated and reported. Some of them go through the command line, in processes of their own.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from corank.errors import CorankError
from corank.experiment.experiment import Experiment
from corank.report import write_html

from ..tools import ROOT
from .part import Outcome, Part, Tell

SECONDS = 2.0  # of a run, after which it is stopped: it was valid
HANG = 600.0  # seconds: kernels may have to be compiled first, on a busy machine
EVERY = 16  # one trial in so many goes through the command line
UNTOUCHED = "nothing was changed"
STOPPED = "stopped before any row was finished"
Table = dict[str, Any]


class Raw(str):
    """A value as it stands in the file."""


VALUES: list[Any] = [
    5, -1, 0, 2.5, "", "x", " ", True, False, [], [1], [[1]], ["x"], [None], {}, {"a": {"b": 1}}, {"name": 3},
    Raw("nan"), Raw("-inf"), Raw("1e400"), Raw("0x" + "f" * 5000), Raw("9" * 5000), Raw("2**3"), Raw("-0"),
    Raw("1_000"),
    Raw("2024-01-31"), Raw("2024-01-31T25:00:00"), Raw("07:32:00"), Raw('"\\u0000"'), Raw('"a\\nb"'), Raw('"\\ud800"'),
    Raw('"../../escaped/here"'), Raw('"/escaped"'), Raw('"..\\\\..\\\\escaped"'), Raw('"CON"'), Raw('"."'),
    Raw('"🦆 é"'),
    Raw("9223372036854775808"), Raw('"' + "a" * 5000 + '"'), Raw("[" * 200 + "]" * 200), Raw("'''\nmany\nlines'''"),
]  # fmt: skip
KEYS = ["sed", "modles", "", "a.b", "név", "models", "_opened", "seed ", "Data", "n" * 300, "__class__"]


def run(trials: int, seed: int, folder: Path, tell: Tell) -> Outcome:
    """Damage files, run them, and look at what came of it and at what was written where."""
    rng, out, ended = random.Random(seed), Outcome(), Counter[str]()
    sources = [small(path) for path in sorted((ROOT / "experiments").glob("*.toml"))]
    place = folder / "deep" / "inside"
    place.mkdir(parents=True)
    os.environ.setdefault("NUMBA_NUM_THREADS", "2")
    for trial in range(trials):
        what, content = damaged(rng, rng.choice(sources), trial)
        file = place / "e.toml"
        file.write_bytes(content)
        start = time.monotonic()
        ending, failure = (by_command if trial % EVERY == 0 else in_process)(file, place / "out")
        taken = time.monotonic() - start
        ended[ending] += 1
        if taken > HANG:
            failure = failure or f"took {taken:.0f} s"
        if what == UNTOUCHED and "refused" in ending:  # else a schema that refuses everything would hold
            failure = failure or f"refused: {content.decode()[:200]}"
        strays = [p for p in folder.rglob("*") if p.is_file() and not p.is_relative_to(place)]
        strays += [p for p in place.iterdir() if p.name not in ("e.toml", "out")]
        strays += [p for p in (Path("/escaped"),) if p.exists()]
        for stray in strays:
            failure = failure or f"wrote {stray}, outside of its folder"
            stray.unlink(missing_ok=True) if stray.is_file() else None
        out.trial(f"{what}: {failure}" if failure else "")
        tell(trial + 1, trials)
    out.notes.append(", ".join(f"{count:,} {name}" for name, count in ended.most_common()))
    return out


def small(path: Path) -> Table:
    """An experiment of the repository on small data: its tables, with sizes that take moments."""
    table = tomllib.loads(path.read_text("utf-8"))
    explicit = table.get("task") == "explicit"
    graph = any(row["name"] in ("grmf", "grwmf", "co_factor", "gcmc", "graph_ae") for row in table.get("model", []))
    sizes = {"users": 40, "items": 30, "rank": 2, "train": 0.3, "test": 0.1, "edge": 0.1, "seed": 1}
    market = {"users": 40, "items": 40, "rows": 400, "groups": 3, "friends": 3, "seed": 1}
    table["data"] = {"synthetic": "simulation", **sizes} if explicit and graph else {"synthetic": "realistic", **market}
    for key in ("test", "valid", "columns", "user_edges", "item_edges", "positive"):
        table.pop(key, None)
    if table.get("split") == "published" or "fixed_per_user" in str(table.get("split")):
        table["split"] = {"name": "holdout", "by": "user", "seed": 3}
    table["seeds"] = table.get("seeds", [])[:2]
    if table.get("tune"):
        table["tune"] = 2
    for row in table.get("model", []):
        for key in ("item_graph", "rho_item", "share"):  # the small data has no graph of the items, and other labels
            row.pop(key, None)
        for key, least in (("epochs", 1), ("dim", 2), ("hidden", 4), ("dim_user", 2), ("heads", 1), ("max_len", 8)):
            row.update({key: least} if key in row else {})
    return table


def damaged(rng: random.Random, source: Table, trial: int) -> tuple[str, bytes]:
    """What was done to a file, and the file."""
    table: Table = json.loads(json.dumps(source))
    if table.get("model"):  # a few rows are enough
        table["model"] = rng.sample(table["model"], min(2, len(table["model"])))
        table["model"][0].pop("label", None) if rng.random() < 0.3 else None
    if not set(table.get("between", [])) <= {row.get("label", row["name"]) for row in table.get("model", [])}:
        table.pop("between")
    if trial % 10 == 0:
        return UNTOUCHED, written(table).encode()
    if rng.random() < 0.3:
        return _bytes(rng, written(table).encode())
    done = [_one(rng, table) for _ in range(rng.choice((1, 1, 1, 2, 4)))]
    return "; ".join(done), written(table).encode("utf-8", "surrogatepass")


def _one(rng: random.Random, table: Table) -> str:
    tables = [t for t in (table, table["data"], table.get("split"), *table.get("model", [])) if isinstance(t, dict)]
    options = [name for name in Experiment.__dataclass_fields__ if name not in ("models", "_opened")]
    where = rng.choice(tables)
    keys = [*where, *(options if where is table else [])] or ["name"]
    kind = rng.choice(("value", "value", "value", "value", "key", "drop", "typo", "case"))
    key = rng.choice(keys)
    if kind == "value":
        where[key] = rng.choice(VALUES)
        return f"{key} = {str(where[key])[:30]!r}"
    if kind == "key":
        where[rng.choice(KEYS)] = rng.choice(VALUES)
        return "another key"
    value = where.pop(key, None)
    if kind != "drop" and value is not None:
        where[key.upper() if kind == "case" else key[:-1] or "x"] = value
    return f"{kind} {key}"


def _bytes(rng: random.Random, text: bytes) -> tuple[str, bytes]:
    at = rng.randrange(len(text))
    line = text.splitlines()[0] + b"\n"
    cases: dict[str, Callable[[], bytes]] = {
        "cut off": lambda: text[:at],
        "a NUL": lambda: text[:at] + b"\0" + text[at:],
        "not UTF-8": lambda: text[:at] + b"\xff\xfe" + text[at:],
        "UTF-16": lambda: text.decode().encode("utf-16"),
        "a byte order mark": lambda: b"\xef\xbb\xbf" + text,
        "CRLF": lambda: text.replace(b"\n", b"\r\n"),
        "CR": lambda: text.replace(b"\n", b"\r"),
        "a key twice": lambda: line + text,
        "a table twice": lambda: text + b"[data]\nsynthetic = 'markov'\n",
        "another byte": lambda: text[:at] + bytes([rng.randrange(256)]) + text[at + 1 :],
        "a line less": lambda: b"".join(
            one for i, one in enumerate(text.splitlines(True)) if i != at % text.count(b"\n")
        ),
        "nothing in it": lambda: b"",
        "only blanks": lambda: b" \n\t\n",
        "deep": lambda: b"a = " + b"[" * 100_000,
        "large": lambda: text + b"# " + b"x" * 2_000_000,
        "model a table": lambda: text.replace(b"[[model]]", b"[model]"),
    }
    name = rng.choice(sorted(cases))
    return name, cases[name]()


def written(table: Table) -> str:
    """A table as TOML; the rows last."""
    rows = table.get("model")
    lines = [f"{_key(k)} = {_toml(v)}" for k, v in table.items() if k != "model" or not isinstance(v, list)]
    for row in rows if isinstance(rows, list) else []:
        if not isinstance(row, dict):
            return "\n".join([*lines, f"model = {_toml(rows)}", ""])
        lines += ["", "[[model]]", *(f"{_key(k)} = {_toml(v)}" for k, v in row.items())]
    return "\n".join(lines) + "\n"


def _key(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _toml(value: Any) -> str:
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def in_process(file: Path, out: Path) -> tuple[str, str]:
    """How a run ended, and why that is wrong, if it is."""
    end = time.monotonic() + SECONDS
    try:
        experiment = Experiment.from_toml(file)
        experiment.curves = False
        results = experiment.run(lambda label, event: time.monotonic() < end, storage=out)
        write_html(results, out / "report.html")
    except CorankError as why:
        text = str(why)
        if text == STOPPED:
            return "ran until stopped", ""
        odd = "unexpected" in text or len(text.splitlines()) > 12 or len(text) > 4000
        return "refused", f"odd message: {text[:300]}" if odd else ""
    except Exception as why:
        return "traceback", f"{type(why).__name__}: {why}"
    defects = [text for text in results.failed.values() if text.startswith("unexpected")]
    return "ran", defects[0] if defects else ""


def by_command(file: Path, out: Path) -> tuple[str, str]:
    """The same through `corank compare`."""
    command = [sys.executable, "-m", "corank", "compare", str(file), "-o", str(out)]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=False, cwd=file.parent)
    except subprocess.TimeoutExpired:
        return "hung", f"did not end in {HANG:.0f} s"
    wrong = "Traceback" in ran.stderr or ran.returncode not in (0, 1, 2) or "unexpected" in ran.stderr
    last = ran.stderr.strip().splitlines()[-1:] or [""]
    return "command " + ("ran" if ran.returncode < 2 else "refused"), f"{ran.returncode}: {last[0]}" if wrong else ""


PARTS = [
    Part(
        "TOML files",
        320,
        run,
        "refused with a sentence before the first fit, or runs; nothing is written outside its folder",
    )
]
