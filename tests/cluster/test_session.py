"""A fit on several workers, in this process: the model of one machine, whatever is lost meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import corank as cr
from corank.cluster import session
from corank.cluster.group import Lost
from corank.cluster.method import available
from corank.errors import CorankError
from groups import Fragile, close, fit_here, same_model


@pytest.fixture(scope="module")
def data() -> cr.Dataset:
    return cr.synthetic.realistic(users=200, items=80, rows=4_000).data


MODELS = [
    ("wmf", {"dim": 8, "epochs": 4}),
    ("wmf", {"dim": 7, "epochs": 3, "solver": "exact", "alpha": 2.0}),
    ("als", {"dim": 8, "epochs": 3}),
    ("als", {"dim": 5, "epochs": 3, "biases": False}),
    ("primal_cr", {"dim": 6, "epochs": 3}),
    ("primal_cr", {"dim": 4, "epochs": 2, "loss": "logistic", "reg_bias": 3.0}),
    ("popularity", {}),
    ("popularity", {"days": 30.0}),
]


@pytest.mark.parametrize(("name", "params"), MODELS)
@pytest.mark.parametrize("size", [1, 3])
def test_near_one_machine(name: str, params: dict[str, Any], size: int, data: cr.Dataset) -> None:
    alone = cr.find(name)(**params).fit(data)
    close(fit_here(cr.find(name)(**params), data, size), alone)


def test_every_method_is_tested() -> None:
    assert {name for name, _ in MODELS} == set(available())


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("name", ["wmf", "als", "primal_cr"])
def test_lost_at_any_time(name: str, kept: bool, data: cr.Dataset, tmp_path: Path) -> None:
    """A worker is lost before each of the messages of a fit in turn, and once again soon after."""
    params = {"dim": 3, "epochs": 2}
    undisturbed = fit_here(cr.find(name)(**params), data, 2)
    for when in range(0, 60, 4):
        state = tmp_path / str(when) if kept else None
        epochs: list[int] = []
        model = fit_here(
            cr.find(name)(**params),
            data,
            2,
            losses=[when, 7],
            checkpoint=state,
            on_epoch=lambda entry, epochs=epochs: epochs.append(entry["epoch"]),
        )
        same_model(model, undisturbed)
        assert epochs == [1, 2] or not kept
        model.save(tmp_path / "m.corank")
        assert state is None or not state.exists()


def test_stopped_and_resumed(data: cr.Dataset, tmp_path: Path) -> None:
    undisturbed = fit_here(cr.WMF(dim=4, epochs=4), data, 2)
    state = tmp_path / "state"
    stopped = fit_here(cr.WMF(dim=4, epochs=4), data, 2, checkpoint=state, on_epoch=lambda e: e["epoch"] < 2)
    assert len(stopped.history_) == 2
    stopped.save(tmp_path / "m.corank")  # a fit that was stopped can still be continued
    same_model(fit_here(cr.WMF(dim=4, epochs=4), data, 2, checkpoint=state), undisturbed)
    for model, size, said in (
        (cr.WMF(dim=4, epochs=4), 3, "is the checkpoint of 2 workers, and 3 add up in another order"),
        (cr.WMF(dim=4, epochs=4, seed=1), 2, "is the checkpoint of another fit"),
        (cr.WMF(dim=4, epochs=3), 2, "has 4 epochs already"),
    ):
        with pytest.raises(CorankError, match=said):
            fit_here(model, data, size, checkpoint=state)
        assert not model._learned()
    (state / "checkpoint.json").write_text("[]")
    with pytest.raises(CorankError, match="is not a whole checkpoint"):
        fit_here(cr.WMF(dim=4, epochs=4), data, 2, checkpoint=state)


def test_validation_rows(data: cr.Dataset) -> None:
    split = cr.leave_last_out(data)
    alone = cr.WMF(dim=4, epochs=2).fit(split.train, valid=split.valid)
    model = fit_here(cr.WMF(dim=4, epochs=2), split.train, 2, valid=split.valid)
    expected = [entry["ndcg@10"] for entry in alone.history_]
    assert [entry["ndcg@10"] for entry in model.history_] == pytest.approx(expected, abs=0.01)


def test_gives_up(data: cr.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CorankError, match="workers were lost 11 times without an epoch between: a test has killed it"):
        fit_here(cr.WMF(dim=4, epochs=2), data, 2, losses=[3] * 15)

    def out_of_memory(*_: Any) -> None:
        raise Lost("the node is full", memory=True)

    monkeypatch.setattr(Fragile, "send", out_of_memory)
    with pytest.raises(CorankError, match=r"a worker ran out of memory .* use more machines"):
        fit_here(cr.WMF(dim=4, epochs=2), data, 2)


def test_folder_that_a_worker_does_not_see(data: cr.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    send = Fragile.send

    def elsewhere(group: Fragile, method: str, arguments: Any) -> Any:
        if arguments[0][0] == "sees":
            arguments = [arguments[0], ("sees", str(tmp_path / "nowhere"), *arguments[1][2:])]
        return send(group, method, arguments)

    monkeypatch.setattr(Fragile, "send", elsewhere)
    with pytest.raises(CorankError, match=r"the checkpoint folder .* is not there on .*: give a folder that all"):
        fit_here(cr.WMF(dim=4, epochs=2), data, 2, checkpoint=tmp_path / "state")
    assert not list((tmp_path / "state").iterdir())


@pytest.mark.parametrize(
    ("model", "workers", "said"),
    [
        (cr.EASE(), 2, "ease cannot be trained on a cluster, where there are als, "),
        (cr.WMF(solver="blocks"), 2, "solver='blocks' is not available on a cluster"),
        (cr.WMF(dim=0), 2, "dim=0"),
        (cr.WMF(), 500, "workers=500 and the data has 200 users"),
    ],
)
def test_refused(model: Any, workers: int, said: str, data: cr.Dataset) -> None:
    with pytest.raises(CorankError, match=said):
        session.checked(model, data, None, workers)


def test_worker_without_memory(data: cr.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corank.cluster.worker.free_bytes", lambda: 1000)
    model = cr.WMF(dim=64)
    with pytest.raises(CorankError, match=r"wmf with 2 workers on .* needs .* and 1 kB are free: use more machines"):
        fit_here(model, data, 2)
    assert not model._learned()
