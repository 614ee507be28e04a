"""Synthetic data whose ground truth is known; `corank.synthetic` is this module.

    simulation    low-rank ratings smoothed over a friendship graph (the dissertation's simulation)
    realistic     a market with user groups, friends, drifting popularity and ratings
    markov        sequences whose next item is predictable to a chosen degree

Each generator returns a `Synthetic`: the rows, the arrays that they were drawn from, and an `Oracle`, a model that
ranks by those arrays and so gives an upper bound for every method. Rows depend only on the arguments, never on the
number of threads; time and memory grow with rows, users and items, never with users x items.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import CorankError, suggest
from .generated import Synthetic
from .market import realistic
from .markov import markov
from .oracles import Oracle, preference
from .simulation import simulation

__all__ = ["Oracle", "Synthetic", "made", "markov", "preference", "realistic", "simulation"]
KINDS: dict[Any, Callable[..., Synthetic]] = {"simulation": simulation, "realistic": realistic, "markov": markov}


def made(asked: Mapping[str, Any], seed: int) -> Synthetic:
    """The data that an experiment file asks for: {synthetic = name of a generator, ... its arguments}.

    seed : used where the table has none.
    """
    options = {"seed": seed, **asked}
    kind = options.pop("synthetic", None)
    if kind not in KINDS:
        raise CorankError(f"data: synthetic = {kind!r} names no generator{suggest(str(kind), KINDS)}")
    known = inspect.signature(KINDS[kind]).parameters
    for key in options:
        if key not in known:
            raise CorankError(f"data: {kind} has no option {key!r}{suggest(str(key), known)}")
    return KINDS[kind](**options)
