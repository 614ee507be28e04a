"""JSON in and out. Ids and titles may hold half of a surrogate pair, which the fast encoder refuses."""

from __future__ import annotations

import json
from typing import Any

import orjson


def dump(value: Any) -> bytes:
    """A value as JSON; numbers that are not finite become null."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)
    except orjson.JSONEncodeError:
        return json.dumps(_finite(value)).encode()


def load(body: bytes) -> Any:
    """The value of a JSON text; raises `ValueError`."""
    return orjson.loads(body)


def _finite(value: Any) -> Any:
    """The same with null for numbers that are not finite, as the fast encoder writes them."""
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    if isinstance(value, float) and value - value != 0:
        return None
    return value
