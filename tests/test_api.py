"""The API reference: every public name is there, with its sections, and what it links to exists."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs"))

import api  # noqa: E402
import docstrings  # noqa: E402

import corank as cr  # noqa: E402
from corank.params import described  # noqa: E402


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return api.pages()


def _anchors(text: str) -> list[str]:
    return re.findall(r"^#+ .*\{ #(\S+) \}$", text, re.MULTILINE)


def test_every_public_name_is_explained_once(pages: dict[str, str]) -> None:
    anchors = [anchor for text in pages.values() for anchor in _anchors(text)]
    assert len(set(anchors)) == len(anchors)
    assert {f"corank.{name}" for name in dir(cr)} <= set(anchors)
    assert {"corank.Model.recommend", "corank.Dataset.csr", "corank.graph.encode", "corank.graph.DNA.bits"} <= set(
        anchors
    )
    assert all(f"[`{name}`](" in pages["api/index.md"] for name in dir(cr))


def test_navigation_has_the_pages(pages: dict[str, str]) -> None:
    named = re.findall(r"[:-] (api/\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    assert sorted(named) == sorted(pages)


def test_links_lead_somewhere(pages: dict[str, str]) -> None:
    for name, text in pages.items():
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            file, _, anchor = target.partition("#")
            if file.startswith("../"):
                assert (ROOT / "docs" / file[3:]).is_file(), f"{name} links to {target}"
            else:
                assert not anchor or anchor in _anchors(pages[f"api/{file}"]), f"{name} links to {target}"


def test_signatures_are_readable(pages: dict[str, str]) -> None:
    text = "\n".join(pages.values())
    assert "k: int = 10," in text
    assert "by: Literal['user', 'item'] = 'user'" in text
    for sign in ("ForwardRef", " object at 0x", "<factory>", "\nself", "(self"):
        assert sign not in text


def test_models_have_their_hyper_parameters(pages: dict[str, str]) -> None:
    for name in cr.available():
        cls = cr.find(name)
        part = pages["api/models.md"].split(f"{{ #corank.{cls.__name__} }}")[1].split("\n## ")[0]
        for one in described(cls):
            assert f"| `{one.name}` | `{one.default}` |" in part


def test_sections_entries_and_formulas() -> None:
    doc = """Do it at once_only.

Objective:

    a * b_c + |x|

a, b : two numbers,
    which go on here
c : `f` of them

Parameters
----------
k : how many *exactly*
    items

More about `Thing`.

References
----------
One, A title that
is long, 2020.
Two, Another, 2021."""
    made = docstrings.to_markdown(doc, docstrings.linker({"Thing": "page.md#thing"}))
    assert made.split("\n\n") == [
        "Do it at once\\_only.",
        "Objective:",
        "    a * b_c + |x|",
        "- `a`, `b`: two numbers, which go on here\n- `c`: `f` of them",
        "**Parameters**",
        "- `k`: how many \\*exactly\\* items",
        "More about [`Thing`](page.md#thing).",
        "**References**",
        "- One, A title that is long, 2020.\n- Two, Another, 2021.",
    ]


def test_first_sentence() -> None:
    assert docstrings.first_sentence("One, e.g. two\nlines. Then more.\n\nRest.") == "One, e.g. two lines."
