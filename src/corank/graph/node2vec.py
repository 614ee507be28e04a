"""DeepWalk and node2vec: learned features of the nodes of a graph, to compare Graph DNA with.

Both generate random walks and learn vectors from them as word2vec learns words from sentences. The walks are made here,
the vectors are learned by gensim (`pip install 'corank[graph]'`). A node without neighbours gets zeros. The cost is
about walks * length * window * dim * (1 + negatives) operations per node: minutes for 100,000 nodes, which Graph DNA
encodes in a fraction of a second.
"""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data import CSR
from ..data.edges import tidy
from ..errors import CorankError, MissingExtra
from ..params import whole
from ..system.memory import make_room

log = logging.getLogger("corank.graph")


def node2vec(
    graph: CSR,
    dim: int = 128,
    *,
    p: float = 1.0,
    q: float = 1.0,
    walks: int = 10,
    length: int = 80,
    window: int = 10,
    negatives: int = 5,
    epochs: int = 1,
    seed: int = 0,
    workers: int = 1,
) -> NDArray[np.float32]:
    """node2vec (Grover and Leskovec 2016): biased walks, skip-gram with negative sampling; float32 (n, dim).

    Parameters
    ----------
    p, q : return and in-out parameter: a step back has weight 1 / p, one away from the previous node 1 / q.
    walks : walks per node.
    length : nodes per walk.
    window : largest distance within a walk at which two nodes are a training pair.
    negatives : number of negatives per training pair.
    epochs : passes over all walks.
    workers : training threads; with more than one the result differs a little from run to run.
    """
    sizes = {"dim": dim, "walks": walks, "length": length, "window": window, "negatives": negatives}
    paths = _walks(graph, p, q, seed, {**sizes, "epochs": epochs, "workers": workers})
    return _learned(graph, paths, dim, seed, window=window, negative=negatives, hs=0, epochs=epochs, workers=workers)


def deepwalk(
    graph: CSR,
    dim: int = 128,
    *,
    walks: int = 80,
    length: int = 40,
    window: int = 10,
    epochs: int = 1,
    seed: int = 0,
    workers: int = 1,
) -> NDArray[np.float32]:
    """DeepWalk (Perozzi et al. 2014): plain walks, skip-gram with hierarchical softmax; float32 (n, dim)."""
    sizes = {"dim": dim, "walks": walks, "length": length, "window": window, "epochs": epochs, "workers": workers}
    paths = _walks(graph, 1.0, 1.0, seed, sizes)
    return _learned(graph, paths, dim, seed, window=window, negative=0, hs=1, epochs=epochs, workers=workers)


def _walks(graph: CSR, p: float, q: float, seed: int, sizes: dict[str, int]) -> NDArray[np.int32]:
    """All walks (walks * n, length): the first n start at nodes 0 to n - 1, and so do the next n, and so on."""
    from ..kernels.threads import run
    from ..kernels.walks import walk

    for name, value in sizes.items():
        whole(name, value, 1)
    whole("seed", seed, 0)
    for name, factor in (("p", p), ("q", q)):
        if not isinstance(factor, int | float | np.number) or not 1e-6 <= factor <= 1e6:
            raise CorankError(f"{name}={factor!r}: it must be a number from 1e-6 to 1e6")
    if importlib.util.find_spec("gensim") is None:
        raise MissingExtra("learning node2vec or DeepWalk features", "graph")
    graph = tidy(graph)
    n, walks, length = graph.rows, sizes["walks"], sizes["length"]
    make_room(
        4.0 * n * walks * length, f"{walks} walks of {length} steps from {n:,} nodes", "use fewer or shorter walks"
    )
    total = np.cumsum(graph.value, dtype=np.float64)
    before = np.concatenate([[0.0], total])[graph.indptr[:-1]]
    ladder = total - np.repeat(before, np.diff(graph.indptr))
    out = np.empty((n * walks, length), np.int32)
    run(walk, n * walks, seed, float(p), float(q), graph.indptr, graph.index, ladder, out)
    return out


class _Sentences:
    """The walks as sentences for gensim, which reads them several times; walks of a single node are skipped.

    Words are texts: gensim takes a word that is a whole number for a place in its vocabulary, which mixes up the
    counts of words (and so the negatives), and leaves words without a code in the tree of hierarchical softmax.
    """

    def __init__(self, paths: NDArray[np.int32], nodes: int) -> None:
        self.paths, self.words = paths, [str(node) for node in range(nodes)]

    def __iter__(self) -> Iterator[list[str]]:
        for start in range(0, len(self.paths), 10_000):
            for path in self.paths[start : start + 10_000].tolist():
                if path[1] >= 0:
                    yield [self.words[node] for node in path if node >= 0]


def _learned(graph: CSR, paths: NDArray[np.int32], dim: int, seed: int, **options: Any) -> NDArray[np.float32]:
    from gensim.models import Word2Vec

    out = np.zeros((graph.rows, dim), np.float32)
    if paths.shape[1] < 2 or not (paths[:, 1] >= 0).any():
        return out
    log.info("%s walks of up to %s nodes", f"{len(paths):,}", paths.shape[1])
    learned = Word2Vec(
        _Sentences(paths, graph.rows), vector_size=dim, sg=1, min_count=1, sample=0, seed=seed % (1 << 32), **options
    ).wv
    out[np.array(learned.index_to_key, np.int64)] = learned.vectors
    return out
