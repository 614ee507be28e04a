"""The readers of ratings with a graph of friends, on small files in the published layout."""

from __future__ import annotations

from pathlib import Path

import pytest

import corank as cr
from corank.datasets import friends
from corank.errors import CorankError
from places import put_files
from rows import rows_of

HEADER = "userid\tmovieid\trating\tdate\n"
TIMED = HEADER + "5\t70\t1.5\t2007-10-10 00:00:00\n9\t70\t4\t2009-01-02 00:00:00\n9\t71\t5\t2009-01-03 00:00:00\n"


@pytest.mark.parametrize("blank", [" ", "\t"])
def test_douban(tmp_path: Path, blank: str) -> None:
    ratings, links = "1 10 5\n2 10 3\n2 20 4\n", "1 2\n2 1\n3 1\n3 3\n"
    files = put_files(tmp_path, uir_0index=ratings.replace(" ", blank), social_0index=links.replace(" ", blank))
    data = friends.douban(files)
    assert rows_of(data) == [(1, 10, 5.0, None), (2, 10, 3.0, None), (2, 20, 4.0, None)]
    assert data.users.ids.tolist() == [1, 2, 3]  # somebody with friends alone is a user
    assert data.user_graph is not None
    # An edge in both directions and once, whether it was listed once or twice; nobody is their own friend.
    assert data.user_graph.scipy().toarray().tolist() == [[0, 1, 1], [1, 0, 0], [1, 0, 0]]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-8"])
def test_flixster_in_any_encoding(tmp_path: Path, encoding: str) -> None:
    files = put_files(tmp_path, Ratings_0timed_0txt=TIMED.encode(encoding), links_0txt="5\t9\n9\t1000\n1000\t7\n")
    data = friends.flixster(files)
    assert rows_of(data) == [(5, 70, 1.5, 1191974400), (9, 70, 4.0, 1230854400), (9, 71, 5.0, 1230940800)]
    assert data.users.ids.tolist() == [5, 9]  # 7 and 1000 have rated nothing
    assert data.user_graph is not None
    assert data.user_graph.scipy().toarray().tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize("line", ["5\t70\t1.5\n", "5\t70\tgood\t2007-10-10\n", "5\t70\t1.5\tyesterday\n"])
def test_flixster_damaged(tmp_path: Path, line: str) -> None:
    with pytest.raises(CorankError, match=r"Ratings.timed.txt is not in the published layout .*; get the file again"):
        friends.flixster(put_files(tmp_path, Ratings_0timed_0txt=TIMED + line, links_0txt="5\t9\n"))


def test_douban_damaged(tmp_path: Path) -> None:
    with pytest.raises(CorankError, match="3 fields per line"):
        friends.douban(put_files(tmp_path, uir_0index="1 10\n", social_0index="1 2\n"))
    with pytest.raises(CorankError, match=r"has no social\.index: put the file there"):
        friends.douban(put_files(tmp_path / "other", uir_0index="1 10 4\n"))


def test_they_are_found_by_name(tmp_path: Path) -> None:
    put_files(tmp_path / "douban-full", uir_0index="1 10 5\n2 10 3\n", social_0index="1 2\n")
    put_files(tmp_path / "Flixster", Ratings_0timed_0txt=TIMED, links_0txt="5\t9\n")
    assert len(cr.datasets.load("douban-full", root=tmp_path)) == 2
    assert len(cr.datasets.load("flixster-full", root=tmp_path)) == 3


def test_yahoo_r3(tmp_path: Path) -> None:
    name = "ydata-ymusic-rating-study-v1_0"
    folder = tmp_path / name
    folder.mkdir()
    (folder / f"{name}-train.txt").write_text("1\t14\t5\n1\t35\t1\n2\t14\t3\n")
    (folder / f"{name}-test.txt").write_text("1\t49\t1\n2\t35\t2\n")
    split = cr.datasets.load_split("yahoo-r3", root=tmp_path)
    assert rows_of(split.test) == [(1, 49, 1.0, None), (2, 35, 2.0, None)]
    assert len(split.all_rows()) == 5
    with pytest.raises(CorankError, match=r"yahoo-r3.*webscope"):
        cr.datasets.load("yahoo-r3", root=tmp_path / "nothing")
