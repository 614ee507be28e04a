"""What one word on the command line can mean: an archive, a folder, a name or a table, and what is said about it."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

import corank as cr
from corank import datasets
from corank.errors import CorankError
from places import RATINGS_DAT, put, put_zip


def test_open_any_archive_folder_file_and_name(root: Path) -> None:
    archive = put_zip(root / "elsewhere" / "download (1).zip", ratings=RATINGS_DAT)
    folder = put(root / "mine" / "ratings.dat", RATINGS_DAT).parent
    put(folder / "movies.dat", "10::Ten::Drama\n20::Twenty::Drama\n")
    put_zip(root / "ml-1m" / "ml-1m.zip", ratings=RATINGS_DAT)
    for word in (archive, folder, folder / "ratings.dat", "ml-1m", root / "ml-1m"):
        assert datasets.open_any(word).value.tolist() == [5, 4, 3], word
    assert datasets.open_any(folder).item_labels["title"].tolist() == ["Ten", "Twenty"]


def test_open_any_table_with_options(root: Path) -> None:
    path = put(root / "log.csv", "who;what;stars\na;x;3\na;x;4\n")
    data = datasets.open_any(path, user="who", item="what", value="stars", separator=";", duplicates="keep", time=None)
    assert data.value.tolist() == [3, 4]
    assert datasets.open_any(path, user="who", item="what", value="stars", duplicates="mean").value.tolist() == [3.5]


def test_open_any_parquet(root: Path) -> None:
    import polars as pl

    pl.DataFrame({"user": [1, 2], "item": ["a", "b"], "rating": [1.0, 2.0]}).write_parquet(root / "t.parquet")
    assert datasets.open_any(root / "t.parquet").value.tolist() == [1, 2]
    (root / "t.parquet").rename(root / "t.csv")
    assert datasets.open_any(root / "t.csv", duplicates="last").value.tolist() == [1, 2]
    with pytest.raises(CorankError, match=r"separator= is for text files and '.*' is Parquet"):
        datasets.open_any(root / "t.csv", separator=";")


def test_open_any_tells_the_two_sequence_forms_apart(root: Path) -> None:
    put(root / "a" / "Beauty.txt", "1 5\n1 6\n2 5\n")
    put(root / "b" / "Beauty.txt", "1 5 6\n2 5 7\n")
    assert len(datasets.open_any(root / "a" / "Beauty.txt")) == 3
    data = datasets.open_any(root / "b")
    assert (len(data), len(data.users)) == (4, 2)


def test_open_any_half_of_a_split_is_that_half(root: Path) -> None:
    put(root / "ml1m" / "training.ratings", "1 10 5\n1 20 4\n2 20 4\n")
    half = put(root / "ml1m" / "test.ratings", "2 10 3\n1 30 2\n")
    assert len(datasets.open_any(half)) == 2
    assert len(datasets.open_any(half.parent)) == 5


def notices(caplog: pytest.LogCaptureFixture) -> list[str]:
    said = [record.getMessage() for record in caplog.records if record.name in ("corank.datasets", "corank.reading")]
    caplog.clear()
    return said


def test_open_any_says_what_it_took_a_path_for(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "corank")
    archive = put_zip(root / "ml-1m.zip", ratings=RATINGS_DAT)
    for word in (archive, "ml-1m"):
        datasets.open_any(word)
        assert notices(caplog) == [f"{archive}: read as ml-1m (MovieLens 1m): user, item, rating, timestamp"]
    steam = put(root / "mine" / "Steam.txt", "1 5\n1 5\n2 5\n")
    datasets.open_any(steam.parent)
    line = "read as steam (Steam reviews as sequences (SASRec)): user, item, place in the file as time"
    assert notices(caplog) == [f"{steam.parent}: {line}"]
    datasets.open_any(steam)
    told, remedy = notices(caplog)
    assert told == f"{steam}: {line}"
    assert "name its columns or a rule for duplicates" in remedy
    assert len(datasets.open_any(steam, duplicates="last")) == 2  # as the remedy says


@pytest.mark.parametrize("words", [["data", "describe", "ml-1m"], ["data", "describe", "{root}/ml-1m.zip"]])
def test_the_command_line_says_it_too(root: Path, words: list[str]) -> None:
    put_zip(root / "ml-1m.zip", ratings=RATINGS_DAT)
    command = [sys.executable, "-m", "corank", *(word.format(root=root) for word in words)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    line = f"corank: {root / 'ml-1m.zip'}: read as ml-1m (MovieLens 1m): user, item, rating, timestamp"
    assert line in ran.stderr.splitlines()
    assert line not in ran.stdout


def test_open_any_own_files_with_a_known_name(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A name proves nothing: what the reader of the set refuses is a table like any other."""
    caplog.set_level(logging.INFO, "corank")
    put(root / "x" / "trust.txt", "1 2 1\n")
    timed = put(root / "x" / "ratings.txt", "1 10 5 1700000000\n1 11 4 1700000001\n2 10 3 1700000002\n")
    data = datasets.open_any(timed)
    assert data.time is not None
    assert data.user_graph is None
    assert notices(caplog)[0] == f"{timed}: has the name of a file of filmtrust but not its lines: read as a table"
    put(timed, "1 10 5\n2 10 3\n")
    assert datasets.open_any(timed).user_graph is not None
    assert notices(caplog)[0].startswith(f"{timed}: read as filmtrust (FilmTrust")
    three = put(root / "y" / "Beauty.txt", "1 5 4.5\n1 6 3\n2 5 1\n")
    assert datasets.open_any(three).value.tolist() == [4.5, 3, 1]
    words = put(root / "z" / "u.data", "ann\tblue\t3\nbob\tblue\t4\n")
    assert datasets.open_any(words).users.ids.tolist() == ["ann", "bob"]


