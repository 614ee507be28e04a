"""Models on another device than the CPU, as far as a machine without one can tell.

`elsewhere` is a second device of the tests: it computes on the CPU and refuses what a GPU would refuse.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import corank as cr
from corank.checkpoint import fingerprint
from corank.model_file import read_file

torch = pytest.importorskip("torch")

from corank.models._torch import TorchModel  # noqa: E402
from corank.nn import devices  # noqa: E402
from elsewhere import elsewhere  # noqa: E402

NAMES = [name for name in cr.available() if issubclass(cr.find(name), TorchModel)]
FORMS = {
    "sasrec": [
        {"loss": "sampled_softmax", "log_q": True, "sampling": "popular", "window": 0.5},
        {"norm": "published", "loss": "bce", "negatives": 2, "heads": 2, "targets": "last"},
        {"loss": "gbce", "attention_dropout": 0.3, "weight_decay": 0.1, "l2_emb": 0.1},
    ],
    "sse_pt": [{"loss": "bpr_max", "sse_user": 0.5}, {"targets": "last", "share": "everyone"}],
    "gru4rec": [{"loss": "top1", "sampling": "batch", "blocks": 2, "tied": False}],
    "bsarec": [{"heads": 2, "loss": "bpr"}],
    "lru_rec": [{"targets": "last", "loss": "sampled_softmax"}],
    "gcmc": [
        {"features": "none"},
        {"features": "g", "batches": 3, "average": 0.5, "node_bias": True},
        {"sharing": "basis", "normalize": "symmetric"},
    ],
    "graph_ae": [{"batches": 1, "average": 0.0, "layers": 3}],
}
CASES = [(name, options) for name in NAMES for options in ({}, *FORMS.get(name, []))]


def data_for(name):
    """Few rows; ratings and a graph of the users for the models of ratings."""
    rng = np.random.default_rng(3)
    if cr.find(name).predicts_ratings:
        user, item = np.divmod(rng.choice(12 * 9, 60, replace=False), 9)
        data = cr.from_arrays(user=user, item=item, value=rng.integers(1, 4, 60).astype(float))
        ring = np.roll(np.eye(12), 1, axis=1)
        return dataclasses.replace(data, user_graph=cr.from_scipy(ring + ring.T))
    rows = [
        (user, (start + t) % 12 if rng.random() < 0.9 else int(rng.integers(12)), t)
        for user, start in enumerate(rng.integers(0, 12, 30))
        for t in range(int(rng.integers(1, 12)))
    ]
    user, item, time = np.array(rows).T
    return cr.from_arrays(user=user, item=item, time=time, duplicates="keep")


def small(name, options, **more):
    cls = cr.find(name)
    own = {"dim": 4, "epochs": 2} | ({"capacity": 10} if cls.predicts_ratings else {"max_len": 6, "batch_size": 16})
    return cls(**own | options | more)


@pytest.fixture
def there(monkeypatch):
    """The name of a device that computes elsewhere."""
    known = devices.available
    monkeypatch.setattr(devices, "available", lambda kind: kind == "meta" or known(kind))
    for name in NAMES:
        monkeypatch.setattr(cr.find(name), "devices", ("cpu", "meta"))
    monkeypatch.setattr(torch, "inference_mode", torch.no_grad)  # its tensors cannot be wrapped
    with elsewhere() as device:
        yield device.type


@pytest.mark.parametrize(("name", "options"), CASES, ids=lambda value: str(value))
def test_a_fit_on_another_device_learns_the_same(there, name, options):
    """No tensor is left on the CPU, and the numbers are those of a CPU but for rounding."""
    data = data_for(name)
    here = small(name, options, device="cpu").fit(data)
    model = small(name, options, device=there).fit(data)
    assert type(model.weights_) is np.ndarray
    losses = [[entry["loss"] for entry in one.history_] for one in (here, model)]
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-4)
    users = np.arange(8, dtype=np.int32)
    np.testing.assert_allclose(model._score(users), here._score(users), rtol=1e-2, atol=1e-3)
    histories = data.sequences().take(np.arange(8))
    np.testing.assert_allclose(
        model._score_histories(histories), here._score_histories(histories), rtol=1e-2, atol=1e-3
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_file_knows_no_device(there, name, tmp_path):
    data = data_for(name)
    model = small(name, {}, device=there).fit(data)
    model.save(tmp_path / "m.corank")
    assert "device" not in read_file(tmp_path / "m.corank")[0]["params"]
    loaded = cr.load(tmp_path / "m.corank")
    assert loaded.device == "auto"
    np.testing.assert_array_equal(loaded.weights_, model.weights_)
    users = np.arange(5, dtype=np.int32)
    np.testing.assert_allclose(loaded._score(users), model._score(users), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_a_fit_goes_on_on_another_device(there, name, tmp_path):
    data = data_for(name)
    whole = small(name, {"epochs": 3}, device="cpu").fit(data)
    small(name, {"epochs": 3}, device=there).fit(
        data, checkpoint=tmp_path / "part", on_epoch=lambda entry: entry["epoch"] < 2
    )
    model = small(name, {"epochs": 3}, device="cpu").fit(data, checkpoint=tmp_path / "part")
    losses = [[entry["loss"] for entry in one.history_] for one in (whole, model)]
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-4)


def test_attention_of_another_device(there):
    model = small("sasrec", {}, device=there).fit(data_for("sasrec"))
    found = model.attention(history=[1, 2, 3])["weights"]
    np.testing.assert_allclose(found.sum(-1), 1, rtol=1e-5)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
@pytest.mark.parametrize("name", NAMES)
def test_a_device_that_is_not_there_is_a_sentence(name):
    data = data_for(name)
    with pytest.raises(
        cr.CorankError, match=r"device='cuda'\): torch finds no cuda device.*use 'auto' or 'cpu'"
    ) as error:
        small(name, {}, device="cuda").fit(data)
    assert "\n" not in str(error.value)
    model = small(name, {}).fit(data)
    model.device = "cuda"
    with pytest.raises(cr.CorankError, match="no cuda device"):
        model.recommend(histories=[[1, 2]])


def test_a_kind_that_lacks_operations_is_a_sentence():
    with pytest.raises(cr.CorankError, match=r"GCMC\(device='mps'\): it runs on cpu or cuda only"):
        small("gcmc", {}, device="mps").fit(data_for("gcmc"))


def test_bfloat16_that_a_device_lacks_is_a_sentence(monkeypatch):
    monkeypatch.setattr(cr.SASRec, "_device", lambda self: torch.device("cuda"))
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: False)
    with pytest.raises(cr.CorankError, match="cuda has no bfloat16"):
        small("sasrec", {}, bf16=True).fit(data_for("sasrec"))


def test_a_device_is_no_hyper_parameter_but_copies_keep_it():
    from sklearn.base import clone

    model = cr.SASRec(device="cuda", dim=8)
    assert "device" not in model.params()
    assert model.params() == cr.SASRec(dim=8).params()
    assert repr(model) == "SASRec(device='cuda', dim=8)"
    assert clone(model).device == "cuda"
    assert model._copy(dim=4).get_params() == cr.SASRec(device="cuda", dim=4).get_params()
    data = data_for("sasrec")
    assert model.settled(data, data.csr()).device == "cuda"
    assert fingerprint(model, data) == fingerprint(cr.SASRec(dim=8), data)
    assert cr.SASRec().set_params(device="cpu").device == "cpu"


def test_a_row_of_an_experiment_that_names_a_device_gives_no_hyper_parameters():
    from corank.experiment.entries import make_entry

    for asked in ({"name": "sasrec", "device": "cpu", "seed": 3}, cr.SASRec(device="cpu", seed=3)):
        assert not make_entry(asked, "sequential", 0).given
    assert make_entry({"name": "sasrec", "device": "cpu", "dim": 8}, "sequential", 0).given


def test_a_search_runs_where_it_is_told_and_does_not_report_it(monkeypatch):
    pytest.importorskip("optuna")
    from corank.experiment.tune import tune

    seen = []
    plain = cr.SASRec._fit
    monkeypatch.setattr(cr.SASRec, "_fit", lambda self, *args: seen.append(self.device) or plain(self, *args))
    split = cr.leave_last_out(data_for("sasrec"))
    found = tune(small("sasrec", {}, device="cpu"), split, trials=2)
    assert set(seen) == {"cpu"}
    assert "device" not in found.params
    assert found.model().device == "cpu"
