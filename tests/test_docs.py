"""Every example of README.md and docs/*.md runs, and prints what the page says it prints.

How a page is read: ```python blocks share a namespace, and a ```text block right after one is its output. In a
```console block `$ corank ...` runs (in this process) and the lines below it are what it says; `$ echo $?` is its exit
code, and without that line it must succeed; `$ cat FILE` and `$ head -N FILE` show a file, and a file that `cat` shows
before it exists is made from the page. All blocks of a page work in one folder. `...` stands for anything in a line,
and alone on a line for any lines. Numbers with three decimals or more may differ by two units of the last one: matrix
libraries round differently. A block that follows "`src/corank/models/NAME.py`:" is a model: it is put into the models
folder for the page, as the page says; one that follows "`tests/...`:" is a test file, which a test below runs.

    python tests/test_docs.py       rewrites the outputs that are no longer true
"""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import os
import re
import shlex
import subprocess
import sys
import tempfile
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import corank as cr
import corank.models
from corank.cli import main
from corank.model_file import read_file

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LINKED = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"# needs (the network|real data)")
SKIPPED = {
    "data.md": ["corank data fetch ml-100k"],
    "command-line.md": ["corank data fetch ml-100k", "corank compare ml-100k --positive 4"],
}
FILE = re.compile(r"`((?:src|tests)/[\w/]+\.py)`:[^\n]*\n\n\Z")  # the name of the file that the next block is
MAKE = {"make demo": "corank demo -o out/demo"}  # what a target of the Makefile runs


@dataclass(frozen=True)
class Shown:
    """An output on a page: where it stands, what the page says and what really came."""

    page: str
    span: tuple[int, int]  # of the text, in the page
    said: str
    came: str


# ---- running a page ----------------------------------------------------------------------------------------------


def run_page(path: Path) -> tuple[list[Shown], list[str]]:
    """All outputs of a page, and the commands that were not run; the working folder is an empty one."""
    text = path.read_text("utf-8")
    module = types.ModuleType("page_" + re.sub(r"\W", "_", path.stem))
    sys.modules[module.__name__] = module
    outputs: list[Shown] = []
    skipped: list[str] = []
    blocks = list(BLOCK.finditer(text))
    try:
        for number, block in enumerate(blocks):
            file = FILE.search(text[: block.start()])
            if file and file[1].startswith("src/corank/models/"):
                put_model(Path(file[1]).name, block[2])
            elif file:
                continue
            elif block[1] == "python":
                came = run_python(block[2], module, f"{path.stem}_{number}.py")
                after = blocks[number + 1] if number + 1 < len(blocks) else None
                if after and after[1] == "text" and not text[block.end() : after.start()].strip():
                    outputs.append(Shown(path.name, after.span(2), after[2], came))
                else:
                    assert not came, f"{path.name}: a block prints and the page does not show it:\n{block[2]}\n{came}"
            elif block[1] == "console":
                run_console(path.name, block, outputs, skipped)
    finally:
        del sys.modules[module.__name__]
        remove_models()
    return outputs, skipped


def put_model(name: str, code: str) -> None:
    """A file in the models folder, or rather in one beside it that the package takes for a part of it."""
    folder = Path("models").resolve()
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(code, "utf-8")
    corank.models.__path__.append(str(folder))
    importlib.invalidate_caches()


def remove_models() -> None:
    for folder in corank.models.__path__[1:]:
        for path in Path(folder).glob("*.py"):
            sys.modules.pop(f"corank.models.{path.stem}", None)
            vars(corank.models).pop(path.stem, None)
    del corank.models.__path__[1:]


def run_python(code: str, module: types.ModuleType, name: str) -> str:
    Path(name).write_text(code, "utf-8")  # kernels are cached beside the file that they stand in
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, os.path.abspath(name), "exec"), vars(module))
    return out.getvalue()


def run_console(page: str, block: re.Match[str], outputs: list[Shown], skipped: list[str]) -> None:
    """Each command of a console block; its output is what stands below it."""
    code, last = 0, ""
    parts = re.split(r"^(?:(#[^\n]*)\n)?\$ ((?:[^\n]*\\\n)*[^\n]*)\n", block[2], flags=re.MULTILINE)
    assert not parts[0], f"{page}: a console block starts with {parts[0]!r} instead of a command"
    at = block.start(2)
    for remark, command, said in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        start = at + len(f"{remark}\n" if remark else "") + len(f"$ {command}\n")
        at = start + len(said)
        command = MAKE.get(command, command.replace("\\\n", " "))
        if command == "echo $?":
            came, code = f"{code}\n", 0
        else:
            assert code == 0, f"{page}: `{last}` ended with {code}"
            if remark and NOT_RUN.match(remark):
                skipped.append(command)
                continue
            ran = run_command(command, said)
            if ran is None:
                continue
            came, code = ran
        last = command
        outputs.append(Shown(page, (start, at), said, came))
    assert code == 0, f"{page}: `{last}` ended with {code}:\n{outputs[-1].came}"


