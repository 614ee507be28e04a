"""Exported files hold what the model knows, in forms that other tools read without corank."""

from __future__ import annotations

import sys

import numpy as np
import polars as pl
import pytest

import corank as cr
from corank.cli import main


@pytest.fixture(scope="module")
def data() -> cr.Dataset:
    return cr.synthetic.realistic(users=150, items=60, rows=1_500).data


@pytest.fixture(scope="module")
def model(data) -> cr.Model:
    return cr.BPR(dim=8, epochs=3).fit(data)


@pytest.fixture(scope="module")
def letters() -> cr.Model:
    user, item = np.array(["ann", "bob", "bob", "cé"], object), np.array(["x", "x", "a film, 2", "y"], object)
    return cr.WMF(dim=2, epochs=2).fit(cr.from_arrays(user=user, item=item))


def test_npz_needs_no_pickle(letters, tmp_path):
    cr.export_vectors(letters, tmp_path / "v.npz")
    with np.load(tmp_path / "v.npz", allow_pickle=False) as file:
        assert file["user_ids"].tolist() == ["ann", "bob", "cé"]
        assert file["item_ids"].tolist() == letters.items_.ids.tolist()
        scores = file["user_vectors"] @ file["item_vectors"].T
    np.testing.assert_allclose(scores, letters._score(np.arange(3, dtype=np.int32)), rtol=1e-5)


def test_parquet_holds_ids_titles_and_biases(model, data, tmp_path):
    cr.export_vectors(model, tmp_path / "v.parquet")
    table = pl.read_parquet(tmp_path / "v.parquet")
    assert table.columns == ["kind", "id", "title", "vector"]
    assert table["id"].dtype == pl.Int64
    items = table.filter(pl.col("kind") == "item")
    assert items["title"].to_list() == list(model.titles_)
    assert items["id"].to_list() == model.items_.ids.tolist()
    item, user = (table.filter(pl.col("kind") == kind)["vector"].to_numpy() for kind in ("item", "user"))
    np.testing.assert_array_equal(item[:, -1], model.item_bias_)
    np.testing.assert_array_equal(user[:, -1], 1)


def test_lists_from_vectors_are_those_of_recommend(model, tmp_path):
    """With the seen items left out, as the page says."""
    vectors = model.vectors()
    scores = vectors.user_vectors @ vectors.item_vectors.T
    owner = np.repeat(np.arange(len(vectors.users)), np.diff(model.seen_indptr_))
    scores[owner, model.seen_index_] = -np.inf
    best = np.argsort(-scores, axis=1, kind="stable")[:, :5]
    ranking = model.recommend(k=5)
    same = ranking.items == best
    assert same.mean() > 0.99  # two equal scores may come in either order
    np.testing.assert_allclose(np.take_along_axis(scores, best, 1), ranking.scores, rtol=1e-4, atol=1e-5)


def test_ids_are_text_if_some_are(tmp_path):
    made = cr.from_arrays(user=np.array(["ann", "bob"], object), item=[1, 2])
    cr.export_vectors(cr.WMF(dim=2, epochs=1).fit(made), tmp_path / "v.parquet")
    assert pl.read_parquet(tmp_path / "v.parquet")["id"].to_list() == ["ann", "bob", "1", "2"]


def test_the_index_is_measured_as_it_is_on_disk(model, tmp_path):
    usearch = pytest.importorskip("usearch.index", reason="needs corank[export]")
    check = cr.export_index(model, tmp_path / "items.usearch", k=5)
    assert check.recall > 0.95
    vectors = model.vectors()
    index = usearch.Index.restore(str(tmp_path / "items.usearch"))
    assert len(index) == len(vectors.items)
    scores = vectors.user_vectors[7] @ vectors.item_vectors.T
    found = index.search(vectors.user_vectors[7], 5)
    assert found.keys[0] == np.argmax(scores)
    np.testing.assert_allclose(1 - found.distances, scores[found.keys.astype(int)], rtol=1e-4, atol=1e-5)


