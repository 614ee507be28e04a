"""Readers for the published layouts of MovieLens."""

from __future__ import annotations

import dataclasses

import numpy as np

from ..data import CSR, Array, Dataset, from_scipy
from ..errors import CorankError
from .archive import Files
from .entry import Info
from .location import locate, read_entry
from .published_tables import Parts, from_table, integers, labels, small_table, table, two_tables, with_labels


def ratings_100k(files: Files) -> Dataset:
    """`u.data` (tab-separated user, item, rating, time) with the labels of `u.user`, `u.item` and `u.genre`."""
    return _label_100k(from_table(table(files, "u.data", "\t", ("user", "item", "value", "time"))), files)


def ratings_100k_u1(files: Files) -> Parts:
    """The first published split: `u1.base` and `u1.test`."""
    data, is_test = two_tables(files, "u1.base", "u1.test", "\t", ("user", "item", "value", "time"))
    return _label_100k(data, files), is_test


def ratings_dat(files: Files) -> Dataset:
    """`ratings.dat`, separated by `::` (1M and 10M), with the labels of `users.dat` and `movies.dat` if they exist."""
    # polars knows only one-byte separators: `::` becomes an empty column between two real ones.
    data = from_table(table(files, "ratings.dat", ":", ("user", "", "item", "", "value", "", "time")))
    user_labels, item_labels = {}, {}
    if files.find("users.dat"):
        ids, gender, age, occupation, *_ = small_table(files, "users.dat", "::", 5)
        about = {"gender": gender, "age": integers(age, "users.dat"), "occupation": integers(occupation, "users.dat")}
        user_labels = labels(data.users, integers(ids, "users.dat"), about)
    if files.find("movies.dat"):
        ids, title, genres = small_table(files, "movies.dat", "::", 3)
        item_labels = labels(data.items, integers(ids, "movies.dat"), {"title": title, "genres": genres})
    return with_labels(data, user_labels, item_labels)


def ratings_with_graphs(ratings: Info, files: Files) -> Dataset:
    """MovieLens 1M (in a folder beside) restricted to users with fewer than 60 ratings, with a graph for each side.

    Movies are neighbours if `movies_extrainfos.dat` names a common actor (fields are separated by `::`, the ninth lists
    the actors, separated by commas); users are neighbours if they are in the same age group. All edges weigh 1.

    ratings : the catalogue's entry of MovieLens 1M, a dataset with its own folder and terms.
    """
    data = read_entry(ratings, locate(ratings, files.place.parent))
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


def ratings_csv(files: Files) -> Dataset:
    """`ratings.csv` and `movies.csv` with headers (20M, 25M, latest-small)."""
    frame = table(files, "ratings.csv", ",", ("user", "item", "value", "time"), header=True)
    data = from_table(frame)
    if not files.find("movies.csv"):
        return data
    movies = table(files, "movies.csv", ",", ("item", "title", "genres"), header=True)
    about = {name: movies[name].to_list() for name in ("title", "genres")}
    return with_labels(data, {}, labels(data.items, movies["item"].to_numpy(), about))


def _label_100k(data: Dataset, files: Files) -> Dataset:
    user_labels, item_labels = {}, {}
    if files.find("u.user"):
        ids, age, gender, occupation, *_ = small_table(files, "u.user", "|", 5)
        about = {"age": integers(age, "u.user"), "gender": gender, "occupation": occupation}
        user_labels = labels(data.users, integers(ids, "u.user"), about)
    if files.find("u.item"):
        ids, title, *_, flags = small_table(files, "u.item", "|", 5, rest=True)
        about = {"title": title}
        if files.find("u.genre"):
            names = [record[0] for record in files.records("u.genre", "|")]
            about["genres"] = [
                "|".join(n for n, f in zip(names, row.split("|"), strict=False) if f == "1") for row in flags
            ]
        item_labels = labels(data.items, integers(ids, "u.item"), about)
    return with_labels(data, user_labels, item_labels)


def _sharing(member: Array, group: Array, members: int, groups: int) -> CSR:
    """The graph with an edge of weight 1 between any two members of the same group."""
    from scipy.sparse import coo_array

    belongs = coo_array((np.ones(member.size, np.float32), (member, group)), shape=(members, groups)).tocsr()
    graph = (belongs @ belongs.T).tocsr()
    graph.setdiag(0)
    graph.eliminate_zeros()
    graph.sort_indices()
    return from_scipy(graph.sign())
