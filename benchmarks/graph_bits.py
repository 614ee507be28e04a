"""Graph DNA in bits: how full the filters of the dissertation's simulation are, and how many entries a graph gets.

Fill: Wu 2020, table "bloom filters of different depths and sizes", a random graph of 10,000 nodes in which each edge
exists with probability 0.001, false positive rate 0.2.
"""

from __future__ import annotations

import numpy as np

import corank as cr
from corank.graph import encode

from .graph import LARGE, SHAPES, heavy_tailed
from .tools import Table

# depth, capacity, published share of set bits
FILL = (
    *((1, 20, 0.217), (1, 50, 0.093), (2, 20, 0.880), (2, 50, 0.608), (2, 100, 0.381), (2, 200, 0.215)),
    *((3, 200, 0.874), (3, 600, 0.525), (3, 1000, 0.364), (3, 1500, 0.262), (4, 2000, 0.743), (4, 4000, 0.499)),
)
PUBLISHED = {  # entries of G, G^2, G^3, G^4 and of the bits of DNA-1, DNA-2, DNA-3
    "Douban": (1_711_780, 106_767_776, 2_313_572_544, 8_720_553_105, 8_834_740, 142_897_900, 928_159_604),
    "Flixster": (2_538_746, 130_303_379, 2_793_542_551, 12_691_844_513, 12_664_952, 181_892_883, 1_185_535_529),
}
ROWS, BLOCK = 2_000, 100  # of a power that are made, and at a time: all of G^4 would be 100 GB


def run() -> Table:
    graph = cr.synthetic.simulation(users=10_000, items=10, rank=2).data.user_graph
    assert graph is not None
    rows = []
    for depth, capacity, published in FILL:
        dna = encode(graph, depth=depth, capacity=capacity, error=0.2)
        size = f"{dna.sizes().mean():,.0f}"
        rows.append(
            [
                "simulation",
                f"DNA-{depth}, capacity {capacity:,}",
                f"{dna.filter.bits:,}",
                f"{dna.fill:.3f}",
                f"{published:.3f}",
                size,
            ]
        )
    for name, (nodes, entries) in SHAPES.items():
        graph = heavy_tailed(nodes, entries)
        found = [float(graph.index.size)]
        some = np.random.default_rng(0).choice(nodes, ROWS, replace=False)
        whole, entries_of = graph.scipy(), np.zeros(3)
        for block in np.split(some, ROWS // BLOCK):
            power = graph.take(block).scipy()
            for k in range(3):
                power = power @ whole
                power.data[:] = 1
                entries_of[k] += power.nnz
        found += list(entries_of / ROWS * nodes)
        found += [float(encode(graph, depth=depth, capacity=LARGE).ones().sum()) for depth in (1, 2, 3)]
        for what, ours, published in zip(
            ("G", "G^2", "G^3", "G^4", "DNA-1", "DNA-2", "DNA-3"), found, PUBLISHED[name], strict=True
        ):
            rows.append(
                [f"{name}'s shape", f"entries of {what}", "", f"{ours / 1e6:,.1f} M", f"{published / 1e6:,.1f} M", ""]
            )
    header = ["graph", "what", "bits", "share set, or entries", "published", "nodes a filter holds, by estimate"]
    note = (
        f"Entries of powers are counted in {ROWS:,} random rows. The graphs have nodes and entries of the real ones, "
        "and degrees with a heavy tail; capacity 500, error 0.1: 4,796 bits. The published DNA-1 has more than 4 bits "
        "an element, which 4 slices cannot set: it was made with a lower error rate."
    )
    return Table("Graph DNA in bits", header, rows, note)