def test_open_any_tells_of_repeated_rows(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "corank")
    path = put(root / "a.csv", "user,item,rating\n1,5,1\n1,5,2\n1,6,3\n")
    archive = put_zip(root / "ml-1m.zip", ratings=RATINGS_DAT + RATINGS_DAT)
    for rule, kept in (("last", "the last"), ("first", "the first"), ("sum", "their sum"), ("max", "their max")):
        datasets.open_any(path, duplicates=rule)
        told = f"rows repeat a (user, item) pair: kept {kept} (duplicates='{rule}')"
        assert notices(caplog)[1:] == [f"1 of 3 {told}"]
        datasets.open_any(archive, duplicates=rule)
        assert notices(caplog)[1:] == [f"3 of 6 {told}"]
    datasets.open_any(path, duplicates="keep")
    assert len(notices(caplog)) == 1
    put(root / "f" / "trust.txt", "1 2 1\n")
    datasets.open_any(put(root / "f" / "ratings.txt", "1 10 5\n1 10 3\n").parent)
    assert notices(caplog)[0].startswith("1 of 2 rows repeat")


def test_a_sequence_set_is_split_by_its_order(root: Path) -> None:
    path = put(root / "Steam.txt", "".join(f"{u} {i}\n" for u in (1, 2) for i in (9, 3, 7, 5)))
    split = cr.Experiment(data=path).make_split()
    assert split.name == "leave-last-out"
    assert split.test.items.ids[split.test.item].tolist() == [5, 5]
    assert "0 to 7 (not unix seconds)" in str(datasets.open_any(path).describe())


def test_open_any_options_are_never_ignored(root: Path) -> None:
    archive = put_zip(root / "ml-1m.zip", ratings=RATINGS_DAT + RATINGS_DAT)
    with pytest.raises(CorankError, match="user= is for CSV and Parquet files"):
        datasets.open_any(archive, user="userId")
    assert len(datasets.open_any(archive)) == 6
    assert len(datasets.open_any(archive, duplicates="last")) == 3


def test_open_any_what_it_cannot_be(root: Path) -> None:
    with pytest.raises(CorankError, match=r"no file and no dataset 'ml-1n'; did you mean 'ml-1m'\?"):
        datasets.open_any("ml-1n")
    with pytest.raises(CorankError, match=r"no file '.*missing.csv'; `corank data list` names the public datasets$"):
        datasets.open_any(root / "missing.csv")
    put(root / "ratings.csv", "1,2\n")
    with pytest.raises(CorankError, match=r"did you mean 'ratings\.csv'\?$"):
        datasets.open_any(root / "rating.csv")
    put(root / "odd" / "x.bin", "")
    with pytest.raises(CorankError, match="not laid out like any known dataset"):
        datasets.open_any(root / "odd")
    (root / "bad.zip").write_bytes(b"PK nonsense")
    with pytest.raises(CorankError, match=r"bad\.zip is damaged"):
        datasets.open_any(root / "bad.zip")


def test_open_any_with_several_sets_in_a_folder(root: Path) -> None:
    for name in ("Video.txt", "Steam.txt"):
        put(root / "x" / name, "1 1\n")
    with pytest.raises(CorankError, match="holds several datasets: name one of games, steam"):
        datasets.open_any(root / "x")
    assert len(datasets.open_any(root / "x" / "Steam.txt")) == 1
