"""`evaluate(model, split)` -> `Report`: figures with intervals and the protocol that produced them."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..answering import require_fitted
from ..data import CSR, Array, Dataset
from ..data.split import Split
from ..errors import CorankError
from ..ranking import Ranking
from .metrics import AnyMetric, Floats, Metric, Positions, metric, metrics_of, ndcg
from .protocol import Protocol, as_protocol, draw_negatives
from .ranks import Task, count, predict, scorer

if TYPE_CHECKING:
    from ..model import Model

logger = logging.getLogger("corank")

DEFAULT_METRICS = ("ndcg@10", "recall@10", "mrr@10")
Part = Literal["valid", "test"]


@dataclass(frozen=True, eq=False)
class Report:
    """What one model reached on one split, with the protocol; `report["ndcg@10"]` is the figure.

    per_user : name -> float64[users], NaN where the metric is not defined for a user; users like that are left out.
    interval : name -> (low, high), 95 % bootstrap over users.
    """

    model: str
    params: dict[str, Any]
    protocol: Protocol
    split: str
    part: str
    metrics: tuple[Metric, ...]
    users: Array  # [n] ids
    rows: NDArray[np.int64]  # [n] test rows of each user
    values: dict[str, Floats]  # what each metric gave: [n], or [1] for a figure of all users together
    mean: dict[str, float]
    interval: dict[str, tuple[float, float]]
    seconds: float  # of evaluation
    fit_seconds: float
    fingerprint: str  # of the rows that were predicted and of what was known: equal = the same task
    top: Ranking | None = None  # the evaluated users' top lists, where a metric needed them (coverage, novelty)

    @cached_property
    def per_user(self) -> dict[str, Floats]:
        nothing = np.full(self.users.size, np.nan)
        return {m.name: nothing if m.scope == "all" else m.finish(self.values[m.name]) for m in self.metrics}

    def metric(self, name: AnyMetric) -> Metric:
        """The metric of this report that a name means."""
        wanted = name if isinstance(name, str) and name in self.mean else metric(name).name
        for one in self.metrics:
            if one.name == wanted:
                return one
        raise CorankError(f"{wanted} was not evaluated for {self.model}: this report has {', '.join(self.mean)}")

    def __getitem__(self, name: AnyMetric) -> float:
        return self.mean[self.metric(name).name]

    def __str__(self) -> str:
        width = max(map(len, self.mean))
        lines = [f"{self.model} on {self.split} ({self.part}, {self.users.size:,} users)", str(self.protocol)]
        for name, mean in self.mean.items():
            low, high = self.interval[name]
            lines.append(f"{name:<{width}}  {mean:.4f}" + ("" if np.isnan(low) else f"  [{low:.4f}, {high:.4f}]"))
        return "\n".join(lines)

    def to_frame(self) -> Any:
        """One row a metric: model, metric, mean, low, high, users, protocol, split, part."""
        import polars as pl

        return pl.DataFrame(
            [
                {
                    "model": self.model,
                    "metric": name,
                    "mean": self.mean[name],
                    "low": self.interval[name][0],
                    "high": self.interval[name][1],
                    "users": self.users.size,
                    "protocol": str(self.protocol),
                    "split": self.split,
                    "part": self.part,
                }
                for name in self.mean
            ]
        )

    def as_dict(self, *, per_user: bool = False) -> dict[str, Any]:
        """Plain values for JSON (NaN becomes None); `per_user` adds the ids and their values."""
        out: dict[str, Any] = {
            "model": self.model,
            "params": {k: v.item() if isinstance(v, np.generic) else v for k, v in self.params.items()},
            "protocol": str(self.protocol),
            "split": self.split,
            "part": self.part,
            "users": int(self.users.size),
            "metrics": {
                name: dict(zip(("mean", "low", "high"), map(_plain, (mean, *self.interval[name])), strict=True))
                for name, mean in self.mean.items()
            },
            "seconds": self.seconds,
            "fit_seconds": _plain(self.fit_seconds),
            "fingerprint": self.fingerprint,
        }
        if per_user:
            out["ids"] = self.users.tolist()
            out["per_user"] = {name: [_plain(v) for v in values.tolist()] for name, values in self.per_user.items()}
        return out


def evaluate(
    model: Model,
    split: Split,
    metrics: AnyMetric | Iterable[AnyMetric] = DEFAULT_METRICS,
    *,
    protocol: Protocol | str = "full",
    part: Part = "test",
    negatives: int = 100,
    popular: bool = False,
    relevant: float | None = None,
    seed: int = 0,
    bootstrap: int = 1000,
    name: str | None = None,
) -> Report:
    """Measure a fitted model on the test (or validation) rows of a split.

    metrics : names as in `metrics.names()`, or functions of `metrics.Positions`.
    protocol : 'full', 'sampled' or 'rated' (see `Protocol`), with `negatives`, `popular`, `relevant` and `seed`; a
        `Protocol` brings its own.
    bootstrap : number of resamples of the users for the intervals; 0 = none.
    name : what to call the model in tables; its own name when absent.

    Where a (user, item) pair has several test rows the last one counts. Models that read histories in order, and all
    models on a split with held-out users, are given what is known of the users at that time; others score by user.
    """
    began = time.perf_counter()
    wanted = metrics_of(metrics)
    if part not in ("valid", "test"):
        raise CorankError(f"part={part!r} is not known: use 'test', or 'valid' while choosing parameters")
    if not isinstance(bootstrap, int | np.integer) or bootstrap < 0:
        raise CorankError(f"bootstrap={bootstrap!r}: the number of resamples must be 0 or more; 1000 is usual")
    _check(model, split)
    how = as_protocol(
        protocol, len(split.train.items), negatives=negatives, popular=popular, relevant=relevant, seed=seed
    )
    rows = getattr(split, part)
    if len(rows) == 0:
        raise CorankError(f"the {part} part of {split.name} is empty: there is nothing to evaluate")
    task = Task(rows, how.relevant)
    positions, top = _positions(model, split, part, how, task, wanted)
    values = {m.name: _values(m, positions) for m in wanted}
    lengths = np.diff(task.indptr)
    mean, interval = _summary(wanted, values, lengths, bootstrap, seed)
    for one, figure in mean.items():
        if np.isnan(figure):
            logger.warning("%s is defined for no user of %s under %s", one, split.name, how)
    return Report(
        name or model.name(),
        model.params(),
        how,
        split.name,
        part,
        wanted,
        split.train.users.ids[task.users],
        lengths,
        values,
        mean,
        interval,
        time.perf_counter() - began,
        float(getattr(model, "fit_seconds_", np.nan)),
        _fingerprint(rows, split.known(part)),
        top,
    )


def validation_ndcg(model: Model, valid: Dataset, train_known: Dataset | None = None) -> float:
    """Mean NDCG@10 of full rankings of the validation users, the model's seen items excluded; quick.

    train_known : what is known of the validation users where the model has not learned from them (fold-in).
    """
    task = Task(valid, None)
    if train_known is None:
        known = CSR(model.seen_indptr_, model.seen_index_, np.empty(0, np.float32), len(model.items_))
    else:
        known = train_known.csr()
    counts = count(model, task, scorer(model, task.users, train_known, strangers=True), known=known)
    values = ndcg(task.positions(counts), 10)
    return float(np.mean(values[~np.isnan(values)])) if (~np.isnan(values)).any() else float("nan")


# ---- parts -----------------------------------------------------------------------------------------------------------


def _check(model: Model, split: Split) -> None:
    if not isinstance(split, Split):
        raise CorankError(f"evaluate takes a Split, not {type(split).__name__}: make one, say with leave_last_out")
    require_fitted(model)
    if model.users_ != split.train.users or model.items_ != split.train.items:
        raise CorankError("the model knows other users or items than this split: fit it on split.train")


def _positions(
    model: Model, split: Split, part: Part, how: Protocol, task: Task, wanted: tuple[Metric, ...]
) -> tuple[Positions, Ranking | None]:
    """Run the model under the protocol: where the test rows stand, and the top lists where a metric needs them."""
    needs = frozenset[str]().union(*(m.needs for m in wanted))
    for m in wanted:
        if "top" in m.needs and how.kind != "full":
            raise CorankError(f"{m.name} looks at whole lists: it needs protocol='full', not {how.kind!r}")
        if "prediction" in m.needs and not model.predicts_ratings:
            raise CorankError(f"{m.name} needs predicted ratings and {model.name()} gives only scores: use als, say")
    folded = split.history is not None or model.order_matters
    more: dict[str, Any] = {}
    predicted = None
    if not folded and (how.kind == "rated" or "prediction" in needs):
        predicted = predict(model, task)
        if how.kind == "rated":
            more = {"prediction": predicted}
            return Positions.of_lists(task.indptr, predicted, task.value, task.relevant, **more), None
    score = scorer(model, task.users, split.known(part) if folded else None, strangers=split.history is not None)
    if "top" in needs:
        taken = split.train.csr()
        more["owners"] = np.bincount(taken.index, minlength=taken.columns)
        more["train_users"] = int(np.count_nonzero(np.diff(taken.indptr)))
    if how.kind == "full":
        width = max([m.k or 10 for m in wanted if "top" in m.needs], default=0)
        counts = count(model, task, score, known=split.known(part).csr(), width=width)
    else:
        # Held-out users have no codes to predict for: `rated` is then a list without any negatives.
        alone = task.nothing(len(split.train.items))
        others = draw_negatives(how, split, task.users) if how.kind == "sampled" else alone
        counts = count(model, task, score, others=others)
    more["prediction"] = counts.mine.astype(np.float64) if predicted is None else predicted
    top = None
    if counts.top is not None and counts.top_scores is not None:
        top = Ranking(model.users_.ids[task.users], counts.top, counts.top_scores, model.items_)
    return task.positions(counts, **more), top


def _values(m: Metric, positions: Positions) -> Floats:
    """What the metric gives, checked: a user's own function may give anything."""
    values = np.asarray(m.function(positions), np.float64)
    size = 1 if m.scope == "all" else positions.users
    if values.shape != (size,):
        raise CorankError(f"metric {m.name} gave an array of shape {values.shape}: it must give ({size},), one a user")
    return values


