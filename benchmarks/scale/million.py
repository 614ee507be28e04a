"""The ten best of a million items: exact inner products in blocks, and an approximate index (usearch)."""

from __future__ import annotations

import functools
import resource
from typing import Any

import numpy as np

import corank as cr
from corank.report import md_table

from ._used import Used

ORDER = 20
ITEMS, DIM, USERS, K = 1_000_000, 64, 2_000, 10
EXPANSIONS = (64, 256, 1024)  # candidates that usearch keeps while it searches
CASES = ("exact, 1 thread", "exact, 2 threads", "usearch f32", "usearch f16", "usearch i8")


@functools.cache
def _model() -> cr.Model:
    """WMF of a million items, most of which have rows, fitted for a few epochs so that its vectors are not noise."""
    data = cr.synthetic.realistic(users=100_000, items=ITEMS, rows=4_000_000, groups=500, seed=1).data
    return cr.WMF(dim=DIM, epochs=3).fit(data)


def _asked(model: cr.Model) -> np.ndarray:
    return np.random.default_rng(0).choice(len(model.users_), USERS, replace=False)


def measure(case: str) -> dict[str, Any]:
    """Users per second of the exact lists, or of the index, with its share of the exact ones."""
    model = _model()
    asked = model.users_.ids[_asked(model)]
    exact = model.recommend(asked, k=K, exclude_seen=False)
    if case.startswith("exact"):
        cr.set_threads(int(case.split()[1]))
        model.recommend(asked[:10], k=K)
        with Used() as used:
            model.recommend(asked, k=K)
        cr.set_threads(None)
        return {"users": USERS, **used.line()}
    from usearch.index import Index

    kind = case.split()[1]
    index = Index(ndim=DIM, metric="ip", dtype=kind)
    with Used() as building:
        index.add(np.arange(len(model.items_)), model.item_factors_)
    line: dict[str, Any] = {"users": USERS, "build": building.line(), "size": index.memory_usage / 1e9}
    vectors = model.user_factors_[_asked(model)]
    for expansion in EXPANSIONS:
        index.expansion_search = expansion
        with Used() as used:
            found = index.search(vectors, K).keys
        same = [np.isin(mine, other).mean() for mine, other in zip(exact.items, found, strict=True)]
        line[str(expansion)] = {**used.line(), "recall": float(np.mean(same))}
    line["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    return line


def section(found: dict[str, dict[str, Any]]) -> str:
    rows = []
    for case, line in found.items():
        if case.startswith("exact"):
            speed = line["users"] / line["seconds"]
            rows.append([case, f"{speed:,.0f}", "1.000", f"{line['anonymous']:.2f}", "", ""])
            continue
        build = line["build"]
        for expansion in EXPANSIONS:
            used = line[str(expansion)]
            about = [f"{case}, {expansion} candidates", f"{line['users'] / used['seconds']:,.0f}"]
            rows.append(
                [
                    *about,
                    f"{used['recall']:.3f}",
                    f"{line['size']:.2f}",
                    f"{build['seconds']:.0f}",
                    f"{build['processor']:.0f}",
                ]
            )
    heads = ["", "users / s", f"recall@{K} of the exact lists", "GB", "build s", "build processor s"]
    note = (
        f"Lists of {K} out of {ITEMS:,} items, WMF of dim {DIM} fitted to synthetic rows, {USERS:,} users in one call. "
        "`recommend` is exact: it computes all inner products in blocks and leaves out the seen items; GB is what it "
        "allocates at its peak beside the vectors. usearch searches a graph of the items, all processors, seen items "
        "not left out; GB is the index, which is in memory beside the vectors or instead of them."
    )
    return "\n\n".join(["## Lists from a million items", note, md_table(heads, rows)])
