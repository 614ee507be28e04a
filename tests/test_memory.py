"""Free memory, of the system and within the limits of containers."""

from __future__ import annotations

import pytest

import corank as cr
from corank import memory


def test_free_memory_is_known_here():
    free = memory.free_bytes()
    assert free is None or free > 1_000_000


def group(folder, limit, used, cached, names=("memory.max", "memory.current", "inactive_file")):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / names[0]).write_text(f"{limit}\n")
    (folder / names[1]).write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 1\n{names[2]} {cached}\n")
    return folder, *names


@pytest.mark.parametrize(
    ("limits", "free"),
    [
        ([(1000, 600, 100)], 500),  # pages of files can be dropped
        ([("max", 600, 100)], None),
        ([("max", 600, 100), (2000, 500, 0)], 1500),  # a group above has the limit
        ([(1000, 900, 0), (2000, 500, 0)], 100),
        ([(1000, 1200, 0)], 0),
        ([(1 << 63, 600, 0)], None),  # how version 1 says that there is no limit
    ],
)
def test_limits_of_containers_count(tmp_path, monkeypatch, limits, free):
    groups = [group(tmp_path / str(at), *limit) for at, limit in enumerate(limits)]
    monkeypatch.setattr(memory, "_groups", lambda: groups)
    assert memory._container() == free
    monkeypatch.setattr(memory, "_system", lambda: 700)
    assert memory.free_bytes() == min(700, 700 if free is None else free)


def test_a_group_without_its_files_has_no_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "_groups", lambda: [(tmp_path, "memory.max", "memory.current", "inactive_file")])
    assert memory._container() is None


def test_what_does_not_fit_is_a_sentence(monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda: 2_000_000_000)
    memory.make_room(1e9, "it", "help")
    with pytest.raises(cr.CorankError, match=r"it needs 3\.0 GB and 2\.0 GB are free: help"):
        memory.make_room(3e9, "it", "help")
