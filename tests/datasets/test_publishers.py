"""Each reader on small files in the published layout; the real files are in test_loading."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import savemat

from corank.datasets import publishers
from corank.datasets.archive import Files
from corank.errors import CorankError, MissingExtra
from places import put_files
from rows import rows_of


def test_pairs_keep_order_and_repeats(tmp_path: Path) -> None:
    files = Files(tmp_path)
    (tmp_path / "Steam.txt.gz").write_bytes(gzip.compress(b"1 9\n1 3\n1 9\n2 3\n"))
    data = publishers.pairs("Steam.txt", files)
    assert rows_of(data) == [(1, 9, 1.0, 0), (1, 3, 1.0, 1), (1, 9, 1.0, 2), (2, 3, 1.0, 3)]  # the place is the time
    assert data.items.ids[data.sequences().index].tolist() == [9, 3, 9, 3]


def test_the_two_sequence_forms_are_not_mixed_up(tmp_path: Path) -> None:
    put_files(tmp_path, a="1 5 6 7\n2 5\n", b="1 5\n1 6\n2 5\n")
    with pytest.raises(CorankError, match="first line of a has 4 fields"):
        publishers.pairs("a", Files(tmp_path))
    with pytest.raises(CorankError, match="several lines for one user"):
        publishers.lines("b", Files(tmp_path))


def test_lines(tmp_path: Path) -> None:
    files = put_files(tmp_path, a="7 3 1 3\n2 8\n\n5 \n")
    assert rows_of(publishers.lines("a", files)) == [(7, 3, 1.0, 0), (7, 1, 1.0, 1), (7, 3, 1.0, 2), (2, 8, 1.0, 3)]
    with pytest.raises(CorankError, match="not in the published layout"):
        publishers.lines("a", put_files(tmp_path, a="7 3 x\n"))


def test_lightgcn_split_shares_vocabularies(tmp_path: Path) -> None:
    # A user without test items has a line with the user alone, as in the published files.
    files = put_files(tmp_path, train_0txt="0 0 1 2\n1 3\n", test_0txt="0 4\n1 \n")
    data, is_test = publishers.lines_split(files)
    assert rows_of(data) == [
        (0, 0, 1.0, None),
        (0, 1, 1.0, None),
        (0, 2, 1.0, None),
        (1, 3, 1.0, None),
        (0, 4, 1.0, None),
    ]
    assert is_test.tolist() == [False, False, False, False, True]


def test_rated_split(tmp_path: Path) -> None:
    data, is_test = publishers.rated_split("a", "b", " ", put_files(tmp_path, a="1 10 5\n2 10 3\n", b="1 20 4\n"))
    assert rows_of(data) == [(1, 10, 5.0, None), (2, 10, 3.0, None), (1, 20, 4.0, None)]
    assert is_test.tolist() == [False, False, True]


def test_foursquare(tmp_path: Path) -> None:
    files = put_files(
        tmp_path,
        checkin__trainData_0txt="USER_2 LOC_9 1.0\nUSER_2 LOC_1 3.0\n",
        checkin__testData_0txt="USER_1 LOC_9 2.0\n",
        FoursquareLocation_0txt="LOC_9 1.5 103.5\nLOC_7 0.0 0.0\n",
    )
    data, is_test = publishers.foursquare(files)
    assert rows_of(data) == [
        ("USER_2", "LOC_9", 1.0, None),
        ("USER_2", "LOC_1", 3.0, None),
        ("USER_1", "LOC_9", 2.0, None),
    ]
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
    data, is_test = publishers.monti(Files(tmp_path))
    assert (len(data.users), len(data.items)) == (3, 4)
    assert rows_of(data) == [(0, 0, 5.0, None), (0, 3, 2.0, None), (2, 1, 1.0, None)]
    assert is_test.tolist() == [False, True, False]
    assert data.user_graph is not None
    assert data.user_graph.scipy().toarray().tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 0]]
    assert data.item_graph is not None
    assert data.item_graph.indptr.tolist() == [0, 3, 5, 6, 6]


def test_monti_without_h5py_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(MissingExtra, match=r"corank\[mat\]"):
        publishers.monti(Files(tmp_path))


def test_monti_file_that_is_something_else(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    with pytest.raises(CorankError, match="not in the published layout"):
        publishers.monti(put_files(tmp_path, training_test_dataset_0mat="hello"))
    write_hdf5(tmp_path / "training_test_dataset.mat", M=np.eye(2))
    with pytest.raises(CorankError, match="Otraining"):
        publishers.monti(Files(tmp_path))


def test_filmtrust_counts_users_of_the_trust_file(tmp_path: Path) -> None:
    files = put_files(tmp_path, ratings_0txt="1 7 2\n3 7 3.5\n1 7 4\n", trust_0txt="1 3 1\n9 1 1\n1 3 1\n")
    data = publishers.filmtrust(files)
    assert data.users.ids.tolist() == [1, 3, 9]
    assert rows_of(data) == [(3, 7, 3.5, None), (1, 7, 4.0, None)]  # of the repeated pair the last one
    assert data.user_graph is not None
    assert data.user_graph.scipy().toarray().tolist() == [[0, 1, 0], [0, 0, 0], [1, 0, 0]]  # directed, an edge once


def test_filmtrust_has_three_columns(tmp_path: Path) -> None:
    """A fourth one would be lost: such a file is somebody's own."""
    with pytest.raises(CorankError, match="the first line has 4"):
        publishers.filmtrust(put_files(tmp_path, ratings_0txt="1 7 2 1700000000\n", trust_0txt="1 3 1\n"))


