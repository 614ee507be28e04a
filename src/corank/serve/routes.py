"""The addresses of the service, with their descriptions."""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Query
from starlette.responses import Response, StreamingResponse

from . import metrics, schemas
from .encoding import dump
from .export import HEADER, plain_row
from .problems import MEDIA, Problem, refused, unavailable
from .service import Service
from .store import Store, StoreDown

TOKEN: dict[str, Any] = {"security": [{"token": []}]}
WHAT = {
    400: "the request cannot be read",
    401: "the token is missing or wrong",
    403: "the service is read-only",
    404: "there is no such user, item or model",
    409: "this would leave no model to answer with",
    413: "the body is too large",
    415: "the body is not sent as JSON",
    422: "something that was given breaks a rule",
    503: "the service is busy, or its store is down: try again later",
}
EXAMPLES = {
    "user": {"summary": "a user", "value": {"user": 1, "k": 5}},
    "history": {"summary": "an unseen user, by what they like", "value": {"history": [1, 2, 3], "k": 5}},
    "newer": {"summary": "a user with newer events", "value": {"user": 1, "history": [3], "k": 5}},
    "rules": {"summary": "only some items", "value": {"user": 1, "exclude": [7], "where": {"genre": "Comedy"}}},
}
REASONS = {
    "user": {"summary": "for a user", "value": {"user": 1, "items": [2]}},
    "history": {"summary": "for a history", "value": {"history": [1, 3], "items": [2]}},
}
LIKED = {
    "one": {"summary": "one event", "value": {"user": 1, "item": 3, "event": "like"}},
    "rating": {"summary": "a rating", "value": {"user": 1, "item": 3, "event": "rating", "value": 4.5}},
    "several": {"summary": "several", "value": {"events": [{"user": 1, "item": 3, "key": "order-17-3"}]}},
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The errors that an address may answer with, for the description."""
    schema = {"$ref": "#/components/schemas/ProblemDocument"}
    return {
        status: {"description": WHAT[status], "content": {MEDIA: {"schema": schema}}} for status in sorted(statuses)
    }


def answer(value: Any) -> Response:
    return Response(dump(value), media_type="application/json")


def reading(service: Service) -> APIRouter:
    """Addresses that change nothing."""
    router = APIRouter()

    @router.get(
        "/recommend",
        summary="Recommend items",
        response_model=schemas.Recommended,
        responses=problems(400, 404, 422, 503),
    )
    async def recommend(request: Annotated[schemas.RecommendQuery, Query()]) -> Response:
        return answer(await service.recommend(request))

    @router.post(
        "/recommend",
        summary="Recommend items, with rules and ratings",
        response_model=schemas.Recommended,
        responses=problems(400, 404, 413, 415, 422, 503),
    )
    async def recommend_body(
        request: Annotated[schemas.RecommendBody, Body(openapi_examples=EXAMPLES)],
    ) -> Response:
        return answer(await service.recommend(request))

    @router.get(
        "/explain",
        summary="Why items are recommended",
        response_model=schemas.Explanation,
        responses=problems(404, 422),
    )
    async def explain(request: Annotated[schemas.ExplainQuery, Query()]) -> Response:
        return answer(await service.explain(request))

    @router.post(
        "/explain",
        summary="Why items are recommended, with ratings",
        response_model=schemas.Explanation,
        responses=problems(400, 404, 413, 415, 422),
    )
    async def explain_body(
        request: Annotated[schemas.ExplainBody, Body(openapi_examples=REASONS)],
    ) -> Response:
        return answer(await service.explain(request))

    @router.get("/similar", summary="Items like an item", response_model=schemas.Similar, responses=problems(404, 422))
    async def similar(request: Annotated[schemas.SimilarQuery, Query()]) -> Response:
        return answer(await service.similar(request))

    @router.get("/items", summary="Find items", response_model=schemas.FoundItems, responses=problems(404, 422))
    async def items(request: Annotated[schemas.SearchQuery, Query()]) -> Response:
        return answer(await service.items(request))

    @router.get("/users", summary="Find users", response_model=schemas.FoundUsers, responses=problems(404, 422))
    async def users(request: Annotated[schemas.SearchQuery, Query()]) -> Response:
        return answer(await service.users(request))

    @router.get(
        "/history", summary="What is known of a user", response_model=schemas.History, responses=problems(404, 422)
    )
    async def history(request: Annotated[schemas.UserQuery, Query()]) -> Response:
        return answer(await service.history(request))

    @router.get("/models", summary="The models that answer", response_model=schemas.ServedModels)
    async def models() -> Response:
        return answer({"default": service.registry.default, "models": service.registry.listed()})

    @router.get("/stats", summary="Traffic, and impressions and clicks per model", response_model=schemas.Stats)
    async def stats() -> Response:
        return answer(await service.stats())

    return router


def writing(service: Service) -> APIRouter:
    """Addresses that need the token."""
    router = APIRouter()

    @router.post(
        "/feedback",
        summary="Store what users did",
        response_model=schemas.Stored,
        responses=problems(400, 401, 403, 413, 415, 422, 503),
        openapi_extra=TOKEN,
    )
    async def feedback(
        body: Annotated[
            schemas.Feedback,
            Body(openapi_examples=LIKED),
        ],
    ) -> Response:
        events = body.events if isinstance(body, schemas.FeedbackBatch) else [body]
        return answer(await service.feedback.accept(events))

    @router.get(
        "/feedback",
        summary="All feedback as a CSV table, for the next fit",
        response_class=Response,
        responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}, **problems(401, 403, 422, 503)},
        openapi_extra=TOKEN,
    )
    async def export() -> Response:
        if service.store is None:
            raise Problem(403, "there is no feedback store: start the service with --store URL")
        pages = table(service.store)
        try:
            first = await anext(pages)
        except StoreDown as why:
            raise unavailable(f"the feedback store does not answer ({why}): try again later") from None
        return StreamingResponse(chained(first, pages), media_type="text/csv")

    @router.delete(
        "/feedback",
        summary="Delete all feedback of a user",
        status_code=204,
        response_class=Response,
        responses=problems(401, 403, 422, 503),
        openapi_extra=TOKEN,
    )
    async def forget(request: Annotated[schemas.ForgetQuery, Query()]) -> Response:
        await service.feedback.forget(request.user)
        return Response(status_code=204)

    @router.put(
        "/models/{name}",
        summary="Load, swap or share a model",
        response_model=schemas.ServedModel,
        responses=problems(400, 401, 403, 404, 413, 415, 422),
        openapi_extra=TOKEN,
    )
    async def put(name: Annotated[str, Path(max_length=64)], change: schemas.ModelChange) -> Response:
        if change.file is None and change.share is None:
            raise refused("say what to change: give file, share or both")
        return answer(await service.change_model(name, change))

    @router.delete(
        "/models/{name}",
        summary="Remove a model",
        status_code=204,
        response_class=Response,
        responses=problems(401, 403, 404, 409, 422),
        openapi_extra=TOKEN,
    )
    async def delete(name: Annotated[str, Path(max_length=64)]) -> Response:
        await service.remove_model(name)
        return Response(status_code=204)

    return router


def watching(service: Service) -> APIRouter:
    """Addresses for those who operate the service."""
    router = APIRouter()

    @router.get("/health/live", summary="The process answers", response_model=schemas.Health)
    async def live() -> Response:
        return Response(b'{"status":"ok"}', media_type="application/json")

    @router.get("/health/ready", summary="The models answer", response_model=schemas.Health, responses=problems(503))
    async def ready() -> Response:
        if not service.ready:
            raise unavailable("the service is starting or stopping")
        return answer({"status": "ok" if service.store is None or service.store.up else "store down"})

    @router.get(
        "/metrics",
        summary="Counts and seconds for Prometheus",
        response_class=Response,
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    )
    async def prometheus() -> Response:
        return Response(service.metrics.text(), headers={"Content-Type": metrics.MEDIA})

    return router


async def table(store: Store) -> AsyncIterator[str]:
    """The feedback as CSV, page by page: a table that `read_csv` and `corank fit` read."""
    yield ",".join(HEADER) + "\n"
    pages = store.export()
    while (page := await asyncio.to_thread(next, pages, None)) is not None:
        out = io.StringIO()
        rows = (plain_row(row) for row in page)
        csv.writer(out, lineterminator="\n").writerows(row for row in rows if row is not None)
        yield out.getvalue()


async def chained(first: str, rest: AsyncIterator[str]) -> AsyncIterator[str]:
    yield first
    async for part in rest:
        yield part
