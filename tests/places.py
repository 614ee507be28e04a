"""Small copies of published files, for the tests of where they are looked for."""

from __future__ import annotations

import zipfile
from pathlib import Path

from corank.datasets.archive import Files

RATINGS_DAT = "1::10::5::100\n1::20::4::200\n2::10::3::300\n"


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def put_zip(path: Path, **members: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in members.items():
            archive.writestr(f"ml-1m/{name}.dat", text)
    return path


def put_files(folder: Path, **texts: str | bytes) -> Files:
    """Files named by keyword: `__` is a slash and `_0` a dot."""
    for key, text in texts.items():
        path = folder / key.replace("__", "/").replace("_0", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return Files(folder)
