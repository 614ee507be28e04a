"""Each reader on small files in the published layout; the real files are in test_datasets."""

from __future__ import annotations

import gzip
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import savemat

import corank.datasets.archive
from corank.data import Dataset
from corank.datasets import publishers as readers
from corank.datasets.archive import Files
from corank.errors import CorankError, MissingExtra


def write(folder: Path, **texts: str | bytes) -> Files:
    """Files named by keyword: `__` is a slash and `_0` a dot."""
    for key, text in texts.items():
        path = folder / key.replace("__", "/").replace("_0", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return Files(folder)


def rows(data: Dataset) -> list[tuple[Any, ...]]:
    """(user, item, value[, time]) in external ids, in the order of the dataset."""
    columns = [data.users.ids[data.user], data.items.ids[data.item], data.value]
    return list(zip(*(c.tolist() for c in [*columns, *([] if data.time is None else [data.time])]), strict=True))


def test_movielens_100k_with_labels(tmp_path: Path) -> None:
    files = write(
        tmp_path,
        u_0data="196\t242\t3\t881250949\n186\t302\t4\t891717742\n",
        u_0user="186|39|F|executive|00000\n196|49|M|writer|55105\n",
        u_0genre="unknown|0\nAction|1\nDrama|2\n\n",
        u_0item="242|Misérables, Les (1995)|01-Jan-1995||http://x|0|1|1\n302|L.A.|01||u|0|0|0\n".encode("latin-1"),
    )
    data = readers.movielens_100k(files)
    assert rows(data) == [(196, 242, 3.0, 881250949), (186, 302, 4.0, 891717742)]
    assert data.users.ids.tolist() == [186, 196]
    assert {k: v.tolist() for k, v in data.user_labels.items()} == {
        "age": [39, 49],
        "gender": ["F", "M"],
        "occupation": ["executive", "writer"],
    }
    assert data.item_labels["title"].tolist() == ["Misérables, Les (1995)", "L.A."]
    assert data.item_labels["genres"].tolist() == ["Action|Drama", ""]


def test_movielens_1m_and_10m_dat(tmp_path: Path) -> None:
    files = write(
        tmp_path,
        ratings_0dat="1::122::5::838985046\n1::185::4.5::838983525\n9::122::0.5::838983392\n",
        movies_0dat="122::Boomerang: A Film (1992)::Comedy|Romance\n185::Net, The (1995)::Action\n7::Unrated::Drama\n",
        users_0dat="1::F::1::10::48067\n9::M::56::16::70072\n",
    )
    data = readers.movielens_dat(files)
    assert rows(data) == [(1, 122, 5.0, 838985046), (1, 185, 4.5, 838983525), (9, 122, 0.5, 838983392)]
    assert data.item_labels["title"].tolist() == ["Boomerang: A Film (1992)", "Net, The (1995)"]
    assert data.user_labels["age"].tolist() == [1, 56]
    assert data.user_labels["gender"].tolist() == ["F", "M"]
    (tmp_path / "users.dat").unlink()
    (tmp_path / "movies.dat").unlink()
    bare = readers.movielens_dat(Files(tmp_path))
    assert rows(bare) == rows(data)
    assert not bare.item_labels
    assert not bare.user_labels


def test_movielens_1m_with_graphs(tmp_path: Path) -> None:
    ratings = [(1, 10), (1, 20), (2, 20), (3, 30), (4, 40), *((5, movie) for movie in range(100, 160))]
    people = "1::F::18::1::a\n2::M::18::1::a\n3::F::25::1::a\n4::F::18::1::a\n5::M::18::1::a\n"
    write(
        tmp_path,
        **{"ml-1m__ratings_0dat": "".join(f"{user}::{movie}::3::7\n" for user, movie in ratings)},
        **{"ml-1m__users_0dat": people},
    )
    # A name within a name is another name, a cast may be unknown, and a movie may be one that nobody here has rated.
    casts = {10: "Ann Lee, Bo", 20: "Bo,Ann Lee , Cy", 30: "N/A", 40: "Cy, Ann Leeds", 77: "Cy", 101: "N/A"}
    lines = [f"{movie}::T: 1::95::G::d::g::Ann Lee::w::{cast}::plot::p\n" for movie, cast in casts.items()]
    files = write(tmp_path / "ml-1m-kg", movies_extrainfos_0dat="".join(lines))
    data = readers.movielens_graphs(files)
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
        readers.movielens_graphs(files)
    (tmp_path / "ml-1m" / "ratings.dat").unlink()
    with pytest.raises(CorankError, match=r"corank data fetch ml-1m$"):
        readers.movielens_graphs(files)


def test_movielens_20m_and_25m_csv_in_a_zip(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "ml-25m.zip", "w") as archive:
        archive.writestr(
            "ml-25m/ratings.csv", "userId,movieId,rating,timestamp\n1,296,5.0,1147880044\n2,1,3.5,1141415820\n"
        )
        archive.writestr("ml-25m/movies.csv", 'movieId,title,genres\n1,"American President, The ""A"" (1995)",Drama\n')
        archive.writestr("ml-25m/tags.csv", "userId,movieId,tag,timestamp\n")
    data = readers.movielens_csv(Files(tmp_path / "ml-25m.zip"))
    assert rows(data) == [(1, 296, 5.0, 1147880044), (2, 1, 3.5, 1141415820)]
    assert data.item_labels["title"].tolist() == ['American President, The "A" (1995)', ""]


def test_pairs_keep_order_and_repeats(tmp_path: Path) -> None:
    files = Files(tmp_path)
    (tmp_path / "Steam.txt.gz").write_bytes(gzip.compress(b"1 9\n1 3\n1 9\n2 3\n"))
    data = readers.pairs("Steam.txt", files)
    assert rows(data) == [(1, 9, 1.0, 0), (1, 3, 1.0, 1), (1, 9, 1.0, 2), (2, 3, 1.0, 3)]  # the place is the time
    assert data.items.ids[data.sequences().index].tolist() == [9, 3, 9, 3]


def test_the_two_sequence_forms_are_not_mixed_up(tmp_path: Path) -> None:
    write(tmp_path, a="1 5 6 7\n2 5\n", b="1 5\n1 6\n2 5\n")
    with pytest.raises(CorankError, match="first line of a has 4 fields"):
        readers.pairs("a", Files(tmp_path))
    with pytest.raises(CorankError, match="several lines for one user"):
        readers.lines("b", Files(tmp_path))


def test_lines(tmp_path: Path) -> None:
    files = write(tmp_path, a="7 3 1 3\n2 8\n\n5 \n")
    assert rows(readers.lines("a", files)) == [(7, 3, 1.0, 0), (7, 1, 1.0, 1), (7, 3, 1.0, 2), (2, 8, 1.0, 3)]
    with pytest.raises(CorankError, match="not in the published layout"):
        readers.lines("a", write(tmp_path, a="7 3 x\n"))


def test_lightgcn_split_shares_vocabularies(tmp_path: Path) -> None:
    # A user without test items has a line with the user alone, as in the published files.
    files = write(tmp_path, train_0txt="0 0 1 2\n1 3\n", test_0txt="0 4\n1 \n")
    data, is_test = readers.lines_split(files)
    assert rows(data) == [(0, 0, 1.0), (0, 1, 1.0), (0, 2, 1.0), (1, 3, 1.0), (0, 4, 1.0)]
    assert is_test.tolist() == [False, False, False, False, True]


def test_rated_split(tmp_path: Path) -> None:
    data, is_test = readers.rated_split("a", "b", " ", write(tmp_path, a="1 10 5\n2 10 3\n", b="1 20 4\n"))
    assert rows(data) == [(1, 10, 5.0), (2, 10, 3.0), (1, 20, 4.0)]
    assert is_test.tolist() == [False, False, True]


def test_foursquare(tmp_path: Path) -> None:
    files = write(
        tmp_path,
        checkin__trainData_0txt="USER_2 LOC_9 1.0\nUSER_2 LOC_1 3.0\n",
        checkin__testData_0txt="USER_1 LOC_9 2.0\n",
        FoursquareLocation_0txt="LOC_9 1.5 103.5\nLOC_7 0.0 0.0\n",
    )
    data, is_test = readers.foursquare(files)
    assert rows(data) == [("USER_2", "LOC_9", 1.0), ("USER_2", "LOC_1", 3.0), ("USER_1", "LOC_9", 2.0)]
    assert is_test.tolist() == [False, False, True]
    np.testing.assert_array_equal(data.item_labels["latitude"], [np.nan, 1.5])  # LOC_1, LOC_9


def write_hdf5(path: Path, **matrices: Any) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as out:
        for name, matrix in matrices.items():
            out[name] = np.asarray(matrix, np.float64).T  # MATLAB stores columns first


def test_monti_turns_the_matrices_and_keeps_everybody(tmp_path: Path) -> None:
    ratings = np.array([[5, 0, 0, 2], [0, 0, 0, 0], [0, 1, 0, 0]])  # 3 users, 4 items; user 1 and item 2 have nothing
    write_hdf5(
        tmp_path / "training_test_dataset.mat",
        M=ratings,
        Otraining=[[1, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 0]],
        Otest=[[0, 0, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0]],
        W_users=[[0, 1, 0], [0, 0, 0], [0, 0, 0]],  # directed here, so that a forgotten turn is seen
        W_movies=np.triu(np.ones((4, 4)), 1),
    )
    data, is_test = readers.monti(Files(tmp_path))
    assert (len(data.users), len(data.items)) == (3, 4)
    assert rows(data) == [(0, 0, 5.0), (0, 3, 2.0), (2, 1, 1.0)]
    assert is_test.tolist() == [False, True, False]
    assert data.user_graph is not None
    assert data.user_graph.scipy().toarray().tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 0]]
    assert data.item_graph is not None
    assert data.item_graph.indptr.tolist() == [0, 3, 5, 6, 6]


