from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pytest

import corank as cr
from corank.errors import CorankError
from corank.params import Described, check, described, param, params_of


@dataclass(kw_only=True)
class Settings:
    size: int = param(8, "how large it is", low=1, high=64, search=(4, 32), log=True)
    rate: float = param(0.5, "how fast it goes", low=0.0, high=1.0)
    days: float | None = param(None, "how far back it looks", low=0.0)
    kind: Literal["warm", "cold"] = param("warm", "how it feels", choices=("warm", "cold"))
    name: str = param("x", "what it is called")
    fast: bool = param(True, "whether it hurries")


def test_all_is_known_in_one_place():
    known = params_of(Settings)
    assert list(known) == ["size", "rate", "days", "kind", "name", "fast"]
    kinds = {name: (kind, optional, default) for name, (kind, optional, default, _) in known.items()}
    assert kinds == {
        "size": (int, False, 8),
        "rate": (float, False, 0.5),
        "days": (float, True, None),
        "kind": (str, False, "warm"),
        "name": (str, False, "x"),
        "fast": (bool, False, True),
    }
    rule = known["size"][3]
    assert (rule.doc, rule.low, rule.high, rule.search, rule.log) == ("how large it is", 1, 64, (4, 32), True)


@pytest.mark.parametrize(
    "good",
    [
        {},
        {"size": 1},
        {"size": 64},
        {"size": np.int32(5)},
        {"rate": 0},
        {"rate": 1},
        {"rate": np.float32(0.25)},
        {"days": None},
        {"days": 3},
        {"kind": "cold"},
        {"fast": False},
    ],
)
def test_good_values_pass(good):
    check(Settings(**good))


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        ({"size": 0}, "Settings(size=0): size must be at least 1; the default is 8"),
        ({"size": 65}, "Settings(size=65): size must be at most 64; the default is 8"),
        ({"size": 2.5}, "Settings(size=2.5): size must be a whole number; the default is 8"),
        ({"size": "8"}, "Settings(size='8'): size must be a whole number; the default is 8"),
        ({"size": True}, "Settings(size=True): size must be a whole number; the default is 8"),
        ({"size": None}, "Settings(size=None): size must be a whole number; the default is 8"),
        ({"rate": -0.1}, "Settings(rate=-0.1): rate must be at least 0; the default is 0.5"),
        ({"rate": float("nan")}, "Settings(rate=nan): rate must be a finite number; the default is 0.5"),
        ({"rate": float("inf")}, "Settings(rate=inf): rate must be a finite number; the default is 0.5"),
        ({"rate": "fast"}, "Settings(rate='fast'): rate must be a number; the default is 0.5"),
        ({"rate": [1]}, "Settings(rate=[1]): rate must be a number; the default is 0.5"),
        ({"days": -1}, "Settings(days=-1): days must be at least 0; the default is None"),
        ({"kind": "hot"}, "Settings(kind='hot'): kind must be one of 'warm', 'cold'"),
        ({"kind": 3}, "Settings(kind=3): kind must be a text; the default is 'warm'"),
        ({"name": 3}, "Settings(name=3): name must be a text; the default is 'x'"),
        ({"fast": 1}, "Settings(fast=1): fast must be true or false; the default is True"),
        ({"fast": "yes"}, "Settings(fast='yes'): fast must be true or false; the default is True"),
    ],
    ids=str,
)
def test_bad_values_are_one_sentence(bad, sentence):
    with pytest.raises(CorankError) as error:
        check(Settings(**bad))
    assert str(error.value) == sentence


def test_in_words():
    found = {one.name: one for one in described(Settings)}
    assert found["size"] == Described("size", "int", "8", "1 to 64", "4 to 32, log scale", "how large it is")
    assert found["days"] == Described("days", "float | None", "None", "at least 0", "", "how far back it looks")
    assert found["kind"] == Described("kind", "", "'warm'", "'warm' | 'cold'", "", "how it feels")
    assert found["fast"].allowed == ""


def test_help_lists_the_hyper_parameters():
    """What `help(cr.WMF)` prints: the docstring, then each hyper-parameter with its default, its own ones first."""
    doc = cr.WMF.__doc__
    assert doc.startswith("Weighted matrix factorisation")
    names = [line.split(" : ")[0] for line in doc.split("----------\n")[1].splitlines() if " : " in line]
    assert names[0] == "dim"
    assert names[-1] == "seed"
    assert sorted(names) == sorted(params_of(cr.WMF))
    assert f"default {cr.WMF().rho!r}" in doc
    assert cr.WMF().__doc__ == doc
    assert "user_graph : " in cr.GRWMF.__doc__  # an extension lists its own and those of its base


def test_a_model_without_a_docstring():
    @dataclass(kw_only=True, eq=False)
    class Quiet(cr.Popularity):
        depth: int = param(1, "how deep", low=1)

    assert "how deep" not in (Quiet.__doc__ or "")
