"""Ctrl-C, SIGTERM and full disks on the command line: no traceback, results are kept and named, exit codes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import corank as cr
from corank.cli import experiments, keeping, main
from corank.cli.keeping import keep
from corank.cli.stopping import Interrupted, Signals, Stop
from corank.errors import CorankError, NotWritten


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ctrl_c: None) -> None:
    monkeypatch.setattr(keeping, "AGAIN", 0.0)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def ratings(tmp_path: Path) -> str:
    rows = [f"u{u},i{(u * 7 + k * k) % 20},{1 + (u + k) % 5},{1000 * u + k}" for u in range(30) for k in range(8)]
    (tmp_path / "ratings.csv").write_text("user,item,rating,timestamp\n" + "\n".join(dict.fromkeys(rows)) + "\n")
    return "ratings.csv"


def full(places: tuple[str, ...]) -> Callable[[Path], None]:
    """A function that writes, except below some folders, which are full."""

    def write(path: Path) -> None:
        if str(path).startswith(places):
            raise NotWritten(f"cannot write {path}: No space left on device")
        path.write_text("result")

    return write


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The system's temporary folder and the home folder."""
    temporary, home = tmp_path / "temporary", tmp_path / "home"
    for folder in (temporary, home):
        folder.mkdir()
    monkeypatch.setattr(keeping.tempfile, "tempdir", str(temporary))
    monkeypatch.setenv("HOME", str(home))
    return temporary, home


def test_kept_elsewhere(tmp_path: Path, elsewhere: tuple[Path, Path]) -> None:
    temporary, home = elsewhere
    for closed, kept in (((), temporary), ((str(temporary),), home)):
        with pytest.raises(NotWritten, match=r"/full/m\.corank: No space left on device; the model is kept in") as why:
            keep("model", Path("/full/m.corank"), full(("/full", *closed)))
        place = Path(str(why.value).rpartition(" ")[2])
        assert place.read_text() == "result"
        assert place.name == "m.corank"
        assert place.is_relative_to(kept)
    with pytest.raises(NotWritten, match="could not be kept elsewhere either"):
        keep("model", Path("/full/m.corank"), full(("/",)))
    assert sorted(p.name for p in tmp_path.rglob("*") if p.is_file()) == ["m.corank", "m.corank"]
    assert len(list(tmp_path.rglob("corank-*"))) == 2  # no empty folder stays


def test_the_second_attempt(tmp_path: Path) -> None:
    attempts = []

    def write(path: Path) -> None:
        attempts.append(path)
        if len(attempts) == 1:
            raise NotWritten("full")

    keep("model", tmp_path / "m", write)
    assert attempts == [tmp_path / "m"] * 2


