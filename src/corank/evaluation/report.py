"""`Report`: the metrics of one model on one split, with confidence intervals and the protocol that produced them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..answering.ranking import Ranking
from ..data import Array
from ..errors import CorankError
from .metrics import AnyMetric, Metric, metric
from .positions import Floats
from .protocol import Protocol


@dataclass(frozen=True, eq=False)
class Report:
    """The metrics of one model on one split; `report["ndcg@10"]` is the mean.

    Attributes
    ----------
    interval : name -> (low, high), 95 % bootstrap interval over users.
    top : the top lists of the evaluated users where a metric needed them (coverage, novelty), else None. As in the
        ranking that was evaluated, items known at evaluation time are excluded and test items never are.
    notes : remarks on evaluated lists, printed with the figures.
    """

    model: str
    params: dict[str, Any]
    protocol: Protocol
    split: str
    part: str
    metrics: tuple[Metric, ...]
    users: Array  # [n] ids
    rows: NDArray[np.int64]  # [n] number of test rows of each user
    values: dict[str, Floats]  # what each metric returned: [n], or [1] for a metric of all users together
    weights: dict[str, Floats]  # [n] what each user counts in the mean of a metric, 0 where it is not defined
    mean: dict[str, float]
    interval: dict[str, tuple[float, float]]
    seconds: float  # of evaluation
    fit_seconds: float
    fingerprint: str  # of the test rows and of the rows known at evaluation time: equal = the same task
    top: Ranking | None = None
    notes: tuple[str, ...] = ()  # of the split and of the lists

    @cached_property
    def per_user(self) -> dict[str, Floats]:
        """name -> float64[users], NaN where the metric is not defined for a user; such users are not in the mean."""
        nothing = np.full(self.users.size, np.nan)
        return {m.name: nothing if m.scope == "all" else m.finish(self.values[m.name]) for m in self.metrics}

    def metric(self, name: AnyMetric) -> Metric:
        """The metric of this report with that name."""
        wanted = name if isinstance(name, str) and name in self.mean else metric(name).name
        for one in self.metrics:
            if one.name == wanted:
                return one
        raise CorankError(f"{wanted} was not evaluated for {self.model}: this report has {', '.join(self.mean)}")

    def __getitem__(self, name: AnyMetric) -> float:
        return self.mean[self.metric(name).name]

    def __repr__(self) -> str:
        figures = ", ".join(f"{name} {mean:.4f}" for name, mean in self.mean.items())
        return f"Report({self.model} on {self.split}: {figures})"

    def _repr_html_(self) -> str:
        from ..notebook import html_table

        rows = [
            (
                name,
                f"{mean:.4f}",
                "" if np.isnan(self.interval[name][0]) else "[{:.4f}, {:.4f}]".format(*self.interval[name]),
            )
            for name, mean in self.mean.items()
        ]
        notes = [str(self.protocol), *self.notes]
        return html_table(rows, ("metric", "mean", "95 % interval"), caption=self._caption(), notes=notes)

    def _caption(self) -> str:
        return f"{self.model} on {self.split} ({self.part}, {self.users.size:,} users)"

    def __str__(self) -> str:
        width = max(map(len, self.mean))
        lines = [self._caption(), str(self.protocol), *(f"note: {note}" for note in self.notes)]
        for name, mean in self.mean.items():
            low, high = self.interval[name]
            lines.append(f"{name:<{width}}  {mean:.4f}" + ("" if np.isnan(low) else f"  [{low:.4f}, {high:.4f}]"))
        return "\n".join(lines)

    def to_frame(self) -> Any:
        """One row per metric: model, metric, mean, low, high, users, protocol, split, part."""
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
            **({"notes": list(self.notes)} if self.notes else {}),
        }
        if per_user:
            out["ids"] = self.users.tolist()
            out["per_user"] = {name: [_plain(v) for v in values.tolist()] for name, values in self.per_user.items()}
        return out


def _plain(number: float) -> float | None:
    return None if np.isnan(number) else float(number)
