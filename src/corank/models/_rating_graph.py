"""What `gcmc` and `graph_ae` share: hyper-parameters, the fit loop, and expected ratings.

A model file defines an encoder, which computes vectors of users and items from the graph of the ratings; here it is
trained together with a bilinear decoder. A step predicts its share of the ratings from the graph of all of them or,
with `hide` and two batches or more, of the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from .. import nn
from ..cost import DENSE, KERNEL, SCATTERED, SORTED, Cost, Size
from ..data import CSR, Array, Dataset
from ..errors import CorankError
from ..model import Model
from ..params import param
from ..stored import Number, Stored, Wholes, floats
from ._node_features import KINDS, node_features
from ._torch import F, require_torch, torch

if TYPE_CHECKING:
    from torch import Tensor

    from ..nn.noise import Noise
    from ..nn.parameters import Layout, Parameter, Weights
    from ..nn.rating_graph import BilinearDecoder, Bools, Features, RatingGraph, Side
    from ..training import Training


@dataclass(frozen=True, kw_only=True)
class RatingEncoder:
    """Vectors of users and items from the graph of the ratings; the weights are kept elsewhere."""

    users: int
    items: int
    levels: int
    columns: tuple[int, int] = (0, 0)  # of the features of users and of items
    dim: int
    feature_dim: int = 64
    dropout: float = 0.0  # of the hidden layers
    node_dropout: float = 0.0  # of the neighbours that a sum goes over
    cold: float = 0.0  # share of the nodes that have no ratings in a training step

    def parameters(self) -> dict[str, Parameter]:
        """Shape and role of each parameter."""
        raise NotImplementedError

    def start(self, w: Weights) -> None:
        """Adjust the random initial weights in place; nothing by default."""

    def encode(
        self, w: Weights, graph: RatingGraph, visible: Bools | None = None, noise: Noise | None = None
    ) -> tuple[Tensor, Tensor]:
        """Vectors (users, dim) and (items, dim).

        Parameters
        ----------
        visible : bool (n,), the ratings that are used; all when absent.
        noise : source of all dropout masks in training; no dropout when absent.
        """
        raise NotImplementedError


@dataclass(kw_only=True, eq=False)
class RatingGraphModel(Model):
    """Base of `gcmc` and `graph_ae`: a graph auto-encoder of rating levels."""

    dim: int = param(75, "size of the user and item vectors", low=1, high=4096, search=(16, 128), log=True)
    features: str = param(
        "auto", "node features from the data's side graphs; auto = dna-2 where there is a graph", choices=KINDS
    )
    feature_dim: int = param(64, "hidden size of the layer over the features", low=1, high=4096)
    alpha: float = param(0.05, "weight of G^2 beside G (features g2)", low=0.0)
    capacity: int = param(100, "number of nodes that a Bloom filter is sized for (dna)", low=1, high=10_000_000)
    error: float = param(0.1, "false positive rate of a full Bloom filter (dna)", low=1e-6, high=0.5)
    theta: float | None = param(
        None,
        "a node merges no further neighbour in a round once its Bloom filter holds more nodes than this (dna); None = "
        "no limit",
        low=1.0,
    )
    walk_dim: int = param(
        128, "number of features per node that are learned from random walks (node2vec, deepwalk)", low=1, high=4096
    )
    levels: int = param(
        100, "maximum number of rating levels; with more distinct values, similar ones share a level", low=1
    )
    normalize: str = param(
        "left",
        "weight of a rating in the sum over neighbours: 1 / degree (left) or 1 / sqrt(degree * degree) (symmetric)",
        choices=("left", "symmetric"),
    )
    shrink: float = param(
        0.0, "added to the degrees, which shrinks the sums of nodes with few ratings", low=0.0, search=(0.0, 5.0)
    )
    bases: int = param(2, "number of basis matrices of the decoder", low=1, high=64, search=(1, 4))
    level_bias: bool = param(True, "the decoder has a bias per level, which starts at the log frequency of the level")
    node_bias: bool = param(False, "the vectors of the user and of the item each add a linear term to the logits")
    dropout: float = param(0.7, "dropout rate of the hidden layers", low=0.0, high=0.95)
    node_dropout: float = param(
        0.7, "dropout rate of whole neighbours in the sum over neighbours", low=0.0, high=0.95, search=(0.0, 0.8)
    )
    cold: float = param(
        0.1,
        "share of users and items that have no ratings in a training step, so that the features learn to replace them",
        low=0.0,
        high=0.95,
    )
    squared: float = param(
        0.5,
        "weight of the squared error (divided by the variance of the ratings) in the loss; the rest is cross-entropy",
        low=0.0,
        high=1.0,
        search=(0.0, 1.0),
    )
    batches: int = param(1, "gradient steps per epoch, each on its share of the ratings", low=1, high=1_000_000)
    hide: bool = param(True, "the ratings that a step predicts are not part of its graph (with two batches or more)")
    lr: float = param(0.01, "learning rate of Adam", low=1e-9, high=10.0, search=(1e-3, 0.03), log=True)
    weight_decay: float = param(
        0.0,
        "weight decay (AdamW) of all weights except biases",
        low=0.0,
        high=100.0,
        search=(1e-3, 1.0),
        log=True,
    )
    average: float = param(
        0.0, "decay of the running average of the weights (Polyak); 0 = no averaging", low=0.0, high=0.9999
    )
    epochs: int = param(100, "passes over the ratings", low=1, search=(10, 200), log=True)
    patience: int | None = param(
        None, "epochs without a lower RMSE on `valid` before training stops; the best epoch is kept", low=1
    )

    predicts_ratings: ClassVar[bool] = True
    tasks: ClassVar[tuple[str, ...]] = ("explicit",)
    by_default: ClassVar[bool] = False  # minutes where others take seconds
    graph: ClassVar[Literal["unused", "optional", "needed"]] = "optional"
    ids_as_features: ClassVar[bool] = True  # of the side without a graph, if the other has one

    # ---- what a subclass writes ----------------------------------------------------------------------------------

    def _encoder(self) -> RatingEncoder:
        raise NotImplementedError

    def _fold_in(self, w: Weights, graph: RatingGraph) -> Tensor:
        """Vectors (users, dim) of unseen users, the users of `graph`, who have ratings and no features."""
        raise NotImplementedError

    def _tables(self, size: Size) -> float:
        """Roughly the number of weights."""
        raise NotImplementedError

    def _feature_weights(self, size: Size) -> float:
        """Roughly the weights of the layer over the features; a side without a graph has its ids as features."""
        if self.features == "none" or not size.user_edges + size.item_edges:
            return 0.0
        bits = 5 * self.capacity if self.features in ("auto", *(k for k in KINDS if k.startswith("dna"))) else 0
        return float(self.feature_dim) * (2 * bits + (0 if bits and not self.ids_as_features else size.nodes))

    def _numbers(self, levels: int) -> float:
        """Numbers per node that a step computes."""
        raise NotImplementedError

    def _kept(self, levels: int) -> float:
        """Numbers per node that a step holds in memory for the backward pass."""
        return self._numbers(levels)

    def _sizes(self) -> dict[str, Any]:
        """The fields of `RatingEncoder`."""
        names = ("dim", "feature_dim", "dropout", "node_dropout", "cold")
        sizes = {"users": len(self.users_), "items": len(self.items_), "levels": self.levels_.size}
        return sizes | {"columns": tuple(self.columns_)} | {name: getattr(self, name) for name in names}

    # ---- fit -----------------------------------------------------------------------------------------------------

    def _fit(self, data: Dataset, rows: CSR, training: Training) -> None:
        require_torch(self)
        rng = training.rng
        self.liked_ = float(np.quantile(data.value, 0.9))  # the rating of an item in a history that gives none
        self.levels_ = rating_levels(data.value, self.levels)
        self.item_count_ = np.bincount(data.item, minlength=len(data.items)).astype(np.float32)
        order = np.lexsort((data.value, data.item, data.user))  # not `rows`: every rating of a repeated pair counts
        n, value = len(data), data.value[order].astype(np.float32)
        features = self._features(data)
        graph = self._graph(data.user[order], data.item[order], value, len(data.users), features=features)
        self.columns_ = [_columns(features.get("user")), _columns(features.get("item"))]
        encoder, layout = self._encoder(), self._layout()
        weights = self.weights_ = layout.initial_weights(rng)
        encoder.start(self._views(weights))
        if self.level_bias:
            count = np.maximum(np.bincount(graph.level, minlength=self.levels_.size), 0.5)  # a level may have none
            self._views(weights)["decoder.bias"].numpy()[:] = np.log(count / count.sum())
        first, second = layout.empty(), layout.empty()  # Adam's moments
        state = {"first": first, "second": second}
        betas, decay = (0.9, 0.999), self.weight_decay
        trainer = nn.Trainer(layout, weights, first, second, lr=self.lr, betas=betas, weight_decay=decay)
        if self.average > 0:  # predictions use the averaged weights; training continues with the weights themselves
            self.weights_, state["live"] = weights.copy(), weights
        batches = min(self.batches, n)
        training.watch("rmse", higher_is_better=False)
        for epoch in training.epochs(**state):
            total = 0.0
            batch = rng.permutation(n) % batches
            with trainer.workers():
                for number in range(batches):
                    step, targets = (epoch - 1) * batches + number + 1, batch == number
                    loss = self._loss(encoder, graph, value, targets, int(rng.integers(2**62)))
                    total += trainer.step(step, [loss], None) * int(np.count_nonzero(targets))
                    if self.average > 0:  # a short memory at first, so that the random start is forgotten
                        keep = min(self.average, step / (step + 9))
                        self.weights_ += np.float32(1 - keep) * (weights - self.weights_)
                    training.progress(number + 1, batches)
            if training.observed:
                self._encode(encoder, graph)
            training.report(loss=total / n, **self._validate(training.valid))
        self._encode(encoder, graph)
        training.check_scores(np.arange(min(16, len(data.users))))

    def _stores(self) -> dict[str, Stored]:
        return super()._stores() | {
            "liked_": Number(),
            "levels_": floats("rating levels", rising=True, some=True),
            "item_count_": floats("items", low=0),
            "columns_": Wholes(length=2),
            "weights_": floats("parameters"),
            "user_factors_": floats("users", "dim"),
            "item_factors_": floats("items", "dim"),
        }

    def _size(self, word: str) -> int | None:
        if word != "parameters":
            return super()._size(word)
        require_torch(self)
        return self._layout().size

    def _cost(self, size: Size) -> Cost:
        levels, batches = min(size.levels, self.levels), min(self.batches, size.rows)
        step = DENSE * size.nodes * self._numbers(levels) * self.dim * 6
        step += KERNEL * (12.0 * size.rows * self._numbers(levels) / levels + 8 * self._tables(size))
        features = 20 * SCATTERED * (size.user_edges + size.item_edges) * self.feature_dim
        decoded = KERNEL * size.rows * (self.bases * self.dim * 8 + 40 * levels)
        return Cost(4 * SORTED * size.rows, batches * (step + features + 5e-3) + decoded)

    def _memory(self, size: Size) -> float:
        levels = min(size.levels, self.levels)
        # Weights, two moments and a gradient, the gradient of the largest table, and the running average.
        copies = 5 + 2 * (self.average > 0) + (self.patience is not None)
        weights = self._tables(size) + self.bases * self.dim**2 + 2.0 * self.dim * levels
        kept = 2.0 * size.nodes * (self._kept(levels) + 2 * self.feature_dim + (1 + self.bases) * self.dim)
        graphs = 64.0 * (size.user_edges + size.item_edges)
        return 4.0 * (copies * weights + kept) + graphs + size.rows * (120.0 + 16.0 * levels / self.batches)

    def _smaller(self, size: Size, free: int | None) -> str:
        return "choose a smaller dim, fewer levels or more batches"

    def _graph(self, user: Array, item: Array, value: Array, users: int, **more: Any) -> RatingGraph:
        """Ratings (n,) as a graph between `users` users and all items."""
        symmetric, sizes = self.normalize == "symmetric", (users, len(self.items_), self.levels_.size)
        return nn.RatingGraph(user, item, self._level(value), *sizes, symmetric=symmetric, shrink=self.shrink, **more)

    def _features(self, data: Dataset) -> dict[Side, Features]:
        if self.theta is not None and not self.features.startswith(("auto", "none", "dna")):
            raise CorankError(
                f"{type(self).__name__}(theta={self.theta:g}) with features={self.features!r}: theta limits the Bloom "
                "filters of Graph DNA; choose dna-1 to dna-4, or leave theta out"
            )
        options = {name: getattr(self, name) for name in ("alpha", "capacity", "error", "theta", "walk_dim", "seed")}
        return node_features(data, self.features, type(self).__name__, ids=self.ids_as_features, **options)

    def _loss(
        self, encoder: RatingEncoder, graph: RatingGraph, value: Array, targets: Bools, seed: int
    ) -> Callable[[Weights], Tensor]:
        """The loss of one step as a function of the weights; targets bool (n,): the ratings that it predicts."""
        decoder, squared = self._decoder(), self.squared
        visible = ~targets if self.hide and not targets.all() else None
        pairs = nn.Pattern(graph.user[targets], graph.item[targets], (graph.users, graph.items))
        level, rating = torch.from_numpy(graph.level[targets]), torch.from_numpy(value[targets])
        levels = torch.from_numpy(self.levels_)
        variance = float(np.var(value, dtype=np.float64)) or 1.0

        def loss(w: Weights) -> Tensor:
            user, item = encoder.encode(w, graph, visible, nn.Noise(seed))  # (users, dim), (items, dim)
            logits = decoder.logits(w, pairs, user, item)  # (targets, levels)
            total = logits.new_zeros(())
            if squared < 1:
                total = total + (1 - squared) * F.cross_entropy(logits, level)
            if squared > 0:
                error = torch.softmax(logits, 1) @ levels - rating  # (targets,)
                total = total + squared / variance * error.square().mean()
            return total

        return loss

    def _encode(self, encoder: RatingEncoder, graph: RatingGraph) -> None:
        """Keep the vectors of all users and items, from all ratings."""
        with nn.one_thread(), torch.no_grad():
            user, item = encoder.encode(self._views(self.weights_), graph)
            self.user_factors_, self.item_factors_ = user.numpy(), item.numpy()

    def _validate(self, valid: Dataset | None) -> dict[str, float]:
        if valid is None:
            return {}
        error = self._predict(valid.user, valid.item) - valid.value
        return {"rmse": float(np.sqrt(np.square(error).mean()))}

    # ---- parameters ----------------------------------------------------------------------------------------------

    def _decoder(self) -> BilinearDecoder:
        return nn.BilinearDecoder(
            dim=self.dim,
            levels=self.levels_.size,
            bases=self.bases,
            level_bias=self.level_bias,
            node_bias=self.node_bias,
        )

    def _layout(self) -> Layout:
        return nn.Layout(self._encoder().parameters() | self._decoder().parameters())

    def _views(self, weights: NDArray[np.float32]) -> dict[str, Tensor]:
        """The parameters by name, which share memory with the flat vector."""
        require_torch(self)
        return self._layout().views(torch.from_numpy(weights))

    # ---- score ---------------------------------------------------------------------------------------------------

    def _score(self, users: NDArray[np.int32]) -> NDArray[np.float32]:
        return self._ratings(self.user_factors_[users])

    def _score_histories(self, histories: CSR) -> NDArray[np.float32]:
        require_torch(self)
        row = np.repeat(np.arange(histories.rows), np.diff(histories.indptr))
        degrees = {"item": np.maximum(self.item_count_, 1)}
        graph = self._graph(row, histories.index, histories.value, histories.rows, degrees=degrees)
        with torch.no_grad():
            return self._ratings(self._fold_in(self._views(self.weights_), graph).numpy())

    def _level(self, value: Array) -> NDArray[np.int64]:
        """The nearest level of each value."""
        middle = (self.levels_[1:] + self.levels_[:-1]) / 2
        return np.searchsorted(middle, value).astype(np.int64)

    def _ratings(self, users: Array) -> NDArray[np.float32]:
        """Expected ratings of all items, (b, items), from vectors of users (b, dim)."""
        return self._decoder().rate_all(self._arrays(), self.levels_, users, self.item_factors_)

    def _predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.float64]:
        vectors = self.user_factors_, self.item_factors_
        return self._decoder().rate_pairs(self._arrays(), self.levels_, *vectors, users, items)

    def _arrays(self) -> dict[str, Array]:
        return {name: view.numpy() for name, view in self._views(self.weights_).items()}


def rating_levels(value: Array, most: int) -> NDArray[np.float32]:
    """The distinct values in rising order; where there are more than `most`, the means of groups of similar size."""
    levels = np.unique(value)
    if levels.size > most:
        levels = np.unique([group.mean(dtype=np.float64) for group in np.array_split(np.sort(value), most)])
    return levels.astype(np.float32)


def _columns(features: Features | None) -> int:
    """Number of columns of the features of a side; 0 where there are none."""
    return 0 if features is None else int((features[0] if isinstance(features, tuple) else features).shape[1])
