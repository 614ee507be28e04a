"""Reading: CSV in all its spellings, Parquet, titles, and what is refused."""

from __future__ import annotations

import csv
import datetime
import gzip
import logging
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import corank as cr
from corank.reading.tables import guess_columns, read_titles
from rows import rows_of, write

# Nothing that a text file cannot hold; a letter in front keeps strings of digits from being integers.
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6).map("x".__add__)
IDS = st.sampled_from([TEXT, st.integers(-(2**63), 2**63 - 1)])
SEPARATORS = st.sampled_from([",", "\t", ";", "|"])


# ---- round trips ----


@settings(deadline=None)
@given(st.data(), IDS, IDS, SEPARATORS, st.booleans(), st.booleans())
def test_what_was_written_is_read(
    draw: st.DataObject, users: Any, items: Any, separator: str, zipped: bool, unix_lines: bool
) -> None:
    row = st.tuples(
        users, items, st.floats(width=32, allow_nan=False, allow_infinity=False), st.integers(-(2**63), 10**8)
    )
    rows = draw.draw(st.lists(row, min_size=1, max_size=12))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("x.csv.gz" if zipped else "x.csv")
        with (gzip.open if zipped else open)(path, "wt", encoding="utf-8", newline="") as file:  # type: ignore[operator]
            # The csv module forgets to quote a carriage return unless it is part of the line ends.
            ends, quoting = ("\n", csv.QUOTE_NONNUMERIC) if unix_lines else ("\r\n", csv.QUOTE_MINIMAL)
            out = csv.writer(file, delimiter=separator, lineterminator=ends, quoting=quoting)
            out.writerow(["user", "item", "rating", "time"])
            out.writerows(rows)
        data = cr.read_csv(path, duplicates="keep")
    assert rows_of(data) == [(u, i, np.float32(v), t) for u, i, v, t in rows]


