"""Readers for the published layouts of public datasets.

Each takes the `Files` of a set. One that returns `Parts` reads a set that comes with its own split: all rows, and which
of them are test. Rows are kept as published unless a rule is stated; large text goes through polars, never through a
Python loop over rows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..data import CSR, Array, Dataset, Vocab, from_arrays, from_scipy, settle_duplicates
from ..errors import CorankError, MissingExtra
from .archive import Files, integers, small_table, table, unlike

if TYPE_CHECKING:
    import polars as pl

Parts = tuple[Dataset, NDArray[np.bool_]]

DAY = 86_400
NETFLIX_LARGEST_ID = 10_000_000


# --- MovieLens ------------------------------------------------------------------------------------


def movielens_100k(files: Files) -> Dataset:
    """`u.data` (tab: user, item, rating, time) with the labels of `u.user`, `u.item` and `u.genre`."""
    return _label_100k(_from_table(table(files, "u.data", "\t", ("user", "item", "value", "time"))), files)


def movielens_100k_u1(files: Files) -> Parts:
    """The first published split: `u1.base` and `u1.test`."""
    data, is_test = _two_tables(files, "u1.base", "u1.test", "\t", ("user", "item", "value", "time"))
    return _label_100k(data, files), is_test


def movielens_dat(files: Files) -> Dataset:
    """`ratings.dat` with `::` between the fields (1M and 10M), `users.dat` where there is one, `movies.dat`."""
    # A one-byte separator is what the fast reader knows: `::` is then an empty column between two real ones.
    data = _from_table(table(files, "ratings.dat", ":", ("user", "", "item", "", "value", "", "time")))
    user_labels, item_labels = {}, {}
    if files.find("users.dat"):
        ids, gender, age, occupation, *_ = small_table(files, "users.dat", "::", 5)
        about = {"gender": gender, "age": integers(age, "users.dat"), "occupation": integers(occupation, "users.dat")}
        user_labels = _labels(data.users, integers(ids, "users.dat"), about)
    if files.find("movies.dat"):
        ids, title, genres = small_table(files, "movies.dat", "::", 3)
        item_labels = _labels(data.items, integers(ids, "movies.dat"), {"title": title, "genres": genres})
    return _with_labels(data, user_labels, item_labels)


def movielens_graphs(files: Files) -> Dataset:
    """MovieLens 1M (of the folder beside) for its users with fewer than 60 ratings, with a graph of each side.

    Movies are neighbours when they name a common actor in `movies_extrainfos.dat` (`::`; the actors are the ninth
    field, with commas between them), users when they are of one age group. An edge weighs 1, however much is shared.
    """
    from .loading import load  # the ratings are a set of their own, with their own place and terms

    data = load("ml-1m", files.place.parent)
    if "age" not in data.user_labels:
        raise CorankError("the graph of age groups needs users.dat beside the ratings of ml-1m: get the set again")
    data = data.take(np.bincount(data.user)[data.user] < 60).compact()
    columns = small_table(files, "movies_extrainfos.dat", "::", 11)
    casts = [list({name.strip() for name in cast.split(",")} - {"", "N/A"}) for cast in columns[8]]
    actors, actor = np.unique([name for cast in casts for name in cast], return_inverse=True)
    movie = np.repeat(data.items.codes(integers(columns[0], "movies_extrainfos.dat")), [len(cast) for cast in casts])
    known = movie >= 0
    ages, age = np.unique(data.user_labels["age"], return_inverse=True)
    return dataclasses.replace(
        data,
        user_graph=_sharing(np.arange(age.size), age, age.size, ages.size),
        item_graph=_sharing(movie[known], actor[known], len(data.items), actors.size),
    )


def _sharing(member: Array, group: Array, members: int, groups: int) -> CSR:
    """An edge of weight 1 between any two members of a common group."""
    from scipy.sparse import coo_array

    belongs = coo_array((np.ones(member.size, np.float32), (member, group)), shape=(members, groups)).tocsr()
    graph = (belongs @ belongs.T).tocsr()
    graph.setdiag(0)
    graph.eliminate_zeros()
    graph.sort_indices()
    return from_scipy(graph.sign())


def movielens_csv(files: Files) -> Dataset:
    """`ratings.csv` and `movies.csv` with header lines (20M, 25M, latest, latest-small)."""
    frame = table(files, "ratings.csv", ",", ("user", "item", "value", "time"), header=True)
    data = _from_table(frame)
    if not files.find("movies.csv"):
        return data
    movies = table(files, "movies.csv", ",", ("item", "title", "genres"), header=True)
    about = {name: movies[name].to_list() for name in ("title", "genres")}
    return _with_labels(data, {}, _labels(data.items, movies["item"].to_numpy(), about))


def _label_100k(data: Dataset, files: Files) -> Dataset:
    user_labels, item_labels = {}, {}
    if files.find("u.user"):
        ids, age, gender, occupation, *_ = small_table(files, "u.user", "|", 5)
        about = {"age": integers(age, "u.user"), "gender": gender, "occupation": occupation}
        user_labels = _labels(data.users, integers(ids, "u.user"), about)
    if files.find("u.item"):
        ids, title, *_, flags = small_table(files, "u.item", "|", 5, rest=True)
        about = {"title": title}
        if files.find("u.genre"):
            names = [record[0] for record in files.records("u.genre", "|")]
            about["genres"] = [
                "|".join(n for n, f in zip(names, row.split("|"), strict=False) if f == "1") for row in flags
            ]
        item_labels = _labels(data.items, integers(ids, "u.item"), about)
    return _with_labels(data, user_labels, item_labels)


# --- sequences and sets of items ------------------------------------------------------------------


def pairs(file: str, files: Files) -> Dataset:
    """`user item` a line, each user's lines in time order, so the place in the file is the time; repeats stay."""
    fields = len(files.first_line(file).split())
    if fields != 2:
        raise CorankError(
            f"{files.place}: the first line of {file} has {fields} fields and `user item` lines have 2; "
            "this is another edition of the set"
        )
    return _from_table(table(files, file, " ", ("user", "item")).with_row_index("time"))


