"""The named datasets: what they are, where they come from, on which terms, and which reader reads their files."""

from __future__ import annotations

from functools import partial

from ..errors import CorankError, suggest
from . import forms, friends, movielens, netflix, publishers
from .entry import Info, Source


def info(name: str) -> Info:
    """The entry of a named dataset."""
    try:
        return CATALOGUE[name]
    except KeyError:
        raise CorankError(f"dataset {name!r} is not known{suggest(name, CATALOGUE)}") from None


SASREC = "W.-C. Kang and J. McAuley, Self-Attentive Sequential Recommendation, ICDM 2018"
SSE_PT = "L. Wu, S. Li, C.-J. Hsieh and J. Sharpnack, SSE-PT, RecSys 2020"
WU_SPLITS = "ml-1m-wu-splits"
YAHOO_R3 = ("ydata-ymusic-rating-study-v1_0-train.txt", "ydata-ymusic-rating-study-v1_0-test.txt")
ML_1M = forms.movielens("1m", movielens.ratings_dat, ("ratings.dat",), "c4d9eecfca2ab87c1945afe126590906")

CATALOGUE: dict[str, Info] = {
    entry.name: entry
    for entry in (
        forms.movielens(
            "100k",
            movielens.ratings_100k,
            ("u.data",),
            "0e33842e24a9c977be4e0107933c0723",
            read_split=movielens.ratings_100k_u1,
        ),
        ML_1M,
        forms.movielens(
            "10m", movielens.ratings_dat, ("ratings.dat",), "ce571fd55effeba0271552578f2648bd", folders=("ml-10M100K",)
        ),
        forms.movielens(
            "20m", movielens.ratings_csv, ("ratings.csv", "movies.csv"), "cd245b17a1ae2cc31bb14903e1204af3"
        ),
        forms.movielens(
            "25m", movielens.ratings_csv, ("ratings.csv", "movies.csv"), "6b51fb2759a8657d3bfcbfc42b592ada"
        ),
        # GroupLens replaces this one from time to time, so it has no fixed checksum.
        forms.movielens("latest-small", movielens.ratings_csv, ("ratings.csv", "movies.csv"), None),
        forms.sequence(
            "ml-1m-sequences",
            "MovieLens 1M as sequences (SSE-PT)",
            "ml1m.txt",
            f"{SSE_PT}; {forms.HARPER}",
            "wuliwei9278/SSE-PT",
            sha256="08d218ec62e0be3d7527bb7826e403833681efdcdcb05f8e3b605e3aff1ba412",
            terms=forms.MOVIELENS_TERMS,
        ),
        forms.sequence(
            "games",
            "Amazon Video Games as sequences (SASRec)",
            "Video.txt",
            SASREC,
            "kang205/SASRec",
            folders=("amazon-sasrec", "SASRec/data"),
            sha256="b7376fe24430743f411dc7f567285657b2adb3f74361cc7ba0aee94f3024b651",
        ),
        forms.sequence(
            "beauty-sasrec",
            "Amazon Beauty as sequences (SASRec)",
            "Beauty.txt",
            SASREC,
            "kang205/SASRec",
            folders=("amazon-sasrec", "SASRec/data"),
        ),
        forms.sequence(
            "steam",
            "Steam reviews as sequences (SASRec)",
            "Steam.txt",
            SASREC,
            "kang205/SASRec",
            folders=("steam-sasrec", "SASRec/data"),
        ),
        forms.sequence(
            "beauty-bert4rec",
            "Amazon Beauty as sequences (BERT4Rec)",
            "beauty.txt",
            "F. Sun et al., BERT4Rec, CIKM 2019",
            "FeiSun/BERT4Rec",
            folders=("amazon-bert4rec", "BERT4Rec/data"),
        ),
        forms.sequence(
            "s3rec-beauty",
            "Amazon Beauty, 5-core, one line per user (S3-Rec)",
            "Beauty.txt",
            "K. Zhou et al., S3-Rec, CIKM 2020",
            "RUCAIBox/CIKM2020-S3Rec",
            folders=("s3rec-sequences", "CIKM2020-S3Rec/data"),
            read=publishers.lines,
        ),
        forms.sequence(
            "s3rec-sports",
            "Amazon Sports and Outdoors, 5-core, one line per user (S3-Rec)",
            "Sports_and_Outdoors.txt",
            "K. Zhou et al., S3-Rec, CIKM 2020",
            "RUCAIBox/CIKM2020-S3Rec",
            folders=("s3rec-sequences", "CIKM2020-S3Rec/data"),
            read=publishers.lines,
        ),
        forms.wu(
            "ml-1m-wu-200",
            "MovieLens 1M, 200 training ratings per user (the dissertation's split)",
            "L. Wu et al., Stochastic Shared Embeddings, NeurIPS 2019",
            ("ml1m_train_ratings.csv", "ml1m_test_ratings.csv"),
            (WU_SPLITS, "SSE/SSE-MF/data", "SSE-MF/data"),
            tuple(
                Source(f"{forms.GITHUB}/wuliwei9278/SSE/master/SSE-MF/data/ml1m_{part}_ratings.csv")
                for part in ("train", "test")
            ),
        ),
        forms.wu(
            "ml-1m-wu-all",
            "MovieLens 1M, all but 10 ratings per user for training (Primal-CR's split)",
            "L. Wu, C.-J. Hsieh and J. Sharpnack, Large-scale Collaborative Ranking in Near-Linear Time, KDD 2017",
            ("training.ratings", "test.ratings"),
            (f"{WU_SPLITS}/primalCR-ml1m", "primalCR/ml1m"),
            (
                Source(
                    f"{forms.GITHUB}/wuliwei9278/primalCR/master/ml1m/training.ratings",
                    "sha256:db23c9dc887cc081cea495406e5d06ce15f6596c99b58e977242c9d8aecadbda",
                ),
                Source(f"{forms.GITHUB}/wuliwei9278/primalCR/master/ml1m/test.ratings"),
            ),
        ),
        forms.wu(
            "ml-1m-wu-oc50",
            "MovieLens 1M, 50 liked items per user (SQL-Rank's training half; its test half is not public)",
            "L. Wu, C.-J. Hsieh and J. Sharpnack, SQL-Rank, ICML 2018",
            ("ml1m_oc_50_train_ratings.csv",),
            (WU_SPLITS, "SSE/SSE-BPR/ml1m-50-oc"),
            (Source(f"{forms.GITHUB}/wuliwei9278/SSE/master/SSE-BPR/ml1m-50-oc/ml1m_oc_50_train_ratings.csv"),),
        ),
        Info(
            "ml-1m-graphs",
            "MovieLens 1M, users with fewer than 60 ratings, with graphs of age groups and common actors",
            f"{forms.HARPER}; actors: H. Lee et al., MeLU, KDD 2019",
            f"ratings: {forms.MOVIELENS_TERMS}; actors: {forms.UNSTATED}",
            "https://github.com/hoyeoplee/MeLU (and the ratings of ml-1m, in a folder beside)",
            ("movies_extrainfos.dat",),
            ("ml-1m-kg",),
            (Source(f"{forms.GITHUB}/hoyeoplee/MeLU/master/movielens/ml-1m/movies_extrainfos.dat"),),
            read=partial(movielens.ratings_with_graphs, ML_1M),
        ),
        forms.monti("douban", "Douban, 3000 x 3000, with a user graph", "douban", "H. Ma et al., WSDM 2011"),
        forms.monti(
            "flixster",
            "Flixster, 3000 x 3000, with user and item graphs",
            "flixster",
            "M. Jamali and M. Ester, RecSys 2010",
        ),
        forms.monti(
            "yahoo-music",
            "Yahoo Music, 3000 x 3000, with an item graph",
            "yahoo_music",
            "G. Dror et al., KDD Cup 2011",
        ),
        Info(
            "douban-full",
            "Douban ratings with a graph of friends, all of them",
            "H. Ma, D. Zhou, C. Liu, M. R. Lyu and I. King, Recommender Systems with Social Regularization, WSDM 2011",
            forms.UNSTATED,
            "the authors of the paper (no address is known to us)",
            ("uir.index", "social.index"),
            read=friends.douban,
        ),
        Info(
            "flixster-full",
            "Flixster ratings with a graph of friends, all users with ratings",
            "M. Jamali and M. Ester, A Matrix Factorization Technique with Trust Propagation for Recommendation in "
            "Social Networks, RecSys 2010",
            forms.UNSTATED,
            "https://sites.google.com/view/mohsenjamali/home",
            ("Ratings.timed.txt or ratings.timed.txt", "links.txt"),
            ("Flixster",),
            read=friends.flixster,
        ),
        Info(
            "yahoo-r3",
            "Yahoo! Music R3: ratings that users chose to give, and ten of random songs for test",
            "B. M. Marlin and R. S. Zemel, Collaborative Prediction and Ranking with Non-Random Missing Data, "
            "RecSys 2009",
            "given by Yahoo on request, for research at universities; no redistribution",
            "https://webscope.sandbox.yahoo.com/catalog.php?datatype=r&did=3 (R3, on request)",
            YAHOO_R3,
            ("ydata-ymusic-rating-study-v1_0", "YahooR3", "yahoo_r3"),
            read_split=partial(publishers.rated_split, *YAHOO_R3, "\t"),
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
        forms.trust("ciao", "Ciao ratings with a trust graph"),
        forms.trust("epinions", "Epinions ratings with a trust graph"),
        forms.lightgcn("gowalla", "Gowalla check-ins, LightGCN's split"),
        forms.lightgcn("yelp2018", "Yelp 2018, LightGCN's split"),
        forms.lightgcn("amazon-book", "Amazon Book, LightGCN's split"),
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
            forms.UNSTATED,
            "https://github.com/guoguibing/librec (data/poi/FourSquare)",
            ("checkin/trainData.txt", "checkin/testData.txt"),
            ("FourSquare", "poi/FourSquare"),
            read_split=publishers.foursquare,
        ),
    )
}
