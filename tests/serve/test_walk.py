"""docs/serving.md, followed line by line on MovieLens 1M: commands in one shell, and three films typed in a browser."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from test_docs import ROOT, same

PAGE = ROOT / "docs" / "serving.md"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
END = "---- the end of a block ----"
FEWER = {"corank compare ratings.csv -o results": " --models ease,wmf,popularity"}  # the others take a minute


class Shell:
    """One shell for all blocks, as a reader has it."""

    def __init__(self, folder: Path) -> None:
        programs = folder / "bin"
        programs.mkdir()
        for name, words in {"corank": "-m corank", "python3": ""}.items():
            (programs / name).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {words} "$@"\n')
            (programs / name).chmod(0o755)
        self.process = subprocess.Popen(
            ["bash"],
            cwd=folder,
            env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, commands: str) -> str:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(f"{{\n{commands}\n}} </dev/null\necho '{END}'\n")
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            if line.rstrip("\n").endswith(END):  # the line before may have no end
                return "".join([*lines, line.rstrip("\n").removesuffix(END)])
            lines.append(line)
        raise AssertionError("the shell ended:\n" + "".join(lines))

    def close(self) -> None:
        if self.process.poll() is None:
            self.run("kill $(jobs -p) 2>/dev/null; wait")
            self.process.kill()


def blocks(text: str) -> list[tuple[str, str | None]]:
    """(commands, what the page says they print, if it says so) of the walk."""
    found = [pair for pair in BLOCK.findall(text[text.index("## From a table") :]) if pair[0] in ("bash", "text")]
    said = [body if kind == "text" else None for kind, body in found[1:]] + [None]
    return [(body, after) for (kind, body), after in zip(found, said, strict=True) if kind == "bash"]


@pytest.mark.slow
def test_a_new_user_gets_from_a_table_to_the_page(tmp_path: Path, shared_data: Path) -> None:
    (tmp_path / "ml-1m").mkdir()
    shutil.copy(shared_data / "ml-1m" / "ml-1m.zip", tmp_path / "ml-1m")
    port = str(free_port())
    shell = Shell(tmp_path)
    wrong = []
    try:
        for page_says, said in blocks(PAGE.read_text("utf-8").split("## Endpoints\n")[0]):
            commands = page_says.replace("localhost:8000", f"localhost:{port}")
            commands = re.sub(r"(corank serve .*) 2>", rf"\1 --port {port} 2>", commands)
            for line, more in FEWER.items():
                commands = commands.replace(line, line + more)
            came = shell.run(commands)
            if said is not None and not same(said, came):
                wrong.append(f"{page_says}---- printed\n{came}")
            if "corank serve" in commands:
                three_films(f"http://127.0.0.1:{port}")
    finally:
        shell.close()
    assert not wrong, "\n".join(wrong)


def three_films(url: str) -> None:
    """What the page says about a browser; where there is none, the rest of the walk is still followed."""
    path = next(
        (found for found in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if found), None
    )
    if path is None:
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(url)
        page.wait_for_selector("body[data-ready]")
        for number, title in enumerate(("toy story", "the matrix", "fargo"), 1):
            page.fill("#liked", title)
            page.wait_for_selector("#liked-list:not([hidden]) li")
            page.keyboard.press("Enter")
            page.wait_for_function("n => document.querySelectorAll('#chosen li').length === n", arg=number)
        page.wait_for_function("() => document.querySelectorAll('#lists .ranked > li').length === 10")
        text = page.inner_text("#lists")
        assert "Toy Story 2 (1999)" in text
        assert "because of" in text
        assert "Fargo (1996)" in text
        browser.close()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
