"""How sequence models draw the negatives that all positions share."""

from __future__ import annotations

import numpy as np
import pytest

import corank as cr

torch = pytest.importorskip("torch")

SHARED = ("sampled_softmax", "gbce", "bpr", "bpr_max", "top1")
SMALL = {"dim": 8, "max_len": 8, "epochs": 2, "batch_size": 16, "negatives": 12}


@pytest.fixture(scope="module")
def data():
    """A Markov chain over 30 items of which the first ten are visited most, and sequences of different lengths."""
    rng = np.random.default_rng(8)
    rows = []
    for user in range(80):
        item = int(rng.integers(30))
        for time in range(int(rng.integers(1, 16))):
            rows.append((user, item, time))
            item = (item + 1) % 30 if rng.random() < 0.8 else int(rng.integers(10))
    user, item, time = np.array(rows).T
    return cr.from_arrays(user=user, item=item, time=time, duplicates="keep")


def examples(model, data, seed=0):
    """The parts of one step over all users, and the targets."""
    rows = data.sequences()
    users = np.flatnonzero(np.diff(rows.indptr) > 1)
    length = np.minimum(np.diff(rows.indptr)[users] - 1, model.max_len)
    begin = rows.indptr[users + 1] - 1 - length
    index = rows.index.astype(np.int64)
    parts = model._examples(np.random.default_rng(seed), users, begin, length, index, data.csr())
    return parts, np.concatenate([part.target.numpy() for part in parts])


@pytest.mark.parametrize("targets", ["all", "last"])
@pytest.mark.parametrize("sampling", ["popular", "batch"])
@pytest.mark.parametrize("loss", SHARED)
def test_every_shared_loss_takes_every_sampling(data, loss, sampling, targets):
    model = cr.GRU4Rec(**SMALL, loss=loss, sampling=sampling, targets=targets).fit(data)
    assert np.isfinite(model.weights_).all()
    uniform = cr.GRU4Rec(**SMALL, loss=loss, targets=targets).fit(data)
    assert not np.array_equal(model.weights_, uniform.weights_)


def test_negatives_of_the_batch_are_its_targets(data):
    for name in ("gru4rec", "sasrec", "lru_rec"):
        model = cr.find(name)(**SMALL, loss="bpr_max", sampling="batch").fit(data)
        parts, targets = examples(model, data)
        for part in parts:
            assert part.negative.shape == (12,)
            assert (np.bincount(part.negative, minlength=30) <= np.bincount(targets, minlength=30)).all()


def test_log_q_reaches_the_loss(data):
    """The probabilities that the loss is given are those of the items that were drawn."""
    options = {**SMALL, "loss": "sampled_softmax", "negatives": 500}
    for sampling, power in (("popular", 0.5), ("batch", 1.0)):
        model = cr.SASRec(**options, log_q=True, sampling=sampling, sampling_power=power).fit(data)
        (part, *_), _ = examples(model, data)
        weight = np.bincount(data.sequences().index, minlength=30) ** power
        np.testing.assert_allclose(part.log_probability.exp(), (weight / weight.sum())[part.negative], rtol=1e-4)
        plain = cr.SASRec(**options, sampling=sampling, sampling_power=power).fit(data)
        assert examples(plain, data)[0][0].log_probability is None
        assert not np.array_equal(plain.weights_, model.weights_)


@pytest.mark.parametrize("loss", SHARED)
def test_a_shared_negative_is_not_its_own_positive(loss):
    """Where the target was drawn too, the loss is that without this draw; gbce counts the draws."""
    from corank.nn import losses

    generator = torch.Generator().manual_seed(1)
    hidden, table = torch.randn(1, 4, generator=generator), torch.randn(6, 4, generator=generator)
    target = torch.tensor([3])
    found = losses.next_item_loss(loss, hidden, table, target, torch.tensor([1, 3, 3, 5]))
    expected = losses.next_item_loss(loss, hidden, table, target, torch.tensor([1, 5]))
    if loss == "gbce":
        scores = (table @ hidden[0])[[1, 5]]
        beta = losses.gbce_beta(4, 6, 0.75)
        soft = torch.nn.functional.softplus
        expected = (beta * soft(-(table @ hidden[0])[3]) + soft(scores).sum()) / 5
    assert float(found) == pytest.approx(float(expected), rel=1e-6)


