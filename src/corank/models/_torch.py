"""The one place that says what to install when torch is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import MissingExtra

if TYPE_CHECKING:
    from ..model import Model


def require_torch(model: Model) -> None:
    """Raise `MissingExtra` with the line to type, unless torch can be imported."""
    try:
        import torch  # noqa: F401
    except ModuleNotFoundError as why:
        if why.name != "torch":
            raise
        raise MissingExtra(type(model).__name__, "nn") from None
