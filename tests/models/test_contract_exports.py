"""What every model promises about exports: inner products of its vectors are its scores, or a sentence says why not."""

from __future__ import annotations

import json

import numpy as np
import pytest

import corank as cr
from corank.data import CSR, row_ends
from corank.models._torch import TorchModel


def test_inner_products_of_vectors_are_scores(model):
    users = np.arange(len(model.users_), dtype=np.int32)
    try:
        vectors = model.vectors()
    except cr.CorankError as why:
        assert "no inner products" in str(why)  # noqa: PT017
        assert not isinstance(getattr(model, "user_factors_", None), np.ndarray) or isinstance(model, TorchModel)
        return
    assert vectors.users.tolist() == model.users_.ids.tolist()
    assert vectors.items.tolist() == model.items_.ids.tolist()
    assert vectors.user_vectors.dtype == vectors.item_vectors.dtype == np.float32
    scores = model._score(users)
    found = vectors.user_vectors @ vectors.item_vectors.T
    np.testing.assert_allclose(found, scores, rtol=1e-4, atol=1e-5 * np.abs(scores).max())


def test_onnx_of_models_without_torch_is_a_sentence(cls, model, tmp_path):
    if issubclass(cls, TorchModel):
        pytest.skip("exported below")
    with pytest.raises(cr.CorankError, match="no network that ONNX could hold"):
        cr.export_onnx(model, tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_onnx_scores_are_those_of_the_model(cls, new, board, tmp_path):
    """Histories that the export did not look at, with garbage in the padding, together and one by one."""
    if not issubclass(cls, TorchModel):
        pytest.skip("no network")
    onnxruntime = pytest.importorskip("onnxruntime", reason="needs corank[export]")
    pytest.importorskip("onnxscript")
    model = (new(max_len=9) if cls.order_matters else new()).fit(board)
    check = cr.export_onnx(model, tmp_path / "m.onnx")
    assert check.difference < 1e-4
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
    meta = session.get_modelmeta().custom_metadata_map
    assert json.loads(meta["item_ids"]) == model.items_.ids.tolist()
    n, items = len(model.users_), len(model.items_)
    if "items" not in check.inputs:
        users = np.arange(n)[::-1].astype(np.int64)
        found = session.run(None, {"user": users})[0]
        np.testing.assert_allclose(found, model._score(users.astype(np.int32)), rtol=1e-4, atol=1e-5)
        return
    rng = np.random.default_rng(3)
    most = int(meta["max_len"])
    length = np.array([0, 1, 2, 5, most])
    history = rng.integers(-5, items + 5, (length.size, most))  # whatever stands in the padding
    for row, count in enumerate(length.tolist()):
        history[row, :count] = rng.integers(0, items, count)
    kept = np.concatenate([history[row, :count] for row, count in enumerate(length.tolist())]).astype(np.int32)
    rows = CSR(row_ends(length), kept, np.ones(kept.size, np.float32), items)
    inputs = {"items": history.astype(np.int64), "length": length.astype(np.int64)}
    if "user" in check.inputs:
        users = np.array([3, 0, 5, 1, 2])
        known = session.run(None, {**inputs, "user": users})[0]
        expected = model._score_known(users.astype(np.int32), rows)
        np.testing.assert_allclose(known, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())
        inputs["user"] = np.full(length.size, -1)
    expected = model._score_histories(rows)
    together = session.run(None, inputs)[0]
    np.testing.assert_allclose(together, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())
    for row in range(length.size):
        alone = session.run(None, {name: value[[row]] for name, value in inputs.items()})[0]
        np.testing.assert_allclose(alone, together[[row]], rtol=1e-4, atol=1e-5 * np.abs(expected).max())
