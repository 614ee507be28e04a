"""corank inside containers: read-only files, no home, any user id, odd streams, and the limits of control groups.

Each variant runs under a user id that has no name, in a mount namespace of its own (`unshare`, which needs root), so
that file systems can be read-only, full or replaced, as a container runtime does it. It fits, saves, loads and
recommends from Python, and fits and recommends on the command line. It has to give the lists that a plain process
gives, with one warning at most (where kernels cannot be kept) and nothing written where nobody asked for it.
"""

from __future__ import annotations

import ast
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..tools import ROOT
from .part import Outcome, Part, Tell

UID = 12_345  # has no entry in /etc/passwd
TIMEOUT = 900
WARNING = "each process will compile them again"
LARGE = 16_384  # a dim whose Gram matrix takes 1 GB

WORK = f"""
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np, corank as cr
from corank.kernels.threads import threads
from corank.system.memory import free_bytes
rng = np.random.default_rng(0)
data = cr.from_arrays(user=rng.integers(0, 60, 900), item=rng.integers(0, 40, 900))
cr.WMF(dim=8, epochs=2).fit(data).save("out/python.corank")
model = cr.load("out/python.corank")
lists = model.recommend([0, 1, 2], k=3).items.tolist() + model.recommend(histories=[[1, 2, 3]], k=3).items.tolist()
refused = ""
if len(sys.argv) > 2:
    try:
        cr.WMF(dim={LARGE}, epochs=1).fit(data)
    except cr.CorankError as why:
        refused = str(why)
with open("out/answer", "w") as file:
    print([lists, threads(), free_bytes(), refused], file=file)
"""
LINE = "import sys; sys.path.insert(0, sys.argv.pop(1)); from corank.cli import main; sys.exit(main())"


@dataclass(frozen=True)
class Variant:
    """
    Parameters
    ----------
    mounts : shell commands that run as root before the process; {own} is its folder, the only one that it owns.
    environment : all its variables; None keeps those of this process.
    warm : whether compiled kernels are in the package.
    warnings : number of warnings that kernels cannot be kept.
    threads, most : what it must find: a number of threads, and at most so many free bytes.
    """

    name: str
    mounts: Sequence[str] = ()
    environment: dict[str, str] | None = None
    warm: bool = True
    options: str = ""
    streams: str = ""
    prefix: str = ""
    warnings: int = 0
    threads: int | None = None
    most: float | None = None


def _groups(membership: str, **files: str) -> list[str]:
    """Control groups as the kernel would show them; the shell becomes the process, so that its own entry is covered."""
    made = ["mount -t tmpfs none /sys/fs/cgroup"]
    for name, text in files.items():
        path = "/sys/fs/cgroup/" + name.replace("__", "/").replace("_dot_", ".")
        made.append(f"mkdir -p $(dirname {path}) && printf %s {shlex.quote(text)} > {path}")
    made.append(f"printf {shlex.quote(membership)} > {{own}}/membership")
    return [*made, "mount --bind {own}/membership /proc/$$/cgroup"]


