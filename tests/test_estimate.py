"""Estimates before work: every model states them, a probe scales them, and memory is never understated by much."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import corank as cr
from corank import estimate as estimates
from corank.cost import Cost, Size
from corank.estimate import Estimate, in_words
from corank.system.memory import in_gigabytes

NAMES = cr.available()


def make(rows=3000, users=200, items=80, seed=0):
    rng = np.random.default_rng(seed)
    user, item = rng.integers(0, users, rows), rng.integers(0, items, rows)
    return cr.from_arrays(user=user, item=item, value=rng.integers(1, 6, rows), time=np.arange(rows))


def size(users=1000, items=500, length=20, **more):
    return Size(users, items, np.full(users, length), levels=5, **more)


@pytest.mark.parametrize("name", NAMES)
def test_every_model_states_cost_and_memory_that_grow_with_the_data(name):
    model = cr.find(name)()
    if "epochs" in model.from_data:  # estimates are made of settled models
        settled = {"epochs": 10, "batch_size": 64, "loss": "softmax"}
        model = cr.find(name)(**{name: value for name, value in settled.items() if name in model.params()})
    small, large = size(), size(4000, 2000, 40)
    costs = [model._cost(s).total(model.params().get("epochs", 1)) for s in (small, large)]
    assert 0 < costs[0] < costs[1]
    assert 0 < model._memory(small) < model._memory(large)
    assert model._smaller(large, 10**9)


@pytest.mark.parametrize("name", ["grmf", "grwmf", "co_factor", "gcmc", "graph_ae"])
def test_a_graph_costs_seconds_and_memory(name):
    model = cr.find(name)()
    without, graph = size(), size(user_edges=10_000)
    assert model._cost(graph).epoch > model._cost(without).epoch
    assert model._memory(graph) > model._memory(without)


@pytest.mark.parametrize("name", ["wmf", "item_knn", "ease", "popularity"])
def test_a_probe_leaves_the_model_and_the_data_alone(monkeypatch, name):
    monkeypatch.setattr(estimates, "SMALL", 0.0)
    monkeypatch.setattr(estimates, "ENOUGH", 0.0)
    model, data = cr.find(name)(), make()
    before = model.params()
    found = model.estimate(data, users=50)
    assert found.probed
    assert found.seconds > 0
    assert found.memory == int(model._memory(Size.of(data)))
    assert model.params() == before
    assert not model._learned()


def test_small_work_is_not_probed():
    assert not cr.WMF().estimate(make()).probed


def test_a_probe_is_small_and_keeps_the_catalogue_where_users_decide():
    large = Size(100_000, 5000, np.full(100_000, 30))
    users, items = estimates._sample_size(cr.WMF(dim=64), large, 0.25)
    assert items == 5000
    assert users < 20_000
    assert cr.WMF(dim=64)._cost(large.thinned(users, items)).total(estimates.EPOCHS) <= 0.25
    assert estimates._sample_size(cr.EASE(), Size(100, 40_000, np.full(100, 30)), 0.25)[1] < 5000


def test_the_measured_seconds_are_scaled_by_the_declared_cost(monkeypatch):
    class Declared(cr.Popularity):
        def _cost(self, size):
            return Cost(1e-3 * size.rows)

    monkeypatch.setattr(estimates, "_small_fit", lambda model, sample, epochs: (model, 2e-6 * len(sample), 0.0))
    monkeypatch.setattr(estimates, "ENOUGH", 0.0)
    data = make(rows=50_000, users=5000, items=300)
    assert Declared().estimate(data).seconds == pytest.approx(2e-6 * len(data), rel=1e-6)


def test_a_sample_of_a_graph_has_edges():
    n = 2000
    ring = cr.from_arrays(user=np.arange(n), item=np.arange(n) % 50, user_graph=_ring(n))
    sample = estimates._sample(ring, 300, 50)
    assert len(sample.users) == 300
    assert sample.user_graph.index.size > 500


def _ring(n):
    from scipy.sparse import coo_array

    at = np.arange(n)
    both = np.concatenate([at, (at + 1) % n]), np.concatenate([(at + 1) % n, at])
    return coo_array((np.ones(2 * n), both), shape=(n, n))


def test_what_cannot_be_fitted_has_no_estimate():
    with pytest.raises(cr.CorankError, match="no rows"):
        cr.WMF().estimate(make().take(np.zeros(0, int)))


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.1, "a few seconds"),
        (7.0, "about 7 s"),
        (9.6, "about 10 s"),
        (42.0, "about 40 s"),
        (1500.0, "about 25 min"),
        (9000.0, "about 2.5 h"),
    ],
)
def test_seconds_have_no_more_digits_than_an_estimate(seconds, words):
    assert in_words(seconds) == words


def test_an_estimate_is_a_line():
    assert str(Estimate(1500.0, 2_400_000_000)) == "about 25 min, 2.4 GB"
    assert Estimate(10.0, 5).times(3).seconds == 30
    assert in_gigabytes(10) == "under 0.1 GB"


MEASURE = """
import sys, threading, time
import numpy as np
import corank as cr
from corank.cost import Size

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

def make(rows, users, items):
    rng = np.random.default_rng(0)
    user, item = rng.integers(0, users, rows), rng.integers(0, items, rows)
    return cr.from_arrays(user=user, item=item, value=rng.integers(1, 6, rows), time=np.arange(rows))

cls = cr.find(sys.argv[1])
small = {"epochs": 1} if "epochs" in cls().params() else {}
cls(**small).fit(make(500, 50, 40))  # loads kernels and torch
data = make(*map(int, sys.argv[2:]))
before = peak = resident()
done = False

def watch():
    global peak
    while not done:
        peak = max(peak, resident())
        time.sleep(0.001)

thread = threading.Thread(target=watch)
thread.start()
model = cls(**small).fit(data)
done = True
thread.join()
print(peak - before, int(model._memory(Size.of(data))))
"""
SHAPES = {"ease": (50_000, 2000, 3000), "sasrec": (60_000, 6000, 4000), "collrank": (60_000, 2000, 500)}


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="the resident size is read from /proc")
@pytest.mark.parametrize("name", ["popularity", "item_knn", "ease", "wmf", "mf", "sql_rank", "collrank"])
def test_memory_is_not_understated(name):
    """At most a fifth above the estimate: allocators round, and threads have stacks. And it is no wild guess."""
    shape = SHAPES.get(name, (400_000, 20_000, 8000))
    command = [sys.executable, "-c", textwrap.dedent(MEASURE), name, *map(str, shape)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | {"CORANK_THREADS": "2"})
    used, stated = map(int, done.stdout.split())
    assert used < 1.2 * stated + 8_000_000
    assert stated < 6 * used + 32_000_000
