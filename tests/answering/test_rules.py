"""Rules about items, and recommend with them: equal to filtering the full list by hand."""

from __future__ import annotations

import numpy as np
import pytest

import corank as cr
from corank.answering.rules import allowed_items, parse_where

USERS, ITEMS = 40, 30
GENRES = ["Comedy", "Drama", "Action", "Sci-Fi, Fantasy"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    genres = [list(rng.permutation(GENRES)[: rng.integers(0, 4)]) for _ in range(ITEMS)]
    year = [None if rng.random() < 0.2 else int(y) for y in rng.integers(1980, 2010, ITEMS)]
    return {
        "item": list(range(ITEMS)),
        "genre": genres,
        "year": year,
        "available": [bool(v) for v in rng.random(ITEMS) < 0.6],
        "studio": [None if i % 7 == 0 else f"studio {i % 3}" for i in range(ITEMS)],
        "stock": [i % 2 for i in range(ITEMS)],
    }


@pytest.fixture(scope="module")
def model(table):
    rng = np.random.default_rng(0)
    data = cr.from_arrays(user=rng.integers(0, USERS, 500), item=np.append(rng.integers(0, ITEMS, 470), np.arange(30)))
    return cr.WMF(dim=4, epochs=2).fit(data).with_items(table)


RULES = [
    ({"genre": "Comedy"}, lambda r: "Comedy" in r["genre"]),
    ({"genre": ["Comedy", "Drama"]}, lambda r: {"Comedy", "Drama"} & set(r["genre"])),
    ({"genre": {"not": "Comedy"}}, lambda r: "Comedy" not in r["genre"]),
    ([{"genre": "Comedy"}, {"genre": "Drama"}], lambda r: {"Comedy", "Drama"} <= set(r["genre"])),
    ({"genre": None}, lambda r: not r["genre"]),
    ({"year": (1990, None)}, lambda r: r["year"] is not None and r["year"] >= 1990),
    ({"year": (1990, 1999)}, lambda r: r["year"] is not None and 1990 <= r["year"] <= 1999),
    ({"year": {"max": 1990}}, lambda r: r["year"] is not None and r["year"] <= 1990),
    ({"year": {"min": 1990, "max": None}}, lambda r: r["year"] is not None and r["year"] >= 1990),
    ({"year": {"not": (1990, None)}}, lambda r: r["year"] is None or r["year"] < 1990),
    ({"year": {"not": {"not": (1990, None)}}}, lambda r: r["year"] is not None and r["year"] >= 1990),
    ({"year": None}, lambda r: r["year"] is None),
    ({"year": (None, None)}, lambda r: r["year"] is not None),
    ({"year": []}, lambda r: False),
    ({"available": True}, lambda r: r["available"]),
    ({"available": 0}, lambda r: not r["available"]),
    ({"stock": True}, lambda r: r["stock"] == 1),
    ({"studio": ("studio 1", None)}, lambda r: r["studio"] is not None and r["studio"] >= "studio 1"),
    ({"studio": ["studio 0", None]}, lambda r: r["studio"] in ("studio 0", None)),
    (
        {"genre": "Drama", "year": (1985, np.int64(2005)), "available": np.True_},
        lambda r: "Drama" in r["genre"] and r["year"] is not None and 1985 <= r["year"] <= 2005 and r["available"],
    ),
    ({}, lambda r: True),
]


@pytest.mark.parametrize(("where", "wanted"), RULES, ids=[str(where) for where, _ in RULES])
def test_a_rule_means_what_it_says(model, table, where, wanted):
    rows = [{name: column[i] for name, column in table.items()} for i in range(ITEMS)]
    assert allowed_items(model, where).tolist() == [bool(wanted(row)) for row in rows]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("year>=1990,genre=Comedy", [{"year": {"min": 1990}}, {"genre": "Comedy"}]),
        ("genre = Comedy|Drama", [{"genre": ["Comedy", "Drama"]}]),
        ("genre!=Comedy, available=true", [{"genre": {"not": "Comedy"}}, {"available": True}]),
        ('"genre=Sci-Fi, Fantasy",year<=2000', [{"genre": "Sci-Fi, Fantasy"}, {"year": {"max": 2000}}]),
        ("year>1990,year<2000", [{"year": (1991, 1999)}]),
        ("year=", [{"year": None}]),
        ("stock=yes", [{"stock": True}]),
        ("studio>=studio 1", [{"studio": ("studio 1", None)}]),
    ],
)
def test_rules_as_text(model, text, where):
    np.testing.assert_array_equal(allowed_items(model, parse_where(model, text)), allowed_items(model, where))