def test_monti_without_h5py_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(MissingExtra, match=r"corank\[mat\]"):
        readers.monti(Files(tmp_path))


def test_monti_file_that_is_something_else(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    with pytest.raises(CorankError, match="not in the published layout"):
        readers.monti(write(tmp_path, training_test_dataset_0mat="hello"))
    write_hdf5(tmp_path / "training_test_dataset.mat", M=np.eye(2))
    with pytest.raises(CorankError, match="Otraining"):
        readers.monti(Files(tmp_path))


def test_filmtrust_counts_users_of_the_trust_file(tmp_path: Path) -> None:
    files = write(tmp_path, ratings_0txt="1 7 2\n3 7 3.5\n1 7 4\n", trust_0txt="1 3 1\n9 1 1\n1 3 1\n")
    data = readers.filmtrust(files)
    assert data.users.ids.tolist() == [1, 3, 9]
    assert rows(data) == [(3, 7, 3.5), (1, 7, 4.0)]  # of the repeated pair the last one
    assert data.user_graph is not None
    assert data.user_graph.scipy().toarray().tolist() == [[0, 1, 0], [0, 0, 0], [1, 0, 0]]  # directed, an edge once


def test_filmtrust_has_three_columns(tmp_path: Path) -> None:
    """A fourth one would be lost: such a file is somebody's own."""
    with pytest.raises(CorankError, match="the first line has 4"):
        readers.filmtrust(write(tmp_path, ratings_0txt="1 7 2 1700000000\n", trust_0txt="1 3 1\n"))


def test_a_refusal_does_not_repeat_a_whole_file(tmp_path: Path) -> None:
    with pytest.raises(CorankError) as caught:
        readers.pairs("a", write(tmp_path, a="1 " + "x" * 5_000 + "\n"))
    assert len(str(caught.value)) < 600 + len(str(tmp_path))


RATED = np.array([[1, 50, 9, 4, 3], [2, 60, 9, 0, 3], [2, 50, 9, 5, 3], [1, 50, 9, 2, 3]], np.int32)


def test_ciao_and_epinions_without_times(tmp_path: Path) -> None:
    savemat(tmp_path / "rating.mat", {"rating": RATED})
    savemat(tmp_path / "trustnetwork.mat", {"trustnetwork": np.array([[1, 2], [7, 1]], np.uint16)})
    data = readers.ciao(Files(tmp_path))
    assert rows(data) == [(2, 50, 5.0), (1, 50, 2.0)]  # no row with rating 0; the last of the repeated pair
    assert data.users.ids.tolist() == [1, 2, 7]
    assert data.items.ids.tolist() == [50, 60]
    assert data.user_graph is not None
    assert data.user_graph.scipy().toarray().tolist() == [[0, 1, 0], [0, 0, 0], [1, 0, 0]]


def test_epinions_with_times_prefers_them_and_settles_by_time(tmp_path: Path) -> None:
    savemat(tmp_path / "rating.mat", {"rating": RATED})
    timed = np.column_stack([RATED, [400, 300, 200, 100]])
    savemat(tmp_path / "rating_with_timestamp.mat", {"rating_with_timestamp": timed})
    savemat(tmp_path / "trust.mat", {"trust": np.array([[1, 2]])})
    assert rows(readers.ciao(Files(tmp_path))) == [(1, 50, 4.0, 400), (2, 50, 5.0, 200)]


def test_ciao_damaged(tmp_path: Path) -> None:
    with pytest.raises(CorankError, match=r"rating\.mat is not in the published layout"):
        readers.ciao(write(tmp_path, rating_0mat="hello", trustnetwork_0mat="x"))
    savemat(tmp_path / "rating.mat", {"rating": RATED[:, :3]})
    with pytest.raises(CorankError, match="at least 5 columns"):
        readers.ciao(Files(tmp_path))


NETFLIX = "1:\n1488844,3,2005-09-06\n822109,5,2005-05-13\n2:\n822109,1,1999-11-11\n"
NETFLIX_ROWS = [
    (1488844, 1, 3.0, 1125964800),
    (822109, 1, 5.0, 1115942400),
    (822109, 2, 1.0, 942278400),
    (7, 3, 4.0, 0),
]


@pytest.mark.parametrize("block", [1, 30, 10**6])
def test_netflix_in_both_forms_whatever_the_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(corank.datasets.archive, "BLOCK_BYTES", block)
    kaggle = tmp_path / "kaggle"
    kaggle.mkdir()
    (kaggle / "combined_data_1.txt").write_text(NETFLIX)
    (kaggle / "combined_data_2.txt").write_text("3:\n7,4,1970-01-01")
    (kaggle / "movie_titles.csv").write_bytes(b"1,2003,Dinosaur Planet\n2,NULL,Isle of Man, Th\xe9\n")
    data = readers.netflix(Files(kaggle))
    assert rows(data) == NETFLIX_ROWS
    assert data.item_labels["title"].tolist() == ["Dinosaur Planet", "Isle of Man, Thé", ""]
    assert data.item_labels["year"].tolist() == ["2003", "", ""]

    single = tmp_path / "prize" / "training_set"
    single.mkdir(parents=True)
    head, tail = NETFLIX.split("2:\n")
    for n, text in enumerate([head, "2:\n" + tail, "3:\n7,4,1970-01-01\n"], 1):
        (single / f"mv_{n:07d}.txt").write_text(text)
    assert rows(readers.netflix(Files(tmp_path / "prize"))) == NETFLIX_ROWS


@pytest.mark.parametrize(
    "text",
    ["1:\n5,3\n", "5,3,2005-09-06\n", "1:\n5,3,yesterday\n", "1:\nx,3,2005-09-06\n", "1:\n2000000000,3,2005-09-06\n"],
)
def test_netflix_unlike_the_published_files(tmp_path: Path, text: str) -> None:
    (tmp_path / "combined_data_1.txt").write_text(text)
    with pytest.raises(CorankError, match="not in the published layout"):
        readers.netflix(Files(tmp_path))


def test_netflix_empty(tmp_path: Path) -> None:
    (tmp_path / "combined_data_1.txt").write_text("")
    with pytest.raises(CorankError, match="no ratings"):
        readers.netflix(Files(tmp_path))
