"""The service under load: requests per second against an endpoint that returns a constant, latency, start, memory.

    python -m benchmarks.serve [-o out/serve] [--seconds 8] [--soak 600] [part ...]

Parts: load, start, soak (default: all). Client and server share the machine. What is compared is measured in turns.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import numpy as np

import corank as cr

from .service_process import ServiceProcess, bearer
from .tools import ROOT, Table, versions

CLIENTS = 64
USERS = 20_000
K = 10
CASES = [  # (items, model, hyper-parameters)
    (1_000, "ease", {}),
    (1_000, "wmf", {"dim": 64, "epochs": 1}),
    (1_000, "sasrec", {"dim": 64, "epochs": 1, "max_len": 50}),
    (20_000, "ease", {"max_items": 5_000}),
    (20_000, "wmf", {"dim": 64, "epochs": 1}),
    (20_000, "sasrec", {"dim": 64, "epochs": 1, "max_len": 50}),
    (200_000, "ease", {"max_items": 5_000}),
    (200_000, "wmf", {"dim": 64, "epochs": 1}),
    (200_000, "sasrec", {"dim": 64, "epochs": 1, "max_len": 50, "loss": "bce"}),
]
MAIN = (20_000, "wmf")  # the case that the goals are about


def data(items: int, users: int = USERS, rows: int = 400_000, seed: int = 0) -> cr.Dataset:
    """Interactions with popular and rare items. What they mean does not matter here, only their number."""
    rng = np.random.default_rng(seed)
    user = np.concatenate([np.arange(users), rng.integers(0, users, rows - users)])
    item = np.concatenate([np.arange(items), (items * rng.random(rows) ** 2).astype(np.int64)])[:rows]
    return cr.from_arrays(user=user, item=rng.permutation(item), time=np.arange(rows))


def load(service: ServiceProcess, seconds: float, paths: Sequence[str], rate: float = 0.0) -> dict[str, Any]:
    """What the load client measures, in a process of its own."""
    words = [sys.executable, "-m", "benchmarks.load", str(service.port), str(seconds), str(CLIENTS), str(rate), *paths]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return dict(json.loads(done.stdout))


def known_users(number: int = 500) -> list[str]:
    return [f"/recommend?user={random.randrange(USERS)}&k={K}" for _ in range(number)]


def histories(items: int, number: int = 300) -> list[str]:
    lists = [",".join(str(random.randrange(items)) for _ in range(10)) for _ in range(number)]
    return [f"/recommend?history={one}&k={K}" for one in lists]


def load_table(folder: Path, seconds: float) -> Table:
    """Requests per second of each model, and their ratio to the constant endpoint."""
    rows, note = [], ""
    for items, name, params in CASES:
        if not cr.available().count(name):
            continue
        rows_of_data = max(400_000, 2 * items)
        try:
            cr.find(name)(**params).fit(data(items, rows=rows_of_data)).save(folder / "m.corank")
        except cr.MissingExtra as why:
            rows.append([f"{items:,}", name, str(why), "", "", "", "", ""])
            continue
        with ServiceProcess(folder, "--quiet", model="m.corank") as service:
            kinds = {
                "constant": ["/health/live"],
                "framework": ["/health/ready"],
                "users": known_users(),
                "histories": histories(items),
            }
            found: dict[str, list[float]] = {kind: [] for kind in kinds}
            for _ in range(3):
                for kind, paths in kinds.items():
                    found[kind].append(load(service, seconds, paths)["rate"])
            rate = {kind: statistics.median(values) for kind, values in found.items()}
            calm = load(service, 2 * seconds, kinds["users"], 0.7 * rate["users"])
            p99 = 1000 * calm["seconds"]["0.99"]
            rows.append(
                [
                    f"{items:,}",
                    name,
                    f"{rate['constant']:,.0f}",
                    f"{rate['framework']:,.0f}",
                    _against(rate, "users"),
                    _against(rate, "histories"),
                    f"{1000 * calm['seconds']['0.5']:.1f} ms",
                    f"{p99:.1f} ms",
                ]
            )
            print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    note = (
        f"{CLIENTS} connections, k = {K}, one process with one thread per batch; median of 3 turns of {seconds:g} s. "
        "Two constants of the same server: `/health/live`, which like `/recommend` is answered without the framework, "
        "and `/health/ready`, a FastAPI route; in brackets the ratios to both. Histories have 10 items. Latency: known "
        "users, at 70 % of the rate in the table, counted from when a request was due. ease has weights for 5,000 "
        "items where there are "
        "more."
    )
    head = [
        "items",
        "model",
        "constant, 1/s",
        "FastAPI constant, 1/s",
        "users, 1/s",
        "histories, 1/s",
        "median at 70 %",
        "99 % at 70 %",
    ]
    return Table("Requests per second", head, rows, note)


def _against(rate: dict[str, float], kind: str) -> str:
    """A rate, and its ratios to those of the two constants."""
    ratios = ", ".join(f"{rate[kind] / rate[base]:.2f}x" for base in ("constant", "framework"))
    return f"{rate[kind]:,.0f} ({ratios})"


def start_table(folder: Path) -> Table:
    """Seconds from the command to the first answer, and resident memory, for a model of some 200 MB."""
    users, items, dim = 600_000, 200_000, 64
    made = data(items, users=users, rows=1_500_000)
    cr.find("wmf")(dim=dim, epochs=1).fit(made).save(folder / "m.corank")
    size = (folder / "m.corank").stat().st_size
    seconds, resident = [], []
    for _ in range(4):  # the first one may compile kernels
        began = time.perf_counter()
        with ServiceProcess(folder, "--quiet", model="m.corank") as service:
            seconds.append(time.perf_counter() - began)
            for user in range(200):
                service.client.get(f"/recommend?user={user}")
            resident.append(memory(service.process.pid))
    rows = [
        ["model file", f"{size / 1e6:,.0f} MB", ""],
        ["from the command to the first answer", f"{min(seconds[1:]):.2f} s", "goal: under 2 s"],
        ["resident memory", f"{max(resident) / 1e6:,.0f} MB", f"goal: {1.5 * size / 1e6 + 150:,.0f} MB at the most"],
    ]
    return Table("Start and memory", ["what", "measured", ""], rows, "Shortest of 3 starts with compiled kernels.")


def soak_table(folder: Path, seconds: float) -> Table:
    """Full load with swaps every 30 s and feedback: failed requests, and whether memory is flat."""
    for name, seed in (("m", 0), ("other", 1)):
        cr.find("wmf")(dim=64, epochs=1, seed=seed).fit(data(20_000)).save(folder / f"{name}.corank")
    every = min(30.0, seconds / 6)
    with ServiceProcess(folder, "--quiet", model="m.corank") as service:
        stop, swaps, written, failed = threading.Event(), [0], [0], list[str]()
        jobs = [
            threading.Thread(target=_swap, args=(service, every, stop, swaps, failed)),
            threading.Thread(target=_write, args=(service, stop, written, failed)),
        ]
        for job in jobs:
            job.start()
        paths, sizes, answers, bad = known_users(), [], 0, 0
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            found = load(service, min(10.0, seconds / 4), paths)
            answers += sum(found["statuses"].values())
            bad += sum(count for status, count in found["statuses"].items() if status != "200") + found["lost"]
            sizes.append(memory(service.process.pid))
        stop.set()
        for job in jobs:
            job.join()
    early, late = max(sizes[: max(1, len(sizes) // 4)]), max(sizes[-max(1, len(sizes) // 4) :])
    rows = [
        ["answers", f"{answers:,}", ""],
        ["failed answers", f"{bad}", "goal: 0"],
        ["swaps, failed", f"{swaps[0]}, {len(failed)}", "goal: 0 failed"],
        ["feedback events written", f"{written[0]:,}", ""],
        ["largest memory, first and last quarter", f"{early / 1e6:,.0f} MB, {late / 1e6:,.0f} MB", "goal: within 5 %"],
    ]
    return Table("Soak", ["what", "measured", ""], rows, f"{seconds:g} s at full load, {CLIENTS} connections.")


def _swap(service: ServiceProcess, every: float, stop: threading.Event, swaps: list[int], failed: list[str]) -> None:
    with httpx.Client(base_url=service.url, headers=bearer(), timeout=60) as client:
        while not stop.wait(every):
            name = "other" if swaps[0] % 2 == 0 else "m"
            answer = client.put("/models/m", json={"file": f"{name}.corank"})
            swaps[0] += 1
            if answer.status_code != 200:
                failed.append(answer.text)


def _write(service: ServiceProcess, stop: threading.Event, written: list[int], failed: list[str]) -> None:
    with httpx.Client(base_url=service.url, headers=bearer(), timeout=60) as client:
        while not stop.wait(0.05):
            body = {"user": random.randrange(USERS), "item": random.randrange(20_000)}
            answer = client.post("/feedback", json=body)
            written[0] += answer.status_code == 200
            if answer.status_code != 200:
                failed.append(answer.text)


def memory(process: int) -> int:
    """Resident bytes of a process."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serve", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=["load", "start", "soak", []], help="default: all")
    parser.add_argument("-o", "--out", type=Path, default=ROOT / "out" / "serve", help="folder for the page")
    parser.add_argument("--seconds", type=float, default=8.0, help="of each measurement under load")
    parser.add_argument("--soak", type=float, default=600.0, help="seconds of the soak")
    parser.add_argument("--main", action="store_true", help="only the case that the goals are about")
    given = parser.parse_args(arguments)
    if given.main:
        CASES[:] = [case for case in CASES if case[:2] == MAIN]
    given.out.mkdir(parents=True, exist_ok=True)
    made = {
        "load": lambda folder: load_table(folder, given.seconds),
        "start": start_table,
        "soak": lambda folder: soak_table(folder, given.soak),
    }
    for name in given.parts or made:
        with tempfile.TemporaryDirectory() as folder:
            table = made[name](Path(folder))
        print(table, flush=True)
        (given.out / f"{name}.part.md").write_text(str(table))
    parts = [path.read_text() for name in made if (path := given.out / f"{name}.part.md").exists()]
    head = f"# The service under load\n\n`python -m benchmarks.serve` wrote this page. {versions()}\n\n"
    (given.out / "service.md").write_text(head + "\n".join(parts))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