@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        ({"genere": "Comedy"}, "no label 'genere'; did you mean 'genre'"),
        ({3: "Comedy"}, "no label 3"),
        ({"year": "1990"}, "'year' has numbers, and '1990' is not a number: write 1990 without quotes"),
        ({"year": True}, "True is not a number"),
        ({"year": float("nan")}, "finite number"),
        ({"year": 10**400}, "finite number"),
        ({"genre": 5}, "5 is not a text: write it in quotes, '5'"),
        ({"available": "yes"}, "'yes' is not True or False"),
        ({"available": 2}, "2 is not True or False"),
        ({"available": (0, 1)}, "which have no order"),
        ({"genre": ("A", "B")}, "which have no order"),
        ({"studio": (1, None)}, "1 is not a text"),
        ({"year": (1, 2, 3)}, "a tuple is a range"),
        ({"year": {"nott": 3}}, "must be {'not': rule}"),
        ({"year": {}}, "must be {'not': rule}"),
        ({"year": [(1, 2)]}, "is not a number"),
        ({"year": {"__class__": 1}}, "must be"),
        ("year>=1990", "not a set of rules"),
        (3, "not a set of rules"),
        ([3], "not a set of rules"),
    ],
)
def test_a_mistake_is_one_sentence(model, where, sentence):
    with pytest.raises(cr.CorankError) as error:
        model.recommend([1], where=where)
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


def test_rules_within_rules_end(model):
    rule = 1990
    for _ in range(100_000):
        rule = {"not": rule}
    with pytest.raises(cr.CorankError, match="rules within each other"):
        model.recommend([1], where={"year": rule})


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("yeer>=1990", "no label 'yeer'; did you mean 'year'"),
        ("year", "'year' is not a rule"),
        (">=3", "is not a rule"),
        ("", "holds no rule"),
        ("year>=ninety", "'ninety' is not one: write a number"),
        ("year>=", "has no value"),
        ("available=maybe", "write true or false"),
        ("genre>A", "use >= or <="),
        ("year=__import__('os')", "is not one"),
    ],
)
def test_a_mistake_in_a_text_is_one_sentence(model, text, sentence):
    with pytest.raises(cr.CorankError) as error:
        parse_where(model, text)
    assert sentence in str(error.value)


def test_a_text_that_no_item_has_is_reported(model, caplog):
    assert model.recommend([1], where={"genre": "Comdey"})[1] == []
    assert "no item has genre = 'Comdey'; did you mean 'Comedy'?" in caplog.text


def test_without_labels_the_remedy_is_named():
    model = cr.Popularity().fit(cr.from_arrays(user=[1, 2], item=[1, 2]))
    with pytest.raises(cr.CorankError, match=r"no labels.*with_items.*--items"):
        model.recommend([1], where={"year": 3})


def test_titles_are_a_label():
    table = {"item": [1, 2], "title": ["Heat", "Alien"]}
    model = cr.Popularity().fit(cr.from_arrays(user=[1, 2], item=[1, 2])).with_items(table)
    assert [item for item, _ in model.recommend([1], where={"title": "Alien"})[1]] == [2]


# ---- recommend ---------------------------------------------------------------------------------------------------


def by_hand(model, user, k, allowed):
    """The k best items of a user that are allowed, from the list of all items."""
    full = model.recommend([user], k=ITEMS)[user]
    return [item for item, _ in full if item in allowed][:k]


def test_rules_are_applied_before_the_top_k(model):
    where = {"genre": "Comedy", "year": (1985, None)}
    allowed = set(np.flatnonzero(allowed_items(model, where)).tolist())
    ranking = model.recommend(k=4, where=where)
    for user, row in ranking:
        assert [item for item, _ in row] == by_hand(model, user, 4, allowed)
    assert any(len(row) == 4 for _, row in ranking)


