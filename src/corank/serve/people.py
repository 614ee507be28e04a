"""One person in detail: what is known of them, and why items are recommended to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import CorankError
from .catalogue import code_of, parse
from .problems import refused, unknown
from .recent import NOTHING, RecentEvents
from .registry import Served
from .settings import MOST_HISTORY


def known_item(served: Served, item: Any) -> int:
    """The code of an item; one that the model does not know is a `Problem`."""
    vocab = served.model.items_
    try:
        code = code_of(vocab, item, "an item")
        if code < 0:
            vocab.require([parse(vocab, item, "an item")], "item")
    except CorankError as why:
        raise unknown(why) from None
    return code


def shown_user(served: Served, key: str) -> Any:
    """A user in an answer: an integer where ids are integers."""
    return key if served.model.users_.strings else parse(served.model.users_, key, "a user")


def past(served: Served, recent: RecentEvents, key: str) -> dict[str, Any]:
    """The newest training rows and the feedback of a user."""
    known = served.answerer.known(key, (), recent.of([key]).get(key, NOTHING))
    trained: list[int] = []
    if known.user >= 0:
        rows = served.answerer.training_rows()
        trained = rows.index[rows.indptr[known.user] : rows.indptr[known.user + 1]][-MOST_HISTORY:].tolist()
    item = served.catalogue.item
    return {
        "model": served.name,
        "user": shown_user(served, key),
        "trained": [item(code) for code in trained],
        "feedback": [item(code) for code in known.items],
    }


def reasons(
    served: Served,
    recent: RecentEvents,
    key: str | None,
    history: Sequence[tuple[Any, float | None]],
    items: Sequence[int],
    most: int,
) -> dict[str, Any]:
    """Why items are recommended: per item the entries of the history that speak for it most."""
    model, catalogue, answerer = served.model, served.catalogue, served.answerer
    known = answerer.known(key, history, NOTHING if key is None else recent.of([key]).get(key, NOTHING))
    rows = answerer.history_rows([known])
    user = None if known.user < 0 else model.users_.ids[known.user]
    try:
        found = model.explain(user, model.items_.ids[list(items)].tolist(), history=rows)
    except CorankError as why:
        raise refused(why) from None
    explained = []
    for at, (code, shares) in enumerate(zip(items, found.shares(), strict=True)):
        strongest = sorted(range(len(shares)), key=lambda n: -abs(shares[n][1]))[:most]
        values = found.contributions[at]
        entry = {
            **catalogue.item(code),
            "score": found.scores[at],
            "reasons": [
                {
                    **catalogue.item(code_of(model.items_, values[n][0], "an item")),
                    "contribution": values[n][1],
                    "share": shares[n][1],
                }
                for n in strongest
            ],
            "rest": {name: numbers[at] for name, numbers in found.rest.items()},
        }
        explained.append(entry)
    out: dict[str, Any] = {"model": served.name}
    if key is not None:
        out["user"] = shown_user(served, key)
    return {**out, "kind": found.kind, "items": explained}
