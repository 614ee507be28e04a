"""Small models behind the service, in this process."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corank as cr

pytest.importorskip("fastapi", reason="the service needs corank[serve]")

from starlette.testclient import TestClient

from corank.serve.app import make_app
from corank.serve.logs import Log
from corank.serve.service import Service
from corank.serve.settings import Settings
from service_tools import TOKEN, bearer

USERS, ITEMS = 40, 30


def rows(letters: bool = False) -> cr.Dataset:
    """Users and items in two colours: even users interact with even items; with titles, and times in order."""
    rng = np.random.default_rng(7)
    user, item = [], []
    for u in range(USERS):
        own = [i for i in range(ITEMS) if i % 2 == u % 2]
        for i in rng.permutation(own)[:9]:
            user.append(u)
            item.append(int(i))
    ids: Any = (np.array(user), np.array(item))
    if letters:
        ids = ([f"u{u}" for u in user], [f"film, {i}" for i in item])
    titles = [f"{'Even' if i % 2 == 0 else 'Odd'} Film {i}" for i in range(ITEMS)]
    made = cr.from_arrays(user=ids[0], item=ids[1], time=np.arange(len(user)))
    if letters:
        titles = [f"Title of {key}" for key in made.items.ids.tolist()]
    return made.with_labels(item={"title": titles}) if hasattr(made, "with_labels") else _titled(made, titles)


def _titled(data: cr.Dataset, titles: list[str]) -> cr.Dataset:
    import dataclasses

    return dataclasses.replace(data, item_labels={"title": np.array(titles, object)})


@pytest.fixture(scope="session")
def model_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with models: a.corank (wmf), b.corank (ease), letters.corank (string ids), broken.corank."""
    folder = tmp_path_factory.mktemp("models")
    cr.find("wmf")(dim=4, epochs=5).fit(rows()).save(folder / "a.corank")
    cr.find("ease")().fit(rows()).save(folder / "b.corank")
    cr.find("item_knn")().fit(rows(letters=True)).save(folder / "letters.corank")
    whole = (folder / "a.corank").read_bytes()
    (folder / "broken.corank").write_bytes(whole[: len(whole) // 2])
    return folder


class Running:
    """A service in this process, and a client that holds the token."""

    def __init__(self, service: Service, client: TestClient, log: io.StringIO) -> None:
        self.service, self.client, self._log = service, client, log

    def get(self, path: str, **query: Any) -> Any:
        return self.client.get(path, params=query)

    def ok(self, path: str, **query: Any) -> Any:
        answer = self.client.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def items(self, **query: Any) -> list[Any]:
        return [one["item"] for one in self.ok("/recommend", **query)["items"]]

    def post(self, path: str, body: Any, token: str | None = TOKEN) -> Any:
        return self.client.post(path, json=body, headers=bearer(token))

    def put(self, path: str, body: Any) -> Any:
        return self.client.put(path, json=body, headers=bearer())

    def log(self) -> list[dict[str, Any]]:
        self.service.log.flush()
        return [json.loads(line) for line in self._log.getvalue().splitlines()]

    def log_text(self) -> str:
        self.service.log.flush()
        return self._log.getvalue()


@pytest.fixture
def start(model_files: Path, tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """start(...) -> a running service; settings by name. Models are copies that a test may overwrite."""
    import contextlib

    folder = tmp_path / "models"
    shutil.copytree(model_files, folder)
    (tmp_path / "token").write_text(TOKEN + "\n")
    with contextlib.ExitStack() as stack:

        def begin(*models: str, **more: Any) -> Running:
            names = models or ("a",)
            given = {"models": {name: str(folder / f"{name}.corank") for name in names}} | more
            if given.pop("writable", True):
                given = {"token_file": str(tmp_path / "token"), "store": f"sqlite:///{tmp_path}/f.sqlite"} | given
            settings = Settings(**given)
            settings.check()
            stream = io.StringIO()
            service = Service(settings, Log(stream))
            client = TestClient(make_app(service), base_url="http://localhost", raise_server_exceptions=False)
            stack.enter_context(client)
            return Running(service, client, stream)

        yield begin


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """A running PostgreSQL; tests that need it are skipped where there is none."""
    from benchmarks.postgres import Cluster

    pytest.importorskip("psycopg", reason="PostgreSQL needs corank[serve,postgres]")
    try:
        made = Cluster()
    except FileNotFoundError as why:
        pytest.skip(str(why))
    yield made
    made.remove()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store, once of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/f.sqlite"
    import sqlalchemy as sa

    from corank.serve.store import _tables

    address: str = request.getfixturevalue("cluster").url
    engine = sa.create_engine(address.replace("postgresql://", "postgresql+psycopg://"))
    _tables.drop_all(engine)
    engine.dispose()
    return address
