"""Model files with changed bytes: a transfer that went wrong, a disk that forgets."""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

import corank as cr

from ._workers import in_workers
from .model_files import originals
from .part import Outcome, Part, Tell


def mutate(rng: random.Random, whole: bytes) -> bytes:
    """Some bytes changed, lost, added or moved; half of the time in the header, which is the smaller part."""
    out = bytearray(whole)
    end = len(out) if rng.random() < 0.5 else min(len(out), 8 + int.from_bytes(out[:8], "little"))
    at, to = sorted(rng.randrange(end) for _ in range(2))
    how = rng.randrange(8)
    if how == 0:
        out[at] ^= 1 << rng.randrange(8)
    elif how == 1:
        out[at] = rng.randrange(256)
    elif how == 2:
        del out[at:]
    elif how == 3:
        del out[at:to]
    elif how == 4:
        out[at:at] = rng.randbytes(rng.randrange(1, 64))
    elif how == 5:
        out[at:to] = bytes(to - at)
    elif how == 6:
        out[:8] = rng.choice([rng.randrange(len(out)), rng.randrange(2**63), 2**64 - 1, 0]).to_bytes(8, "little")
    else:
        out[at:to] = out[at:to][::-1]
    return bytes(out)


def worker(seed: int, folder: Path, first: int, step: int, stop: int) -> None:
    wholes = [path.read_bytes() for path in sorted(folder.glob("*.corank"))]
    with tempfile.TemporaryDirectory() as own:
        path = Path(own) / "mutated.corank"
        for trial in range(first, stop, step):
            rng = random.Random(f"{seed} {trial}")
            whole = rng.choice(wholes)
            mutated = mutate(rng, whole)
            path.write_bytes(mutated)
            try:
                cr.load(path)
                said = "unchanged|" if mutated == whole else "loaded|changed bytes were not noticed"
            except cr.ModelFileError:
                said = "refused|"
            except Exception as why:
                said = f"failed|{type(why).__name__}: {str(why)[:150]}"
            print(f"{trial}: {said}".replace("\n", " "), flush=True)


def run(trials: int, seed: int, folder: Path, tell: Tell) -> Outcome:
    originals(folder)
    return in_workers(["-m", __name__, str(seed), str(folder)], trials, tell)


PARTS = [Part("changed bytes in model files", 100_000, run, "refused with one sentence")]

if __name__ == "__main__":
    worker(int(sys.argv[1]), Path(sys.argv[2]), *map(int, sys.argv[3:]))
