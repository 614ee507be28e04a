"""GC-MC: ratings as a graph; users and items are made of their neighbours, and of side graphs where there are any.

A graph auto-encoder (van den Berg, Kipf and Welling 2017): a user's vector is a sum over the ratings of a vector for
(item, level of the rating), then two small layers; a bilinear decoder gives the odds of each level, and a prediction is
the expected rating. A user or item graph enters as features of the nodes: rows of the graph, Graph DNA (Wu 2020,
chapter 2) or random walks. Use it where ratings are few and graphs are there; users without ratings are then told
apart by their friends. An epoch costs about 12 * batches * (ratings * width + nodes * hidden * dim) multiply-adds,
width being hidden / levels.

Beyond the paper: levels have a bias, nodes may have a say of their own in the odds (`node_bias`), the loss has the
squared error in it (`squared`), some nodes are without ratings in each step (`cold`), and with two batches or more the
ratings that a step predicts are not part of its graph (`hide`).
`GCMC(level_bias=False, squared=0, cold=0, hidden=500, epochs=200)` is the published model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..data import CSR, Array
from ..params import param
from ._rating_graph import RatingGraph

if TYPE_CHECKING:
    from ..nn.convolution import Network


@dataclass(kw_only=True, eq=False)
class GCMC(RatingGraph):
    """Graph convolution over rating levels, with features from side graphs."""

    hidden: int = param(100, "width of the first layer, all levels together", low=1, high=65_536, search=(32, 512))
    accumulate: str = param("stack", "levels side by side (stack) or added up (sum)", choices=("stack", "sum"))
    sharing: str = param(
        "own",
        "tables of the levels: their own, each adding to the one below, or mixtures of `bases`",
        choices=("own", "ordinal", "basis"),
    )

    def _network(self) -> Network:
        from ..nn.convolution import Network

        return Network(
            **self._sizes(), hidden=int(self.hidden), stacked=self.accumulate == "stack", sharing=self.sharing
        )

    def _activations(self) -> float:
        return 4.0 * self.hidden

    def _vectors(self, histories: CSR) -> Array:
        import torch

        from ..nn.sparse import product

        net = self._network()
        w = self._views(net, self.weights_)
        with torch.no_grad():
            first = torch.relu(product(*self._edges(histories, net.stacked), net.table(w, "user")))
            return net.finish(w, "user", first.view(histories.rows, -1), None, None).numpy()
