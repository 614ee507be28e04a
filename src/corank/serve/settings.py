"""How a service is set up, checked: what it serves, where it listens, who may write, and its limits."""

from __future__ import annotations

import dataclasses
import ipaddress
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from ..errors import CorankError, show, suggest

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")  # of a model: part of an address and of a metric
SHORTEST = 16  # characters of a token
MAKE_ONE = "make one with  python -c 'import secrets; print(secrets.token_urlsafe())' > token"
ENVIRONMENT = "CORANK_SERVE"  # settings of the workers


# The most that one request may ask for; the description of the interface has them too.
MOST_ITEMS = 1_000  # of a list
MOST_HISTORY = 1_000  # items of a history; of stored feedback, the newest so many count
MOST_DIVERSE = 100  # of a list that is re-ranked: the work grows with the square of its length
MOST_LISTED = 10_000  # ids of a filter
MOST_EVENTS = 1_000  # feedback events of one request
MOST_FOUND = 100  # items or users of a search


@dataclass(frozen=True)
class Limits:
    """What the server takes from clients."""

    body: int = 1_000_000  # bytes of a request
    connections: int = 1_000  # sockets; later ones are told to come back
    seconds: float = 20.0  # to send a request, to read a piece of an answer, and to finish after SIGTERM


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One service. `models` maps names to files; the first one is the default."""

    models: Mapping[str, str]
    shares: Mapping[str, float] = field(default_factory=dict)  # of the users; the default model has the rest
    items: str | None = None  # table of item labels: title, genre, year, ...
    store: str | None = None  # URL of the feedback store; None: there is none
    results: str | None = None  # folder of a comparison
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    threads: int = 1  # of a batch: one is the cheapest per request, more answer large catalogues sooner
    token_file: str | None = None
    open_reads: bool = False  # on other addresses than loopback, reads need no token
    hosts: tuple[str, ...] = ()  # further names under which the service may be addressed
    origins: tuple[str, ...] = ()  # other origins whose pages may read (CORS)
    logs: bool = True  # one line per request
    shared: str | None = None  # folder that the workers of one run share
    limits: Limits = Limits()

    @property
    def loopback(self) -> bool:
        return is_loopback(self.host)

    @property
    def reads_need_token(self) -> bool:
        return not self.loopback and not self.open_reads

    @property
    def writable(self) -> bool:
        return self.token_file is not None

    def check(self) -> None:
        """Raise one sentence for the first setting that is wrong."""
        if not self.models:
            raise CorankError("there is no model to serve: give a model file")
        for name in self.models:
            check_name(name)
        check_shares(self.shares, self.models)
        default = next(iter(self.models))
        if default in self.shares:
            raise CorankError(
                f"a share is given to {default}, the default model, which has the users that are left: give the others "
                "their shares"
            )
        if not 0 <= self.port <= 65_535:
            raise CorankError(f"--port {self.port}: a port is a number from 0 to 65,535")
        if not 1 <= self.workers <= 256:
            raise CorankError(f"--workers {self.workers}: it must be between 1 and 256")
        if not 1 <= self.threads <= 256:
            raise CorankError(f"--threads {self.threads}: it must be between 1 and 256")
        if self.limits.connections < 1:
            raise CorankError(f"--connections {self.limits.connections}: it must be at least 1")
        if not self.loopback and not self.writable:
            raise CorankError(
                f"--host {self.host} can be reached from other machines: give --token-file FILE with a secret of at "
                f"least {SHORTEST} characters, or listen on 127.0.0.1"
            )
        for origin in self.origins:
            if not re.fullmatch(r"https?://[^/\s*]+", origin):
                raise CorankError(f"--cors {origin!r}: name an origin, such as https://shop.example")
        if self.store is not None and not self.writable:
            raise CorankError(
                f"--store {show(without_password(self.store))} is for feedback, and without a token nothing can be "
                "written: give --token-file FILE too"
            )

    def token(self) -> bytes | None:
        """The secret in the token file; None without a file."""
        return None if self.token_file is None else read_token(self.token_file)

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        plain = json.loads(text)
        plain |= {name: tuple(plain[name]) for name in ("hosts", "origins")}
        return cls(**{**plain, "limits": Limits(**plain["limits"])})

    @classmethod
    def from_environment(cls) -> Self:
        return cls.from_json(os.environ[ENVIRONMENT])


def check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise CorankError(
            f"{show(name)} cannot be the name of a model: use up to 64 letters, digits, '-', '_' and '.', "
            "and begin with a letter or digit"
        )


def check_shares(shares: Mapping[str, float], models: Iterable[str]) -> None:
    """Raise where shares of users are not shares, or belong to no model."""
    names = list(models)
    for name, share in shares.items():
        if name not in names:
            raise CorankError(f"a share is given to {show(name)}, which is not a model{suggest(name, names)}")
        if not 0 <= share <= 1:  # NaN too
            raise CorankError(f"the share of {name} is {share:g}: a share of the users is between 0 and 1")
    if sum(shares.values()) > 1 + 1e-9:
        raise CorankError(f"the shares add up to {sum(shares.values()):g}: together they may be at most 1")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def read_token(path: str) -> bytes:
    """The secret in a file, without white space around it."""
    try:
        text = Path(path).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as why:
        reason = why.strerror if isinstance(why, OSError) else "it is not text"
        raise CorankError(f"cannot read the token file {path}: {reason}; {MAKE_ONE}") from None
    if len(text) < SHORTEST or not re.fullmatch(r"[\x21-\x7e]+", text):
        raise CorankError(
            f"the token in {path} must be one word of at least {SHORTEST} printable ASCII characters: {MAKE_ONE}"
        )
    return text.encode()


def without_password(url: str) -> str:
    """The URL of a store as messages may show it."""
    return re.sub(r"//([^:/@\s]*):[^@\s]*@", r"//\1:***@", url)


def plain(settings: Settings) -> dict[str, Any]:
    """What the page and the log may know of the settings."""
    return {
        "writable": settings.writable,
        "store": None if settings.store is None else without_password(settings.store),
        "limits": dataclasses.asdict(settings.limits),
    }
