"""Random changes of what a file holds: hyper-parameters, plain values, arrays, names and types."""

from __future__ import annotations

import copy
import random
from typing import Any

import numpy as np

Content = tuple[dict[str, np.ndarray], Any]  # arrays and metadata
HUGE = (2**31 - 1, 2**31, 2**62, 2**63, 10**30, 1e30, 1e308, -1e30)
SMALL = (0, 1, 2, 3, -1, -5, 0.0, 0.5, 1e-30, -0.0, 7, 64, 4096, 65536)
ODD = (None, True, "", "x", "\x1b[31mred", "\ud800", "1", [], [1], [[1]], {}, {"a": 1}, float("nan"), float("inf"))
NAMES = ("__class__", "__dict__", "_score", "fit", "users_", "seen_value_", "item_factors_", "weights_", "x_", "_", "")
DTYPES = ("float16", "float32", "float64", "int8", "int32", "int64", "uint8", "uint64", "bool")


def value(rng: random.Random, like: Any = None) -> Any:
    """Some value, often one near what was there."""
    if isinstance(like, bool) and rng.random() < 0.5:
        return not like
    if isinstance(like, int | float) and rng.random() < 0.5:
        return rng.choice([like + 1, like - 1, like * 2, like // 2, -like, like * 1000, float(like), like + 0.5])
    if isinstance(like, list) and like and rng.random() < 0.7:
        out = copy.deepcopy(like)
        at = rng.randrange(len(out))
        how = rng.randrange(5)
        if how == 0:
            out.pop(at)
        elif how == 1:
            out.append(out[at])
        elif how == 2:
            out = out * 2
        elif how == 3 and isinstance(out[at], dict) and out[at]:
            key = rng.choice(list(out[at]))
            out[at][key] = value(rng, out[at][key])
        else:
            out[at] = value(rng, out[at])
        return out
    return rng.choice([*HUGE, *SMALL, *ODD])


def change_dict(rng: random.Random, values: dict[str, Any]) -> None:
    """Change, drop, add or rename an entry."""
    how, keys = rng.random(), list(values)
    if how < 0.7 and keys:
        key = rng.choice(keys)
        values[key] = value(rng, values[key])
    elif how < 0.85 and keys:
        del values[rng.choice(keys)]
    elif how < 0.95:
        values[rng.choice(NAMES)] = value(rng)
    elif len(keys) > 1:
        a, b = rng.sample(keys, 2)
        values[a], values[b] = values[b], values[a]


def change_values(rng: random.Random, array: np.ndarray) -> np.ndarray:
    """Other numbers of the same type and shape."""
    array = array.copy()
    if array.size == 0:
        return array
    flat = array.reshape(-1)
    some = [rng.randrange(flat.size) for _ in range(rng.choice([1, 1, 2, flat.size]))]
    how = rng.randrange(6)
    if how == 0:  # one of the extremes
        kind = array.dtype.kind
        extremes = [float("nan"), float("inf"), -float("inf"), 3e38, -3e38, 1e-45, 1e20] if kind == "f" else [0, 1]
        if kind in "iu":
            info = np.iinfo(array.dtype)
            extremes = [info.min, info.max, info.max // 2, *[max(info.min, n) for n in (-1, 0, 1, 15, 16, 17, 24, 25)]]
        flat[some] = rng.choice(extremes)
    elif how == 1:  # one value everywhere
        flat[:] = flat[some[0]]
    elif how == 2:  # another order
        np.random.default_rng(rng.randrange(2**31)).shuffle(flat)
    elif how == 3 and array.dtype.kind != "b":
        flat[some] = -flat[some]
    elif how == 4:  # noise
        raw = np.frombuffer(np.random.default_rng(rng.randrange(2**31)).bytes(array.nbytes), array.dtype)
        flat[:] = raw
    else:
        flat[some] = flat[::-1][some]
    return array


def change_shape(rng: random.Random, array: np.ndarray) -> np.ndarray:
    """Other dimensions, or another number of rows or columns."""
    how = rng.randrange(8)
    if how == 0 and array.ndim > 1:
        return array.T
    if how == 1:
        return array.reshape(-1)
    if how == 2:
        return array[None]
    if how == 3:
        return array[..., None]
    if how == 4 and array.ndim:
        return array[: rng.randrange(array.shape[0] + 1)]
    if how == 5 and array.ndim > 1:
        return array[:, : rng.randrange(array.shape[1] + 1)]
    if how == 6 and array.ndim:
        return np.concatenate([array, array[: 1 + rng.randrange(max(1, array.shape[0]))]])
    if array.ndim > 1:
        return np.concatenate([array, array], axis=1)
    return np.zeros((0,) * rng.randrange(1, 3), array.dtype)


def craft(rng: random.Random, content: Content) -> tuple[dict[str, np.ndarray], Any, dict[str, dict[str, Any]]]:
    """A changed copy: one change, or a few; and changes of the header."""
    arrays, meta = dict(content[0]), copy.deepcopy(content[1])
    header: dict[str, dict[str, Any]] = {}
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        how, names = rng.random(), list(arrays)
        if how < 0.2:
            change_dict(rng, meta["params"])
        elif how < 0.38:
            change_dict(rng, meta["state"])
        elif how < 0.58 and names:
            name = rng.choice(names)
            arrays[name] = change_values(rng, arrays[name])
        elif how < 0.78 and names:
            name = rng.choice(names)
            arrays[name] = change_shape(rng, arrays[name])
        elif how < 0.85 and names:
            name = rng.choice(names)
            with np.errstate(all="ignore"):
                arrays[name] = arrays[name].astype(rng.choice(DTYPES))
        elif how < 0.88 and names:
            del arrays[rng.choice(names)]
        elif how < 0.91 and len(names) > 1:
            a, b = rng.sample(names, 2)
            arrays[a], arrays[b] = arrays[b], arrays[a]
        elif how < 0.94 and names:
            arrays[rng.choice([*NAMES, "users_bytes", "users_ids", "items_ends"])] = arrays[rng.choice(names)]
        elif how < 0.97 and names:
            part = rng.choice(["dtype", "shape", "data_offsets"])
            header[rng.choice(names)] = {part: value(rng, [1, 2]) if part != "dtype" else rng.choice(["F32", "F8", 3])}
        else:
            change_dict(rng, meta)
            if not isinstance(meta.get("params"), dict) or not isinstance(meta.get("state"), dict):
                break
    return arrays, meta, header
