"""Public datasets by name, and synthetic ones whose ground truth is known."""

from .catalogue import info
from .entry import Info
from .given import given_split
from .loading import load, load_split, names, open_any, open_split, split_name
from .location import default_root, locate

__all__ = [
    "Info",
    "default_root",
    "given_split",
    "info",
    "load",
    "load_split",
    "locate",
    "names",
    "open_any",
    "open_split",
    "split_name",
]