def test_recall_counts_what_is_missed(model):
    """An index that lacks the best items has no recall."""
    from corank.export.index import _shared

    usearch = pytest.importorskip("usearch.index", reason="needs corank[export]")
    vectors = model.vectors()
    best = set(np.argsort(-(vectors.user_vectors @ vectors.item_vectors.T), axis=1)[:, :5].ravel().tolist())
    rest = np.array([code for code in range(len(vectors.items)) if code not in best][:10], np.uint64)
    if rest.size < 5:
        rest = np.argsort(vectors.item_vectors[:, -1])[:10].astype(np.uint64)
    index = usearch.Index(ndim=vectors.item_vectors.shape[1], metric="ip")
    index.add(rest, vectors.item_vectors[rest.astype(int)])
    assert _shared(index, vectors.user_vectors, vectors.item_vectors, 5) < 0.5


def test_what_cannot_be_exported_is_a_sentence(data, model, tmp_path):
    ease = cr.EASE().fit(data)
    for export in (cr.export_vectors, cr.export_index):
        with pytest.raises(cr.CorankError, match="the scores of ease are no inner products"):
            export(ease, tmp_path / "v.npz")
    with pytest.raises(cr.CorankError, match=r"end the name in \.npz or \.parquet"):
        cr.export_vectors(model, tmp_path / "v.csv")
    with pytest.raises(cr.NotFitted):
        cr.export_vectors(cr.WMF(), tmp_path / "v.npz")
    with pytest.raises(cr.CorankError, match="k=0"):
        cr.export_index(model, tmp_path / "v.usearch", k=0)
    with pytest.raises(cr.CorankError, match="no inner products"):
        cr.TransRec(dim=2, epochs=1, distance="l1").fit(data).vectors()
    assert not list(tmp_path.iterdir())


def test_a_missing_part_names_the_extra(model, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "usearch", None)
    monkeypatch.setitem(sys.modules, "usearch.index", None)
    with pytest.raises(cr.MissingExtra, match=r"corank\[export\]"):
        cr.export_index(model, tmp_path / "i.usearch")


def test_the_command(model, tmp_path, monkeypatch, capsys):
    pytest.importorskip("usearch", reason="needs corank[export]")
    monkeypatch.chdir(tmp_path)
    model.save("m.corank")
    assert main(["export", "m.corank", "--vectors", "v.npz", "--index", "i.usearch"]) == 0
    said = capsys.readouterr().err
    assert "v.npz: vectors of 150 users and 60 items, 9 coordinates" in said
    assert "recall@10 1.0" in said
    assert main(["export", "m.corank"]) == 2
    assert "say what to export" in capsys.readouterr().err
    assert main(["export", "m.corank", "--onnx", "m.onnx"]) == 2
    assert "no network" in capsys.readouterr().err
    assert main(["export", "m.corank", "--vectors", "m.corank"]) == 2
    assert main(["export", "m.corank", "--vectors", "a.npz", "--index", "a.npz"]) == 2
    assert "asked for twice" in capsys.readouterr().err
    assert cr.load("m.corank").name() == "bpr"


def test_a_small_network_in_onnxruntime(data, tmp_path):
    """One sequence model with users and biases; the contract tests export all of them."""
    onnxruntime = pytest.importorskip("onnxruntime", reason="needs corank[export]")
    pytest.importorskip("onnxscript")
    pytest.importorskip("torch")
    model = cr.HGN(dim=4, epochs=1, max_len=6).fit(data)
    check = cr.export_onnx(model, tmp_path / "m.onnx")
    assert check.inputs == {"items": ("batch", 6), "length": ("batch",), "user": ("batch",)}
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]  # one file
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
    ids = model.items_.ids[[4, 8, 15]].tolist()
    codes = np.array([[4, 8, 15, -1, -1, -1]])
    inputs = {"items": codes, "length": np.array([3]), "user": np.array([-1])}
    scores = session.run(None, inputs)[0][0]
    scores[[4, 8, 15]] = -np.inf
    ranking = model.recommend(histories=[ids], k=3)
    assert ranking.items[0].tolist() == np.argsort(-scores)[:3].tolist()
