"""Graphs of users or items: from edges, sums of powers, and Graph DNA (Bloom filters of deep neighbourhoods)."""

from ..data.edges import checked, from_edges, symmetric, tidy
from ..data.graph_alignment import with_graph
from ..reading.edge_tables import read_edges
from .dna import DNA, KINDS, Filter, check_options, encode, load, power_sum, side_graph

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
