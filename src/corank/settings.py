"""The hyper-parameters of a model as a whole: their values, copies with other values, and what is left to the data."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Self, cast

from .data import CSR, Dataset
from .errors import CorankError, suggest


class Settings:
    """The hyper-parameters of a dataclass of them; a part of `Model`."""

    least_patience: ClassVar[int] = 5  # epochs without a better value before a fit stops, where none are given
    from_data: ClassVar[tuple[str, ...]] = ()  # hyper-parameters that `_choose` settles where they are None

    def params(self) -> dict[str, Any]:
        """The hyper-parameters and their values, without settings of the machine (`device`), which teach nothing."""
        fields = [
            f
            for f in dataclasses.fields(cast(Any, self))
            if "param" not in f.metadata or not f.metadata["param"].machine
        ]
        return {f.name: getattr(self, f.name) for f in fields}

    def used_params(self) -> dict[str, Any]:
        """The hyper-parameters as they were used: once fitted, those that were None are as chosen for the data."""
        return {k: getattr(self, f"{k}_", None) if v is None else v for k, v in self.params().items()}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All arguments of the constructor, by scikit-learn's name, so that `sklearn.base.clone` works.

        `deep` is part of that protocol.
        """
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(cast(Any, self))}

    def _copy(self, **changes: Any) -> Self:
        """An unfitted model with the same settings, but for `changes`."""
        return type(self)(**{**self.get_params(), **changes})

    def set_params(self, **params: Any) -> Self:
        """Change hyper-parameters for the next fit, as in scikit-learn; returns self."""
        known = [f.name for f in dataclasses.fields(cast(Any, self))]
        for name in params:
            if name not in known:
                raise CorankError(f"{type(self).__name__} has no hyper-parameter {name!r}{suggest(name, known)}")
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        """The hyper-parameters that differ from their defaults."""
        usual = {f.name: f.default for f in dataclasses.fields(cast(Any, self))}
        shown = [f"{name}={value!r}" for name, value in self.get_params().items() if repr(value) != repr(usual[name])]
        return f"{type(self).__name__}({', '.join(shown)})"

    def settled(self, data: Dataset, rows: CSR) -> Self:
        """This model, or a copy in which the hyper-parameters that are left to the data are as chosen for this data."""
        if not self.from_data:
            return self
        copy: Any = self._copy()
        copy._choose(data, rows)
        return self._copy(**copy.used_params())

    @property
    def stops_early(self) -> bool:
        """Whether validation rows decide how many epochs a fit has: with `patience`, or where `epochs` is left open."""
        return getattr(self, "patience", None) is not None or (hasattr(self, "patience") and self.epochs_left_open)

    @property
    def epochs_left_open(self) -> bool:
        """Whether the number of epochs is chosen for the data."""
        return getattr(self, "epochs", 0) is None
