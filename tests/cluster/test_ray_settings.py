"""What is said before Ray is started, and where it is not installed."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import corank as cr
from corank.cli import main
from corank.cluster import ray_cluster
from corank.cluster.group import Here, call
from corank.cluster.ray_cluster import _threads
from corank.errors import CorankError, MissingExtra


@pytest.fixture(scope="module")
def data() -> cr.Dataset:
    return cr.synthetic.realistic(users=30, items=40, rows=200).data


@pytest.mark.parametrize(
    ("machines", "workers", "threads"),
    [([2], 1, 2), ([2], 2, 1), ([2], 3, 1), ([1, 1], 1, 1), ([3, 3], 3, 1), ([4, 4], 3, 2), ([4, 1], 2, 2), ([], 1, 1)],
)
def test_threads(machines: list[int], workers: int, threads: int) -> None:
    """As many as all workers can have: each needs its own on one machine."""
    assert _threads(machines, workers) == threads


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"workers": 0}, "Ray(workers=0): it must be a whole number of at least 1"),
        ({"threads": True}, "Ray(threads=True): it must be a whole number"),
        ({"wait": -1}, "Ray(wait=-1): it must be a number of seconds"),
        ({"workers": 31}, "workers=31 and the data has 30 users"),
    ],
)
def test_refused(options: dict[str, Any], said: str, data: cr.Dataset) -> None:
    with pytest.raises(CorankError) as raised:
        cr.WMF().fit(data, cluster=cr.Ray(**options))
    assert said in str(raised.value)


def test_dead_address(data: cr.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_cluster, "_ray", lambda address: type("ray", (), {"is_initialized": staticmethod(bool)}))
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        dead = f"127.0.0.1:{listener.getsockname()[1]}"
    for address, said in ((dead, f"no Ray cluster answers at {dead} "), ("head", "give 'auto', or host:port")):
        with pytest.raises(CorankError, match=said):
            cr.WMF().fit(data, cluster=cr.Ray(address=address))


def test_without_ray(data: cr.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"training on a cluster needs .* pip install 'corank\[ray\]'"):
        cr.WMF().fit(data, cluster=cr.Ray(workers=2))


def test_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corank.cluster.worker.platform.node", lambda: "node-7")
    group = Here(2, 1, "wmf", {})
    monkeypatch.setattr("corank.__version__", "0.0.9")
    about = call(group, "about")
    monkeypatch.undo()
    monkeypatch.setattr(ray_cluster, "call", lambda group, what: about)
    with pytest.raises(CorankError, match=r"node-7 has corank 0\.0\.9 and this machine .*: install the same version"):
        ray_cluster._require_versions(group)


def test_one_machine_never_imports_ray() -> None:
    code = (
        "import sys, corank as cr; d = cr.from_arrays(user=[1, 1, 2], item=[1, 2, 1]); cr.WMF(dim=2, epochs=1).fit(d); "
        "from corank.cluster import session; print('ray' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["wmf", "rows", "--workers", "2"], "--workers is the number of workers of a cluster: say which with --ray"),
        (["wmf", "rows", "--ray", "local", "--test", "t.csv"], "--test is not possible where workers read the files"),
        (["wmf", "rows", "--ray", "local", "--layout", "rows"], "--layout is not possible where workers read"),
        (["ease", "rows", "--ray", "local"], "ease cannot be trained on a cluster, where there are als, popularity"),
        (["wmf", "empty", "--ray", "local"], "empty holds no table: give a folder"),
    ],
)
def test_command(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("rows", "empty"):
        Path(name).mkdir()
    Path("rows/a.csv").write_text("user,item\n1,2\n2,2\n")
    assert main(["fit", *words, "-o", "m.corank"]) == 2
    assert said in capsys.readouterr().err
    assert not Path("m.corank").exists()
