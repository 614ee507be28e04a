"""Models are loaded, swapped, shared and removed while requests are answered."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import weakref

import httpx
import pytest

import corank as cr
from corank.serve.app import make_app
from corank.serve.logs import Log
from corank.serve.service import Service
from corank.serve.settings import Settings
from corank.serve.split import arm
from service_tools import TOKEN, bearer


def test_a_model_is_swapped(start, model_files):
    running = start("a")
    before = running.ok("/recommend", user=3, k=5)
    answer = running.put("/models/a", {"file": "b.corank"})
    assert answer.status_code == 200, answer.text
    assert answer.json()["kind"] == "ease"
    [(_, expected)] = list(cr.load(model_files / "b.corank").recommend([3], k=5))
    after = running.ok("/recommend", user=3, k=5)
    assert [one["item"] for one in after["items"]] == [item for item, _ in expected]
    assert after != before
    assert running.ok("/models")["models"][0]["kind"] == "ease"


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("broken.corank", "broken.corank"),
        ("nothing.corank", "there is no model file"),
        ("notes.txt", "is not a corank model file"),
        ("/etc/passwd", "is not in a folder that models are served from"),
        ("../token", "is not in a folder that models are served from"),
        ("link.corank", "is not in a folder that models are served from"),
        ("a\0b", "NUL"),
        (".", "folder"),
    ],
)
def test_a_bad_file_leaves_the_old_model_serving(start, tmp_path, file, says):
    running = start("a")
    (tmp_path / "models" / "notes.txt").write_text("no model")
    os.symlink("/etc/hostname", tmp_path / "models" / "link.corank")
    before = running.ok("/recommend", user=3)
    answer = running.put("/models/a", {"file": file})
    assert answer.status_code == 422
    assert says in answer.json()["detail"]
    assert running.ok("/recommend", user=3) == before
    assert 'corank_model_loads_total{model="a",outcome="refused"} 1.0' in running.get("/metrics").text


def test_a_file_that_is_overwritten_with_garbage_keeps_answering(start, tmp_path):
    running = start("a")
    before = running.ok("/recommend", user=3)
    (tmp_path / "models" / "a.corank").write_bytes(os.urandom(5000))
    assert running.ok("/recommend", user=3) == before
    assert running.put("/models/a", {"file": "a.corank"}).status_code == 422
    assert running.ok("/recommend", user=3) == before


def test_no_request_fails_while_models_are_swapped(model_files, tmp_path):
    """Requests without pause during 6 swaps, good and bad ones: all are answered, by one model or the other."""
    folder = shutil.copytree(model_files, tmp_path / "models")
    (tmp_path / "token").write_text(TOKEN)
    settings = Settings(
        models={"a": str(folder / "a.corank")},
        token_file=str(tmp_path / "token"),
        store=f"sqlite:///{tmp_path}/f.sqlite",
    )
    service = Service(settings, Log(requests=False))
    known = [cr.load(folder / f"{name}.corank").recommend(k=3) for name in ("a", "b")]
    statuses, wrong = [], []

    async def ask(client: httpx.AsyncClient, done: asyncio.Event) -> None:
        user = 0
        while not done.is_set():
            user = (user + 7) % 40
            answer = await client.get("/recommend", params={"user": user, "k": 3})
            statuses.append(answer.status_code)
            items = [one["item"] for one in answer.json()["items"]]
            if items not in [[item for item, _ in one[user]] for one in known]:
                wrong.append((user, items))

    async def swap() -> None:
        await service.start()
        done = asyncio.Event()
        transport = httpx.ASGITransport(make_app(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=60) as client:
            clients = [asyncio.create_task(ask(client, done)) for _ in range(8)]
            for name, status in [("b", 200), ("broken", 422), ("a", 200), ("b", 200), ("broken", 422), ("a", 200)]:
                answer = await client.put("/models/a", json={"file": f"{name}.corank"}, headers=bearer())
                assert answer.status_code == status
                await asyncio.sleep(0.05)
            done.set()
            await asyncio.gather(*clients)
        await service.stop()

    asyncio.run(swap())
    assert len(statuses) > 20
    assert set(statuses) == {200}
    assert not wrong


def test_the_memory_of_a_swapped_model_is_free(start):
    running = start("a")
    running.ok("/recommend", user=3)
    old = weakref.ref(running.service.registry.models["a"].model)
    gc.disable()
    try:
        running.put("/models/a", {"file": "b.corank"})
        running.ok("/recommend", user=3)
        assert old() is None
    finally:
        gc.enable()


def test_models_are_added_shared_and_removed(start):
    running = start("a")
    assert running.put("/models/new", {"file": "b.corank", "share": 0.25}).json()["share"] == 0.25
    models = {one["name"]: one["share"] for one in running.ok("/models")["models"]}
    assert models == {"a": 0.75, "new": 0.25}
    running.put("/models/new", {"share": 1.0})
    assert {running.ok("/recommend", user=user)["model"] for user in range(40)} == {"new"}
    assert running.client.delete("/models/new", headers=bearer()).status_code == 204
    assert {running.ok("/recommend", user=user)["model"] for user in range(40)} == {"a"}
    assert running.client.delete("/models/new", headers=bearer()).status_code == 404
    assert running.client.delete("/models/a", headers=bearer()).status_code == 409


@pytest.mark.parametrize(
    ("name", "body", "says"),
    [
        ("a", {"share": 0.5}, "a is the default model"),
        ("b", {"share": 1.5}, "share=1.5: it must be at most 1"),
        ("b", {}, "say what to change"),
        ("c", {"share": 0.9}, "there is no model 'c'"),
        ("b", {"share": 0.9}, "the shares add up to 1.4"),
        ("-x", {"file": "b.corank"}, "cannot be the name of a model"),
    ],
)
def test_wrong_changes_get_a_sentence(start, name, body, says):
    running = start("a", "b", "letters", shares={"letters": 0.5})
    answer = running.put(f"/models/{name}", body)
    assert answer.status_code in (404, 422)
    assert says in answer.json()["detail"]


def test_the_split_is_deterministic_fair_and_moves_few():
    users = [str(n) for n in range(20_000)]
    before = {user: arm(user, "a", {"b": 0.2, "c": 0.1}) for user in users}
    assert before == {user: arm(user, "a", {"b": 0.2, "c": 0.1}) for user in users}
    for name, share in (("a", 0.7), ("b", 0.2), ("c", 0.1)):
        assert abs(sum(one == name for one in before.values()) / len(users) - share) < 0.015
    small, large = ({user: arm(user, "a", {"b": share}) for user in users} for share in (0.2, 0.4))
    assert {(small[user], large[user]) for user in users} == {("a", "a"), ("a", "b"), ("b", "b")}
    assert arm(None, "a", {"b": 1.0}) == "a"
    assert {arm(user, "a", {"b": 1.0}) for user in users[:100]} == {"b"}
    assert {arm(user, "a", {"b": 0.0}) for user in users[:100]} == {"a"}
