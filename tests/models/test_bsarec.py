"""BSARec beyond the contract: the filter is that of the Fourier transform, packing, learning, sentences."""

from __future__ import annotations

import numpy as np
import pytest

import corank as cr
import sequence_checks as check
from corank.models.bsarec import BSARec, filter_sequences, low_pass
from corank.nn.batches import pack

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("size", [1, 2, 7, 8, 50])
@pytest.mark.parametrize("waves", [1, 3, 5, 9, 200])
def test_the_filter_drops_the_high_frequencies_of_the_fourier_transform(size, waves):
    """As published: rfft of the padded window, zero from waves // 2 + 1 on, irfft."""
    x = np.random.default_rng(size).normal(size=(size, 3))
    spectrum = np.fft.rfft(x, axis=0)
    spectrum[waves // 2 + 1 :] = 0
    expected = np.fft.irfft(spectrum, n=size, axis=0)
    np.testing.assert_allclose(low_pass(size, waves, size) @ x, expected, atol=1e-5)


def test_a_sequence_is_filtered_as_if_it_stood_at_the_end_of_a_padded_window():
    rng = np.random.default_rng(0)
    length = np.array([3, 10, 1, 9, 4])
    packed = pack(np.cumsum(length) - length, length, slack=6)
    store = rng.normal(size=(int(length.sum()), 4)).astype(np.float32)
    found = filter_sequences(torch.from_numpy(store[packed.at]), packed, torch.from_numpy(low_pass(12, 5, 10))).numpy()
    for row, n in enumerate(length):
        window = np.zeros((12, 4))
        window[12 - n :] = store[length[:row].sum() : length[: row + 1].sum()]
        spectrum = np.fft.rfft(window, axis=0)
        spectrum[3:] = 0
        expected = np.fft.irfft(spectrum, n=12, axis=0)[12 - n :]
        last = packed.last[row]
        np.testing.assert_allclose(found[last - n + 1 : last + 1], expected, atol=1e-5)


@pytest.fixture(scope="module")
def data():
    return check.cycles(users=80, most=14)


@pytest.fixture(scope="module")
def model(data):
    return BSARec(dim=16, max_len=8, epochs=12, batch_size=32, lr=0.01, dropout=0.1, heads=2).fit(data)


def test_packed_equals_alone(model):
    """The last states: those before them know the items after them, which is why prefixes are samples of their own."""
    rng = np.random.default_rng(1)
    histories = [rng.integers(0, 20, n) for n in (8, 1, 5, 7, 3, 6, 6)]
    for one, found in zip(histories, check.states(model, *histories), strict=True):
        np.testing.assert_allclose(found[-1], check.states(model, one)[0][-1], rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def causal(data):
    return BSARec(dim=16, max_len=12, epochs=12, batch_size=32, lr=0.01, dropout=0.1, targets="all").fit(data)


def test_with_every_position_as_a_target_the_filter_reads_no_later_items(causal):
    check.check_the_future_does_not_leak(causal, least=1e-6)
    assert check.states(causal, check.history(0, 12), check.history(1, 5))  # the last states are those of `encode_last`


def test_one_state_of_a_causal_filter_is_that_of_the_whole_one(causal):
    """In one block the last token reads the same tokens either way."""
    model = BSARec(dim=16, max_len=12, epochs=1, blocks=1, targets="all").fit(check.cycles(users=20))
    one = check.history(2, 9)
    before = check.states(model, one)[0]
    model.targets = "last"
    after = check.states(model, one)[0]
    np.testing.assert_allclose(after[-1], before[-1], rtol=1e-5, atol=1e-6)
    assert np.abs(after[0] - before[0]).max() > 1e-4


@pytest.mark.parametrize("name", ["model", "causal"])
def test_it_learns_what_comes_next(name, request):
    model, hits = request.getfixturevalue(name), 0
    for start in range(20):
        history = [(start + t) % 20 for t in range(4)]
        hits += (start + 4) % 20 in list(model.recommend(histories=[history], k=2, exclude_seen=False).items[0])
    assert hits >= 15


def test_weights_of_the_two_parts(data):
    """With alpha = 1 attention has no effect on the states, with alpha = 0 the filter has none."""
    for alpha, part in ((1.0, "qkv"), (0.0, "beta")):
        model = BSARec(dim=8, max_len=6, epochs=1, alpha=alpha).fit(data)
        before = model._score_histories(data.csr())
        w = model._views()[1]
        w[f"0.{part}"].mul_(3)
        np.testing.assert_allclose(model._score_histories(data.csr()), before, rtol=1e-5, atol=1e-6)


def test_sentences(data):
    with pytest.raises(cr.CorankError, match="heads must divide the hidden size 10; choose one of 1, 2, 5, 10"):
        BSARec(dim=10, heads=4, epochs=1).fit(data)
    with pytest.raises(cr.CorankError, match="targets"):
        BSARec(targets="first").fit(data)


@pytest.mark.parametrize("made", [BSARec, cr.SASRec, cr.SSEPT])
def test_a_file_with_heads_that_do_not_divide_is_refused(data, made, tmp_path):
    from benchmarks.reliability._sealed import seal

    from corank.model_file import read_file

    made(dim=8, max_len=6, epochs=1, heads=2).fit(data).save(tmp_path / "m.corank")
    meta, arrays = read_file(tmp_path / "m.corank")
    meta["params"]["heads"] = 3 if made is not cr.SSEPT else 7
    seal(tmp_path / "m.corank", arrays, meta, {})
    with pytest.raises(cr.ModelFileError, match="heads must divide the hidden size"):
        cr.load(tmp_path / "m.corank")