def test_candidates_exclusions_and_rules_together(model):
    rng = np.random.default_rng(1)
    users = model.users_.ids.tolist()
    where = {"available": True}
    fits = set(np.flatnonzero(allowed_items(model, where)).tolist())
    own = {user: rng.permutation(ITEMS)[:15].tolist() for user in users}
    without = {user: rng.permutation(ITEMS)[:8].tolist() for user in users[::2]}
    ranking = model.recommend(users, k=5, items=own, exclude=without, where=where)
    for user, row in ranking:
        allowed = (set(own[user]) & fits) - set(without.get(user, []))
        assert [item for item, _ in row] == by_hand(model, user, 5, allowed)
    shared = model.recommend(users, k=5, items=own[users[0]], exclude=without[users[0]], where=where)
    for user, row in shared:
        assert [i for i, _ in row] == by_hand(model, user, 5, (set(own[users[0]]) & fits) - set(without[users[0]]))


def test_exclusions_in_any_form(model):
    full = [item for item, _ in model.recommend([5], k=ITEMS)[5]]
    assert [i for i, _ in model.recommend([5], k=3, exclude=full[:2])[5]] == full[2:5]
    assert [i for i, _ in model.recommend([5], k=3, exclude=full[0])[5]] == full[1:4]
    assert [i for i, _ in model.recommend([5, 6], k=3, exclude=[full[:1], ()])[5]] == full[1:4]
    assert [i for i, _ in model.recommend([5], k=3, exclude={5: np.array(full[:1])})[5]] == full[1:4]
    assert [i for i, _ in model.recommend([5], k=3, exclude={6: full[:1]})[5]] == full[:3]
    assert [i for i, _ in model.recommend([5], k=3, exclude=[4711, "x"])[5]] == full[:3]  # unknown: ignored
    assert [i for i, _ in model.recommend([5], k=3, exclude=[])[5]] == full[:3]
    history = model.recommend(histories={"ann": [1, 2]}, k=3, exclude={"ann": [3]}, where={"year": (1985, None)})
    assert not {1, 2, 3} & {item for item, _ in history["ann"]}


def test_exclusions_that_do_not_fit_are_a_sentence(model):
    with pytest.raises(cr.CorankError, match="exclude= has 3 lists for 1 users"):
        model.recommend([5], exclude=[[1], [2], [3]])
    with pytest.raises(cr.CorankError, match="exclude= mixes ids and lists"):
        model.recommend([5], exclude=[1, [2]])


def test_nothing_allowed_is_an_empty_list(model):
    assert model.recommend([5], exclude=list(range(ITEMS)))[5] == []


# ---- the item table of a model ------------------------------------------------------------------------------------


def test_attaching_returns_a_new_model(model, caplog):
    plain = cr.Popularity().fit(cr.from_arrays(user=[1, 1, 2], item=[10, 20, 30]))
    one = plain.with_items({"item": ["30", "10", "99"], "year": [3, 1, 9], "title": ["C", "A", "Z"]})
    assert "1 of 3 items of the model are not in the item table" in caplog.text
    assert not plain.labels_
    assert not plain.titles_
    assert one.labels_.columns["year"].listed() == [1, None, 3]  # "30" and 30 are the same id
    assert one.titles_ == ["A", "", "C"]
    again = one.with_items({"item": [30, 10, 99], "2": [3, 1, 9], "3": [4, 4, 4]})
    assert set(again.labels_.columns) == {*one.labels_.columns, "3"}  # "2" says what "year" says already
    two = one.with_items({"item": [20], "price": [5]})
    assert two.labels_.columns.keys() == {"year", "price"}
    assert two.titles_ == one.titles_
    with pytest.raises(cr.CorankError, match="none of the 1 items of the table is known"):
        one.with_items({"item": [77], "price": [5]})
    with pytest.raises(cr.NotFitted):
        cr.Popularity().with_items({"item": [77], "price": [5]})


def test_labels_of_the_data_are_kept_and_saved(tmp_path):
    labels = {"title": ["A", "B"], "genres": np.array(["X|Y", ""], object), "year": np.array([1990, 2000])}
    data = cr.from_arrays(user=[1, 2], item=[1, 2], item_labels=labels)
    model = cr.Popularity().fit(data)
    model.save(tmp_path / "m.corank")
    again = cr.load(tmp_path / "m.corank")
    assert again.labels_ == model.labels_
    assert again.labels_.columns.keys() == {"genres", "year"}
    assert [i for i, _ in again.recommend([2], where={"genres": "Y"})[2]] == [1]
