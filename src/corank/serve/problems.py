"""Errors over HTTP: problem documents (RFC 9457) whose `detail` is the sentence that the library would raise."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.exceptions import HTTPException

from ..errors import CorankError, visible
from .encoding import dump

MEDIA = "application/problem+json"
FAILED = "the service failed; the log has the request's id"


class Problem(HTTPException):
    """An answer that is an error: a status and one sentence."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, detail, dict(headers or {}))
        self.status = status

    def document(self, request: str = "") -> dict[str, Any]:
        """The members of the document; request : the id that the log has too."""
        title = HTTPStatus(self.status).phrase
        shown = {"type": "about:blank", "title": title, "status": self.status, "detail": visible(self.detail)}
        return shown | ({"request": request} if request else {})

    def body(self, request: str = "") -> bytes:
        return dump(self.document(request))


def unknown(why: CorankError) -> Problem:
    """A user, item or model that is not there."""
    return Problem(404, str(why))


def refused(why: CorankError | str) -> Problem:
    """Something that was given breaks a rule."""
    return Problem(422, str(why))


def unavailable(detail: str, after: int = 1) -> Problem:
    """Something that is needed is not there now; try again later."""
    return Problem(503, detail, {"Retry-After": str(after)})
