"""The readers of MovieLens on small files in the published layout; the real files are in test_loading."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from corank.datasets import movielens
from corank.datasets.archive import Files
from corank.datasets.catalogue import ML_1M
from corank.errors import CorankError
from places import put_files
from rows import rows_of


def test_movielens_100k_with_labels(tmp_path: Path) -> None:
    files = put_files(
        tmp_path,
        u_0data="196\t242\t3\t881250949\n186\t302\t4\t891717742\n",
        u_0user="186|39|F|executive|00000\n196|49|M|writer|55105\n",
        u_0genre="unknown|0\nAction|1\nDrama|2\n\n",
        u_0item="242|Misérables, Les (1995)|01-Jan-1995||http://x|0|1|1\n302|L.A.|01||u|0|0|0\n".encode("latin-1"),
    )
    data = movielens.ratings_100k(files)
    assert rows_of(data) == [(196, 242, 3.0, 881250949), (186, 302, 4.0, 891717742)]
    assert data.users.ids.tolist() == [186, 196]
    assert {k: v.tolist() for k, v in data.user_labels.items()} == {
        "age": [39, 49],
        "gender": ["F", "M"],
        "occupation": ["executive", "writer"],
    }
    assert data.item_labels["title"].tolist() == ["Misérables, Les (1995)", "L.A."]
    assert data.item_labels["genres"].tolist() == ["Action|Drama", ""]


def test_movielens_1m_and_10m_dat(tmp_path: Path) -> None:
    files = put_files(
        tmp_path,
        ratings_0dat="1::122::5::838985046\n1::185::4.5::838983525\n9::122::0.5::838983392\n",
        movies_0dat="122::Boomerang: A Film (1992)::Comedy|Romance\n185::Net, The (1995)::Action\n7::Unrated::Drama\n",
        users_0dat="1::F::1::10::48067\n9::M::56::16::70072\n",
    )
    data = movielens.ratings_dat(files)
    assert rows_of(data) == [(1, 122, 5.0, 838985046), (1, 185, 4.5, 838983525), (9, 122, 0.5, 838983392)]
    assert data.item_labels["title"].tolist() == ["Boomerang: A Film (1992)", "Net, The (1995)"]
    assert data.user_labels["age"].tolist() == [1, 56]
    assert data.user_labels["gender"].tolist() == ["F", "M"]
    (tmp_path / "users.dat").unlink()
    (tmp_path / "movies.dat").unlink()
    bare = movielens.ratings_dat(Files(tmp_path))
    assert rows_of(bare) == rows_of(data)
    assert not bare.item_labels
    assert not bare.user_labels


def test_movielens_1m_with_graphs(tmp_path: Path) -> None:
    ratings = [(1, 10), (1, 20), (2, 20), (3, 30), (4, 40), *((5, movie) for movie in range(100, 160))]
    people = "1::F::18::1::a\n2::M::18::1::a\n3::F::25::1::a\n4::F::18::1::a\n5::M::18::1::a\n"
    put_files(
        tmp_path,
        **{"ml-1m__ratings_0dat": "".join(f"{user}::{movie}::3::7\n" for user, movie in ratings)},
        **{"ml-1m__users_0dat": people},
    )
    # A name within a name is another name, a cast may be unknown, and a movie may be one that nobody here has rated.
    casts = {10: "Ann Lee, Bo", 20: "Bo,Ann Lee , Cy", 30: "N/A", 40: "Cy, Ann Leeds", 77: "Cy", 101: "N/A"}
    lines = [f"{movie}::T: 1::95::G::d::g::Ann Lee::w::{cast}::plot::p\n" for movie, cast in casts.items()]
    files = put_files(tmp_path / "ml-1m-kg", movies_extrainfos_0dat="".join(lines))
    data = movielens.ratings_with_graphs(ML_1M, files)
    assert data.users.ids.tolist() == [1, 2, 3, 4]  # user 5 has 60 ratings
    assert data.items.ids.tolist() == [10, 20, 30, 40]
    assert data.user_graph is not None
    assert data.item_graph is not None
    expected = [[0, 1, 0, 1], [1, 0, 0, 1], [0, 0, 0, 0], [1, 1, 0, 0]]
    assert data.user_graph.scipy().toarray().tolist() == expected
    expected = [[0, 1, 0, 0], [1, 0, 0, 1], [0, 0, 0, 0], [0, 1, 0, 0]]  # two common actors are one edge
    assert data.item_graph.scipy().toarray().tolist() == expected
    (tmp_path / "ml-1m" / "users.dat").unlink()
    with pytest.raises(CorankError, match=r"needs users\.dat"):
        movielens.ratings_with_graphs(ML_1M, files)
    (tmp_path / "ml-1m" / "ratings.dat").unlink()
    with pytest.raises(CorankError, match=r"corank data fetch ml-1m$"):
        movielens.ratings_with_graphs(ML_1M, files)


def test_movielens_20m_and_25m_csv_in_a_zip(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "ml-25m.zip", "w") as archive:
        archive.writestr(
            "ml-25m/ratings.csv", "userId,movieId,rating,timestamp\n1,296,5.0,1147880044\n2,1,3.5,1141415820\n"
        )
        archive.writestr("ml-25m/movies.csv", 'movieId,title,genres\n1,"American President, The ""A"" (1995)",Drama\n')
        archive.writestr("ml-25m/tags.csv", "userId,movieId,tag,timestamp\n")
    data = movielens.ratings_csv(Files(tmp_path / "ml-25m.zip"))
    assert rows_of(data) == [(1, 296, 5.0, 1147880044), (2, 1, 3.5, 1141415820)]
    assert data.item_labels["title"].tolist() == ['American President, The "A" (1995)', ""]
