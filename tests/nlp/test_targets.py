"""SSE on targets, and in `Trainer`: only while it trains, and label smoothing in expectation."""

from __future__ import annotations

import sys

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
from torch.nn.functional import cross_entropy  # noqa: E402
from torch.utils.data import default_collate  # noqa: E402

from corank.errors import CorankError  # noqa: E402
from corank.nlp import SSECallback, SSECollator, apply_sse, remove_sse  # noqa: E402
from language_models import IDS, bart, bert, seen  # noqa: E402


def test_collator_is_label_smoothing_in_expectation() -> None:
    """The loss and its gradient, over all N replacements weighted by their frequencies in 200,000 draws."""
    torch.manual_seed(0)
    scores = torch.randn(1, 6, requires_grad=True)
    collator = SSECollator(default_collate, 0.3, classes=6, key="y")
    drawn = collator([{"y": 2}] * 200_000)["y"]
    weight = torch.bincount(drawn, minlength=6) / len(drawn)
    ours = sum(w * cross_entropy(scores, torch.tensor([k])) for k, w in enumerate(weight))
    smooth = cross_entropy(scores, torch.tensor([2]), label_smoothing=0.3)
    assert ours.item() == pytest.approx(smooth.item(), abs=0.02)
    (a,), (b,) = torch.autograd.grad(ours, scores), torch.autograd.grad(smooth, scores)
    torch.testing.assert_close(a, b, atol=0.01, rtol=0)


def test_collator_leaves_ignored_labels_and_says_what_is_wrong() -> None:
    collator = SSECollator(default_collate, 1.0, classes=50)
    batch = collator([{"labels": torch.tensor([-100, 7, -100, 9])}] * 30)
    assert (batch["labels"][:, ::2] == -100).all()
    assert (batch["labels"][:, 1::2] != torch.tensor([7, 9])).any()
    with pytest.raises(CorankError, match="no 'labels'"):
        collator([{"x": 1}])
    with pytest.raises(CorankError, match=r"torch.float64.*classes"):
        collator([{"labels": 0.5}])
    with pytest.raises(CorankError, match="between 0 and 1"):
        SSECollator(default_collate, 2.0, classes=5)
    with pytest.raises(CorankError, match="classes=1"):
        SSECollator(default_collate, 0.1, classes=1)


def test_targets_of_a_decoder_are_replaced_and_its_inputs_are_not() -> None:
    model = bart().train()
    labels = IDS.clone()
    truth = model.prepare_decoder_input_ids_from_labels(labels)
    table = model.model.decoder.embed_tokens
    with apply_sse(model, p=0.0, p_target=1.0, reserved=()), seen(table) as inputs:
        noisy = model(input_ids=IDS, labels=labels).loss
    assert torch.equal(inputs[0], truth)
    assert torch.equal(labels, IDS)  # the batch of the caller stays
    assert abs(noisy - model(input_ids=IDS, labels=labels).loss) > 1e-4


def test_targets_in_training_only() -> None:
    model = bert("BertForSequenceClassification", num_labels=3, hidden_dropout_prob=0, attention_probs_dropout_prob=0)
    labels = torch.zeros(20, dtype=torch.int64)
    truth = model.eval()(input_ids=IDS, labels=labels).loss
    with apply_sse(model, p=0.0, p_target=1.0, reserved=()):
        assert model(input_ids=IDS, labels=labels).loss == truth
        assert model.train()(input_ids=IDS, labels=labels).loss != truth
        with pytest.raises(CorankError, match="already has SSE"):
            apply_sse(model, p=0.0, p_target=0.1, reserved=())


class Rows(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 8

    def __getitem__(self, at: int) -> dict[str, torch.Tensor]:
        return {"input_ids": IDS[at, :8], "labels": torch.tensor(at % 2)}


def test_trainer(tmp_path) -> None:
    """On while training, in evaluation during training no replacement, off in the end; a second `train` works."""
    pytest.importorskip("accelerate")
    model = bert("BertForSequenceClassification", num_labels=2)
    args = transformers.TrainingArguments(
        tmp_path, max_steps=2, per_device_train_batch_size=4, eval_strategy="steps", eval_steps=1, save_strategy="no",
        report_to="none", use_cpu=True, disable_tqdm=True, logging_strategy="no",
    )  # fmt: skip
    trainer = transformers.Trainer(
        model, args, train_dataset=Rows(), eval_dataset=Rows(),
        callbacks=[SSECallback(p=1.0, p_target=0.5, reserved=[1, 2, 3])],
    )  # fmt: skip
    for _ in range(2):
        modes: list[tuple[bool, bool]] = []
        with seen_by_mode(model, modes):
            trainer.train()
        assert {changed for training, changed in modes if training} == {True}
        assert {changed for training, changed in modes if not training} == {False}
        assert remove_sse(model) == 0


class seen_by_mode:  # noqa: N801
    """Whether ids were replaced, for each lookup in training and in evaluation."""

    def __init__(self, model, modes) -> None:
        self.model, self.modes = model, modes

    def __enter__(self) -> None:
        table = self.model.get_input_embeddings()
        truth = {tuple(row) for row in IDS[:, :8].tolist()}
        looked = torch.nn.Embedding.forward

        def forward(ids):
            self.modes.append((table.training, not {tuple(row) for row in ids.tolist()} <= truth))
            return looked(table, ids)

        table.forward = forward

    def __exit__(self, *_: object) -> None:
        del self.model.get_input_embeddings().forward


def test_missing_library_is_named(monkeypatch) -> None:
    import corank.nlp

    monkeypatch.delitem(sys.modules, "corank.nlp.trainer", raising=False)
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(CorankError, match=r"SSECallback needs .*pip install 'corank\[nlp\]'"):
        _ = corank.nlp.SSECallback
    with pytest.raises(AttributeError, match="no attribute 'sse_callback'"):
        _ = corank.nlp.sse_callback
