"""Recommendations over HTTP are those of the library; wrong requests get its sentences."""

from __future__ import annotations

import asyncio

import httpx
import numpy as np
import pytest

import corank as cr
from corank.answering.diversity import recommend_diverse
from corank.serve.app import make_app
from corank.serve.logs import Log
from corank.serve.service import Service
from corank.serve.settings import Settings


@pytest.fixture
def service(start):
    return start("a", "b", "letters")


@pytest.fixture
def model(model_files):
    return cr.load(model_files / "a.corank")


def test_a_user_gets_what_the_library_recommends(service, model):
    answer = service.ok("/recommend", user=3, k=5)
    [(user, expected)] = list(model.recommend([3], k=5))
    assert answer["model"] == "a"
    assert answer["user"] == user
    assert [one["item"] for one in answer["items"]] == [item for item, _ in expected]
    np.testing.assert_allclose([one["score"] for one in answer["items"]], [s for _, s in expected], rtol=1e-4)
    assert answer["items"][0]["title"] == f"Odd Film {expected[0][0]}"


def test_a_history_gets_what_the_library_recommends(service, model):
    [(_, expected)] = list(model.recommend(histories=[[2, 4, 6]], k=4))
    assert service.items(history="2,4,6", k=4) == [item for item, _ in expected]
    assert service.items(history=["2", "4", "6"], k=4) == [item for item, _ in expected]
    body = service.post("/recommend", {"history": [2, {"item": 4, "value": 1.0}, 6], "k": 4}, token=None)
    assert [one["item"] for one in body.json()["items"]] == [item for item, _ in expected]


@pytest.mark.parametrize("wrong", [{"k": "5"}, {"k": True}, {"seen": 1}, {"history": [{"item": 2, "value": True}]}])
def test_json_has_types(service, wrong):
    """A text or true is no number, as the description says; in an address all values are texts."""
    answer = service.post("/recommend", {"history": [2], **wrong}, token=None)
    assert answer.status_code == 422
    assert "it must be" in answer.json()["detail"]


def test_a_user_with_newer_events(service, model):
    """Three new even items turn an odd user around, and are not recommended themselves."""
    before = service.items(user=3, k=10)
    after = service.items(user=3, k=10, history="0,2,4,6,8,10,12,14,16")
    assert before != after
    assert not set(after) & {0, 2, 4, 6, 8, 10, 12, 14, 16}
    assert sum(item % 2 == 0 for item in after[:4]) >= 2


def test_ids_that_are_texts_may_hold_commas(service):
    whole = service.ok("/recommend", model="letters", history="film, 2", k=3)
    assert whole["events"] == 1
    two = service.ok("/recommend", model="letters", history=["film, 2", "film, 4"], k=3)
    assert two["events"] == 2


def test_the_length_of_a_list_does_not_change_its_beginning(service):
    longest = service.items(user=7, k=30, seen=True)
    assert len(longest) == 30
    for k in (1, 9, 10, 11, 21):
        assert service.items(user=7, k=k, seen=True) == longest[:k]


def test_rules(service):
    allowed = [1, 3, 5, 7]
    answer = service.items(user=3, items="1,3,5,7", seen=True)
    assert sorted(answer) == allowed
    assert 1 not in service.items(user=3, k=30, exclude=["1"], seen=True)
    assert sorted(service.post("/recommend", {"user": 3, "items": allowed, "seen": True}).json()["items"][0]) == [
        "item",
        "score",
        "title",
    ]


def test_unknown_items_of_a_history_are_named_not_logged(service):
    answer = service.ok("/recommend", history="2,4711", k=3)
    assert answer["skipped"] == ["4711"]
    assert answer["events"] == 1
    assert "4711" not in service.log_text()


