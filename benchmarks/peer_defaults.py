"""The models of implicit with its own defaults, as models of corank: their vectors score like those of `WMF`."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

import corank as cr

MODELS = {"implicit ALS": "wmf", "implicit BPR": "bpr"}  # -> the model of corank that it stands beside


def fitted(name: str, train: cr.Dataset) -> cr.Model:
    """The peer's model with all options at their defaults, fitted on these rows as ones."""
    from implicit.cpu.als import AlternatingLeastSquares
    from implicit.cpu.bpr import BayesianPersonalizedRanking
    from threadpoolctl import threadpool_limits

    matrix = sp.csr_matrix(train.csr().scipy())
    matrix.data[:] = 1
    peer = (AlternatingLeastSquares if name == "implicit ALS" else BayesianPersonalizedRanking)(random_state=0)
    with threadpool_limits(1):
        peer.fit(matrix, show_progress=False)
    model = cr.WMF(dim=1, epochs=1).fit(train)
    model.user_factors_ = np.array(peer.user_factors, np.float32)
    model.item_factors_ = np.array(peer.item_factors, np.float32)
    return model
