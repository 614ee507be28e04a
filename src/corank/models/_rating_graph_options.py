"""The hyper-parameters of `gcmc` and `graph_ae`, and what a fit with them costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from ..cost import DENSE, KERNEL, SCATTERED, SORTED, Cost, Size
from ..params import param
from ._node_features import KINDS
from ._torch import TorchModel


@dataclass(kw_only=True, eq=False)
class RatingGraphOptions(TorchModel):
    """The hyper-parameters of graph auto-encoders of rating levels."""

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
    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda")  # MPS has no sparse matrices

    # ---- what a subclass writes: the size of its network ---------------------------------------------------------

    def _tables(self, size: Size) -> float:
        """Roughly the number of weights."""
        raise NotImplementedError

    def _numbers(self, levels: int) -> float:
        """Numbers per node that a step computes."""
        raise NotImplementedError

    def _kept(self, levels: int) -> float:
        """Numbers per node that a step holds in memory for the backward pass."""
        return self._numbers(levels)

    # ---- what follows from it ------------------------------------------------------------------------------------

    def _feature_weights(self, size: Size) -> float:
        """Roughly the weights of the layer over the features; a side without a graph has its ids as features."""
        if self.features == "none" or not size.user_edges + size.item_edges:
            return 0.0
        bits = 5 * self.capacity if self.features in ("auto", *(k for k in KINDS if k.startswith("dna"))) else 0
        return float(self.feature_dim) * (2 * bits + (0 if bits and not self.ids_as_features else size.nodes))

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
