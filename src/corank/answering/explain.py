"""Why an item is recommended: how much each item of the history speaks for it.

Four kinds of explanation, by what the algebra of a model gives:

exact           the score is a sum over the items of the history (ease, item_knn)
decomposition   the fold-in of a history is a sum over its items, given the rest of the history (Hu, Koren and Volinsky
                2008 for wmf; factor models in the same way): the contributions and a named rest add up to the score
leave-one-out   the change of the score when the item is left out of the history, by scoring again
attention       the share of the attention of the last position, the same for all recommended items
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data import CSR, Array, row_ends
from ..data.frames import in_backend
from ..errors import CorankError, suggest
from . import inference
from .histories import read_histories
from .ranking import blocks

if TYPE_CHECKING:
    from ..model import Model

KINDS = ("exact", "decomposition", "leave-one-out", "attention")
SMALL = 1e-3  # a remainder below this share of the scores is rounding


class Reasons(NamedTuple):
    """What a model says about some items: `_contributions`."""

    kind: str
    codes: NDArray[np.int32]  # (entries,) items of the history
    contributions: NDArray[np.float64]  # (items, entries)
    rest: Mapping[str, NDArray[np.float64]] = {}  # (items,) each: parts of the score that no item of the history has
    left: str = ""  # what is left of the score is called so; "" if nothing is


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why items are recommended to one user: how much each item of the history speaks for them.

    user : the user's id; None for a history.
    items, scores : the items that are explained, and their scores.
    kind : 'exact', 'decomposition', 'leave-one-out' or 'attention'.
    contributions : per item, (item of the history, contribution) pairs, the largest first.
    rest : parts of the score beside the history, such as a bias: name -> one number per item. Unless the kind is
        'attention', contributions and rest of an item add up to its score.
    titles : the titles of all items that are mentioned, where the model knows them.
    attention : (L, L), mean attention weights over blocks and heads, for the kind 'attention'; `history` has its items.
    """

    user: Hashable | None
    items: list[Hashable]
    scores: list[float]
    kind: str
    contributions: list[list[tuple[Hashable, float]]]
    rest: dict[str, list[float]] = field(default_factory=dict)
    titles: dict[Hashable, str] = field(default_factory=dict)
    history: list[Hashable] = field(default_factory=list)
    attention: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        who = "a history" if self.user is None else f"user {self.user!r}"
        return f"Explanation({len(self)} items for {who}, {self.kind})"

    def shares(self) -> list[list[tuple[Hashable, float]]]:
        """The contributions as shares: of one item, their absolute values add up to 1 (or to 0 if all are 0)."""
        out = []
        for reasons in self.contributions:
            total = sum(abs(value) for _, value in reasons) or 1.0
            out.append([(item, value / total) for item, value in reasons])
        return out

    def to_frame(self, backend: str = "polars") -> Any:
        """A table with a row per recommended item and item of the history.

        Its columns are item, score, because (the item of the history), contribution and share; title and because_title
        where the model knows titles.
        """
        import polars as pl

        rows = [
            (item, score, because, value, share)
            for item, score, reasons, shares in zip(
                self.items, self.scores, self.contributions, self.shares(), strict=True
            )
            for (because, value), (_, share) in zip(reasons, shares, strict=True)
        ]
        kind = pl.String if any(isinstance(item, str) for item in (*self.items, *self.history)) else pl.Int64
        schema = {"item": kind, "score": pl.Float64, "because": kind, "contribution": pl.Float64, "share": pl.Float64}
        frame = pl.DataFrame(rows, schema=schema, orient="row")
        if self.titles:
            for column, title in (("item", "title"), ("because", "because_title")):
                found = [self.titles.get(item) or None for item in frame[column].to_list()]
                frame = frame.with_columns(pl.Series(title, found, dtype=pl.String))
        return in_backend(frame, backend)

    def _repr_html_(self) -> str:
        from ..notebook import html_table

        rows = []
        for item, score, reasons in zip(self.items, self.scores, self.shares(), strict=True):
            because = ", ".join(f"{self._name(i)} ({share:.0%})" for i, share in reasons[:3] if share > 0)
            rows.append([self._name(item), f"{score:.4g}", because])
        return html_table(rows, ["item", "score", "because of"], caption=repr(self))

    def _name(self, item: Hashable) -> str:
        return self.titles.get(item) or str(item)


