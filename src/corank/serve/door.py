"""What every request passes: the names the service answers to, tokens, sizes, headers, counts and one line of log.

Plain ASGI: this runs for each request, and frameworks' middleware costs more than a recommendation.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import re
import time
import traceback
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from .problems import FAILED, MEDIA, Problem
from .service import Service

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Fast = Callable[[bytes], Awaitable[bytes]]  # query -> JSON

LOCAL = ("localhost", "127.0.0.1", "[::1]")
# Need no token: they hold no data, but for the report, which looks at a ticket of its own.
OPEN = ("/", "/health/live", "/health/ready", "/openapi.json", "/report")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-src 'self'; "
)
POLICY += "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
]
FAST_HEADERS = [(b"content-type", b"application/json"), (b"cache-control", b"no-store"), *HEADERS]
_ID = re.compile(rb"[A-Za-z0-9_.:-]{1,64}")


class Door:
    """The outermost application."""

    def __init__(self, app: App, service: Service, fast: dict[str, Fast]) -> None:
        """fast : paths whose GET requests are answered without the framework."""
        self.app = app
        self.service = service
        self.fast = fast
        settings = service.settings
        self.limit = settings.limits.body
        self.patience = settings.limits.seconds
        self.token_for_reads = settings.reads_need_token
        self.hosts = {name.lower() for name in (*LOCAL, *settings.hosts)} if settings.loopback else None
        self._number = 0
        self._prefix = os.urandom(4).hex()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1000})
                return
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()
        request, headers = self._request_id(scope), scope["headers"]
        path, method, status = scope["path"], scope["method"], 500
        reply = _Reply(send, request, self.patience)
        try:
            self._admit(path, method, headers)
            fast = self.fast.get(path) if method == "GET" else None
            if fast is not None:
                await reply.json(await fast(scope["query_string"]))
            else:
                scope["request_id"] = request.decode()
                await self.app(scope, self._limited(receive), reply)
        except Problem as why:
            if not reply.status:
                await reply.problem(why)
        except Exception as why:
            self._say(why, request, path)
            if not reply.status:
                await reply.problem(Problem(500, FAILED))
        finally:
            status = reply.status or 499  # the client went away before an answer
            seconds = time.perf_counter() - began
            route = path if path in self.fast else route_of(scope)
            self.service.metrics.answered(route, status, seconds)
            self.service.log.request(
                id=request.decode(), method=method, route=route, status=status, ms=round(1000 * seconds, 2)
            )

    def _request_id(self, scope: Scope) -> bytes:
        for name, value in scope["headers"]:
            if name == b"x-request-id" and _ID.fullmatch(value):
                return bytes(value)
        self._number += 1
        return f"{self._prefix}-{self._number:x}".encode()

    def _admit(self, path: str, method: str, headers: list[tuple[bytes, bytes]]) -> None:
        """Raise a `Problem` for a request that may not pass."""
        host = authorization = b""
        length = 0
        for name, value in headers:
            if name == b"host":
                host = value
            elif name == b"authorization":
                authorization = value
            elif name == b"content-length" and value.isdigit():
                length = int(value)
        # A page elsewhere could give its own name the address of this machine and read what is served here.
        if self.hosts is not None and _name(host) not in self.hosts:
            raise Problem(421, "this service answers to localhost: use that name, or allow another with --allow-host")
        if length > self.limit:
            raise self._too_large()
        if method == "OPTIONS":  # browsers ask with it whether they may ask, and never send a token; it tells nothing
            return
        writes = method not in ("GET", "HEAD", "POST") or path == "/feedback"
        if not writes and (not self.token_for_reads or path in OPEN or path.startswith("/static/")):
            return
        token = self.service.token
        if token is None:
            raise Problem(403, "this service is read-only: start it with --token-file FILE to allow changes")
        kind, _, given = authorization.partition(b" ")
        if kind.lower() != b"bearer" or not hmac.compare_digest(given.strip(), token):
            raise Problem(401, "give the token: Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"})

    def _limited(self, receive: Receive) -> Receive:
        """The body, as long as it is not too large and does not take too long."""
        size, whole = 0, False

        async def limited() -> Message:
            nonlocal size, whole
            if whole:  # what comes next is that the client goes away, whenever that may be
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), self.patience)
            except TimeoutError:
                raise Problem(
                    408, f"the body did not arrive within {self.patience:g} seconds: send it faster"
                ) from None
            size += len(message.get("body", b""))
            whole = not message.get("more_body", False)
            if size > self.limit:
                raise self._too_large()
            return message

        return limited

    def _too_large(self) -> Problem:
        return Problem(413, f"the body is larger than {self.limit:,} bytes: send it in several requests")

    def _say(self, why: Exception, request: bytes, path: str) -> None:
        frames = traceback.extract_tb(why.__traceback__)[-12:]
        places = [f"{frame.name} ({os.path.basename(frame.filename)}:{frame.lineno})" for frame in frames]
        self.service.log.event("failure", id=request.decode(), error=type(why).__name__, route=path[:50], where=places)


class _Reply:
    """Sends an answer, with the headers that all answers have."""

    def __init__(self, send: Send, request: bytes, patience: float) -> None:
        self._send = send
        self._request = request
        self._patience = patience
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            given = message["headers"] = list(message.get("headers", ()))
            names = {name for name, _ in given}
            given += [one for one in HEADERS if one[0] not in names]
            if b"content-security-policy" not in names:
                given.append((b"content-security-policy", POLICY.encode()))
            if b"cache-control" not in names:
                given.append((b"cache-control", b"no-store"))
            given.append((b"x-request-id", self._request))
            await self._send(message)
            return
        # A client that does not read must not keep what is being sent to it for ever.
        await asyncio.wait_for(self._send(message), self._patience)

    async def json(self, body: bytes) -> None:
        self.status = 200
        headers = [*FAST_HEADERS, (b"content-length", b"%d" % len(body)), (b"x-request-id", self._request)]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})

    async def problem(self, why: Problem) -> None:
        body = why.body(self._request.decode())
        headers = [(name.lower().encode(), value.encode()) for name, value in (why.headers or {}).items()]
        headers += [(b"content-type", MEDIA.encode()), (b"content-length", b"%d" % len(body))]
        if why.status in (408, 413):  # the rest of the body is not read
            headers.append((b"connection", b"close"))
        await self({"type": "http.response.start", "status": why.status, "headers": headers})
        await self({"type": "http.response.body", "body": body})


def route_of(scope: Scope) -> str:
    """The pattern of an address, such as /models/{name}: its values do not belong into logs and metrics."""
    route = scope.get("route")
    return str(getattr(route, "path", None) or "other")


def _name(host: bytes) -> str:
    """The name in a Host header, without the port."""
    text = host.decode("latin-1").lower()
    name, colon, port = text.rpartition(":")
    return name if colon and port.isdigit() else text
