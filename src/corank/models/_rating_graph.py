"""What `gcmc` and `graph_ae` share: the fit loop, and expected ratings.

A model file defines an encoder, which computes vectors of users and items from the graph of the ratings; here it is
trained together with a bilinear decoder. A step predicts its share of the ratings from the graph of all of them or,
with `hide` and two batches or more, of the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import nn
from ..data import CSR, Array, Dataset
from ..errors import CorankError
from ..stored import Number, Stored, Wholes, floats
from ._node_features import node_features
from ._rating_graph_options import RatingGraphOptions
from ._torch import F, require_torch, torch

if TYPE_CHECKING:
    from torch import Tensor

    from ..nn.noise import Noise
    from ..nn.parameters import Layout, Parameter, Weights
    from ..nn.rating_graph import BilinearDecoder, Bools, Features, RatingGraph, Side
    from ..training import Training
    from ._exported import Exported


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
class RatingGraphModel(RatingGraphOptions):
    """Base of `gcmc` and `graph_ae`: a graph auto-encoder of rating levels."""

    # ---- what a subclass writes ----------------------------------------------------------------------------------

    def _encoder(self) -> RatingEncoder:
        raise NotImplementedError

    def _fold_in(self, w: Weights, graph: RatingGraph) -> Tensor:
        """Vectors (users, dim) of unseen users, the users of `graph`, who have ratings and no features."""
        raise NotImplementedError

    def _sizes(self) -> dict[str, Any]:
        """The fields of `RatingEncoder`."""
        names = ("dim", "feature_dim", "dropout", "node_dropout", "cold")
        sizes = {"users": len(self.users_), "items": len(self.items_), "levels": self.levels_.size}
        return sizes | {"columns": tuple(self.columns_)} | {name: getattr(self, name) for name in names}

    # ---- fit -----------------------------------------------------------------------------------------------------

    def _fit(self, data: Dataset, rows: CSR, training: Training) -> None:
        device, rng = self._device(), training.rng
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
        trainer = nn.Trainer(
            layout,
            weights,
            first,
            second,
            lr=self.lr,
            betas=(0.9, 0.999),
            weight_decay=self.weight_decay,
            device=device,
        )
        if self.average > 0:  # predictions use the averaged weights; training continues with the weights themselves
            self.weights_, state["live"] = weights.copy(), weights
        batches = min(self.batches, n)
        training.watch("rmse", higher_is_better=False)
        for epoch in training.epochs(**state):
            total = 0.0
            batch = rng.permutation(n) % batches
            average = torch.from_numpy(self.weights_).to(device)
            with trainer.workers():
                for number in range(batches):
                    step, targets = (epoch - 1) * batches + number + 1, batch == number
                    loss = self._loss(encoder, graph, value, targets, int(rng.integers(2**62)))
                    total += trainer.step(step, [loss], None) * int(np.count_nonzero(targets))
                    if self.average > 0:  # a short memory at first, so that the random start is forgotten
                        keep = min(self.average, step / (step + 9))
                        average += (trainer.flat - average) * (1 - keep)
                    training.progress(number + 1, batches)
            if self.average > 0:
                self.weights_[:] = average.cpu().numpy()  # on a CPU, onto itself
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

    def _graph(self, user: Array, item: Array, value: Array, users: int, **more: Any) -> RatingGraph:
        """Ratings (n,) as a graph between `users` users and all items."""
        symmetric, sizes = self.normalize == "symmetric", (users, len(self.items_), self.levels_.size)
        more |= {"symmetric": symmetric, "shrink": self.shrink, "device": self._device()}
        return nn.RatingGraph(user, item, self._level(value), *sizes, **more)

    def _features(self, data: Dataset) -> dict[Side, Features]:
        if self.theta is not None and not self.features.startswith(("auto", "none", "dna")):
            raise CorankError(
                f"{type(self).__name__}(theta={self.theta:g}) with features={self.features!r}: theta limits the Bloom "
                "filters of Graph DNA; choose dna-1 to dna-4, or leave theta out"
            )
        options = {name: getattr(self, name) for name in ("alpha", "capacity", "error", "theta", "walk_dim", "seed")}
        options |= {"ids": self.ids_as_features, "device": self._device()}
        return node_features(data, self.features, type(self).__name__, **options)

    def _loss(
        self, encoder: RatingEncoder, graph: RatingGraph, value: Array, targets: Bools, seed: int
    ) -> Callable[[Weights], Tensor]:
        """The loss of one step as a function of the weights; targets bool (n,): the ratings that it predicts."""
        decoder, squared = self._decoder(), self.squared
        visible = ~targets if self.hide and not targets.all() else None
        pairs = nn.Pattern(graph.user[targets], graph.item[targets], (graph.users, graph.items), graph.device)
        level, rating = nn.send(graph.level[targets], graph.device), nn.send(value[targets], graph.device)
        levels = nn.send(self.levels_, graph.device)
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
            user, item = encoder.encode(self._on_device(), graph)
            self.user_factors_, self.item_factors_ = user.cpu().numpy(), item.cpu().numpy()

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

    def _on_device(self) -> dict[str, Tensor]:
        """The learned parameters by name on the device; on a CPU they are those of `_views`."""
        return self._layout().views(torch.from_numpy(self.weights_).to(self._device()))

    def _exported(self) -> Exported:
        from ._exported import rating_scores

        return rating_scores(self)

    # ---- score ---------------------------------------------------------------------------------------------------

    def _score(self, users: NDArray[np.int32]) -> NDArray[np.float32]:
        return self._ratings(self.user_factors_[users])

    def _score_histories(self, histories: CSR) -> NDArray[np.float32]:
        require_torch(self)
        row = np.repeat(np.arange(histories.rows), np.diff(histories.indptr))
        degrees = {"item": np.maximum(self.item_count_, 1)}
        graph = self._graph(row, histories.index, histories.value, histories.rows, degrees=degrees)
        with torch.no_grad():
            return self._ratings(self._fold_in(self._on_device(), graph).cpu().numpy())

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