def run_command(command: str, said: str) -> tuple[str, int] | None:
    """What a command prints and its exit code; None for a command that the tests leave to the reader."""
    words = shlex.split(command)
    if words[0] == "cat" and not Path(words[1]).exists():
        Path(words[1]).write_text(said, "utf-8")
    if words[0] == "cat":
        return Path(words[1]).read_text("utf-8"), 0
    if words[0] == "head":
        lines = Path(words[2]).read_text("utf-8").splitlines(keepends=True)
        return "".join(lines[: int(words[1][1:])]), 0
    settings = {}
    while "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        settings[name] = value
    if words[0] != "corank":
        return None
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), environment(settings), logging_restored():
        try:
            code = main(words[1:])
        except SystemExit as end:  # --help and --version
            code = int(end.code or 0)
    once = ("corank: compiling kernels", "corank: loading PyTorch")  # of the first run only
    lines = [line for line in out.getvalue().splitlines() if not line.startswith(once)]
    return "".join(f"{line}\n" for line in lines), code


@contextlib.contextmanager
def environment(settings: dict[str, str]) -> Iterator[None]:
    settings = {"COLUMNS": "80", "NO_COLOR": "1", **settings}
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)


@contextlib.contextmanager
def logging_restored() -> Iterator[None]:
    """The command line sets up logging for its process; other tests must not notice."""
    names = ["corank", *(n for n in logging.root.manager.loggerDict if n.startswith("corank."))]
    before = {
        n: (logging.getLogger(n).handlers[:], logging.getLogger(n).level, logging.getLogger(n).propagate) for n in names
    }
    try:
        yield
    finally:
        for name in [n for n in logging.root.manager.loggerDict if n == "corank" or n.startswith("corank.")]:
            one = logging.getLogger(name)
            one.handlers, level, one.propagate = before.get(name, ([], logging.NOTSET, True))
            one.setLevel(level)


# ---- comparing ---------------------------------------------------------------------------------------------------


def same(said: str, came: str) -> bool:
    return _lines(_stripped(said), _stripped(came))


def _stripped(text: str) -> list[str]:
    """The lines without trailing blanks, and without progress, which is printed only where work takes long."""
    return [line.rstrip() for line in text.splitlines() if not re.search(r"  epoch \d+/\d+  .* left$", line)]


def _lines(said: list[str], came: list[str]) -> bool:
    if not said:
        return not came
    if said[0] == "...":
        return any(_lines(said[1:], came[skip:]) for skip in range(len(came) + 1))
    return bool(came) and _line(said[0], came[0]) and _lines(said[1:], came[1:])


def _line(said: str, came: str) -> bool:
    """Equal but for `...` and the last digit of decimals."""
    parts = re.split(r"(\d+\.\d{3,}(?!\d|\.\.)|\.\.\.)", said)
    numbers = [part for part in parts[1::2] if part != "..."]
    forms = [
        re.escape(part) if at % 2 == 0 else ".*?" if part == "..." else rf"(\d+\.\d{{{len(part.split('.')[1])}}})"
        for at, part in enumerate(parts)
    ]
    found = re.fullmatch("".join(forms), came)
    return found is not None and all(
        abs(float(a) - float(b)) <= 2.01 * 10.0 ** -len(a.split(".")[1])
        for a, b in zip(numbers, found.groups(), strict=True)
    )


# ---- rewriting ---------------------------------------------------------------------------------------------------

TIMES = (
    (r"fit [\d.]+ s  evaluation [\d.]+ s$", "fit ... s  evaluation ... s"),
    (r"fitted in [\d.]+ s", "fitted in ... s"),
    (r"(oracle|best|\d\.\d+|<0\.001 \*+|\*+) +(< 1 ms|\d+ ms|[\d.]+ s)$", r"\1 ..."),
    (r"  p +fit$", "  p ... fit"),
)


def rewrite(names: list[str]) -> None:
    """Put the real output where a page says something else, without times; what a page leaves out stays left out.

    names : of pages, such as "index.md"; all pages when empty.
    """
    for path in [p for p in PAGES if p.name in names or not names]:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            outputs, _ = run_page(path)
        text = path.read_text("utf-8")
        wrong = [o for o in outputs if not same(o.said, o.came)]
        for one in reversed(wrong):
            lines = _stripped(one.came)
            for pattern, instead in TIMES:
                lines = [re.sub(pattern, instead, line) for line in lines]
            new = _abridged(_stripped(one.said), lines) or lines
            text = text[: one.span[0]] + "".join(f"{line}\n" for line in new) + text[one.span[1] :]
        path.write_text(text, "utf-8")
        print(f"{path.name}: {len(outputs)} outputs, {len(wrong)} rewritten")