def lines(file: str, files: Files) -> Dataset:
    """`user item item ...`, one line a user, items in time order, so a row's place is its time; repeats stay."""
    user, item = _item_lines(files, file)
    return from_arrays(user=user, item=item, time=np.arange(item.size), duplicates="keep")


def lines_split(files: Files) -> Parts:
    """`train.txt` and `test.txt`, each in the `user item item ...` form, the items in no order that means time."""
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
        raise unlike(files, name, "one line a user: `user item item ...`, all integers", error) from error
    return np.repeat(user.to_numpy(), counts), item


# --- published splits -----------------------------------------------------------------------------


def rated_split(train: str, test: str, separator: str, files: Files) -> Parts:
    """Two files of `user item rating` lines."""
    return _two_tables(files, train, test, separator, ("user", "item", "value"))


def rated(file: str, files: Files) -> Dataset:
    """One file of `user,item,rating` lines without a header."""
    return _from_table(table(files, file, ",", ("user", "item", "value")))


def foursquare(files: Files) -> Parts:
    """`checkin/trainData.txt` and `testData.txt`: user, place, number of visits; places have coordinates."""
    columns = ("user", "item", "value")
    names = ("checkin/trainData.txt", "checkin/testData.txt")
    data, is_test = _two_tables(files, *names, " ", columns, text=("user", "item"))
    if files.find("FoursquareLocation.txt"):
        places = table(files, "FoursquareLocation.txt", " ", ("item", "latitude", "longitude"), text=("item",))
        about = {name: places[name].to_numpy() for name in ("latitude", "longitude")}
        data = _with_labels(data, {}, _labels(data.items, places["item"].to_list(), about))
    return data, is_test


