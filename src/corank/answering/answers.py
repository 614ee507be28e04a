"""What a fitted model answers: the public methods of every model, with external ids in and out."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from ..data import CSR, Array, Dataset
from . import inference, item_labels
from .explain import Explanation, explain
from .histories import Histories
from .inference import Candidates
from .ranking import Ranking
from .rules import Where
from .update import update
from .vectors import Vectors, vectors


class Answers:
    """Recommendations, reasons, similar items and users, scores of pairs, and updates; a part of `Model`."""

    def recommend(
        self,
        users: Iterable[Hashable] | Hashable | None = None,
        *,
        histories: Histories | None = None,
        k: int = 10,
        exclude_seen: bool = True,
        items: Candidates | None = None,
        exclude: Candidates | None = None,
        where: Where | None = None,
    ) -> Ranking:
        """The k best items per user.

        Parameters
        ----------
        users : ids (or one id) from the training data; all of them when neither users nor histories are given.
        histories : interactions of unseen users: a list of lists of item ids (or of {item: rating}), a {name: items}
            mapping or a Dataset. Unknown items are skipped with a warning; if no item is known, that is an error. With
            users: one history per user, which replaces the training rows; models that learn users use both.
        items : candidates, all items when absent: a list of ids for all users, a {user: ids} mapping, or one list per
            user in their order. Rows with fewer than k candidates are padded.
        exclude : items that are not recommended, in the same forms; unknown ids are ignored, and so are users that a
            mapping does not have.
        where : rules over the labels of the items, all of which must hold, such as {"genre": ["Comedy", "Drama"],
            "year": (1990, None), "available": True}. A rule is a value, a list of values (one of them), a range (low,
            high) that includes both ends, or {"not": rule}. Of a label with several texts per item, one must match.
        """
        return inference.recommend(cast(Any, self), users, histories, k, exclude_seen, items, exclude, where)

    def with_items(self, table: Any) -> Self:
        """This model with labels of its items, for the rules of `recommend(where=...)`; returns a new model.

        table : what `item_table` reads: a file, a data frame, a mapping of columns or an `ItemTable`. A label that the
            model has already is replaced; a column `title` has the titles. Items that the table lacks have no labels,
            and items that the model does not know are left out.
        """
        return cast(Self, item_labels.attached(cast(Any, self), table))

    def explain(
        self,
        user: Hashable | None = None,
        items: Iterable[Hashable] | Hashable | None = None,
        *,
        history: Iterable[Hashable] | Mapping[Hashable, float] | CSR | None = None,
        k: int = 10,
        kind: str | None = None,
    ) -> Explanation:
        """Why items are recommended: how much each item of the history speaks for them.

        Parameters
        ----------
        user : a user of the training data; or
        history : the items of an unseen user, in time order, as in `recommend`. With a user, it replaces the training
            rows, as a newer history.
        items : the items to explain; the k best ones when absent.
        kind : what the model offers when absent (see `Explanation`). 'leave-one-out' is there for every model, and
            'attention' for those with attention weights.
        """
        return explain(cast(Any, self), user, items, history, k, kind)

    def update(self, data: Dataset) -> Self:
        """This model with new rows, new users and new items, without a refit; returns a new model.

        The new rows count as newer than all others, and a new rating replaces that of the same pair. What is exact and
        what is approximate depends on the model: see "Keeping a model current" in the docs. Hyper-parameters that were
        chosen for the data stay as they are. A model that cannot do it raises an error.
        """
        return cast(Self, update(cast(Any, self), data))

    def similar_items(self, items: Iterable[Hashable] | Hashable, k: int = 10) -> Ranking:
        """The k items most similar to each of `items`; the columns of the frame are item, rank, similar, score."""
        return inference.similar_items(cast(Any, self), items, k)

    def similar_users(self, users: Iterable[Hashable] | Hashable, k: int = 10) -> Ranking:
        """The k users most similar to each of `users`, for models that learn a vector per user."""
        return inference.similar_users(cast(Any, self), users, k)

    def vectors(self) -> Vectors:
        """One vector per user and per item, whose inner products are the scores; biases are coordinates of them.

        A model whose scores are no inner products raises an error.
        """
        return vectors(cast(Any, self))

    def predict(self, users: Iterable[Hashable] | Array, items: Iterable[Hashable] | Array) -> NDArray[np.float64]:
        """The score of each (user, item) pair; a rating where the model predicts ratings."""
        return inference.predict(cast(Any, self), users, items)
