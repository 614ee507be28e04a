"""Machine code on disk is never stale; `tests/reliability/test_compiled.py` compares its numbers."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from layers import SOURCE

KERNELS = sorted((SOURCE / "kernels").glob("*.py"))

CALLEE = """
from corank.kernels.threads import inline

@inline
def amount(x):
    return x + {}
"""
CALLER = """
from corank.kernels.threads import kernel
from callee import amount

@kernel
def total(start, stop):
    out = 0
    for i in range(start, stop):
        out += amount(i)
    return out
"""


def python(code: str, cache: Path, **environment: str) -> str:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), **environment}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.slow
def test_a_kernel_is_compiled_again_when_what_it_calls_has_changed(tmp_path):
    code = "import caller; print(caller.total(0, 3))"
    (tmp_path / "caller.py").write_text(CALLER)
    path = f"{tmp_path}{os.pathsep}{SOURCE.parent}"
    for more, want in ((1, 6), (10, 33)):
        (tmp_path / "callee.py").write_text(CALLEE.format(more) + "# " + "x" * more)
        assert python(code, tmp_path / "cache", PYTHONPATH=path, PYTHONDONTWRITEBYTECODE="1").strip() == str(want)


def decorated(path: Path) -> dict[str, tuple[str, ast.FunctionDef]]:
    """name -> (decorator, function) of the compiled functions of a file."""
    found = {}
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            names = [d.id for d in node.decorator_list if isinstance(d, ast.Name)]
            if names and names[0] in ("kernel", "inline"):
                found[node.name] = (names[0], node)
    return found


def called(path: Path) -> set[tuple[str, str]]:
    """(file, function) of what the compiled functions of a file call."""
    home: dict[str, tuple[str, str]] = {}
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            for alias in node.names:
                home[alias.asname or alias.name] = (node.module or alias.name, alias.name if node.module else "")
    out = set()
    for _, function in decorated(path).values():
        for call in (node.func for node in ast.walk(function) if isinstance(node, ast.Call)):
            if isinstance(call, ast.Name):
                out.add(home.get(call.id, (path.stem, call.id)))
            elif isinstance(call, ast.Attribute) and isinstance(call.value, ast.Name) and call.value.id in home:
                out.add((home[call.value.id][0], call.attr))
    return out


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_what_kernels_call_is_inline_and_nothing_else(path):
    everything = set().union(*(called(one) for one in KERNELS))
    for name, (decorator, _) in decorated(path).items():
        assert decorator == ("inline" if (path.stem, name) in everything else "kernel"), name


KERNEL = """
import logging, sys
logging.basicConfig(format="%(message)s")
from caller import total, twice
total(0, 3)
twice(0, 3)
print(total._cache.cache_path, len(total._cache.files), total.stats.cache_hits.total() if total.stats.cache_hits else 0)
"""
TWICE = """

@kernel
def twice(start, stop):
    return 2 * (stop - start)
"""


@pytest.fixture
def package(tmp_path):
    """Two kernels in a folder of their own."""
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "callee.py").write_text(CALLEE.format(1))
    (folder / "caller.py").write_text(CALLER + TWICE)
    return folder


def run_in(package: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    path = f"{package}{os.pathsep}{SOURCE.parent}"
    keep = {k: v for k, v in os.environ.items() if k not in ("HOME", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    return subprocess.run(
        [sys.executable, "-c", KERNEL],
        env={**keep, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", **environment},
        cwd=package.parent,
        capture_output=True,
        text=True,
        check=True,
    )


def closed(package: Path) -> None:
    """A file where the folder of compiled kernels would be: nothing can be kept there, by nobody."""
    (package / "__pycache__").write_text("")


@pytest.mark.slow
def test_without_a_folder_to_write_to_kernels_run_with_one_warning(package):
    closed(package)
    done = run_in(package, HOME="/proc")
    assert done.stderr.count("each process will compile them again: set NUMBA_CACHE_DIR") == 1


@pytest.mark.slow
def test_a_home_keeps_kernels_where_the_package_cannot(package, tmp_path):
    closed(package)
    for hits in (0, 1):
        done = run_in(package, HOME=str(tmp_path))
        assert done.stderr == ""
        assert done.stdout.split()[-1] == str(hits)
    assert str(tmp_path / ".cache") in done.stdout


def test_a_user_without_a_home_gets_no_folder_of_that_name(package, tmp_path, monkeypatch):
    from corank.kernels.cache import _OwnFolder

    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # what it does for a user id without a name
    monkeypatch.chdir(tmp_path)
    assert _OwnFolder.from_function(test_without_a_folder_to_write_to_kernels_run_with_one_warning, __file__) is None
    assert not (tmp_path / "~").exists()


@pytest.mark.slow
def test_kernels_are_read_where_they_cannot_be_written(package, tmp_path):
    run_in(package)  # compiled into the package, as when an image is built
    for place in (package / "__pycache__", package):
        place.chmod(0o555)
    for path in package.glob("*.py"):
        os.utime(path, (1, 1))  # layers of images keep other times
    done = run_in(package, NUMBA_CACHE_DIR=str(tmp_path / "elsewhere"))
    package.chmod(0o755)
    assert done.stdout.split()[-1] == "1"
    assert done.stderr == ""


@pytest.mark.slow
def test_a_damaged_file_is_compiled_again_and_replaced(package):
    run_in(package)
    for content in (b"", b"junk", b"\x80\x05."):
        for path in (package / "__pycache__").glob("*.nb?"):
            path.write_bytes(content)
        assert run_in(package).stdout.split()[-1] == "0", content
    assert run_in(package).stdout.split()[-1] == "1"
