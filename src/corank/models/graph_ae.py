"""Graph AE: a light graph auto-encoder over ratings; neighbours of neighbours, small vectors of ids, side graphs.

Users and items begin with a small vector of their own; each layer sums, over the ratings, what the other side is,
turned by a matrix of the rating's level; a bilinear decoder gives the odds of each level, and a prediction is the
expected rating. It is GC-MC with less to learn by heart and more to see, in the manner of IMC-GAE (Shen et al. 2021);
features of side graphs (Graph DNA) are added as in `gcmc`. Use it in place of `gcmc`, unless many people have no
ratings. An epoch costs about 6 * batches * layers * dim * (2 * ratings + levels * nodes * dim) multiply-adds.

Beyond the paper: levels have a bias, nodes add to the odds (`node_bias`), the loss has the squared error in it
(`squared`), and a step does not see the ratings that it predicts (`hide`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..data import CSR, Array
from ..params import param
from ._rating_graph import RatingGraph

if TYPE_CHECKING:
    from ..nn.convolution import Graph, Rated
    from ..nn.light import Light


@dataclass(kw_only=True, eq=False)
class GraphAE(RatingGraph):
    """A light graph auto-encoder, with features from side graphs."""

    dim: int = param(32, "size of all vectors", low=1, high=4096, search=(16, 96), log=True)
    layers: int = param(2, "layers: how far a node sees", low=1, high=16, search=(1, 4))
    feature_dim: int = param(16, "width of the layer of the features", low=1, high=4096)
    node_bias: bool = param(True, "the vectors of a user and of an item each add to the odds")
    dropout: float = param(0.5, "share of a layer set to zero in training", low=0.0, high=0.95, search=(0.2, 0.7))
    node_dropout: float = param(0.5, "share of neighbours left out in training", low=0.0, high=0.95, search=(0.2, 0.7))
    cold: float = param(
        0.0,
        "share of users and items that a step leaves without ratings, so that features learn to do",
        low=0.0,
        high=0.95,
    )
    batches: int = param(5, "steps an epoch, each with its share of the ratings", low=1, high=1_000_000)
    average: float = param(0.98, "decay of the running mean of the weights (Polyak); 0 = none", low=0.0, high=0.9999)
    epochs: int = param(20, "passes over the ratings", low=1, search=(5, 60), log=True)

    ids_as_features: ClassVar[bool] = False  # the network has a vector of each id as it is

    def _network(self) -> Light:
        from ..nn.light import Light

        return Light(**self._sizes(), layers=int(self.layers))

    def _activations(self) -> float:
        return float(self.layers * self.dim * (4 + self.levels_.size))

    def _start(self, net: Rated, weights: NDArray[np.float32], count: Array) -> None:
        super()._start(net, weights, count)
        self._network().start(self._views(net, weights))

    def _encode(self, net: Rated, graph: Graph) -> None:
        import torch

        from ..nn.loop import one_thread

        super()._encode(net, graph)
        light: Any = net
        with one_thread(), torch.no_grad():  # of the items before each layer, for people who come later
            states = light.states(self._views(net, self.weights_), graph)[:-1]
            self.item_states_ = np.stack([state["item"].numpy() for state in states], 1)  # [items, layers, dim]

    def _vectors(self, histories: CSR) -> Array:
        import torch

        net = self._network()
        w = self._views(net, self.weights_)
        pattern, value = self._edges(histories, False)
        with torch.no_grad():
            states = torch.from_numpy(self.item_states_).unbind(1)
            layers = [net.turn(w, at, pattern, value, state) for at, state in enumerate(states)]
            return net.finish(w, "user", layers, None, None).numpy()
