"""The service as a process: signals, kills, sockets, clients that behave badly, and workers."""

from __future__ import annotations

import csv
import json
import random
import shutil
import signal
import socket
import threading
import time

import httpx
import pytest

from service_tools import TOKEN, ServiceProcess, bearer


@pytest.fixture
def folder(model_files, tmp_path):
    return shutil.copytree(model_files, tmp_path / "models")


def sent(port: int, data: bytes) -> socket.socket:
    """A connection on which something was sent."""
    made = socket.create_connection(("127.0.0.1", port), timeout=30)
    made.sendall(data)
    return made


def received(connection: socket.socket) -> bytes:
    """All that comes until the other side closes."""
    parts = []
    while part := connection.recv(65_536):
        parts.append(part)
    return b"".join(parts)


def feedback_request(item: int, body: bytes | None = None) -> tuple[bytes, bytes]:
    body = body or json.dumps({"user": 3, "item": item}).encode()
    head = f"POST /feedback HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode(), body


def test_sigterm_finishes_what_was_begun(folder, ctrl_c):
    """Half of a body has arrived when the signal comes: the rest is read, stored and acknowledged; then it ends."""
    with ServiceProcess(folder) as service:
        head, body = feedback_request(7)
        connection = sent(service.port, head + body[:5])
        idle = sent(service.port, b"")
        time.sleep(0.3)
        service.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        connection.sendall(body[5:])
        answer = received(connection)
        assert b"200 OK" in answer
        assert b'{"accepted":1}' in answer
        assert received(idle) == b""
        assert service.process.wait(30) == 0
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", service.port), timeout=5)
        assert '"stopped"' in service.log
        assert "Traceback" not in service.log
    with ServiceProcess(folder) as again:
        assert again.client.get("/recommend?user=3").json()["events"] == 1
        assert again.stop(signal.SIGINT) == 0


def test_too_many_sockets_are_refused_politely(folder):
    with ServiceProcess(folder, "--connections", "10", "--quiet") as service:
        service.client.get("/recommend?user=1")
        held = [sent(service.port, b"") for _ in range(9)]
        refused = [sent(service.port, b"GET /recommend?user=1 HTTP/1.1\r\nHost: localhost\r\n\r\n") for _ in range(30)]
        for one in refused:
            try:
                answer = received(one)
            except ConnectionResetError:  # the request was still on its way
                continue
            assert answer.startswith(b"HTTP/1.1 503 Service Unavailable"), answer[:100]
            assert b"all connections of this service are in use" in answer
        assert service.client.get("/recommend?user=1").status_code == 200  # who is connected is served
        for one in (*held, *refused):
            one.close()
        time.sleep(0.2)
        assert httpx.get(f"{service.url}/recommend?user=1").status_code == 200


def test_a_client_that_never_reads_costs_the_others_nothing(folder):
    """Thousands of requests on one connection whose answers are never read; another client is served meanwhile."""
    with ServiceProcess(folder, "--quiet") as service:
        ask = b"GET /recommend?user=1&k=30&seen=true HTTP/1.1\r\nHost: localhost\r\n\r\n"
        deaf = socket.socket()
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", service.port))
        deaf.settimeout(0.5)
        try:
            for _ in range(200):
                deaf.sendall(ask * 50)
        except TimeoutError:
            pass  # the service reads no further where its answers are not read
        for user in range(20):
            assert service.client.get(f"/recommend?user={user}").status_code == 200
        deaf.close()


def test_a_request_that_never_ends_is_given_up(folder, monkeypatch):
    """Half a head, and half a body: both connections are closed after the time that clients have."""
    script = "import corank.serve.settings as s, dataclasses, sys\n"
    script += "s.Limits.__init__.__defaults__ = (1_000_000, 1_000, 1.0)\n"
    (folder / "sitecustomize.py").write_text(script)
    monkeypatch.setenv("PYTHONPATH", f"{folder}:{_python_path()}")
    with ServiceProcess(folder) as service:
        head = sent(service.port, b"GET /recommend?user=1 HTTP/1.1\r\nHost: loc")
        begun, body = feedback_request(7)
        half = sent(service.port, begun + body[:5])
        assert received(head) == b""
        assert b"408 Request Timeout" in received(half)


def _python_path() -> str:
    import os

    return os.environ.get("PYTHONPATH", "")


@pytest.mark.slow
def test_kill_9_loses_nothing_that_was_acknowledged(folder):
    rng = random.Random(5)
    acknowledged: list[int] = []
    for attempt in range(3):
        with ServiceProcess(folder, "--quiet") as service:
            stop = threading.Event()
            threads = [
                threading.Thread(target=_write, args=(service, acknowledged, 10**6 * attempt + 10**4 * n, stop))
                for n in range(4)
            ]
            for thread in threads:
                thread.start()
            time.sleep(0.2 + rng.random())
            service.process.kill()
            service.process.wait()
            stop.set()
            for thread in threads:
                thread.join()
    assert len(acknowledged) > 50
    with ServiceProcess(folder, "--quiet") as service:
        table = list(csv.DictReader(service.client.get("/feedback").text.splitlines()))
    assert set(acknowledged) <= {int(row["item"]) for row in table}


def _write(service: ServiceProcess, acknowledged: list[int], first: int, stop: threading.Event) -> None:
    with httpx.Client(base_url=service.url, headers=bearer(), timeout=10) as client:
        for item in range(first, first + 10_000):
            if stop.is_set():
                return
            try:
                answer = client.post("/feedback", json={"user": 3, "item": item})
            except httpx.HTTPError:
                return
            if answer.status_code == 200:
                acknowledged.append(item)


@pytest.mark.slow
def test_two_workers_agree(folder):
    """Feedback that one worker took and a swap that one worker made are seen by both."""
    with ServiceProcess(folder, "--workers", "2") as service:

        def everywhere(path: str, times: int = 30) -> list[dict]:
            """Answers over many connections, so that both workers are asked."""
            return [httpx.get(service.url + path, timeout=60).json() for _ in range(times)]

        for item in range(5):
            service.client.post("/feedback", json={"user": 3, "item": item})
            assert {one["events"] for one in everywhere("/recommend?user=3", 12)} == {item + 1}
        kinds = {one["models"][0]["kind"] for one in everywhere("/models")}
        assert kinds == {"wmf"}
        assert service.client.put("/models/a", json={"file": "b.corank"}).status_code == 200
        until = time.monotonic() + 30
        while {one["models"][0]["kind"] for one in everywhere("/models")} != {"ease"}:
            assert time.monotonic() < until
        total = httpx.get(f"{service.url}/metrics").text
        assert 'corank_requests_total{route="/recommend",status="200"} 60.0' in total
        assert service.stop() == 0
