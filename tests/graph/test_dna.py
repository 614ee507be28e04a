"""Graph DNA beside sets and breadth-first search; every bad input is refused with one sentence."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.sparse

import corank as cr
from corank.graph import DNA, Filter, encode, from_edges, load, power_sum


def random_graph(n, p, seed=0, directed=False):
    rng = np.random.default_rng(seed)
    A = (rng.random((n, n)) < p) * rng.random((n, n))
    np.fill_diagonal(A, 0)
    return cr.from_scipy(A if directed else np.maximum(A, A.T))


def within(graph, depth):
    """The nodes at most `depth` steps from each node, by breadth-first search."""
    near = [set(graph.index[a:b].tolist()) for a, b in itertools.pairwise(graph.indptr)]
    found = []
    for i in range(graph.rows):
        seen, edge = {i}, {i}
        for _ in range(depth):
            edge = {k for j in edge for k in near[j]} - seen
            seen |= edge
        found.append(seen)
    return found


def dense_bits(dna):
    return np.unpackbits(dna.words.view(np.uint8), axis=1, bitorder="little")[:, : dna.filter.bits]


# ---- the filter --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("capacity", "error", "bits"),
    [
        *((500, 0.1, 4796), (10, 0.1, 96), (60, 0.1, 576), (100, 0.1, 960)),
        *((20, 0.2, 135), (50, 0.2, 336), (100, 0.2, 672), (200, 0.2, 1341), (600, 0.2, 4020), (1000, 0.2, 6702)),
        *((1500, 0.2, 10050), (2000, 0.2, 13401), (4000, 0.2, 26799)),
    ],
)
def test_the_bit_counts_of_the_dissertation(capacity, error, bits):
    shape = Filter.of(capacity, error)
    assert shape.bits == bits
    assert shape.slices == (4 if error == 0.1 else 3)
    half = Filter.of(capacity, error, tight=True)
    assert half.slices == shape.slices
    assert 0 <= 2 * half.bits - bits <= 2 * half.slices


def test_false_positives_are_as_rare_as_asked():
    """tight: at capacity, `error` of strangers are taken for members (binomial, 5 deviations and 10 % of formula)."""
    shape = Filter.of(1000, 0.05, tight=True)
    words = np.zeros(shape.words, np.uint64)
    shape.add(words, np.arange(1000))
    assert shape.holds(words, np.arange(1000)).all()
    strangers = shape.holds(words, np.arange(10_000, 60_000)).mean()
    fill = np.bitwise_count(words).sum() / shape.bits
    assert strangers == pytest.approx(fill**shape.slices, rel=0.1)
    assert strangers <= 0.05 * 1.1


def test_union_is_or():
    shape = Filter.of(50, 0.1)
    one, two, both = (np.zeros(shape.words, np.uint64) for _ in range(3))
    shape.add(one, [1, 2, 3], seed=4)
    shape.add(two, [3, 40, 500], seed=4)
    shape.add(both, [1, 2, 3, 40, 500], seed=4)
    assert ((one | two) == both).all()
    assert np.bitwise_count(one).sum() <= 3 * shape.slices


@pytest.mark.parametrize("members", [1, 30, 100, 300])
def test_the_estimated_size_is_within_its_stated_error(members):
    """300 filters of random members: mean within 5 standard errors (and the bias of a log), spread within 15 %."""
    shape = Filter.of(100, 0.1)
    rng = np.random.default_rng(members)
    sizes = []
    for _ in range(300):
        words = np.zeros(shape.words, np.uint64)
        shape.add(words, rng.choice(1_000_000, members, replace=False))
        sizes.append(float(shape.estimate(np.bitwise_count(words).sum())))
    load = members / shape.width
    stated = math.sqrt(shape.width * (math.exp(load) - 1 - load) / shape.slices)
    assert np.mean(sizes) == pytest.approx(members, abs=5 * stated / math.sqrt(300) + 0.01 * members)
    if members > 1:
        assert np.std(sizes) == pytest.approx(stated, rel=0.15)


def test_a_full_filter_has_a_finite_size():
    shape = Filter(2, 32)
    assert np.isfinite(shape.estimate(64))
    assert shape.estimate(64) > shape.estimate(63)
    assert shape.estimate(0) == 0


# ---- encoding ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(("n", "p", "depth", "capacity"), [(60, 0.03, 1, 5), (60, 0.03, 3, 100), (90, 0.02, 4, 30)])
def test_encoding_equals_sets(n, p, depth, capacity, directed):
    """The filter of i is the union of the bits of all nodes within `depth` steps: nothing less, nothing more."""
    graph = random_graph(n, p, seed=depth, directed=directed)
    dna = encode(graph, depth=depth, capacity=capacity, seed=3)
    places = dna.filter.places(np.arange(n), seed=3)
    want = np.zeros((n, dna.filter.bits), np.uint8)
    for i, near in enumerate(within(graph, depth)):
        want[i, places[sorted(near)].ravel()] = 1
    assert (dense_bits(dna) == want).all()
    assert dna.fill == pytest.approx(want.mean())
    bits = dna.bits()
    assert (bits.scipy().toarray() == want).all()
    assert (bits.rows, bits.columns) == want.shape
    assert (bits.index.dtype, bits.value.dtype, bits.indptr.dtype) == (np.int32, np.float32, np.int64)


@pytest.mark.parametrize("seed", range(5))
def test_no_false_negative_ever(seed):
    rng = np.random.default_rng(seed)
    n, depth = int(rng.integers(20, 200)), int(rng.integers(1, 5))
    graph = random_graph(n, 2.5 / n, seed, directed=bool(seed % 2))
    # A capacity far too small must not lose anybody either: it only lets strangers in.
    dna = encode(graph, depth=depth, capacity=int(rng.integers(1, 50)), error=0.3, seed=seed)
    for i, near in enumerate(within(graph, depth)):
        assert dna.contains(i, sorted(near)).all()


def test_strangers_are_mostly_told_apart():
    graph = random_graph(300, 0.005)
    dna = encode(graph, depth=2, capacity=100, error=0.05)
    inside = np.array([[j in near for j in range(300)] for near in within(graph, 2)])
    said = dna.contains(np.arange(300)[:, None], np.arange(300))
    assert said[inside].all()
    assert said[~inside].mean() < 0.01
    assert bool(dna.contains(4, 4))


@pytest.fixture(scope="module")
def simulated():
    return cr.synthetic.simulation(users=10_000, items=10, rank=2).data.user_graph


@pytest.mark.parametrize(
    ("depth", "capacity", "fill"),
    # (2, 20) is left out: .880 was published, and this many bits of this graph are .887 full by expectation.
    [
        *((1, 20, 0.217), (1, 50, 0.093), (2, 50, 0.608), (2, 100, 0.381), (2, 200, 0.215)),
        *((3, 200, 0.874), (3, 600, 0.525), (3, 1000, 0.364), (3, 1500, 0.262), (4, 2000, 0.743), (4, 4000, 0.499)),
    ],
)
def test_the_fill_ratios_of_the_dissertation(simulated, depth, capacity, fill):
    dna = encode(simulated, depth=depth, capacity=capacity, error=0.2)
    assert dna.fill == pytest.approx(fill, abs=0.01)


def test_estimated_neighbourhoods_are_right_on_average(simulated):
    dna = encode(simulated, depth=2, capacity=200, error=0.2)
    A = simulated.scipy() + scipy.sparse.eye_array(10_000, format="csr")
    true = np.diff((A @ A).tocsr().indptr)
    load = true / dna.filter.width
    stated = np.sqrt(dna.filter.width * (np.exp(load) - 1 - load) / dna.filter.slices)
    z = (dna.sizes() - true) / stated
    assert abs(z.mean()) < 0.2
    assert 0.8 < z.std() < 1.2


def test_more_than_one_block_of_words_and_any_number_of_threads():
    graph = random_graph(500, 0.01)
    cr.set_threads(1)
    try:
        one = encode(graph, depth=3, capacity=500, seed=9)
        limited = encode(graph, depth=3, capacity=500, theta=20, seed=9)
        powers = power_sum(graph, 3)
        cr.set_threads(2)
        assert one.filter.words > 8  # several blocks
        assert (encode(graph, depth=3, capacity=500, seed=9).words == one.words).all()
        assert (encode(graph, depth=3, capacity=500, theta=20, seed=9).words == limited.words).all()
        assert all((a == b).all() for a, b in zip(power_sum(graph, 3)[:3], powers[:3], strict=True))
    finally:
        cr.set_threads(None)
    # The whole at once: a limit that is never reached looks at whole rows.
    assert (encode(graph, depth=3, capacity=500, theta=1e9, seed=9).words == one.words).all()


def test_theta_holds_hubs_back():
    star, _ = from_edges(np.zeros(300, int), np.arange(1, 301))
    free, held = encode(star, depth=1, capacity=500), encode(star, depth=1, capacity=500, theta=50)
    assert free.sizes()[0] == pytest.approx(301, rel=0.1)
    assert held.sizes()[0] == pytest.approx(51, abs=3)
    assert (held.words[1:] == free.words[1:]).all()
    assert (held.words & ~free.words == 0).all()
    assert held.contains(np.arange(301), np.arange(301)).all()  # everybody keeps the own bits
    other = encode(star, depth=1, capacity=500, theta=50, seed=1)
    again = encode(star, depth=1, capacity=500, theta=50)
    assert (again.words == held.words).all()
    kept = [set(np.flatnonzero(d.contains(0, np.arange(301)))) for d in (held, other)]
    assert len(kept[0] & kept[1]) < 30  # 51 of 301 each: another order, other neighbours
    assert encode(star, depth=1, capacity=500, theta=1).sizes()[0] == pytest.approx(2, abs=0.1)


def test_steps_are_told():
    heard = []
    encode(random_graph(30, 0.1), depth=3, capacity=100, on_step=lambda done, total: heard.append((done, total)))
    assert heard == [(k, 6) for k in range(1, 7)]  # 960 bits are two blocks


# ---- mistakes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"depth": 0}, "depth=0.*at least 1"),
        ({"depth": 1.5}, "depth=1.5"),
        ({"depth": True}, "depth=True"),
        ({"capacity": 0}, "capacity=0"),
        ({"capacity": "many"}, "capacity='many'"),
        ({"capacity": 10**12}, "too large"),
        ({"error": 0}, "error=0"),
        ({"error": 1.0}, "error=1.0"),
        ({"error": math.nan}, "error=nan"),
        ({"error": "low"}, "error='low'"),
        ({"theta": 0}, "theta=0.*at least 1"),
        ({"theta": math.nan}, "theta=nan"),
        ({"theta": "big"}, "theta='big'"),
        ({"seed": -1}, "seed=-1"),
    ],
)
def test_a_wrong_option_is_one_sentence(options, words):
    with pytest.raises(cr.CorankError, match=words):
        encode(random_graph(5, 0.5), **options)


def test_what_cannot_fit_is_refused(monkeypatch):
    monkeypatch.setattr("corank.system.memory.free_bytes", lambda: 1e6)
    with pytest.raises(cr.CorankError, match=r"encoding 1,000 nodes .* lower the capacity"):
        encode(random_graph(1000, 0.001), capacity=2000)
    with pytest.raises(cr.CorankError, match="raise the threshold or take Graph DNA"):
        power_sum(random_graph(1000, 0.01), 3)


def test_contains_knows_its_nodes():
    dna = encode(random_graph(5, 0.5))
    with pytest.raises(cr.CorankError, match="no node 5"):
        dna.contains(0, 5)
    with pytest.raises(cr.CorankError, match="no node -1"):
        dna.contains(-1, 0)


# ---- files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ids", [[10, 20, 30], ["a", "b", "ç"]])
def test_saved_and_loaded(tmp_path, ids):
    graph, nodes = from_edges(ids[:2], ids[1:])
    dna = encode(graph, capacity=50, seed=4)
    dna.save(tmp_path / "dna.npz", nodes)
    back, known = load(tmp_path / "dna.npz")
    assert known == nodes
    assert (back.words == dna.words).all()
    assert (back.filter, back.depth, back.seed) == (dna.filter, dna.depth, dna.seed)
    dna.save(tmp_path / "sparse.npz", nodes, sparse=True)
    assert (scipy.sparse.load_npz(tmp_path / "sparse.npz").toarray() == dense_bits(dna)).all()
    assert np.load(tmp_path / "sparse.npz")["nodes"].tolist() == ids
    with pytest.raises(cr.CorankError, match="not Graph DNA"):
        load(tmp_path / "sparse.npz")
    with pytest.raises(cr.CorankError, match="2 ids for 3 nodes"):
        dna.save(tmp_path / "x.npz", cr.Vocab(np.array([1, 2])))


def test_damaged_files(tmp_path):
    with pytest.raises(cr.CorankError, match="does not exist"):
        load(tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("not a zip")
    good = encode(random_graph(4, 0.5), capacity=5)
    good.save(tmp_path / "cut.npz", cr.Vocab(np.arange(4)))
    raw = (tmp_path / "cut.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(raw[: len(raw) // 2])
    np.savez(tmp_path / "shape.npz", words=np.zeros((2, 2), np.uint64), nodes=[1], slices=1, width=5, depth=1, seed=0)
    np.savez(tmp_path / "objects.npz", words=np.array([{}]), allow_pickle=True)
    for name in ("text", "cut", "shape", "objects"):
        with pytest.raises(cr.CorankError, match="not Graph DNA"):
            load(tmp_path / f"{name}.npz")


def test_it_prints_as_a_line():
    dna = DNA(np.zeros((2, 1), np.uint64), Filter(2, 32), 3)
    assert repr(dna) == "DNA(2 nodes, depth 3, 64 bits, 0.0% set)"