@pytest.mark.parametrize(
    ("query", "status", "says"),
    [
        ({"user": 999}, 404, "unknown user 999: it is not among the 40 users the data has"),
        ({"history": "4711"}, 404, "unknown item 4711: it is not among the 30 items the data has"),
        ({"user": "ann"}, 422, "id 'ann' is not an integer, and the ids of this data are integers"),
        ({"user": 1, "k": 0}, 422, "k='0': it must be at least 1"),
        ({"user": 1, "k": 1001}, 422, "k='1001': it must be at most 1,000"),
        ({"user": 1, "k": "many"}, 422, "k='many': it must be a whole number"),
        ({}, 422, "say for whom: give user, history or both"),
        ({"usr": 1}, 422, "there is no 'usr'; did you mean 'user'?"),
        ({"user": 1, "model": "c"}, 404, "there is no model 'c'"),
        ({"user": 1, "items": "1,4711"}, 422, "unknown item 4711"),
        ({"user": 1, "where": "genre"}, 422, "where='genre' is not a JSON object"),
        ({"user": 1, "diversity": 2}, 422, "diversity='2': it must be at most 1"),
        ({"history": ",".join(["1"] * 1001)}, 422, "a list of 1,001 ids: at most 1,000 are allowed"),
        ({"user": "9" * 30}, 422, "is not the id of a user"),
    ],
)
def test_wrong_requests_get_a_sentence(service, query, status, says):
    answer = service.get("/recommend", **query)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    document = answer.json()
    assert says in document["detail"]
    assert document["status"] == status
    assert document["request"] == answer.headers["x-request-id"]


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ({"user": 1, "k": 0}, 422, "k=0: it must be at least 1"),
        ({"user": 1.5}, 422, "user=1.5: it must be a whole number or a text"),
        ({"user": True}, 422, "user=True"),
        ({"history": [1] * 1001}, 422, "history is too long: at most 1,000 are allowed"),
        ({"history": [{"item": 1, "value": "high"}]}, 422, "history.0.value='high'"),
        ({"user": 1, "kk": 3}, 422, "there is no 'kk'; did you mean 'k'?"),
        ({"history": [1.5]}, 422, "history.0=1.5: it must be a whole number or a text or an object"),
        ([], 422, "the body=[]: it must be an object"),
    ],
)
def test_wrong_bodies_get_a_sentence(service, body, status, says):
    answer = service.post("/recommend", body, token=None)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert says in answer.json()["detail"]


def test_a_body_that_is_not_json(service):
    answer = service.client.post("/recommend", content=b"{user", headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["detail"]) == (400, "the body is not JSON")


def test_both_ways_to_ask_agree(service, start):
    """GET /recommend does not pass the framework, unless pages of another origin may ask."""
    origin = "https://shop.example"
    query = {"user": 5, "k": 4, "items": "1,3,5,7,9,11,13,15,17,19", "history": ["2", "4"]}
    fast, slow = service.get("/recommend", **query), start("a", origins=(origin,)).get("/recommend", **query)
    assert fast.json() == slow.json()
    body = service.post("/recommend", {**query, "items": list(range(1, 20, 2)), "history": [2, 4]}, token=None)
    assert fast.json() == body.json()
    for wrong in ({"user": 1, "k": 0}, {"usr": 1}, {"user": 999}, {"user": "x"}, {}):
        one, other = service.get("/recommend", **wrong), start("a", origins=(origin,)).get("/recommend", **wrong)
        assert (one.status_code, one.json()["detail"]) == (other.status_code, other.json()["detail"])


def test_similar_items(service, model):
    answer = service.ok("/similar", item=4, k=3)
    [(item, expected)] = list(model.similar_items([4], k=3))
    assert answer["item"] == {"item": item, "title": "Even Film 4"}
    assert [one["item"] for one in answer["items"]] == [item for item, _ in expected]
    assert service.get("/similar", item=99).status_code == 404
    assert service.get("/similar", item="x").status_code == 404


