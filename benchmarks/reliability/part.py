"""A part of the reliability table: something that is tried many times and must hold each time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

SHOWN = 5  # failures that the page quotes


@dataclass
class Outcome:
    """What came of the trials of one part."""

    tried: int = 0
    failures: list[str] = field(default_factory=list)  # one line each: what was tried, and what happened
    notes: list[str] = field(default_factory=list)  # figures worth a sentence, such as "3,210 loaded, 16,790 rejected"
    seconds: float = 0.0
    seed: int = 0
    commit: str = ""  # of the code that was tried

    def trial(self, failure: str = "") -> None:
        """Count a trial, and its failure if there was one."""
        self.tried += 1
        if failure:
            self.failures.append(failure)


Tell = Callable[[int, int], None]  # (done, of)


@dataclass(frozen=True)
class Part:
    """
    Parameters
    ----------
    name : the row of the table, such as "crafted model files".
    trials : in the long form; a part with a fixed list of cases ignores the number that it is given.
    run : (trials, seed, folder, tell) -> Outcome; may write into `folder`, which is its own and empty.
    holds : what holding means, one phrase: "rejected with one sentence, or answers the same twice".
    """

    name: str
    trials: int
    run: Callable[[int, int, Path, Tell], Outcome]
    holds: str

    def outcome(self, trials: int, seed: int, folder: Path, tell: Tell) -> Outcome:
        start = time.perf_counter()
        out = self.run(trials, seed, folder, tell)
        out.seconds = time.perf_counter() - start
        return out
