"""Feedback over HTTP: checked, stored before it is acknowledged, part of the next answer, exported, forgotten."""

from __future__ import annotations

import io

import polars as pl
import pytest

import corank as cr
from corank.cli import main
from service_tools import bearer


def test_feedback_changes_the_next_answer(start):
    running = start("a")
    before = running.items(user=3, k=5)
    answer = running.post("/feedback", {"user": 3, "item": before[0], "event": "like"})
    assert (answer.status_code, answer.json()) == (200, {"accepted": 1})
    after = running.ok("/recommend", user=3, k=5)
    assert before[0] not in [one["item"] for one in after["items"]]
    assert after["events"] == 1
    assert [one["item"] for one in running.ok("/history", user=3)["feedback"]] == [before[0]]


@pytest.mark.parametrize("name", ["a", "b", "letters"])
def test_feedback_of_a_training_user_counts_as_much_as_their_training_rows(start, model_files, name):
    """The answer is that of the library for the training rows continued by the feedback."""
    running, model = start(name), cr.load(model_files / f"{name}.corank")
    user, items = model.users_.ids[3], model.items_.ids[[0, 2, 4]].tolist()
    events = [{"user": str(user), "item": str(item)} for item in items]
    before = {one["item"]: one["score"] for one in running.ok("/recommend", user=user, k=30)["items"]}
    running.post("/feedback", {"events": events})
    after = {one["item"]: one["score"] for one in running.ok("/recommend", user=user, k=30)["items"]}
    trained = model.items_.ids[model.seen_index_[model.seen_indptr_[3] : model.seen_indptr_[4]]].tolist()
    want = model.recommend(histories=[[*trained, *items]], k=30)
    known = want.items[0] >= 0
    ids = model.items_.ids[want.items[0][known]].tolist()
    assert after == pytest.approx(dict(zip(ids, want.scores[0][known].tolist(), strict=True)), rel=1e-4, abs=1e-5)
    assert any(abs(after[item] - before[item]) > 1e-3 for item in after)


def test_enough_feedback_turns_a_user_around(start):
    """User 3 is odd; after every odd item is disliked and even ones are liked, even ones are recommended."""
    running = start("a")
    events = [{"user": 3, "item": item, "event": "purchase"} for item in range(0, 20, 2)]
    assert running.post("/feedback", {"events": events}).json() == {"accepted": 10}
    assert running.items(user=3, k=1)[0] % 2 == 0


@pytest.mark.parametrize("event", ["dislike", "hide"])
def test_what_a_user_dislikes_is_not_recommended_again(start, event):
    running = start("a", "b")
    for model in ("a", "b"):
        first = running.items(user=4, k=3, model=model)[0]
        running.post("/feedback", {"user": 4, "item": first, "event": event})
        assert first not in running.items(user=4, k=30, model=model)
        assert first not in running.items(user=4, k=30, model=model, history="1,3")
    others = running.items(user=6, k=30)
    assert set(others) & {running.items(user=6, k=1)[0]}


def test_a_user_who_is_new_is_known_by_feedback(start):
    running = start("a")
    assert running.get("/recommend", user=1000).status_code == 404
    running.post("/feedback", {"events": [{"user": 1000, "item": item} for item in (2, 4, 6, 8)]})
    answer = running.ok("/recommend", user=1000, k=4)
    assert answer["user"] == 1000
    assert answer["events"] == 4
    assert {one["item"] % 2 for one in answer["items"][:3]} == {0}


def test_feedback_survives_a_restart(start):
    running = start("a")
    running.post("/feedback", {"user": 3, "item": 1, "event": "click"})
    again = start("a")  # another service with the same store
    assert again.ok("/recommend", user=3)["events"] == 1


def test_items_that_no_model_knows_are_kept_for_the_next_fit(start):
    running = start("a")
    answer = running.post("/feedback", {"events": [{"user": 3, "item": 4711}, {"user": 3, "item": 1}]}).json()
    assert answer == {"accepted": 2, "unknown": [4711]}
    assert running.ok("/recommend", user=3)["events"] == 1
    assert "3,4711,1.0," in running.client.get("/feedback", headers=bearer()).text


def test_export_is_a_table(start):
    running = start("a")
    running.post("/feedback", {"user": 3, "item": 1, "event": "rating", "value": 4.5, "time": 1_700_000_000})
    running.post("/feedback", {"user": 5, "item": 2, "event": "dislike", "model": "a"})
    answer = running.client.get("/feedback", headers=bearer())
    assert answer.headers["content-type"].startswith("text/csv")
    table = pl.read_csv(io.BytesIO(answer.content))
    assert table.columns == ["user", "item", "value", "time", "event", "model"]
    assert table.rows()[0] == (3, 1, 4.5, 1_700_000_000, "rating", "a")
    assert table.rows()[1][:3] == (5, 2, 0.0)


def test_forgetting_a_user(start):
    running = start("a")
    running.post("/feedback", {"events": [{"user": 3, "item": 1}, {"user": 4, "item": 2}]})
    assert running.ok("/recommend", user=3)["events"] == 1
    assert running.client.delete("/feedback", params={"user": 3}, headers=bearer()).status_code == 204
    assert running.ok("/recommend", user=3)["events"] == 0
    assert running.ok("/recommend", user=4)["events"] == 1
    assert "3,1," not in running.client.get("/feedback", headers=bearer()).text


