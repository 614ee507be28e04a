"""Compiles what a service calls, while an image is built: a container that cannot write starts without compiling.

Every model whose extra is installed is fitted to a few rows and asked all that `corank serve` asks.
"""

from __future__ import annotations

import numpy as np

import corank as cr
from corank.answering.diversity import recommend_diverse
from corank.answering.newer import continued
from corank.models import available


def warm(name: str, data: cr.Dataset) -> None:
    """Fit one model and call what the service calls."""
    kind = cr.find(name)
    model = kind(**({"epochs": 1} if hasattr(kind, "epochs") else {})).fit(data)
    history = data.items.ids[:3].tolist()
    model.recommend(data.users.ids[:2], k=10)
    model.recommend(histories=[history], k=10)
    model.recommend(data.users.ids[:1], histories=continued(model, np.zeros(1, np.int32), [[0]], [[1.0]]), k=10)
    recommend_diverse(model, 0.5, histories=[history], k=5)
    for ask in (lambda: model.explain(history=history, k=3), lambda: model.similar_items(history[:1], k=5)):
        try:
            ask()
        except cr.CorankError as why:  # some models have no reasons or no neighbours
            print(f"{name}: {why}")


if __name__ == "__main__":
    rows = cr.synthetic.realistic(users=60, items=50, rows=700, seed=0).data
    for one in available():
        try:
            warm(one, rows)
        except cr.CorankError as missing:  # an extra that this image does not have
            print(f"{one}: {missing}")
