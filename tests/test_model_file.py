"""Model files: equal after a round trip, refused when anything about them is off, and never able to run code."""

from __future__ import annotations

import os
import pickle
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

import corank as cr
from corank.model_file import FORMAT, read_file, write_file


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    user = np.array([f"ü{i}" for i in rng.integers(0, 30, 300)])
    data = cr.from_arrays(user=user, item=rng.integers(0, 20, 300) + 2**40)
    return cr.WMF(dim=4, epochs=2, reg=0.02).fit(data)


@pytest.fixture
def path(model, tmp_path) -> Path:
    model.save(tmp_path / "m.corank")
    return tmp_path / "m.corank"


def reseal(path: Path, arrays: dict, meta: dict) -> None:
    """Write a file with a right checksum whatever it holds: what a hostile hand could make."""
    write_file(path, arrays, meta)


def test_round_trip(model, path):
    again = cr.load(path)
    assert type(again) is type(model)
    assert again.params() == model.params()
    assert again.users_ == model.users_
    assert again.items_ == model.items_
    assert again.history_ == model.history_
    assert np.array_equal(again.recommend(k=5).items, model.recommend(k=5).items)


def test_any_safetensors_reader_can_open_it(path, model):
    assert np.array_equal(load_file(path)["user_factors_"], model.user_factors_)


def test_every_changed_byte_is_noticed(path):
    whole = path.read_bytes()
    rng = random.Random(0)
    places = set(range(600)) | {rng.randrange(len(whole)) for _ in range(1500)}
    for at in sorted(p for p in places if p < len(whole)):
        broken = bytearray(whole)
        broken[at] ^= 1 << rng.randrange(8)
        path.write_bytes(broken)
        with pytest.raises(cr.ModelFileError):
            cr.load(path)


def test_every_truncation_is_noticed(path):
    whole = path.read_bytes()
    for size in [*range(0, 300, 7), *range(300, len(whole), max(1, len(whole) // 60)), len(whole) - 1]:
        path.write_bytes(whole[:size])
        with pytest.raises(cr.ModelFileError):
            cr.load(path)
    path.write_bytes(whole + b"\0")
    with pytest.raises(cr.ModelFileError):
        cr.load(path)


class _Bomb:
    def __reduce__(self):
        return os.system, ("touch exploded",)


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_is_not_a_model(tmp_path, monkeypatch, protocol):
    monkeypatch.chdir(tmp_path)
    Path("m.corank").write_bytes(pickle.dumps(_Bomb(), protocol=protocol))
    with pytest.raises(cr.ModelFileError, match="not a corank model file"):
        cr.load("m.corank")
    assert not Path("exploded").exists()


@pytest.mark.parametrize(
    "junk",
    [
        b"",
        b"\0" * 7,
        b"\xff" * 100,
        b"hello",
        (10**9).to_bytes(8, "little"),
        b"\2\0\0\0\0\0\0\0{}",
        b"PK\3\4" + b"\0" * 50,
    ],
)
def test_junk(tmp_path, junk):
    (tmp_path / "m.corank").write_bytes(junk)
    with pytest.raises(cr.ModelFileError):
        cr.load(tmp_path / "m.corank")


def test_deeply_nested_header(tmp_path):
    header = b'{"__metadata__":' + b"[" * 100_000
    (tmp_path / "m.corank").write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(cr.ModelFileError):
        cr.load(tmp_path / "m.corank")


def test_newer_format(path):
    reseal(path, load_file(path), {**read_file(path)[0], "format": FORMAT + 1})
    with pytest.raises(cr.ModelFileError, match=f"reads up to {FORMAT}: upgrade"):
        cr.load(path)


@pytest.mark.parametrize(
    "change",
    [
        {"model": "warp_drive"},
        {"model": "../evil"},
        {"params": {"dim": 4, "invented": 1}},
        {"params": {"dim": -1}},
        {"params": [1]},
        {"state": {"_private": 1}},
        {"state": {"fit": 1}},
        {"state": 3},
    ],
)
def test_sealed_nonsense_is_refused(path, change):
    reseal(path, load_file(path), {**read_file(path)[0], **change})
    with pytest.raises(cr.ModelFileError):
        cr.load(path)


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("seen_index_", lambda a: a + 1_000_000),
        ("seen_index_", lambda a: -a - 1),
        ("seen_index_", lambda a: a[:-1]),
        ("seen_index_", lambda a: a.astype(np.int64)),
        ("seen_indptr_", lambda a: a[::-1].copy()),
        ("seen_indptr_", lambda a: a[:-1]),
        ("item_factors_", lambda a: a[:-1]),
        ("user_factors_", lambda a: a[:3]),
        ("user_factors_", lambda a: a[:, :-1].copy()),
        ("users_ends", lambda a: a[:-2]),
    ],
)
def test_sealed_arrays_that_would_read_outside_are_refused(path, name, spoil):
    """A right checksum does not make indices safe: kernels do not check bounds, so the reader does."""
    arrays = load_file(path)
    arrays[name] = spoil(arrays[name])
    reseal(path, arrays, read_file(path)[0])
    with pytest.raises(cr.ModelFileError):
        cr.load(path)


def test_missing_array_is_refused(path):
    arrays, meta = load_file(path), read_file(path)[0]
    for name in arrays:
        reseal(path, {k: v for k, v in arrays.items() if k != name}, meta)
        with pytest.raises(cr.ModelFileError):
            cr.load(path)


def test_save_to_a_folder_or_below_a_file(model, tmp_path):
    with pytest.raises(cr.CorankError, match="is a folder"):
        model.save(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(cr.CorankError, match="cannot write"):
        model.save(tmp_path / "file" / "m.corank")


def test_killed_saves_leave_a_whole_model(path):
    """Kill -9 while a loop saves over the same file: what is there afterwards is always a whole model."""
    code = (
        "import corank as cr, sys, itertools\n"
        "m = cr.load(sys.argv[1])\n"
        "for i in itertools.count():\n"
        "    m.reg = 0.001 * (i + 1)\n"
        "    m.save(sys.argv[1])\n"
        "    print(i, flush=True)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE)
    rng = random.Random(1)
    assert process.stdout is not None
    process.stdout.readline()
    for _ in range(20):
        time.sleep(rng.uniform(0.0, 0.02))
        cr.load(path)  # readers beside a writer see whole models too
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert cr.load(path).recommend(k=1)


def test_a_file_of_another_model_than_asked_for(path):
    assert type(cr.load(path, model=cr.WMF)) is cr.WMF
    with pytest.raises(cr.ModelFileError, match="holds a model 'wmf', not 'ease': leave model= out"):
        cr.load(path, model=cr.EASE)
