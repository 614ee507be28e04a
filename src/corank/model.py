"""The contract of every model.

A model is a dataclass of hyper-parameters. A subclass implements `_fit`, `_score` and `_score_histories`. Learned state
is kept in attributes whose names end in `_`: arrays, vocabularies and plain JSON values, so that saving needs no code
in any model. `training` wraps `_fit`, `answering` wraps `_score`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast

import numpy as np
from numpy.typing import NDArray

from . import estimate, training
from .answering import inference
from .answering.histories import Histories
from .answering.inference import Candidates
from .answering.ranking import Ranking
from .cost import KERNEL, SORTED, Cost, Size, factors_memory, rows_memory
from .data import CSR, Array, Dataset
from .errors import CorankError, suggest
from .model_file import pack, write_file
from .params import ClassDoc, param
from .stored import COMMON, Stored, check_state

if TYPE_CHECKING:
    from .checkpoint import Checkpoint
    from .estimate import Estimate
    from .training import OnEpoch, Training


@dataclass(kw_only=True, eq=False)
class Model:
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
    smaller_form: ClassVar[str] = ""  # a setting that is much cheaper, told where the model takes too long
    oracle: ClassVar[bool] = False  # knows the ground truth of synthetic data
    starts: ClassVar[Sequence[Mapping[str, Any]]] = ()  # settings that were best on other data: a search begins there
    from_data: ClassVar[tuple[str, ...]] = ()  # hyper-parameters that `_choose` settles where they are None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.__dict__.get("__doc__"):
            cls.__doc__ = cast(str, ClassDoc(cls.__dict__["__doc__"]))  # help() lists the hyper-parameters too
        if "__repr__" not in vars(cls):  # `dataclass` would write a long one
            cls.__repr__ = cls.__repr__  # type: ignore[method-assign]

    def fit(
        self,
        data: Dataset,
        *,
        valid: Dataset | None = None,
        on_epoch: OnEpoch | None = None,
        on_progress: OnEpoch | None = None,
        checkpoint: str | Path | None = None,
    ) -> Self:
        """Fit to `data`, discarding any previous fit; returns self.

        Parameters
        ----------
        valid : rows on which NDCG@10 (full ranking) is measured after each epoch.
        on_epoch : called with a dict after each epoch; training stops after the epoch in which it returns False.
        on_progress : called with a dict a few times per second where epochs (or a fit without them) take long: `share`
            of the fit that is done, `seconds`, seconds `left`; the fit is abandoned (`Stopped`) if it returns False.
        checkpoint : file for the training state; a fit that finds one resumes from it, and `save` removes it.
        """
        training.fit(self, data, valid, on_epoch, on_progress, checkpoint)
        return self

    def estimate(self, data: Dataset, *, users: int = 0) -> Estimate:
        """Seconds and memory that a fit to `data` will need, from a probe of a second or two; the model stays as it is.

        Parameters
        ----------
        users : also count the seconds for the scores of all items for that many users.
        """
        return estimate.estimate(self, data, users)

    def recommend(
        self,
        users: Iterable[Hashable] | Hashable | None = None,
        *,
        histories: Histories | None = None,
        k: int = 10,
        exclude_seen: bool = True,
        items: Candidates | None = None,
    ) -> Ranking:
        """The k best items per user.

        Parameters
        ----------
        users : ids (or one id) from the training data; all of them when neither users nor histories are given.
        histories : interactions of unseen users: a list of lists of item ids (or of {item: rating}), a {name: items}
            mapping or a Dataset. Unknown items are skipped with a warning; if no item is known, that is an error.
        items : candidates, all items when absent: a list of ids for all users, a {user: ids} mapping, or one list per
            user in their order. Rows with fewer than k candidates are padded.
        """
        return inference.recommend(self, users, histories, k, exclude_seen, items)

    def similar_items(self, items: Iterable[Hashable] | Hashable, k: int = 10) -> Ranking:
        """The k items most similar to each of `items`; the columns of the frame are item, rank, similar, score."""
        return inference.similar_items(self, items, k)

    def similar_users(self, users: Iterable[Hashable] | Hashable, k: int = 10) -> Ranking:
        """The k users most similar to each of `users`, for models that learn a vector per user."""
        return inference.similar_users(self, users, k)

    def predict(self, users: Iterable[Hashable] | Array, items: Iterable[Hashable] | Array) -> NDArray[np.float64]:
        """The score of each (user, item) pair; a rating where the model predicts ratings."""
        return inference.predict(self, users, items)

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

    def params(self) -> dict[str, Any]:
        """The hyper-parameters and their values."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}

    def used_params(self) -> dict[str, Any]:
        """The hyper-parameters as they were used: once fitted, those that were None are as chosen for the data."""
        return {k: getattr(self, f"{k}_", None) if v is None else v for k, v in self.params().items()}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The same by scikit-learn's name, so that `sklearn.base.clone` works; `deep` is part of that protocol."""
        return self.params()

    def set_params(self, **params: Any) -> Self:
        """Change hyper-parameters for the next fit, as in scikit-learn; returns self."""
        known = [f.name for f in dataclasses.fields(self)]
        for name in params:
            if name not in known:
                raise CorankError(f"{type(self).__name__} has no hyper-parameter {name!r}{suggest(name, known)}")
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        """The hyper-parameters that differ from their defaults."""
        usual = {f.name: f.default for f in dataclasses.fields(self)}
        shown = [f"{name}={value!r}" for name, value in self.params().items() if repr(value) != repr(usual[name])]
        return f"{type(self).__name__}({', '.join(shown)})"

    def settled(self, data: Dataset, rows: CSR) -> Self:
        """This model, or a copy in which the hyper-parameters that are left to the data are as chosen for this data."""
        if not self.from_data:
            return self
        copy = type(self)(**self.params())
        copy._choose(data, rows)
        return type(self)(**copy.used_params())

    @property
    def stops_early(self) -> bool:
        """Whether validation rows decide how many epochs a fit has: with `patience`, or where `epochs` is left open."""
        return getattr(self, "patience", None) is not None or (hasattr(self, "patience") and self.epochs_left_open)

    @property
    def epochs_left_open(self) -> bool:
        """Whether the number of epochs is chosen for the data."""
        return getattr(self, "epochs", 0) is None

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
        return dict(COMMON)

    # ---- what a subclass may override ------------------------------------------------------------------------------

    def _pointless(self, data: Dataset) -> Collection[str]:
        """Hyper-parameters that change nothing on this data, so that a search leaves them out."""
        return ()

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

    def _begin(self, data: Dataset, rows: CSR) -> None:
        """Keep what inference needs of the training data: a fitted model is used without it."""
        self.users_, self.items_ = data.users, data.items
        self.seen_indptr_, self.seen_index_ = rows.indptr, rows.index
        self.titles_ = data.item_labels["title"].tolist() if "title" in data.item_labels else []
        self.history_: list[dict[str, Any]] = []
        self.fit_seconds_ = 0.0
        self._choose(data, rows)
        self._finished: Checkpoint | None = None  # removed once the model is saved

    def _learned(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k.endswith("_") and not k.startswith("_")}