KEPT = "mount --bind {own} {own}"  # stays writable when what is around it does not
VARIANTS = [
    Variant("a package without compiled kernels, read-only; no HOME", environment={}, warm=False, warnings=1),
    Variant("HOME that cannot be written to", environment={"HOME": "/proc"}, warm=False, warnings=1),
    Variant("kernels that were compiled when the image was built", environment={}),
    Variant("kernels kept in a home", environment={"HOME": "{own}/out"}, warm=False),
    Variant("/tmp read-only", [KEPT, "mount --rbind /tmp /tmp", "mount -o remount,ro,bind /tmp"], {}),
    Variant("TMPDIR that is not there", environment={"TMPDIR": "/nowhere"}),
    Variant("nothing writable but one folder", [KEPT, "mount -o remount,ro,bind /"], {}, warm=False, warnings=1),
    Variant(
        "a cache of kernels on a full disk",
        ["mkdir -p {own}/full", "mount -t tmpfs -o size=4k,mode=777 none {own}/full"],
        {"NUMBA_CACHE_DIR": "{own}/full"},
        warm=False,
        warnings=1,
    ),
    Variant("PYTHONDONTWRITEBYTECODE", environment={"PYTHONDONTWRITEBYTECODE": "1"}),
    Variant("python -I", options="-I"),
    Variant("standard input and output closed", streams="<&- >&-"),
    Variant("all standard streams closed", streams="<&- >&- 2>&-"),
    Variant("bound to one processor", prefix="taskset -c 0", threads=1),
    Variant("cgroup v2: half a processor", _groups("0::/a/b\n", a__cpu_dot_max="50000 100000"), threads=1),
    Variant(
        "cgroup v1: one processor",
        _groups("2:cpu,cpuacct:/\n", cpu__cpu_dot_cfs_quota_us="100000", cpu__cpu_dot_cfs_period_us="100000"),
        threads=1,
    ),
    Variant(
        "cgroup v2: 600 MB of memory",
        _groups("0::/a\n", a__memory_dot_max="800000000", a__memory_dot_current="200000000", a__memory_dot_stat=""),
        most=600e6,
    ),
    Variant(
        "cgroup v1: 600 MB of memory",
        _groups(
            "4:memory:/host/path\n",
            memory__memory_dot_limit_in_bytes="800000000",
            memory__memory_dot_usage_in_bytes="200000000",
            memory__memory_dot_stat="",
        ),
        most=600e6,
    ),
    Variant(
        "a real group of half a processor",
        ["mkdir -p $REAL && echo 50000 > $REAL/cpu.cfs_quota_us && echo $$ > $REAL/tasks"],
        threads=1,
    ),
]
REAL = Path("/sys/fs/cgroup/cpu") / f"corank-reliability-{os.getpid()}"


def reachable() -> list[str]:
    """Commands that let any user run this Python, also where it lies in a folder of root's."""
    needed = dict.fromkeys(map(os.path.realpath, (sys.base_prefix, sys.prefix, ROOT)))
    closed = {
        place: next((p for p in [*Path(place).parents][::-1] if not p.stat().st_mode & 0o001), None) for place in needed
    }
    kept = {place: f"{{own}}/base{at}" for at, place in enumerate(needed) if closed[place] is not None}
    return [
        *(f"mkdir -p {base} && mount --bind {place} {base}" for place, base in kept.items()),
        *(f"mount -t tmpfs -o mode=755 none {folder}" for folder in dict.fromkeys(closed[place] for place in kept)),
        *(f"mkdir -p {place} && mount --bind {base} {place}" for place, base in kept.items()),
    ]


def possible() -> str:
    """Why variants cannot be tried here; empty if they can."""
    missing = [tool for tool in ("unshare", "setpriv", "taskset", "mount") if shutil.which(tool) is None]
    if missing:
        return f"{missing[0]} is not installed"
    if os.getuid() != 0 or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        return "mount namespaces need root"
    return ""


