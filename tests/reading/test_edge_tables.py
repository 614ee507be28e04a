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
        *("from_user:token,to_user:token", "who,whom", "person_key,contact_key", "name,follows", "name,trusts"),
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
    with caplog.at_level("INFO", logger="corank.reading"):
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


@pytest.mark.parametrize("when", ["followed_at", "followedAt", "following_since", "followed_date", "followed_count"])
@pytest.mark.parametrize("header", ["user_id,follower_id,{}", "{},user_id,follower_id"])
def test_times_are_no_ends(tmp_path, header, when):
    rows = {"user_id": ["7", "8"], "follower_id": ["8", "9"], when: ["1302341234", "1302341235"]}
    names = header.format(when).split(",")
    lines = [names, *zip(*(rows[name] for name in names), strict=True)]
    (tmp_path / "e.csv").write_text("".join(",".join(line) + "\n" for line in lines))
    graph, people = read_edges(tmp_path / "e.csv", directed=True)  # a follower sees whom they follow
    assert people.ids.tolist() == [7, 8, 9]
    assert graph.scipy().toarray().tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0]]


def test_a_time_does_not_stand_in_for_an_end(tmp_path):
    (tmp_path / "e.csv").write_text("follower_id,created_at\n1,1302341234\n2,1302341235\n")
    with pytest.raises(cr.CorankError, match=r"cannot tell which column .* is the target of an edge"):
        read_edges(tmp_path / "e.csv")


def warned(caplog):
    """The warnings alone: after a command has run, notices are captured too."""
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


def test_a_first_line_that_may_be_a_header(tmp_path, caplog):
    file = tmp_path / "e.csv"
    file.write_text("who is it,other one\nann,bob\nbob,cy\n")
    read_edges(file)
    assert warned(caplog) == []  # `who` is known
    file.write_text("alpha,beta\nann,bob\nbob,cy\n")
    assert len(read_edges(file)[1]) == 5
    assert warned(caplog) == [
        f"file '{file}': the first line (alpha, beta) is read as an edge, and neither name occurs again: if it is a "
        "header, call its columns source and target"
    ]
    caplog.clear()
    people = cr.from_arrays(user=["alpha", "ann", "cy"], item=[1, 2, 2])
    people.with_graph(users=file)  # somebody is called so
    file.write_text("alpha,beta\nann,bob\nbob,beta\n")
    read_edges(file)
    file.write_text("alpha,beta\n")
    read_edges(file)
    assert warned(caplog) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ann\nbob\n", "say separator=... in Python (corank.graph.read_edges)"),
        ("source,target\nann,bob\nbob\n", "another separator than ',' in Python (corank.graph.read_edges)"),
        ("source,target,weight\nann,bob,x\n", "leave it out with weight='' in Python (corank.graph.read_edges)"),
        ("a,b,c\nann,bob,1\n", "or say source=... in Python (corank.graph.read_edges)"),
        ("user,item\nann,bob\n", "source=... and target=... in Python (corank.graph.read_edges)"),
    ],
)
def test_remedies_where_only_a_file_can_be_named(tmp_path, text, words):
    (tmp_path / "e.csv").write_text(text)
    data = cr.from_arrays(user=["ann", "bob"], item=[1, 2])
    with pytest.raises(cr.CorankError) as why:
        data.with_graph(users=tmp_path / "e.csv")
    assert words in str(why.value)
    assert "--" not in str(why.value)
    with pytest.raises(cr.CorankError) as why:
        read_edges(tmp_path / "e.csv")
    assert "Python" not in str(why.value)


def test_the_name_of_a_file_is_told_as_it_is(tmp_path):
    file = tmp_path / "the interactions (user) value=1.csv"
    file.write_text("source,target\nann,\nbob,cy\n")
    with pytest.raises(cr.CorankError, match=r"\(target\) has 1 missing") as why:
        read_edges(file)
    assert str(file) in str(why.value)


def test_the_third_column_of_a_file_without_header(tmp_path, caplog):
    file = tmp_path / "e.txt"
    for third, weight in (("0.5", 0.5), ("school", 1), ("1302341234", 1)):
        file.write_text(f"ann bob {third}\n")
        with caplog.at_level("INFO", logger="corank.reading"):
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
