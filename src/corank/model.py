"""The contract of every model.

A model is a dataclass of hyper-parameters. A subclass implements `_fit`, `_score` and `_score_histories`. Learned state
is kept in attributes whose names end in `_`: arrays, vocabularies and plain JSON values, so that saving needs no code
in any model. `training` wraps `_fit`, `answering` wraps `_score`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast

import numpy as np
from numpy.typing import NDArray

from . import estimate, training
from .answering import inference
from .answering.answers import Answers
from .answering.explain import Reasons, leave_one_out
from .answering.update import Growth
from .answering.vectors import Embeddings
from .cost import KERNEL, SORTED, Cost, Size, factors_memory, rows_memory
from .data import CSR, Array, Dataset
from .data.labels import NO_LABELS, labels_of
from .errors import CorankError
from .model_file import pack, write_file
from .params import ClassDoc, param
from .settings import Settings
from .stored import COMMON, Stored, check_state, floats

if TYPE_CHECKING:
    from .checkpoint import Checkpoint
    from .estimate import Estimate
    from .training import Cluster, OnEpoch, Training


@dataclass(kw_only=True, eq=False, repr=False)  # `Settings` has a short one
class Model(Answers, Settings):
    """Base class of all models: a dataclass of hyper-parameters that fits, recommends, predicts and saves."""

    seed: int = param(0, "random seed", low=0)

    # Capabilities of a model; experiments, the command line and the docs read them here.
    tasks: ClassVar[tuple[str, ...]] = ("implicit", "sequential")  # tasks in whose comparisons it is included
    by_default: ClassVar[bool] = True  # included even when no models are named
    task_params: ClassVar[Mapping[str, Mapping[str, Any]]] = {}  # hyper-parameters that a task requires
    graph: ClassVar[Literal["unused", "optional", "needed"]] = "unused"  # needed: reduces to another model without one
    needs_ratings: ClassVar[bool] = False  # learns from differences between the values of a user
    predicts_ratings: ClassVar[bool] = False  # predict() returns ratings
    takes_comparisons: ClassVar[bool] = False  # learns from Dataset.comparisons
    order_matters: ClassVar[bool] = False  # scores depend on the order of a history
    large_form: ClassVar[tuple[int, str]] = (0, "")  # with more items than this, that model is compared instead
    fits_on_disk: ClassVar[bool] = False  # goes through rows in files without more of them in memory: see `on_disk`
    oracle: ClassVar[bool] = False  # knows the ground truth of synthetic data
    starts: ClassVar[Sequence[Mapping[str, Any]]] = ()  # settings that were best on other data: a search begins there
    labels_ = NO_LABELS  # files from before labels were kept do not hold any

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.__dict__.get("__doc__"):
            cls.__doc__ = cast(str, ClassDoc(cls.__dict__["__doc__"]))  # help() lists the hyper-parameters too
        if "__repr__" not in vars(cls):  # `dataclass` would write a long one
            cls.__repr__ = cls.__repr__  # type: ignore[method-assign]

    def fit(
        self,
        data: Dataset | str | Path,
        *,
        valid: Dataset | None = None,
        on_epoch: OnEpoch | None = None,
        on_progress: OnEpoch | None = None,
        checkpoint: str | Path | None = None,
        cluster: Cluster | None = None,
    ) -> Self:
        """Fit to `data`, discarding any previous fit; returns self.

        Parameters
        ----------
        valid : rows on which NDCG@10 (full ranking) is measured after each epoch: those of all their users, or of a
            fixed random sample where users x items are more than 100 million (at least 2,000 users).
        on_epoch : called with a dict after each epoch; training stops after the epoch in which it returns False.
        on_progress : called with a dict a few times per second where epochs (or a fit without them) take long: `share`
            of the fit that is done, `seconds`, seconds `left`; the fit is abandoned (`Stopped`) if it returns False.
        checkpoint : file for the training state; a fit that finds one resumes from it, and `save` removes it.
        cluster : where to train, such as `Ray(workers=4)`; then `data` may also be a folder of Parquet or CSV files,
            and the checkpoint is a folder.
        """
        if cluster is None:
            training.fit(self, cast(Dataset, data), valid, on_epoch, on_progress, checkpoint)
        else:
            cluster.fit(self, data, valid, on_epoch, on_progress, checkpoint)
        return self

    def estimate(self, data: Dataset, *, users: int = 0) -> Estimate:
        """Seconds and memory that a fit to `data` will need, from a probe of a second or two; the model stays as it is.

        Parameters
        ----------
        users : also count the seconds for the scores of all items for that many users.
        """
        return estimate.estimate(self, data, users)

    def save(self, path: str | Path) -> None:
        """Write the model to one file: arrays and JSON with a checksum, renamed into place when it is complete."""
        inference.require_fitted(self)
        try:
            check_state(self, self._learned())
        except ValueError as why:
            raise CorankError(f"{type(self).__name__} cannot be saved: {why}; see _stores") from None
        arrays, plain = pack(self._learned())
        write_file(path, arrays, {"model": self.name(), "params": self.params(), "state": plain})
        finished: Checkpoint | None = getattr(self, "_finished", None)  # a loaded model has none
        if finished is not None:
            finished.remove()

    @classmethod
    def suits(cls, task: str) -> bool:
        """Whether it is compared by default on a task: 'implicit', 'explicit' or 'sequential'."""
        return cls.by_default and task in cls.tasks

    @classmethod
    def name(cls) -> str:
        """The name for `find` and the command line: that of its file in `models`, else the name of the class."""
        package, _, file = cls.__module__.rpartition(".")
        return file if package == f"{__package__}.models" else cls.__name__

    # ---- what a subclass must implement ----------------------------------------------------------------------------

    def _fit(self, data: Dataset, rows: CSR, training: Training) -> None:
        """Train. `rows` is `data.csr()`; loop over `training.epochs()` and draw only from `training.rng`."""
        raise NotImplementedError

    def _score(self, users: NDArray[np.int32]) -> NDArray[np.float32]:
        """Scores of all items for a batch of user codes: a fresh float32 array of shape (batch, items)."""
        raise NotImplementedError

    def _score_histories(self, histories: CSR) -> NDArray[np.float32]:
        """Fold-in: the same for unseen users, from rows of item codes in time order."""
        raise NotImplementedError

    def _stores(self) -> dict[str, Stored]:
        """What a fitted model holds: type, shape and range of each attribute (see `stored`); subclasses add theirs."""
        values = {"seen_value_": floats("training rows", optional=True)} if self._keeps_values else {}
        return {**COMMON, **values}

    # ---- what a subclass may override ------------------------------------------------------------------------------

    def _pointless(self, data: Dataset) -> Collection[str]:
        """Hyper-parameters that change nothing on this data, so that a search leaves them out."""
        return ()

    def _feasible(self, searched: Collection[str]) -> Self:
        """This model, or a copy in which the `searched` hyper-parameters go together with the others.

        A search draws each of them by itself, and tries what this returns.
        """
        return self

    def _choose(self, data: Dataset, rows: CSR) -> None:
        """Store what is used of each hyper-parameter in `from_data` (`rho_` for `rho`): as given, or for this data."""

    def _score_known(self, users: NDArray[np.int32], histories: CSR) -> NDArray[np.float32]:
        """The same for training users with newer histories: a personalised model may use both."""
        return self._score_histories(histories)

    def _scorer(self, users: NDArray[np.int32] | None, histories: CSR | None) -> Callable[[slice], Array]:
        """A function that scores slices of a request: of user codes, of histories, or of both.

        A model that reads histories may override this, to encode all of them at once.
        """

        def score(part: slice) -> Array:
            if histories is None:
                return self._score(users[part])  # type: ignore[index]
            rows = histories.take(np.arange(part.start, part.stop))
            return self._score_histories(rows) if users is None else self._score_known(users[part], rows)

        return score

    def _training_rows(self) -> CSR:
        """The training items of each user, in time order where scores depend on it."""
        return inference.seen_items(self)

    @property
    def _keeps_values(self) -> bool:
        """Whether the values of the training rows are stored: those of ratings, which explanations and updates need."""
        return self.predicts_ratings or self.needs_ratings

    def _history(self, user: int) -> CSR:
        """What scores of a training user are computed from, as `_score_histories` takes it: one row."""
        return inference.training_history(self, user)

    def _row_values(self) -> NDArray[np.float32]:
        """The value of each training row, 1 where the model keeps none."""
        return inference.training_values(self)

    def _absorb(self, growth: Growth) -> None:
        """Take in new rows: `update` has grown what is declared, with zeros for new users and items."""
        raise CorankError(f"{self.name()} cannot take in new rows without a refit: fit it again on all rows")

    def _contributions(
        self, user: int | None, history: CSR, items: NDArray[np.int32], scores: NDArray[np.float64]
    ) -> Reasons:
        """How much each entry of a history (one row) speaks for some items; user : its code, None if unseen.

        By scoring again without each entry, unless a model knows better.
        """
        return leave_one_out(self, user, history, items, scores)

    def _size(self, word: str) -> int | None:
        """The number that a word in the shapes of `_stores` stands for: a hyper-parameter; None if it is none."""
        value = self.params().get(word)
        return value if isinstance(value, int) else None

    def _cost(self, size: Size) -> Cost:
        """How the seconds of a fit grow with the data: see `cost`; only ratios matter, `estimate` measures the rest."""
        return Cost(SORTED * size.rows, 8 * KERNEL * size.rows * getattr(self, "dim", 1))

    def _memory(self, size: Size) -> float:
        """Bytes that a fit holds at its peak beside the data: learned arrays, sorted copies and temporary arrays."""
        return rows_memory(size) + factors_memory(self, size, getattr(self, "dim", 1))

    def _fold_in_memory(self, size: Size) -> float:
        """Bytes that scoring unseen users takes beside their scores; `size` is that of their histories."""
        return 4.0 * size.users * getattr(self, "dim", 1)

    def _smaller(self, size: Size, free: int | None) -> str:
        """What to do where `_memory` is more than the free bytes."""
        return "choose a smaller dim" if hasattr(self, "dim") else "keep fewer users or items"

    def _predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.float64]:
        """Scores of pairs of codes; a factor model overrides this with inner products."""
        return inference.predict_from_rows(self, users, items)

    def _similar(self, items: NDArray[np.int32]) -> NDArray[np.float32]:
        """Similarity of a batch of items to all items, (batch, items): the cosine of `item_factors_` by default."""
        vectors = getattr(self, "item_factors_", None)
        if vectors is None:
            raise CorankError(f"{self.name()} has no notion of similar items: use item_knn, ease or wmf")
        return inference.cosine(vectors, items)

    def _similar_users(self, users: NDArray[np.int32]) -> NDArray[np.float32]:
        """Similarity of a batch of users to all users, (batch, users): the cosine of `user_factors_`."""
        vectors = getattr(self, "user_factors_", None)
        if vectors is None:
            raise CorankError(f"{self.name()} has no vector per user, so no similar users: use wmf, als or bpr")
        return inference.cosine(vectors, users)

    def _embeddings(self) -> Embeddings | None:
        """Vectors of all users and items whose inner products are the scores; None where scores are not such."""
        return None

    def _exported(self) -> Any:
        """The network as an `Exported` of torch, for ONNX."""
        raise CorankError(
            f"{self.name()} has no network that ONNX could hold: export its vectors instead, or a torch model such as "
            "sasrec"
        )

    def _begin(self, data: Dataset, rows: CSR) -> None:
        """Keep what inference needs of the training data: a fitted model is used without it."""
        self.users_, self.items_ = data.users, data.items
        self.seen_indptr_, self.seen_index_ = rows.indptr, rows.index
        if self._keeps_values and data.values != "none":
            self.seen_value_ = inference.row_values(data, rows, mean=self.predicts_ratings or self.needs_ratings)
        self.titles_ = data.item_labels["title"].tolist() if "title" in data.item_labels else []
        self.labels_ = labels_of(data.item_labels).without("title")
        self.history_: list[dict[str, Any]] = []
        self.fit_seconds_ = 0.0
        self._choose(data, rows)
        self._finished: Checkpoint | None = None  # removed once the model is saved

    def _learned(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k.endswith("_") and not k.startswith("_")}