def monti(files: Files) -> Parts:
    """`M`, `Otraining`, `Otest` (3000 x 3000) and the graphs `W_users`, `W_movies` or `W_tracks` of a MATLAB v7.3 file.

    Ids are the row and column numbers of the matrix from 0. All of them stay, also those without a rating: the graphs
    are aligned with them.
    """
    try:
        import h5py
    except ImportError:
        raise MissingExtra("reading MATLAB v7.3 files", "mat") from None
    name = files.require("training_test_dataset.mat")
    try:
        with h5py.File(BytesIO(files.read(name)), "r") as stored:
            # MATLAB writes columns first, so Python sees each matrix transposed.
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
    """`ratings.txt` and `trust.txt` (truster, trusted, 1: directed); of a repeated pair the last rating counts."""
    ratings = table(files, "ratings.txt", " ", ("user", "item", "value"), exact=True)
    trust = table(files, "trust.txt", " ", ("user", "trusted"))
    user, item, value = (ratings[name].to_numpy() for name in ("user", "item", "value"))
    return _social(user, item, value, None, trust.to_numpy())


def ciao(files: Files) -> Dataset:
    """Ciao, Epinions: `rating` (user, item, category, rating, helpfulness[, time]), `trustnetwork` (truster, trusted).

    The edition with times is taken where it is there. Ratings run from 1 to 5: rows with 0 hold no rating and are left
    out (their users and items stay in the vocabularies); of a repeated pair the last one counts.
    """
    rows = _matlab(files, "*rating_with_timestamp.mat or rating.mat", 5)
    trust = _matlab(files, "trustnetwork.mat or trust.mat", 2)
    time = rows[:, 5] if rows.shape[1] > 5 else None
    return _social(rows[:, 0], rows[:, 1], rows[:, 3], time, trust[:, :2])


def _matlab(files: Files, pattern: str, columns: int) -> Array:
    """The one matrix of a MATLAB file (before v7.3) that has at least that many columns."""
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


def _social(user: Array, item: Array, value: Array, time: Array | None, trust: Array) -> Dataset:
    """Users who occur only in the trust table are users too; an edge counts once, whatever the number of its rows."""
    users, codes = Vocab.build(np.concatenate([user, trust[:, 0], trust[:, 1]]), "user")
    items, item_codes = Vocab.build(item, "item")
    user_codes, source, target = np.split(codes, [user.size, user.size + len(trust)])
    from scipy.sparse import coo_array

    graph = from_scipy(coo_array((np.ones(len(trust)), (source, target)), shape=(len(users), len(users))))
    graph = CSR(graph.indptr, graph.index, np.ones_like(graph.value), graph.columns)
    data = Dataset(users, items, user_codes, item_codes, value, time, user_graph=graph)
    return settle_duplicates(data.take(data.value > 0), "last", tell=True)


# --- Netflix prize --------------------------------------------------------------------------------


def netflix(files: Files) -> Dataset:
    """`combined_data_*.txt` or `training_set/mv_*.txt`: a line `movie:`, then `user,rating,date` lines; titles if any.

    100 million rows: read block by block into the narrowest types, so that the peak is little more than the dataset.
    """
    names = files.find("combined_data_*.txt or training_set/mv_*.txt")
    parts: list[tuple[Array, Array, Array, Array]] = []
    movie: int | None = None
    for block in files.blocks(names):
        user, item, rating, day, movie = _netflix_block(files, block, movie)
        parts.append((user, item, rating, day))
    columns = list(zip(*parts, strict=True))
    if not columns:
        raise CorankError(f"{files.place}: the Netflix files hold no ratings; get them again")
    users, user_codes = _dense_codes(columns[0])
    items, item_codes = _dense_codes(columns[1])
    data = Dataset(
        users,
        items,
        user_codes,
        item_codes,
        np.concatenate(columns[2]).astype(np.float32),
        np.concatenate(columns[3]).astype(np.int64) * DAY,
    )
    if not files.find("movie_titles.txt or movie_titles.csv"):
        return data
    # id,year,title: a title may hold commas, and the year may be NULL.
    ids, year, title = small_table(files, "movie_titles.txt or movie_titles.csv", ",", 2, rest=True)
    about = {"title": title, "year": [y if y != "NULL" else "" for y in year]}
    return _with_labels(data, {}, _labels(data.items, integers(ids, "movie_titles"), about))