def test_fit_keeps_its_model_and_its_checkpoint(
    ratings: str, elsewhere: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    save = cr.WMF.save

    def some(self: Any, path: Path) -> None:
        full(("out",))(path) if str(path).startswith("out") else save(self, path)

    monkeypatch.setattr(cr.WMF, "save", some)
    assert main(["fit", "wmf", ratings, "--epochs", "2", "--dim", "4", "--checkpoint", "c", "-o", "out/m.corank"]) == 2
    err = capsys.readouterr().err
    place = Path(err.strip().rpartition("the model is kept in ")[2])
    assert len(cr.load(place).history_) == 2
    assert Path("c").exists()  # until the model is where it was asked for
    monkeypatch.undo()


def test_a_checkpoint_that_fails_does_not_end_the_fit(
    ratings: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    from corank import checkpoint

    write, attempts = checkpoint.write_file, []

    def sometimes(path: Path, *rest: Any) -> None:
        attempts.append(path)
        if len(attempts) in (2, 3):
            raise NotWritten(f"cannot write {path}: No space left on device")
        write(path, *rest)

    monkeypatch.setattr(checkpoint, "write_file", sometimes)
    monkeypatch.setattr(checkpoint, "AGAIN", 0.0)
    monkeypatch.setattr(checkpoint.time, "perf_counter", iter(range(1_000_000)).__next__)  # a second a look
    data = cr.read_csv(tmp_path / ratings)
    caplog.set_level("WARNING", "corank.checkpoint")
    model = cr.WMF(dim=4, epochs=80).fit(data, checkpoint=tmp_path / "c")
    said = [record.getMessage() for record in caplog.records if record.name == "corank.checkpoint"]
    assert len(model.history_) == 80
    assert len(said) == 2  # once that it fails, once that it works again
    assert "No space left on device): training goes on, and the one before is kept" in said[0]
    assert "written again" in said[1]


def test_compare_writes_what_it_can(
    ratings: str, elsewhere: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cr.Popularity, "save", lambda self, path: full(("out",))(path))
    assert main(["compare", ratings, "--models", "popularity", "-o", "out"]) == 2
    text, err = capsys.readouterr()
    assert "ndcg@10" in text
    assert "cannot write out/best.corank: No space left on device; the best model is kept in" in err
    assert sorted(os.listdir("out")) == ["report.html", "results.json"]


@pytest.fixture
def signalled(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], None]:
    """Send a signal once (or twice) the report is being written."""
    from corank import report

    write = report.write_html

    def arrange(number: int, times: int) -> None:
        def interrupted(*args: Any, **options: Any) -> None:
            for _ in range(times):
                signal.raise_signal(number)
            write(*args, **options)

        monkeypatch.setattr(report, "write_html", interrupted)

    return arrange


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_after_the_leaderboard_the_report_is_finished(
    ratings: str, signalled: Callable[[int, int], None], capfd: pytest.CaptureFixture[str], number: int, code: int
) -> None:
    signalled(number, 1)
    assert main(["compare", ratings, "--models", "popularity", "-o", "out"]) == code
    err = capfd.readouterr().err
    assert experiments.FINISHING in err
    assert err.rstrip().endswith("corank: stopped")
    assert sorted(os.listdir("out")) == ["best.corank", "report.html", "results.json"]


def test_the_second_signal_says_what_is_missing(
    ratings: str, signalled: Callable[[int, int], None], capfd: pytest.CaptureFixture[str]
) -> None:
    signalled(signal.SIGINT, 2)
    assert main(["compare", ratings, "--models", "popularity", "-o", "out"]) == 130
    assert "missing: report (out/report.html)" in capfd.readouterr().err
    assert sorted(os.listdir("out")) == ["best.corank", "results.json"]


def test_a_library_that_hides_the_signal(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """A compiled module that is being imported turns a KeyboardInterrupt into an ImportError."""
    from corank.cli import models

    def hidden(args: Any) -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise ImportError("numpy.core.multiarray failed to import") from None

    monkeypatch.setattr(models, "models", hidden, raising=False)
    name = next(name for name, value in vars(models).items() if callable(value) and value.__module__ == models.__name__)
    monkeypatch.setattr(models, name, hidden)
    assert main(["models"]) == 130
    assert capfd.readouterr().err == "corank: stopped\n"


def test_a_signal_in_a_finaliser_is_not_lost(tmp_path: Path) -> None:
    code = (
        "import signal, sys, time\n"
        "from corank.system.atomic import replacing\n"
        "from corank.cli.stopping import Signals\n"
        "class Odd:\n"
        "    def __del__(self):\n"
        "        signal.raise_signal(signal.SIGTERM)\n"
        "try:\n"
        "    with Signals(), replacing('a'):\n"
        "        Odd()\n"
        "        time.sleep(20)\n"
        "except KeyboardInterrupt as why:\n"
        "    print(why.code)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "143\n", "")
    assert os.listdir() == []  # no part stays


def test_handlers_are_put_back() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with Signals(), Stop() as stop, stop:
        signal.raise_signal(signal.SIGTERM)
        assert stop.asked
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    with pytest.raises(Interrupted, match="SIGTERM"):
        stop.raise_if_asked()


def test_ignored_signals_stay_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # nohup, a job in the background
    try:
        with Signals(), Stop() as stop:
            signal.raise_signal(signal.SIGINT)
            assert not stop.asked
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_output_on_a_full_disk(ratings: str) -> None:
    for redirected in ("stdout", "stderr"):
        with open("/dev/full", "w") as device:
            streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, redirected: device}
            command = [sys.executable, "-m", "corank", "data", "describe", ratings]
            done = subprocess.run(command, **streams, text=True, check=False)
        if redirected == "stdout":
            assert done.returncode == 2
            assert done.stderr.endswith("corank: No space left on device\n")
            assert "Traceback" not in done.stderr
        else:  # a log that is lost is no reason to stop
            assert done.returncode == 0
            assert "users" in done.stdout


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "jsonl", "parquet"])
def test_lists_under_a_limit_of_file_sizes(ratings: str, ending: str) -> None:
    assert main(["fit", "popularity", ratings, "-o", "m.corank"]) == 0
    target = Path(f"lists.{ending}")
    target.write_text("old")
    command = f"ulimit -f 1; exec {sys.executable} -m corank recommend m.corank --all -k 20 -o {target}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    if done.returncode:  # gzip and Parquet may fit into a kilobyte
        assert done.returncode == 2
        assert f"cannot write {target}: File too large; raise the limit on the size of files" in done.stderr
        assert "Traceback" not in done.stderr
        assert target.read_text() == "old"
    else:
        assert ending in ("csv.gz", "parquet")
    assert not list(Path().glob(".*.part"))


@pytest.mark.parametrize("module", ["corank.cli", "corank.cli.parser", "numpy", "numpy.linalg", "polars"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_imports(ratings: str, module: str, number: int) -> None:
    code = (
        "import os, sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        f"            os.kill(os.getpid(), {int(number)})\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        f"sys.argv = ['corank', 'data', 'describe', {ratings!r}]\n"
        "from corank.__main__ import run\n"
        "run()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode in (128 + number, -number)
    assert done.stderr.splitlines()[-1:] in ([], ["corank: stopped"])
    assert "Traceback" not in done.stderr


def test_an_error_is_still_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", "wmf", "no-such.csv", "-o", "m"]) == 2
    assert capsys.readouterr().err.startswith("corank: ")
    with Signals() as signals, pytest.raises(CorankError):
        raise CorankError("x")
    assert signals.received is None
