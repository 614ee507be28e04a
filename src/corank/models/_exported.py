"""Torch modules that hold the weights of a fitted model and score all items: what `export.onnx` exports.

Imported when a model is exported, because its classes need torch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .. import nn
from ..data import CSR, Array, row_ends

if TYPE_CHECKING:
    from ..nn.rating_graph import BilinearDecoder
    from ._rating_graph import RatingGraphModel
    from ._sequence import SequenceModel

SAMPLE = 24  # users whose scores are compared


class Exported(NamedTuple):
    """A network with inputs of some users and the scores that the model gives them, to check what was exported."""

    module: torch.nn.Module
    inputs: dict[str, NDArray[np.int64]]  # by the name of the argument; the first axis is the batch
    scores: Array  # (batch, items)
    users: bool  # whether an input holds codes of users


class Weighted(torch.nn.Module):
    """A module that keeps the parameters of a network by their names."""

    def __init__(self, weights: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.names = {name: "w_" + name.replace(".", "_") for name in weights}
        for name, value in weights.items():
            self.register_buffer(self.names[name], value)

    def weights(self) -> dict[str, Tensor]:
        """The parameters by name, as networks take them."""
        return {name: getattr(self, attribute) for name, attribute in self.names.items()}


class HistoryScores(Weighted):
    """Scores (b, items) of histories: int64 items (b, max_len), oldest first and padded at the right, length (b,).

    With `users`, a third input holds the codes of users (b,), -1 for unseen ones, who get the mean vector: it is the
    last row of the table "user".
    """

    def __init__(self, net: Any, weights: Mapping[str, Tensor], max_len: int, item_width: int, users: int) -> None:
        super().__init__(weights)
        self.net, self.max_len, self.item_width, self.users = net, max_len, item_width, users

    def forward(self, items: Tensor, length: Tensor, user: Tensor | None = None) -> Tensor:
        w, table = self.weights(), self.weights()["item"]
        length = length.clamp(0, self.max_len)
        if user is not None:
            user = torch.where((user < 0) | (user >= self.users), self.users, user)
        batch = nn.padded_batch(items.clamp(0, table.shape[0] - 1), length, user, self.max_len)
        hidden = getattr(self.net, "encode_padded", self.net.encode_last)(w, batch)  # (b, width)
        hidden = hidden[:, : self.item_width] * (length > 0)[:, None]  # nothing is known of an empty history
        scores: Tensor = hidden @ table.t()
        return scores + w["item.bias"] if "item.bias" in w else scores


class RatingScores(Weighted):
    """Expected ratings (b, items) of training users: int64 codes (b,)."""

    def __init__(
        self, decoder: BilinearDecoder, weights: Mapping[str, Tensor], levels: Tensor, user: Tensor, item: Tensor
    ) -> None:
        super().__init__(weights)
        self.decoder = decoder
        self.register_buffer("levels", levels)
        self.register_buffer("user_vectors", user)
        self.register_buffer("item_vectors", item)

    def forward(self, user: Tensor) -> Tensor:
        w, decoder = self.weights(), self.decoder
        u, v = self.get_buffer("user_vectors")[user], self.get_buffer("item_vectors")  # (b, dim), (items, dim)
        forms = torch.stack([u @ w[f"decoder.{b}"] @ v.t() for b in range(decoder.bases)], 2)  # (b, items, bases)
        logits = forms @ w["decoder.mix"]  # (b, items, levels)
        if decoder.node_bias:
            logits = logits + (u @ w["decoder.user"])[:, None] + v @ w["decoder.item"]
        if decoder.level_bias:
            logits = logits + w["decoder.bias"]
        return torch.softmax(logits, 2) @ self.get_buffer("levels")


def history_scores(model: SequenceModel) -> Exported:
    """The network of a sequence model, from padded histories to scores."""
    net, weights = model._views()
    w = {name: value.cpu() for name, value in weights.items()}
    n, items = len(model.users_), len(model.items_)
    some = np.unique(np.linspace(0, n - 1, SAMPLE).astype(np.int32))
    rows = model._recent(some)
    length = np.diff(rows.indptr).astype(np.int64)
    length[:2] = np.minimum(length[:2], [0, 1][: length.size])  # an empty history, and one item
    history = np.zeros((some.size, model.max_len), np.int64)
    for row, count in enumerate(length.tolist()):
        history[row, :count] = rows.index[rows.indptr[row + 1] - count : rows.indptr[row + 1]]
    kept = np.concatenate([history[row, :count] for row, count in enumerate(length.tolist())]).astype(np.int32)
    cut = CSR(row_ends(length), kept, np.ones(kept.size, np.float32), items)
    inputs, scores = {"items": history, "length": length}, model._score_histories(cut)
    if "user" in w:
        table = w["user"]
        w["user"] = torch.cat([table, table.mean(0, keepdim=True)])
        if hasattr(net, "user_row"):  # users may share rows of the table
            net = dataclasses.replace(net, user_row=np.append(net.user_row, len(table)))
        known = np.arange(some.size) % 2 == 0
        scores = np.where(known[:, None], model._score_known(some, cut), scores)
        inputs["user"] = np.where(known, some, -1).astype(np.int64)
    module = HistoryScores(net, w, model.max_len, model._item_width(), n)
    return Exported(module, inputs, scores, "user" in w)


def rating_scores(model: RatingGraphModel) -> Exported:
    """The decoder of a rating graph, from the code of a training user to expected ratings.

    Vectors of unseen users come from sums over the graph, which the exported network does not hold.
    """
    w = {name: value.cpu() for name, value in model._on_device().items() if name.startswith("decoder.")}
    vectors = (torch.from_numpy(part) for part in (model.levels_, model.user_factors_, model.item_factors_))
    some = np.unique(np.linspace(0, len(model.users_) - 1, SAMPLE).astype(np.int32))
    module = RatingScores(model._decoder(), w, *vectors)
    return Exported(module, {"user": some.astype(np.int64)}, model._score(some), True)
