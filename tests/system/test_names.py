"""Any text becomes a file name that stays in its folder, and no two texts become the same one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import corank as cr
from corank.system.names import file_name, inside

HOSTILE = (
    "../../escaped/here", "/etc/passwd", "..", ".", "", "a/b", "a\\b", "a_b", "\0", "a\nb", "CON", "con", "nul.txt",
    "a" * 5000, "a" * 5001, "Shop", "SHOP", "shop", "shop.", "shop ", "C:x", "🦆" * 80, "é", "e\u0301", "\udcff",
)  # fmt: skip


def test_hostile_names_stay_inside_and_apart(tmp_path):
    made = [inside(tmp_path, name) for name in HOSTILE]
    for path in made:
        assert path.parent == tmp_path
        path.mkdir()  # every one is a name that the system takes
    assert len({path.name.lower() for path in made}) == len(HOSTILE)
    assert file_name("shop") == "shop"


@given(st.lists(st.text(st.characters(codec=None)), min_size=2, max_size=2, unique=True))
def test_names_of_different_texts_differ(texts):
    one, two = map(file_name, texts)
    assert one.lower() != two.lower()
    assert not {"/", "\\", "\0"} & set(one)
    assert one not in ("", ".", "..")
    assert len(one.encode("utf-8", "surrogatepass")) <= 120


def test_links_that_lead_out_are_refused(tmp_path):
    folder, other = tmp_path / "in", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    (folder / "shop").symlink_to(other)
    with pytest.raises(cr.CorankError, match="leads out of"):
        inside(folder, "shop")
    (folder / "here").mkdir()
    (folder / "link").symlink_to(folder / "here")
    assert inside(folder, "link").is_symlink()
