"""The service under requests of every kind, damaged model files, clients that misbehave, and too many sockets."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import socket
import time
from pathlib import Path
from typing import Any

import httpx

import corank as cr

from ..service_process import TOKEN, ServiceProcess, bearer
from .part import Outcome, Part, Tell

USERS, ITEMS = 60, 50
# Errors of a client that cannot send a request; by name, as the test client of newer starlettes brings its own httpx.
UNSENT = ("InvalidURL", "LocalProtocolError", "UnicodeEncodeError")


def models(folder: Path) -> None:
    """a.corank and b.corank, of integer ids."""
    data = cr.synthetic.realistic(users=USERS, items=ITEMS, rows=700).data
    cr.find("wmf")(dim=8, epochs=3).fit(data).save(folder / "a.corank")
    cr.find("ease")().fit(data).save(folder / "b.corank")


def answers(client: httpx.Client) -> str:
    """Why the service does not answer as it should; nothing if it does."""
    try:
        found = client.get("/recommend?user=3&k=5")
        return "" if found.status_code == 200 and len(found.json()["items"]) == 5 else found.text
    except (httpx.HTTPError, ValueError) as why:
        return f"no answer: {type(why).__name__}"


# ---- requests made from the description --------------------------------------------------------------------------


def described(trials: int, seed: int, folder: Path, tell: Tell) -> Outcome:
    import schemathesis
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded
    from schemathesis.config import SchemathesisConfig

    models(folder)
    out, statuses = Outcome(), dict[int, int]()
    accepted = ["2xx", "400", "403", "404", "409", "422"]  # a description cannot say which ids there are
    rules = {"checks": {"positive_data_acceptance": {"expected-statuses": accepted}}}
    with ServiceProcess(folder, "--model", "b=b.corank", "--quiet") as service:
        description = without_token(service.client.get("/openapi.json").json())
        schema = schemathesis.openapi.from_dict(description, config=SchemathesisConfig.from_dict(rules))
        kinds = made_up(schema)

        @seeded(seed)
        @settings(
            max_examples=trials + trials // 10 + 10,  # a client cannot send all of them
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],
        )
        @given(kinds)
        def ask(case: Any) -> None:
            answer = sent(service.client, case) if out.tried < trials else None
            if answer is None:
                return
            statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1
            failure = f"{answer.status_code} {answer.text[:100]}" if answer.status_code >= 500 else ""
            try:
                case.validate_response(answer)
            except (Exception, BaseExceptionGroup) as why:
                failure = failure or " ".join(str(why).split())[:200]
            out.trial(failure and f"{case.method} {case.path}: {failure}")
            tell(out.tried, trials)

        ask()
    out.notes.append(", ".join(f"{count:,} times {status}" for status, count in sorted(statuses.items())))
    return out


def made_up(schema: Any) -> Any:
    """Requests to all addresses, right and wrong ones; in half of the right ones, ids are those of the models."""
    from hypothesis import strategies as st
    from schemathesis import GenerationMode

    operations = [result.ok() for result in schema.get_all_operations()]
    wrong = [one.as_strategy(generation_mode=GenerationMode.NEGATIVE) for one in operations]
    right = [one.as_strategy(generation_mode=GenerationMode.POSITIVE) for one in operations]
    known = [st.tuples(one, st.integers(0, 20), st.integers(0, 20)).map(_with_known_ids) for one in right]
    return st.one_of(*wrong, *right, *known)


def _with_known_ids(given: tuple[Any, int, int]) -> Any:
    case, user, item = given
    for part, one, many in ((case.query, str, lambda ids: [str(i) for i in ids]), (case.body, int, list)):
        if not isinstance(part, dict):
            continue
        rows = part["events"] if isinstance(part.get("events"), list) else [part]
        for row in rows:
            ids = {"user": one(user), "item": one(item), "history": many([item, item + 1]), "items": many([item, 3])}
            row.update({name: value for name, value in ids.items() if name in row})
            if "model" in row:
                row["model"] = "b"
            row.pop("where", None)
            if "event" in row:
                row.pop("value", None)
                row["event"] = "click"
    return case


def sent(client: Any, case: Any) -> Any:
    """The answer to a made-up request; None if a client cannot send it."""
    wire = case.as_transport_kwargs(base_url="", headers=bearer())
    body = {"json": wire["json"]} if "json" in wire else {"content": wire["data"]} if wire.get("data") else {}
    try:
        return client.request(
            wire["method"], wire["url"], params=wire.get("params"), headers=dict(wire["headers"]), **body
        )
    except Exception as why:
        if type(why).__name__ in UNSENT:
            return None
        raise


def without_token(description: dict[str, Any]) -> dict[str, Any]:
    """A description that does not speak of the token, which every request here has."""
    description["components"].pop("securitySchemes")
    for operations in description["paths"].values():
        for operation in operations.values():
            operation.pop("security", None)
    return description


# ---- garbage and clients that behave badly -----------------------------------------------------------------------


def garbage(trials: int, seed: int, folder: Path, tell: Tell) -> Outcome:
    """A file with random damage is put in the place of the model: it is refused with a sentence, or answers."""
    models(folder)
    out, draw, loaded = Outcome(), random.Random(seed), 0
    whole = (folder / "a.corank").read_bytes()
    with ServiceProcess(folder, "--quiet") as service:
        for number in range(trials):
            (folder / "new.corank").write_bytes(_damaged(whole, draw))
            answer = service.client.put("/models/a", json={"file": "new.corank"})
            loaded += answer.status_code == 200
            failure = "" if answer.status_code in (200, 422) else f"{answer.status_code} {answer.text[:100]}"
            out.trial(failure or answers(service.client))
            tell(number + 1, trials)
    out.notes.append(f"{loaded} loaded, {trials - loaded} refused")
    return out


def _damaged(whole: bytes, draw: random.Random) -> bytes:
    kind = draw.randrange(5)
    if kind == 0:
        return os.urandom(draw.randrange(10_000))
    if kind == 1:
        return whole[: draw.randrange(len(whole))]
    if kind == 2:
        return whole
    changed = bytearray(whole)
    for _ in range(draw.randrange(1, 50)):
        changed[draw.randrange(len(changed) if kind == 3 else 2_000)] = draw.randrange(256)
    return bytes(changed)


def rude(trials: int, seed: int, folder: Path, tell: Tell) -> Outcome:
    """Half requests, garbage, answers that are never read, connections that are cut: others are served meanwhile."""
    models(folder)
    out, draw = Outcome(), random.Random(seed)
    ask = b"GET /recommend?user=1&k=50&seen=true HTTP/1.1\r\nHost: localhost\r\n\r\n"
    head = f"POST /feedback HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 99\r\n"
    half = head.encode() + b'Content-Type: application/json\r\n\r\n{"user": '
    with ServiceProcess(folder, "--quiet", "--connections", "400") as service:
        held: list[socket.socket] = []
        for number in range(trials):
            made = socket.create_connection(("127.0.0.1", service.port), timeout=5)
            said = [ask[: draw.randrange(len(ask))], os.urandom(draw.randrange(1, 3_000)), ask * 50, half, ask][
                draw.randrange(5)
            ]
            with contextlib.suppress(OSError):
                made.sendall(said)
            if draw.random() < 0.5:
                made.close()
            else:
                held.append(made)
            while len(held) > 100:
                held.pop(0).close()
            if number % 10 == 0:
                out.trial(answers(service.client))
            tell(number + 1, trials)
        for one in held:
            one.close()
        out.trial("" if service.stop() == 0 else "it did not end well")
        if "Traceback" in service.log:
            out.failures.append("a traceback in the log")
    out.notes.append(f"{trials:,} connections, another client asked after every tenth")
    return out


def crowd(trials: int, seed: int, folder: Path, tell: Tell) -> Outcome:
    """So many sockets at once: those above the limit get 503 and a sentence, and who is connected is served."""
    models(folder)
    out, polite = Outcome(), 0
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, trials + 500), hard))
    with ServiceProcess(folder, "--quiet", "--connections", "1000") as service:
        failure = answers(service.client)
        made: list[socket.socket] = []
        for number in range(trials):
            made.append(socket.create_connection(("127.0.0.1", service.port), timeout=20))
            if number % 500 == 0:
                out.trial(answers(service.client))
            tell(number + 1, trials)
        time.sleep(0.5)
        for one in made[1_000:]:
            one.settimeout(5)
            with contextlib.suppress(OSError):
                polite += one.recv(4096).startswith(b"HTTP/1.1 503")
        out.trial(failure or answers(service.client))
        above = max(0, trials - 1_000)
        out.trial("" if polite >= 0.99 * above else f"{polite} of {above} sockets above the limit were told why")
        for one in made:
            one.close()
        time.sleep(0.5)
        with httpx.Client(base_url=service.url) as later:
            out.trial(answers(later))
    out.notes.append(f"{trials:,} sockets, {polite:,} refused with a sentence")
    return out


PARTS = [
    Part("requests made from the description", 10_000, described, "no 5xx, and every answer is as described"),
    Part("damaged model files swapped in", 500, garbage, "refused with a sentence, and the old model answers"),
    Part("clients that misbehave", 2_000, rude, "other clients are served, and the service ends well"),
    Part("ten thousand sockets", 10_000, crowd, "refused with 503 above the limit, the others are served"),
]