def _summary(
    wanted: tuple[Metric, ...], values: dict[str, Floats], rows: Array, bootstrap: int, seed: int
) -> tuple[dict[str, float], dict[str, tuple[float, float]]]:
    """Means, and intervals from resampled users; all metrics share the resamples."""
    mean = {m.name: float(values[m.name][0]) for m in wanted if m.scope == "all"}
    interval = dict.fromkeys(mean, (np.nan, np.nan))
    plain = [m for m in wanted if m.scope != "all"]
    if plain:
        low, middle, high = resampled_means(plain, [values[m.name] for m in plain], rows, bootstrap, seed)
        for i, m in enumerate(plain):
            mean[m.name] = float(middle[i])
            interval[m.name] = (float(low[i]), float(high[i]))
    return {m.name: mean[m.name] for m in wanted}, {m.name: interval[m.name] for m in wanted}


def totals(m: Metric, values: Floats, rows: Array) -> tuple[Floats, Floats]:
    """float64[users] each: sums and weights whose quotient, finished, is the figure; weight 0 where undefined."""
    defined = ~np.isnan(values)
    weight = np.where(defined, rows if m.scope == "row" else 1, 0).astype(np.float64)
    return np.where(defined, values, 0) * weight, weight


def resample(users: int, columns: Floats, times: int, seed: int) -> Floats:
    """Sums of the columns float64[users, c] over `times` draws of as many users with replacement: float64[times, c]."""
    rng = np.random.default_rng([seed, 1])
    out = np.empty((times, columns.shape[1]))
    for t in range(times):
        drawn = np.bincount(rng.integers(0, users, users, np.int32), minlength=users)
        out[t] = drawn @ columns
    return out


