"""What the tests of sequence models share: small data, states of packed histories, and promises that all of them keep.

`model` is fitted, `make` a function that makes an unfitted one, `twin(model, items)` the states of one history by
another, plainer program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corank as cr

ITEMS = 20  # of `cycles`
Make = Callable[..., Any]


def cycles(users: int = 60, most: int = 24) -> cr.Dataset:
    """Cycles of items with some noise: item i is followed by i + 1 nine times of ten. 1 to `most` items per user."""
    rng = np.random.default_rng(4)
    rows = []
    for user in range(users):
        item = int(rng.integers(ITEMS))
        for time in range(int(rng.integers(1, most + 1))):
            rows.append((user, item, time))
            item = (item + 1) % ITEMS if rng.random() < 0.9 else int(rng.integers(ITEMS))
    user, item, time = np.array(rows).T
    return cr.from_arrays(user=user, item=item, time=time, duplicates="keep")


def history(seed: int, length: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, ITEMS, length)


def packed_batch(model: Any, histories: Iterable[np.ndarray], users: np.ndarray | None = None) -> Any:
    """One packed batch of these histories, of unseen users or of these."""
    import torch

    from corank.nn.batches import Batch, pack

    length = np.array([len(one) for one in histories])
    packed = pack(np.cumsum(length) - length, length, slack=6)
    position = torch.from_numpy(model.max_len - length[packed.row] + packed.step)
    user = None if users is None else torch.from_numpy(users)
    return Batch(packed, torch.from_numpy(np.concatenate(list(histories))[packed.at]), position, user)


def states(model: Any, *histories: np.ndarray, users: np.ndarray | None = None) -> list[np.ndarray]:
    """Hidden states of all tokens of each history, from one packed batch."""
    import torch

    batch = packed_batch(model, histories, users)
    net, w = model._views()
    with torch.no_grad():
        out, last = net.encode(w, batch, None).numpy(), net.encode_last(w, batch).numpy()
    np.testing.assert_allclose(out[batch.packed.last], last, rtol=1e-5, atol=1e-5)
    ends = batch.packed.last
    return [out[end - len(one) + 1 : end + 1] for end, one in zip(ends, histories, strict=True)]


def scores_of(model: Any, found: np.ndarray) -> np.ndarray:
    """Scores (n, items) of states (n, width): inner products, and biases where there are any."""
    bias = model._views()[1]["item.bias"].numpy() if model.biased else 0
    return found[:, : model._item_width()] @ model.item_factors_.T + bias


def csr(histories: Iterable[np.ndarray]) -> cr.CSR:
    """Histories as the rows of a matrix."""
    ends, index = np.cumsum([len(one) for one in histories]), np.concatenate(list(histories)).astype(np.int32)
    return cr.CSR(np.r_[0, ends], index, np.ones(index.size, np.float32), ITEMS)


# ---- promises ----------------------------------------------------------------------------------------------------


def check_packed_equals_alone(model: Any, twin: Callable[..., np.ndarray]) -> None:
    histories = [history(seed, length) for seed, length in enumerate((12, 1, 5, 11, 3, 7, 7))]
    together = states(model, *histories)
    for one, found in zip(histories, together, strict=True):
        np.testing.assert_allclose(found, states(model, one)[0], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(found, twin(model, one), rtol=1e-4, atol=1e-5)


def check_scores_are_those_of_the_last_state(model: Any, twin: Callable[..., np.ndarray]) -> None:
    histories = [history(seed, length) for seed, length in enumerate((12, 1, 5, 30))]
    for one, found in zip(histories, model._score_histories(csr(histories)), strict=True):
        state = twin(model, one[-model.max_len :])[-1:]
        np.testing.assert_allclose(found, scores_of(model, state)[0], rtol=1e-4, atol=1e-4)


def check_the_future_does_not_leak(model: Any, reach: int = 100, least: float = 1e-5) -> None:
    """A changed item changes no earlier state, and each of the next `reach` ones."""
    one = history(3, 10)
    before = states(model, one, history(4, 8))[0]
    for t in (1, 5, 9):
        other = one.copy()
        other[t] = (other[t] + 1) % ITEMS
        after = states(model, other, history(4, 8))[0]
        np.testing.assert_allclose(after[:t], before[:t], rtol=1e-5, atol=1e-6)
        assert (np.abs(after[t : t + reach] - before[t : t + reach]).max(axis=1) > least).all()
        np.testing.assert_allclose(after[t + reach :], before[t + reach :], rtol=1e-5, atol=1e-6)


def share_of_learned_steps(make: Make, first: int = 1) -> float:
    """Random sequences: there is nothing to learn but themselves. How often the next item beats all that are not in it.

    (Items of the sequence are no negatives of bce.) first : the first step that counts.
    """
    rng = np.random.default_rng(5)
    sequences = [rng.permutation(40)[:9] for _ in range(8)]
    data = cr.from_arrays(user=np.repeat(np.arange(8), 9), item=np.concatenate(sequences), time=np.tile(range(9), 8))
    options = {"dim": 32, "max_len": 10, "dropout": 0.0, "lr": 0.003, "epochs": 250, "batch_size": 8, "negatives": 32}
    model = make(**options).fit(data)
    codes = [data.items.codes(one) for one in sequences]
    right = []
    for own, found in zip(codes, states(model, *[own[:8] for own in codes], users=np.arange(8)), strict=True):
        scores = scores_of(model, found)
        others = np.setdiff1d(np.arange(len(data.items)), own)
        right += (scores[range(first, 8), own[first + 1 :]] > scores[first:, others].max(axis=1)).tolist()
    return float(np.mean(right))


def check_beats_popularity_on_a_markov_chain(model: Any, least: float = 0.6) -> None:
    """The next item depends on the last one, and all items are equally popular."""
    split = cr.leave_last_out(cr.synthetic.markov(users=400, items=60, length=15, seed=1).data)
    metric = "ndcg@10"
    both = (model, cr.Popularity())
    found, popular = (cr.evaluate(one.fit(split.train), split, [metric], bootstrap=0)[metric] for one in both)
    assert found > least
    assert popular < 0.2


def check_resumed_training_ends_with_the_same_bits(make: Make, data: cr.Dataset, folder: Path) -> None:
    """Interrupted in the third epoch of five, at its end."""
    whole = make(epochs=5).fit(data)

    def die(entry: dict[str, Any]) -> None:
        if entry["epoch"] == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make(epochs=5).fit(data, checkpoint=folder / "part", on_epoch=die)
    again = make(epochs=5).fit(data, checkpoint=folder / "part")
    np.testing.assert_array_equal(again.weights_, whole.weights_)
    assert [h["loss"] for h in again.history_] == [h["loss"] for h in whole.history_]


def check_options_change_what_is_learned(make: Make, data: cr.Dataset, options: list[dict[str, Any]]) -> None:
    plain = make().fit(data).weights_
    for one in options:
        other = make(**one).fit(data).weights_
        assert other.shape != plain.shape or np.abs(other - plain).max() > 1e-4, one


def check_bfloat16_learns_about_the_same(make: Make, data: cr.Dataset) -> None:
    """Two decimal digits of the activations are lost, and no more; the weights stay float32."""
    plain, half = (make(bf16=bf16).fit(data) for bf16 in (False, True))
    assert half.weights_.dtype == np.float32
    assert half.history_[-1]["loss"] == pytest.approx(plain.history_[-1]["loss"], rel=0.02)
    assert not np.array_equal(half.weights_, plain.weights_)
