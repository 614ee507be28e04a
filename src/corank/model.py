"""The contract of every model.

A model is a dataclass of hyper-parameters. `fit` learns; a subclass writes `_fit`, `_score` and `_score_histories`.
What is learned is kept in attributes whose names end in `_`: arrays, vocabularies and plain JSON values, so that saving
needs no code in any model.
"""

from __future__ import annotations

import dataclasses
import importlib
import logging
import math
import pkgutil
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from .checks import before_fit, diverged
from .columns import id_array
from .data import CSR, Array, Dataset
from .errors import CorankError, NotFitted, suggest
from .memory import make_room
from .params import param
from .ranking import Ranking, blocks, top_k

logger = logging.getLogger("corank")

OnEpoch = Callable[[dict[str, Any]], bool | None]
Histories = Sequence[Iterable[Hashable] | Mapping[Hashable, float]] | Mapping[Hashable, Iterable[Hashable]] | Dataset


@dataclass(kw_only=True, eq=False)
class Model:
    """Base of all models: see `docs/adding-a-model.md`."""

    seed: int = param(0, "fixes every random draw", low=0)

    predicts_ratings: ClassVar[bool] = False  # predict() speaks in units of the ratings
    uses_graph: ClassVar[bool] = False  # without a graph of users or items it is another model with more to do
    tasks: ClassVar[tuple[str, ...]] = ()  # what it is for, where that does not follow from the two below
    task_params: ClassVar[Mapping[str, Mapping[str, Any]]] = {}  # hyper-parameters that a task asks for
    takes_comparisons: ClassVar[bool] = False  # reads Dataset.comparisons
    oracle: ClassVar[bool] = False  # knows the truth behind synthetic data
    needs_ratings: ClassVar[bool] = False  # learns from differences between the values of a user
    order_matters: ClassVar[bool] = (
        False  # scores depend on the order of a history, so evaluation passes the newest one
    )

    # ---- learning ------------------------------------------------------------------------------------------------

    def fit(
        self,
        data: Dataset,
        *,
        valid: Dataset | None = None,
        on_epoch: OnEpoch | None = None,
        checkpoint: str | Path | None = None,
    ) -> Self:
        """Learn from `data`, forgetting any earlier fit; returns self.

        valid : rows on which NDCG@10 (full ranking) is measured after each epoch.
        on_epoch : called with a dict after each epoch; training stops cleanly when it returns False.
        checkpoint : a file for the state of training: a fit that finds it goes on there, and ends as if never stopped;
            `save` removes it.
        """
        before_fit(self, data, valid)
        for name in self._learned():
            delattr(self, name)
        dim = getattr(self, "dim", 0)
        # Factors, their copies at work, and the check that they are finite.
        vectors = 12.0 * dim * (len(data.users) + len(data.items))
        make_room(vectors, f"{type(self).__name__}(dim={dim}) of this data", "choose a smaller dim")
        rows = data.csr()
        self.users_, self.items_ = data.users, data.items
        self.seen_indptr_, self.seen_index_ = rows.indptr, rows.index
        self.titles_ = data.item_labels["title"].tolist() if "title" in data.item_labels else []
        self.history_: list[dict[str, Any]] = []
        self._valid, self._on_epoch, self._started = valid, on_epoch, _clock()
        self._carried: dict[str, Array] = {}
        self._checkpoint, self._stopped = None, False
        if checkpoint is not None:
            from .checkpoint import Checkpoint

            self._checkpoint = Checkpoint(checkpoint, self, data, valid)
        try:
            self._fit(data, rows, np.random.default_rng(self.seed))
            self.fit_seconds_ = _clock() - self._started
            self._check_numbers()
        except BaseException:
            for name in self._learned():  # a half-learned model must not answer
                delattr(self, name)
            raise
        finally:
            self._valid = self._on_epoch = None
            self._carried = {}
        return self

    def _check_numbers(self) -> None:
        """What was learned must be finite."""
        for name, value in self._learned().items():
            if isinstance(value, np.ndarray) and value.dtype.kind == "f" and not np.isfinite(value).all():
                raise CorankError(diverged(self, f"training ended with NaN or infinity in {name.rstrip('_')}"))

    def _fit(self, data: Dataset, rows: CSR, rng: np.random.Generator) -> None:
        """Learn. `rows` is `data.csr()`; every learned attribute ends in `_`; call `_report` after each epoch."""
        raise NotImplementedError

    def _epochs(self, rng: np.random.Generator, **carried: Array) -> Iterator[int]:
        """The epochs still to do. With a checkpoint, learned arrays, `carried` ones and the random stream are put back.

        carried : arrays, beside the learned ones, that training changes in place from epoch to epoch.
        """
        self._carried = carried
        self._stopped = self._enough = False
        done = 0 if self._checkpoint is None else self._checkpoint.restore(rng)
        for epoch in range(done + 1, int(self.params()["epochs"]) + 1):
            yield epoch
            if self._enough:  # the model itself says that it has learned what there is
                break
            if self._stopped:
                if self._checkpoint is not None:
                    self._checkpoint.saved = -math.inf
                    self._checkpoint.save(epoch, rng)
                return
            if self._checkpoint is not None:
                self._checkpoint.save(epoch, rng)

    def _report(self, epoch: int, **values: float) -> bool:
        """Record an epoch (state must be usable now); False = stop training."""
        entry: dict[str, Any] = {"epoch": epoch, "seconds": _clock() - self._started, **values}
        bad = [name for name, value in values.items() if not math.isfinite(value)]
        if bad:
            raise CorankError(diverged(self, f"{bad[0]} is {values[bad[0]]} after epoch {epoch}"))
        if self._valid is not None and len(self._valid):
            from .evaluate import validation_ndcg

            entry["ndcg@10"] = validation_ndcg(self, self._valid)
        self.history_.append(entry)
        logger.info("%s %s", type(self).__name__, entry)
        self._stopped = self._on_epoch is not None and self._on_epoch(entry) is False
        return not self._stopped

    # ---- answering -----------------------------------------------------------------------------------------------

    def _score(self, users: NDArray[np.int32]) -> NDArray[np.float32]:
        """Scores of all items for a batch of user codes: float32[b, items], a fresh array."""
        raise NotImplementedError

    def _score_histories(self, histories: CSR) -> NDArray[np.float32]:
        """The same for users that fit never saw, from what they did: rows of item codes in time order."""
        raise NotImplementedError

    def _score_known(self, users: NDArray[np.int32], histories: CSR) -> NDArray[np.float32]:
        """The same for users that fit saw, who have done more since: a model that knows who they are may use it."""
        return self._score_histories(histories)

    def _scorer(self, users: NDArray[np.int32] | None, histories: CSR | None) -> Callable[[slice], Array]:
        """Scores of parts of a request: of users by code, of histories, or of users who have done more since.

        A model that reads histories overrides this, to read all of them at once.
        """

        def score(part: slice) -> Array:
            if histories is None:
                return self._score(users[part])  # type: ignore[index]
            rows = histories.take(np.arange(part.start, part.stop))
            return self._score_histories(rows) if users is None else self._score_known(users[part], rows)

        return score

    def _similar(self, items: NDArray[np.int32]) -> NDArray[np.float32]:
        """Similarity of a batch of items to all items: float32[b, items]; cosine of the item vectors where there are
        any.
        """
        vectors = getattr(self, "item_factors_", None)
        if vectors is None:
            raise CorankError(f"{self.name()} has no notion of similar items: use item_knn, ease or wmf")
        norms = np.sqrt(np.einsum("if,if->i", vectors, vectors))
        unit = vectors / np.maximum(norms, 1e-12)[:, None]
        return np.asarray(unit[items] @ unit.T, np.float32)

    def recommend(
        self,
        users: Iterable[Hashable] | Hashable | None = None,
        *,
        histories: Histories | None = None,
        k: int = 10,
        exclude_seen: bool = True,
        items: Iterable[Hashable] | None = None,
    ) -> Ranking:
        """The k best items of each user.

        users : ids (or one id) that fit saw; all of them when neither users nor histories are given.
        histories : what unseen users did: a list of lists of item ids (or of {item: rating}), a {name: items} mapping
        or a Dataset.
        items : candidates to choose from; all items when absent. Rows that run out of items are padded.
        """
        self._fitted()
        if users is not None and histories is not None:
            raise CorankError("give users or histories, not both: a history replaces what is known of a user")
        if not isinstance(k, int | np.integer) or k < 1:
            raise CorankError(f"k={k!r}: the number of items to recommend must be a whole number of at least 1")
        if histories is not None:
            names, rows = self._read_histories(histories)
            seen, codes = rows, np.arange(rows.rows, dtype=np.int32)
        else:
            codes = self._user_codes(users)
            names = self.users_.ids[codes]
            seen = CSR(self.seen_indptr_, self.seen_index_, np.empty(0, np.float32), len(self.items_))
            rows = None
        banned = None
        if items is not None:
            banned = np.ones(len(self.items_), np.bool_)
            banned[self.items_.require(_listed(items), "item")] = False

        # Users of whom nothing is known; an oracle knows that their items are equal.
        nothing = (np.diff(seen.indptr)[codes] == 0) & (not self.oracle)

        scores_of = self._scorer(codes if rows is None else None, rows)

        def score(part: slice) -> Array:
            scores = scores_of(part)
            return self._popular_first(scores, nothing[part]) if nothing[part].any() else scores

        return self._rank(score, names, codes, k, seen if exclude_seen else None, banned)

    def _popular_first(self, scores: Array, nothing: NDArray[np.bool_]) -> Array:
        """Rows of `nothing` in which the model calls all items equal get the number of training rows of each item."""
        blank = nothing & (scores == scores[:, :1]).all(axis=1)
        count = np.bincount(self.seen_index_, minlength=len(self.items_))
        return np.where(blank[:, None], count.astype(np.float32), scores)

    def similar_items(self, items: Iterable[Hashable] | Hashable, k: int = 10) -> Ranking:
        """The k items nearest to each of `items` (the `user` column of the frame holds the item asked about)."""
        self._fitted()
        if not isinstance(k, int | np.integer) or k < 1:
            raise CorankError(f"k={k!r}: the number of items must be a whole number of at least 1")
        codes = self.items_.require(_listed(items), "item")
        self_only = CSR(
            np.arange(len(self.items_) + 1, dtype=np.int64),
            np.arange(len(self.items_), dtype=np.int32),
            np.empty(0, np.float32),
            len(self.items_),
        )
        return self._rank(lambda part: self._similar(codes[part]), self.items_.ids[codes], codes, k, self_only, None)

    def predict(self, users: Iterable[Hashable] | Array, items: Iterable[Hashable] | Array) -> NDArray[np.float64]:
        """The score of each (user, item) pair; in units of the ratings where the model predicts them."""
        self._fitted()
        user, item = self._user_codes(users), self.items_.require(_listed(items), "item")
        if user.size != item.size:
            raise CorankError(f"{user.size} users and {item.size} items: predict takes pairs, one item a user")
        return self._predict(user, item)

    def _predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.float64]:
        """Scores of pairs of codes; a factor model overrides this with inner products."""
        out = np.empty(users.size, np.float64)
        distinct, where = np.unique(users, return_inverse=True)
        order = np.argsort(where, kind="stable")
        for part in blocks(distinct.size, len(self.items_)):
            scores = self._score(distinct[part])
            pairs = order[np.searchsorted(where[order], part.start) : np.searchsorted(where[order], part.stop)]
            out[pairs] = scores[where[pairs] - part.start, items[pairs]]
        return out

    def _rank(
        self,
        score: Callable[[slice], Array],
        names: Array,
        codes: NDArray[np.int32],
        k: int,
        seen: CSR | None,
        banned: NDArray[np.bool_] | None,
    ) -> Ranking:
        from .kernels.threads import each, run
        from .kernels.topk import mask_rows

        n, width = codes.size, min(int(k), len(self.items_))
        items = np.full((n, width), -1, np.int32)
        best = np.full((n, width), -np.inf, np.float32)

        def rank(part: slice) -> None:
            scores = np.ascontiguousarray(score(part), np.float32)
            if banned is not None:
                scores[:, banned] = -np.inf
            if seen is not None:
                run(mask_rows, len(scores), scores, codes[part], seen.indptr, seen.index)
            top_k(scores, width, items[part], best[part])

        each(rank, blocks(n, len(self.items_)))
        return Ranking(names, items, best, self.items_)

    # ---- files and facts -----------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the model to one file: arrays and JSON with a checksum, renamed into place when it is whole."""
        from .store import save

        self._fitted()
        save(self, path)
        checkpoint = getattr(self, "_checkpoint", None)
        if checkpoint is not None and not self._stopped:
            checkpoint.done()

    def params(self) -> dict[str, Any]:
        """The hyper-parameters and their values."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}

    @classmethod
    def suits(cls, task: str) -> bool:
        """Whether it takes part in a comparison for a task when nobody says which models.

        Tasks: 'implicit' or 'explicit' feedback, and 'sequential', implicit feedback in which order may tell something.
        """
        own = "explicit" if cls.needs_ratings or cls.predicts_ratings else "implicit"
        asked = ("implicit", "sequential") if task == "sequential" else (task,)
        return any(t in asked for t in cls.tasks or (own,))

    @classmethod
    def name(cls) -> str:
        """The name that `find` and the command line know, that of the file; elsewhere the name of the class."""
        package, _, file = cls.__module__.rpartition(".")
        return file if package == f"{__package__}.models" else cls.__name__

    def _learned(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k.endswith("_") and not k.startswith("_")}

    def _fitted(self) -> None:
        if "items_" not in vars(self):
            raise NotFitted(f"this {type(self).__name__} has not learned yet: call fit(data) first")

    def _user_codes(self, users: Any) -> NDArray[np.int32]:
        if users is None:
            return np.arange(len(self.users_), dtype=np.int32)
        return self.users_.require(_listed(users), "user")

    def _read_histories(self, histories: Histories) -> tuple[Array, CSR]:
        """External histories as rows of item codes; unknown items are an error that names them."""
        if isinstance(histories, Dataset):
            codes = self.items_.require(histories.items.ids.tolist(), "item") if len(histories.items) else np.zeros(0)
            rows = histories.sequences()
            return histories.users.ids, CSR(
                rows.indptr, codes.astype(np.int32)[rows.index], rows.value, len(self.items_)
            )
        if not isinstance(histories, Mapping | Sequence | np.ndarray):
            raise CorankError(
                f"histories={type(histories).__name__} is not a list of histories: give a list of lists of item ids, "
                "a {name: items} mapping or a Dataset"
            )
        names = id_array(list(histories) if isinstance(histories, Mapping) else np.arange(len(histories)), "history")
        lists: list[list[Hashable]] = []
        values: list[float] = []
        bare = getattr(self, "liked_", 1.0)  # what an item without a value is worth: a like, where values are ratings
        for one in histories.values() if isinstance(histories, Mapping) else histories:
            if isinstance(one, str | bytes) or not isinstance(one, Iterable):
                raise CorankError(f"a history must be a list of item ids, got {one!r}")
            lists.append(list(one))
            values += map(_value, one.values()) if isinstance(one, Mapping) else [bare] * len(lists[-1])
        flat = self.items_.require([i for one in lists for i in one], "item")
        indptr = np.concatenate([[0], np.cumsum([len(one) for one in lists])]).astype(np.int64)
        return names, CSR(indptr, flat, np.array(values, np.float32), len(self.items_))


def _clock() -> float:
    """Seconds of work: compiling kernels, which happens once on a machine, is not part of what a fit costs."""
    from .kernels.threads import compile_seconds

    return time.perf_counter() - compile_seconds()


def _value(value: Any) -> float:
    """What a history says of an item."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not abs(number) <= float(np.finfo(np.float32).max):  # so that NaN is refused too
        raise CorankError(f"a history holds the value {value!r}: the values of a history must be finite numbers")
    return number


def _listed(ids: Any) -> list[Hashable]:
    """One id or many, as a list."""
    if isinstance(ids, str | bytes | int | np.integer):
        return [ids]
    if not isinstance(ids, Iterable):
        raise CorankError(f"a {type(ids).__name__} is not an id or a list of ids: give users and items by their ids")
    return ids.tolist() if isinstance(ids, np.ndarray) else list(ids)


def available() -> list[str]:
    """The names of the models: one file in `models/` each."""
    from . import models

    return sorted(m.name for m in pkgutil.iter_modules(models.__path__) if not m.name.startswith("_"))


def find(name: str) -> type[Model]:
    """The model class that a name means, e.g. `find("wmf")`."""
    if name not in available():
        raise CorankError(f"there is no model {name!r}{suggest(str(name), available())}")
    module = importlib.import_module(f".models.{name}", __package__)
    return next(
        v
        for v in vars(module).values()
        if isinstance(v, type) and issubclass(v, Model) and v.__module__ == module.__name__
    )
