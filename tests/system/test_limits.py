"""The limits of containers and shells, read from fake control groups and from a real process with `ulimit`."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from corank.system import limits


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A fake /sys/fs/cgroup and /proc/self/cgroup, and eight processors."""
    root = tmp_path / "cgroup"
    root.mkdir()
    monkeypatch.setattr(limits, "CGROUP", root)
    monkeypatch.setattr(limits, "MEMBERSHIP", tmp_path / "membership")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    limits._quota.cache_clear()
    yield root
    limits._quota.cache_clear()


def member(root, text):
    limits.MEMBERSHIP.write_text(text + "\n")


def write(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def quota(root, path, text):
    write(root / path, cpu__max=text)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("max 100000", 8),
        ("200000 100000", 2),
        ("150000 100000", 2),  # one and a half: two threads, throttled now and then
        ("50000 100000", 1),
        ("1600000 100000", 8),  # more than there are
        ("nonsense", 8),
        ("100000 0", 8),
    ],
)
def test_a_quota_of_version_2(machine, text, count):
    member(machine, "0::/docker/abc")
    quota(machine, "docker/abc", text)
    assert limits.cores() == count


def test_a_group_above_has_the_limit(machine):
    member(machine, "0::/pod/box")
    quota(machine, "pod/box", "max 100000")
    quota(machine, "pod", "300000 100000")
    assert limits.cores() == 3


def test_the_path_of_the_host_is_not_there_inside_of_a_container(machine):
    member(machine, "0::/kubepods/pod1/box")
    quota(machine, ".", "100000 100000")
    assert limits.cores() == 1


@pytest.mark.parametrize(("names", "folder"), [("cpu", "cpu"), ("cpu,cpuacct", "cpu,cpuacct"), ("cpuacct,cpu", "cpu")])
@pytest.mark.parametrize(("microseconds", "count"), [("-1", 8), ("250000", 3)])
def test_a_quota_of_version_1(machine, names, folder, microseconds, count):
    member(machine, f"3:memory:/other\n2:{names}:/docker/abc\n1:name=systemd:/")
    write(machine / folder / "docker/abc", cpu__cfs_quota_us=microseconds, cpu__cfs_period_us="100000")
    assert limits.cores() == count


def test_both_versions_side_by_side(machine):
    member(machine, "1:cpu:/a\n0::/b")
    write(machine / "cpu/a", cpu__cfs_quota_us="-1", cpu__cfs_period_us="100000")
    quota(machine, "unified/b", "200000 100000")
    assert limits.cores() == 2


def test_processors_that_a_process_is_bound_to_count(machine, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {5}, raising=False)
    member(machine, "0::/")
    quota(machine, ".", "400000 100000")
    assert limits.cores() == 1


def test_without_control_groups_there_is_no_limit(machine):
    assert limits.groups("cpu") == []
    assert limits.cores() == 8


def test_the_default_number_of_threads_is_that_of_the_container(machine, monkeypatch):
    from corank.kernels import threads

    monkeypatch.delenv("CORANK_THREADS", raising=False)
    member(machine, "0::/")
    quota(machine, ".", "200000 100000")
    assert threads.threads() == 2
    monkeypatch.setenv("CORANK_THREADS", "5")  # said by hand, so it holds
    assert threads.threads() == 5


LIMITED = """
import resource, sys
resource.setrlimit(getattr(resource, sys.argv[1]), (int(3e9), int(3e9)))
from corank.system.limits import address_space
before = address_space()
hold = bytearray(500_000_000)
print(before, address_space())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="`ulimit -v` is read from /proc")
@pytest.mark.parametrize("limit", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_a_limit_of_the_shell_less_what_is_used(limit):
    done = subprocess.run([sys.executable, "-c", LIMITED, limit], capture_output=True, text=True, check=True)
    before, after = map(int, done.stdout.split())
    assert 2e9 < before < 3e9
    assert 480e6 < before - after < 520e6


def test_no_limit_is_none(monkeypatch):
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda which: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert limits.address_space() is None
