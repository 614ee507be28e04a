"""A first run compiles on two cores: while a command works, a second process compiles the kernels it will need later.

numba compiles one function at a time per process, and keeps the machine code on disk. The second process fits the
models of the command to a tiny table, the last one first, so that the command finds kernels ready when it gets there.
"""

from __future__ import annotations

import contextlib
import logging
import subprocess
import sys
from collections.abc import Iterator, Sequence

import numpy as np

from ..system.limits import cores


class _OnCompile(logging.Handler):
    """Starts the second process when the first kernel is being compiled: where all are on disk, there is none."""

    def __init__(self, models: Sequence[str]) -> None:
        super().__init__(logging.INFO)
        self.models = models
        self.process: subprocess.Popen[bytes] | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if self.process is None:
            command = [sys.executable, "-m", __name__, *reversed(self.models)]
            with contextlib.suppress(OSError):
                self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@contextlib.contextmanager
def warming(models: Sequence[str]) -> Iterator[None]:
    """Within this block, the kernels of these models are compiled by a second process too, if any are missing."""
    handler = _OnCompile(models if cores() > 1 else ())
    logger = logging.getLogger("corank.kernels")
    if handler.models:
        logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        if handler.process is not None:
            handler.process.terminate()
            handler.process.wait()


def compile_for(models: Sequence[str]) -> None:
    """Fit each model to a tiny table that has all that real ones have (ratings, times, a graph), and let it score."""
    from ..data import from_arrays
    from ..models import find

    user, item = (part.ravel() for part in np.indices((12, 8)))
    graph = np.roll(np.eye(12), 1, axis=1) + np.roll(np.eye(12), -1, axis=1)
    data = from_arrays(user=user, item=item, value=1.0 + (user + item) % 5, time=np.arange(user.size), user_graph=graph)
    for name in models:
        # Errors are ignored here: the command itself will report them.
        with contextlib.suppress(Exception):
            cls = find(name)
            small = {k: v for k, v in {"dim": 4, "epochs": 1}.items() if k in cls().params()}
            cls(**small).fit(data)._score(np.zeros(1, np.int32))


if __name__ == "__main__":
    compile_for(sys.argv[1:])
