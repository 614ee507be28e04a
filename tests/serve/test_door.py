"""Who may do what, what is refused at the door, and what the log and the headers say."""

from __future__ import annotations

import hmac
import json

import pytest

import corank as cr
from corank.cli.parser import parse
from corank.cli.serve import settings_of
from corank.serve.settings import Settings, read_token
from service_tools import TOKEN, bearer

WRITES = [
    ("POST", "/feedback", {"user": 1, "item": 2}),
    ("DELETE", "/feedback?user=1", None),
    ("GET", "/feedback", None),
    ("PUT", "/models/a", {"file": "b.corank"}),
    ("DELETE", "/models/a", None),
]


@pytest.mark.parametrize(("method", "path", "body"), WRITES)
def test_without_a_token_file_nothing_can_be_written(start, method, path, body):
    running = start("a", writable=False)
    for headers in ({}, bearer(), bearer("")):
        answer = running.client.request(method, path, json=body, headers=headers)
        assert answer.status_code == 403
        assert "read-only" in answer.json()["detail"]
    assert running.ok("/recommend", user=1)["items"]


@pytest.mark.parametrize(("method", "path", "body"), WRITES)
@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer ", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}"],
)
def test_a_wrong_token_is_refused(start, method, path, body, header):
    running = start("a")
    headers = {} if header is None else {"Authorization": header}
    answer = running.client.request(method, path, json=body, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert TOKEN not in running.log_text() + answer.text


def test_tokens_are_compared_in_constant_time(start, monkeypatch):
    compared = []
    real = hmac.compare_digest
    monkeypatch.setattr("corank.serve.door.hmac.compare_digest", lambda a, b: compared.append((a, b)) or real(a, b))
    start("a").post("/feedback", {"user": 1, "item": 2}, token="guess")
    assert compared == [(b"guess", TOKEN.encode())]


def test_on_other_addresses_reading_needs_the_token_too(start):
    running = start("a", host="0.0.0.0")
    assert running.get("/recommend", user=1).status_code == 401
    assert running.get("/metrics").status_code == 401
    assert running.client.get("/recommend?user=1", headers=bearer()).status_code == 200
    assert running.get("/health/ready").status_code == 200
    assert start("a", host="0.0.0.0", open_reads=True).get("/recommend", user=1).status_code == 200


def test_other_names_than_that_of_this_machine_are_refused(start):
    """A page elsewhere that gives its own name this machine's address must not be able to read."""
    running = start("a", hosts=("shop.internal",))
    for host, status in (
        ("localhost:8000", 200),
        ("127.0.0.1", 200),
        ("[::1]:8000", 200),
        ("shop.internal", 200),
        ("evil.example", 421),
        ("localhost.evil.example:80", 421),
        ("", 421),
    ):
        assert running.client.get("/recommend?user=1", headers={"Host": host}).status_code == status, host


def test_headers(start):
    running = start("a")
    for path in ("/recommend?user=1", "/models", "/nothing", "/recommend"):
        headers = running.client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "no-referrer"
        assert "server" not in headers
        assert "access-control-allow-origin" not in headers
    policy = running.client.get("/models").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    given = running.client.get("/models", headers={"X-Request-ID": "trace-1"})
    assert given.headers["x-request-id"] == "trace-1"
    odd = running.client.get("/models", headers={"X-Request-ID": "a b\x7f"})
    assert odd.headers["x-request-id"] != "a b\x7f"


def test_other_origins_only_where_they_are_named(start):
    shop, evil = {"Origin": "https://shop.example"}, {"Origin": "https://evil.example"}
    running = start("a", origins=("https://shop.example",))
    assert running.client.get("/recommend?user=1", headers=shop).headers["access-control-allow-origin"]
    assert "access-control-allow-origin" not in running.client.get("/recommend?user=1", headers=evil).headers
    asked = {**shop, "Access-Control-Request-Method": "POST"}
    asked["Access-Control-Request-Headers"] = "authorization,content-type"
    for other in (running, start("a", host="0.0.0.0", origins=("https://shop.example",))):  # no token comes with it
        assert other.client.options("/feedback", headers=asked).status_code == 200
        assert other.client.options("/recommend", headers=asked).status_code == 200
    refused = running.client.options("/recommend", headers={**evil, "Access-Control-Request-Method": "POST"})
    assert "access-control-allow-origin" not in refused.headers


def test_bodies_that_are_too_large_are_refused(start):
    running = start("a")
    large = {"history": [1], "where": {"genre": "x" * 1_000_001}}
    answer = running.post("/recommend", large)
    assert answer.status_code == 413
    assert "larger than 1,000,000 bytes" in answer.json()["detail"]

    def pieces():
        for _ in range(200):
            yield b" " * 10_000

    headers = {"content-type": "application/json"}
    assert running.client.post("/recommend", content=pieces(), headers=headers).status_code == 413


def test_the_log_holds_no_users_items_or_tokens(start):
    running = start("letters")
    running.ok("/recommend", user="u17", k=3)
    running.get("/recommend", user="nobody-known")
    running.ok("/recommend", history="film, 2")
    running.ok("/recommend", history=["film, 2", "no-such-film"])
    running.post("/recommend", {"user": "u17", "history": ["film, 4", "film, 6"]})
    running.post("/feedback", {"user": "u17", "item": "film, 2"})
    running.ok("/similar", item="film, 2")
    running.get("/models/secret-path/x")
    text = running.log_text()
    for secret in ("u17", "film", "nobody-known", TOKEN, "secret-path"):
        assert secret not in text
    lines = [line for line in running.log() if line["event"] == "request"]
    assert [line["route"] for line in lines[:2]] == ["/recommend", "/recommend"]
    assert {line["status"] for line in lines} == {200, 404}
    assert all(line["ms"] >= 0 for line in lines)


def test_no_such_address_or_method(start):
    running = start("a")
    for method, path, status in (("GET", "/nothing", 404), ("DELETE", "/recommend", 405), ("POST", "/models", 405)):
        answer = running.client.request(method, path, headers=bearer())
        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert running.client.patch("/recommend", headers=bearer()).headers["allow"]


def test_metrics_and_health(start):
    running = start("a")
    for _ in range(20):
        running.ok("/recommend", user=1)
    text = running.get("/metrics").text
    assert 'corank_requests_total{route="/recommend",status="200"} 20.0' in text
    assert 'corank_recent_seconds{quantile="0.99"}' in text
    assert "corank_batch_size_count" in text
    assert "process_resident_memory_bytes" in text
    assert running.ok("/health/live") == {"status": "ok"}
    assert running.ok("/health/ready") == {"status": "ok"}
    running.service.ready = False
    assert running.get("/health/ready").status_code == 503


def test_the_description_names_every_address(start):
    described = start("a").ok("/openapi.json")
    named = ("recommend", "similar", "feedback", "items", "users", "models", "models/{name}", "health/live", "metrics")
    assert {f"/{name}" for name in named} <= set(described["paths"])
    query = {one["name"] for one in described["paths"]["/recommend"]["get"]["parameters"]}
    assert {"user", "history", "k", "exclude", "items", "where", "model", "diversity"} <= query
    assert described["paths"]["/feedback"]["post"]["security"] == [{"token": []}]
    assert "HTTPValidationError" not in json.dumps(described)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--host", "0.0.0.0"], "can be reached from other machines: give --token-file"),
        (["--port", "70000"], "a port is a number from 0 to 65,535"),
        (["--model", "b c=x.corank"], "cannot be the name of a model"),
        (["--model", "a=x.corank"], "two models are called 'a'"),
        (["--share", "b=0.5"], "a share is given to 'b'"),
        (["--share", "half"], "write NAME=SHARE"),
        (["--share", "a=0.5"], "a share is given to a, the default model"),
        (["--model", "b=x", "--share", "b=2"], "a share of the users is between 0 and 1"),
        (["--store", "x.sqlite"], "without a token nothing can be written"),
        (["--cors", "*"], "name an origin"),
        (["--workers", "0"], "it must be between 1 and 256"),
        (["--connections", "0"], "--connections 0: it must be at least 1"),
    ],
)
def test_wrong_settings_get_a_sentence(words, says):
    args = parse(["serve", "a.corank", *words])
    with pytest.raises(cr.CorankError, match=says):
        settings_of(args).check()


def test_settings_travel_to_workers():
    args = parse(
        ["serve", "a.corank", "--model", "b=c.corank", "--share", "b=0.5", "--allow-host", "x", "--workers", "2"]
    )
    settings = settings_of(args)
    assert Settings.from_json(settings.to_json()) == settings


@pytest.mark.parametrize("text", ["", "short", "two words that are long enough", "ümlaut-ümlaut-ümlaut"])
def test_weak_tokens_are_refused(tmp_path, text):
    (tmp_path / "token").write_text(text)
    with pytest.raises(cr.CorankError, match="one word of at least 16"):
        read_token(str(tmp_path / "token"))
    with pytest.raises(cr.CorankError, match="cannot read the token file"):
        read_token(str(tmp_path / "nothing"))


def test_without_the_extra_the_command_says_what_to_type(monkeypatch):
    import importlib.util

    from corank.cli import main

    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "fastapi" else real(name, *more)
    )
    assert main(["serve", "a.corank"]) == 2