def test_a_million_rows(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    n = 1_000_000
    user, item = rng.integers(0, 50_000, n), rng.integers(10**9, 10**9 + 20_000, n)
    value, time = rng.integers(1, 11, n) / 2, rng.integers(10**9, 2 * 10**9, n)
    path = tmp_path / "big.csv"
    pl.DataFrame({"userId": user, "movieId": item, "rating": value, "timestamp": time}).write_csv(path)
    data = cr.read_csv(path, duplicates="keep")
    assert np.array_equal(data.users.ids[data.user], user)
    assert np.array_equal(data.items.ids[data.item], item)
    assert np.array_equal(data.value, value.astype(np.float32))
    assert data.time is not None
    assert np.array_equal(data.time, time)


def test_a_type_that_breaks_late_falls_back_to_text(tmp_path: Path) -> None:
    """The first 10,000 rows are integers; what comes after must not be lost or refused."""
    head = "".join(f"{u},{u % 7},1,{u}\n" for u in range(20_000))
    data = cr.read_csv(write(tmp_path, head + "B07XYZ,3,2.5,20000.5\n"))
    assert data.users.strings
    assert data.users.ids[data.user[-1]] == "B07XYZ"
    assert data.items.ids.tolist() == list(range(7))  # the other column is still of integers
    assert rows_of(data)[-1] == ("B07XYZ", 3, 2.5, 20_000)
    assert rows_of(data)[5] == ("5", 5, 1.0, 5)
    with pytest.raises(
        cr.CorankError, match=r"line 20,001 of column '2' of '.*' is 'good', which is not a number \(1 such"
    ):
        cr.read_csv(write(tmp_path, head + "1,2,good,3\n"))


def test_leading_zeros_and_mixed_ids_are_strings(tmp_path: Path) -> None:
    data = cr.read_csv(write(tmp_path, "user,item\n007,1\n7,a1\n"))
    assert data.users.ids.tolist() == ["007", "7"]
    assert data.items.ids.tolist() == ["1", "a1"]
    large = cr.read_csv(write(tmp_path, "user,item\n9223372036854775808,1\n7,2\n"))
    assert large.users.ids.tolist() == ["7", "9223372036854775808"]


# ---- spellings ----


@pytest.mark.parametrize(
    "text",
    [
        "1,10,4.5,100\n2,20,3,200\n",
        "1\t10\t4.5\t100\n2\t20\t3\t200\n",
        "1::10::4.5::100\n2::20::3::200",
        "1|10|4.5|100\r\n2|20|3|200\r\n",
        "1 10 4.5 100\n2 20 3 200\n",
        "  1  10 4.5   100 \n2 20 3 200\n",
        "user;item;rating;time\n1;10;4.5;100\n2;20;3;200\n",
        "user, item, rating, time\n1, 10, 4.5, 100\n2, 20, 3, 200\n",
        "rating,time,item,user\n4.5,100,10,1\n3,200,20,2\n",
        '"user","item","rating","time"\n"1","10","4.5","100"\n"2","20","3","200"\n',
        'user,title,item,rating,time\n1,"a, ""b""\nc",10,4.5,100\n2,x,20,3,200\n',
        "\ufeffuser,item,rating,time\n1,10,4.5,100\n2,20,3,200\n",
        "\ufeff1,10,4.5,100\n2,20,3,200\n",
        "\n\nuser,item,rating,time\n1,10,4.5,100\n\n2,20,3,200\n\n\n",
        "user,item,rating,time\n1,10,4.5,100.0\n2,20,3,200.9\n",
        "user,item,rating,time\n1,10,4.5,1970-01-01 00:01:40\n2,20,3,1970-01-01T00:03:20.7Z\n",
    ],
)
def test_spellings_of_the_same_rows(tmp_path: Path, text: str) -> None:
    assert rows_of(cr.read_csv(write(tmp_path, text))) == [(1, 10, 4.5, 100), (2, 20, 3.0, 200)]


def test_a_quote_inside_of_a_field_is_a_letter(tmp_path: Path) -> None:
    data = cr.read_csv(write(tmp_path, 'user,item,format\n1,5" disc,a\n2,x,7" or "12"\n'))
    assert rows_of(data) == [(1, '5" disc', 1.0, None), (2, "x", 1.0, None)]


def test_columns_can_be_said(tmp_path: Path) -> None:
    path = write(tmp_path, "a,b,c,d,e\n1,2,3,4,5\n6,7,8,9,10\n")
    data = cr.read_csv(path, user="c", item="a", value="e", time="b")
    assert rows_of(data) == [(3, 1, 5.0, 2), (8, 6, 10.0, 7)]
    assert rows_of(cr.read_csv(path, user="c", item="a")) == [(3, 1, 1.0, None), (8, 6, 1.0, None)]
    bare = write(tmp_path, "1,2,3,4\n")
    assert rows_of(cr.read_csv(bare, user="3", item="0", value="", time="")) == [(4, 1, 1.0, None)]
    named = write(tmp_path, "user,item,rating\n1,2,3\n")
    assert rows_of(cr.read_csv(named, value="")) == [(1, 2, 1.0, None)]
    assert len(cr.read_csv(write(tmp_path, "user,item\nx,y\n"), header=False)) == 2


def test_options_reach_the_dataset(tmp_path: Path) -> None:
    path = write(tmp_path, "user,item,rating\n1,2,3\n1,2,5\n")
    assert rows_of(cr.read_csv(path)) == [(1, 2, 5.0, None)]
    assert rows_of(cr.read_csv(path, duplicates="sum")) == [(1, 2, 8.0, None)]
    labelled = cr.read_csv(path, item_labels={"kind": ["film"]}, user_graph=cr.from_scipy(np.eye(1)))
    assert labelled.item_labels["kind"].tolist() == ["film"]
    assert labelled.user_graph is not None


def test_the_guess_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="corank"):
        cr.read_csv(write(tmp_path, "userId,movieId,rating,timestamp\n1,2,3,4\n"))
    assert "user=userId item=movieId value=rating time=timestamp (separator ',', header)" in caplog.text


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2020-01-31", "2020-01-31T00:00:00+00:00"),
        ("2020/1/31 9:05", "2020-01-31T09:05:00+00:00"),
        ("1969-12-31T23:59:58", "1969-12-31T23:59:58+00:00"),
        ("2020-01-31 10:00:00.999 UTC", "2020-01-31T10:00:00+00:00"),
        ("2020-01-31T10:00:00+02:00", "2020-01-31T10:00:00+02:00"),
        ("2020-01-31T10:00:00-0530", "2020-01-31T10:00:00-05:30"),
        ("2020-01-31T10:00:00Z", "2020-01-31T10:00:00+00:00"),
    ],
)
def test_times_in_words(tmp_path: Path, text: str, moment: str) -> None:
    data = cr.read_csv(write(tmp_path, f"user,item,date\n1,2,{text}\n"))
    assert data.time is not None
    assert data.time[0] == datetime.datetime.fromisoformat(moment).timestamp()


