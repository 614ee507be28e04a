"""How files are told apart: separators, headers, and which column is which."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import corank as cr
from corank.reading.column_names import Columns
from corank.reading.records import squeezed
from corank.reading.tables import guess_columns
from rows import write


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("userId,movieId,rating,timestamp\n1,2,3.5,100\n", "user=userId item=movieId value=rating time=timestamp"),
        (
            "reviewerID\tasin\toverall\tunixReviewTime\nA1\tB1\t5\t9\n",
            "user=reviewerID item=asin value=overall time=unixReviewTime",
        ),
        ('"User-ID";"ISBN";"Book-Rating"\n"276725";"034545104X";"0"\n', "user=User-ID item=ISBN value=Book-Rating"),
        (
            "user_id:token,item_id:token,timestamp:float\n1,2,3\n",
            "user=user_id:token item=item_id:token time=timestamp:float",
        ),
        ("t_dat,Customer Id,article_id,price\n2020-01-01,a,1,2\n", "user=Customer Id item=article_id time=t_dat"),
        ("SessionId,Item_ID\n1,2\n", "user=SessionId item=Item_ID"),
        ("session,user,item\n1,2,3\n", "user=user item=item"),
        (",user,item,plays\n0,a,b,3\n", "user=user item=item value=plays"),
        ("visitorid|itemid|event\nx|y|view\n", "user=visitorid item=itemid"),
        ("\ufeffuser,item\n1,2\n", "user=user item=item"),
    ],
)
def test_columns_are_guessed_by_name(tmp_path: Path, text: str, line: str) -> None:
    columns = guess_columns(write(tmp_path, text))
    assert str(columns).startswith(line + " (separator ")
    assert str(columns).endswith(", header)")


@pytest.mark.parametrize("text", ['{"user": 1, "item": 2}\n' * 3, '[{"user": 1, "item": 2}]'])
def test_json_is_not_a_table(tmp_path: Path, text: str) -> None:
    with pytest.raises(cr.CorankError, match="is JSON, not a table: write it as CSV"):
        cr.read_csv(write(tmp_path, text))


@pytest.mark.parametrize("text", ["x" * 9_999, "a b,c;" * 9_999, ",".join("abc" * 9_999), "[1, " * 9_999])
def test_a_refusal_does_not_repeat_a_whole_file(tmp_path: Path, text: str) -> None:
    with pytest.raises(cr.CorankError) as caught:
        cr.read_csv(write(tmp_path, text))
    assert len(str(caught.value)) < 300 + len(str(tmp_path))


@pytest.mark.parametrize(
    ("text", "separator"),
    [
        ("1,2,3\n1,3,4\n", ","),
        ("1\t2\t3\n", "\t"),
        ("1;2;3,5\n2;3;4,0\n", ";"),
        ("1|2\n3|4\n", "|"),
        ("1::2::5::978300760\n", "::"),
        ("1 2 3\n4 5 6\n", " "),
        ("  1   2 3\n4 5     6  \n", " "),
        ("1,2,2020-01-01 10:00:00\n3,4,2020-01-01 11:00:00\n", ","),
        ('"a,b";x\n"c";y\n', ";"),
        ("a b,x y\nc d,z w\n", ","),
    ],
)
def test_separators_are_told_apart(tmp_path: Path, text: str, separator: str) -> None:
    columns = guess_columns(write(tmp_path, text))
    assert columns.separator == separator
    assert not columns.header
    assert (columns.user, columns.item) == ("0", "1")


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("user,item code,how\nalice,x,3\nbob,y,4\n", True),  # text above numbers
        ("alice,x\nbob,y\n", False),
        ("alice,book\nbob,song\n", False),  # one known word is not a header
        ("user,book\nalice,x\n", True),
        ("alice,x,\nbob,y,3\n", False),  # an empty field above numbers is a missing rating
        ("1,2\n3,4\n", False),
        ("alice,x,3\n", False),
    ],
)
def test_headers_are_told_from_rows(tmp_path: Path, text: str, header: bool) -> None:
    columns = guess_columns(write(tmp_path, text), user="1" if not header else None)
    assert columns.header is header


def test_a_header_can_be_said_or_told_by_a_name(tmp_path: Path) -> None:
    path = write(tmp_path, "who,what\nalice,x\n")
    assert not guess_columns(path).header
    assert str(guess_columns(path, user="who", item="what")) == "user=who item=what (separator ',', header)"
    assert guess_columns(write(tmp_path, "user,item\na,b\n"), header=False).user == "0"


def test_without_a_header_columns_go_by_place(tmp_path: Path) -> None:
    four = write(tmp_path, "1,2,3,978300760\n")
    assert str(guess_columns(four)) == "user=0 item=1 value=2 time=3 (separator ',', no header)"
    assert guess_columns(four, user="1").roles() == {"user": "1", "item": "0", "value": "2", "time": "3"}
    assert guess_columns(four, value="").roles() == {"user": "0", "item": "1", "time": "3"}
    assert guess_columns(four, time="").roles() == {"user": "0", "item": "1", "value": "2"}
    assert guess_columns(write(tmp_path, "1,2,3,9,x\n")).time == "3"


@pytest.mark.parametrize("third", ["978300760", "2020-01-31", "2020/1/31 10:00"])
def test_a_third_column_of_times_is_the_time(tmp_path: Path, third: str) -> None:
    columns = guess_columns(write(tmp_path, f"1,2,{third}\n2,3,{third}\n"))
    assert columns.roles() == {"user": "0", "item": "1", "time": "2"}


def test_columns_are_guessed_from_names_alone() -> None:
    assert guess_columns(["Movie ID", "user", "ts"]) == Columns("user", "Movie ID", None, "ts")
    assert str(guess_columns(["item", "user"])) == "user=user item=item"
    with pytest.raises(
        cr.CorankError, match=r"which column of the table is the user and the item: it has a, b; say user="
    ):
        guess_columns(["a", "b"])
    with pytest.raises(
        cr.CorankError, match=r"is the item: it has user, b; say item=\.\.\. \(on the command line --item"
    ):
        guess_columns(["user", "b"])


def test_gzip_is_seen_by_its_first_bytes(tmp_path: Path) -> None:
    for name in ("x.csv.gz", "x.csv"):
        (tmp_path / name).write_bytes(gzip.compress(b"user,item\n1,2\n"))
        assert guess_columns(tmp_path / name).item == "item"


def test_squeezing_leaves_one_blank_between_fields() -> None:
    assert squeezed("  1  2\t 3 \r\n4 5 6\n") == "1 2 3\r\n4 5 6\n"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty"),
        (b"\n\n  \n", "is empty"),
        (b"user,item,rating\n", r"has a header \(user, item, rating\) and no rows"),
        (b"alice\nbob\n", "only one column was found in .*'alice'"),
        (b"x" * 200 + b"\n", "only one column"),
        (b"1,2\n\xff\xfe,3\n", "not UTF-8 text .byte 4 is 0xff"),
        (b"PK\x03\x04rest", "ends early or is damaged"),
        (b"PAR1rest", "cannot be read as Parquet"),
        (b"\x00\x01\x02garbage", "zero bytes"),
        ("user,item\n1,2\n".encode("utf-16-le"), "UTF-16"),
        (b"1,2,3\n4,5\n", "line 2 of .* has 2 fields and the first line has 3"),
        (b"user,item\n1,2\n\n3,4,5\n", "has 3 fields and the first line has 2"),
        (b"1 10 20 30\n2 10 20\n", "has 3 fields and the first line has 4"),
        (b"\x1f\x8b\x08\x00broken", "ends early or is damaged"),
        (b"1," * 600_000, "first line of .* is longer than 1,048,576 bytes"),
    ],
)
def test_bad_files_are_one_sentence(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(content)
    with pytest.raises(cr.CorankError, match=sentence) as caught:
        guess_columns(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bad_requests_are_one_sentence(tmp_path: Path) -> None:
    path = write(tmp_path, "userId,movieId\n1,2\n")
    with pytest.raises(cr.CorankError, match=r"has no column 'movieid' for item; did you mean 'movieId'\?"):
        guess_columns(path, item="movieid")
    with pytest.raises(
        cr.CorankError, match=r"column 'userId' of .* cannot be two things: name another column for time"
    ):
        guess_columns(path, user="userId", time="userId")
    with pytest.raises(cr.CorankError, match="the separator ';' does not split it"):
        guess_columns(path, separator=";")
    with pytest.raises(cr.CorankError, match="separator '--' is not supported"):
        guess_columns(path, separator="--")
    with pytest.raises(cr.CorankError, match=r"data\.cvs' does not exist: check the path; did you mean 'data\.csv'\?"):
        guess_columns(tmp_path / "data.cvs")
    with pytest.raises(cr.CorankError, match="is a folder"):
        guess_columns(tmp_path)
    with pytest.raises(cr.CorankError, match=r"no column '7' for item .it has no header: columns are numbered 0 to 1"):
        guess_columns(write(tmp_path, "1,2\n"), item="7")


def test_a_separator_can_be_spelled(tmp_path: Path) -> None:
    path = write(tmp_path, "a b\tc,d\n")
    assert guess_columns(path, separator="\\t").separator == guess_columns(path, separator="tab").separator == "\t"