def test_search(service):
    found = service.ok("/items", q="even film 1", k=5)["items"]
    assert [one["title"] for one in found] == [f"Even Film {i}" for i in _popular(found)]
    assert service.ok("/items", q="12")["items"][0]["item"] == 12
    assert len(service.ok("/items")["items"]) == 10
    assert service.ok("/items", q="no such film")["items"] == []
    assert [one["user"] for one in service.ok("/users", q="3")["users"]] == [3, *range(30, 40)][:10]
    assert [one["user"] for one in service.ok("/users", q="u3", model="letters", k=2)["users"]] == ["u3", "u30"]
    assert service.get("/items", k=101).status_code == 422


def _popular(found):
    return [one["item"] for one in sorted(found, key=lambda one: -one["rows"])]


def test_search_by_words_in_any_order(service):
    assert [one["title"] for one in service.ok("/items", q="film, even 12")["items"]] == ["Even Film 12"]
    assert service.ok("/items", q="film nothing")["items"] == []


def test_history_of_a_user(service, model):
    answer = service.ok("/history", user=3)
    at = model.seen_indptr_
    assert sorted(one["item"] for one in answer["trained"]) == model.seen_index_[at[3] : at[4]].tolist()
    assert answer["feedback"] == []


def test_requests_that_arrive_together_are_scored_together(model_files, model):
    """64 clients at once: far fewer calls than requests, each answer its own, and the event loop stays free."""
    service = Service(Settings(models={"a": str(model_files / "a.corank")}), Log(requests=False))
    app, calls = make_app(service), []

    async def ask() -> list[httpx.Response]:
        await service.start()
        served = service.registry.models["a"]
        inner = served.lane._answer
        served.lane._answer = lambda batch: calls.append(len(batch)) or inner(batch)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            jobs = [client.get("/recommend", params={"user": n % 50, "k": 1 + n % 7}) for n in range(64)]
            answers = await asyncio.gather(*jobs)
        await service.stop()
        return answers

    answers = asyncio.run(ask())
    assert sum(calls) == 64
    assert len(calls) < 32
    expected = model.recommend(k=7)
    for n, answer in enumerate(answers):
        if n % 50 >= 40:
            assert answer.status_code == 404
        else:
            items = [one["item"] for one in answer.json()["items"]]
            assert items == [item for item, _ in expected[n % 50]][: 1 + n % 7]


def test_one_request_that_fails_does_not_cost_the_others(start, monkeypatch):
    """A defect in the call for a batch: each request is asked again alone, and only the culprit fails."""
    running = start("a")
    answerer = running.service.registry.models["a"].answerer
    real = answerer._ranked

    def failing(group, width, asked):
        if any(one.user == 5 for one in group):
            raise RuntimeError("a defect about user 5")
        return real(group, width, asked)

    monkeypatch.setattr(answerer, "_ranked", failing)
    from corank.serve.answers import Asked

    good, bad, other = answerer([Asked(user="3"), Asked(user="5"), Asked(user="4")])
    assert good.codes
    assert other.codes
    assert isinstance(bad, RuntimeError)
    answer = running.get("/recommend", user=5)
    assert answer.status_code == 500
    assert "user 5" not in answer.text
    failure = next(line for line in running.log() if line["event"] == "failure")
    assert failure["error"] == "RuntimeError"
    assert any("failing" in place for place in failure["where"])


@pytest.mark.parametrize("name", ["a", "b"])
def test_diversity_is_that_of_the_library(start, model_files, name):
    service, model = start(name), cr.load(model_files / f"{name}.corank")
    plain = service.items(user=1, k=6)
    diverse = service.items(user=1, k=6, diversity=1)
    assert diverse != plain
    assert diverse == [item for item, _ in recommend_diverse(model, 1.0, users=[1], k=6)[1]]
    assert service.items(user=1, k=6, diversity=0) == plain
    refused = service.get("/recommend", user=1, k=101, diversity=0.5)
    assert refused.status_code == 422
    assert refused.json()["detail"] == "k=101: with diversity, a list has at most 100 items"
