"""SSE does what its law says: frequencies against brute-force probabilities, a loss against its exact expectation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import chi2, chi2_contingency

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from corank.nn.sse import Graph, SharedEmbedding, apply_sse, sse, sse_  # noqa: E402


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def law(size: int, p: float, reserved: set[int], near: dict[int, set[int]] | None = None, rho: float = 1.0):
    """The definition, cell by cell: P[j, k] = probability that id j is looked up as k."""
    P = np.eye(size)
    free = [j for j in range(size) if j not in reserved]
    for j in free:
        weight = {k: 1.0 if near is None or k not in near.get(j, ()) else rho for k in free if near is None or k != j}
        if not any(weight.values()):  # rho = 0, and there are only neighbours
            weight = dict.fromkeys(weight, 1.0)
        P[j, j] = 1 - p
        for k, w in weight.items():
            P[j, k] += p * w / sum(weight.values())
    return P


def csr(size: int, near: dict[int, set[int]]) -> tuple[np.ndarray, np.ndarray]:
    rows = [sorted(near.get(j, ()), reverse=True) for j in range(size)]  # any order will do
    return np.cumsum([0, *map(len, rows)]), np.array([k for row in rows for k in row], np.int64)


def random_graph(size: int, seed: int) -> dict[int, set[int]]:
    """One way only; id 1 knows nobody, id 2 everybody, id 3 all but one; the others a few."""
    rng = np.random.default_rng(seed)
    near = {j: {int(k) for k in rng.choice(size, rng.integers(1, size // 2), replace=False)} - {j} for j in range(size)}
    return near | {1: set(), 2: set(range(size)) - {2}, 3: set(range(size)) - {3, size - 2}}


GRAPH = random_graph(9, 0)


@pytest.mark.parametrize(
    ("reserved", "near", "rho"),
    [
        (set(), None, 1.0),
        ({0}, None, 1.0),
        ({0, 1, 4, 5, 8}, None, 1.0),
        (set(), GRAPH, 1.0),
        (set(), GRAPH, 4.0),
        ({0}, GRAPH, 4.0),
        ({3, 4, 8}, GRAPH, 0.25),
        ({0}, GRAPH, 0.0),
        ({0, 1, 3, 4, 5, 7, 8}, GRAPH, 3.0),
        (set(), {}, 4.0),
    ],
)
@pytest.mark.parametrize("p", [0.3, 1.0])
def test_frequencies_follow_the_law(p, reserved, near, rho) -> None:
    """Chi-square a row at significance 1e-5 with a fixed seed; what has no probability never happens."""
    size, times = 9, 20_000
    graph = None if near is None else Graph(*csr(size, near), reserved=reserved)
    ids = torch.arange(size).repeat_interleave(times)
    drawn = sse(ids, size, p, reserved=reserved, graph=graph, rho=rho, generator=seeded(5))
    count = np.bincount((ids * size + drawn).numpy(), minlength=size * size).reshape(size, size)
    expected = times * law(size, p, reserved, near, rho)
    assert count[expected == 0].sum() == 0
    for seen, want in zip(count, expected, strict=True):
        cells = want > 0
        statistic = (np.square(seen - want)[cells] / want[cells]).sum()
        assert statistic <= chi2.isf(1e-5, max(1, cells.sum() - 1))


def test_odds_of_neighbours_are_rho() -> None:
    """A large graph, so that ids, edges and non-neighbours are many: each neighbour comes rho times as often."""
    size, n, rho = 2_000, 400_000, 50.0
    rng = np.random.default_rng(3)
    near = rng.random((size, size)) < 0.01
    near[0] = near[:, 0] = False
    np.fill_diagonal(near, False)
    graph = (np.concatenate([[0], np.cumsum(near.sum(1))]), np.nonzero(near)[1])
    ids = rng.integers(1, size, n)
    drawn = sse(torch.from_numpy(ids), size, 1.0, reserved=[0], graph=graph, rho=rho, generator=seeded(4)).numpy()
    hits, degree = near[ids, drawn], near.sum(1)[ids]
    chance = rho * degree / (rho * degree + size - 2 - degree)
    assert abs(hits.mean() - chance.mean()) < 4 * np.sqrt((chance * (1 - chance)).sum()) / n
    odds = (hits.sum() / degree.mean()) / ((~hits).sum() / (size - 2 - degree.mean()))
    assert odds == pytest.approx(rho, rel=0.02)
    assert (drawn != ids).all()
    assert drawn.min() >= 1


def test_graph_leaves_out_loops_repeats_and_order() -> None:
    plain = Graph(np.array([0, 2, 3, 3, 4]), np.array([1, 3, 0, 0]))
    messy = Graph(torch.tensor([0, 4, 6, 7, 9], dtype=torch.int32), torch.tensor([3, 1, 3, 0, 0, 1, 2, 0, 0]))
    for name in ("indptr", "gaps", "own"):
        assert torch.equal(getattr(plain, name), getattr(messy, name))


def test_rate_of_replacement_at_each_position() -> None:
    """p (1 - 1/N) of the ids change, within 4 standard errors, and p may differ between positions and between rows."""
    ids = torch.full((20_000, 4), 7)
    p = torch.tensor([0.0, 0.2, 1.0, 0.5])
    out = sse(ids, 1_000, p, reserved=[999], generator=seeded(0))
    rate = (out != ids).double().mean(0).numpy()
    expected = p.numpy() * (1 - 1 / 999)
    assert rate[0] == 0
    assert np.all(np.abs(rate - expected) <= 4 * np.sqrt(expected * (1 - expected) / 20_000))
    whole = sse(ids, 1_000, torch.tensor([[1.0]] + [[0.0]] * 19_999), generator=seeded(0))
    assert torch.equal(whole[1:], ids[1:])


def test_two_tables_are_independent() -> None:
    """Contingency tables of (replaced?, replaced?) and (drawn id, drawn id) of two tables that share a generator."""
    n, size, generator = 60_000, 6, seeded(11)
    ids = torch.zeros(n, dtype=torch.int64)
    a, b = (sse(ids, size, 0.6, generator=generator) for _ in range(2))
    joint = np.bincount((a * size + b).numpy(), minlength=size * size).reshape(size, size)
    assert chi2_contingency(joint).pvalue > 1e-4
    changed = np.bincount(((a != 0) * 2 + (b != 0)).numpy(), minlength=4).reshape(2, 2)
    assert chi2_contingency(changed).pvalue > 1e-4
    together = (a != 0) & (b != 0)
    assert abs(together.double().mean().item() - 0.25) < 4 * np.sqrt(0.25 * 0.75 / n)  # (0.6 * 5/6) squared


@pytest.mark.parametrize("graph", [False, True])
def test_expected_loss_is_the_double_sum(graph: bool) -> None:
    """E[loss] = sum over rows (j, i), over k and m, of P[j, k] Q[i, m] loss(u_k, v_m), within 4 standard errors."""
    rows = [(0, 1, 4.0), (1, 3, 1.0), (2, 0, -2.0)]
    near = {0: {1}, 1: {0, 2}, 2: {1}}
    torch.manual_seed(0)
    kind = {"graph": csr(3, near), "rho": 5.0} if graph else {}
    users = SharedEmbedding(3, 2, sse=0.4, generator=seeded(1), **kind)
    items = SharedEmbedding(4, 2, sse=0.25, generator=seeded(2), padding_idx=2)
    P = law(3, 0.4, set(), near if graph else None, 5.0)
    Q = law(4, 0.25, {2})
    U, V = users.weight.detach().double().numpy(), items.weight.detach().double().numpy()
    exact = sum(
        P[j, k] * Q[i, m] * (y - U[k] @ V[m]) ** 2 for j, i, y in rows for k, m in itertools.product(range(3), range(4))
    )
    n = 40_000
    user, item, value = (torch.tensor(column).repeat(n, 1) for column in zip(*rows, strict=True))
    loss = (value - (users(user) * items(item)).sum(-1)).square().sum(1).detach().double().numpy()
    assert abs(loss.mean() - exact) < 4 * loss.std() / np.sqrt(n)
    plain = sum((y - U[j] @ V[i]) ** 2 for j, i, y in rows)
    assert abs(plain - exact) > 20 * loss.std() / np.sqrt(n)  # the test can tell SSE from none


def test_in_place_and_copy() -> None:
    ids = torch.arange(50)
    out = sse(ids, 50, 0.5, generator=seeded(3))
    assert torch.equal(ids, torch.arange(50))
    assert sse_(ids, 50, 0.5, generator=seeded(3)) is ids
    assert torch.equal(ids, out)
    assert not torch.equal(ids, torch.arange(50))


@pytest.mark.parametrize("zero", [0, 0.0, torch.zeros(10)])
def test_zero_is_nothing_at_all(zero) -> None:
    generator, ids = seeded(9), torch.arange(10).repeat(3, 1)
    before = generator.get_state()
    out = sse(ids, 10, zero, generator=generator)
    assert torch.equal(out, ids)
    assert out is not ids
    assert sse_(ids, 10, zero, generator=generator) is ids
    plain, shared = nn.Embedding(10, 3), SharedEmbedding(10, 3, sse=zero)
    shared.load_state_dict(plain.state_dict())
    world = torch.get_rng_state()
    assert torch.equal(shared(ids), plain(ids))
    assert torch.equal(generator.get_state(), before)
    assert torch.equal(torch.get_rng_state(), world)


def test_the_generator_decides() -> None:
    ids = torch.arange(100)
    graph = Graph(*csr(100, random_graph(100, 1)))
    for kind in ({}, {"graph": graph, "rho": 9.0}):
        world = torch.get_rng_state()
        first, again, other = (sse(ids, 100, 0.5, generator=seeded(seed), **kind) for seed in (1, 1, 2))
        assert torch.equal(first, again)
        assert not torch.equal(first, other)
        assert torch.equal(torch.get_rng_state(), world)
        torch.manual_seed(4)
        first = sse(ids, 100, 0.5, **kind)
        torch.manual_seed(4)
        assert torch.equal(first, sse(ids, 100, 0.5, **kind))


def test_types_shapes_and_devices() -> None:
    graph = Graph(*csr(9, GRAPH), reserved=[0])
    for kind in ({}, {"reserved": [0]}, {"reserved": range(6)}, {"reserved": [0], "graph": graph}):
        for shape in ((), (0,), (3, 0), (2, 3, 4)):
            for dtype in (torch.int64, torch.int32):
                out = sse(torch.zeros(shape, dtype=dtype), 9, 0.5, **kind)
                assert out.shape == shape
                assert out.dtype == dtype
    assert sse(torch.zeros(3, dtype=torch.int64, device="meta"), 9, 0.5, reserved=[0]).device.type == "meta"
    with torch.device("meta"):
        table = SharedEmbedding(9, 2, sse=0.5, padding_idx=0, graph=csr(9, GRAPH))
    table.to_empty(device="cpu")
    assert table(torch.arange(9)).shape == (9, 2)
    assert graph.to(torch.device("cpu")).draw(torch.arange(8), 2.0, None).max() < 8


@pytest.mark.parametrize("sparse", [False, True])
def test_gradient_reaches_the_rows_that_were_used_and_no_others(sparse: bool) -> None:
    table = SharedEmbedding(200, 4, padding_idx=0, sparse=sparse, sse=0.5, generator=seeded(6))
    ids = torch.tensor([[0, 5, 6], [7, 5, 0]])
    used = sse(ids, 200, 0.5, reserved=[0], generator=seeded(6))
    assert not torch.equal(used, ids)
    target = torch.randn(2, 3, 4, generator=seeded(0))
    (table(ids) * target).sum().backward()
    assert table.weight.grad.is_sparse == sparse
    expected = torch.zeros(200, 4).index_add_(0, used.flatten(), target.flatten(0, 1))
    expected[0] = 0
    assert torch.allclose(table.weight.grad.to_dense(), expected)
    if sparse:
        assert set(table.weight.grad.coalesce().indices()[0].tolist()) == set(used.flatten().tolist()) - {0}


def test_eval_mode_is_a_plain_embedding() -> None:
    table = SharedEmbedding(30, 4, sse=1.0)
    assert not torch.equal(table(torch.arange(30)), table.weight)
    world = torch.get_rng_state()
    assert torch.equal(table.eval()(torch.arange(30)), table.weight)
    assert torch.equal(torch.get_rng_state(), world)


def test_padding_stays() -> None:
    table = SharedEmbedding(30, 4, padding_idx=-1, sse=1.0, reserved=[0])
    assert table.replacement.reserved == (0, 29)
    assert torch.equal(table(torch.tensor([29, 0] * 50)), table.weight[[29, 0] * 50])


def test_state_is_that_of_an_embedding() -> None:
    plain, shared = nn.Embedding(12, 3, padding_idx=0), SharedEmbedding(12, 3, 0, sse=torch.tensor(0.3))
    assert plain.state_dict().keys() == shared.state_dict().keys()
    shared.load_state_dict(plain.state_dict())
    assert torch.equal(plain.weight, shared.weight)
    shared.weight.data.mul_(2)
    plain.load_state_dict(shared.state_dict())
    assert torch.equal(plain.weight, shared.weight)
    assert torch.equal(SharedEmbedding.from_pretrained(plain.weight.data).weight, plain.weight)


def test_probability_can_be_set_anew_and_is_shown() -> None:
    table = SharedEmbedding(9, 3, padding_idx=0, sse=0.1, graph=csr(9, {1: {2, 0}, 2: {1}}), rho=5)
    assert repr(table) == "SharedEmbedding(9, 3, padding_idx=0, sse=0.1, graph=2 edges, rho=5, reserved=[0])"
    table.sse = 0
    assert repr(table).endswith("sse=0, graph=2 edges, rho=5, reserved=[0])")
    assert torch.equal(table(torch.arange(9)), table.weight)
    table.sse = torch.full((4,), 0.5)
    assert "sse=[4]" in repr(table)
    with pytest.raises(ValueError, match="between 0 and 1"):
        table.sse = 2.0


@pytest.mark.parametrize("kind", ["uniform", "graph", "generator", "eval", "off"])
def test_compiled_gives_the_same(kind: str) -> None:
    """Uniform draws are traced whole; a graph, or a generator of its own, breaks the trace around the draw."""
    torch._dynamo.reset()
    graph = {"graph": csr(9, GRAPH), "rho": 3.0} if kind == "graph" else {}
    own = {"generator": seeded(3)} if kind == "generator" else {}
    table = SharedEmbedding(9, 3, padding_idx=0, sse=0.0 if kind == "off" else 0.7, **graph, **own)
    table.train(kind != "eval")
    model = nn.Sequential(table, nn.Linear(3, 2))
    fast = torch.compile(model, backend="aot_eager", fullgraph=kind in ("uniform", "eval", "off"))
    ids = torch.randint(9, (6, 7), generator=seeded(0))
    results = []
    for run in (model, fast):
        torch.manual_seed(2)
        if own:
            own["generator"].manual_seed(3)
        model.zero_grad()
        out = run(ids)
        out.square().sum().backward()
        results.append((out.detach(), table.weight.grad.clone()))
    for a, b in zip(*results, strict=True):
        assert torch.allclose(a, b)


class Tiny(nn.Module):
    """Items and positions through a transformer; the output layer is the item table."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleDict({"item": nn.Embedding(40, 8, padding_idx=0), "position": nn.Embedding(10, 8)})
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), 1)
        self.out = nn.Linear(8, 40, bias=False)
        self.out.weight = self.tables["item"].weight
        self.again = self.tables["item"]

    def forward(self, ids):
        place = torch.arange(ids.shape[1]).expand_as(ids)
        return self.out(self.encoder(self.again(ids) + self.tables["position"](place)))


