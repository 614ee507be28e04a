"""Named datasets: the catalogue, where they are looked for, and the real files against their measured counts."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

import corank as cr
from corank import datasets
from corank.datasets.catalogue import CATALOGUE
from corank.errors import CorankError
from places import RATINGS_DAT, put, put_zip

# --- the catalogue ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_every_entry_is_complete(name: str) -> None:
    entry = datasets.info(name)
    assert entry.name == name
    assert entry.title
    assert entry.citation
    assert entry.terms
    assert entry.publisher
    assert entry.files
    assert (entry.read is None) != (entry.read_split is None) or name == "ml-100k"
    assert all(source.url.startswith("https://") for source in entry.sources)
    lengths = {"md5": 32, "sha256": 64}
    for source in entry.sources:
        if source.checksum is not None:
            algorithm, _, digest = source.checksum.partition(":")
            assert len(digest) == lengths[algorithm]
            assert set(digest) <= set("0123456789abcdef")
    # What is downloaded is what is looked for: an archive, or the expected files themselves.
    downloads = {source.file for source in entry.sources}
    assert not downloads or downloads >= set(entry.files) or all(file.endswith(".zip") for file in downloads)


def test_names_are_sorted_and_info_tells_the_address() -> None:
    assert datasets.names() == sorted(datasets.names())
    entry = datasets.info("ml-1m")
    assert entry.url == "https://files.grouplens.org/datasets/movielens/ml-1m.zip"
    assert entry.checksum == "md5:c4d9eecfca2ab87c1945afe126590906"
    assert datasets.info("netflix").url is None


def test_a_typo_gets_the_near_name() -> None:
    with pytest.raises(CorankError, match=r"'ml-1n' is not known; did you mean 'ml-1m'\?"):
        datasets.load("ml-1n")


# --- where a set is looked for ---------------------------------------------------------------------


@pytest.mark.parametrize("place", ["ml-1m/ratings.dat", "ml-1m/ratings.dat.gz", "ml-1m/ml-1m.zip", "ml-1m.zip"])
def test_folder_gzip_or_archive(root: Path, place: str) -> None:
    path = root / place
    if place.endswith(".zip"):
        put_zip(path, ratings=RATINGS_DAT)
    elif place.endswith(".gz"):
        path.parent.mkdir()
        path.write_bytes(gzip.compress(RATINGS_DAT.encode()))
    else:
        put(path, RATINGS_DAT)
    for data in (datasets.load("ml-1m"), datasets.load("ml-1m", root), datasets.load("ml-1m", str(root))):
        assert data.value.tolist() == [5, 4, 3]


def test_the_publishers_folder_name_counts(root: Path) -> None:
    put(root / "ml-10M100K" / "ratings.dat", RATINGS_DAT)
    assert len(datasets.load("ml-10m")) == 3


def test_a_named_root_may_be_the_folder_itself(root: Path) -> None:
    put(root / "ratings.dat", RATINGS_DAT)
    assert len(datasets.load("ml-1m", root)) == 3
    with pytest.raises(CorankError, match="is not in"):
        datasets.load("ml-1m")


def test_default_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CORANK_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert datasets.default_root() == tmp_path / "corank"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert datasets.default_root() == Path.home() / ".cache" / "corank"


def test_missing_says_where_what_and_how(root: Path) -> None:
    with pytest.raises(CorankError) as caught:
        datasets.load("ml-20m")
    message = str(caught.value)
    assert str(root) in message
    assert "ratings.csv and movies.csv" in message
    assert "corank data fetch ml-20m" in message
    assert "\n" not in message


def test_missing_without_a_download_names_the_publisher(root: Path) -> None:
    with pytest.raises(CorankError, match=r"no direct download, so get it from Kaggle"):
        datasets.load("netflix")


def test_split_as_published(root: Path) -> None:
    put(root / "gowalla" / "train.txt", "0 1 2\n1 2\n")
    put(root / "gowalla" / "test.txt", "0 3\n")
    split = datasets.load_split("gowalla")
    assert (len(split.train), len(split.valid), len(split.test)) == (3, 0, 1)
    assert split.train.users is split.test.users
    assert split.train.items is split.valid.items
    assert split.name == "gowalla as published"
    assert len(datasets.load("gowalla")) == 4


def test_a_set_without_a_split_says_which_have_one(root: Path) -> None:
    with pytest.raises(CorankError, match=r"'ml-1m' comes without a published split.*douban"):
        datasets.load_split("ml-1m")


# --- the real files: counts as measured by hand ----------------------------------------------------

COUNTS = {  # rows, users with rows, items with rows
    "beauty-bert4rec": (353_962, 40_226, 54_542),
    "douban": (136_891, 2_999, 3_000),
    "filmtrust": (35_497 - 3, 1_508, 2_071),  # 3 rows repeat a pair
    "flixster": (26_173, 2_341, 2_956),
    "foursquare": (98_258, 2_321, 5_596),
    "games": (287_107, 31_013, 23_715),
    "ml-100k": (100_000, 943, 1_682),
    "ml-1m": (1_000_209, 6_040, 3_706),
    "ml-1m-graphs": (76_156, 2_102, 3_156),
    "ml-1m-sequences": (999_611, 6_040, 3_416),
    "ml-1m-wu-200": (299_200 + 338_787, 1_496, None),
    "ml-1m-wu-all": (939_809 + 60_400, 6_040, 3_706),
    "ml-1m-wu-oc50": (196_850, 3_937, 3_333),
    "ml-latest-small": (100_004, 671, 9_066),
    "s3rec-beauty": (198_502, 22_363, 12_101),
    "yahoo-music": (5_335, 1_357, 1_363),
}
HDF5 = ("douban", "flixster", "yahoo-music")


def real(name: str, shared_data: Path) -> cr.Dataset:
    if name in HDF5:
        pytest.importorskip("h5py")
    return datasets.load(name, shared_data)


@pytest.mark.parametrize("name", COUNTS)
def test_counts(name: str, shared_data: Path) -> None:
    data = real(name, shared_data)
    rows, users, items = COUNTS[name]
    assert len(data) == rows
    assert np.unique(data.user).size == users
    assert items is None or np.unique(data.item).size == items


@pytest.mark.parametrize(
    ("name", "train", "test"),
    [
        ("douban", 123_202, 13_689),
        ("flixster", 23_556, 2_617),
        ("foursquare", 69_159, 29_099),
        ("ml-100k", 80_000, 20_000),
        ("ml-1m-wu-200", 299_200, 338_787),
        ("ml-1m-wu-all", 939_809, 60_400),
        ("yahoo-music", 4_802, 533),
    ],
)
def test_split_sizes(name: str, train: int, test: int, shared_data: Path) -> None:
    if name in HDF5:
        pytest.importorskip("h5py")
    split = datasets.load_split(name, shared_data)
    assert (len(split.train), len(split.valid), len(split.test)) == (train, 0, test)
    pairs = [part.user.astype(np.int64) * len(part.items) + part.item for part in (split.train, split.test)]
    assert np.intersect1d(*pairs).size == 0
    if name == "ml-1m-wu-200":
        assert (np.bincount(split.train.user) == 200).all()
    if name == "ml-1m-wu-all":
        assert (np.bincount(split.test.user) == 10).all()


def test_ml_1m_ratings_times_and_labels(shared_data: Path) -> None:
    data = datasets.open_any(shared_data / "ml-1m" / "ml-1m.zip")
    assert np.bincount(data.value.astype(int)).tolist() == [0, 56_174, 107_557, 261_197, 348_971, 226_310]
    assert data.time is not None
    assert (data.time.min(), data.time.max()) == (956703932, 1046454590)
    titles = dict(zip(data.items.ids.tolist(), data.item_labels["title"].tolist(), strict=True))
    assert titles[1] == "Toy Story (1995)"
    assert titles[1721] == "Titanic (1997)"
    assert any("é" in title for title in titles.values())
    assert all(titles.values())
    assert np.unique(data.user_labels["age"]).tolist() == [1, 18, 25, 35, 45, 50, 56]
    assert np.unique(data.user_labels["gender"]).tolist() == ["F", "M"]


def test_wu_all_is_the_ml_1m_ratings(shared_data: Path) -> None:
    whole, parts = datasets.load("ml-1m", shared_data), datasets.load("ml-1m-wu-all", shared_data)
    np.testing.assert_array_equal(whole.csr().index, parts.csr().index)
    np.testing.assert_array_equal(whole.csr().value, parts.csr().value)


def test_ml_1m_graphs(shared_data: Path) -> None:
    """Against sets of names, movie by movie, and against the labels."""
    data = datasets.load("ml-1m-graphs", shared_data)
    assert data.user_graph is not None
    assert data.item_graph is not None
    text = (shared_data / "ml-1m-kg" / "movies_extrainfos.dat").read_text("utf-8")
    fields = [line.split("::") for line in text.splitlines()]
    cast = {int(one[0]): {name.strip() for name in one[8].split(",")} - {"N/A"} for one in fields}
    own = [cast.get(movie, set()) for movie in data.items.ids.tolist()]
    for movie in range(0, len(own), 40):
        near = [k for k, other in enumerate(own) if k != movie and own[movie] & other]
        start, stop = data.item_graph.indptr[movie : movie + 2]
        assert data.item_graph.index[start:stop].tolist() == near
    assert data.item_graph.index.size == 43_892
    age = data.user_labels["age"]
    same = age[:, None] == age
    np.fill_diagonal(same, False)
    np.testing.assert_array_equal(data.user_graph.scipy().toarray(), same)
    assert np.bincount(data.user).max() == 59


def test_ml_100k_labels(shared_data: Path) -> None:
    data = datasets.load("ml-100k", shared_data)
    assert np.bincount(data.value.astype(int)).tolist() == [0, 6_110, 11_370, 27_145, 34_174, 21_201]
    assert data.item_labels["genres"][0] == "Animation|Children's|Comedy"
    assert all(data.item_labels["title"])
    assert data.user_labels["age"].min() > 0


def test_ciao(shared_data: Path) -> None:
    data = datasets.load("ciao", shared_data)
    # 34 of 284,086 rows hold no rating; what is left of 282,650 distinct pairs has one row each.
    from scipy.io import loadmat

    raw = loadmat(shared_data / "ciao" / "rating.mat")["rating"]
    assert (raw[:, 3] == 0).sum() == 34
    assert len(data) == len(np.unique(raw[raw[:, 3] > 0, :2], axis=0))
    assert (len(data.users), len(data.items)) == (7_375, 105_114)
    assert data.time is not None
    assert (data.time.min(), data.time.max()) == (959670000, 1302591600)
    assert data.user_graph is not None
    assert data.user_graph.value.size == 111_781
    assert data.value.min() == 1


def test_filmtrust_graph(shared_data: Path) -> None:
    data = datasets.load("filmtrust", shared_data)
    graph = data.user_graph
    assert graph is not None
    assert graph.value.size == 1_853
    assert np.count_nonzero(np.diff(graph.indptr)) == 609  # trusters
    assert np.unique(graph.index).size == 732  # trusted
    assert len(data.users) > 1_508  # some only trust


@pytest.mark.parametrize(
    ("name", "users", "items"), [("douban", 2_690, None), ("flixster", 59_354, 50_918), ("yahoo-music", None, 56_890)]
)
def test_monti_graphs(name: str, users: int | None, items: int | None, shared_data: Path) -> None:
    data = real(name, shared_data)
    assert (len(data.users), len(data.items)) == (3_000, 3_000)
    assert (None if data.user_graph is None else data.user_graph.value.size) == users
    assert (None if data.item_graph is None else data.item_graph.value.size) == items


def test_douban_friends_share_more_items_than_strangers(shared_data: Path) -> None:
    """The graph is about the rows of the matrix and not, transposed, about its columns."""
    data = real("douban", shared_data)
    assert data.user_graph is not None
    seen = (data.csr().scipy() != 0).astype(np.float32)
    one, two = data.user_graph.scipy().tocoo().coords
    shuffled = np.random.default_rng(0).permutation(3_000)
    friends = seen[one].multiply(seen[two]).sum()
    strangers = seen[shuffled[one]].multiply(seen[shuffled[two]]).sum()
    assert friends > 2 * strangers


def test_foursquare_places(shared_data: Path) -> None:
    data = datasets.load("foursquare", shared_data)
    assert np.isfinite(data.item_labels["latitude"]).all()
    assert 103 < data.item_labels["longitude"].min() < data.item_labels["longitude"].max() < 105
