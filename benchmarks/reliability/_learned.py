"""Fit every model with each choice of its options, and print a digest of all that was learned and answered, as JSON."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sys
from collections.abc import Iterator

import numpy as np

import corank as cr
from corank.errors import CorankError
from corank.params import params_of


def digest(*values: object) -> str:
    out = hashlib.sha256()
    for value in values:
        out.update(value.tobytes() if isinstance(value, np.ndarray) and value.dtype != object else repr(value).encode())
    return out.hexdigest()


def variants(cls: type[cr.Model]) -> Iterator[tuple[str, dict[str, object]]]:
    """The defaults, and each other choice of an option, with small sizes that leave a remainder to vector code."""
    fields = {field.name for field in dataclasses.fields(cls)}
    small = {name: value for name, value in {"dim": 19, "epochs": 2}.items() if name in fields}
    yield "defaults", small
    if "dim" in small:
        yield "dim=64", {**small, "dim": 64}
    for name, (kind, default, _, rule) in params_of(cls).items():
        for choice in rule.choices or ():
            if choice != default:
                yield f"{name}={choice}", {**small, name: choice}
        if kind is bool:
            yield f"{name}={not default}", {**small, name: not default}


def learned(model: cr.Model, data: cr.Dataset) -> dict[str, str]:
    """What a fitted model holds and says, by name."""
    held = model._learned()
    out = {
        name: digest(value)
        for name, value in held.items()
        if name not in ("fit_seconds_", "history_") and (isinstance(value, np.ndarray) or np.isscalar(value))
    }
    told = model.recommend(k=7)
    out["recommend"] = digest(told.items, told.scores)
    out["predict"] = digest(model.predict(data.users.ids[data.user[:500]], data.items.ids[data.item[:500]]))
    histories = [data.items.ids[:5].tolist(), data.items.ids[3:20].tolist()]
    try:
        folded = model.recommend(histories=histories, k=7)
        out["fold-in"] = digest(folded.items, folded.scores)
    except CorankError as error:  # models of known users alone
        out["fold-in"] = str(error)
    return out


def main(names: list[str]) -> None:
    made = cr.synthetic.realistic(users=150, items=80, rows=3_000, seed=1).data
    out: dict[str, dict[str, dict[str, str]]] = {}
    for name in names or cr.available():
        out[name] = {}
        for variant, options in variants(cr.find(name)):
            try:
                out[name][variant] = learned(cr.find(name)(**options).fit(made), made)
            except CorankError as error:  # a choice that this data does not allow
                out[name][variant] = {"fit": str(error)}
    print(json.dumps(out))


if __name__ == "__main__":
    main(sys.argv[1:])
