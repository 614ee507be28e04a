"""What mkdocs does beside rendering docs/: it adds the API reference, and ranks result pages last in searches."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "docs")]

import api  # noqa: E402


def on_files(files: Files, *, config: Any) -> Files:
    for path, text in api.pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> None:
    if page.file.src_uri.startswith("results/"):  # fifty lists of settings would hide the page of the model
        page.meta["search"] = {"boost": 0.2}
