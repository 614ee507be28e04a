"""Crafted model files and checkpoints: a right checksum, and anything inside."""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import corank as cr
from corank.model_file import read_file

from ._craft import craft
from ._sealed import seal
from ._workers import in_workers
from .part import Outcome, Part, Tell

USERS, ITEMS = 14, 12
MORE: dict[str, list[dict[str, Any]]] = {  # settings that store something else than the defaults
    "ease": [{"max_items": 7}],
    "sparse_ease": [{"neighbors": 3}],
    "item_knn": [{"weighting": "bm25"}, {"weighting": "value", "neighbors": 3}],
    "wmf": [{"alpha": 1.0, "solver": "exact"}],
    "sse_pt": [{"share": "everyone", "window": 0.5}],
    "sql_rank": [{"feedback": "explicit"}, {"requeue": True, "feedback": "implicit"}],
    "primal_cr": [{"loss": "logistic"}, {"reg_bias": 1.0}],
    "cofirank": [{"loss": "regression"}],
    "gcmc": [{"features": "none", "average": 0.9}],
    "grmf": [{"form": "ties"}],
    "grwmf": [{"form": "ties"}],
    "bpr": [{"patience": 2}],
}
SMALLER = {"dim": 6, "dim_user": 3, "epochs": 4, "max_len": 6, "feature_dim": 4, "capacity": 8, "batch_size": 8}


def dataset(strings: bool) -> cr.Dataset:
    """A few ratings with times, titles, labels and a graph of friends."""
    rng = np.random.default_rng(3)
    pairs = [(u, i) for u in range(USERS) for i in rng.permutation(ITEMS)[: rng.integers(4, 8)]]
    user, item = np.array(pairs).T
    friends = rng.random((USERS, USERS)) < 0.2
    return cr.from_arrays(
        user=_names("u", user) if strings else user,
        item=_names("i", item) if strings else item,
        value=rng.integers(1, 6, user.size).astype(float),
        time=rng.permutation(user.size),
        user_graph=(friends | friends.T).astype(np.float32),
        item_labels={
            "title": np.array([f"The {c}th" for c in range(ITEMS)]),
            "year": np.arange(ITEMS),
            "genre": np.array([["A|B", "B", "C|A", ""][c % 4] for c in range(ITEMS)]),
        },
    )


def _names(side: str, codes: np.ndarray) -> np.ndarray:
    return np.array([f"{side}{code:02d}é" for code in codes])


def models() -> Iterator[cr.Model]:
    """Every model, small, with its defaults and with the settings above."""
    for name in cr.available():
        cls = cr.find(name)
        own = {k: v for k, v in SMALLER.items() if k in cls().params()}
        for more in ({}, *MORE.get(name, [])):
            yield cls(**own | {k: v for k, v in more.items() if k in cls().params()})


def originals(folder: Path) -> list[Path]:
    """A model file of each."""
    out = []
    for number, model in enumerate(models()):
        path = folder / f"{number:02d}-{model.name()}.corank"
        data = dataset(strings=number % 2 == 0)
        model.fit(data, **({"valid": data} if "patience" in model.params() else {})).save(path)
        out.append(path)
    return out


def answers(model: cr.Model) -> list[np.ndarray]:
    """All that can be asked; what the model says it cannot do is left out."""
    items, users = model.items_.ids.tolist(), model.users_.ids.tolist()
    questions = (
        lambda: model.recommend(k=3),
        lambda: model.recommend(users[-1], k=100, exclude_seen=False, items=items[::2]),
        lambda: model.recommend(histories=[items[:2], items[-1:]], k=4),
        lambda: model.recommend(histories=[dict.fromkeys(items[:3], 2.0)], k=4),
        lambda: model.similar_items(items[0], k=3),
        lambda: model.similar_users(users[0], k=3),
        lambda: model.predict(users[:2], items[:2]),
    )
    out = []
    for ask in questions:
        try:
            found = ask()
        except cr.CorankError:
            continue
        if isinstance(found, np.ndarray):
            out.append(found)
        else:
            str(found), repr(found), found.to_frame()
            out += [found.items, found.scores]
    return out


