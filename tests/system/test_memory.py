"""Free memory, of the system and within the limits of containers."""

from __future__ import annotations

import numpy as np
import pytest

import corank as cr
from corank.cost import Size
from corank.system import memory


def test_free_memory_is_known_here():
    free = memory.free_bytes()
    assert free is None or free > 1_000_000


def group(folder, limit, used, cached, version=2):
    names = memory.FILES[version]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / names[0]).write_text(f"{limit}\n")
    (folder / names[1]).write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 1\n{names[2]} {cached}\n")
    return folder, version


@pytest.mark.parametrize("version", [1, 2])
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
def test_limits_of_containers_count(tmp_path, monkeypatch, limits, free, version):
    groups = [group(tmp_path / str(at), *limit, version) for at, limit in enumerate(limits)]
    monkeypatch.setattr(memory, "groups", lambda controller: groups)
    assert memory._container() == free
    monkeypatch.setattr(memory, "_system", lambda: 700)
    monkeypatch.setattr(memory, "address_space", lambda: None)
    assert memory.free_bytes() == min(700, 700 if free is None else free)


def test_a_group_without_its_files_has_no_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "groups", lambda controller: [(tmp_path, 2)])
    assert memory._container() is None


def test_ulimit_counts_less_what_no_estimate_counts(monkeypatch):
    monkeypatch.setattr(memory, "_system", lambda: 10**12)
    monkeypatch.setattr(memory, "_container", lambda: None)
    monkeypatch.setattr(memory, "address_space", lambda: 10**9)
    assert memory.free_bytes() == 10**9 - memory.UNCOUNTED
    monkeypatch.setattr(memory, "address_space", lambda: 10)
    assert memory.free_bytes() == 0


@pytest.mark.parametrize(
    "why",
    [
        MemoryError(),
        RuntimeError("[enforce fail at alloc_cpu.cpp:124] DefaultCPUAllocator: can't allocate memory: you tried ..."),
        RuntimeError("can't start new thread"),
        OSError(12, "Cannot allocate memory"),
        ImportError("libtorch.so: failed to map segment from shared object"),
    ],
)
def test_memory_that_runs_out_all_the_same_is_a_sentence(why):
    told = r"^the work ran out of memory \(.* are free\): help$"
    with pytest.raises(cr.CorankError, match=told), memory.one_sentence("the work", "help"):
        raise why


@pytest.mark.parametrize("why", [RuntimeError("other"), OSError(2, "No such file"), cr.CorankError("mine"), KeyError()])
def test_other_errors_pass(why):
    with pytest.raises(type(why)) as raised, memory.one_sentence("the work", "help"):
        raise why
    assert raised.value is why


def test_what_does_not_fit_is_a_sentence(monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda: 2_000_000_000)
    memory.make_room(1e9, "it", "help")
    with pytest.raises(cr.CorankError, match=r"it needs 3\.0 GB and 2\.0 GB are free: help"):
        memory.make_room(3e9, "it", "help")


def test_a_few_megabytes_are_not_told_as_no_gigabytes():
    assert memory.no_room(90e6, 3e6, "it", "help") == "it needs 90 MB and 3 MB are free: help"


class Hungry(cr.Popularity):
    """Asks for nothing, and then takes more than there is."""

    def _fit(self, data, rows, training):
        np.empty(1 << 60, np.uint8)

    def _score(self, users):
        return np.empty((users.size, 1 << 55), np.float32)


def test_a_fit_that_runs_out_of_memory_is_a_sentence_and_leaves_nothing_behind():
    data = cr.from_arrays(user=[0, 0, 1], item=[0, 1, 1])
    model = Hungry()
    with pytest.raises(cr.CorankError, match=r"Hungry of 2 users and 2 items ran out of memory"):
        model.fit(data)
    assert not model._learned()
    model.__class__ = cr.Popularity
    model.fit(data).__class__ = Hungry
    with pytest.raises(cr.CorankError, match=r"recommending ran out of memory .* smaller k"):
        model.recommend()


def test_answers_ask_for_memory(monkeypatch):
    rng = np.random.default_rng(0)
    data = cr.from_arrays(user=rng.integers(0, 40, 400), item=rng.integers(0, 30, 400))
    model = cr.WMF(dim=8, epochs=1).fit(data)
    monkeypatch.setattr("corank.answering.inference.WORTH_ASKING", 0)
    model.recommend([0], k=3)
    monkeypatch.setattr(memory, "free_bytes", lambda: 100)
    for ask in (
        lambda: model.recommend([0], k=3),
        lambda: model.recommend(histories=[[0, 1]], k=3),
        lambda: model.similar_items([0]),
        lambda: model.similar_users([0]),
    ):
        with pytest.raises(cr.CorankError, match=r"of WMF needs .* and 0 kB are free: ask for fewer"):
            ask()


def test_a_model_that_folds_in_counts_its_equations():
    lengths = np.full(50, 20)
    few, many = (cr.WMF(dim=dim)._fold_in_memory(Size(50, 100, lengths)) for dim in (64, 4096))
    assert many > 2 * 4 * 4096**2 > few


@pytest.mark.parametrize("solver", ["cg", "exact", "blocks"])
def test_the_gram_matrix_is_counted(solver):
    size = Size(60, 60, np.full(60, 20), most_of_an_item=20)
    assert cr.WMF(dim=65_536, solver=solver)._memory(size) > 4 * 65_536**2
    assert cr.find("grwmf")(dim=65_536, solver=solver)._memory(size) > 4 * 65_536**2