# ---- bad input ----


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "user,item,rating\n1,2,3\n1,3,\n",
            r"column 'rating' of '.*' \(value\) has 1 missing entry, the first in line 3",
        ),
        (
            "user,item,rating\n1,,3\n1,,5\n",
            r"column 'item' of '.*' \(item\) has 2 missing entries, the first in line 2",
        ),
        ("user,item,rating\n1,2,3\n1,3,nan\n1,4,inf\n", r"line 3 of column 'rating' of '.*' is nan.* \(2 of 3\)"),
        ("user,item,rating\n1,2,3\n\n1,3,-inf\n", r"line 4 of column 'rating' of '.*' is -inf"),
        ("user,item,rating\n1,2,3\n1,3,five\n", r"line 3 of .* is 'five', which is not a number .* value=''"),
        ("user,item,date\n1,2,2020-01-01\n1,3,soon\n", r"line 3 of .* is 'soon', which is not a number or a date"),
        ("user,item,date\n1,2,2020-13-01\n", r"'2020-13-01', which is not a number or a date"),
        ("user,item,date\n1,2,2020-02-30\n", r"'2020-02-30', which is not"),
        ("user,item,date\n1,2,2024-01-31T25:00:00\n", r"'2024-01-31T25:00:00', which is not"),
        ("user,item,date\n1,2,2024-01-31 10:61:00\n", r"'2024-01-31 10:61:00', which is not"),
        ("user,item,date\n1,2,2024-01-31 10:00:61\n", r"'2024-01-31 10:00:61', which is not"),
        ("user,item,date\n1,2,2024-01-31 10:00+25:00\n", r"10:00\+25:00', which is not"),
        ("user,item,time\n1,2,1700000000\n1,3,1700000000000\n", r"line 2 has 1700000000 and line 3 has 1700000000000"),
        ("user,item,date\n1,2,01/02/2020\n", r"'01/02/2020', which is not a number or a date"),
        ("user,item,time\n1,2,nan\n", r"line 2 of column 'time' of '.*' is nan"),
        ("user,item,time\n1,2,1e300\n", r"line 2 of column 'time' of '.*' is 1e\+300, and a time must fit in 64 bits"),
        ("a,b\nx,y\nuser,z\n1,2,3\n", "line 4 of .* has 3 fields and the first line has 2"),
    ],
)
def test_bad_rows_are_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(cr.CorankError, match=sentence) as caught:
        cr.read_csv(write(tmp_path, text))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("tail", "sentence"),
    [
        (b"1,2,3,4,5\n", "line 100,002 of .* has 5 fields and the first line has 4"),
        (b"1,2\n", "line 100,002 of .* has 2 fields and the first line has 4"),
        (b"1,2,,5\n", r"column 'rating' of '.*' \(value\) has 1 missing entry, the first in line 100,002"),
        (b"1,\xe9,3,4\n", "not UTF-8 text"),
    ],
)
def test_damage_far_down_is_found(tmp_path: Path, tail: bytes, sentence: str) -> None:
    path = tmp_path / "long.csv"
    path.write_bytes(b"user,item,rating,time\n" + b"123456,654321,3.5,1000\n" * 100_000 + tail)
    with pytest.raises(cr.CorankError, match=sentence):
        cr.read_csv(path)


