"""Experiments about data that is not at hand: each runs on a small set that is written in the published layout."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import corank as cr
from corank.experiment import curves
from corank.params import params_of

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"
NAMES = sorted(path.stem for path in EXPERIMENTS.glob("*.toml") if "Not run here" in path.read_text("utf-8"))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder with all the sets: 14 users who rate most of 640 items (few users have 510 ratings in any set)."""
    root = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    rows = [
        (u, i, r)
        for u in range(1, 15)
        for i, r in zip(rng.permutation(640)[:540], rng.integers(1, 6, 540), strict=True)
    ]
    links = [(u, v) for u in range(1, 15) for v in range(u + 1, 15) if (u + v) % 3 == 0]
    pairs = "".join(f"{u} {i + 1}\n" for u, i, _ in rows)
    edges = "".join(f"{u}\t{v}\n" for u, v in links)
    r3 = "ydata-ymusic-rating-study-v1_0"
    dated = "".join(f"{u}\t{i}\t{r}\t2007-10-{1 + i % 28:02d} 00:00:00\n" for u, i, r in rows)
    texts = {
        "ml-10m/ratings.dat": "".join(f"{u}::{i}::{r}::{at}\n" for at, (u, i, r) in enumerate(rows)),
        "netflix/combined_data_1.txt": "".join(_netflix(rows)),
        "steam/Steam.txt": pairs,
        "beauty-sasrec/Beauty.txt": pairs,
        "douban-full/uir.index": "".join(f"{u} {i} {r}\n" for u, i, r in rows),
        "douban-full/social.index": edges,
        "flixster-full/Ratings.timed.txt": "userid\tmovieid\trating\tdate\n" + dated,
        "flixster-full/links.txt": edges,
        f"yahoo-r3/{r3}-train.txt": "".join(f"{u}\t{i}\t{r}\n" for u, i, r in rows),
        f"yahoo-r3/{r3}-test.txt": "".join(f"{u}\t{i + 700}\t{r}\n" for u, i, r in rows if i < 10),
    }
    for name, text in texts.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    return root


def _netflix(rows: list[tuple[int, int, int]]) -> Iterator[str]:
    for item in sorted({i for _, i, _ in rows}):
        yield f"{item + 1}:\n"
        yield from (f"{u},{r},2005-09-{1 + u:02d}\n" for u, i, r in rows if i == item)


def test_there_are_some() -> None:
    sets = {tomllib.loads((EXPERIMENTS / f"{name}.toml").read_text("utf-8"))["data"] for name in NAMES}
    assert sets == {"ml-10m", "netflix", "steam", "beauty-sasrec", "douban-full", "flixster-full", "yahoo-r3"}


@pytest.mark.parametrize("name", NAMES)
def test_runs_on_a_small_set(name: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORANK_DATA", str(root))
    asked = tomllib.loads((EXPERIMENTS / f"{name}.toml").read_text("utf-8"))
    if any(row["name"] in ("sasrec", "sse_pt") for row in asked["model"]):
        pytest.importorskip("torch")
    small = {"epochs": 1, "dim": 4, "dim_user": 4, "negatives": 8, "capacity": 20}
    rows = [
        {**row, **{k: v for k, v in small.items() if k in params_of(cr.find(row["name"]))}} for row in asked["model"]
    ]
    experiment = cr.Experiment.from_toml(EXPERIMENTS / f"{name}.toml", models=rows, tune=0, seeds=(), keep=False)
    labels = [row.get("label", row["name"]) for row in asked["model"]]
    if experiment.curves:
        _, found, failed = curves.run(experiment)
        assert not failed
        assert [curve.label for curve in found] == labels
    else:
        results = experiment.run()
        assert sorted(row.label for row in results.rows) == sorted(labels)