def test_apply_sse_to_a_transformer() -> None:
    torch.manual_seed(0)
    model = Tiny()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    ids = torch.randint(1, 40, (4, 10), generator=seeded(0))
    ids[:, 0] = 0
    before, keys = model(ids).detach(), list(model.state_dict())
    near = csr(10, {k: {k - 1, k + 1} & set(range(10)) for k in range(10)})
    options = {"tables.item": 0.5, "tables.position": {"p": 0.2, "graph": near, "rho": 100.0}}
    assert apply_sse(model, options, generator=seeded(7)) is model
    assert model.tables["item"] is model.again  # one table under two names
    assert model.out.weight is model.again.weight
    assert model.again.sse == 0.5
    assert model.tables["position"].sse == 0.2
    assert list(model.state_dict()) == keys
    assert not torch.allclose(model(ids), before, atol=1e-2)
    assert torch.allclose(model.eval()(ids), before, atol=1e-6)
    weight = model.again.weight.detach().clone()
    model.train()(ids).square().sum().backward()
    optimizer.step()  # made before SSE came
    assert not torch.equal(weight, model.again.weight)
    assert model.out.weight is model.again.weight


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"tables.items": 0.1}, "no embedding 'tables.items' in the model: did you mean 'tables.item'"),
        ({"tables.item": 1.5}, "p=1.5: the probability"),
        ({"tables.item": {"probability": 0.1, "p": 0.1}}, "unknown option 'probability'"),
        ({"tables.item": {"rho": 2.0}}, "no p"),
        ({"encoder": 0.1}, "no embedding 'encoder'"),
    ],
)
def test_apply_sse_says_what_is_wrong_and_changes_nothing(tables, words: str) -> None:
    model = Tiny()
    with pytest.raises(ValueError, match=words):
        apply_sse(model, {"tables.position": 0.1, **tables})
    assert type(model.tables["position"]) is nn.Embedding


