"""The A/B split: which model answers a user. The same user always gets the same model, in every process."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping

SALT = "corank-split"  # of the hash: other uses of the same ids must not be correlated with the split


def arm(key: str | None, default: str, shares: Mapping[str, float]) -> str:
    """The model of a user; without a key, the default. shares : of the other models; the default has the rest.

    Weighted rendezvous hashing: a user goes to the model with the largest -share / log(hash of user and model). Of
    two models, a larger share moves users to its model and none away from it.
    """
    if key is None or not shares:
        return default
    weights = {**shares, default: 1.0 - sum(share for name, share in shares.items() if name != default)}
    return max(weights, key=lambda name: (_score(weights[name], key, name), name))


def _score(weight: float, key: str, name: str) -> float:
    if weight <= 1e-12:
        return 0.0
    text = f"{SALT}\0{name}\0{key}".encode("utf-8", "surrogatepass")
    number = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")
    return -weight / math.log((number + 1) / (2**64 + 2))
