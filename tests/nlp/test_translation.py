"""The Transformer of the translation benchmark: no look at the future, none at padding, and a search that finds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from benchmarks.translation_model import BOS, EOS, PAD, SmoothedLoss, Transformer, beam_search  # noqa: E402
from torch.nn.functional import cross_entropy, log_softmax  # noqa: E402


@pytest.fixture
def model() -> Transformer:
    torch.manual_seed(0)
    return Transformer(7, dim=8, inner=16, layers=2, heads=2, rate=0.1).eval()


def test_causal_and_blind_to_padding(model) -> None:
    source, target = torch.tensor([[4, 5, 6, EOS]]), torch.tensor([[BOS, 4, 6]])
    truth = model(source, target)
    later = target.clone()
    later[0, 2] = 5
    torch.testing.assert_close(model(source, later)[:, :2], truth[:, :2])
    assert not torch.allclose(model(source, later)[:, 2], truth[:, 2])
    longer = torch.tensor([[4, 5, 6, EOS, PAD, PAD]])
    torch.testing.assert_close(model(longer, target), truth)


@torch.no_grad()
def test_wide_beam_is_exhaustive(model) -> None:
    """With a beam wider than all hypotheses, the search finds the best mean log-probability by brute force."""
    source = torch.tensor([[4, 5, EOS], [6, EOS, PAD]])
    found = beam_search(model, source, beam=300, longest=4)
    for row, one in enumerate(found):
        best, words = -1e9, None
        for n in range(4):
            for middle in itertools.product((4, 5, 6), repeat=n):
                ids = torch.tensor([[BOS, *middle, EOS]])
                logs = log_softmax(model(source[row : row + 1], ids[:, :-1]), -1)
                mean = logs[0].gather(1, ids[0, 1:, None]).mean().item()
                if mean > best:
                    best, words = mean, list(middle)
        finished = beam_score(model, source[row : row + 1], one)
        assert one == words or finished >= best - 1e-5  # an unfinished one of 4 words may be better


def beam_score(model, source, words) -> float:
    ids = torch.tensor([[BOS, *words]])
    return log_softmax(model(source, ids[:, :-1]), -1)[0].gather(1, ids[0, 1:, None]).mean().item()


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_loss_is_that_of_torch(smoothing) -> None:
    torch.manual_seed(0)
    scores, truth = torch.randn(5, 7, requires_grad=True), torch.tensor([0, 3, 6, 6, 1])
    ours, torchs = SmoothedLoss.apply(scores, truth, smoothing), cross_entropy(scores, truth, label_smoothing=smoothing)
    torch.testing.assert_close(ours, torchs)
    torch.testing.assert_close(*(torch.autograd.grad(3 * loss, scores)[0] for loss in (ours, torchs)))


def test_bleu_from_sums_is_that_of_sacrebleu() -> None:
    sacrebleu = pytest.importorskip("sacrebleu")
    from benchmarks.translation_data import statistics
    from benchmarks.translation_page import corpus_bleu

    ours = ["a man in a red hat walks his dog .", "two dogs run on the beach", "a girl sits"]
    truth = ["a man in a blue hat walks the dog .", "two dogs are running on the beach", "a young girl is sitting"]
    said = sacrebleu.metrics.BLEU(lowercase=True).corpus_score(ours, [truth]).score
    assert corpus_bleu(np.array(statistics(ours, truth), float).sum(0)) == pytest.approx(said)
