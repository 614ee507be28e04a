"""How kernels are compiled and run on several threads.

A kernel is a plain function of a row range, `kernel(start, stop, *arrays)`, compiled to run without the GIL; `run`
distributes ranges over a few Python threads. Numba's `prange` is deliberately not used: its default threading layer
aborts the process when two threads (of a server, for instance) call it at once, and it takes several times longer to
compile. No two ranges write to the same output, so results do not depend on the number of threads.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from types import ModuleType
from typing import Any

import numba
import numpy as np
from numba.core import event

from ..errors import CorankError
from ..system.limits import cores
from .cache import KernelCache, content

logger = logging.getLogger("corank.kernels")

# Reassociation lets the compiler vectorise sums. A loop that sums must not store: where two arrays may overlap, the
# compiler keeps a scalar form of the loop for the case that they do, and also takes it where they merely lie within
# some hundred bytes of each other. The order of the sum, and so its last bits, would depend on where an allocation
# happened to be. NaN and infinity must not be optimised away (no `nnan`, `ninf`).
FAST = {"reassoc", "contract", "arcp", "nsz"}

WATCHED = 200  # ranges of a run whose progress is reported

_threads: int | None = None
_pools: dict[int, ThreadPoolExecutor] = {}  # by number of threads
_lock = threading.Lock()
if hasattr(os, "register_at_fork"):  # a forked child has no threads, and must not inherit a held lock
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=lambda: _forked())


def _forked() -> None:
    _pools.clear()
    _lock.release()


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` to run without the GIL, and cache the machine code on disk."""
    return _compiled(function)


def inline(function: Callable[..., Any]) -> Any:
    """Compile `function` into each kernel that calls it.

    Otherwise a kernel would call the copy that was compiled alone in the process that compiles it, and its own copy in
    a process that loads it from the cache; the two round differently.
    """
    return _compiled(function, forceinline=True)


def _compiled(function: Callable[..., Any], **options: Any) -> Any:
    made = numba.njit(nogil=True, fastmath=FAST, error_model="numpy", **options)(function)
    # numba asks only whether the kernel's own file has changed. Its code comes from other files too, and an index that
    # names a class which is gone cannot even be read: both are told by the version, which is compared first.
    made._cache = KernelCache(function, _sources(function))
    return made


def _sources(function: Callable[..., Any]) -> str:
    """The content of each file of kernels that `function` can call, its own included."""
    stamps: dict[str, str] = {}
    waiting = [function.__globals__]
    while waiting:
        scope = waiting.pop()
        path = str(scope.get("__file__"))
        if path in stamps or not os.path.exists(path):
            continue
        stamps[path] = content(path)
        for value in list(scope.values()):
            if hasattr(value, "py_func"):
                waiting.append(value.py_func.__globals__)
            elif isinstance(value, ModuleType) and value.__name__.startswith(str(__package__)):
                waiting.append(vars(value))
    return " ".join(stamps[path] for path in sorted(stamps))


def threads() -> int:
    """Number of threads: from `set_threads`, else `CORANK_THREADS`, else the processors that this process may use.

    Those are limited by the processors it is bound to and by the quota of a container (see `limits.cores`).
    """
    if _threads is not None:
        return _threads
    asked = os.environ.get("CORANK_THREADS", "").strip()
    if asked:
        if not asked.isdecimal() or int(asked) < 1:
            raise CorankError(f"CORANK_THREADS={asked!r} is not a number of threads: set it to 1 or more, or unset it")
        return int(asked)
    return cores()


def set_threads(count: int | None) -> None:
    """Use `count` threads from now on; `None` restores the default."""
    global _threads
    if count is not None and count < 1:
        raise ValueError(f"threads must be at least 1, got {count}")
    _threads = count


