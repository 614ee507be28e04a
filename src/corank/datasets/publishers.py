"""Readers for the published layouts of public datasets; MovieLens, Netflix and sets of friends have files of their own.

Each takes the `Files` of a set. Readers that return `Parts` are for sets with a published split: all rows, and which
of them are test rows. Rows are kept as published unless the docstring states a rule. Large files are parsed by polars,
never by a Python loop over rows.
"""

from __future__ import annotations

from io import BytesIO

import numpy as np

from ..data import CSR, Array, Dataset, Vocab, from_arrays, from_scipy, settle_duplicates
from ..errors import CorankError, MissingExtra
from .archive import Files
from .published_tables import Parts, from_table, labels, table, two_tables, unlike, with_labels

# --- sequences and sets of items ------------------------------------------------------------------


def pairs(file: str, files: Files) -> Dataset:
    """Lines `user item`, each user's in time order: the position in the file is the time. Repeated pairs are kept."""
    fields = len(files.first_line(file).split())
    if fields != 2:
        raise CorankError(
            f"{files.place}: the first line of {file} has {fields} fields and `user item` lines have 2; "
            "this is another edition of the set"
        )
    return from_table(table(files, file, " ", ("user", "item")).with_row_index("time"))


def lines(file: str, files: Files) -> Dataset:
    """One line `user item item ...` per user, in time order: the position is the time. Repeated pairs are kept."""
    user, item = _item_lines(files, file)
    return from_arrays(user=user, item=item, time=np.arange(item.size), duplicates="keep")


def lines_split(files: Files) -> Parts:
    """`train.txt` and `test.txt`, each with one line `user item item ...` per user, in no order of time."""
    read = [_item_lines(files, name) for name in ("train.txt", "test.txt")]
    user, item = (np.concatenate(side) for side in zip(*read, strict=True))
    data = from_arrays(user=user, item=item, duplicates="keep")
    return data, np.arange(len(data)) >= read[0][0].size


def _item_lines(files: Files, file: str) -> tuple[Array, Array]:
    import polars as pl

    name = files.require(file)
    try:
        # A separator that text does not contain: each line is one string.
        text = pl.read_csv(files.source(name), has_header=False, separator="\x1f", quote_char=None, infer_schema=False)
        words = text.to_series().drop_nulls().str.strip_chars().str.replace_all(r"\s+", " ").str.split(" ")
        words = words.filter(words.list.first() != "")
        user = words.list.first().cast(pl.Int64)
        if user.n_unique() < user.len():
            raise CorankError(
                f"{files.place}: {name} has several lines for one user and the `user item item ...` form has one; "
                "this is another edition of the set"
            )
        rest = words.list.slice(1)
        counts = rest.list.len().to_numpy()
        item = rest.filter(rest.list.len() > 0).explode().cast(pl.Int64).to_numpy()
    except pl.exceptions.PolarsError as error:
        raise unlike(files, name, "one line per user: `user item item ...`, all integers", error) from error
    return np.repeat(user.to_numpy(), counts), item


# --- published splits -----------------------------------------------------------------------------


def rated_split(train: str, test: str, separator: str, files: Files) -> Parts:
    """Two files with lines `user item rating`."""
    return two_tables(files, train, test, separator, ("user", "item", "value"))


def rated(file: str, files: Files) -> Dataset:
    """One file with lines `user,item,rating` and no header."""
    return from_table(table(files, file, ",", ("user", "item", "value")))


def foursquare(files: Files) -> Parts:
    """`checkin/trainData.txt` and `testData.txt`: user, place, number of visits; coordinates are item labels."""
    columns = ("user", "item", "value")
    names = ("checkin/trainData.txt", "checkin/testData.txt")
    data, is_test = two_tables(files, *names, " ", columns, text=("user", "item"))
    if files.find("FoursquareLocation.txt"):
        places = table(files, "FoursquareLocation.txt", " ", ("item", "latitude", "longitude"), text=("item",))
        about = {name: places[name].to_numpy() for name in ("latitude", "longitude")}
        data = with_labels(data, {}, labels(data.items, places["item"].to_list(), about))
    return data, is_test


