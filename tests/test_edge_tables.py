"""Tables of edges: which line is a header, which column is which, and sentences that speak of edges."""

from __future__ import annotations

import polars as pl
import pytest

import corank as cr
from corank.graph import read_edges

WORDS = "ann,bob\nbob,cy\n"
NUMBERS = "1,2\n2,3\n"


def nodes(path):
    return read_edges(path)[1].ids.tolist()


@pytest.mark.parametrize("body", [WORDS, NUMBERS])
@pytest.mark.parametrize(
    "header",
    [
        *("source,target", "src,dst", "from,to", "user,friend", "user_id,friend_id", "userId,friendId", "USER,FRIEND"),
        *("trustor,trustee", "truster_id,trusted_id", "follower,followee", "followerId,user_id", "node1,node2"),
        *("user_id_1,user_id_2", "id1,id2", "item_a,item_b", "movieId,similarMovieId", "item,related", "asin,also_buy"),
        *("from_user:token,to_user:token", "who,whom", "person_key,contact_key"),
    ],
)
def test_a_header_is_no_edge(tmp_path, header, body):
    (tmp_path / "e.csv").write_text(f"{header}\n{body}")
    assert nodes(tmp_path / "e.csv") == ([1, 2, 3] if body == NUMBERS else ["ann", "bob", "cy"])


@pytest.mark.parametrize(
    "text",
    [
        "user1,user2\nuser3,user4\n",
        "node1,node2\nnode2,node3\n",
        "friend,bob\nann,friend\n",
        "a,b\nb,c\n",
        "1,2\n2,3\n",
        "ann,2\nbob,3\n",
    ],
)
def test_an_edge_is_no_header(tmp_path, text):
    (tmp_path / "e.csv").write_text(text)
    assert set(map(str, nodes(tmp_path / "e.csv"))) == set(text.replace("\n", ",").strip(",").split(","))


def test_words_above_numbers_are_a_header_and_it_says_so(tmp_path, caplog):
    (tmp_path / "e.csv").write_text("alpha,beta\n1,2\n2,3\n")
    with caplog.at_level("INFO", logger="corank.tables"):
        assert nodes(tmp_path / "e.csv") == [1, 2, 3]
    assert caplog.messages == [
        f"file '{tmp_path / 'e.csv'}': the first line (alpha, beta) is taken for a header",
        f"{tmp_path / 'e.csv'}: source=alpha target=beta (separator ',', header)",
    ]


def test_which_end_is_which(tmp_path):
    for header, first in (("user,follower,since", "bob"), ("follower,user,since", "ann"), ("friend,user,x", "bob")):
        (tmp_path / "e.csv").write_text(f"{header}\nann,bob,3\n")
        graph, names = read_edges(tmp_path / "e.csv", directed=True)
        assert graph.indptr[names.codes([first])[0] + 1] - graph.indptr[names.codes([first])[0]] == 1, header
        assert graph.value.tolist() == [1]  # `since` is no weight


def test_the_third_column_of_a_file_without_header(tmp_path, caplog):
    file = tmp_path / "e.txt"
    for third, weight in (("0.5", 0.5), ("school", 1), ("1302341234", 1)):
        file.write_text(f"ann bob {third}\n")
        with caplog.at_level("INFO", logger="corank.tables"):
            assert read_edges(file)[0].value.tolist() == [weight, weight]
    assert "looks like times, and is no weight" in caplog.text
    assert read_edges(file, weight="2")[0].value[0] == pytest.approx(1302341234)
    file.write_text("ann bob 0.5\nbob cy many\n")  # a number that is none is a mistake, not a word
    with pytest.raises(cr.CorankError, match=r"line 2 of column '2' .* is 'many'.* leave it out with weight=''"):
        read_edges(file)


def test_parquet(tmp_path):
    pl.DataFrame({"since": [3], "friend_id": ["bob"], "user_id": ["ann"], "weight": [2.0]}).write_parquet(
        tmp_path / "e.parquet"
    )
    graph, names = read_edges(tmp_path / "e.parquet", directed=True)
    assert names.ids.tolist() == ["ann", "bob"]
    assert graph.indptr.tolist() == [0, 1, 1]
    assert graph.value.tolist() == [2]