@pytest.mark.parametrize("loss", SHARED)
def test_where_all_negatives_are_the_target_there_is_nothing_to_compare(loss):
    from corank.nn import losses

    hidden, table = torch.randn(2, 4).requires_grad_(), torch.randn(3, 4).requires_grad_()
    found = losses.next_item_loss(loss, hidden, table, torch.tensor([1, 1]), torch.tensor([1, 1, 1]))
    for grad in torch.autograd.grad(found, (hidden, table)):
        assert torch.isfinite(grad).all()
        assert loss == "gbce" or not grad.any()


def test_bpreg_is_the_regularisation_of_bpr_max(data):
    from corank.nn import losses

    hidden, table = torch.tensor([[1.0]]), torch.tensor([[0.7], [-0.4], [1.3]])
    weight = np.exp([-0.4, 1.3]) / np.exp([-0.4, 1.3]).sum()
    gap = -np.log(weight[0] / (1 + np.exp(-1.1)) + weight[1] / (1 + np.exp(0.6)))
    for reg in (0.0, 0.5, 2.0):
        found = losses.next_item_loss("bpr_max", hidden, table, torch.tensor([0]), torch.tensor([1, 2]), bpreg=reg)
        assert float(found) == pytest.approx(gap + reg * (weight[0] * 0.16 + weight[1] * 1.69), rel=1e-5)
    one, other = (cr.GRU4Rec(**SMALL, loss="bpr_max", bpreg=reg).fit(data).weights_ for reg in (1.0, 3.0))
    np.testing.assert_array_equal(one, cr.GRU4Rec(**SMALL, loss="bpr_max").fit(data).weights_)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("loss", ["softmax", "bce"])
def test_a_loss_without_shared_negatives_refuses_another_sampling(data, loss):
    with pytest.raises(cr.CorankError, match=f"sampling='popular'.*loss {loss}") as error:
        cr.SASRec(**SMALL, loss=loss, sampling="popular").fit(data)
    assert "\n" not in str(error.value)
    with pytest.raises(cr.CorankError, match="loss softmax"):  # where the loss is left to the data, too
        cr.SASRec(**SMALL, sampling="batch").fit(data)


@pytest.mark.parametrize(
    "options",
    [
        {"loss": "top1", "sampling": "batch"},
        {"loss": "bpr_max", "sampling": "popular", "sampling_power": 0.75},
        {"loss": "sampled_softmax", "sampling": "popular", "log_q": True},
    ],
    ids=["GRU4Rec", "GRU4Rec+", "sampled softmax"],
)
def test_learns_a_markov_chain(options):
    split = cr.leave_last_out(cr.synthetic.markov(users=300, items=50, length=15, seed=1).data)
    model = cr.GRU4Rec(dim=32, max_len=15, epochs=15, batch_size=32, lr=0.005, negatives=64, dropout=0.1, **options)
    assert cr.evaluate(model.fit(split.train), split, ["ndcg@10"], bootstrap=0)["ndcg@10"] > 0.6


def test_resumed_training_ends_with_the_same_bits(data, tmp_path):
    make = lambda: cr.GRU4Rec(**{**SMALL, "epochs": 4}, loss="bpr_max", sampling="batch")  # noqa: E731
    whole = make().fit(data)
    make().fit(data, checkpoint=tmp_path / "part", on_epoch=lambda entry: entry["epoch"] < 2)
    np.testing.assert_array_equal(make().fit(data, checkpoint=tmp_path / "part").weights_, whole.weights_)
