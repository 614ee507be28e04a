"""Explanations against sums by hand, and how they are shown."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import corank as cr


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    user, item = rng.integers(0, 50, 900), (25 * rng.random(900) ** 1.5).astype(int)
    titles = {"title": np.array([f"Item {i}" for i in range(25)], object)}
    pairs = np.unique(np.stack([np.append(user, np.arange(25)), np.append(item, np.arange(25))], 1), axis=0)
    value = rng.integers(1, 6, len(pairs))
    return cr.from_arrays(user=pairs[:, 0], item=pairs[:, 1], value=value, item_labels=titles)


def test_wmf_is_the_decomposition_of_hu_koren_and_volinsky(data):
    """Their formula: s_ij = y_i' W y_j with W = (Y'C Y + reg I)^-1, and the score is the sum of s_ij c_j."""
    model = cr.WMF(dim=6, epochs=3, alpha=2.0, rho=0.3).fit(data)
    history = {3: 5.0, 7: 1.0, 12: 3.0}
    found = model.explain(history=history, items=[1, 20])
    Y = model.item_factors_.astype(np.float64)
    codes, values = np.array(list(history)), np.array(list(history.values()))
    c = np.full(len(Y), 0.3)
    c[codes] = 1 + 2.0 * values
    reg = model.reg_ * (c[codes].sum() + 0.3 * (len(Y) - 3)) ** model.reg_power
    W = np.linalg.inv(Y.T @ (c[:, None] * Y) + reg * np.eye(6))
    for at, item in enumerate([1, 20]):
        for j in codes:
            assert dict(found.contributions[at])[j] == pytest.approx(Y[item] @ W @ Y[j] * c[j], rel=1e-4, abs=1e-6)


def test_ratings_of_training_users_are_kept(data, tmp_path):
    """Without them, a decomposition of a user's ratings would take all of them as high ones."""
    model = cr.ALS(dim=4, epochs=8).fit(data)
    model.save(tmp_path / "m.corank")
    loaded = cr.load(tmp_path / "m.corank")
    rows = data.csr()
    user = 7
    own = slice(rows.indptr[user], rows.indptr[user + 1])
    history = dict(zip(rows.index[own].tolist(), rows.value[own].tolist(), strict=True))
    by_user, by_history = loaded.explain(user, items=[2, 9]), loaded.explain(history=history, items=[2, 9])
    for one, other in zip(by_user.contributions, by_history.contributions, strict=True):
        assert dict(one) == pytest.approx(dict(other), abs=1e-6)
    # The last half-step of ALS is that of the users: their vectors are the fold-in.
    assert "training" not in by_user.rest


def test_values_are_kept_where_they_matter(data, tmp_path):
    assert not hasattr(cr.WMF(dim=2, epochs=1).fit(data), "seen_value_")
    counted = cr.WMF(dim=2, epochs=1, alpha=1.0).fit(data)
    np.testing.assert_array_equal(counted.seen_value_, data.csr().value)
    twice = cr.from_arrays(user=[1, 1, 2, 2], item=[1, 1, 1, 2], value=[5, 3, 4, 2], duplicates="keep")
    np.testing.assert_array_equal(cr.ALS(dim=2, epochs=1).fit(twice).seen_value_, [4, 4, 2])


def test_ease_with_fewer_items(data):
    model = cr.EASE(max_items=10).fit(data)
    found = model.explain(5, items=list(range(25)))
    kept = set(model.kept_.tolist())
    for at, item in enumerate(found.items):
        total = sum(value for _, value in found.contributions[at])
        assert total + found.rest["popularity"][at] == pytest.approx(found.scores[at], abs=1e-5)
        assert (found.rest["popularity"][at] == 0) == (item in kept)


def test_item_knn_with_counts():
    rng = np.random.default_rng(1)
    user, item = rng.integers(0, 30, 400), rng.integers(0, 15, 400)
    counts = cr.from_arrays(user=user, item=item, value=rng.integers(1, 500, 400), values="counts", duplicates="sum")
    model = cr.ItemKNN(weighting="value").fit(counts)
    found = model.explain(4, items=[1, 2, 3])
    for at in range(3):
        assert sum(value for _, value in found.contributions[at]) == pytest.approx(found.scores[at], rel=1e-4)


def test_frames_and_shares(data):
    found = cr.EASE().fit(data).explain(5, k=3)
    frame = found.to_frame()
    assert frame.columns == ["item", "score", "because", "contribution", "share", "title", "because_title"]
    assert frame["title"][0] == f"Item {found.items[0]}"
    by_item = frame.group_by("item").agg(
        pl.col("share").abs().sum(), pl.col("contribution").sum(), pl.col("score").first()
    )
    np.testing.assert_allclose(by_item["share"], 1.0)
    np.testing.assert_allclose(by_item["contribution"], by_item["score"], rtol=1e-4, atol=1e-6)
    assert repr(found) == "Explanation(3 items for user 5, exact)"
    assert "Item" in found._repr_html_()
    assert found.to_frame("pandas").shape == frame.shape


def test_texts_are_escaped_in_html(data):
    model = cr.EASE().fit(data)
    model.titles_ = ["<script>"] * 25
    assert "<script>" not in model.explain(5)._repr_html_()


def test_string_ids():
    data = cr.from_arrays(user=["a", "a", "b", "b", "c"], item=["x", "y", "y", "z", "z"])
    found = cr.ItemKNN(shrink=0).fit(data).explain("a", k=1)
    assert found.items == ["z"]
    assert found.to_frame()["because"].to_list() == [item for item, _ in found.contributions[0]]


def test_users_without_rows_are_a_sentence():
    data = cr.from_arrays(user=[0, 0, 1], item=[0, 1, 1]).with_graph(users=cr.graph.from_edges([0, 1], [1, 2]))
    model = cr.ItemKNN().fit(data)
    with pytest.raises(cr.CorankError, match="user 2 has no items"):
        model.explain(2)


def test_attention_is_the_mean_of_the_last_position():
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    data = cr.from_arrays(user=np.repeat(np.arange(20), 8), item=rng.integers(0, 12, 160), time=np.arange(160))
    model = cr.SASRec(dim=8, blocks=2, heads=2, epochs=2, max_len=6).fit(data)
    found = model.explain(3, k=2, kind="attention")
    weights = model.attention(3)
    mean = weights["weights"].mean(axis=(0, 1))
    assert found.kind == "attention"
    assert found.history == weights["items"]
    np.testing.assert_allclose(found.attention, mean, rtol=1e-6)
    assert sum(value for _, value in found.contributions[0]) == pytest.approx(1.0, rel=1e-5)
    long = model.explain(history=list(range(12)), items=[3])  # the network reads the last 6
    assert {item for item, _ in long.contributions[0]} == set(range(6, 12))
