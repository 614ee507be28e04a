"""Graphs of users or items: edge lists, sums of powers, and Graph DNA (Bloom filters of deep neighbourhoods)."""

from ..data.edges import checked, from_edges, symmetric, tidy
from ..data.graph_alignment import with_graph
from ..reading.edge_tables import read_edges
from .dna import DNA, Filter, check_options, encode, load
from .powers import KINDS, power_sum, side_graph

__all__ = [
    "DNA",
    "KINDS",
    "Filter",
    "check_options",
    "checked",
    "encode",
    "from_edges",
    "load",
    "power_sum",
    "read_edges",
    "side_graph",
    "symmetric",
    "tidy",
    "with_graph",
]