def try_file(path: Path) -> str:
    """ "kind|failure" of one file: refused, or equal answers after each of two loads."""
    try:
        one = cr.load(path)
    except cr.ModelFileError:
        return "refused|"
    first, second = answers(one), answers(cr.load(path))
    same = len(first) == len(second) and all(map(_same, first, second))
    return "loaded|" + ("" if same else "the answers differ between two loads")


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    return bool(np.array_equal(one, other, equal_nan=one.dtype.kind == "f"))


def checkpoints(folder: Path) -> list[Path]:
    """A checkpoint of each model with epochs, stopped after the second."""
    out = []
    for number, model in enumerate(models()):
        path = folder / f"{number:02d}-{model.name()}.checkpoint"
        if "epochs" in model.params():
            resume(model, number, path, stop=2)
            out.append(path)
    return out


def resume(model: cr.Model, number: int, path: Path, stop: int = 99) -> cr.Model:
    data = dataset(strings=number % 2 == 0)
    valid = data if "patience" in model.params() else None
    return model.fit(data, valid=valid, checkpoint=path, on_epoch=lambda entry: entry["epoch"] < stop)


def try_checkpoint(path: Path, original: Path) -> str:
    """The same of a checkpoint: refused, or the fit ends with a model that answers."""
    number = int(original.name[:2])
    model = list(models())[number]
    try:
        resume(model, number, path)
    except cr.CorankError:
        return "refused|"
    answers(model)
    return "resumed|"


def worker(kind: str, seed: int, folder: Path, first: int, step: int, stop: int) -> None:
    """Trials of one process; see `in_workers`."""
    import logging

    logging.disable(logging.CRITICAL)
    paths = sorted(folder.glob("*.corank" if kind == "model" else "*.checkpoint"))
    contents = [read_file(path) for path in paths]
    for path in paths:  # compiles the kernels: a trial that hangs is then told from one that compiles
        try_file(path) if kind == "model" else try_checkpoint(Path(shutil.copy(path, f"{path}.{first}")), path)
        print(f"{path.name} is as it was", flush=True)
    with tempfile.TemporaryDirectory() as own:
        for trial in range(first, stop, step):
            rng = random.Random(f"{seed} {kind} {trial}")
            at = trial // step % len(paths)
            meta, arrays = contents[at]
            target = Path(own) / "crafted"
            seal(target, *craft(rng, (arrays, meta)))
            try:
                said = try_file(target) if kind == "model" else try_checkpoint(target, paths[at])
            except Exception as why:
                place = traceback.extract_tb(why.__traceback__)[-1]
                said = f"failed|{paths[at].stem}: {type(why).__name__}: {str(why)[:150]} ({place.name})"
            print(f"{trial}: {said}".replace("\n", " "), flush=True)


def crafted(kind: str, *, bounds_checked: bool = False) -> Any:
    def run(trials: int, seed: int, folder: Path, tell: Tell) -> Outcome:
        paths = originals(folder) if kind == "model" else checkpoints(folder)
        # A cache of its own: numba would load kernels that were compiled without the checks.
        checked = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(folder / "kernels")}
        env = checked if bounds_checked else {}
        out = in_workers(["-m", __name__, kind, str(seed), str(folder)], trials, tell, env=env)
        out.notes.append(f"made from {len(paths)} files of {len(cr.available())} models")
        return out

    return run


HOLDS = "refused with one sentence, or the same answers after two loads; no crash, no other error, no hang"
RESUMES = "refused with one sentence, or training goes on; no crash, no other error, no hang"
PARTS = [
    Part("crafted model files", 20_000, crafted("model"), HOLDS),
    Part("crafted model files, bounds checked", 20_000, crafted("model", bounds_checked=True), HOLDS),
    Part("crafted checkpoints", 5_000, crafted("checkpoint"), RESUMES),
    Part("crafted checkpoints, bounds checked", 5_000, crafted("checkpoint", bounds_checked=True), RESUMES),
]

if __name__ == "__main__":
    worker(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), *map(int, sys.argv[4:]))
