"""Training on a real Ray cluster of two nodes on this machine, and what is killed meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corank as cr
from corank.errors import CorankError

pytest.importorskip("ray", reason="Ray is not installed: pip install 'corank[ray]'")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ray")]

MODEL = {"dim": 8, "epochs": 4}


class Nodes:
    """The head, where the driver is, and a second node that can be killed; each has room for one worker."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        self.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        self.second = self.cluster.add_node(num_cpus=1)

    def lose_node(self) -> None:
        self.cluster.remove_node(self.second, allow_graceful=False)
        self.second = self.cluster.add_node(num_cpus=1)

    def lose_worker(self) -> None:
        """Kill the worker process that the raylet of the second node has started."""
        raylet = self.second.all_processes["raylet"][0].process.pid
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                name, parent = (folder / "cmdline").read_text(), (folder / "stat").read_text().rsplit(")")[-1].split()[1]
            except OSError:
                continue
            if name.startswith("ray::_RayWorker") and int(parent) == raylet:
                os.kill(int(folder.name), signal.SIGKILL)


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # all ports on 127.0.0.1
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_AUTH_MODE", "disabled")
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        made = Nodes()
        try:
            yield made
        finally:
            made.cluster.shutdown()


@pytest.fixture(scope="module")
def data() -> cr.Dataset:
    return cr.synthetic.realistic(users=300, items=100, rows=6_000).data


@pytest.fixture(scope="module")
def undisturbed(nodes: Nodes, data: cr.Dataset) -> cr.Model:
    return _fit(nodes, data)


def _fit(nodes: Nodes, data: cr.Dataset, **options: Any) -> cr.Model:
    cluster = cr.Ray(workers=2, address=nodes.cluster.address)
    return cr.WMF(**MODEL).fit(data, cluster=cluster, **options)


def _same(one: cr.Model, other: cr.Model) -> None:
    for name in ("user_factors_", "item_factors_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert [entry["objective"] for entry in one.history_] == [entry["objective"] for entry in other.history_]


def test_near_one_machine(undisturbed: cr.Model, data: cr.Dataset) -> None:
    alone = cr.WMF(**MODEL).fit(data)
    np.testing.assert_allclose(undisturbed.item_factors_, alone.item_factors_, atol=1e-4)
    np.testing.assert_allclose(undisturbed.user_factors_, alone.user_factors_, atol=1e-4)


@pytest.mark.parametrize("what", ["lose_worker", "lose_node"])
@pytest.mark.parametrize("kept", [True, False])
def test_kills(
    what: str, kept: bool, nodes: Nodes, data: cr.Dataset, undisturbed: cr.Model, tmp_path: Path
) -> None:
    """With a checkpoint the fit goes on after the last epoch, without one it starts again: the model is the same."""
    epochs: list[int] = []

    def on_epoch(entry: dict[str, Any]) -> None:
        epochs.append(entry["epoch"])
        if len(epochs) == 2:
            getattr(nodes, what)()

    model = _fit(nodes, data, on_epoch=on_epoch, checkpoint=tmp_path / "state" if kept else None)
    assert epochs == ([1, 2, 3, 4] if kept else [1, 2, 1, 2, 3, 4])
    _same(model, undisturbed)
    model.save(tmp_path / "m.corank")
    assert not (tmp_path / "state").exists()


DRIVER = """
import os, signal, sys
import corank as cr
data = cr.synthetic.realistic(users=300, items=100, rows=6_000).data
def on_epoch(entry):
    if entry["epoch"] == 2:
        os.kill(os.getpid(), signal.SIGKILL)
cr.WMF(dim=8, epochs=4).fit(data, cluster=cr.Ray(workers=2, address=sys.argv[1]), checkpoint=sys.argv[2], on_epoch=on_epoch)
"""


def test_killed_driver(nodes: Nodes, data: cr.Dataset, undisturbed: cr.Model, tmp_path: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", DRIVER, nodes.cluster.address, tmp_path / "state"], check=False)
    assert killed.returncode == -signal.SIGKILL
    epochs: list[int] = []
    model = _fit(
        nodes, data, checkpoint=tmp_path / "state", on_epoch=lambda entry: epochs.append(entry["epoch"]) or True
    )
    assert epochs[0] in (2, 3)  # epoch 2 was complete, unless its callback came before its checkpoint
    _same(model, undisturbed)


def test_files(nodes: Nodes, data: cr.Dataset, tmp_path: Path) -> None:
    table = data.to_frame()
    for number in range(3):
        table[number * 2_000 : (number + 1) * 2_000].write_parquet(tmp_path / f"part-{number}.parquet")
    cluster = cr.Ray(workers=2, address=nodes.cluster.address)
    model = cr.WMF(**MODEL).fit(tmp_path, cluster=cluster)
    alone = cr.WMF(**MODEL).fit(data)
    assert model.users_ == alone.users_
    np.testing.assert_array_equal(model.seen_index_, alone.seen_index_)
    np.testing.assert_allclose(model.item_factors_, alone.item_factors_, atol=1e-4)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"workers": 3}, "has 2 processors on 2 machines, which is room for 2 workers and not for 3"),
        ({"workers": 1, "threads": 2}, "room for 0 workers of 2 threads and not for 1"),
    ],
)
def test_too_small(options: dict[str, int], said: str, nodes: Nodes, data: cr.Dataset) -> None:
    with pytest.raises(CorankError, match=said):
        cr.WMF(**MODEL).fit(data, cluster=cr.Ray(address=nodes.cluster.address, **options))


def test_folder_that_is_not_shared(
    nodes: Nodes, data: cr.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver's folder is hidden from the workers by giving each process another one of the same name."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CorankError, match="is not there on"):
        _fit(nodes, data, checkpoint=f"/proc/self/cwd/state")
    assert not list((tmp_path / "state").glob("epoch-*"))
