"""Public datasets by name, and synthetic ones whose ground truth is known."""

from .catalogue import info
from .entry import Info
from .loading import load, load_split, names, open_any
from .location import default_root, locate

__all__ = ["Info", "default_root", "info", "load", "load_split", "locate", "names", "open_any"]
