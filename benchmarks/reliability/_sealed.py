"""Model files with a right checksum whatever they hold: what a hostile hand could make."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

NAMES = {
    np.dtype(name): short
    for name, short in (
        ("bool", "BOOL"),
        *((f"int{b}", f"I{b}") for b in (8, 16, 32, 64)),
        *((f"uint{b}", f"U{b}") for b in (8, 16, 32, 64)),
        *((f"float{b}", f"F{b}") for b in (16, 32, 64)),
    )
}
NO_DIGEST = "0" * 64


def seal(
    path: Path, arrays: dict[str, np.ndarray], meta: Any, changed: dict[str, dict[str, Any]] | None = None
) -> None:
    """Write arrays and metadata; `changed` overwrites entries of the header ("dtype", "shape", "data_offsets")."""
    if isinstance(meta, dict):
        meta = {**{k: v for k, v in meta.items() if k != "sha256"}, "sha256": NO_DIGEST}
    header: dict[str, Any] = {"__metadata__": {"corank": json.dumps(meta)}}
    end, parts = 0, []
    for name, array in arrays.items():
        raw = np.ascontiguousarray(array).tobytes()
        entry = {"dtype": NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [end, end + len(raw)]}
        header[name] = entry | (changed or {}).get(name, {})
        end += len(raw)
        parts.append(raw)
    text = json.dumps(header).encode()
    whole = len(text).to_bytes(8, "little") + text + b"".join(parts)
    mark = f'\\"sha256\\": \\"{NO_DIGEST}\\"'.encode()
    digest = hashlib.sha256(whole).hexdigest().encode()
    path.write_bytes(whole.replace(mark, mark.replace(NO_DIGEST.encode(), digest)))
