"""Reasons, labels and rules over HTTP are those of the library."""

from __future__ import annotations

import pytest

import corank as cr


@pytest.fixture
def service(start, tmp_path):
    table = tmp_path / "items.csv"
    lines = [
        f"{i},Film {i},{'Comedy|Drama' if i % 3 else 'Horror'},{1970 + i},{'yes' if i % 5 else 'no'}" for i in range(30)
    ]
    table.write_text("item,title,genre,year,available\n" + "\n".join(lines) + "\n")
    return start("a", "b", items=str(table))


@pytest.fixture
def model(model_files):
    return cr.load(model_files / "b.corank")


def test_reasons_are_those_of_the_library(service, model):
    answer = service.ok("/explain", user=3, items="1,5", k=3, model="b")
    expected = model.explain(3, items=[1, 5])
    assert answer["kind"] == expected.kind == "exact"
    for one, shares, score in zip(answer["items"], expected.shares(), expected.scores, strict=True):
        assert one["score"] == pytest.approx(score, rel=1e-4)
        strongest = sorted(shares, key=lambda pair: -abs(pair[1]))[:3]
        assert [(r["item"], r["share"]) for r in one["reasons"]] == [
            (item, pytest.approx(share, rel=1e-4)) for item, share in strongest
        ]
    assert answer["items"][0]["title"] == "Film 1"


def test_reasons_add_up_with_a_history(service):
    for model in ("a", "b"):
        answer = service.post("/explain", {"history": [2, 4, 6], "items": [8], "k": 50, "model": model}).json()
        [one] = answer["items"]
        assert sorted(reason["item"] for reason in one["reasons"]) == [2, 4, 6]
        total = sum(reason["contribution"] for reason in one["reasons"]) + sum(one["rest"].values())
        assert total == pytest.approx(one["score"], rel=1e-3, abs=1e-5)
        assert sum(abs(reason["share"]) for reason in one["reasons"]) == pytest.approx(1)


def test_feedback_is_a_reason(service):
    service.post("/feedback", {"user": 3, "item": 12, "event": "like"})
    answer = service.ok("/explain", user=3, items="14", k=50, model="a")
    assert 12 in [reason["item"] for reason in answer["items"][0]["reasons"]]


@pytest.mark.parametrize(
    ("query", "status", "says"),
    [
        ({"user": 3, "items": "4711"}, 404, "unknown item 4711"),
        ({"user": 999, "items": "1"}, 404, "unknown user 999"),
        ({"user": 3}, 422, "items is missing"),
        ({"items": "1"}, 422, "say for whom"),
        ({"user": 3, "items": "1", "k": 1000}, 422, "it must be at most 100"),
    ],
)
def test_wrong_questions_get_a_sentence(service, query, status, says):
    answer = service.get("/explain", **query)
    assert answer.status_code == status
    assert says in answer.json()["detail"]


def test_rules_over_labels(service):
    horror = service.post("/recommend", {"user": 3, "where": {"genre": "Horror"}, "k": 30, "seen": True}).json()
    assert [one["item"] % 3 for one in horror["items"]] == [0] * 10
    assert horror["items"][0]["genre"] == ["Horror"]
    query = '{"year": {"min": 1980, "max": 1985}, "available": true}'
    found = service.ok("/recommend", user=3, where=query, k=30, seen=True)["items"]
    assert sorted(one["item"] for one in found) == [11, 12, 13, 14]
    for where, says in (({"gener": "x"}, "did you mean 'genre'"), ({"year": {"min": "x"}}, "year")):
        answer = service.post("/recommend", {"user": 3, "where": where})
        assert answer.status_code == 422
        assert says in answer.json()["detail"]


def test_a_value_that_no_item_has_is_named_in_the_answer(service):
    """A mistyped genre is an empty list, and the answer says why; the log does not hold it."""
    answer = service.post("/recommend", {"user": 3, "where": {"genre": ["Comdy"]}}).json()
    assert answer["items"] == []
    assert answer["notes"] == ["no item has genre = 'Comdy'; did you mean 'Comedy'?"]
    answer = service.post("/recommend", {"user": 3, "where": {"genre": {"not": "Comdy"}, "year": {"min": 0}}}).json()
    assert len(answer["items"]) == 10
    assert "Comdy" in answer["notes"][0]
    assert "notes" not in service.ok("/recommend", user=3, where='{"genre": "Comedy"}')
    assert "Comdy" not in service.log_text()


def test_models_tell_their_labels(service):
    labels = {one["name"]: one for one in service.ok("/models")["models"][0]["labels"]}
    assert labels["genre"] == {"name": "genre", "kind": "texts", "values": ["Comedy", "Drama", "Horror"]}
    assert labels["year"]["values"] == [1970, 1999]
    assert labels["available"]["kind"] == "flag"


def test_a_table_that_cannot_be_read_is_told_before_anything_listens(start, tmp_path):
    (tmp_path / "items.csv").write_text("item,title\n4711,Nothing\n")
    with pytest.raises(cr.CorankError, match="none of the 1 items of the table is known"):
        start("a", items=str(tmp_path / "items.csv"))