def test_damage_far_down_in_a_compressed_file_is_found(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    text = "\n".join(f"{u},{i}" for u, i in rng.integers(0, 10**9, (200_000, 2))).encode()
    path = tmp_path / "cut.csv.gz"
    path.write_bytes(gzip.compress(text)[:-1000])
    with pytest.raises(cr.CorankError, match="ends early or is damaged"):
        cr.read_csv(path)


def test_repeated_blanks_far_down_are_squeezed(tmp_path: Path) -> None:
    path = write(tmp_path, "1234567 7654321 3\n" * 100_000 + "  5   6    4\n")
    assert rows_of(cr.read_csv(path)) == [(1234567, 7654321, 3.0, None), (5, 6, 4.0, None)]


# ---- Parquet ----


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    when = [datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 2)]
    pl.DataFrame(
        {"userId": ["b", "a"], "junk": [1, 2], "movieId": [7, 5], "stars": [1, 2], "date": when}
    ).write_parquet(path)
    data = cr.read_parquet(path)
    assert rows_of(data) == [("b", 7, 1.0, 1_577_836_800), ("a", 5, 2.0, 1_577_923_200)]
    assert str(guess_columns(path)) == "user=userId item=movieId value=stars time=date"
    assert rows_of(cr.read_parquet(path, value="junk", time=""))[1] == ("a", 5, 2.0, None)
    with pytest.raises(cr.CorankError, match=r"no column 'starz' for value; did you mean 'stars'\?"):
        cr.read_parquet(path, value="starz")
    with pytest.raises(cr.CorankError, match="is a Parquet file, not text: use read_parquet"):
        cr.read_csv(path)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(cr.CorankError, match="cannot be read as Parquet"):
        cr.read_parquet(path)
    with pytest.raises(cr.CorankError, match="does not exist"):
        cr.read_parquet(tmp_path / "none.parquet")
    with pytest.raises(cr.CorankError, match="is a folder"):
        cr.read_parquet(tmp_path)


# ---- titles ----


def test_titles(tmp_path: Path) -> None:
    path = write(tmp_path, 'movieId,title,genres\n1,"Net, The",a|b\n2,Été,c\n')
    assert read_titles(path) == ([1, 2], ["Net, The", "Été"])
    (tmp_path / "movies.dat").write_bytes("1::Léon: The Pro::Crime\n2::Toy Story (1995)::Kids\n".encode("latin-1"))
    assert read_titles(tmp_path / "movies.dat") == ([1, 2], ["Léon: The Pro", "Toy Story (1995)"])
    path = write(tmp_path, "asin\tprice\tName\nB01\t3\tTea\n0002\t4\tJam\n")
    assert read_titles(path) == (["B01", "0002"], ["Tea", "Jam"])
    assert read_titles(write(tmp_path, "asin,title\nB01,Tea\nB02,Jam\n")) == (["B01", "B02"], ["Tea", "Jam"])
    path = write(tmp_path, "no,what,title\n1,x,Tea\n2,y,Jam\n")
    assert read_titles(path) == ([1, 2], ["Tea", "Jam"])
    assert read_titles(path, item="what", title="no") == (["x", "y"], ["1", "2"])
    bare = write(tmp_path, "1|a|b\n2|c|d\n")
    assert read_titles(bare, title="2") == ([1, 2], ["b", "d"])


def test_bad_title_files_are_one_sentence(tmp_path: Path) -> None:
    path = write(tmp_path, "movieId,genres\n1,x\n")
    with pytest.raises(
        cr.CorankError, match=r"which column of '.*' is the title: it has movieId, genres; call it title"
    ):
        read_titles(path)
    with pytest.raises(cr.CorankError, match=r"no column 'movieid' for item; did you mean 'movieId'\?"):
        read_titles(path, item="movieid", title="genres")
    with pytest.raises(cr.CorankError, match=r"some lines of '.*' have fewer than 2 fields"):
        read_titles(write(tmp_path, "movieId,title\n1,x\n2\n"))


@pytest.mark.parametrize(
    "text", ["<!DOCTYPE html><html> <body>\n", "\n<html lang=en>\nx y\n", '<?xml version="1.0"?>\n']
)
def test_a_web_page_is_not_a_table(tmp_path: Path, text: str) -> None:
    with pytest.raises(cr.CorankError, match="is a web page or XML, not a table: download the data itself"):
        cr.read_csv(write(tmp_path, text))


