"""Files with one line per user: which are, which are not, and stray ids among integers."""

from __future__ import annotations

from pathlib import Path

import pytest

import corank as cr

FORMS = {
    "blanks": "1 5 6 7\n2  5\n3 6 7 8 9\n",
    "no items": "1 5 6 7\n2 5\n4\n3 6 7 8 9\n",
    "tabs": "1\t5\t6\t7\n2\t5\n3\t6\t7\t8\t9\n",
    "commas": "1,5,6,7\n2,5\n3,6,7,8,9\n",
    "semicolons": "1;5;6;7\r\n2;5\r\n3;6;7;8;9\r\n",
    "colon": "1: 5, 6, 7\n2: 5\n3: 6, 7, 8, 9\n",
    "tab and commas": "1\t5,6,7\n2\t5\n3\t6,7,8,9\n",
    "tab and blanks": "1\t5 6 7\n2\t5\n3\t6 7 8 9\n",
    "header": "user items\n1 5 6 7\n2 5\n3 6 7 8 9\n",
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_every_usual_separator(tmp_path: Path, text: str, caplog) -> None:
    caplog.set_level("INFO", "corank.reading")
    path = tmp_path / "anything.log"
    path.write_text(text, newline="")
    data = cr.read_csv(path)
    pairs = list(zip(data.users.ids[data.user].tolist(), data.items.ids[data.item].tolist(), strict=True))
    assert pairs == [(1, 5), (1, 6), (1, 7), (2, 5), (3, 6), (3, 7), (3, 8), (3, 9)]
    assert data.time is None
    assert "one line per user: user item item ..." in caplog.text


BROKEN = {
    "header of a table": "user,item,rating\n1,5,3\n2,6\n3,7,2\n4,5,6,1\n",
    "one bad line": "".join(f"{u},{u + 1},3\n" for u in range(50)) + "50,8\n51,5,3,9\n",
    "a user twice": "1 5 6 7\n1 5\n3 6 7 8 9\n",
    "sentences": "Two men walk\nA dog\nSome people talk to each other\n",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_a_damaged_table_is_not_taken_for_lists(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(cr.CorankError, match=r"(repair it|is no table).*layout='lists' \(--layout lists\)"):
        cr.read_csv(tmp_path / "x.csv")


def test_layout_overrules(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("ann blue red\nbob blue\nann green\n")
    data = cr.read_csv(path, layout="lists")
    assert (len(data), data.users.ids.tolist()) == (4, ["ann", "bob"])
    path.write_text("1 5 6\n2 5 7\n3 6 8\n")
    assert cr.read_csv(path).value.tolist() == [6, 7, 8]
    assert len(cr.read_csv(path, layout="lists")) == 6
    with pytest.raises(cr.CorankError, match="did you mean 'lists'"):
        cr.read_csv(path, layout="list")
    with pytest.raises(cr.CorankError, match="user= names a column"):
        cr.read_csv(path, layout="lists", user="0")


@pytest.mark.parametrize("at", [50, 19_000])
def test_a_stray_id_among_integers_is_reported(tmp_path: Path, at: int, caplog) -> None:
    lines = [f"{u % 700},{u % 70},3" for u in range(20_000)]
    lines[at] = "7,12a,3"
    path = tmp_path / "x.csv"
    path.write_text("user,item,rating\n" + "\n".join(lines))
    data = cr.read_csv(path, duplicates="keep")
    assert data.items.strings
    assert not data.users.strings
    assert f"item ids are integers in all but 1 of 20,000 rows (the first: '12a' in line {at + 2:,})" in caplog.text


def test_texts_as_ids_are_not_reported(tmp_path: Path, caplog) -> None:
    path = tmp_path / "x.csv"
    path.write_text("user,item\n" + "".join(f"{u},{'n' * (u % 3 == 0)}{u}\n" for u in range(3000)))
    assert cr.read_csv(path).items.strings
    assert "integers" not in caplog.text


def test_real_sequences_in_lines(shared_data: Path) -> None:
    data = cr.read_csv(shared_data / "s3rec-sequences" / "Sports_and_Outdoors.txt")
    assert (len(data), len(data.users), len(data.items)) == (296_337, 35_598, 18_357)