def test_apply_sse_to_a_table_itself_twice_and_to_other_classes() -> None:
    table = apply_sse(nn.Embedding(9, 2), {"": 0.25})
    assert isinstance(table, SharedEmbedding)
    assert apply_sse(table, {"": {"p": 0.5, "reserved": [3]}}).replacement.reserved == (3,)
    Own = type("Own", (nn.Embedding,), {})
    with pytest.raises(ValueError, match=r"'0' is a Own, which may do more"):
        apply_sse(nn.Sequential(Own(3, 2)), {"0": 0.1})
    with pytest.raises(ValueError, match="it has none"):
        apply_sse(nn.Linear(2, 2), {"item": 0.1})


IDS = torch.arange(5)


@pytest.mark.parametrize(
    ("words", "call"),
    [
        (r"p=1.5: the probability", lambda: sse(IDS, 5, 1.5)),
        (r"p=nan: the probability", lambda: sse(IDS, 5, float("nan"))),
        (r"p='much': the probability", lambda: sse(IDS, 5, "much")),
        (r"p holds 1.5: the probability", lambda: sse(IDS, 5, torch.tensor([0.5, 1.5, 0.0, 0.0, 0.0]))),
        (r"p of the shape \[4\] does not broadcast to \[5\]", lambda: sse(IDS, 5, torch.full((4,), 0.5))),
        (r"rho=-1: neighbours", lambda: sse(IDS, 5, 0.5, rho=-1)),
        (r"rho=inf: neighbours", lambda: sse(IDS, 5, 0.5, rho=float("inf"))),
        (r"the reserved id 5 is not one of the table: its ids are 0 to 4", lambda: sse(IDS, 5, 0.5, reserved=[5])),
        (r"the reserved id -1 is not one", lambda: sse(IDS, 5, 0.5, reserved=[-1])),
        (r"all 5 ids are reserved", lambda: sse(IDS, 5, 0.5, reserved=range(5))),
        (r"graph is of 4 ids and the table has 5", lambda: sse(IDS, 5, 0.5, graph=csr(4, {}))),
        (r"graph is of 4 ids and the table has 5", lambda: SharedEmbedding(5, 2, graph=Graph(*csr(4, {})))),
        (r"graph is of 3 ids", lambda: sse(IDS, 5, 0.5, graph=csr(3, {}), reserved=[4])),
        (r"reserves the ids \[\] and the table \[0\]", lambda: SharedEmbedding(5, 2, 0, graph=Graph(*csr(5, {})))),
        (r"an edge to id 7, and indptr is for the ids 0 to 4", lambda: Graph(*csr(5, {1: {7}}))),
        (r"an edge to id -1", lambda: Graph(*csr(5, {1: {-1}}))),
        (r"indptr ends at 2 and index has 1", lambda: Graph(np.array([0, 1, 2]), np.array([1]))),
        (r"never fall", lambda: Graph(np.array([0, 2, 1]), np.array([1]))),
        (r"never fall", lambda: Graph(np.array([0]), np.array([], np.int64))),
        (r"index must be a list of whole numbers", lambda: Graph(np.array([0, 1, 1]), np.array([1.0]))),
        (r"the graph has 1 ids that are not reserved", lambda: Graph(*csr(2, {0: {1}}), reserved=[0])),
        (r"indices are of type torch.float32", lambda: sse(torch.rand(3), 5, 0.5)),
        (r"generator is on cpu and the indices are on meta", lambda: sse(IDS.to("meta"), 5, 1, generator=seeded(0))),
    ],
)
def test_one_sentence_for_bad_input(words: str, call) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("wrong", [5, -1])
def test_ids_outside_the_table_are_left_for_torch_to_refuse(wrong: int) -> None:
    """A replacement would hide the mistake most of the time."""
    for kind in ({}, {"graph": csr(5, {0: {1}})}):
        assert sse(torch.tensor([wrong]), 5, 1.0, **kind).tolist() == [wrong]
        with pytest.raises(IndexError):
            SharedEmbedding(5, 2, sse=1.0, **kind)(torch.tensor([wrong]))