def monti(files: Files) -> Parts:
    """`M`, `Otraining`, `Otest` (3000 x 3000) and the graphs `W_users`, `W_movies` or `W_tracks` of a MATLAB v7.3 file.

    Ids are the row and column numbers of the matrix, from 0. Users and items without ratings are kept, because the
    graphs are over all of them.
    """
    try:
        import h5py
    except ImportError:
        raise MissingExtra("reading MATLAB v7.3 files", "mat") from None
    name = files.require("training_test_dataset.mat")
    try:
        with h5py.File(BytesIO(files.read(name)), "r") as stored:
            # MATLAB stores matrices by column, so h5py reads them transposed.
            matrix = {key: np.asarray(stored[key]).T for key in stored if not key.startswith("#")}
        ratings, is_train, is_test = (matrix[key] for key in ("M", "Otraining", "Otest"))
    except (OSError, KeyError, TypeError) as error:
        raise unlike(files, name, "MATLAB v7.3 with M, Otraining and Otest", error) from error
    user, item = np.nonzero((is_train != 0) | (is_test != 0))
    graphs = {key: from_scipy(matrix[key]) for key in ("W_users", "W_movies", "W_tracks") if key in matrix}
    data = Dataset(
        Vocab(np.arange(ratings.shape[0])),
        Vocab(np.arange(ratings.shape[1])),
        user.astype(np.int32),
        item.astype(np.int32),
        ratings[user, item],
        user_graph=graphs.get("W_users"),
        item_graph=graphs.get("W_movies", graphs.get("W_tracks")),
    )
    return data, is_test[user, item] != 0


# --- ratings with a trust graph -------------------------------------------------------------------


def filmtrust(files: Files) -> Dataset:
    """`ratings.txt` and `trust.txt` (directed: truster, trusted, 1); of a repeated pair the last rating is kept."""
    ratings = table(files, "ratings.txt", " ", ("user", "item", "value"), exact=True)
    trust = table(files, "trust.txt", " ", ("user", "trusted"))
    user, item, value = (ratings[name].to_numpy() for name in ("user", "item", "value"))
    return social(user, item, value, None, trust.to_numpy())


def ciao(files: Files) -> Dataset:
    """Ciao, Epinions: `rating` (user, item, category, rating, helpfulness[, time]), `trustnetwork` (truster, trusted).

    The edition with times is preferred. Ratings are 1 to 5: rows with 0 are no ratings and are dropped (their users and
    items stay in the vocabularies); of a repeated pair the last rating is kept.
    """
    rows = _matlab(files, "*rating_with_timestamp.mat or rating.mat", 5)
    trust = _matlab(files, "trustnetwork.mat or trust.mat", 2)
    time = rows[:, 5] if rows.shape[1] > 5 else None
    return social(rows[:, 0], rows[:, 1], rows[:, 3], time, trust[:, :2])


def _matlab(files: Files, pattern: str, columns: int) -> Array:
    """The only matrix of a MATLAB file (before v7.3) with at least this many columns."""
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    name = files.require(pattern)
    try:
        stored = loadmat(BytesIO(files.read(name)))
    except (MatReadError, ValueError, TypeError, NotImplementedError, OSError) as error:
        raise unlike(files, name, "a MATLAB matrix (v5)", error) from error
    fitting = [m for k, m in stored.items() if not k.startswith("__") and m.ndim == 2 and m.shape[1] >= columns]
    if len(fitting) != 1 or fitting[0].dtype.kind not in "iuf":
        raise unlike(files, name, f"one matrix of numbers with at least {columns} columns", f"found {sorted(stored)}")
    return np.asarray(fitting[0])


def social(user: Array, item: Array, value: Array, time: Array | None, trust: Array) -> Dataset:
    """Ratings with a user graph. Users that occur only in the table of edges are users too; repeated edges count once.

    Rows with value 0 are no ratings and are dropped; of a repeated pair the last rating is kept.
    """
    users, codes = Vocab.build(np.concatenate([user, trust[:, 0], trust[:, 1]]), "user")
    items, item_codes = Vocab.build(item, "item")
    user_codes, source, target = np.split(codes, [user.size, user.size + len(trust)])
    from scipy.sparse import coo_array

    graph = from_scipy(coo_array((np.ones(len(trust)), (source, target)), shape=(len(users), len(users))))
    graph = CSR(graph.indptr, graph.index, np.ones_like(graph.value), graph.columns)
    data = Dataset(users, items, user_codes, item_codes, value, time, user_graph=graph)
    return settle_duplicates(data.take(data.value > 0), "last", tell=True)