def explain(
    model: Model,
    user: Hashable | None,
    items: Iterable[Hashable] | Hashable | None,
    history: Iterable[Hashable] | Mapping[Hashable, float] | CSR | None,
    k: int,
    kind: str | None,
) -> Explanation:
    """See `Model.explain`."""
    inference.require_fitted(model)
    if user is None and history is None:
        raise CorankError("explain takes one user or one history: give a user id, or history=[...]")
    if kind is not None and kind not in KINDS:
        raise CorankError(f"there is no kind of explanation {kind!r}{suggest(str(kind), KINDS)}")
    codes = None
    if user is not None:
        if isinstance(user, list | tuple | set | np.ndarray):
            raise CorankError("explain takes one user at a time: call it once per user")
        codes = inference.user_codes(model, [user])
    if history is not None:
        row = read_histories(model, history if isinstance(history, CSR) else [history])[1]
    else:
        row = model._history(int(codes[0]))  # type: ignore[index]
    if not row.index.size:
        raise CorankError(f"user {user!r} has no items, so nothing can be explained by them: give a history")
    if items is None:
        ranking = model.recommend(None if codes is None else [user], histories=None if history is None else row, k=k)
        chosen = ranking.items[0][ranking.items[0] >= 0]
    else:
        chosen = model.items_.require(inference.listed(items), "item")
    scores = model._scorer(codes, None if history is None else row)(slice(0, 1))[0, chosen].astype(np.float64)
    # A newer history is folded in: what was learned of the user belongs to the training rows (networks use both).
    code = None if codes is None or not (history is None or model.order_matters) else int(codes[0])
    weights = None
    if kind == "attention":
        given = None if history is None else model.items_.ids[row.index].tolist()
        reasons, weights = _attention(model, user, given, chosen)
    elif kind == "leave-one-out":
        reasons = leave_one_out(model, code, row, chosen, scores)
    else:
        reasons = model._contributions(code, row, chosen, scores)
        if kind is not None and kind != reasons.kind:
            raise CorankError(
                f"{model.name()} has no explanation of kind {kind!r}: it has {reasons.kind!r} and 'leave-one-out'"
            )
    return _explanation(model, user, chosen, scores, reasons, weights)


def _explanation(
    model: Model, user: Any, items: Array, scores: Array, reasons: Reasons, weights: Array | None
) -> Explanation:
    ids = model.items_.ids
    history = ids[reasons.codes].tolist()
    rest = {name: np.asarray(value, np.float64) for name, value in reasons.rest.items()}
    if reasons.left:
        left = scores - reasons.contributions.sum(axis=1) - sum(rest.values(), np.zeros(items.size))
        if np.abs(left).max(initial=0.0) > SMALL * np.abs(scores).max(initial=1e-30):
            rest[reasons.left] = left
    order = np.argsort(-reasons.contributions, axis=1, kind="stable")
    mentioned = np.unique(np.concatenate([items, reasons.codes])) if len(model.titles_) else np.zeros(0, np.int64)
    return Explanation(
        user=user,
        items=ids[items].tolist(),
        scores=scores.tolist(),
        kind=reasons.kind,
        contributions=[
            [(history[j], float(values[j])) for j in row.tolist()]
            for row, values in zip(order, reasons.contributions, strict=True)
        ],
        rest={name: value.tolist() for name, value in rest.items()},
        titles={item: model.titles_[code] or "" for item, code in zip(ids[mentioned].tolist(), mentioned, strict=True)},
        history=history,
        attention=weights,
    )


def leave_one_out(
    model: Model, user: int | None, history: CSR, items: NDArray[np.int32], scores: NDArray[np.float64]
) -> Reasons:
    """The change of the scores when one item of the history is left out, by scoring again: exact for any model.

    A known user keeps what the model knows of the user beside the history. What the items have in common is in no
    contribution: that is the rest, called `together`.
    """
    n, columns = history.index.size, len(model.items_)
    every = np.arange(n)
    parts = [every, *(np.delete(every, j) for j in range(n))]  # all, and all but one
    at = np.concatenate(parts)
    rows = CSR(row_ends([part.size for part in parts]), history.index[at], history.value[at], columns)
    users = None if user is None or not model.order_matters else np.full(n + 1, user, np.int32)
    found = np.empty((n + 1, items.size))
    score = model._scorer(users, rows)
    for part in blocks(n + 1, columns):
        found[part] = score(part)[:, items]
    return Reasons("leave-one-out", history.index, (found[0] - found[1:]).T, left="together")


def _attention(model: Model, user: Any, history: Any, items: Array) -> tuple[Reasons, Array]:
    """Mean attention of the last position over blocks and heads, (items, entries), and all weights (L, L)."""
    attention = getattr(model, "attention", None)
    if attention is None:
        raise CorankError(f"{model.name()} has no attention weights: leave kind out, or use sasrec or sse_pt")
    found = attention(user) if history is None else attention(history=history)
    weights = found["weights"]
    if not weights.size:
        raise CorankError(f"{model.name()}(blocks=0) has no attention weights: use kind='leave-one-out'")
    mean = weights.mean(axis=(0, 1))  # (L, L)
    last = np.tile(mean[-1].astype(np.float64), (items.size, 1))
    return Reasons("attention", model.items_.codes(found["items"]), last), mean
