"""HTTP for downloads: http and https only, safe redirects, and the headers about sizes and ranges.

A public server must not send a download on to a private address (this machine, its network, a cloud's metadata). The
host in the address that was asked for may be private, such as a mirror on an intranet, and may send on to other private
ones; once a public address was connected to, private ones are refused. What counts is the address that is connected to,
for every hop: a name is resolved once and that very address is used, so that its owner cannot change it in between.
"""

from __future__ import annotations

import functools
import http.client
import ipaddress
import socket
import urllib.request
from email.message import Message
from typing import IO, Any
from urllib.parse import urlsplit

from ..errors import CorankError

REDIRECTS = 10
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


def opener() -> urllib.request.OpenerDirector:
    """An opener for one download, with http and https only: the default one would also read local files and ftp."""
    opener, guard = urllib.request.OpenerDirector(), Guard()
    for handler in (
        urllib.request.ProxyHandler(),
        _Http(guard),
        _Https(guard),
        urllib.request.HTTPDefaultErrorHandler(),
        Redirects(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener


class Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to http and https only, and never from https to http."""

    max_redirections = REDIRECTS

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        check_scheme(newurl)
        if urlsplit(req.full_url).scheme == "https" and urlsplit(newurl).scheme == "http":
            raise CorankError(f"{req.full_url} sends on to {newurl}, which is not protected: refused")
        fp.close()  # or all that the server sends with the redirect would be read into memory
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class Guard:
    """Which addresses a download may connect to: private ones until the first public one."""

    def __init__(self) -> None:
        self.public: str | None = None  # the first public host

    def addresses(self, host: str, port: int) -> list[Any]:
        """The addresses of a host, as `socket.getaddrinfo` has them; one that is refused is an error."""
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        private = [str(place[0]) for *_, place in found if is_private(str(place[0]))]
        if private and self.public is not None:
            raise CorankError(
                f"{self.public} sends on to {host}, which is the private address {private[0]}: refused; if that is a "
                "server of yours, download from its own address"
            )
        if len(private) < len(found):
            self.public = self.public or host
        return found

    def connect(self, address: tuple[str, int], timeout: float | None = None, *_: Any) -> socket.socket:
        """In place of `socket.create_connection`: only addresses that were looked at are connected to."""
        problem: OSError = OSError("the name has no address")
        for family, kind, protocol, _name, place in self.addresses(*address):
            made = socket.socket(family, kind, protocol)
            try:
                if isinstance(timeout, int | float):
                    made.settimeout(timeout)
                made.connect(place)
                return made
            except OSError as why:
                made.close()
                problem = why
        raise problem

    def connection(self, kind: type, request: urllib.request.Request) -> Any:
        """A constructor of connections for `do_open`. A proxy connects for us: then the name alone can be looked at."""
        asked = urlsplit(request.full_url)
        if request.has_proxy() or getattr(request, "_tunnel_host", None):
            try:
                self.addresses(asked.hostname or "", asked.port or 80)
            except socket.gaierror:  # only the proxy knows this name, which is no private address
                self.public = self.public or asked.hostname
            return kind

        @functools.wraps(kind)
        def make(*args: Any, **options: Any) -> http.client.HTTPConnection:
            made: Any = kind(*args, **options)
            made._create_connection = self.connect
            return made  # type: ignore[no-any-return]

        return make


class _Http(urllib.request.HTTPHandler):
    def __init__(self, guard: Guard) -> None:
        super().__init__()
        self.guard = guard

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(self.guard.connection(http.client.HTTPConnection, req), req)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, guard: Guard) -> None:
        super().__init__()
        self.guard = guard

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        context = self._context  # type: ignore[attr-defined]
        return self.do_open(self.guard.connection(http.client.HTTPSConnection, req), req, context=context)


def is_private(address: str) -> bool:
    """Whether an IP address belongs to this machine, its network or no single host: anything but a public one."""
    ip = ipaddress.ip_address(address)
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if ip in _NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return is_private(str(inner))
    return not ip.is_global or ip.is_multicast or ip.is_reserved


def check_scheme(url: str) -> None:
    if urlsplit(url).scheme not in ("http", "https"):
        raise CorankError(f"address {url!r} is not http or https: nothing else is downloaded")


def content_length(headers: Message) -> int | None:
    text = headers.get("Content-Length", "")
    return int(text) if text.isdigit() else None


def content_range(headers: Message) -> tuple[int | None, int | None]:
    """(first byte, total size) of `Content-Range: bytes 5-9/10`."""
    span, _, size = headers.get("Content-Range", "").removeprefix("bytes").strip().partition("/")
    start = span.partition("-")[0]
    return (int(start) if start.isdigit() else None), (int(size) if size.isdigit() else None)