def test_a_refusal_does_not_repeat_a_whole_file(tmp_path: Path) -> None:
    with pytest.raises(CorankError) as caught:
        publishers.pairs("a", put_files(tmp_path, a="1 " + "x" * 5_000 + "\n"))
    assert len(str(caught.value)) < 600 + len(str(tmp_path))


RATED = np.array([[1, 50, 9, 4, 3], [2, 60, 9, 0, 3], [2, 50, 9, 5, 3], [1, 50, 9, 2, 3]], np.int32)


def test_ciao_and_epinions_without_times(tmp_path: Path) -> None:
    savemat(tmp_path / "rating.mat", {"rating": RATED})
    savemat(tmp_path / "trustnetwork.mat", {"trustnetwork": np.array([[1, 2], [7, 1]], np.uint16)})
    data = publishers.ciao(Files(tmp_path))
    assert rows_of(data) == [
        (2, 50, 5.0, None),
        (1, 50, 2.0, None),
    ]  # no rating 0; the last of a repeated pair
    assert data.users.ids.tolist() == [1, 2, 7]
    assert data.items.ids.tolist() == [50, 60]
    assert data.user_graph is not None
    assert data.user_graph.scipy().toarray().tolist() == [[0, 1, 0], [0, 0, 0], [1, 0, 0]]


def test_epinions_with_times_prefers_them_and_settles_by_time(tmp_path: Path) -> None:
    savemat(tmp_path / "rating.mat", {"rating": RATED})
    timed = np.column_stack([RATED, [400, 300, 200, 100]])
    savemat(tmp_path / "rating_with_timestamp.mat", {"rating_with_timestamp": timed})
    savemat(tmp_path / "trust.mat", {"trust": np.array([[1, 2]])})
    assert rows_of(publishers.ciao(Files(tmp_path))) == [(1, 50, 4.0, 400), (2, 50, 5.0, 200)]


def test_ciao_damaged(tmp_path: Path) -> None:
    with pytest.raises(CorankError, match=r"rating\.mat is not in the published layout"):
        publishers.ciao(put_files(tmp_path, rating_0mat="hello", trustnetwork_0mat="x"))
    savemat(tmp_path / "rating.mat", {"rating": RATED[:, :3]})
    with pytest.raises(CorankError, match="at least 5 columns"):
        publishers.ciao(Files(tmp_path))
