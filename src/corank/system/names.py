"""Names as files: any text becomes one file name that stays in its folder, and different texts different names."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from pathlib import Path

from ..errors import CorankError

LONGEST = 100  # characters of a name; file systems allow 255 bytes, and endings are added
# Devices of Windows, whatever their ending; files are copied between systems.
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)


def clean(text: str) -> str:
    """A text that can be shown and read as a name: no separators of paths, no control characters, not too long."""
    shown = "".join("_" if c in '/\\:*?"<>|' or unreadable(c) else c for c in text).strip(" .")
    return shown[:LONGEST].rstrip(" .") or "_"


def unreadable(sign: str) -> bool:
    """Whether a character is a control character, a line end or half of a pair."""
    return unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp")


def file_name(text: str) -> str:
    """A name for a file or folder. What had to be changed, or differs from others only in case, ends in a checksum."""
    name = clean(unicodedata.normalize("NFC", text)).encode("utf-8")[:LONGEST].decode("utf-8", "ignore")
    if name == text and name == name.lower() and not _RESERVED.fullmatch(name):
        return name
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"_{name}-{digest}" if _RESERVED.fullmatch(name) else f"{name}-{digest}"


def inside(folder: Path, name: str, ending: str = "") -> Path:
    """The path of a name in a folder; an error where a link there leads out of the folder."""
    path = folder / (file_name(name) + ending)
    if path.is_symlink() and not path.resolve().is_relative_to(folder.resolve()):
        raise CorankError(f"{path} is a link that leads out of {folder}: remove it, or choose another folder")
    return path
