"""`evaluate(model, split)` -> `Report`: metrics of a model or of lists, with intervals and the protocol."""

from __future__ import annotations

import dataclasses
import hashlib
import logging
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..answering.inference import require_fitted, seen_items
from ..answering.ranking import Ranking
from ..data import Dataset
from ..data.split import Split
from ..errors import CorankError
from .intervals import summary, user_weights
from .metrics import AnyMetric, Metric, metrics_of, ndcg
from .positions import Floats, Positions
from .protocol import Gain, Protocol, as_protocol, draw_negatives
from .ranks import Task, count, popularity, predict, scorer
from .report import Report

if TYPE_CHECKING:
    from ..model import Model

logger = logging.getLogger("corank")

DEFAULT_METRICS = ("ndcg@10", "recall@10", "mrr@10")
Part = Literal["valid", "test"]
SCORES = 100_000_000  # that an epoch is judged by: about a second
FEWEST_USERS = 2_000


def evaluate(
    model: Model | Ranking | Any,
    split: Split,
    metrics: AnyMetric | Iterable[AnyMetric] = DEFAULT_METRICS,
    *,
    protocol: Protocol | str = "full",
    part: Part = "test",
    negatives: int = 100,
    popular: bool = False,
    relevant: float | None = None,
    gain: Gain | None = None,
    seed: int = 0,
    bootstrap: int = 1000,
    name: str | None = None,
) -> Report:
    """Evaluate a fitted model, or lists of any origin, on the test (or validation) rows of a split.

    Parameters
    ----------
    model : a fitted model; or recommendation lists: a `Ranking`, a data frame with a user, an item, and a rank or a
        score per row, or a file of these. Of lists, metrics of the first k items are computed as for a model under full
        ranking. Test users without a list count as 0, and what else is odd about the lists is in `Report.notes`.
    metrics : names as in `metrics.names()`, or functions of `metrics.Positions`.
    protocol : 'full', 'sampled' or 'rated' (see `Protocol`), with `negatives`, `popular`, `relevant`, `gain` and
        `seed`; a `Protocol` has its own values of these.
    bootstrap : number of bootstrap resamples of the users for the confidence intervals; 0 = no intervals.
    name : the name in tables; that of the model, or 'lists', when absent.

    If a (user, item) pair has several test rows, the last one counts. Models that depend on the order of a history, and
    all models on a split with held-out users, score from the histories known at evaluation time; other models score by
    user code.
    """
    began = time.perf_counter()
    wanted = metrics_of(metrics)
    if part not in ("valid", "test"):
        raise CorankError(f"part={part!r} is not known: use 'test', or 'valid' while choosing parameters")
    if not isinstance(bootstrap, int | np.integer) or bootstrap < 0:
        raise CorankError(f"bootstrap={bootstrap!r}: the number of resamples must be 0 or more; 1000 is usual")
    if not isinstance(split, Split):
        raise CorankError(f"evaluate takes a Split, not {type(split).__name__}: make one, say with leave_last_out")
    rows = getattr(split, part)
    options = {"negatives": negatives, "popular": popular, "relevant": relevant, "gain": gain, "seed": seed}
    how = as_protocol(protocol, len(split.train.items), rows.values, **options)
    fitted: Model | None = model if hasattr(model, "_score_histories") else None  # type: ignore[assignment]
    if fitted is not None:
        _check(fitted, split, how, wanted)
    if len(rows) == 0:
        raise CorankError(f"the {part} part of {split.name} is empty: there is nothing to evaluate")
    task = Task(rows, how.relevant)
    known = split.known(part)
    how = dataclasses.replace(how, refit=_refit(fitted, split) if part == "test" else None)
    if fitted is not None:
        warn_of_training_rows(fitted, rows, part, known)
        positions, top = _positions(fitted, split, known, how, task, wanted)
        notes: tuple[str, ...] = ()
    else:
        from .lists import rank_lists

        positions, top, notes = rank_lists(model, split, known, how, task, wanted)
    values = {m.name: _values(m, positions) for m in wanted}
    lengths = np.diff(task.indptr)
    weights = user_weights(wanted, values, lengths)
    mean, interval = summary(wanted, values, weights, bootstrap, seed)
    for one, value in mean.items():
        if np.isnan(value):
            logger.warning("%s is defined for no user of %s under %s", one, split.name, how)
    return Report(
        name or (fitted.name() if fitted is not None else "lists"),
        fitted.used_params() if fitted is not None else {},
        how,
        split.name,
        part,
        wanted,
        split.train.users.ids[task.users],
        lengths,
        values,
        weights,
        mean,
        interval,
        time.perf_counter() - began,
        float(getattr(fitted, "fit_seconds_", np.nan)),
        _fingerprint(rows, known, how.refit, split.ties),
        top,
        (*split.notes, *notes),
    )


def validation_ndcg(model: Model, valid: Dataset, train_known: Dataset | None = None) -> float:
    """Mean NDCG@10 (binary gains) of full rankings of validation users, without intervals: quick enough for an epoch.

    train_known : the histories of validation users that were not in training (fold-in); when absent, users are scored
        by their codes, and their training items are excluded.
    """
    task = Task(valid, None)
    known = seen_items(model) if train_known is None else train_known.csr()
    counts = count(model, task, scorer(model, task.users, train_known, unseen=True), known=known)
    values = ndcg(task.positions(counts, gain="binary"), 10)
    return float(np.mean(values[~np.isnan(values)])) if (~np.isnan(values)).any() else float("nan")