def _abridged(said: list[str], came: list[str]) -> list[str] | None:
    """The lines of `came`, with `...` where `said` has it; None where the two differ in more than numbers."""
    if not said:
        return None if came else []
    if said[0] == "...":
        tails = (_abridged(said[1:], came[skip:]) for skip in range(len(came) + 1))
        tail = next((t for t in tails if t is not None), None)
        return None if tail is None else ["...", *tail]
    if not came or re.sub(r"[\d. ]+", "", said[0]) != re.sub(r"[\d. ]+", "", came[0]):
        return None
    tail = _abridged(said[1:], came[1:])
    return None if tail is None else [said[0] if _line(said[0], came[0]) else came[0], *tail]


# ---- tests -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.name)
def test_examples_print_what_the_page_says(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    outputs, skipped = run_page(path)
    wrong = [o for o in outputs if not same(o.said, o.came)]
    assert not wrong, "\n\n".join(f"{o.page} says\n{o.said}\nand it prints\n{o.came}" for o in wrong)
    assert skipped == SKIPPED.get(path.name, [])


def test_pages_have_examples() -> None:
    """The reader of pages finds what is there: a fence that it does not understand would hide a wrong example."""
    for path in PAGES:
        text = path.read_text("utf-8")
        assert text.count("\n```") == 2 * len(BLOCK.findall(text)), path.name
    kinds = [kind for path in PAGES for kind, _ in BLOCK.findall(path.read_text("utf-8"))]
    assert kinds.count("python") > 15
    assert kinds.count("console") > 10


@pytest.mark.parametrize(
    ("said", "came", "equal"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\nb\n", "a\n", False),
        ("a 1.5\n", "a 1.6\n", False),
        ("a 0.1234\n", "a 0.1236\n", True),
        ("a 0.1234\n", "a 0.1237\n", False),
        ("a 0.1234\n", "a 0.123\n", False),
        ("a 0.1234 [...] ...\n", "a 0.1235 [b] c\n", True),
        ("a 0.1234 [...] ...\n", "a 0.1239 [b] c\n", False),
        ("a 0.12...\n", "a 0.1239\n", True),
        ("fit ... s\n", "fit 0.3 s\n", True),
        ("fit ... s\n", "fit 0.3 min\n", False),
        ("a\n...\nd\n", "a\nb\nc\nd\n", True),
        ("a\n...\nd\n", "a\nd\n", True),
        ("a\n...\nd\n", "a\nb\n", False),
    ],
)
def test_comparison(said: str, came: str, equal: bool) -> None:
    assert same(said, came) is equal


def test_make_targets_are_what_the_pages_say() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target, command in MAKE.items():
        name = target.removeprefix("make ")
        assert re.search(rf"^{name}:.*\n\t\$\(BIN\)/{re.escape(command)}$", makefile, re.MULTILINE)


@pytest.mark.parametrize("path", LINKED, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    prose = BLOCK.sub("", path.read_text("utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if re.match(r"[a-z]+://", target):
            continue
        file, _, anchor = target.partition("#")
        place = path.parent / file if file else path
        assert place.exists(), f"{path.name} links to {target}"
        if anchor:
            heads = re.findall(r"^#+ (.*)$", BLOCK.sub("", place.read_text("utf-8")), re.MULTILINE)
            slugs = [re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in heads]
            assert anchor in slugs, f"{path.name} links to {target}"


def test_navigation_has_every_page() -> None:
    named = set(re.findall(r"[:-] (\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE))
    assert named >= {p.name for p in PAGES[1:]}
    made = {name for name in named if name.startswith("api/")}  # when the site is built, see tests/test_api.py
    assert all((ROOT / "docs" / name).is_file() for name in named - made)


@pytest.mark.parametrize("name", ["report.png", "serve.png"])
def test_pictures_are_small(name: str) -> None:
    picture = (ROOT / "docs" / name).read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert 10_000 < len(picture) < 300_000


def _help(*words: str) -> str:
    ran = run_command(shlex.join(["corank", *words, "--help"]), "")
    assert ran is not None
    return ran[0]


def _commands(text: str) -> list[str]:
    return re.findall(r"^    (\w+)(?:  |$)", text, re.MULTILINE)


def test_every_command_and_option_is_documented() -> None:
    page = (ROOT / "docs" / "command-line.md").read_text("utf-8")
    names = _commands(_help())
    assert {"compare", "fit", "recommend", "data"} <= set(names)
    parts = _commands(_help("data"))
    assert {"describe", "fetch"} <= set(parts)
    for words in [*([n] for n in names if n != "data"), *(["data", p] for p in parts)]:
        title = f"## corank {' '.join(words)}\n"
        assert title in page, f"{title.strip()} is missing"
    for words in [[], *([n] for n in names), *(["data", p] for p in parts)]:
        for flag in re.findall(r"(?<![\w-])--?[a-z]+\b", _help(*words)):
            assert re.search(rf"(?<![\w-]){flag}\b", page), f"{flag} of corank {' '.join(words)} is not documented"


def test_every_name_is_documented() -> None:
    readme, models, data, evaluation = (
        (ROOT / name).read_text("utf-8")
        for name in ("README.md", "docs/models.md", "docs/data.md", "docs/evaluation.md")
    )
    for name in cr.available():
        assert f"[`{cr.find(name).__name__}`](docs/{name.replace('_', '-')}.md)" in readme
    assert set(re.findall(r"^\| `(\w+)` \|", models, re.MULTILINE)) == set(cr.available())
    for name in cr.datasets.names():
        assert f"`{name}`" in data, name
    from corank.experiment.schema import SPLITS

    for name in (*SPLITS, *cr.metrics.names()):
        assert f"`{name}" in evaluation, name


def test_the_page_is_followed_to_the_letter(tmp_path: Path) -> None:
    """The files of docs/adding-a-model.md, put where it says, pass the page's test and all checks of real models."""
    page = (ROOT / "docs" / "adding-a-model.md").read_text("utf-8")
    named = {FILE.search(page[: block.start()]): block[2] for block in BLOCK.finditer(page)}
    files = {match[1]: code for match, code in named.items() if match}
    assert sorted(files) == ["src/corank/models/pure_svd.py", "tests/models/test_pure_svd.py"]
    for name, code in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text(code, "utf-8")
    folder = tmp_path / "src" / "corank" / "models"
    lines = ["import corank.models", f"corank.models.__path__.append({str(folder)!r})"]
    (tmp_path / "one_more_model.py").write_text("\n".join(lines), "utf-8")
    contract = [str(p) for p in sorted((ROOT / "tests" / "models").glob("test_contract*.py"))]
    others = [str(ROOT / "tests" / "test_checkpoint.py"), str(tmp_path / "tests" / "models" / "test_pure_svd.py")]
    options = ["-p", "one_more_model", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", str(ROOT)]
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *contract, *others, "-k", "pure_svd", "-rA", "-q"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    passed = re.findall(r"^PASSED .*?::(\w+)", ran.stdout, re.MULTILINE)
    assert len(passed) >= 100
    assert {"test_killed_at_any_epoch", "test_item_factors_span_the_leading_singular_vectors"} <= set(passed)


KILLED = """
import os, sys, one_more_model
import corank as cr
data = cr.synthetic.realistic(users=200, items=100, rows=4_000, seed=5).data
def die(entry):
    if entry["epoch"] == 6:
        os._exit(9)
cr.PureSVD(dim=8).fit(data, checkpoint="fit.part", on_epoch=die if "kill" in sys.argv else None).save("m.corank")
"""


def test_the_model_of_the_page_is_killed_and_resumes(tmp_path: Path) -> None:
    """A process that dies in the middle of a fit, a second one that goes on, and a third one that was never killed."""
    page = (ROOT / "docs" / "adding-a-model.md").read_text("utf-8")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "pure_svd.py").write_text(next(c for k, c in BLOCK.findall(page) if k == "python"), "utf-8")
    lines = ["import corank.models", f"corank.models.__path__.append({str(tmp_path / 'models')!r})"]
    (tmp_path / "one_more_model.py").write_text("\n".join(lines), "utf-8")
    path = os.pathsep.join([str(tmp_path), str(ROOT / "src")])

    def run(*words: str) -> int:
        command = [sys.executable, "-c", KILLED, *words]
        return subprocess.run(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, check=False).returncode

    assert run("kill") == 9
    assert (tmp_path / "fit.part").exists()
    assert run() == 0
    assert not (tmp_path / "fit.part").exists()  # saved: nothing is left to resume
    meta, resumed = read_file(tmp_path / "m.corank")
    assert [entry["epoch"] for entry in meta["state"]["history_"]] == list(range(1, 11))
    assert run() == 0
    _, whole = read_file(tmp_path / "m.corank")
    assert sorted(resumed) == sorted(whole)
    for name, array in whole.items():
        assert np.array_equal(array, resumed[name]), name


if __name__ == "__main__":
    sys.modules.setdefault("datasets", None)  # type: ignore[arg-type]  # see conftest.py
    rewrite(sys.argv[1:])
