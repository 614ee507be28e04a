"""Public datasets by name, and synthetic ones whose truth is known."""

from .catalogue import Info, info
from .loading import default_root, load, load_split, locate, names, open_any

__all__ = ["Info", "default_root", "info", "load", "load_split", "locate", "names", "open_any"]
