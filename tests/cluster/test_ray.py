"""Training on a real Ray cluster of two nodes on this machine, and what is killed meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import corank as cr
from corank.cluster.parts import find_parts
from corank.errors import CorankError
from groups import fit_here, same_model

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
                name, parent = (
                    (folder / "cmdline").read_text(),
                    (folder / "stat").read_text().rsplit(")")[-1].split()[1],
                )
            except OSError:
                continue
            if name.startswith("ray::_RayWorker") and int(parent) == raylet:
                os.kill(int(folder.name), signal.SIGKILL)

    def ray(self, **options: Any) -> cr.Ray:
        return cr.Ray(**{"workers": 2, "address": self.cluster.address, **options})


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


def test_killed_worker_and_node(nodes: Nodes, data: cr.Dataset, tmp_path: Path) -> None:
    """A worker is killed after the second epoch and a node after the third: the fit goes on after each of them."""
    epochs: list[int] = []

    def on_epoch(entry: dict[str, Any]) -> None:
        epochs.append(entry["epoch"])
        if epochs == [1, 2]:
            nodes.lose_worker()
        if epochs == [1, 2, 3]:
            nodes.lose_node()

    model = cr.WMF(**MODEL).fit(data, cluster=nodes.ray(), on_epoch=on_epoch, checkpoint=tmp_path / "state")
    assert epochs == [1, 2, 3, 4]
    same_model(model, fit_here(cr.WMF(**MODEL), data, 2))
    model.save(tmp_path / "m.corank")
    assert not (tmp_path / "state").exists()


DRIVER = """
import os, signal, sys
import corank as cr
def on_epoch(entry):
    if entry["epoch"] == 2:
        os.kill(os.getpid(), signal.SIGKILL)
address, folder, state = sys.argv[1:]
cr.ALS(dim=8, epochs=4).fit(folder, cluster=cr.Ray(workers=2, address=address), checkpoint=state, on_epoch=on_epoch)
"""


def test_killed_driver(nodes: Nodes, data: cr.Dataset, tmp_path: Path) -> None:
    """The same command again goes on where the killed one was; the workers read files."""
    (tmp_path / "rows").mkdir()
    for number in range(3):
        table = data.to_frame()[number * 2_000 : (number + 1) * 2_000]
        table.write_parquet(tmp_path / "rows" / f"part-{number}.parquet")
    words = [nodes.cluster.address, str(tmp_path / "rows"), str(tmp_path / "state")]
    killed = subprocess.run([sys.executable, "-c", DRIVER, *words], check=False)
    assert killed.returncode == -signal.SIGKILL
    epochs: list[int] = []

    def on_epoch(entry: dict[str, Any]) -> None:
        epochs.append(entry["epoch"])

    model = cr.ALS(**MODEL).fit(
        tmp_path / "rows", cluster=nodes.ray(), checkpoint=tmp_path / "state", on_epoch=on_epoch
    )
    assert epochs == [3, 4]
    same_model(model, fit_here(cr.ALS(**MODEL), find_parts(tmp_path / "rows"), 2))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"workers": 3}, "has 2 processors on 2 machines, which is room for 2 workers and not for 3"),
        ({"workers": 1, "threads": 2}, "room for 0 workers of 2 threads and not for 1"),
    ],
)
def test_too_small(options: dict[str, int], said: str, nodes: Nodes, data: cr.Dataset) -> None:
    with pytest.raises(CorankError, match=said):
        cr.WMF(**MODEL).fit(data, cluster=nodes.ray(**options))
