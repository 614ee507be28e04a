"""What models share whose network reads the ratings as a graph: features, learning, and expected ratings.

A subclass declares its own hyper-parameters, makes the network (`nn.convolution.Rated`) and encodes histories. A step
predicts its share of the ratings from the graph of all, or, with `hide` and two batches or more, of the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ..data import CSR, Array, Dataset
from ..errors import CorankError, MissingExtra
from ..memory import make_room
from ..model import Model
from ..params import param
from ._graph_options import SIDES, Side

if TYPE_CHECKING:
    from torch import Tensor

    from ..nn.convolution import Graph, Rated, Weights
    from ..nn.sparse import Pattern
    from ..training import Training

WALKS = ("node2vec", "deepwalk")
FEATURES = ("auto", "none", "g", "g2", "dna-1", "dna-2", "dna-3", "dna-4", *WALKS)
DENSE, LARGE = 0.03, 1 << 29  # features of which more than this share is there are multiplied whole, if they fit
CELLS = 1 << 19  # odds worked out at a time when scoring


@dataclass(kw_only=True, eq=False)
class RatingGraph(Model):
    """Base of `gcmc` and `graph_ae`."""

    dim: int = param(75, "size of the embeddings", low=1, high=4096, search=(16, 128), log=True)
    features: str = param(
        "auto", "what is made of the data's graphs; auto = dna-2 where there is one", choices=FEATURES
    )
    feature_dim: int = param(64, "width of the layer of the features", low=1, high=4096)
    alpha: float = param(0.05, "weight of G^2 beside G (features g2)", low=0.0)
    capacity: int = param(100, "nodes that the Bloom filter of a node is made for (dna)", low=1, high=10_000_000)
    error: float = param(0.1, "rate of false positives of a full filter (dna)", low=1e-6, high=0.5)
    levels: int = param(100, "most levels of ratings; where there are more values, near ones share one", low=1)
    normalize: str = param(
        "left", "a rating weighs 1 / degree or 1 / sqrt(degree degree)", choices=("left", "symmetric")
    )
    shrink: float = param(0.0, "added to the degrees, so that few ratings say less", low=0.0, search=(0.0, 5.0))
    bases: int = param(2, "matrices of the decoder", low=1, high=64, search=(1, 4))
    level_bias: bool = param(True, "levels have a bias, which starts at how often they occur")
    node_bias: bool = param(False, "the vectors of a user and of an item each add to the odds")
    dropout: float = param(0.7, "share of a layer set to zero in training", low=0.0, high=0.95)
    node_dropout: float = param(0.7, "share of neighbours left out in training", low=0.0, high=0.95, search=(0.0, 0.8))
    cold: float = param(
        0.1,
        "share of users and items that a step leaves without ratings, so that features learn to do",
        low=0.0,
        high=0.95,
    )
    squared: float = param(
        0.5,
        "share of the squared error (in variances of the ratings) in the loss",
        low=0.0,
        high=1.0,
        search=(0.0, 1.0),
    )
    batches: int = param(1, "steps an epoch, each with its share of the ratings", low=1, high=1_000_000)
    hide: bool = param(True, "a step does not see the ratings that it predicts (with two batches or more)")
    lr: float = param(0.01, "length of Adam's steps", low=1e-9, high=10.0, search=(1e-3, 0.03), log=True)
    weight_decay: float = param(
        0.0, "AdamW: share of lr by which tables and matrices shrink", low=0.0, high=100.0, search=(1e-3, 1.0), log=True
    )
    average: float = param(0.0, "decay of the running mean of the weights (Polyak); 0 = none", low=0.0, high=0.9999)
    epochs: int = param(100, "passes over the ratings", low=1, search=(10, 200), log=True)
    patience: int | None = param(
        None, "epochs without lower RMSE on `valid` before training stops; the best is kept", low=1
    )

    predicts_ratings: ClassVar[bool] = True
    tasks: ClassVar[tuple[str, ...]] = ("explicit",)
    by_default: ClassVar[bool] = False  # minutes where others take seconds
    graph: ClassVar[Literal["unused", "optional", "needed"]] = "optional"
    ids_as_features: ClassVar[bool] = True  # of a side without a graph, if the other has one

    # ---- what a subclass writes ----------------------------------------------------------------------------------

    def _network(self) -> Rated:
        raise NotImplementedError

    def _vectors(self, histories: CSR) -> Array:
        """float32[rows, dim]: the vectors that the network gives to users with these ratings and without features."""
        raise NotImplementedError

    def _activations(self) -> float:
        """Numbers a node that a step keeps for the way back."""
        raise NotImplementedError

    def _sizes(self) -> dict[str, Any]:
        """What every network asks for."""
        return {
            "users": len(self.users_),
            "items": len(self.items_),
            "levels": self.levels_.size,
            "dim": int(self.dim),
            "bases": int(self.bases),
            "features": (int(self.columns_[0]), int(self.columns_[1])),
            "feature_dim": int(self.feature_dim),
            "symmetric": self.normalize == "symmetric",
            "shrink": float(self.shrink),
            "biased": self.level_bias,
            "node_biased": self.node_bias,
            "dropout": float(self.dropout),
            "node_dropout": float(self.node_dropout),
            "cold": float(self.cold),
        }

    # ---- learning ------------------------------------------------------------------------------------------------

    def _fit(self, data: Dataset, rows: CSR, training: Training) -> None:
        rng = training.rng
        self._need_torch()
        from ..nn.attention import Layout
        from ..nn.convolution import Graph
        from ..nn.loop import Trainer

        self.liked_ = float(np.quantile(data.value, 0.9))  # what an item without a rating is worth in a history
        self.levels_ = levels_of(data.value, int(self.levels))
        order = np.lexsort((data.value, data.item, data.user))  # not `rows`: each rating of a repeated pair counts
        user, item, value = data.user[order], data.item[order], data.value[order].astype(np.float32)
        level = self._level(value)
        self.item_count_ = np.bincount(item, minlength=len(data.items)).astype(np.float32)
        graph = Graph(user, item, level, len(data.users), len(data.items), self.levels_.size, self._features(data))
        self.columns_ = [_columns(graph.features.get(side)) for side in SIDES]
        net = self._network()
        layout = Layout(net.shapes())
        activations = 8.0 * (len(data.users) + len(data.items)) * (self._activations() + 2 * self.feature_dim)
        need = 24.0 * layout.size + activations + user.size * (80.0 + 16.0 * self.levels_.size / self.batches)
        name = type(self).__name__
        make_room(need, f"{name} of this data", "choose a smaller dim, fewer levels or more batches")
        weights = self.weights_ = layout.start_weights(rng)
        self._start(net, weights, np.bincount(level, minlength=self.levels_.size))
        carried = {"first": layout.empty(), "second": layout.empty()}
        trainer = Trainer(
            layout,
            weights,
            carried["first"],
            carried["second"],
            lr=float(self.lr),
            betas=(0.9, 0.999),
            weight_decay=float(self.weight_decay),
        )
        if self.average > 0:
            self.weights_, carried["live"] = weights.copy(), weights
        batches = min(int(self.batches), user.size)
        training.watch("rmse", higher_is_better=False)
        for epoch in training.epochs(**carried):
            total = 0.0
            deal = rng.permutation(user.size) % batches
            with trainer.workers():
                for number in range(batches):
                    step = (epoch - 1) * batches + number + 1
                    asked = deal == number
                    part = self._part(net, graph, value, asked, int(rng.integers(2**62)))
                    total += trainer.step(step, [part], None) * int(np.count_nonzero(asked))
                    if self.average > 0:  # weak at first: the start is to be forgotten
                        keep = min(float(self.average), step / (step + 9))
                        self.weights_ += np.float32(1 - keep) * (weights - self.weights_)
            self._tell(training, total / user.size, net, graph)
        self._encode(net, graph)
        training.check_scores(np.arange(min(16, len(data.users))))

    def _start(self, net: Rated, weights: NDArray[np.float32], count: Array) -> None:
        """Levels start at how often they occur; count: ratings of each."""
        if self.level_bias:
            count = np.maximum(count, 0.5)  # means may be no one's nearest
            self._views(net, weights)["levels.bias"].numpy()[:] = np.log(count / count.sum())

    def _part(
        self, net: Rated, graph: Graph, value: Array, asked: NDArray[np.bool_], seed: int
    ) -> Callable[[Any], Tensor]:
        """One step: the loss of the ratings that are asked for, as a function of the weights."""
        import torch
        from torch.nn import functional as F  # noqa: N812

        from ..nn.noise import Noise
        from ..nn.sparse import Pattern

        user, item, level = graph.user[asked], graph.item[asked], torch.from_numpy(graph.level[asked])
        visible = ~asked if self.hide and not asked.all() else None
        pairs = Pattern(user, item, (graph.users, graph.items))
        values, wanted = torch.from_numpy(self.levels_), torch.from_numpy(value[asked])
        spread = float(np.var(value, dtype=np.float64)) or 1.0
        squared = float(self.squared)

        def work(w: Weights) -> Tensor:
            odds = net.odds(w, pairs, *net.encode(w, graph, visible, Noise(seed)))
            loss = odds.new_zeros(())
            if squared < 1:
                loss = loss + (1 - squared) * F.cross_entropy(odds, level)
            if squared > 0:
                off = torch.softmax(odds, 1) @ values - wanted
                loss = loss + squared / spread * off.square().mean()
            return loss

        return work

    def _tell(self, training: Training, loss: float, net: Rated, graph: Graph) -> None:
        """Report an epoch; vectors are made, and validated, where somebody looks."""
        values = {"loss": loss}
        if training.observed:
            self._encode(net, graph)
        if training.valid is not None:
            off = self._predict(training.valid.user, training.valid.item) - training.valid.value
            values["rmse"] = float(np.sqrt(np.square(off).mean()))
        training.report(**values)

    def _encode(self, net: Rated, graph: Graph) -> None:
        """The vectors of all users and items, from all ratings."""
        import torch

        from ..nn.loop import one_thread

        with one_thread(), torch.no_grad():
            user, item = net.encode(self._views(net, self.weights_), graph)
            self.user_factors_, self.item_factors_ = user.numpy(), item.numpy()

    def _features(self, data: Dataset) -> dict[Side, Any]:
        """Features of the sides with a graph; of GC-MC's other side, if one has a graph, the ids."""
        import torch

        from ..nn.sparse import Pattern

        graphs = {side: getattr(data, f"{side}_graph") for side in SIDES}
        if self.features == "none" or all(graph is None for graph in graphs.values()):
            if self.features not in ("none", "auto"):
                raise CorankError(
                    f"{type(self).__name__}(features={self.features!r}): the data has neither a user graph nor an item "
                    "graph; give the dataset one, or leave features at 'auto'"
                )
            return {}
        out: dict[Side, Any] = {}
        for side, graph in graphs.items():
            if graph is None and not self.ids_as_features:
                continue
            n = len(getattr(data, f"{side}s"))
            rows = _identity(n) if graph is None else self._rows(graph)
            row = np.repeat(np.arange(n), np.diff(rows.indptr))
            total = np.bincount(row, np.abs(rows.value), n)[row]
            value = (rows.value / np.maximum(total, 1e-12)).astype(np.float32)
            if rows.index.size > DENSE * n * rows.columns and n * rows.columns < LARGE:
                whole = np.zeros((n, rows.columns), np.float32)
                whole[row, rows.index] = value
                out[side] = torch.from_numpy(whole)
            else:
                out[side] = Pattern(row, rows.index, (n, rows.columns)), torch.from_numpy(value)
        return out

    def _rows(self, graph: CSR) -> CSR:
        """The features of the nodes of a graph: nodes x columns."""
        from ..graph import encode, side_graph, symmetric

        kind = "dna-2" if self.features == "auto" else self.features
        if kind.startswith("dna"):
            depth, seed = int(kind[4:]), int(self.seed)
            return encode(symmetric(graph), depth=depth, capacity=self.capacity, error=self.error, seed=seed).bits()
        if kind in WALKS:
            from ..graph import node2vec as features

            vectors = getattr(features, kind)(symmetric(graph), seed=int(self.seed))
            n, width = vectors.shape
            index = np.tile(np.arange(width, dtype=np.int32), n)
            return CSR(np.arange(n + 1, dtype=np.int64) * width, index, vectors.ravel(), width)
        return side_graph(graph, kind, weights=(self.alpha,) if kind == "g2" else ())

    # ---- answering -----------------------------------------------------------------------------------------------

    def _level(self, value: Array) -> NDArray[np.int64]:
        """The nearest level of each value."""
        middle = (self.levels_[1:] + self.levels_[:-1]) / 2
        return np.searchsorted(middle, value).astype(np.int64)

    def _views(self, net: Rated, weights: NDArray[np.float32]) -> dict[str, Tensor]:
        """The parameters of a network, which share memory with the flat vector."""
        self._need_torch()
        import torch

        from ..nn.attention import Layout

        return Layout(net.shapes()).views(torch.from_numpy(weights))

    def _score(self, users: NDArray[np.int32]) -> NDArray[np.float32]:
        return self._ratings(self.user_factors_[users])

    def _score_histories(self, histories: CSR) -> NDArray[np.float32]:
        return self._ratings(self._vectors(histories))

    def _edges(self, histories: CSR, stacked: bool) -> tuple[Pattern, Tensor]:
        """Histories as the graph has ratings: pattern and weights, row (or row, level) x (item, level)."""
        import torch

        from ..nn.sparse import Pattern

        n, levels = histories.rows, self.levels_.size
        row = np.repeat(np.arange(n), np.diff(histories.indptr))
        level = self._level(histories.value)
        scale = 1 / (np.diff(histories.indptr)[row] + float(self.shrink))
        if self.normalize == "symmetric":
            scale = np.sqrt(scale / (np.maximum(self.item_count_[histories.index], 1) + float(self.shrink)))
        where = (row * levels + level, n * levels) if stacked else (row, n)
        column = histories.index.astype(np.int64) * levels + level
        pattern = Pattern(where[0], column, (where[1], histories.columns * levels))
        return pattern, torch.from_numpy(scale.astype(np.float32))

    def _ratings(self, vectors: Array) -> NDArray[np.float32]:
        """Expected ratings of all items: float32[b, items] from the vectors [b, dim] of users."""
        w, items = self._decoder(), self.item_factors_
        out = np.empty((len(vectors), len(items)), np.float32)
        height = max(1, CELLS // (len(items) * self.levels_.size))
        for start in range(0, len(vectors), height):
            part = vectors[start : start + height]
            found = np.stack([part @ w[f"{b}.decoder"] @ items.T for b in range(int(self.bases))], 2)
            odds = found @ w["levels"]
            if self.node_bias:
                odds += (part @ w["user.levels"])[:, None] + items @ w["item.levels"]
            out[start : start + height] = self._expected(w, odds)
        return out

    def _predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.float64]:
        w = self._decoder()
        out = np.empty(users.size, np.float64)
        height = max(1, CELLS // max(int(self.dim), self.levels_.size))
        for start in range(0, users.size, height):
            at = slice(start, start + height)
            left, right = self.user_factors_[users[at]], self.item_factors_[items[at]]
            found = [np.einsum("nd,nd->n", left @ w[f"{b}.decoder"], right) for b in range(int(self.bases))]
            odds = np.stack(found, 1) @ w["levels"]
            if self.node_bias:
                odds += left @ w["user.levels"] + right @ w["item.levels"]
            out[at] = self._expected(w, odds)
        return out

    def _decoder(self) -> dict[str, Array]:
        return {name: view.numpy() for name, view in self._views(self._network(), self.weights_).items()}

    def _expected(self, w: dict[str, Array], odds: Array) -> Array:
        """Expected ratings [...] from odds [..., levels], which are overwritten."""
        if self.level_bias:
            odds += w["levels.bias"]
        odds -= odds.max(axis=-1, keepdims=True)
        np.exp(odds, out=odds)
        return np.asarray(odds @ self.levels_ / odds.sum(axis=-1))

    def _need_torch(self) -> None:
        try:
            import torch  # noqa: F401
        except ModuleNotFoundError:
            raise MissingExtra(type(self).__name__, "nn") from None


def levels_of(value: Array, most: int) -> NDArray[np.float32]:
    """The values that occur, rising; the means of `most` groups of like size where there are more of them."""
    levels = np.unique(value)
    if levels.size > most:
        levels = np.unique([group.mean(dtype=np.float64) for group in np.array_split(np.sort(value), most)])
    return levels.astype(np.float32)


def _identity(n: int) -> CSR:
    return CSR(np.arange(n + 1, dtype=np.int64), np.arange(n, dtype=np.int32), np.ones(n, np.float32), n)


def _columns(features: Any) -> int:
    """Width of the features of a side, sparse or not; 0 where there are none."""
    return 0 if features is None else int((features[0] if isinstance(features, tuple) else features).shape[1])