def _netflix_block(files: Files, block: bytes, movie: int | None) -> tuple[Array, Array, Array, Array, int | None]:
    import polars as pl

    expected = "a line `movie:`, then lines `user,rating,yyyy-mm-dd`"
    try:
        # The reader takes the number of fields from the first line, and a block may begin with `movie:`.
        schema = {"user": pl.String, "rating": pl.UInt8, "date": pl.String}
        frame = pl.read_csv(b"0,0,1970-01-01\n" + block, has_header=False, schema=schema, quote_char=None)[1:]
        header = pl.col("user").str.ends_with(":")
        frame = frame.with_columns(
            item=pl.when(header)
            .then(pl.col("user").str.strip_suffix(":"))
            .cast(pl.Int32)
            .forward_fill()
            .fill_null(pl.lit(movie, pl.Int32))
        )
        last = frame["item"][-1]
        frame = frame.filter(~header).select(
            pl.col("user").cast(pl.Int32), "item", "rating", day=pl.col("date").str.to_date("%Y-%m-%d").cast(pl.Int32)
        )
    except pl.exceptions.PolarsError as error:
        raise unlike(files, "a Netflix file", expected, error) from error
    largest = max((frame[name].max() or 0 for name in ("user", "item")), default=0)
    if any(frame.null_count().row(0)) or largest > NETFLIX_LARGEST_ID:  # type: ignore[operator]
        raise unlike(files, "a Netflix file", expected, "a line has fewer fields, or an id that is far too large")
    user, item, rating, day = (frame[name].to_numpy() for name in ("user", "item", "rating", "day"))
    return user, item, rating, day, last


def _dense_codes(parts: Sequence[Array]) -> tuple[Vocab, NDArray[np.int32]]:
    """Vocabulary and codes of a column in pieces, without a wide copy of the whole of it."""
    present = np.zeros(1 + max(int(part.max(initial=0)) for part in parts), np.bool_)
    for part in parts:
        present[part] = True
    code = np.cumsum(present, dtype=np.int32) - np.int32(1)
    return Vocab(np.flatnonzero(present).astype(np.int64)), np.concatenate([code[part] for part in parts])


# --- shared by the readers ------------------------------------------------------------------------


def _from_table(frame: pl.DataFrame) -> Dataset:
    # The published sets name a pair once, or mean the repeats (sequences): every row stays.
    columns: dict[str, Any] = {c.name: c.to_numpy() if c.dtype.is_numeric() else c for c in frame}
    return from_arrays(**columns, duplicates="keep")


def _two_tables(
    files: Files, train: str, test: str, separator: str, columns: tuple[str, ...], text: tuple[str, ...] = ()
) -> Parts:
    import polars as pl

    frames = [table(files, name, separator, columns, text=text) for name in (train, test)]
    data = _from_table(pl.concat(frames))
    return data, np.arange(len(data)) >= len(frames[0])


def _labels(vocab: Vocab, ids: Any, columns: Mapping[str, Any]) -> dict[str, Array]:
    """Columns keyed by id as arrays over the vocabulary; '' or -1 or NaN where nothing is said."""
    codes = vocab.codes(ids)
    known = codes >= 0
    labels = {}
    for name, column in columns.items():
        values = np.asarray(column, object) if isinstance(column, list) else column
        missing: Any = {"O": "", "f": np.nan}.get(values.dtype.kind, -1)
        label = np.full(len(vocab), missing, values.dtype)
        label[codes[known]] = values[known]
        labels[name] = label
    return labels


def _with_labels(data: Dataset, users: dict[str, Array], items: dict[str, Array]) -> Dataset:
    return dataclasses.replace(data, user_labels=users, item_labels=items)