def run(
    function: Callable[..., Any],
    rows: int,
    *args: Any,
    cost: np.ndarray | None = None,
    progress: Callable[[float, float], None] | None = None,
) -> None:
    """Call `function(start, stop, *args)` over `range(rows)`, in ranges of about equal cost.

    cost : int64[rows + 1], cumulative cost of the rows before each (such as a CSR `indptr`); uniform when absent.
    progress : called with (done, of) after each of the ranges, which are smaller then; it may raise to stop.
    """
    alone = getattr(_local, "worker", False)
    workers = 1 if alone else min(threads(), rows)
    if workers <= 1 and progress is None:
        function(0, rows, *args)
        return
    # Several ranges per worker balance the load: the cost is only an estimate.
    parts = min(rows, 8 * workers if progress is None else max(8 * workers, WATCHED))
    if cost is None:
        cuts = np.linspace(0, rows, parts + 1).astype(np.int64)
    else:
        # Add a fixed cost per row, so that a million empty rows do not end up in one range.
        total = cost + (cost[-1] // max(rows, 1) + 1) * np.arange(rows + 1) // 4
        cuts = np.searchsorted(total, np.linspace(0, total[-1], parts + 1))
        cuts[0], cuts[-1] = 0, rows
    ranges = [(int(a), int(b)) for a, b in itertools.pairwise(cuts) if b > a]
    if workers <= 1:
        for done, (a, b) in enumerate(ranges, 1):
            function(a, b, *args)
            progress(done, len(ranges))  # type: ignore[misc]
        return
    started = [_pool(workers).submit(function, a, b, *args) for a, b in ranges]
    if progress is not None:
        _watch(started, progress)
    wait(started)  # wait for all, even if one fails: afterwards no thread writes to the arrays
    for part in started:
        part.result()


def _watch(started: list[Future[Any]], progress: Callable[[float, float], None]) -> None:
    """Report each range that ends; if `progress` raises, those that have not begun never do."""
    try:
        for done, _ in enumerate(as_completed(started), 1):
            progress(done, len(started))
    except BaseException:
        for part in started:
            part.cancel()
        wait(started)
        raise


def _pool(workers: int) -> ThreadPoolExecutor:
    """The threads of `run`, reused between calls: starting threads takes longer than a kernel on small data."""
    with _lock:
        if workers not in _pools:
            _pools[workers] = ThreadPoolExecutor(workers)
        return _pools[workers]


def each(function: Callable[[Any], Any], parts: Iterable[Any]) -> None:
    """Call a Python function on each part, in parallel; kernels that it calls with `run` stay in its thread.

    For work that mixes matrix products with kernels, block by block: one thread per block is faster than several
    threads that synchronise after every step, so BLAS is limited to one thread meanwhile.
    """
    parts = list(parts)
    workers = min(threads(), len(parts))
    if workers <= 1 or getattr(_local, "worker", False):
        for part in parts:
            function(part)
        return

    def call(part: Any) -> None:
        _local.worker = True
        function(part)

    with one_blas_thread(), ThreadPoolExecutor(workers) as pool:
        for done in [pool.submit(call, part) for part in parts]:
            done.result()


def blas_threads() -> int:
    """Number of threads of a matrix product."""
    return max((int(library["num_threads"]) for library in _blas.found().info()), default=1)


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread. The setting is global: the first caller sets it and the last one restores it."""
    with _blas.lock:
        if _blas.holders == 0:
            _blas.limit = _blas.found().limit(limits=1)
            _blas.limit.__enter__()
        _blas.holders += 1
    try:
        yield
    finally:
        with _blas.lock:
            _blas.holders -= 1
            if _blas.holders == 0:
                _blas.limit.__exit__(None, None, None)


class _Blas:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.holders = 0
        self.controller: Any = None
        self.limit: Any = None

    def found(self) -> Any:
        """The BLAS libraries that are loaded."""
        if self.controller is None:
            import scipy.linalg  # noqa: F401  # numpy and scipy may each have one, found only once it is loaded
            from threadpoolctl import ThreadpoolController

            self.controller = ThreadpoolController().select(user_api="blas")
        return self.controller


_blas = _Blas()
_local = threading.local()


def _is_ours(compiled: Any) -> bool:
    return str(compiled.data["dispatcher"].py_func.__module__).startswith(str(__package__))


class _Compilation(event.Listener):
    """Logs once per process that kernels are being compiled, and measures how long that takes."""

    def __init__(self) -> None:
        self.depth = 0
        self.seconds = 0.0
        self.logged = False

    def on_start(self, compiled: Any) -> None:
        if _is_ours(compiled):
            self.depth += 1
            if self.depth == 1:
                self.began = time.perf_counter()
            if not self.logged:
                self.logged = True
                logger.info("compiling kernels for this machine; later runs load them from disk")

    def on_end(self, compiled: Any) -> None:
        if _is_ours(compiled):
            self.depth -= 1
            if self.depth == 0:
                self.seconds += time.perf_counter() - self.began


_compilation = _Compilation()
event.register("numba:compile", _compilation)  # type: ignore[no-untyped-call]


def compile_seconds() -> float:
    """Seconds that this process has spent compiling kernels; 0 when all of them were loaded from disk."""
    return _compilation.seconds
