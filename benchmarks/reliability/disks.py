"""Disks that are full at some moment of each kind of output: a real small disk where that can be mounted, and limits
on the size of files (`ulimit -f`)."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from ._commands import edges, finish, last_line, parts_in, ratings, start
from .part import Outcome, Part, Tell

PAGE = 4096  # bytes; what a tmpfs counts in
SHARES = (0.0, 0.4, 0.9)  # of the bytes of an output for which there is room
EXPERIMENT = "data = 'ratings.csv'\n[[model]]\nname = 'ease'\n[[model]]\nname = 'popularity'\n"
TOOK_LONG = {"model", "checkpoint", "report", "search", "page", "graph"}  # must be kept elsewhere
# What is written -> (command, files that it writes into OUT)
OUTPUTS = {
    "model": ("fit wmf ratings.csv --dim 64 --epochs 2 -o OUT/m.corank", ["m.corank"]),
    "checkpoint": ("fit bpr ratings.csv --dim 64 --epochs 4 --checkpoint OUT/c -o OUT/m.corank", ["m.corank"]),
    "report": (
        "compare ratings.csv --models ease,popularity -o OUT",
        ["best.corank", "results.json", "report.html"],
    ),
    "search": ("tune wmf ratings.csv --trials 4 --epochs 1 --storage OUT -o OUT/b.toml", ["wmf.journal", "b.toml"]),
    "page": ("reproduce small.toml -o OUT", ["small.md"]),
    "graph": ("graph encode edges.csv -o OUT/dna.npz", ["dna.npz"]),
    "lists, CSV": ("recommend old.corank --all -k 50 -o OUT/l.csv", ["l.csv"]),
    "lists, gzip": ("recommend old.corank --all -k 50 -o OUT/l.csv.gz", ["l.csv.gz"]),
    "lists, JSON": ("recommend old.corank --all -k 50 -o OUT/l.jsonl", ["l.jsonl"]),
    "lists, Parquet": ("recommend old.corank --all -k 50 -o OUT/l.parquet", ["l.parquet"]),
    "data": ("data synth realistic --users 300 --items 100 --rows 5000 -o OUT/r.csv", ["r.csv"]),
}
OLD = b"the file that was there before"


def run(trials: int, seed: int, folder: Path, tell: Tell) -> Outcome:
    out = Outcome()
    ratings(folder / "ratings.csv")
    edges(folder / "edges.csv")
    (folder / "small.toml").write_text(EXPERIMENT)
    finish(start(["fit", "ease", "ratings.csv", "-o", "old.corank"], folder))
    mounted = _can_mount(folder)
    moments = [
        (kind, share, limit)
        for share in SHARES
        for limit in ((False, True) if mounted else (True,))
        for kind in OUTPUTS
    ]
    moments = moments[:trials]
    sizes: dict[str, list[int]] = {}
    refused = 0
    for number, (kind, share, limit) in enumerate(moments):
        if kind not in sizes:
            sizes[kind] = _sizes(kind, folder)
        how = "ulimit -f" if limit else "disk"
        failure, full = _trial(kind, sizes[kind], share, folder, limit)
        refused += full
        out.trial(failure and f"{kind}, {how} with room for {share:.0%}: {failure}")
        tell(number + 1, len(moments))
    out.notes.append(
        f"{refused} writes refused, {len(moments) - refused} commands found room or went on without a checkpoint or "
        f"journal; {len(sizes)} kinds of output ({', '.join(sizes)}) with room for "
        f"{', '.join(f'{share:.0%}' for share in SHARES)} of it"
        + ("; a mounted disk and a limit on the size of files" if mounted else "; a limit on the size of files")
    )
    return out


def _sizes(kind: str, folder: Path) -> list[int]:
    """The bytes of the files of an undisturbed run, which also puts its kernels on disk."""
    place = folder / "undisturbed"
    place.mkdir()
    command, files = OUTPUTS[kind]
    code, _, err = finish(start(command.replace("OUT", str(place)).split(), folder))
    assert code == 0, err
    sizes = [(place / file).stat().st_size for file in files]
    shutil.rmtree(place)
    return sizes


def _trial(kind: str, sizes: list[int], share: float, folder: Path, limit: bool) -> tuple[str, bool]:
    """What went wrong, if anything, and whether the command ended because of the full disk."""
    command, files = OUTPUTS[kind]
    with _place(folder, None if limit else len(files) * PAGE + int(share * sum(sizes))) as place:
        for file in files:
            if kind != "search":  # a search resumes from its journal
                (place / file).write_bytes(OLD)
        most = max(int(share * max(sizes)), 64)
        guard: Callable[[], object] | None = partial(_limit, most) if limit else None
        code, _, err = finish(start(command.replace("OUT", str(place)).split(), folder, guard))
        return _failure(kind, place, files, code, err, limit), code != 0


def _limit(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def _failure(kind: str, place: Path, files: list[str], code: int | None, err: str, limit: bool) -> str:
    """What is wrong with how a command ended, or nothing."""
    if code is None:
        return "it hangs"
    if "Traceback" in err or "Error" in err or ": None" in err:
        return f"no sentence: {last_line(err)}"
    if code not in (0, 2):
        return f"exit code {code}: {last_line(err)}"
    if parts_in(place):
        return f"left behind: {', '.join(parts_in(place))}"
    if code == 0:  # only a checkpoint or the journal had no room, or a disk that counts in pages had some for all
        return "".join(f"{file} is said to be written and is not; " for file in files if not _whole(place / file))
    said = last_line(err)
    if not re.search("No space left on device|File too large", said):
        return f"another reason: {said}"
    kept = dict.fromkeys(re.findall(r"kept in (\S+?)(?:[.;]? |\.?$)", said))
    failed = [file for file in files if re.search(rf"cannot write \S*{re.escape(file)}:", said)]
    for file in files:
        if file in failed and (place / file).exists() and (place / file).read_bytes() != OLD:
            return f"the old {file} is gone: {said}"
    if kind in TOOK_LONG and not limit and len(kept) < len(failed):
        return f"not kept: {said}"
    for path in map(Path, kept):
        if not _whole(path):
            return f"{path} is said to be kept and is not: {said}"
        shutil.rmtree(path.parent)
    return ""


def _whole(path: Path) -> bool:
    """Whether a file was written: not empty, not the old one, and loaded where it is a model."""
    import corank as cr

    if not path.is_file() or path.read_bytes() in (b"", OLD):
        return False
    if path.suffix == ".corank":
        cr.load(path)
    return True


@contextlib.contextmanager
def _place(folder: Path, size: int | None) -> Iterator[Path]:
    """A folder; with a size, on a disk of its own of that many bytes."""
    place = folder / "full"
    place.mkdir()
    if size is not None:
        _mount(place, size)
    try:
        yield place
    finally:
        if size is not None:
            subprocess.run(["umount", str(place)], check=True)
        shutil.rmtree(place)


def _mount(place: Path, size: int) -> None:
    size = -(-size // PAGE) * PAGE
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)], check=True, capture_output=True)


def _can_mount(folder: Path) -> bool:
    if os.geteuid() != 0 or shutil.which("mount") is None:
        return False
    try:
        with _place(folder, PAGE):
            return True
    except subprocess.CalledProcessError:
        shutil.rmtree(folder / "full", ignore_errors=True)
        return False


PARTS = [
    Part(
        "full disk, moments",
        2 * len(SHARES) * len(OUTPUTS),
        run,
        "one sentence, the old file whole, no part left, and what took long is kept elsewhere and named",
    )
]
