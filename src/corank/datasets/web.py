"""HTTP for downloads: http and https only, safe redirects, and the headers about sizes and ranges."""

from __future__ import annotations

import urllib.request
from email.message import Message
from typing import IO, Any
from urllib.parse import urlsplit

from ..errors import CorankError


def opener() -> urllib.request.OpenerDirector:
    """An opener for http and https only: the default one would also read local files and ftp."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        Redirects(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener


class Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to http and https only, and never from https to http."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        check_scheme(newurl)
        if urlsplit(req.full_url).scheme == "https" and urlsplit(newurl).scheme == "http":
            raise CorankError(f"{req.full_url} sends on to {newurl}, which is not protected: refused")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


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
