"""Feedback of the service under kills, a database that goes and comes, a full disk, and two processes."""

from __future__ import annotations

import contextlib
import csv
import json
import random
import resource
import threading
import time
from pathlib import Path

import httpx

from ..service_process import ServiceProcess, bearer
from .disks import _can_mount, _place
from .part import Outcome, Part, Tell
from .service import ITEMS, answers, models

DISK = 1024 * 1024  # bytes of the disk that fills up
ROOM = 256 * 1024  # of these for others, which are freed in the end


# ---- kills -------------------------------------------------------------------------------------------------------


def killed(trials: int, seed: int, folder: Path, tell: Tell) -> Outcome:
    """Four clients write feedback without pause; the process is killed; what was acknowledged must be there."""
    models(folder)
    out, draw, acknowledged = Outcome(), random.Random(seed), list[int]()
    for number in range(trials):
        with ServiceProcess(folder, "--quiet") as service:
            writers = [
                threading.Thread(target=_write, args=(service.url, acknowledged, 10**6 * number + 10**5 * at))
                for at in range(4)
            ]
            for writer in writers:
                writer.start()
            time.sleep(draw.uniform(0, 1.5))
            service.process.kill()
            service.process.wait()
            for writer in writers:
                writer.join()
        with ServiceProcess(folder, "--quiet") as service:
            rows = csv.DictReader(service.client.get("/feedback").text.splitlines())
            missing = set(acknowledged) - {int(row["item"]) for row in rows}
        out.trial(f"{len(missing)} acknowledged events are gone" if missing else "")
        tell(number + 1, trials)
    out.notes.append(f"{len(acknowledged):,} events acknowledged")
    return out


def _write(url: str, acknowledged: list[int], first: int) -> None:
    with httpx.Client(base_url=url, headers=bearer(), timeout=10) as client, contextlib.suppress(httpx.HTTPError):
        for item in range(first, first + 100_000):
            if client.post("/feedback", json={"user": 3, "item": item}).status_code == 200:
                acknowledged.append(item)  # noqa: PERF401


# ---- a database that goes and comes ------------------------------------------------------------------------------


def gone(trials: int, seed: int, folder: Path, tell: Tell) -> Outcome:
    """PostgreSQL is stopped and started: reads go on, writes are refused with 503 and taken again, none is lost."""
    from ..postgres import Cluster

    models(folder)
    out, stored = Outcome(), 0
    cluster = Cluster()
    try:
        with ServiceProcess(folder, "--quiet", "--store", cluster.url) as service:
            for number in range(trials):
                failures = []
                if service.client.post("/feedback", json={"user": 3, "item": number}).status_code != 200:
                    failures.append("a write failed while the database was there")
                cluster.stop()
                refused = [service.client.post("/feedback", json={"user": 3, "item": 9}).status_code for _ in range(3)]
                if set(refused) != {503}:
                    failures.append(f"writes without a database: {refused}")
                failures += filter(None, [answers(service.client) for _ in range(5)])
                cluster.start()
                until = time.monotonic() + 20
                while (code := service.client.post("/feedback", json={"user": 3, "item": 1}).status_code) != 200:
                    if time.monotonic() > until:
                        failures.append(f"writes did not recover: {code}")
                        break
                    time.sleep(0.1)
                stored += 2
                out.trial("; ".join(failures))
                tell(number + 1, trials)
            rows = service.client.get("/feedback").text.count("\n") - 1
            if rows < stored:
                out.failures.append(f"{stored - rows} acknowledged events are gone")
    finally:
        cluster.remove()
    return out


# ---- a disk without room ----------------------------------------------------------------------------------------


def full(trials: int, seed: int, folder: Path, tell: Tell) -> Outcome:
    """Feedback fills a disk: writes are refused with 503, reads go on; with room again writes go on, none is lost."""
    models(folder)
    out, mounted = Outcome(), _can_mount(folder)
    events = 0
    for number in range(trials):
        with _place(folder, DISK if mounted else None) as place:
            other = place / "other"
            other.write_bytes(bytes(ROOM))
            words = ("--quiet", "--store", f"sqlite:///{place}/feedback.sqlite")
            with ServiceProcess(folder, *words) as service:
                failure, kept = _filled(service, place, other, limited=not mounted)
                out.trial(failure)
                events += kept
        tell(number + 1, trials)
    how = f"a disk of {DISK // 1024} KB" if mounted else "a limit on the size of files"
    out.notes.append(f"{how}; {events:,} events acknowledged")
    return out


def _filled(service: ServiceProcess, place: Path, other: Path, *, limited: bool) -> tuple[str, int]:
    """What went wrong when the disk filled up, if anything, and how many events were acknowledged."""
    if limited:  # a file cannot grow beyond its present size and a few pages
        size = max(path.stat().st_size for path in place.iterdir())
        resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (size + ROOM, resource.RLIM_INFINITY))
    acknowledged: list[int] = []
    codes = set()
    for item in range(5_000):
        events = [{"user": 3, "item": 1, "key": f"{item}-{at}-{'x' * 150}"} for at in range(20)]
        code = service.client.post("/feedback", json={"events": events}).status_code
        if code != 200:
            codes.add(code)
            break
        acknowledged.append(item)
    codes |= {service.client.post("/feedback", json={"user": 3, "item": 1, "key": "y" * 200}).status_code}
    failures = [] if codes <= {503} else [f"writes to a full disk: {sorted(codes)}"]
    failures += filter(None, [answers(service.client) for _ in range(5)])
    if limited:
        resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    other.unlink()
    until = time.monotonic() + 30
    while (code := service.client.post("/feedback", json={"user": 3, "item": 2, "key": "after"}).status_code) != 200:
        if time.monotonic() > until:
            failures.append(f"writes did not recover: {code}")
            break
        time.sleep(0.2)
    with httpx.stream("GET", f"{service.url}/feedback", headers=bearer(), timeout=60) as answer:
        rows = sum(1 for _ in answer.iter_lines()) - 1
    if rows < 20 * len(acknowledged) + 1:
        failures.append(f"{20 * len(acknowledged) + 1 - rows} acknowledged events are gone")
    return "; ".join(failures), 20 * len(acknowledged)


# ---- two processes ----------------------------------------------------------------------------------------------


def workers(trials: int, seed: int, folder: Path, tell: Tell) -> Outcome:
    """Two workers: an event that one took is part of the next answer of both."""
    models(folder)
    out = Outcome()
    with ServiceProcess(folder, "--quiet", "--workers", "2") as service:
        for number in range(trials):
            service.client.post("/feedback", json={"user": 3, "item": number % ITEMS, "key": str(number)})
            found = {httpx.get(f"{service.url}/recommend?user=3").json()["events"] for _ in range(4)}
            expected = {min(number + 1, 1_000)}
            out.trial("" if found == expected else f"{json.dumps(sorted(found))} events instead of {expected}")
            tell(number + 1, trials)
    return out


PARTS = [
    Part("kill -9 while feedback is written", 50, killed, "all that was acknowledged is there"),
    Part("PostgreSQL stopped and started", 20, gone, "reads go on, writes answer 503 and recover, nothing is lost"),
    Part("feedback on a full disk", 20, full, "reads go on, writes answer 503 and recover, nothing is lost"),
    Part("feedback with two workers", 200, workers, "part of the next answer of both"),
]
