"""Checkpoints: a fit that was killed ends with the numbers of one that was not."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import corank as cr

ITERATIVE = [name for name in cr.available() if "epochs" in cr.find(name)().params()]


@pytest.fixture(scope="module")
def data():
    return cr.synthetic.realistic(users=80, items=60, rows=1_100, groups=4, seed=8).data


@pytest.mark.parametrize("name", ITERATIVE)
def test_killed_at_any_epoch(name, data, tmp_path):
    """An exception at epoch e stands for a kill: what is on disk then is all that the next fit has."""
    make = lambda: cr.find(name)(epochs=4, dim=4)  # noqa: E731
    whole = make().fit(data)
    for stop in (1, 3):
        file = tmp_path / f"{stop}.part"

        def die(entry, stop=stop):
            if entry["epoch"] == stop + 1:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            make().fit(data, checkpoint=file, on_epoch=die)
        assert file.exists()
        heard = []
        again = make().fit(data, checkpoint=file, on_epoch=lambda e, heard=heard: heard.append(e["epoch"]))
        assert heard == list(range(heard[0], 5))
        assert heard[0] > 1
        for key, value in whole._learned().items():
            if isinstance(value, np.ndarray):
                assert np.array_equal(value, getattr(again, key)), key
        assert [h["epoch"] for h in again.history_] == [1, 2, 3, 4]
        assert file.exists()
        again.save(tmp_path / "m.corank")
        assert not file.exists()


def test_a_model_that_cannot_be_saved_is_not_lost(data, tmp_path):
    file = tmp_path / "c.part"
    model = cr.WMF(dim=3, epochs=2).fit(data, checkpoint=file)
    (tmp_path / "taken").write_text("a file, not a folder")
    with pytest.raises(cr.CorankError):
        model.save(tmp_path / "taken" / "m.corank")
    heard = []
    again = cr.WMF(dim=3, epochs=2).fit(data, checkpoint=file, on_epoch=lambda e: heard.append(e["epoch"]))
    assert 1 not in heard
    assert np.array_equal(again.user_factors_, model.user_factors_)


def test_fewer_epochs_than_are_done_are_refused(data, tmp_path):
    file = tmp_path / "c.part"
    cr.WMF(dim=3, epochs=6).fit(data, checkpoint=file, on_epoch=lambda e: e["epoch"] < 4)
    before = file.read_bytes()
    with pytest.raises(cr.CorankError, match=r"has 4 epochs already, and epochs=2 asks for fewer: raise epochs"):
        cr.WMF(dim=3, epochs=2).fit(data, checkpoint=file)
    assert file.read_bytes() == before


def test_stopped_cleanly_goes_on(data, tmp_path):
    file = tmp_path / "c.part"
    first = cr.WMF(dim=3, epochs=6).fit(data, checkpoint=file, on_epoch=lambda e: e["epoch"] < 2)
    assert len(first.history_) == 2
    second = cr.WMF(dim=3, epochs=6).fit(data, checkpoint=file)
    assert np.array_equal(second.user_factors_, cr.WMF(dim=3, epochs=6).fit(data).user_factors_)


@pytest.mark.parametrize("other", [{"dim": 4}, {"reg": 0.5}, {"seed": 1}])
def test_another_fit_is_refused(data, tmp_path, other):
    file = tmp_path / "c.part"
    cr.WMF(dim=3, epochs=6).fit(data, checkpoint=file, on_epoch=lambda e: False)
    with pytest.raises(cr.CorankError, match="checkpoint of another fit"):
        cr.WMF(**{"dim": 3, "epochs": 6, **other}).fit(data, checkpoint=file)
    with pytest.raises(cr.CorankError, match="checkpoint of another fit"):
        cr.WMF(dim=3, epochs=6).fit(data.take(np.arange(500)), checkpoint=file)


def test_a_model_or_junk_is_no_checkpoint(data, tmp_path):
    model = cr.WMF(dim=3, epochs=1).fit(data)
    model.save(tmp_path / "m.corank")
    with pytest.raises(cr.CorankError, match="not a checkpoint"):
        cr.WMF(dim=3).fit(data, checkpoint=tmp_path / "m.corank")
    (tmp_path / "junk").write_bytes(b"junk")
    with pytest.raises(cr.CorankError, match=r"cannot be used .*: give another file"):
        cr.WMF(dim=3).fit(data, checkpoint=tmp_path / "junk")


def test_another_order_is_another_fit(data, tmp_path):
    file = tmp_path / "c.part"
    cr.WMF(dim=3, epochs=6).fit(data, checkpoint=file, on_epoch=lambda e: False)
    turned = dataclasses.replace(data, time=-data.time)
    with pytest.raises(cr.CorankError, match="checkpoint of another fit"):
        cr.WMF(dim=3, epochs=6).fit(turned, checkpoint=file)


def test_other_labels_and_other_validation_rows_are_another_fit(data, tmp_path):
    """What is learned hangs on the labels where a model shares by them, and on the rows that say when to stop."""
    pytest.importorskip("torch")
    file, stop = tmp_path / "part", lambda entry: False
    split = cr.leave_last_out(data)
    parts = [split.train, dataclasses.replace(split.train, user_labels={"group": np.arange(80) % 3})]
    settings = {"dim": 4, "dim_user": 4, "epochs": 3, "share": "group"}
    cr.SSEPT(**settings).fit(parts[0], checkpoint=file, on_epoch=stop)
    with pytest.raises(cr.CorankError, match="another fit"):
        cr.SSEPT(**settings).fit(parts[1], checkpoint=file)
    file.unlink()
    model = cr.SASRec(dim=4, epochs=3, patience=2)
    model.fit(split.train, valid=split.valid, checkpoint=file, on_epoch=stop)
    with pytest.raises(cr.CorankError, match="another fit"):
        model.fit(split.train, valid=split.test, checkpoint=file)
