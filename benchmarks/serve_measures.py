"""What `benchmarks.serve` measures: rates and latency, start and memory, and a soak, each as plain figures."""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import numpy as np

import corank as cr

from .service_process import ServiceProcess, bearer
from .tools import ROOT

CLIENTS = 64
USERS = 20_000
K = 10
SASREC = {"dim": 64, "epochs": 1, "max_len": 50, "loss": "bce", "negatives": 1}  # what it learns does not matter here
CASES: dict[tuple[int, str], dict[str, Any]] = {  # (items, model): hyper-parameters
    (20_000, "wmf"): {"dim": 64, "epochs": 1},  # the case that the goals are about
    (1_000, "ease"): {},
    (1_000, "wmf"): {"dim": 64, "epochs": 1},
    (1_000, "sasrec"): SASREC,
    (20_000, "ease"): {"max_items": 5_000},
    (20_000, "sasrec"): SASREC,
    (200_000, "ease"): {"max_items": 5_000},
    (200_000, "wmf"): {"dim": 64, "epochs": 1},
    (200_000, "sasrec"): SASREC,
}
MAIN = (20_000, "wmf")
LARGE = "large.corank"  # of some 200 MB


def prepare(folder: Path) -> None:
    """Fit and save all models that are not in the folder yet, so that measurements need no fits."""
    folder.mkdir(parents=True, exist_ok=True)
    for (items, name), params in CASES.items():
        if not (file := folder / file_of(items, name)).exists():
            cr.find(name)(**params).fit(data(items, rows=max(400_000, 2 * items))).save(file)
    if not (folder / "other.corank").exists():
        cr.find("wmf")(dim=64, epochs=1, seed=1).fit(data(MAIN[0])).save(folder / "other.corank")
    if not (folder / LARGE).exists():
        cr.find("wmf")(dim=64, epochs=1).fit(data(200_000, users=600_000, rows=1_500_000)).save(folder / LARGE)


def file_of(items: int, name: str) -> str:
    return f"{name}-{items}.corank"


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


def measure_load(folder: Path, items: int, name: str, seconds: float) -> dict[str, Any]:
    """Requests per second of each kind, taken in turns, and the latency of known users at 70 % of their rate."""
    turns = 3 if (items, name) == MAIN else 2
    with ServiceProcess(folder, "--quiet", model=file_of(items, name)) as service:
        kinds = {
            "constant": ["/health/live"],
            "framework": ["/health/ready"],
            "users": known_users(),
            "histories": histories(items),
        }
        found: dict[str, list[float]] = {kind: [] for kind in kinds}
        bad = 0
        for _ in range(turns):
            for kind, paths in kinds.items():
                one = load(service, seconds, paths)
                found[kind].append(one["rate"])
                bad += failed_answers(one)
        rate = {kind: statistics.median(values) for kind, values in found.items()}
        calm = load(service, 2 * seconds, kinds["users"], 0.7 * rate["users"])
        resident = memory(service.process.pid)
    size = (folder / file_of(items, name)).stat().st_size
    return {
        "rate": rate,
        "median": calm["seconds"]["0.5"],
        "p99": calm["seconds"]["0.99"],
        "asked": 0.7 * rate["users"],
        "answered": calm["rate"],
        "failed": bad + failed_answers(calm),
        "seconds": seconds,
        "turns": turns,
        "resident": resident,
        "file": size,
    }


def failed_answers(found: dict[str, Any]) -> int:
    """Answers that are not 200, and connections that were lost."""
    return sum(count for status, count in found["statuses"].items() if status != "200") + int(found["lost"])


def measure_start(folder: Path) -> dict[str, Any]:
    """Seconds from the command to the first answer, and resident memory, for the large model."""
    seconds, resident = [], []
    for _ in range(4):  # the first one may compile kernels
        began = time.perf_counter()
        with ServiceProcess(folder, "--quiet", model=LARGE) as service:
            seconds.append(time.perf_counter() - began)
            for user in range(200):
                service.client.get(f"/recommend?user={user}")
            resident.append(memory(service.process.pid))
    return {"file": (folder / LARGE).stat().st_size, "seconds": seconds[1:], "resident": max(resident)}


def measure_soak(folder: Path, seconds: float) -> dict[str, Any]:
    """Full load with swaps every 30 s and feedback: failed requests, and resident memory after each 10 s."""
    every = min(30.0, seconds / 6)
    for store in folder.glob("feedback*"):
        store.unlink()
    with ServiceProcess(folder, "--quiet", "--store", "sqlite:///feedback.sqlite", model=file_of(*MAIN)) as service:
        stop, swaps, written, failed = threading.Event(), [0], [0], list[str]()
        jobs = [
            threading.Thread(target=_swap, args=(service, every, stop, swaps, failed)),
            threading.Thread(target=_write, args=(service, stop, written, failed)),
        ]
        for job in jobs:
            job.start()
        paths, sizes, answers, bad, slowest = known_users(), list[int](), 0, 0, 0.0
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            found = load(service, min(8.0, seconds / 5), paths)
            answers += sum(found["statuses"].values())
            bad += failed_answers(found)
            slowest = max(slowest, found["seconds"]["0.99"])
            sizes.append(memory(service.process.pid))
        stop.set()
        for job in jobs:
            job.join()
        code, traceback = service.stop(), "Traceback" in service.log
    return {
        "seconds": seconds,
        "answers": answers,
        "failed": bad,
        "swaps": swaps[0],
        "written": written[0],
        "failures": failed[:5],
        "sizes": sizes,
        "p99": slowest,
        "code": code,
        "traceback": traceback,
    }


def _swap(service: ServiceProcess, every: float, stop: threading.Event, swaps: list[int], failed: list[str]) -> None:
    with httpx.Client(base_url=service.url, headers=bearer(), timeout=60) as client:
        while not stop.wait(every):
            file = "other.corank" if swaps[0] % 2 == 0 else file_of(*MAIN)
            answer = client.put(f"/models/{file_of(*MAIN).removesuffix('.corank')}", json={"file": file})
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
