"""The application: FastAPI with all routes, behind the door."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response

from .. import __version__
from ..errors import show
from . import schemas
from .door import App, Door
from .encoding import dump
from .logs import Log, take_over
from .pages import pages
from .problems import FAILED, MEDIA, Problem
from .requests import read_query, sentence
from .routes import reading, watching, writing
from .service import Service
from .settings import Settings

LIVE = b'{"status":"ok"}'
ABOUT = "Recommendations from saved models, with feedback. Errors are problem documents (RFC 9457)."


def make_app(service: Service) -> App:
    """The application of a service, which it starts and stops."""

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await service.start()
        yield
        await service.stop()

    app = FastAPI(
        title="corank",
        description=ABOUT,
        version=__version__,
        docs_url=None,  # these pages load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    for router in (reading(service), writing(service), watching(service), pages(service)):
        app.include_router(router)
    app.add_exception_handler(HTTPException, partial(_http_error, app))
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(Exception, _failed)  # it is raised again, and the door logs it
    app.openapi = lambda: _described(app)  # type: ignore[method-assign]
    origins = list(service.settings.origins)
    if origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=origins, allow_methods=["GET", "POST"], allow_headers=["Authorization"]
        )

    async def recommend(query: bytes) -> bytes:
        return dump(await service.recommend(read_query(query)))

    async def live(query: bytes) -> bytes:
        return LIVE

    return Door(app, service, {} if origins else {"/recommend": recommend, "/health/live": live})


def from_environment() -> App:
    """The application of a worker."""
    settings = Settings.from_environment()
    log = Log(requests=settings.logs)
    take_over(log)
    limit_threads(settings.threads)
    return make_app(Service(settings, log))


def limit_threads(count: int) -> None:
    """Threads of kernels and matrix products in this process.

    A batch is small: to divide it costs more processor time than it saves, and takes that from the event loop.
    """
    from threadpoolctl import threadpool_limits

    from ..kernels.threads import set_threads

    set_threads(count)
    threadpool_limits(count, user_api="blas")
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # libraries that are loaded later
        os.environ[name] = str(count)


def _document(why: Problem, request: Request) -> Response:
    return Response(why.body(request.scope.get("request_id", "")), why.status, headers=why.headers, media_type=MEDIA)


async def _http_error(app: FastAPI, request: Request, why: Exception) -> Response:
    """Problems of our own, and those of the framework: no such address, no such method, a body that is not JSON."""
    assert isinstance(why, HTTPException)
    if not isinstance(why, Problem):
        if why.status_code == 404:
            why = Problem(404, "there is no such address: /openapi.json describes those that there are")
        elif why.status_code == 405:
            allowed = ", ".join(_methods(app, request))
            why = Problem(405, f"{request.method} is not possible here: use {allowed}", {"Allow": allowed})
        else:
            why = Problem(why.status_code, str(why.detail), why.headers)
    return _document(why, request)


def _methods(app: FastAPI, request: Request) -> list[str]:
    """The methods of an address; the framework names those of one of its routes."""
    path, described = request.scope.get("route"), _described(app)["paths"]
    found = described.get(getattr(path, "path", request.url.path), {})
    return sorted(method.upper() for method in found)


async def _invalid(request: Request, why: Exception) -> Response:
    assert isinstance(why, RequestValidationError)
    errors = why.errors()
    if any(
        isinstance(error.get("input"), bytes) for error in errors
    ):  # the framework reads JSON only where it is named
        kind = show(request.headers.get("content-type", "nothing"))
        detail = f"the body is sent as {kind}: send JSON, with the header Content-Type: application/json"
        return _document(Problem(415, detail), request)
    malformed = any(error["type"] == "json_invalid" for error in errors)
    schema = schemas.RecommendBody if request.url.path == "/recommend" else None
    return _document(Problem(400 if malformed else 422, sentence(errors, schema)), request)


async def _failed(request: Request, why: Exception) -> Response:
    return _document(Problem(500, FAILED), request)


def _described(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI description, with the token and problem documents instead of the framework's errors."""
    if app.openapi_schema:
        return app.openapi_schema
    from fastapi.openapi.utils import get_openapi

    made = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    parts = made.setdefault("components", {})
    parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    problem = schemas.ProblemDocument.model_json_schema(ref_template="#/components/schemas/{model}")
    parts["schemas"] = {
        name: schema
        for name, schema in parts.get("schemas", {}).items()
        if name not in ("HTTPValidationError", "ValidationError")
    } | {"ProblemDocument": problem}
    app.openapi_schema = made
    return made