def test_an_event_that_is_sent_again_counts_once(start):
    running = start("a")
    for _ in range(3):
        assert running.post("/feedback", {"user": 3, "item": 1, "key": "order-1"}).json() == {"accepted": 1}
    assert running.ok("/recommend", user=3)["events"] == 1


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"user": 3}, "item is missing"),
        ({"user": 3, "item": 1, "event": "lick"}, "event='lick'"),
        ({"user": 3, "item": 1, "event": "rating"}, "a rating has a value"),
        ({"user": 3, "item": 1, "event": "click", "value": 3}, "no other event has one"),
        ({"user": 3, "item": 1, "event": "rating", "value": 1e39}, "it must be at most"),
        ({"user": 3, "item": "x"}, "id 'x' is not an integer"),
        ({"user": 3, "item": 1, "time": -1}, "it must be at least 1"),
        ({"events": []}, "events"),
        ({"events": [{"user": 3, "item": 1}] * 1001}, "events is too long: at most 1,000 are allowed"),
        ({"events": [{"user": 3, "item": 1}, {"user": 3}]}, "events.1.item is missing"),
        ({"user": 3, "item": 1, "key": "a\0b"}, "cannot be stored"),
    ],
)
def test_wrong_feedback_gets_a_sentence_and_nothing_is_stored(start, body, says):
    running = start("a")
    answer = running.post("/feedback", body)
    assert answer.status_code == 422
    assert says in answer.json()["detail"]
    assert running.client.get("/feedback", headers=bearer()).text.count("\n") == 1


def test_text_ids_that_cannot_be_stored(start):
    running = start("letters")
    assert running.post("/feedback", {"user": "a\0b", "item": "x"}).status_code == 422
    body = b'{"user": "\\ud800", "item": "x"}'
    headers = {**bearer(), "content-type": "application/json"}
    assert running.client.post("/feedback", content=body, headers=headers).status_code in (400, 422)
    assert running.post("/feedback", {"user": "Zoë 🎬", "item": "film, 2"}).status_code == 200
    assert running.ok("/recommend", user="Zoë 🎬", k=2)["user"] == "Zoë 🎬"


def test_while_the_store_is_gone_reads_go_on_and_writes_wait(start, tmp_path, monkeypatch):
    monkeypatch.setattr("corank.serve.store.PAUSE", 0.0)
    running = start("a")
    running.post("/feedback", {"user": 3, "item": 1})
    assert running.ok("/recommend", user=3)["events"] == 1
    file = tmp_path / "f.sqlite"
    file.rename(tmp_path / "away")
    answer = running.post("/feedback", {"user": 3, "item": 5})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert "is gone" in answer.json()["detail"]
    stale = running.ok("/recommend", user=3)
    assert stale["stale"] is True
    assert stale["events"] == 1
    assert running.ok("/health/ready") == {"status": "store down"}
    (tmp_path / "away").rename(file)
    assert running.post("/feedback", {"user": 3, "item": 5}).status_code == 200
    assert running.ok("/recommend", user=3)["events"] == 2
    assert "stale" not in running.ok("/recommend", user=3)


def test_clicks_and_impressions_are_counted_per_model(start):
    running = start("a", "b", shares={"b": 0.5})
    arms = {user: running.ok("/recommend", user=user, k=4)["model"] for user in range(40)}
    assert set(arms.values()) == {"a", "b"}
    running.ok("/recommend", user=1, k=4, model="b")  # named: no part of the comparison
    running.ok("/recommend", history="1,2", k=4)
    clicking = next(user for user, arm in arms.items() if arm == "b")
    running.post(
        "/feedback", {"events": [{"user": clicking, "item": 1}, {"user": clicking, "item": 2, "event": "view"}]}
    )
    found = {one["model"]: one for one in running.ok("/stats")["arms"]}
    for name in ("a", "b"):
        assert found[name]["impressions"] == 4 * sum(arm == name for arm in arms.values())
        assert found[name]["share"] == 0.5
    assert (found["a"]["clicks"], found["b"]["clicks"]) == (0, 1)
    assert f'corank_impressions_total{{model="a"}} {found["a"]["impressions"]:.1f}' in running.get("/metrics").text
    # They survive: the service writes them when it stops, and the next one adds to them.
    running.client.__exit__(None, None, None)
    again = {one["model"]: one for one in start("a", "b").ok("/stats")["arms"]}
    assert again["b"]["clicks"] == 1
    assert again["a"]["impressions"] == found["a"]["impressions"]


@pytest.mark.parametrize("path", ["/feedback", "/recommend", "/explain"])
def test_a_body_that_is_not_sent_as_json_is_told_how(start, path):
    """What curl sends without a header."""
    headers = bearer() | {"Content-Type": "application/x-www-form-urlencoded"}
    answer = start().client.post(path, content=b'{"user": 1, "item": 3}', headers=headers)
    assert answer.status_code == 415
    assert answer.json()["detail"] == (
        "the body is sent as 'application/x-www-form-urlencoded': send JSON, with the header "
        "Content-Type: application/json"
    )


def test_exporting_a_store_that_is_not_there_makes_none(tmp_path, capsys):
    assert main(["feedback", str(tmp_path / "typo.sqlite"), "-o", str(tmp_path / "out.csv")]) == 2
    assert "there is no feedback store" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
