"""The inverse of a symmetric positive definite matrix, in place and in block columns.

As LAPACK's potrf and potri: with A = U'U, the inverse is U^-1 U^-T. The factor, its inverse and the product cost
n^3 / 6 multiply-adds each, and are computed one block column at a time. LAPACK does the same in one call, which takes
minutes to hours for tens of thousands of columns, and nothing can be reported or stopped meanwhile.

BLAS is called through the pointers that scipy exports for Cython: its Python functions copy blocks of a larger matrix.

Shapes: matrix float32 or float64 [n, n], row-major; only its lower triangle is read and written. To BLAS, which is
column-major, that is the upper triangle of the same matrix.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

BLOCK = 1024  # columns at a time: large enough for BLAS to be as fast as in one call


def invert(matrix: np.ndarray, progress: Callable[[float, float], None] | None = None) -> bool:
    """Replace the lower triangle by that of the inverse; False if the matrix is not positive definite.

    progress : called with (done, of), in operations, after each block column; it may raise to stop.
    """
    n = len(matrix)
    if matrix.shape != (n, n) or not matrix.flags.c_contiguous or matrix.dtype not in (np.float32, np.float64):
        raise ValueError("invert takes a square float32 or float64 matrix in rows")
    linear = _Linear(matrix)
    cuts = [(at, min(BLOCK, n - at)) for at in range(0, n, BLOCK)]
    done, of = 0.0, float(n) ** 3
    for phase in (_factor, _invert_factor, _multiply_factor):
        for failed, operations in phase(linear, n, cuts):
            if failed:
                return False
            done += operations
            if progress is not None:
                progress(min(done, of), of)
    return True


def _factor(call: _Linear, n: int, cuts: list[tuple[int, int]]) -> Iterator[tuple[int, float]]:
    """A becomes U, with A = U'U: the rows of U, block by block, and the rest of A less what they explain."""
    for at, size in cuts:
        rest, right = n - at - size, at + size
        failed = call.potrf("U", size, (at, at))
        if rest and not failed:
            call.trsm("L", "U", "T", "N", size, rest, 1.0, (at, at), (at, right))
            call.syrk("U", "T", rest, size, -1.0, (at, right), 1.0, (right, right))
        yield failed, size * (size**2 / 3 + size * rest + float(rest) ** 2)


def _invert_factor(call: _Linear, n: int, cuts: list[tuple[int, int]]) -> Iterator[tuple[int, float]]:
    """U becomes U^-1: above the diagonal, column block j is -(U^-1 before j) U_j (U_jj)^-1."""
    for at, size in cuts:
        if at:
            call.trmm("L", "U", "N", "N", at, size, 1.0, (0, 0), (0, at))
            call.trsm("R", "U", "N", "N", at, size, -1.0, (at, at), (0, at))
        failed = call.trtri("U", "N", size, (at, at))
        yield failed, size * (size**2 / 3 + size * at + float(at) ** 2)


def _multiply_factor(call: _Linear, n: int, cuts: list[tuple[int, int]]) -> Iterator[tuple[int, float]]:
    """U^-1 becomes U^-1 U^-T, column block by column block; those to the right of it are still U^-1."""
    for at, size in cuts:
        rest, right = n - at - size, at + size
        if at:
            call.trmm("R", "U", "T", "N", at, size, 1.0, (at, at), (0, at))
        failed = call.lauum("U", size, (at, at))
        if rest:
            if at:
                call.gemm("N", "T", at, size, rest, 1.0, (0, right), (at, right), 1.0, (0, at))
            call.syrk("U", "N", size, rest, 1.0, (at, right), 1.0, (at, at))
        yield failed, size * (size**2 / 3 + size * at + 2.0 * at * rest + float(size) * rest)


class _Linear:
    """BLAS and LAPACK on blocks of one matrix; a block is named by the row and the column where it begins."""

    def __init__(self, matrix: np.ndarray) -> None:
        self.matrix, self.width = matrix, matrix.itemsize
        self.kind = "s" if matrix.dtype == np.float32 else "d"
        self.scalar: Any = ctypes.c_float if self.kind == "s" else ctypes.c_double
        self.lead = ctypes.c_int(max(1, len(matrix)))

    def _at(self, block: tuple[int, int]) -> ctypes.c_void_p:
        row, column = block
        return ctypes.c_void_p(self.matrix.ctypes.data + (column * self.lead.value + row) * self.width)

    def _run(self, library: str, name: str, *arguments: Any) -> None:
        """Call a function with the Fortran convention: everything by reference."""
        given = [
            a
            if isinstance(a, ctypes.c_void_p)
            else ctypes.byref(a)
            if isinstance(a, ctypes._SimpleCData)
            else ctypes.c_char_p(a.encode())
            if isinstance(a, str)
            else ctypes.byref(ctypes.c_int(a))
            if isinstance(a, int)
            else ctypes.byref(self.scalar(a))
            for a in arguments
        ]
        _function(library, self.kind + name)(*given)

    def _lapack(self, name: str, *arguments: Any) -> int:
        info = ctypes.c_int(0)
        self._run("lapack", name, *arguments, info)
        return info.value

    def potrf(self, uplo: str, n: int, a: tuple[int, int]) -> int:
        return self._lapack("potrf", uplo, n, self._at(a), self.lead)

    def trtri(self, uplo: str, diagonal: str, n: int, a: tuple[int, int]) -> int:
        return self._lapack("trtri", uplo, diagonal, n, self._at(a), self.lead)

    def lauum(self, uplo: str, n: int, a: tuple[int, int]) -> int:
        return self._lapack("lauum", uplo, n, self._at(a), self.lead)

    def trsm(self, *arguments: Any) -> None:
        *options, alpha, a, b = arguments
        self._run("blas", "trsm", *options, alpha, self._at(a), self.lead, self._at(b), self.lead)

    def trmm(self, *arguments: Any) -> None:
        *options, alpha, a, b = arguments
        self._run("blas", "trmm", *options, alpha, self._at(a), self.lead, self._at(b), self.lead)

    def syrk(self, *arguments: Any) -> None:
        *options, alpha, a, beta, c = arguments
        self._run("blas", "syrk", *options, alpha, self._at(a), self.lead, beta, self._at(c), self.lead)

    def gemm(self, *arguments: Any) -> None:
        *options, alpha, a, b, beta, c = arguments
        blocks = (self._at(a), self.lead, self._at(b), self.lead)
        self._run("blas", "gemm", *options, alpha, *blocks, beta, self._at(c), self.lead)


@functools.cache
def _function(library: str, name: str) -> Any:
    """The function that scipy exports to Cython under this name; other threads run while it does."""
    from scipy.linalg import cython_blas, cython_lapack

    capsule = (cython_blas if library == "blas" else cython_lapack).__pyx_capi__[name]
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return ctypes.CFUNCTYPE(None)(api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule)))
