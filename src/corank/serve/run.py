"""Runs a service: sockets, workers, signals and the limit on open files."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator

import uvicorn
from uvicorn.supervisors import Multiprocess

from ..errors import CorankError
from .logs import Log, take_over
from .protocol import Connection
from .settings import ENVIRONMENT, Settings

SPARE = 100  # files beside sockets: the store, logs, libraries


def run(settings: Settings) -> int:
    """Serve until a signal says stop; returns the exit code."""
    settings.check()
    settings.token()  # what is wrong with it is told before models are read
    _allow_sockets(settings)
    log = Log(requests=settings.logs)
    with _listening(settings) as listener:
        if settings.workers > 1:
            _say_where(listener)
            return _run_workers(settings, listener)
        from .app import limit_threads, make_app
        from .service import Service

        limit_threads(settings.threads)
        app = make_app(Service(settings, log))
        take_over(log)
        _say_where(listener)
        server = uvicorn.Server(_config(settings, app))
        with contextlib.suppress(KeyboardInterrupt):  # raised again once everything is finished
            server.run([listener])
        return 0


def _say_where(listener: socket.socket) -> None:
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    with contextlib.suppress(OSError):
        print(f"corank: http://{shown}:{port}/  (Ctrl-C stops)", file=sys.stderr, flush=True)


def _run_workers(settings: Settings, listener: socket.socket) -> int:
    """Several processes with one socket. What they share is in a folder: their metrics, and what is served."""
    with tempfile.TemporaryDirectory(prefix="corank-serve-") as folder:
        os.environ[ENVIRONMENT] = dataclasses.replace(settings, shared=folder).to_json()
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        config = _config(settings, "corank.serve.app:from_environment")
        Multiprocess(config, [listener]).run()
    return 0


def _config(settings: Settings, app: object) -> uvicorn.Config:
    return uvicorn.Config(
        app,  # type: ignore[arg-type]
        factory=isinstance(app, str),
        http=Connection,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        workers=settings.workers,
        backlog=min(2048, settings.limits.connections),
        timeout_keep_alive=int(settings.limits.seconds),
        timeout_graceful_shutdown=int(settings.limits.seconds),
        timeout_worker_healthcheck=30,
    )


@contextlib.contextmanager
def _listening(settings: Settings) -> Iterator[socket.socket]:
    """The socket; it is bound before models are read, so that a port that is taken is told at once."""
    try:
        found = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as why:
        raise CorankError(
            f"--host {settings.host}: {why.strerror or why}; give an address of this machine, such as 127.0.0.1"
        ) from None
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
        except OSError as why:
            raise CorankError(
                f"cannot listen on {settings.host}:{settings.port}: {why.strerror}; choose another --port"
            ) from None
        listener.set_inheritable(True)
        yield listener


def _allow_sockets(settings: Settings) -> None:
    """Raise the limit on open files as far as it goes, so that connections are refused by us and not by the system."""
    try:
        import resource
    except ImportError:  # Windows
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    need = settings.limits.connections + SPARE
    if soft < 2 * need:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard if hard < 2 * need else 2 * need, hard))
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    Connection.most = max(10, min(settings.limits.connections, soft - SPARE))
    Connection.patience = settings.limits.seconds
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
