"""Lists on the command line: written in any format, asked for by title, and evaluated."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import corank as cr
from corank.cli import main

TITLES = {
    89: "Lady Gaga",
    7: "Radiohead",
    12: "Matrix, The (1999)",
    13: "Matrix Reloaded, The (2003)",
    20: "Heat (1995)",
    21: "Heat and Dust (1983)",
    30: "Wilco",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """plays.csv, and three models: with titles, without, and one that depends on the order of a history."""
    here = tmp_path_factory.mktemp("lists")
    rng = np.random.default_rng(0)
    user, item = rng.integers(0, 60, 1500), (100 * rng.random(1500) ** 2).astype(int)
    user, item = np.append(user, np.arange(60)), np.append(item, np.full(60, 12))  # item 12 is the most popular
    pl.DataFrame({"user": user, "item": item, "value": 1.0, "time": np.arange(1560)}).write_csv(here / "plays.csv")
    data = cr.read_csv(here / "plays.csv")
    titles = np.array([TITLES.get(i, f"Track {i}") for i in data.items.ids.tolist()])
    labelled = cr.from_frame(data.to_frame(), user="user", item="item", value="value", time="time")
    object.__setattr__(labelled, "item_labels", {"title": titles})
    cr.ItemKNN().fit(labelled).save(here / "m.corank")
    cr.WMF(dim=4, epochs=2).fit(data).save(here / "plain.corank")
    return here


@pytest.fixture
def run(folder, capsys, monkeypatch, tmp_path):
    """Run a command, one argument per word; returns (code, out, err)."""
    monkeypatch.chdir(tmp_path)

    def call(*words: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(
            [str(w).format(m=folder / "m.corank", p=folder / "plain.corank", d=folder / "plays.csv") for w in words]
        )
        out, err = capsys.readouterr()
        # Said by the first process on a machine only.
        kept = [line for line in err.splitlines(keepends=True) if not line.startswith("corank: compiling kernels")]
        return code, out, "".join(kept)

    return call


def test_parquet_is_parquet(run, folder):
    code, _, err = run("recommend", "{m}", "--all", "-k", 4, "-o", "lists.parquet")
    assert (code, err) == (0, "60 lists written to lists.parquet\n")
    assert Path("lists.parquet").read_bytes()[:4] == b"PAR1"
    frame = pl.read_parquet("lists.parquet")
    assert frame.equals(cr.load(folder / "m.corank").recommend(k=4).to_frame())
    assert frame.columns == ["user", "rank", "item", "score", "title"]
    for name in ("lists.csv", "lists.tsv.gz", "lists.jsonl"):
        assert run("recommend", "{m}", "--all", "-k", 4, "-o", name)[0] == 0
    assert pl.read_csv("lists.csv")["title"].to_list() == frame["title"].to_list()
    assert pl.read_ndjson("lists.jsonl")["item"].to_list() == frame["item"].to_list()


def test_lists_are_made_in_pieces(run, folder, monkeypatch):
    monkeypatch.setattr("corank.cli.saved.CHUNK", 7)
    assert run("recommend", "{m}", "--all", "-k", 4, "-o", "lists.parquet")[0] == 0
    assert pl.read_parquet("lists.parquet").equals(cr.load(folder / "m.corank").recommend(k=4).to_frame())


def test_titles_from_a_file_are_in_the_lists(run):
    Path("titles.csv").write_text("item,title\n12,Twelve\n")
    assert run("recommend", "{p}", "--user", 1, "--seen", "-k", 200, "--titles", "titles.csv", "-o", "l.csv")[0] == 0
    shown = dict(pl.read_csv("l.csv").select("item", "title").iter_rows())
    assert shown.pop(12) == "Twelve"
    assert set(shown.values()) == {None}


@pytest.mark.parametrize("name", ["lists.xlsx", "lists", "lists.parquet.gz"])
def test_an_unknown_ending_is_one_sentence_before_any_work(run, name):
    code, out, err = run("recommend", "nowhere.corank", "--all", "-o", name)
    assert (code, out) == (2, "")
    assert "end the name in .parquet, .csv, .tsv or .jsonl" in err
    assert not list(Path().iterdir())


def test_the_model_is_not_overwritten(run):
    Path("m.csv").write_text("")
    assert "would be overwritten" in run("recommend", "m.csv", "--all", "-o", "m.csv")[2]


@pytest.mark.parametrize(
    ("given", "item", "said"),
    [
        (["Lady Gaga"], 89, ""),
        (["lady gaga"], 89, ""),
        (["89"], 89, ""),
        (["Lady Gagga"], 89, "no item 'Lady Gagga': using 'Lady Gaga' (id 89)\n"),
        (["Matrix, The (1999)"], 12, ""),
        (["haet"], 20, "no item 'haet': using 'Heat (1995)' (id 20)\n"),
        (["heat"], 20, "no item 'heat': using 'Heat (1995)' (id 20)\n"),
        (["Matrix"], 12, "no item 'Matrix': using 'Matrix, The (1999)' (id 12)\n"),
        (["89,zzzzzz"], 89, "no item 'zzzzzz': skipped\n"),
        (["Lady Gaga, 99999"], 89, "no item '99999': skipped\n"),
    ],
)
def test_a_history_by_title(run, folder, given, item, said):
    words = [word for one in given for word in ("--history", one)]
    code, out, err = run("recommend", "{m}", *words, "-k", 3)
    assert (code, err) == (0, said)
    want = cr.load(folder / "m.corank").recommend(histories=[[item]], k=3)[0]
    assert [int(line.split()[1]) for line in out.splitlines()[1:]] == [i for i, _ in want]


def test_several_titles(run, folder):
    want = cr.load(folder / "m.corank").recommend(histories=[[89, 7, 12]], k=3)[0]
    for words in (["Lady Gaga,Radiohead,12"], ["Lady Gaga", "radiohead", "Matrix, The (1999)"]):
        _, out, err = run("recommend", "{m}", *(w for one in words for w in ("--history", one)), "-k", 3)
        assert [int(line.split()[1]) for line in out.splitlines()[1:]] == [i for i, _ in want]
        assert err == ""


def test_items_by_title_elsewhere(run):
    code, out, _ = run("similar", "{m}", "--item", "lady gaga", "-k", 2)
    assert (code, out.splitlines()[0]) == (0, "item 89  Lady Gaga")
    _, out, _ = run("recommend", "{m}", "--user", 1, "--candidates", "Wilco,Radiohead", "--seen")
    assert {int(line.split()[1]) for line in out.splitlines()[1:]} == {30, 7}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["recommend", "{m}", "--history", "zzzzzz"], "'zzzzzz': it is neither an id nor a title of the"),
        (["recommend", "{m}", "--history", "99999,88888"], "'99999': it is neither an id nor a title"),
        (["recommend", "{p}", "--history", "Lady Gaga"], "is not an integer"),
        (["recommend", "{p}", "--history", "99999"], "unknown item 99999"),
        (["recommend", "{m}", "--user", "1", "--candidates", "12,zzzzzz"], "'zzzzzz': it is neither"),
        (["similar", "{m}"], "--item ITEM or --user ID"),
        (["similar", "{m}", "--item", "12", "--user", "1"], "one of them"),
        (["similar", "{m}", "--user", "1"], "item_knn has no vector per user"),
        (["similar", "{p}", "--user", "999"], "unknown user 999"),
        (["evaluate", "--lists", "nowhere.csv", "{d}"], "file 'nowhere.csv' does not exist"),
        (["evaluate", "--lists", "{d}", "nowhere.csv"], "nowhere.csv"),
        (["evaluate", "--lists", "{d}"], "FILE"),
        (["evaluate", "--lists", "{d}", "{d}", "--protocol", "rated"], "protocol='full', not 'rated'"),
    ],
)
def test_a_mistake_is_one_sentence(run, words, expected):
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert expected in err.splitlines()[-1]


def test_candidates_of_each_user_from_a_table(run, folder):
    Path("pairs.csv").write_text("user,item\n3,12\n3,30\n5,7\n")
    _, out, _ = run("recommend", "{m}", "--all", "--candidates", "pairs.csv", "--seen")
    want = cr.load(folder / "m.corank").recommend([3, 5], items={3: [12, 30], 5: [7]}, exclude_seen=False)
    got = [int(line.split()[1]) for line in out.splitlines()]
    assert got == [3, *(i for i, _ in want[3]), 5, *(i for i, _ in want[5])]
    assert "no candidates for 4" in run("recommend", "{m}", "--user", 4, "--candidates", "pairs.csv")[2]
    assert "is for users" in run("recommend", "{m}", "--history", 7, "--candidates", "pairs.csv")[2]


def test_similar_users(run, folder):
    code, out, _ = run("similar", "{p}", "--user", 5, "-k", 3)
    want = cr.load(folder / "plain.corank").similar_users(5, k=3)[5]
    assert code == 0
    assert out.splitlines()[0] == "user 5"
    assert [int(line.split()[1]) for line in out.splitlines()[1:]] == [i for i, _ in want]
    assert run("similar", "{p}", "--user", 5, "-o", "s.csv")[0] == 0
    assert pl.read_csv("s.csv").columns == ["user", "rank", "similar", "score"]
    assert run("similar", "{m}", "--item", 7, "-o", "s.jsonl")[0] == 0
    assert pl.read_ndjson("s.jsonl").columns == ["item", "rank", "similar", "score", "title"]


def test_lists_are_evaluated_as_their_model(run, folder):
    split = cr.leave_last_out(cr.read_csv(folder / "plays.csv"))
    model = cr.ItemKNN().fit(split.train)
    model.recommend(k=40).write("lists.parquet")
    code, out, err = run("evaluate", "--lists", "lists.parquet", "{d}", "--metrics", "ndcg@10,coverage@10")
    assert code == 0, err
    own = str(cr.evaluate(model, split, ["ndcg@10", "coverage@10"])).splitlines()
    lines = out.splitlines()
    assert lines[0] == "lists.parquet on leave-last-out (test, 60 users)"
    assert f"{lines[1]}, trained without validation rows" == own[1]  # of lists it is not known
    assert lines[-2:] == own[2:]
    assert any("listed items known from training or validation rows, removed:" in line for line in lines)
    code, out, _ = run("evaluate", "{d}", "--lists=lists.parquet", "--name", "theirs", "--split", "holdout")
    assert (code, out.split()[0]) == (0, "theirs")


def test_rows_that_were_learned_are_said(run):
    code, _, err = run("evaluate", "{p}", "{d}")
    assert code == 0
    assert "test rows are in the model's training data: metrics are optimistic on training rows" in err


def test_a_model_that_reads_histories_gets_them_in_order(run, folder):
    """The file of a model keeps the order of the last items of each user: the command has the figures of Python."""
    pytest.importorskip("torch")
    split = cr.leave_last_out(cr.read_csv(folder / "plays.csv")).refit()
    model = cr.SASRec(dim=8, epochs=2, max_len=10).fit(split.train)
    model.save("s.corank")
    split.test.to_frame().write_csv("test.csv")
    _, out, err = run("evaluate", "s.corank", "test.csv", "--metrics", "ndcg@10,recall@10")
    own = str(cr.evaluate(model, split, ["ndcg@10", "recall@10"])).splitlines()
    assert out.splitlines()[2:] == own[2:], err


def test_rules_exclusions_and_an_item_table(run, folder):
    Path("items.csv").write_text(
        "item,year,genre,title\n"
        + "".join(f"{i},{1980 + i},{'Comedy|Drama' if i % 3 else 'Action'},T{i}\n" for i in range(100))
    )
    code, out, err = run(
        "recommend",
        "{p}",
        "--user",
        1,
        "-k",
        3,
        "--items",
        "items.csv",
        "--where",
        "year>=1990,genre=Comedy",
        "--exclude",
        "T11,zzz",
        "--where",
        "year<2050",
    )
    assert code == 0, err
    assert "no item 'zzz': skipped" in err
    model = cr.load(folder / "plain.corank").with_items("items.csv")
    want = model.recommend([1], k=3, where={"year": (1990, 2049), "genre": "Comedy"}, exclude=[11])[1]
    assert [(int(line.split()[1]), line.split()[3]) for line in out.splitlines()[1:]] == [(i, f"T{i}") for i, _ in want]
    code, _, err = run("recommend", "{p}", "--user", 1, "--items", "items.csv", "--where", "yeer>=1990")
    assert (code, err.splitlines()[-1]) == (2, "corank: the items have no label 'yeer'; did you mean 'year'?")
    assert "--items FILE" in run("recommend", "{p}", "--user", 1, "--where", "year>=1990")[2]
    assert "does not exist" in run("recommend", "{p}", "--user", 1, "--items", "nowhere.csv")[2]


def test_reasons(run, folder):
    code, out, _ = run("explain", "{m}", "--user", 5, "-k", 2, "--reasons", 2)
    found = cr.load(folder / "m.corank").explain(5, k=2)
    lines = out.splitlines()
    assert code == 0
    assert lines[0] == "user 5 (exact: each score is a sum over the history)"
    assert [int(line.split()[1]) for line in lines if line.startswith("    ") and line[4] in "12"] == found.items
    shares = [line.split() for line in lines if "%" in line]
    assert [int(words[1]) for words in shares] == [item for one in found.contributions for item, _ in one[:2]]
    assert shares[0][0] == f"{found.shares()[0][0][1]:.1%}"
    code, out, _ = run("explain", "{m}", "--history", "lady gaga,Radiohead", "--items", "Wilco,12")
    assert code == 0
    assert "Wilco" in out
    assert "Lady Gaga" in out


def test_reasons_are_drawn_and_written(run, folder):
    assert run("explain", "{m}", "--user", 5, "-o", "why.svg")[0] == 0
    assert Path("why.svg").read_text().startswith("<svg")
    for name in ("why.csv", "why.parquet", "why.jsonl"):
        assert run("explain", "{m}", "--user", 5, "-k", 2, "-o", name)[0] == 0
    frame = cr.load(folder / "m.corank").explain(5, k=2).to_frame()
    assert pl.read_parquet("why.parquet").equals(frame)
    assert pl.read_csv("why.csv")["because"].to_list() == frame["because"].to_list()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["{m}"], "say for whom"),
        (["{m}", "--user", "5", "--history", "7"], "one of them"),
        (["{m}", "--user", "5", "-o", "why.png"], "end the name in .svg"),
        (["{m}", "--user", "5", "--kind", "attention"], "no attention weights"),
        (["{m}", "--user", "5", "--reasons", "0"], "at least 1"),
        (["{m}", "--user", "999"], "unknown user 999"),
    ],
)
def test_reasons_that_cannot_be_given_are_a_sentence(run, words, expected):
    code, out, err = run("explain", *words)
    assert (code, out) == (2, "")
    assert expected in err.splitlines()[-1]
