"""Entries of the catalogue that several datasets of one publisher share: files, folders, addresses and terms."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..data import Dataset
from . import publishers
from .archive import Files
from .entry import Info, Source
from .published_tables import Parts

GROUPLENS = "https://files.grouplens.org/datasets/movielens"
GITHUB = "https://raw.githubusercontent.com"
HARPER = "F. M. Harper and J. A. Konstan, The MovieLens Datasets: History and Context, ACM TiiS 5(4):19, 2015"
MOVIELENS_TERMS = "research use with acknowledgement; no redistribution and no commercial use without permission"
UNSTATED = "the copy states no terms: treat as research only"


def movielens(
    size: str,
    read: Callable[[Files], Dataset],
    files: tuple[str, ...],
    md5: str | None,
    *,
    folders: tuple[str, ...] = (),
    read_split: Callable[[Files], Parts] | None = None,
) -> Info:
    name = f"ml-{size}"
    source = Source(f"{GROUPLENS}/{name}.zip", md5 and f"md5:{md5}")
    page = f"https://grouplens.org/datasets/movielens/ ({name}.zip)"
    title = f"MovieLens {size.replace('latest-', 'latest ')}"
    split_files = ("u1.base", "u1.test") if read_split else ()
    return Info(
        name,
        title,
        HARPER,
        MOVIELENS_TERMS,
        page,
        files,
        folders,
        (source,),
        read=read,
        read_split=read_split,
        split_files=split_files,
    )


def sequence(
    name: str,
    title: str,
    file: str,
    citation: str,
    repository: str,
    *,
    path: str = "master/data",
    folders: tuple[str, ...] = (),
    sha256: str | None = None,
    terms: str = UNSTATED,
    read: Callable[[str, Files], Dataset] = publishers.pairs,
) -> Info:
    source = Source(f"{GITHUB}/{repository}/{path}/{file}", sha256 and f"sha256:{sha256}")
    page = f"https://github.com/{repository}"
    return Info(name, title, citation, terms, page, (file,), folders, (source,), read=partial(read, file))


def monti(name: str, title: str, folder: str, original: str) -> Info:
    citation = (
        "F. Monti, M. Bronstein and X. Bresson, Geometric Matrix Completion with Recurrent Multi-Graph Neural "
        f"Networks, NIPS 2017; original data: {original}"
    )
    source = Source(f"{GITHUB}/riannevdberg/gc-mc/master/gcmc/data/{folder}/training_test_dataset.mat")
    return Info(
        name,
        title,
        citation,
        UNSTATED,
        "https://github.com/riannevdberg/gc-mc",
        ("training_test_dataset.mat",),
        (folder, f"monti-3000/{folder}"),
        (source,),
        read_split=publishers.monti,
    )


def lightgcn(name: str, title: str) -> Info:
    repository = "gusye1234/LightGCN-PyTorch"
    return Info(
        name,
        title,
        "X. He et al., LightGCN, SIGIR 2020",
        UNSTATED,
        f"https://github.com/{repository}",
        ("train.txt", "test.txt"),
        (f"lightgcn/{name}", f"LightGCN-PyTorch/data/{name}"),
        tuple(Source(f"{GITHUB}/{repository}/master/data/{name}/{file}") for file in ("train.txt", "test.txt")),
        read_split=publishers.lines_split,
    )


def trust(name: str, title: str) -> Info:
    return Info(
        name,
        title,
        "J. Tang, H. Gao and H. Liu, mTrust, WSDM 2012; J. Tang et al., eTrust, KDD 2012",
        UNSTATED,
        "https://www.cse.msu.edu/~tangjili/trust.html",
        ("*rating_with_timestamp.mat or rating.mat", "trustnetwork.mat or trust.mat"),
        (f"{name}_with_rating_timestamp", name.capitalize()),
        (Source(f"https://www.cse.msu.edu/~tangjili/datasetcode/{name}.zip"),),
        read=publishers.ciao,
    )


def wu(
    name: str, title: str, citation: str, files: tuple[str, ...], folders: tuple[str, ...], sources: tuple[Source, ...]
) -> Info:
    repository = "/".join(sources[0].url.removeprefix(GITHUB).split("/")[1:3])
    page = f"https://github.com/{repository}"
    if len(files) == 1:
        return Info(
            name,
            title,
            citation,
            MOVIELENS_TERMS,
            page,
            files,
            folders,
            sources,
            read=partial(publishers.rated, *files),
        )
    train, test = files
    split = partial(publishers.rated_split, train, test, "," if train.endswith(".csv") else " ")
    return Info(name, title, citation, MOVIELENS_TERMS, page, files, folders, sources, read_split=split)
