"""What is checked around a fit: the question before it, the numbers after it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import CorankError
from .params import check
from .split import require_dataset

if TYPE_CHECKING:
    from .model import Model


def before_fit(model: Model, data: Any, valid: Any) -> None:
    """Raise one sentence for the first thing that cannot be learned from or with."""
    check(model)
    require_dataset(data, "fit")
    if valid is not None:
        require_dataset(valid, "valid=")
    if len(data) == 0:
        raise CorankError("there are no rows to learn from: give a dataset with at least one")
    if valid is not None and (valid.users != data.users or valid.items != data.items):
        raise CorankError("valid has other users or items than the training data: give parts of one split")
    if data.comparisons is not None and not model.takes_comparisons:
        raise CorankError(
            f"{model.name()} does not learn from comparisons, in which an item may be there because it lost: "
            "use primal_cr or collrank"
        )
    if valid is None and getattr(model, "patience", None) is not None:
        raise CorankError(
            f"patience={model.params()['patience']} needs validation rows to watch: give fit(valid=...), or leave "
            "patience out"
        )
    if model.predicts_ratings and np.ptp(data.value) == 0:
        logging.getLogger("corank").warning(
            "%s: all ratings are %g, which tells no items apart; without ratings use wmf, ease or bpr",
            model.name(),
            data.value[0],
        )


def diverged(model: Model, what: str) -> str:
    """A sentence with a remedy in the names of the model's own hyper-parameters."""
    values = model.params()
    remedies = [f"lower lr (now {values['lr']:g})"] if "lr" in values else []
    if "reg" in values:
        remedies.append("raise reg" + (f" (now {values['reg']:g})" if values["reg"] is not None else ""))
    return f"{what}: {' or '.join(remedies) or 'look for extreme values in the data'}"
