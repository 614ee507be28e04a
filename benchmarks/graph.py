"""Graph DNA: seconds to encode a graph, how they grow with depth and edges, and node2vec on the same graph.

The graphs have the nodes and entries of Douban and Flixster and degrees with a heavy tail, such that G^2 has about as
many entries as the published one (104 million here, 107 million there for Douban).
"""

from __future__ import annotations

import importlib.util

import numpy as np

import corank as cr
from corank.data import CSR
from corank.graph import encode, from_edges

from .tools import Table, best_of, growth_picture

# Seconds of DNA-1 to DNA-4 in Wu 2020, Python on one core; the caption says c = 500.
PUBLISHED = {"Douban": (132.3, 266.4, 404.0, 580.2), "Flixster": (157.3, 317.8, 482.0, 686.8)}
SHAPES = {"Douban": (129_490, 1_711_780), "Flixster": (147_612, 2_538_746)}
SMALL, LARGE = 52, 500  # capacities: 500 and 4,796 bits
DEPTHS = (1, 2, 3, 4, 6, 8)
ENTRIES = (250_000, 500_000, 1_000_000, 2_000_000, 4_000_000, 8_000_000)
TENTH = 10  # node2vec learns on a graph of a tenth of Douban: on all of it, it takes hours


def run() -> Table:
    rows, pictures = [], {}
    for name, (nodes, entries) in SHAPES.items():
        graph = heavy_tailed(nodes, entries)
        for capacity in (SMALL, LARGE):
            for depth, published in enumerate(PUBLISHED[name], 1):
                seconds, bits = _encoding(graph, depth, capacity)
                ratio = f"**{published / seconds:,.0f}**" if capacity == SMALL else f"{published / seconds:,.0f}"
                rows.append(
                    [f"{name}'s shape", f"DNA-{depth}", f"{bits:,}", f"{seconds:.3f}", f"{published:.1f}", ratio]
                )
        if name == "Douban":
            douban = graph
    rows += _node2vec(heavy_tailed(*(size // TENTH for size in SHAPES["Douban"])))
    by_depth = [(depth, _encoding(douban, depth, LARGE)[0]) for depth in DEPTHS]
    sizes = [heavy_tailed(100_000, entries) for entries in ENTRIES]
    by_entries = [(graph.index.size, _encoding(graph, 2, LARGE)[0]) for graph in sizes]
    for what, found in (("depth", by_depth), ("entries", by_entries)):
        exponent = float(np.polyfit(*np.log(np.array(found)).T, 1)[0])
        rows.append(
            [
                f"growth with {what}",
                "",
                "4,796",
                f"{found[0][1]:.3f} to {found[-1][1]:.3f}",
                "",
                f"exponent {exponent:.2f}",
            ]
        )
        pictures[f"dna-{what}"] = growth_picture(f"dna-{what}", what, "seconds to encode", found, exponent)
    header = ["graph", "what", "bits", "s", "published s, or peer's", "ratio"]
    note = (
        "Shortest of three runs, all threads. Published: Wu 2020, pure Python, one core, another machine. node2vec: "
        "its usual setting (dimension 128, 10 walks of 80 nodes from each node, window 10), walks by corank and "
        "skip-gram by gensim; its ratio is that to DNA-4 with 4,796 bits."
    )
    return Table("Graph DNA", header, rows, note, pictures)


def heavy_tailed(nodes: int, entries: int, seed: int = 0) -> CSR:
    """A symmetric graph of distinct edges whose ends are drawn with probability 1 / (600 + rank)^0.9."""
    rng = np.random.default_rng(seed)
    ladder = np.cumsum((np.arange(nodes) + 600.0) ** -0.9)
    rank = rng.permutation(nodes)
    keys = np.zeros(0, np.int64)
    while keys.size < entries // 2:
        draws = rng.random((2, entries // 2 - keys.size + 1000)) * ladder[-1]
        low, high = np.sort(rank[np.searchsorted(ladder, draws)], axis=0)
        keys = np.sort(np.concatenate([keys, (low * nodes + high)[low != high]]))
        keys = keys[np.append(True, keys[1:] != keys[:-1])]
    keys = rng.permutation(keys)[: entries // 2]
    return from_edges(keys // nodes, keys % nodes, nodes=cr.Vocab(np.arange(nodes)))[0]


def _encoding(graph: CSR, depth: int, capacity: int) -> tuple[float, int]:
    dna = encode(graph, depth=depth, capacity=capacity)
    return best_of({"dna": lambda: encode(graph, depth=depth, capacity=capacity)}, 3)["dna"], dna.filter.bits


def _node2vec(graph: CSR) -> list[list[str]]:
    from corank.graph.node2vec import node2vec

    shape = f"{graph.rows:,} nodes"
    if importlib.util.find_spec("gensim") is None:
        return [[shape, "node2vec", "", "", "gensim is not installed", ""]]
    ours = _encoding(graph, 4, LARGE)[0]
    seconds = best_of({"it": lambda: node2vec(graph, workers=cr.threads())}, 1)["it"]
    return [[shape, "node2vec", "", f"{ours:.3f}", f"{seconds:.1f}", f"**{seconds / ours:,.0f}**"]]
