"""The base class: what it does for a model that brings nothing but scores."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest

import corank as cr
from corank.answering import ranking as ranking_module
from corank.answering.inference import listed
from corank.params import param
from corank.stored import floats


@dataclass(kw_only=True, eq=False)
class Table(cr.Model):
    """Scores written down in advance: user u likes item i by (7 u + 3 i) mod 11."""

    epochs: int = param(3, "how often it pretends to learn", low=1)
    broken: bool = param(False, "learn a number that is none")

    def _fit(self, data, rows, training):
        u, i = np.ogrid[: len(data.users), : len(data.items)]
        self.table_ = ((7 * u + 3 * i) % 11).astype(np.float32)
        if self.broken:
            self.table_[0, 0] = np.nan
        for epoch in training.epochs():
            training.report(objective=1 / epoch)

    def _stores(self):
        return super()._stores() | {"table_": floats("users", "items")}

    def _score(self, users):
        return self.table_[users]

    def _score_histories(self, histories):
        return np.stack([self.table_[int(histories.index[a]) % 5] for a in histories.indptr[:-1]])


@pytest.fixture
def data():
    return cr.from_arrays(user=np.repeat(np.arange(9), 2), item=np.tile([0, 4], 9) + np.repeat(np.arange(9), 2) % 3)


@pytest.fixture
def model(data):
    return Table().fit(data)


def test_ranks_by_score_without_the_seen_items(data, model):
    for user, row in model.recommend(k=3):
        left = [i for i in range(len(data.items)) if i not in data.item[data.user == user]]
        want = sorted(left, key=lambda i: (-((7 * user + 3 * i) % 11), i))[:3]
        assert [data.items.ids[i] for i in want] == [item for item, _ in row]


def test_blocks_change_nothing(model, monkeypatch):
    whole = model.recommend(k=4)
    monkeypatch.setattr(ranking_module, "BLOCK_BYTES", 1)
    parts = model.recommend(k=4)
    np.testing.assert_array_equal(parts.items, whole.items)


def test_scores_are_asked_for_in_blocks(monkeypatch):
    rows = 100
    data = cr.from_arrays(user=np.arange(rows), item=np.arange(rows) % 50)
    model = Table().fit(data)
    asked = []
    score = Table._score
    monkeypatch.setattr(Table, "_score", lambda self, users: asked.append(users.size) or score(self, users))
    monkeypatch.setattr(ranking_module, "BLOCK_BYTES", 50 * 4 * 20)
    whole = model.recommend(k=2)
    assert asked == [20] * 5
    pairs = model.predict(np.arange(rows)[::-1], np.arange(rows) % 50)
    assert max(asked) <= 20
    np.testing.assert_array_equal(pairs, [(7 * u + 3 * (i % 50)) % 11 for i, u in enumerate(range(rows - 1, -1, -1))])
    assert len(whole) == rows


def test_predict_by_default_reads_the_scores(model):
    users, items = [3, 1, 3, 0], [5, 0, 2, 6]
    codes = [model.items_.ids.tolist().index(i) for i in items]
    want = [(7 * u + 3 * i) % 11 for u, i in zip(users, codes, strict=True)]
    np.testing.assert_array_equal(model.predict(users, items), want)


def test_no_similarity_without_vectors(model):
    with pytest.raises(cr.CorankError, match="no notion of similar items"):
        model.similar_items([0])


def test_similarity_of_vectors_is_the_cosine(model, monkeypatch):
    n = len(model.items_)
    angles = np.linspace(0, 1, n)
    model.item_factors_ = (np.stack([np.cos(angles), np.sin(angles)], 1) * np.arange(1, n + 1)[:, None]).astype(
        np.float32
    )
    ranking = model.similar_items([model.items_.ids[0]], k=2)
    assert ranking.items.tolist() == [[1, 2]]
    np.testing.assert_allclose(ranking.scores[0], np.cos(angles[1:3]), rtol=1e-5)


def test_a_zero_vector_is_similar_to_nothing_and_no_nan(model):
    model.item_factors_ = np.zeros((len(model.items_), 2), np.float32)
    assert (model.similar_items([0], k=2).scores == 0).all()


def test_nan_in_what_was_learned_is_an_error(data):
    model = Table(broken=True)
    with pytest.raises(cr.CorankError, match="NaN or infinity in table"):
        model.fit(data)
    with pytest.raises(cr.NotFitted):
        model.recommend()


def test_nan_objective_stops_at_once(data):
    model = Table()
    model._fit = lambda data, rows, training: [training.report(objective=float("nan")) for _ in training.epochs()]
    with pytest.raises(cr.CorankError, match="objective is nan after epoch 1"):
        model.fit(data)


def test_refit_forgets_what_only_the_old_data_taught(data, model):
    model.extra_ = 1
    model.fit(data)
    assert not hasattr(model, "extra_")


def test_bad_parameter_is_seen_before_any_work(data):
    with pytest.raises(cr.CorankError, match=r"Table\(epochs=0\): epochs must be at least 1"):
        Table(epochs=0).fit(data)


def test_epochs_are_logged_not_printed(data, caplog, capsys):
    with caplog.at_level("INFO", logger="corank"):
        Table(epochs=2).fit(data)
    assert [r.name for r in caplog.records] == ["corank"] * 2
    assert capsys.readouterr() == ("", "")


def test_titles_are_remembered(data):
    import dataclasses

    titles = np.array([f"film {i}" for i in data.items.ids], dtype=object)
    model = Table().fit(dataclasses.replace(data, item_labels={"title": titles}))
    assert model.titles_ == titles.tolist()


def test_history_names(model):
    assert model.recommend(histories=[[0], [4]]).users.tolist() == [0, 1]
    assert model.recommend(histories={"x": [0], "y": [4]}).users.tolist() == ["x", "y"]
    assert model.recommend(histories={30: [0], 10: [4]}).users.tolist() == [30, 10]
    with pytest.raises(cr.CorankError, match="history"):
        model.recommend(histories={("a", 1): [0]})


@pytest.mark.parametrize(
    ("given", "wanted"),
    [(3, [3]), ("abc", ["abc"]), (np.int64(3), [3]), ([3, 4], [3, 4]), ((3,), [3]), (np.array([1, 2]), [1, 2])],
)
def test_one_or_many(given, wanted):
    assert listed(given) == wanted


def test_available_lists_the_files():
    assert {"als", "ease", "item_knn", "popularity", "wmf"} <= set(cr.available())
    assert cr.available() == sorted(cr.available())
    assert not any(name.startswith("_") for name in cr.available())


def test_find_suggests_the_near_name():
    with pytest.raises(cr.CorankError, match="did you mean 'item_knn'"):
        cr.find("item_knm")
    with pytest.raises(cr.CorankError, match="known: als, "):
        cr.find("zzzzzz")
    with pytest.raises(cr.CorankError, match="no model 'os'"):
        cr.find("os")


# ---- what is wrong at the door -----------------------------------------------------------------------------------


def test_fit_of_what_is_no_dataset_says_how_to_make_one(data):
    frame = pl.DataFrame({"user": [1, 2], "item": [3, 4]})
    with pytest.raises(cr.CorankError, match=r"fit takes a dataset and got a DataFrame: make one with from_frame\("):
        Table().fit(frame)
    split = cr.holdout(data)
    with pytest.raises(cr.CorankError, match=r"fit takes a dataset and got a Split: pass .* split\.train"):
        Table().fit(split)
    with pytest.raises(cr.CorankError, match="valid= takes a dataset and got a Split"):
        Table().fit(data, valid=split)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 1e300, 10**400, "five", None])
def test_a_value_of_a_history_is_a_finite_number(model, wrong):
    with pytest.raises(cr.CorankError, match=re.escape(f"a history holds the value {wrong!r}: the values")):
        model.recommend(histories=[{0: wrong}])


@pytest.mark.parametrize("wrong", [5, 2.5, iter([[0]])])
def test_histories_that_are_none_are_a_sentence(model, wrong):
    with pytest.raises(cr.CorankError, match="is not a list of histories: give"):
        model.recommend(histories=wrong)


def test_users_that_are_no_ids_are_a_sentence(data, model):
    for wrong in (2.5, data):
        with pytest.raises(cr.CorankError, match="is not an id or a list of ids"):
            model.recommend(wrong)


# ---- users of whom nothing is known ------------------------------------------------------------------------------

ROWS = {"user": [0, 0, 1, 1, 2, 3], "item": [5, 7, 7, 8, 7, 8], "value": [1, 2, 1, 2, 1, 2]}  # 7 thrice, 8 twice, 5


@pytest.mark.parametrize("name", ["ease", "item_knn", "wmf"])
def test_nothing_known_is_answered_by_popularity(name):
    data = cr.from_arrays(**ROWS)
    model = cr.find(name)().fit(data)
    empty, one = model.recommend(histories=[[], [5]], k=3)
    assert empty[1] == [(7, 3.0), (8, 2.0), (5, 1.0)]
    assert dict(one[1]) == pytest.approx(dict(model.recommend(histories=[[5]], k=3)[0]), rel=1e-5)
    trained = cr.find(name)().fit(data.take(data.user != 3))
    assert [item for item, _ in trained.recommend([3])[3]] == [7, 5, 8]
    assert len(model.recommend(histories=[[]], items=[5])[0]) == 1


def test_a_model_with_an_answer_of_its_own_keeps_it(data, monkeypatch):
    own = np.arange(len(data.items), dtype=np.float32)[None]
    monkeypatch.setattr(Table, "_score_histories", lambda self, histories: np.repeat(own, histories.rows, axis=0))
    assert [s for _, s in Table().fit(data).recommend(histories=[[]], k=2)[0]] == own[0, ::-1][:2].tolist()