# ---- the real files ----


@pytest.mark.parametrize(
    ("name", "line", "shape", "first"),
    [
        (
            "ml-100k/u.data",
            "user=0 item=1 value=2 time=3 (separator '\\t', no header)",
            (100_000, 943, 1_682),
            (196, 242, 3.0, 881250949),
        ),
        (
            "ml-latest-small/ratings.csv",
            "user=userId item=movieId value=rating time=timestamp (separator ',', header)",
            (100_004, 671, 9_066),
            (1, 31, 2.5, 1260759144),
        ),
        (
            "filmtrust/ratings.txt",
            "user=0 item=1 value=2 (separator ' ', no header)",
            (35_497, 1_508, 2_071),
            (1, 1, 2.0, None),
        ),
        (
            "foursquare/checkin/trainData.txt",
            "user=0 item=1 value=2 (separator ' ', no header)",
            (69_159, 2_318, 5_574),
            ("USER_894", "LOC_5032", 1.0, None),
        ),
        (
            "ml-1m-sequences/ml1m.txt.gz",
            "user=0 item=1 (separator ' ', no header)",
            (999_611, 6_040, 3_416),
            (1, 32, 1.0, None),
        ),
    ],
)
def test_real_files(
    shared_data: Path, name: str, line: str, shape: tuple[int, int, int], first: tuple[Any, ...]
) -> None:
    assert str(guess_columns(shared_data / name)) == line
    data = cr.read_csv(shared_data / name, duplicates="keep")
    assert (len(data), len(data.users), len(data.items)) == shape
    assert rows_of(data.take(np.array([0]))) == [first]


def test_real_titles(shared_data: Path) -> None:
    for name, count in (("ml-latest-small/movies.csv", 9_125), ("ml-100k/u.item", 1_682)):
        ids, titles = read_titles(shared_data / name)
        assert len(ids) == count
        assert dict(zip(ids, titles, strict=True))[1] == "Toy Story (1995)"


def test_a_bad_time_is_the_one_that_is_named(tmp_path):
    """Among numbers a word is wrong, among dates a number: the row that differs is blamed, not the others."""
    for times, line in ((["1", "x", "3"], 3), (["2024-01-31", "2024-02-01", "soon"], 4)):
        rows = "".join(f"u{i},i{i},{time}\n" for i, time in enumerate(times))
        (tmp_path / "t.csv").write_text("user,item,time\n" + rows)
        with pytest.raises(cr.CorankError, match=rf"line {line} .*\(1 such row\)"):
            cr.read_csv(tmp_path / "t.csv")


def test_the_name_of_a_column_can_say_that_values_are_counts(tmp_path: Path) -> None:
    """A handful of plays looks like ratings."""
    frame = pl.DataFrame({"user": [1, 1, 2], "item": [7, 8, 7], "plays": [3, 1, 4]})
    frame.write_csv(tmp_path / "t.csv")
    frame.write_parquet(tmp_path / "t.parquet")
    stars = frame.rename({"plays": "stars"})
    stars.write_csv(tmp_path / "s.csv")
    columns = {"user": "user", "item": "item"}
    assert cr.read_csv(tmp_path / "t.csv").values == "counts"
    assert cr.read_parquet(tmp_path / "t.parquet").values == "counts"
    assert cr.from_frame(frame, **columns, value="plays").values == "counts"
    assert cr.read_csv(tmp_path / "s.csv").values == "ratings"
    assert cr.from_frame(stars, **columns, value="stars").values == "ratings"
    # What is said goes before what the name says.
    assert cr.read_csv(tmp_path / "t.csv", values="ratings").values == "ratings"
    assert cr.read_parquet(tmp_path / "t.parquet", values="none").value.tolist() == [1, 1, 1]
    assert cr.from_frame(stars, **columns, value="stars", values="counts").values == "counts"
    # All equal: the name does not help.
    frame.with_columns(plays=1).write_csv(tmp_path / "t.csv")
    assert cr.read_csv(tmp_path / "t.csv").values == "none"
