"""Updates against refits and against the algebra: what is exact, and what an update may not touch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import corank as cr
from corank.cli import main

USERS, ITEMS = 60, 30


def drawn(seed, users, items, n, **more):
    rng = np.random.default_rng(seed)
    pairs = np.unique(np.stack([rng.choice(users, n), rng.choice(items, n)], 1), axis=0)
    return cr.from_arrays(user=pairs[:, 0], item=pairs[:, 1], time=rng.permutation(len(pairs)), **more)


@pytest.fixture(scope="module")
def parts():
    """Old rows, new rows (with new users and items), and both as one dataset."""
    old = drawn(0, np.arange(USERS), np.arange(0, ITEMS, 2), 500)
    new = drawn(1, np.arange(40, USERS + 10), np.arange(ITEMS), 300)
    user = np.concatenate([part.users.ids[part.user] for part in (old, new)])
    item = np.concatenate([part.items.ids[part.item] for part in (old, new)])
    return old, new, cr.from_arrays(user=user, item=item)


def test_popularity_is_exact(parts):
    old, new, both = parts
    updated, again = cr.Popularity().fit(old).update(new), cr.Popularity().fit(both)
    np.testing.assert_array_equal(updated.counts_, again.counts_)
    np.testing.assert_array_equal(updated.recommend(k=5).items, again.recommend(k=5).items)
    np.testing.assert_array_equal(updated.seen_indptr_, again.seen_indptr_)
    np.testing.assert_array_equal(updated.seen_index_, again.seen_index_)
    with pytest.raises(cr.CorankError, match="whose times are not kept"):
        cr.Popularity(days=3).fit(old).update(new)


@pytest.mark.parametrize("similarity", ["cosine", "jaccard", "conditional"])
def test_similarities_of_new_items_are_those_of_a_refit(parts, similarity):
    old, new, both = parts
    model = cr.ItemKNN(similarity=similarity, weighting="none", neighbors=100)
    updated, again = model.fit(old).update(new), type(model)(**model.params()).fit(both)

    def table(one):
        out = np.zeros((len(one.items_),) * 2)
        out[np.repeat(np.arange(len(out)), np.diff(one.sim_indptr_)), one.sim_index_] = one.sim_value_
        return out

    mine, theirs = table(updated), table(again)
    fresh = again.items_.ids % 2 == 1
    np.testing.assert_allclose(mine[fresh], theirs[fresh], rtol=1e-5)
    np.testing.assert_allclose(mine[:, fresh], theirs[:, fresh], rtol=1e-5)
    before = table(model)
    np.testing.assert_array_equal(mine[np.ix_(~fresh, ~fresh)], before)


def test_values_of_item_knn_are_added_up():
    old = cr.from_arrays(user=[1, 1, 2, 2], item=[1, 2, 1, 2], value=[3, 10, 200, 1], values="counts")
    new = cr.from_arrays(user=[1, 3], item=[2, 2], value=[5, 7], values="counts")
    updated = cr.ItemKNN(weighting="value").fit(old).update(new)
    np.testing.assert_allclose(np.expm1(updated.seen_value_), [3, 15, 200, 1, 7], rtol=1e-5)


def test_ease_extends_its_inverse(parts):
    """Where the old rows stay as they are and only items are new, one item is exact: block inversion by hand."""
    old, _, _ = parts
    takers = np.arange(0, 30, 3)
    new = cr.from_arrays(user=takers, item=np.full(takers.size, 99))
    updated = cr.EASE(reg=20.0).fit(old).update(new)
    X = np.zeros((USERS, len(updated.items_)))
    X[np.repeat(np.arange(USERS), np.diff(updated.seen_indptr_)), updated.seen_index_] = 1
    P = np.linalg.inv(X.T @ X + 20 * np.eye(X.shape[1]))
    B = -P / np.diag(P)
    np.fill_diagonal(B, 0)
    at = updated.items_.codes([99])[0]
    np.testing.assert_allclose(updated.item_weights_[:, at], B[:, at], atol=1e-5)
    np.testing.assert_allclose(updated.item_weights_[at], B[at], atol=1e-5)
    assert updated.item_precision_[at] == pytest.approx(P[at, at], rel=1e-4)


def test_ease_with_fewer_items_than_there_are(parts):
    old, new, both = parts
    updated = cr.EASE(max_items=8).fit(old).update(new)
    np.testing.assert_array_equal(updated.item_counts_, np.bincount(both.item))
    with pytest.raises(cr.CorankError, match="fit it again"):
        cr.EASE(max_items=15).fit(old).update(new)


def test_touched_users_are_folded_in(parts):
    """A user of wmf gets the vector that a history of all the user's rows gets; others keep theirs."""
    old, new, both = parts
    known = new.take(new.items.ids[new.item] % 2 == 0)
    model = cr.WMF(dim=5, epochs=4).fit(old)
    updated = model.update(known)
    histories = {user: both.items.ids[both.item[both.user == both.users.codes([user])[0]]] for user in (45, 62)}
    even = {user: [i for i in items.tolist() if i % 2 == 0] for user, items in histories.items()}
    folded = model.recommend(histories=even, k=5)
    np.testing.assert_allclose(updated.recommend([45, 62], k=5).scores, folded.scores, rtol=1e-3, atol=1e-5)
    np.testing.assert_array_equal(updated.user_factors_[:30], model.user_factors_[:30])


