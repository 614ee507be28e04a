"""Diversified lists: the dial at 0 changes nothing, and the further it is turned the less alike the items are."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import corank as cr
from corank.answering.diversity import list_similarity, recommend_diverse
from corank.cli import main


@pytest.fixture(scope="module")
def data():
    return cr.synthetic.realistic(users=150, items=80, rows=3_000).data


@pytest.fixture(scope="module")
def model(data):
    genres = [[f"g{g}", f"h{g % 3}"] for g in data.item_labels["group"].tolist()]
    return cr.WMF(dim=8, epochs=4).fit(data).with_items({"item": data.items.ids.tolist(), "genres": genres})


def test_a_dial_of_0_changes_nothing(model):
    ranking = model.recommend(k=20)
    same = cr.diversify(ranking, model, 0)
    np.testing.assert_array_equal(same.items, ranking.items)
    np.testing.assert_array_equal(same.scores, ranking.scores)
    cut = cr.diversify(ranking, model, 0.0, k=5)
    np.testing.assert_array_equal(cut.items, ranking.items[:, :5])
    np.testing.assert_array_equal(recommend_diverse(model, 0, k=5).items, ranking.items[:, :5])


@pytest.mark.parametrize("by", [None, "genres", "group"])
def test_lists_are_less_alike_the_further_the_dial_is_turned(model, by):
    ranking = model.recommend(k=30)
    alike = [list_similarity(cr.diversify(ranking, model, dial, by=by, k=8), model, by) for dial in (0, 0.3, 0.6, 1.0)]
    assert alike == sorted(alike, reverse=True)
    assert alike[-1] < alike[0] - 0.05


def test_new_lists_hold_items_of_the_old_ones_with_their_scores(model):
    ranking = model.recommend(k=15, where={"group": (0, 12)})
    new = cr.diversify(ranking, model, 0.5, k=6)
    assert new.items.shape == (150, 6)
    for user in (3, 77):
        scores = dict(ranking[user])
        assert new[user][0] == ranking[user][0]  # the best item stays the first
        assert all(scores[item] == score for item, score in new[user])
        assert len({item for item, _ in new[user]}) == len(new[user])


def test_short_lists_stay_padded(model):
    ranking = model.recommend([1, 2], k=6, items={1: [4, 5], 2: [7, 8, 9]}, exclude_seen=False)
    new = cr.diversify(ranking, model, 0.5)
    assert (new.items >= 0).sum(axis=1).tolist() == [2, 3]
    assert set(new.items[0].tolist()) == set(ranking.items[0].tolist())
    assert (new.scores[new.items < 0] == -np.inf).all()
    assert len(cr.diversify(model.recommend([], k=3), model, 0.5)) == 0


def test_labels_by_hand():
    """Of three films, the second is of the first one's genre: with labels, the third comes before it."""
    base = cr.Popularity().fit(cr.from_arrays(user=[1, 1, 1, 2, 2, 3], item=[1, 2, 3, 1, 2, 1]))
    ranking = base.recommend([1], k=3, exclude_seen=False)
    assert [item for item, _ in ranking[1]] == [1, 2, 3]
    for labels in (["a", "a", "b"], [["a"], ["a"], ["b", "c"]], np.array([[1.0, 0], [1, 0], [0, 1]]), [7, 7, 8]):
        assert [item for item, _ in cr.diversify(ranking, labels, 0.6)[1]] == [1, 3, 2]
    assert [item for item, _ in cr.diversify(ranking, ["a", "a", "b"], 0.2)[1]] == [1, 2, 3]
    assert [item for item, _ in cr.diversify(ranking, [None, None, None], 1.0)[1]] == [1, 2, 3]  # nothing is alike


@pytest.mark.parametrize("name", ["ease", "item_knn"])
def test_models_without_vectors_use_their_similar_items(data, name):
    made = cr.find(name)().fit(data)
    ranking = made.recommend(list(range(30)), k=25)
    alike = [list_similarity(cr.diversify(ranking, made, dial, k=6), made) for dial in (0, 0.4, 1.0)]
    assert alike[0] > alike[1] > alike[2]


def test_mistakes_are_sentences(model, data):
    ranking = model.recommend([1], k=5)
    for dial in (-0.1, 1.1, float("nan"), "0.3", None, True):
        with pytest.raises(cr.CorankError, match="must be a number from 0"):
            cr.diversify(ranking, model, dial)
    with pytest.raises(cr.CorankError, match="k=0"):
        cr.diversify(ranking, model, 0.3, k=0)
    with pytest.raises(cr.CorankError, match="no label 'genre'; did you mean 'genres'"):
        cr.diversify(ranking, model, 0.3, by="genre")
    with pytest.raises(cr.CorankError, match="does not say what is similar"):
        cr.diversify(ranking, ["a", "b"], 0.3)
    with pytest.raises(cr.CorankError, match="one finite vector per item"):
        cr.diversify(ranking, np.zeros((3, 2)), 0.3)
    with pytest.raises(cr.CorankError, match="by= names a label of a model"):
        cr.diversify(ranking, np.zeros((80, 2)), 0.3, by="genres")
    popular = cr.Popularity().fit(data)
    common = popular.recommend([1])
    with pytest.raises(cr.CorankError, match="no notion of similar items"):
        cr.diversify(common, popular, 0.3)
    other = dataclasses.replace(ranking, vocab=cr.from_arrays(user=[1], item=[1]).items)
    with pytest.raises(cr.CorankError, match="give its own model"):
        cr.diversify(other, model, 0.3)


def test_the_command(model, tmp_path, capsys):
    path = str(tmp_path / "m.corank")
    model.save(path)
    assert main(["recommend", path, "--user", "7", "-k", "4", "--diversity", "0.5", "--diversity-by", "genres"]) == 0
    want = cr.diversify(model.recommend([7], k=20), model, 0.5, by="genres", k=4)[7]
    assert [int(line.split()[1]) for line in capsys.readouterr().out.splitlines()[1:]] == [item for item, _ in want]
    assert main(["recommend", path, "--user", "7", "--diversity", "2"]) == 2
    assert main(["recommend", path, "--user", "7", "--diversity-by", "genres"]) == 2
