from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from corank.errors import CorankError
from corank.kernels import threads
from corank.kernels.threads import run, set_threads


@pytest.fixture(autouse=True)
def default_again():
    yield
    set_threads(None)


def visits(rows, cost=None):
    """How often each row is visited, and the ranges."""
    seen, ranges, lock = np.zeros(rows, int), [], threading.Lock()

    def visit(start, stop):
        with lock:
            seen[start:stop] += 1
            ranges.append((start, stop))

    run(visit, rows, cost=cost)
    return seen, ranges


@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize("rows", [0, 1, 2, 3, 5, 8, 15, 16, 17, 100, 1001])
def test_each_row_exactly_once(count, rows):
    set_threads(count)
    assert (visits(rows)[0] == 1).all()


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("kind", ["empty rows", "one heavy row", "heavy end", "random", "huge"])
@pytest.mark.parametrize("rows", [1, 2, 9, 64, 1000])
def test_each_row_exactly_once_with_costs(count, kind, rows):
    rng = np.random.default_rng(rows)
    work = {
        "empty rows": np.zeros(rows, np.int64),
        "one heavy row": np.where(np.arange(rows) == rows // 2, 10**9, 0),
        "heavy end": np.arange(rows) ** 3,
        "random": rng.integers(0, 50, rows),
        "huge": np.full(rows, 10**12),
    }[kind]
    set_threads(count)
    assert (visits(rows, np.concatenate([[0], np.cumsum(work)]))[0] == 1).all()


def test_costs_are_shared_out():
    set_threads(4)
    work = np.where(np.arange(1000) < 100, 1000, 1)
    _, ranges = visits(1000, np.concatenate([[0], np.cumsum(work)]))
    assert max(work[a:b].sum() for a, b in ranges) < work.sum() / 8


def test_an_error_in_a_range_reaches_the_caller():
    def fail(start, stop):
        raise ArithmeticError("boom")

    for count in (1, 3):
        set_threads(count)
        with pytest.raises(ArithmeticError, match="boom"):
            run(fail, 20)


def test_set_threads_refuses_none_at_all():
    with pytest.raises(ValueError, match="at least 1"):
        set_threads(0)


def test_number_of_threads_comes_from_the_environment(monkeypatch):
    monkeypatch.setenv("CORANK_THREADS", "5")
    assert threads.threads() == 5
    set_threads(2)
    assert threads.threads() == 2
    set_threads(None)
    for unset in ("", " "):
        monkeypatch.setenv("CORANK_THREADS", unset)
        assert threads.threads() >= 1


@pytest.mark.parametrize("wrong", ["many", "0", "-1", "2.5", "²"])
def test_an_environment_that_is_no_number_of_threads_is_a_sentence(monkeypatch, wrong):
    monkeypatch.setenv("CORANK_THREADS", wrong)
    with pytest.raises(CorankError, match=f"CORANK_THREADS='{wrong}' is not a number of threads: set it to"):
        run(lambda start, stop: None, 3)


def test_kernels_release_the_lock_and_are_kept():
    options = threads.kernel(lambda start, stop: None).targetoptions
    assert options["nogil"]
    assert "nnan" not in options["fastmath"]
    assert "ninf" not in options["fastmath"]


FORKED = """
import os, signal
import numpy as np
from corank.kernels.threads import run, set_threads

def fill(start, stop, out):
    out[start:stop] = 1

set_threads(2)
run(fill, 100, np.zeros(100))
child = os.fork()
if child == 0:
    signal.alarm(20)  # a child that waits for threads it does not have is ended here
    out = np.zeros(100)
    run(fill, 100, out)
    os._exit(0 if out.all() else 1)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_starts_threads_of_its_own() -> None:
    subprocess.run([sys.executable, "-c", FORKED], check=True, timeout=60)


@pytest.mark.parametrize("count", [1, 3])
def test_ranges_of_a_run_report_progress_and_can_be_stopped(count):
    threads.set_threads(count)
    out, heard = np.zeros(1000, np.int64), []

    def fill(start, stop, into):
        into[start:stop] += 1

    threads.run(fill, 1000, out, progress=lambda done, of: heard.append((done, of)))
    assert (out == 1).all()
    assert heard[-1] == (len(heard), len(heard))

    def stop(done, of):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        threads.run(fill, 1000, out, progress=stop)
    threads.set_threads(None)