def resampled_means(
    wanted: list[Metric], values: list[Floats], rows: Array, times: int, seed: int
) -> tuple[Floats, Floats, Floats]:
    """Low end, figure and high end for each metric."""
    parts = [totals(m, v, rows) for m, v in zip(wanted, values, strict=True)]
    columns = np.column_stack([p[0] for p in parts] + [p[1] for p in parts])

    def figures(sums: Floats) -> Floats:
        part, whole = sums[..., : len(wanted)], sums[..., len(wanted) :]
        means = np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole > 0)
        return np.stack([m.finish(means[..., i]) for i, m in enumerate(wanted)], axis=-1)

    middle = figures(columns.sum(axis=0))
    if times == 0:
        return np.full(len(wanted), np.nan), middle, np.full(len(wanted), np.nan)
    drawn = figures(resample(rows.size, columns, times, seed))
    low, high = np.full(len(wanted), np.nan), np.full(len(wanted), np.nan)
    for i in range(len(wanted)):
        real = drawn[~np.isnan(drawn[:, i]), i]
        if real.size:
            low[i], high[i] = np.quantile(real, [0.025, 0.975])
    return low, middle, high


def _fingerprint(rows: Dataset, known: Dataset) -> str:
    """Of the task: rows to predict and what is known, whatever their names."""
    digest = hashlib.sha256()
    for data in (rows, known):
        for array in (data.user, data.item, data.value):
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def _plain(number: float) -> float | None:
    return None if np.isnan(number) else float(number)
