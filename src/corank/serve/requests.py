"""From the query or body of a request to what the library is asked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl

from pydantic import BaseModel, ValidationError

from ..data import Vocab
from ..errors import CorankError, show, suggest
from . import schemas
from .answers import PLAIN, Asked, Rules
from .catalogue import code_of, parse
from .encoding import dump, load
from .problems import Problem, refused
from .settings import MOST_DIVERSE, MOST_HISTORY

Person = schemas.RecommendQuery | schemas.RecommendBody | schemas.ExplainQuery | schemas.ExplainBody
LISTS = ("history", "items", "exclude")
MOST_FIELDS = 5_000  # of a query


def read_query(query: bytes) -> schemas.RecommendQuery:
    """The query of GET /recommend, checked; the frameworks' way takes several times as long."""
    given: dict[str, Any] = {}
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS)
    except ValueError:
        raise Problem(400, "the query is not text in UTF-8 with at most 5,000 fields") from None
    for name, value in pairs:
        if name in LISTS:
            given.setdefault(name, []).append(value)
        elif name in given:
            raise refused(f"{show(name)} is given twice: give it once")
        else:
            given[name] = value
    try:
        return schemas.RecommendQuery.model_validate(given)
    except ValidationError as why:
        raise refused(sentence(why.errors(include_url=False), schemas.RecommendQuery)) from None


def asked_of(request: schemas.RecommendQuery | schemas.RecommendBody, items: Vocab) -> Asked:
    """A request for recommendations, for a model with these items."""
    history = history_of(request, items)
    if request.diversity and request.k > MOST_DIVERSE:
        raise refused(f"k={request.k}: with diversity, a list has at most {MOST_DIVERSE} items")
    if isinstance(request, schemas.RecommendQuery):
        rules = _rules_of_query(request, items)
    else:
        rules = _rules(request.items, request.exclude, request.where, request.diversity, items)
    return Asked(request.k, request.user, history, rules, request.seen)


def history_of(request: Person, items: Vocab) -> list[tuple[Any, float | None]]:
    """The history of a request: items and ratings, oldest first."""
    history: list[tuple[Any, float | None]]
    if isinstance(request, schemas.RecommendQuery | schemas.ExplainQuery):
        history = [(one, None) for one in listed(request.history, items)]
    else:
        history = [(one.item, one.value) if isinstance(one, schemas.Liked) else (one, None) for one in request.history]
    if request.user is None and not history:
        raise refused("say for whom: give user, history or both")
    return history


def listed(texts: Sequence[Any], vocab: Vocab) -> list[Any]:
    """Ids in an address: a text with commas is a list, unless all of it is an id."""
    out: list[Any] = []
    for text in texts:
        if isinstance(text, str) and "," in text and not (vocab.strings and code_of(vocab, text, "an item") >= 0):
            out += [part for part in (word.strip() for word in text.split(",")) if part]
        else:
            out.append(text)
    if len(out) > MOST_HISTORY:
        raise refused(f"a list of {len(out):,} ids: at most {MOST_HISTORY:,} are allowed; send a body for more")
    return out


def _rules_of_query(request: schemas.RecommendQuery, items: Vocab) -> Rules:
    if request.items is None and request.exclude is None and request.where is None and not request.diversity:
        return PLAIN
    where = None
    if request.where is not None:
        try:
            where = load(request.where.encode("utf-8", "surrogatepass"))
        except ValueError:
            where = request.where
        if not isinstance(where, dict) or len(where) > 50:
            raise refused(f"where={show(request.where)} is not a JSON object: give {schemas.WHERE.split(': ', 1)[1]}")
    allowed = None if request.items is None else listed(request.items, items)
    return _rules(
        allowed, None if request.exclude is None else listed(request.exclude, items), where, request.diversity, items
    )


def _rules(
    allowed: Sequence[Any] | None,
    exclude: Sequence[Any] | None,
    where: dict[str, Any] | None,
    diversity: float,
    items: Vocab,
) -> Rules:
    options: dict[str, Any] = {}
    try:
        if allowed is not None:
            options["items"] = [parse(items, one, "an item") for one in allowed]
        if exclude is not None:
            options["exclude"] = [parse(items, one, "an item") for one in exclude]
    except CorankError as why:
        raise refused(why) from None
    if where is not None:
        options["where"] = where
    return Rules(dump([options, diversity]), options, diversity) if options or diversity else PLAIN


def sentence(errors: Sequence[Any], schema: type[BaseModel] | None = None) -> str:
    """What is wrong with a request, in a sentence: where, what was given, and the rule."""
    places: dict[str, list[Any]] = {}
    for error in errors:
        places.setdefault(_place(error), []).append(error)
    where = max(places, key=lambda place: place.count("."))  # of several forms, the one that fits furthest
    first = _rule(where, places[where], schema)
    others = sum(not (where.startswith(place) or place.startswith(where)) for place in places)
    return f"{first} (and {others} more)" if others else first


def _place(error: Any) -> str:
    """Where an error is, such as history.0.value, without the names of the forms that were tried."""
    parts = [str(part) for part in error["loc"] if isinstance(part, int) or not FORM.fullmatch(part)]
    return ".".join(parts[1:] if parts and parts[0] in ("body", "query", "path") else parts)


def _rule(where: str, errors: Sequence[Any], schema: type[BaseModel] | None) -> str:
    error, kinds = errors[0], [one["type"] for one in errors]
    kind, limit = error["type"], error.get("ctx") or {}
    if kind == "extra_forbidden":
        near = "" if schema is None else suggest(where, schema.model_fields).split("; known")[0]
        return f"there is no {show(where)}{near}"
    if kind == "missing":
        return f"{where or 'the body'} is missing"
    if kind == "json_invalid":
        return "the body is not JSON"
    if kind in ("too_long", "string_too_long"):
        return f"{where} is too long: at most {limit['max_length']:,} are allowed"
    given = f"{where or 'the body'}={show(error['input'])}"
    if all(one in TYPES for one in kinds):
        return f"{given}: it must be {' or '.join(dict.fromkeys(TYPES[one] for one in kinds))}"
    if kind == "greater_than_equal":
        return f"{given}: it must be at least {limit['ge']:g}"
    if kind == "less_than_equal":
        return f"{given}: it must be at most {limit['le']:,g}"
    message = str(error["msg"])
    return f"{given}: {message[:1].lower()}{message[1:]}"


# Parts of a place that name a form: of a union, or of a checked type.
FORM = re.compile(r"int|str|function-.*|constrained-.*|Liked|one|several|list\[.*")
TYPES = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "string_type": "a text",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "dict_type": "an object",
    "list_type": "a list",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
}
