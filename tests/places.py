"""Small copies of published files, for the tests of where they are looked for."""

from __future__ import annotations

import zipfile
from pathlib import Path

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