def start(variant: Variant, site: Path, own: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run Python as the variant has it: `command` is code and its arguments after the path of the package."""
    names = {} if variant.environment is None else variant.environment
    variables = [f"{key}={value.format(own=own)}" for key, value in names.items()]
    run = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", *shlex.split(variant.prefix)]
    run += [] if variant.environment is None else ["env", "-i", *variables]
    run += [sys.executable, *shlex.split(variant.options), "-c", command[0], str(site), *command[1:]]
    lines = [line.replace("{own}", str(own)) for line in (*reachable(), *variant.mounts)]
    script = "\n".join(["set -e", *lines, f"cd {own}/work", f"exec {shlex.join(run)} {variant.streams}"])
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "CORANK_", "PYTHON"))}
    return subprocess.run(
        ["unshare", "-m", "--propagation", "private", "sh", "-c", script],
        env=environment | {"REAL": str(REAL)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )


def attempt(variant: Variant, site: Path, own: Path, want: object) -> str:
    """What went wrong; empty if nothing did."""
    (own / "work" / "out").mkdir(parents=True)
    (own / "out").symlink_to(own / "work" / "out")
    (own / "ratings.csv").write_bytes((site / "ratings.csv").read_bytes())
    for path in (own, own / "work", own / "work" / "out"):
        os.chown(path, UID, UID)
    steps = [
        (WORK, *(["refuse"] if variant.most else [])),
        (LINE, "fit", "wmf", "../ratings.csv", "--dim", "8", "--epochs", "2", "-o", "out/line.corank"),
        (LINE, "recommend", "out/line.corank", "--user", "1", "-o", "out/lists.csv"),
    ]
    for command in steps:
        what = " ".join(command[1:2]) or "python"
        try:
            done = start(variant, site, own, *command)
        except subprocess.TimeoutExpired:
            return f"{variant.name}, {what}: no end after {TIMEOUT} s"
        told = done.stderr.count(WARNING)
        if done.returncode or "Traceback" in done.stderr:
            return f"{variant.name}, {what}: exit {done.returncode}, {done.stderr.strip()[-300:]!r}"
        if told > variant.warnings or (told < variant.warnings and command is steps[0]):
            return f"{variant.name}, {what}: {told} warnings about kernels instead of {variant.warnings}"
    stray = [path.name for path in (own / "work").iterdir() if path.name != "out"]
    if stray:
        return f"{variant.name}: wrote {stray[0]!r} into the working folder"
    if not (own / "out" / "lists.csv").read_text().startswith("user"):
        return f"{variant.name}: no recommendations on the command line"
    lists, threads, free, refused = ast.literal_eval((own / "out" / "answer").read_text())
    if lists != want:
        return f"{variant.name}: other lists than in a plain process"
    if variant.threads not in (None, threads):
        return f"{variant.name}: {threads} threads instead of {variant.threads}"
    if variant.most and not (free <= variant.most and "needs 1." in refused and "are free" in refused):
        return f"{variant.name}: {free} bytes are free, and dim={LARGE} ended with {refused!r}"
    return ""


def sites(folder: Path) -> dict[bool, Path]:
    """The package twice, with compiled kernels (True) and without, where nobody but root can write."""
    out = {}
    for warm in (False, True):
        site = out[warm] = folder / ("warm" if warm else "cold")
        shutil.copytree(ROOT / "src" / "corank", site / "corank", ignore=shutil.ignore_patterns("__pycache__"))
        rng = np.random.default_rng(1)
        rows = [f"{u},{i}" for u, i in zip(rng.integers(0, 60, 900), rng.integers(0, 40, 900), strict=True)]
        (site / "ratings.csv").write_text("\n".join(["user,item", *rows]) + "\n")
    return out


def containers(trials: int, seed: int, folder: Path, tell: Tell) -> Outcome:
    """Try the variants, or the first `trials` of them."""
    out = Outcome()
    why = possible()
    if why:
        out.notes.append(f"not tried: {why}")
        return out
    folder.chmod(0o755)
    places = sites(folder)
    # What a plain process gives, as root: it leaves the compiled kernels in the package, as the build of an image does.
    plain = folder / "plain"
    (plain / "out").mkdir(parents=True)
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "PYTHON"))}
    for command in (WORK,), (LINE, "fit", "wmf", str(places[True] / "ratings.csv"), "-o", "out/m.corank"):
        run = [sys.executable, "-c", command[0], str(places[True]), *command[1:]]
        subprocess.run(run, cwd=plain, env=clean, check=True, capture_output=True, timeout=TIMEOUT)
    want = ast.literal_eval((plain / "out" / "answer").read_text())[0]
    for path in folder.rglob("*"):
        path.chmod(path.stat().st_mode & ~0o222)
    for number, variant in enumerate(VARIANTS[:trials]):
        if "$REAL" in " ".join(variant.mounts) and not os.access(REAL.parent, os.W_OK):
            out.notes.append(f"{variant.name}: no control group can be made here")
            continue
        out.trial(attempt(variant, places[variant.warm], folder / str(number), want))
        tell(number + 1, len(VARIANTS))
    if REAL.is_dir():
        REAL.rmdir()
    out.notes.append(f"tried: {'; '.join(variant.name for variant in VARIANTS[:trials])}")
    return out


PARTS = [
    Part(
        "containers",
        len(VARIANTS),
        containers,
        "fits, saves, loads and recommends as elsewhere, with one warning at most and within its limits",
    )
]