def validation_sample(valid: Dataset) -> Dataset:
    """The rows of at most as many validation users as epochs can be compared by without costing more than training.

    All scores of all items for these users are `SCORES` at most, but there are `FEWEST_USERS` of them where there are
    as many. The same users are drawn in every epoch and fit.
    """
    return rows_of_some_users(valid, max(FEWEST_USERS, SCORES // max(1, len(valid.items))))


def rows_of_some_users(rows: Dataset, most: int) -> Dataset:
    """The rows of `most` random users, always the same ones; all rows where there are no more users."""
    users = np.unique(rows.user)
    if users.size <= most:
        return rows
    chosen = np.random.default_rng(0).choice(users, most, replace=False)
    return rows.take(np.isin(rows.user, chosen))


def _check(model: Model, split: Split, how: Protocol, wanted: tuple[Metric, ...]) -> None:
    require_fitted(model)
    if model.users_ != split.train.users or model.items_ != split.train.items:
        raise CorankError("the model was fitted on other users or items than this split has: fit it on split.train")
    for m in wanted:
        if "top" in m.needs and how.kind != "full":
            raise CorankError(f"{m.name} is computed from top-k lists: it needs protocol='full', not {how.kind!r}")
    require_predictions(model, wanted)


def require_predictions(model: Model, wanted: tuple[Metric, ...]) -> None:
    """Raise if a metric needs predicted ratings and the model gives scores: known before any fit."""
    for m in wanted:
        if "prediction" in m.needs and not model.predicts_ratings:
            raise CorankError(f"{m.name} needs predicted ratings, and {model.name()} gives only scores: use als, say")


def warn_of_training_rows(model: Model, rows: Dataset, part: Part = "test", known: Dataset | None = None) -> None:
    """Warn if the model was fitted on rows to predict. Pairs that are among the `known` rows too are repeated ones."""
    learned = seen_items(model).holds(rows.user, rows.item)
    if known is not None and learned.any():
        learned &= ~known.csr().holds(rows.user, rows.item)
    if learned.any():
        logger.warning(
            "%s of %s %s rows are in the model's training data: metrics are optimistic on training rows, "
            "so fit without them",
            f"{np.count_nonzero(learned):,}",
            f"{len(rows):,}",
            {"valid": "validation", "test": "test"}[part],
        )


def _positions(
    model: Model, split: Split, known: Dataset, how: Protocol, task: Task, wanted: tuple[Metric, ...]
) -> tuple[Positions, Ranking | None]:
    """Rank the test rows under the protocol; also the top-k lists, if a metric needs them.

    known : the rows known at evaluation time.
    """
    needs = frozenset[str]().union(*(m.needs for m in wanted))
    unseen_users = split.history is not None
    from_histories = unseen_users or model.order_matters
    more: dict[str, Any] = {"gain": how.gain}
    predicted = None
    if not from_histories and (how.kind == "rated" or "prediction" in needs):
        predicted = predict(model, task)
        if how.kind == "rated":
            more["prediction"] = predicted
            return Positions.of_lists(task.indptr, predicted, task.value, task.relevant, **more), None
    score = scorer(model, task.users, known if from_histories else None, unseen=unseen_users)
    if "top" in needs:
        more |= popularity(split)
    if how.kind == "full":
        width = max([m.k or 10 for m in wanted if "top" in m.needs], default=0)
        counts = count(model, task, score, known=known.csr(), width=width)
    else:
        # Unseen users have no codes to predict for: `rated` then ranks their test items without any negatives.
        alone = task.nothing(len(split.train.items))
        others = draw_negatives(how, split, task.users) if how.kind == "sampled" else alone
        counts = count(model, task, score, others=others)
    more["prediction"] = counts.mine.astype(np.float64) if predicted is None else predicted
    top = None
    if counts.top is not None and counts.top_scores is not None:
        top = Ranking(model.users_.ids[task.users], counts.top, counts.top_scores, model.items_)
    return task.positions(counts, **more), top


def _values(m: Metric, positions: Positions) -> Floats:
    """The values of a metric, with their shape checked: a user-defined function may return anything."""
    values = np.asarray(m.function(positions), np.float64)
    size = 1 if m.scope == "all" else positions.users
    if values.shape != (size,):
        raise CorankError(
            f"metric {m.name} returned an array of shape {values.shape}: it must be ({size},), one value per user"
        )
    return values


def _refit(model: Model | None, split: Split) -> bool | None:
    """Whether validation rows were learned from; None for lists, and where the split has none of training users."""
    if split.refitted:
        return True
    if model is None or len(split.valid) == 0 or split.history is not None or model.oracle:
        return None
    fresh = ~split.train.csr().holds(split.valid.user, split.valid.item)  # a repeated pair would be no evidence
    return bool(seen_items(model).holds(split.valid.user, split.valid.item)[fresh].any())


def _fingerprint(rows: Dataset, known: Dataset, refit: bool | None, ties: str) -> str:
    """Hash of the evaluation task (the rows to predict and the known ones), independent of the name of the split."""
    digest = hashlib.sha256(b"refit" if refit else b"")
    digest.update(b"" if ties == "file" else f"ties by {ties}".encode())
    for data in (rows, known):
        for array in (data.user, data.item, data.value):
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]
