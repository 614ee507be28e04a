"""The named datasets: what they are, where they come from, on which terms, and which reader reads their files."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..data import Dataset
from ..errors import CorankError, suggest
from . import movielens, netflix, publishers
from .archive import Files
from .entry import Info, Source
from .published_tables import Parts

GROUPLENS = "https://files.grouplens.org/datasets/movielens"
GITHUB = "https://raw.githubusercontent.com"
HARPER = "F. M. Harper and J. A. Konstan, The MovieLens Datasets: History and Context, ACM TiiS 5(4):19, 2015"
MOVIELENS_TERMS = "research use with acknowledgement; no redistribution and no commercial use without permission"
UNSTATED = "the copy states no terms: treat as research only"


def info(name: str) -> Info:
    """The entry of a named dataset."""
    try:
        return CATALOGUE[name]
    except KeyError:
        raise CorankError(f"dataset {name!r} is not known{suggest(name, CATALOGUE)}") from None


def _movielens(
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


def _sequence(
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


def _monti(name: str, title: str, folder: str, original: str) -> Info:
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


def _lightgcn(name: str, title: str) -> Info:
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


def _trust(name: str, title: str) -> Info:
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


def _wu(
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


SASREC = "W.-C. Kang and J. McAuley, Self-Attentive Sequential Recommendation, ICDM 2018"
SSE_PT = "L. Wu, S. Li, C.-J. Hsieh and J. Sharpnack, SSE-PT, RecSys 2020"
WU_SPLITS = "ml-1m-wu-splits"
ML_1M = _movielens("1m", movielens.ratings_dat, ("ratings.dat",), "c4d9eecfca2ab87c1945afe126590906")

CATALOGUE: dict[str, Info] = {
    entry.name: entry
    for entry in (
        _movielens(
            "100k",
            movielens.ratings_100k,
            ("u.data",),
            "0e33842e24a9c977be4e0107933c0723",
            read_split=movielens.ratings_100k_u1,
        ),
        ML_1M,
        _movielens(
            "10m", movielens.ratings_dat, ("ratings.dat",), "ce571fd55effeba0271552578f2648bd", folders=("ml-10M100K",)
        ),
        _movielens("20m", movielens.ratings_csv, ("ratings.csv", "movies.csv"), "cd245b17a1ae2cc31bb14903e1204af3"),
        _movielens("25m", movielens.ratings_csv, ("ratings.csv", "movies.csv"), "6b51fb2759a8657d3bfcbfc42b592ada"),
        # GroupLens replaces this one from time to time, so it has no fixed checksum.
        _movielens("latest-small", movielens.ratings_csv, ("ratings.csv", "movies.csv"), None),
        _sequence(
            "ml-1m-sequences",
            "MovieLens 1M as sequences (SSE-PT)",
            "ml1m.txt",
            f"{SSE_PT}; {HARPER}",
            "wuliwei9278/SSE-PT",
            sha256="08d218ec62e0be3d7527bb7826e403833681efdcdcb05f8e3b605e3aff1ba412",
            terms=MOVIELENS_TERMS,
        ),
        _sequence(
            "games",
            "Amazon Video Games as sequences (SASRec)",
            "Video.txt",
            SASREC,
            "kang205/SASRec",
            folders=("amazon-sasrec", "SASRec/data"),
            sha256="b7376fe24430743f411dc7f567285657b2adb3f74361cc7ba0aee94f3024b651",
        ),
        _sequence(
            "beauty-sasrec",
            "Amazon Beauty as sequences (SASRec)",
            "Beauty.txt",
            SASREC,
            "kang205/SASRec",
            folders=("amazon-sasrec", "SASRec/data"),
        ),
        _sequence(
            "steam",
            "Steam reviews as sequences (SASRec)",
            "Steam.txt",
            SASREC,
            "kang205/SASRec",
            folders=("steam-sasrec", "SASRec/data"),
        ),
        _sequence(
            "beauty-bert4rec",
            "Amazon Beauty as sequences (BERT4Rec)",
            "beauty.txt",
            "F. Sun et al., BERT4Rec, CIKM 2019",
            "FeiSun/BERT4Rec",
            folders=("amazon-bert4rec", "BERT4Rec/data"),
        ),
        _sequence(
            "s3rec-beauty",
            "Amazon Beauty, 5-core, one line per user (S3-Rec)",
            "Beauty.txt",
            "K. Zhou et al., S3-Rec, CIKM 2020",
            "RUCAIBox/CIKM2020-S3Rec",
            folders=("s3rec-sequences", "CIKM2020-S3Rec/data"),
            read=publishers.lines,
        ),
        _sequence(
            "s3rec-sports",
            "Amazon Sports and Outdoors, 5-core, one line per user (S3-Rec)",
            "Sports_and_Outdoors.txt",
            "K. Zhou et al., S3-Rec, CIKM 2020",
            "RUCAIBox/CIKM2020-S3Rec",
            folders=("s3rec-sequences", "CIKM2020-S3Rec/data"),
            read=publishers.lines,
        ),
        _wu(
            "ml-1m-wu-200",
            "MovieLens 1M, 200 training ratings per user (the dissertation's split)",
            "L. Wu et al., Stochastic Shared Embeddings, NeurIPS 2019",
            ("ml1m_train_ratings.csv", "ml1m_test_ratings.csv"),
            (WU_SPLITS, "SSE/SSE-MF/data", "SSE-MF/data"),
            tuple(
                Source(f"{GITHUB}/wuliwei9278/SSE/master/SSE-MF/data/ml1m_{part}_ratings.csv")
                for part in ("train", "test")
            ),
        ),
        _wu(
            "ml-1m-wu-all",
            "MovieLens 1M, all but 10 ratings per user for training (Primal-CR's split)",
            "L. Wu, C.-J. Hsieh and J. Sharpnack, Large-scale Collaborative Ranking in Near-Linear Time, KDD 2017",
            ("training.ratings", "test.ratings"),
            (f"{WU_SPLITS}/primalCR-ml1m", "primalCR/ml1m"),
            (
                Source(
                    f"{GITHUB}/wuliwei9278/primalCR/master/ml1m/training.ratings",
                    "sha256:db23c9dc887cc081cea495406e5d06ce15f6596c99b58e977242c9d8aecadbda",
                ),
                Source(f"{GITHUB}/wuliwei9278/primalCR/master/ml1m/test.ratings"),
            ),
        ),
        _wu(
            "ml-1m-wu-oc50",
            "MovieLens 1M, 50 liked items per user (SQL-Rank's training half; its test half is not public)",
            "L. Wu, C.-J. Hsieh and J. Sharpnack, SQL-Rank, ICML 2018",
            ("ml1m_oc_50_train_ratings.csv",),
            (WU_SPLITS, "SSE/SSE-BPR/ml1m-50-oc"),
            (Source(f"{GITHUB}/wuliwei9278/SSE/master/SSE-BPR/ml1m-50-oc/ml1m_oc_50_train_ratings.csv"),),
        ),
        Info(
            "ml-1m-graphs",
            "MovieLens 1M, users with fewer than 60 ratings, with graphs of age groups and common actors",
            f"{HARPER}; actors: H. Lee et al., MeLU, KDD 2019",
            f"ratings: {MOVIELENS_TERMS}; actors: {UNSTATED}",
            "https://github.com/hoyeoplee/MeLU (and the ratings of ml-1m, in a folder beside)",
            ("movies_extrainfos.dat",),
            ("ml-1m-kg",),
            (Source(f"{GITHUB}/hoyeoplee/MeLU/master/movielens/ml-1m/movies_extrainfos.dat"),),
            read=partial(movielens.ratings_with_graphs, ML_1M),
        ),
        _monti("douban", "Douban, 3000 x 3000, with a user graph", "douban", "H. Ma et al., WSDM 2011"),
        _monti(
            "flixster",
            "Flixster, 3000 x 3000, with user and item graphs",
            "flixster",
            "M. Jamali and M. Ester, RecSys 2010",
        ),
        _monti(
            "yahoo-music",
            "Yahoo Music, 3000 x 3000, with an item graph",
            "yahoo_music",
            "G. Dror et al., KDD Cup 2011",
        ),
        Info(
            "filmtrust",
            "FilmTrust ratings with a trust graph",
            "G. Guo, J. Zhang and N. Yorke-Smith, A Novel Bayesian Similarity Measure for Recommender Systems, "
            "IJCAI 2013",
            "cite the paper; no other terms are stated",
            "https://guoguibing.github.io/librec/datasets.html",
            ("ratings.txt", "trust.txt"),
            ("FilmTrust",),
            (Source("https://guoguibing.github.io/librec/datasets/filmtrust.zip"),),
            read=publishers.filmtrust,
        ),
        _trust("ciao", "Ciao ratings with a trust graph"),
        _trust("epinions", "Epinions ratings with a trust graph"),
        _lightgcn("gowalla", "Gowalla check-ins, LightGCN's split"),
        _lightgcn("yelp2018", "Yelp 2018, LightGCN's split"),
        _lightgcn("amazon-book", "Amazon Book, LightGCN's split"),
        Info(
            "netflix",
            "Netflix prize ratings",
            "J. Bennett and S. Lanning, The Netflix Prize, KDD Cup and Workshop 2007",
            "the prize's rules: research use, no redistribution, no attempt to identify people",
            "Kaggle, with an account (https://www.kaggle.com/datasets/netflix-inc/netflix-prize-data)",
            ("combined_data_*.txt or training_set/mv_*.txt",),
            ("netflix-prize-data", "nf_prize_dataset", "download"),
            read=netflix.ratings,
        ),
        Info(
            "foursquare",
            "Foursquare check-ins in Singapore",
            "Q. Yuan et al., Time-aware Point-of-interest Recommendation, SIGIR 2013",
            UNSTATED,
            "https://github.com/guoguibing/librec (data/poi/FourSquare)",
            ("checkin/trainData.txt", "checkin/testData.txt"),
            ("FourSquare", "poi/FourSquare"),
            read_split=publishers.foursquare,
        ),
    )
}
