"""A few trials of memory at the edge, and of what models say that they need."""

from __future__ import annotations

import sys

import pytest

import corank as cr

memory = pytest.importorskip("benchmarks.reliability.memory", reason="`ulimit -v` needs a Unix system")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="`ulimit -v` and /proc are those of Linux")


def silent(done, of):
    pass


def test_every_model_has_edges_and_sizes():
    for listed in (memory.EDGES, memory.SIZES):
        assert {one.model for one in listed} == set(cr.available())


@pytest.mark.parametrize(
    ("edge", "fits"),
    [
        (memory.Edge("wmf", "--dim 65536"), False),
        (memory.Edge("cofirank", "--dim 65536"), False),
        (memory.Edge("bpr", "--dim 4096"), True),
    ],
)
def test_a_model_at_its_edge_fits_or_says_why_not(tmp_path, edge, fits):
    table = memory.tables(tmp_path)[edge.table]
    command = [sys.executable, "-m", "corank", "fit", edge.model, *table, *edge.flags.split(), "--epochs", "1"]
    assert memory.verdict([*command, "-o", str(tmp_path / "m.corank")], memory.SMALL) == (fits, "")


@pytest.mark.parametrize("most", [200_000_000, 700_000_000, 1_300_000_000])
def test_too_few_addresses_for_the_libraries_are_a_sentence(tmp_path, most):
    table = memory.tables(tmp_path)["tiny"]
    command = [sys.executable, "-m", "corank", "fit", "wmf", *table, "-o", str(tmp_path / "m.corank")]
    done = memory.limited(command, most)
    assert done.returncode == 2
    assert "corank: the limit on addresses (ulimit -v) leaves" in done.stderr


def test_an_end_that_is_no_sentence_is_a_failure():
    for code, told in (("raise KeyError(1)", "exit 1"), ("import os; os.abort()", "exit -6"), ("1/0", "Traceback")):
        done, wrong = memory.verdict([sys.executable, "-c", code], memory.SMALL)
        assert not done
        assert told in wrong


def test_an_estimate_is_near_what_a_fit_takes(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "SIZES", [size for size in memory.SIZES if size.params.get("dim") == 6000])
    out = memory.estimates(1, 0, tmp_path, silent)
    assert (out.tried, out.failures) == (1, [])
    monkeypatch.setattr(memory, "LOW", 10.0)
    assert memory.estimates(1, 0, tmp_path, silent).failures
