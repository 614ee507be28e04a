"""The page at `/`, its scripts and styles, and the report of the last comparison; nothing comes from elsewhere."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from .. import __version__
from ..errors import CorankError
from ..report.formatting import format_duration, format_interval, format_p, format_value, metric_title
from .problems import Problem
from .routes import answer
from .service import Service

KINDS = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
LARGEST = 50_000_000  # bytes of a report
# The report has its styles in itself and no script; it is shown in a frame of the page.
REPORT_POLICY = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; frame-ancestors 'self'"
)


def pages(service: Service) -> APIRouter:
    """The addresses that a browser opens; they are no part of the interface."""
    router = APIRouter(include_in_schema=False)
    folder = None if service.settings.results is None else Path(service.settings.results)
    board = None if folder is None else read_board(folder)
    files = static_files()
    protected = service.settings.reads_need_token

    @router.get("/")
    async def page() -> Response:
        """The page itself holds no data: its scripts ask for that, with the token where reading needs it."""
        return _rendered("page.html.jinja", writable=service.settings.writable, version=__version__)

    @router.get("/board")
    async def comparison() -> Response:
        if board is None:
            raise Problem(404, "there is no comparison: start the service with --results DIR, its folder")
        return _rendered("board.html.jinja", board=board, ticket=ticket_of(service.token))

    @router.get("/static/{name}")
    async def static(name: str, request: Request) -> Response:
        if name not in files:
            raise Problem(404, "there is no such file")
        body, kind, tag = files[name]
        headers = {"ETag": tag, "Cache-Control": "no-cache"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(body, media_type=kind, headers=headers)

    @router.get("/about")
    async def about() -> Response:
        about = {"writable": service.settings.writable, "version": __version__, "board": board is not None}
        return answer(about)

    @router.get("/report")
    async def report(ticket: str = "") -> Response:
        if protected and not any(
            hmac.compare_digest(ticket.encode(), ticket_of(service.token, ago).encode()) for ago in (0, 1)
        ):
            raise Problem(401, "open the report from the page, after the token is given there")
        path = None if folder is None else folder / "report.html"
        if path is None or not path.is_file() or path.stat().st_size > LARGEST:
            raise Problem(404, "there is no report: start the service with --results DIR, the folder of a comparison")
        headers = {"Content-Security-Policy": REPORT_POLICY, "X-Frame-Options": "SAMEORIGIN"}
        return Response(path.read_bytes(), media_type="text/html", headers=headers)

    return router


def ticket_of(token: bytes | None, ago: int = 0) -> str:
    """What opens the report for an hour: a frame of the page cannot send the token. ago : hours."""
    hour = int(time.time() // 3600) - ago
    return hmac.new(token or b"", b"report %d" % hour, hashlib.sha256).hexdigest()


def _rendered(name: str, **values: Any) -> Response:
    text = environment().get_template(name).render(**values)
    return Response(text.encode("utf-8", "replace"), media_type="text/html")


@cache
def static_files() -> dict[str, tuple[bytes, str, str]]:
    """name -> (content, type, tag) of the scripts and styles; the style of reports comes before that of the page."""
    found = {
        file.name: file.read_bytes()
        for file in resources.files("corank.serve").joinpath("static").iterdir()
        if Path(file.name).suffix in KINDS
    }
    base = resources.files("corank.report").joinpath("templates", "base.css").read_bytes()
    found["page.css"] = base + b"\n" + found["page.css"]
    return {
        name: (body, KINDS[Path(name).suffix], f'"{hashlib.sha256(body).hexdigest()[:16]}"')
        for name, body in found.items()
    }


@cache
def environment() -> Any:
    """The templates of the page, in the frame of the report's; every value is escaped."""
    from jinja2 import ChoiceLoader, PackageLoader

    from ..report.html import environment as of_reports

    loaders = [PackageLoader("corank.serve"), PackageLoader("corank.report")]
    return of_reports().overlay(loader=ChoiceLoader(loaders))


def read_board(folder: Path) -> dict[str, Any]:
    """The leaderboard in a folder of `corank compare`, as the page shows it."""
    path = folder / "results.json"
    try:
        if path.stat().st_size > LARGEST:
            raise CorankError(f"{path} is larger than {LARGEST:,} bytes: it is no file of `corank compare`")
        found = json.loads(path.read_text("utf-8"))
        return _board(found) | {"report": (folder / "report.html").is_file()}
    except OSError as why:
        raise CorankError(f"cannot read {path}: {why.strerror}; --results is the folder of `corank compare`") from None
    except (ValueError, KeyError, TypeError, AttributeError) as why:
        if isinstance(why, CorankError):
            raise
        raise CorankError(f"{path} is not a file of `corank compare`: {type(why).__name__} {why}") from None


def _board(found: dict[str, Any]) -> dict[str, Any]:
    rows = []
    for row in found["rows"]:
        cells = []
        for name in found["metrics"]:
            metric = row["metrics"][name]
            low, high = metric["low"], metric["high"]
            detail = "" if low is None or high is None else format_interval((float(low), float(high)))
            cells.append((format_value(metric["mean"]), detail))
        compared = row.get("against_best") or {}
        mark = "best" if row["best"] else "oracle" if row["oracle"] else format_p(compared.get("p"))
        seconds = row["fit_seconds"]
        cells += [(mark, ""), ("–" if seconds is None else format_duration(float(seconds)), "")]
        kind = "best" if row["best"] else "oracle" if row["oracle"] else ""
        rows.append({"label": str(row["label"]), "kind": kind, "cells": cells})
    return {
        "verdict": str(found["verdict"]),
        "caption": f"{found['name']}: {found['split']}; {found['protocol']}",
        "heads": [*(metric_title(name) for name in found["metrics"]), "p", "fit time"],
        "rows": rows,
    }
