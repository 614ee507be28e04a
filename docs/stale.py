"""Lists the result pages whose experiment or code has changed since they were written (`make pages`).

A page depends on its experiment file, on the files of its models and of the kernels, networks and graphs that they
import, and on `evaluation/` and `experiment/`. What changed is found by git, from the commit that is recorded on the
page, or from the last one before the date on it; a page with neither is listed.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests")]

from layers import METHODS, Module, closure, modules  # noqa: E402

ALWAYS = ("evaluation", "experiment")
DATE = re.compile(r"^\| Written \| (\d{4}-\d\d-\d\d \d\d:\d\d) UTC \|", re.MULTILINE)
RECORDED = re.compile(r"(?:^\| Commit \| |; commit )([0-9a-f]{12})\b( with uncommitted changes)?", re.MULTILINE)


def git(*words: str) -> str:
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True).stdout.strip()


def sources(experiment: Path, known: dict[str, Module]) -> set[Path]:
    """The files that the figures of an experiment depend on."""
    rows = tomllib.loads(experiment.read_text("utf-8")).get("model", [])
    reached = {name for row in rows for name in closure(f"models.{row['name']}", known, facades=False)}
    own = {known[name].path for name in reached if known[name].part in METHODS}
    return own | {module.path for module in known.values() if module.part in ALWAYS} | {experiment}


def written_at(page: Path) -> tuple[str, str]:
    """The commit of a page, and a remark where it is not exact."""
    text = page.read_text("utf-8")
    if recorded := RECORDED.search(text):
        return recorded[1], "it was written with uncommitted changes" if recorded[2] else ""
    if date := DATE.search(text):
        return git("rev-list", "-1", f"--before={date[1]} +0000", "HEAD"), f"written on {date[1][:10]}"
    return "", "neither a commit nor a date is recorded on it"


def stale() -> Iterator[tuple[str, str, list[str]]]:
    """Each page that is older than its code: its name, a remark, and the files that changed."""
    known = modules()
    for page in sorted((ROOT / "docs" / "results").glob("*.md")):
        experiment = ROOT / "experiments" / f"{page.stem}.toml"
        if not experiment.exists():  # pages of benchmarks
            continue
        commit, remark = written_at(page)
        if not commit:
            yield page.stem, remark, []
            continue
        try:
            changed = git("diff", "--name-only", commit, "--", *map(str, sorted(sources(experiment, known))))
        except subprocess.CalledProcessError:
            yield page.stem, f"its commit {commit[:12]} is not in this repository", []
            continue
        if changed or "uncommitted" in remark:
            yield page.stem, remark, changed.splitlines()


def main() -> int:
    found = list(stale())
    for name, remark, files in found:
        shown = ", ".join(files[:6]) + (f" and {len(files) - 6} more" if len(files) > 6 else "")
        print(f"{name}{f' ({remark})' if remark else ''}{f': {shown}' if shown else ''}")
    print(f"{len(found)} pages are older than their code; corank reproduce --check NAME says whether figures moved")
    return 0


if __name__ == "__main__":
    sys.exit(main())