def test_a_new_item_of_a_matrix_of_rank_one_is_predicted():
    """Half of the users rate a new item: the ratings of the others follow from the rank."""
    rng = np.random.default_rng(3)
    taste, item = rng.normal(size=60), rng.normal(size=25)
    truth = 3 + np.outer(taste, item)
    user, code = np.nonzero(rng.random((60, 24)) < 0.7)
    old = cr.from_arrays(user=user, item=code, value=truth[user, code])
    half = np.arange(0, 60, 2)
    new = cr.from_arrays(user=half, item=np.full(half.size, 24), value=truth[half, 24])
    model = cr.ALS(dim=2, reg=1e-3, reg_bias=0.1, epochs=40).fit(old)
    others = np.arange(1, 60, 2)
    guess = model.update(new).predict(others, np.full(others.size, 24))
    error = np.sqrt(np.square(guess - truth[others, 24]).mean())
    assert error < 0.15 * truth[others, 24].std()


def test_a_new_rating_replaces_the_old_one():
    rng = np.random.default_rng(2)
    user, item = np.repeat(np.arange(20), 6), np.tile(np.arange(12), 10)
    data = cr.from_arrays(user=user, item=item, value=rng.integers(1, 6, 120))
    model = cr.ALS(dim=3, epochs=5).fit(data)
    updated = model.update(cr.from_arrays(user=[4, 4], item=[0, 11], value=[1.0, 2.0]))
    mine = slice(updated.seen_indptr_[4], updated.seen_indptr_[5])
    rated = dict(zip(updated.seen_index_[mine].tolist(), updated.seen_value_[mine].tolist(), strict=True))
    want = dict(zip(data.item[data.user == 4].tolist(), data.value[data.user == 4].tolist(), strict=True))
    assert rated == {**want, 0: 1.0, 11: 2.0}
    again = dict(updated.recommend(histories=[rated], k=12, exclude_seen=False)[0])
    for code, score in again.items():
        assert updated.predict([4], [code])[0] == pytest.approx(score, rel=1e-3, abs=1e-3)


def test_ratings_that_were_not_kept_are_a_sentence():
    model = cr.load(Path(__file__).parents[1] / "old_files" / "als.corank")
    row = cr.from_arrays(user=model.users_.ids[:2], item=model.items_.ids[:2], value=[1.0, 5.0])
    with pytest.raises(cr.CorankError, match="saved by an earlier version, which did not keep them"):
        model.update(row)


def test_sequences_are_extended():
    pytest.importorskip("torch")
    data = cr.from_arrays(user=np.repeat(np.arange(9), 5), item=np.tile(np.arange(15), 3), time=np.arange(45))
    model = cr.SASRec(dim=4, epochs=1, max_len=6).fit(data)
    new = cr.from_arrays(user=[2, 2, 2, 50], item=[3, 30, 4, 4], time=[3, 2, 1, 0], duplicates="keep")
    updated = model.update(new)
    ids = updated.items_.ids
    assert ids[updated._history(2).index].tolist() == [12, 13, 14, 4, 30, 3]  # by time, the last six
    assert ids[updated._history(9).index].tolist() == [4]
    beside = (model.item_factors_[4] + model.item_factors_[3]) / 2
    np.testing.assert_allclose(updated.item_factors_[updated.items_.codes([30])[0]], beside, rtol=1e-5)
    np.testing.assert_array_equal(updated.item_factors_[:15], model.item_factors_)


def test_labels_and_titles_follow(parts):
    labels = {"title": np.array(["A", "B"], object), "year": np.array([1990, 2000])}
    old = cr.from_arrays(user=[1, 2], item=[10, 30], item_labels=labels)
    more = {"title": np.array(["B2", "C"], object), "year": np.array([1, 2010]), "genre": np.array(["x|y", "z"])}
    new = cr.from_arrays(user=[1, 1], item=[30, 20], item_labels={k: v[::-1] for k, v in more.items()})
    updated = cr.Popularity().fit(old).update(new)
    assert updated.titles_ == ["A", "C", "B"]
    assert updated.labels_.columns["year"].listed() == [1990, 2010, 2000]
    assert updated.labels_.columns["genre"].listed() == [None, ["z"], None]
    assert cr.Popularity().fit(old).update(cr.from_arrays(user=[1], item=[20])).titles_ == ["A", "", "B"]


def test_string_ids():
    old = cr.from_arrays(user=["a", "b"], item=["x", "z"])
    updated = cr.ItemKNN().fit(old).update(cr.from_arrays(user=["a", "c"], item=["y", "x"]))
    assert updated.users_.ids.tolist() == ["a", "b", "c"]
    assert updated.items_.ids.tolist() == ["x", "y", "z"]


# ---- the command line --------------------------------------------------------------------------------------------


def test_the_command(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    drawn(0, np.arange(20), np.arange(10), 100).to_frame().write_csv("old.csv")
    drawn(1, np.arange(15, 25), np.arange(12), 60).to_frame().write_csv("new.csv")
    assert main(["fit", "item_knn", "old.csv", "-o", "m.corank"]) == 0
    Path("items.csv").write_text("item,year,title\n11,1999,Eleven\n")
    capsys.readouterr()
    assert main(["update", "m.corank", "new.csv", "-o", "m2.corank", "--items", "items.csv"]) == 0
    said = capsys.readouterr().err
    assert "5 new users, 2 new items" in said
    assert "saved to m2.corank" in said
    new = cr.load("m2.corank")
    assert new.titles_[11] == "Eleven"
    want = cr.load("m.corank").update(cr.read_csv("new.csv"))
    np.testing.assert_array_equal(new.recommend(k=3).items, want.recommend(k=3).items)
    assert main(["update", "m.corank", "nowhere.csv", "-o", "m3.corank"]) == 2
    assert "nowhere.csv" in capsys.readouterr().err
    assert not Path("m3.corank").exists()