@pytest.mark.parametrize("p", [0.1, 0.6])
def test_on_targets_it_is_label_smoothing(p):
    """The expected loss over all replacements, and its gradient, are those of label smoothing; draws converge to it."""
    from corank.nn import losses

    generator = torch.Generator().manual_seed(5)
    hidden = torch.randn(6, 4, dtype=torch.float64, generator=generator).requires_grad_()
    table = torch.randn(9, 4, dtype=torch.float64, generator=generator).requires_grad_()
    target = torch.randint(0, 9, (6,), generator=generator)

    def loss(targets):
        return losses.softmax(hidden, table, targets)

    expected = (1 - p) * loss(target) + p * sum(loss(torch.full_like(target, k)) for k in range(9)) / 9
    smooth = torch.nn.functional.cross_entropy(hidden @ table.t(), target, label_smoothing=p)
    torch.testing.assert_close(expected, smooth, rtol=1e-12, atol=0)
    for ours, theirs in zip(*(torch.autograd.grad(f, (hidden, table)) for f in (expected, smooth)), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)
    with torch.no_grad():
        drawn = torch.stack([loss(sse(target, 9, p, generator=generator)) for _ in range(4_000)])
    assert abs(float(drawn.mean() - smooth.detach())) < 4 * float(drawn.std()) / 4_000**0.5
