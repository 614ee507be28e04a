"""Where the machine code of kernels is kept between processes, and what is done where nothing can be kept.

The first of these folders that can be written to: `NUMBA_CACHE_DIR`, the `__pycache__` beside the kernels, numba's
folder in the user's cache. Kernels are looked for in all of them, also where they can only be read: an image whose
kernels were compiled when it was built starts fast under any user. Without a folder to write to, kernels are compiled
in memory, in each process anew, and one warning says how to avoid that.
"""

# mypy: disable-error-code="no-untyped-call"
# numba has no types.

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os
from collections.abc import Callable
from typing import Any

from numba.core import caching, config

logger = logging.getLogger("corank.kernels")
REMEDY = "set NUMBA_CACHE_DIR to a folder that can be written to, to keep them"


class _OwnFolder(caching.UserWideCacheLocator):
    """The user's cache; a user without a home has none, and numba would make a folder called '~'."""

    @classmethod
    def from_function(cls, py_func: Any, py_file: Any) -> Any:
        home = os.path.expanduser("~/.cache") if os.name == "posix" else "/"
        return super().from_function(py_func, py_file) if os.path.isabs(home) else None


class _ReadOnly(caching.InTreeCacheLocator):
    """The folder beside the kernels where nothing can be written: kernels may be there already."""

    def ensure_cache_path(self) -> None:
        """Nothing to make."""


class _Places(caching.CompileResultCacheImpl):
    _locator_classes = [  # noqa: RUF012  # numba's own list, with two changes
        caching.UserProvidedCacheLocator,
        caching.InTreeCacheLocator,
        _OwnFolder,
        caching.IPythonCacheLocator,
        caching.ZipCacheLocator,
        _ReadOnly,
    ]


class KernelCache(caching.FunctionCache):
    """numba's cache of one function; a kernel that was compiled runs whether or not it can be kept.

    version : compared with that of a file before anything else of it is read.
    """

    _impl_class = _Places

    def __init__(self, function: Callable[..., Any], version: str) -> None:
        super().__init__(function)
        places = [self._cache_path, caching.InTreeCacheLocator(function, self._impl.locator._py_file).get_cache_path()]
        if getattr(config, "CACHE_DIR", ""):
            places.append(caching.UserProvidedCacheLocator(function, self._impl.locator._py_file).get_cache_path())
        stamp = self._impl.locator.get_source_stamp()
        self.files = [caching.IndexDataCacheFile(p, self._impl.filename_base, stamp) for p in dict.fromkeys(places)]
        self._cache_file = self.files[0]
        for file in self.files:
            file._version = f"{file._version} {version}"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function, from the first file that has it; None if none does."""
        target_context.refresh()
        key = self._index_key(sig, target_context.codegen())
        for file in self.files:
            try:
                data = file.load(key)
                if data is not None:
                    return self._impl.rebuild(target_context, data)
            except Exception:
                # Damaged, or not ours to read: compiled again, and replaced where that is allowed.
                with contextlib.suppress(OSError):
                    os.unlink(file._index_path)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled; a full disk costs the next process the compilation, and this one a warning."""
        if isinstance(self._impl.locator, _ReadOnly):
            _warn(f"kernels are compiled in memory, as {self._cache_path} cannot be written to")
            return
        try:
            super().save_overload(sig, data)
        except OSError as why:
            _warn(f"compiled kernels cannot be kept in {self._cache_path} ({why.strerror or why})")


@functools.cache
def _warn(text: str) -> None:
    logger.warning("%s, and each process will compile them again: %s", text, REMEDY)


@functools.cache
def content(path: str) -> str:
    """A digest of a source file: unlike its time, it is the same after an image was built or a package copied."""
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()[:16]
