"""The command line as a person uses it: what works, and one sentence with exit code 2 for each mistake."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import corank as cr
from corank.cli import main
from corank.experiment import entries


@pytest.fixture(scope="module")
def made() -> cr.Dataset:
    return cr.synthetic.realistic(users=120, items=100, rows=2_500, groups=4, seed=3).data


@pytest.fixture(scope="module")
def folder(made, tmp_path_factory) -> Path:
    """ratings.csv, movies.csv and a fitted m.corank."""
    here = tmp_path_factory.mktemp("cli")
    ids = made.items.ids
    frame = pl.DataFrame(
        {"userId": made.user + 1, "movieId": ids[made.item], "rating": made.value, "timestamp": made.time}
    )
    frame.write_csv(here / "ratings.csv")
    pl.DataFrame({"movieId": ids, "title": [f"Film {i}" for i in ids]}).write_csv(here / "movies.csv")
    assert (
        main(["fit", "wmf", str(here / "ratings.csv"), "-o", str(here / "m.corank"), "--dim", "8", "--epochs", "4"])
        == 0
    )
    return here


@pytest.fixture
def run(folder, capsys, monkeypatch, tmp_path):
    """Run a command line in an empty folder; returns (code, out, err). {r} and {m} stand for the ratings and the
    model.
    """
    monkeypatch.chdir(tmp_path)

    def call(line: str) -> tuple[int, str, str]:
        capsys.readouterr()
        words = [
            w.format(r=folder / "ratings.csv", m=folder / "m.corank", t=folder / "movies.csv") for w in line.split()
        ]
        code = main(words)
        out, err = capsys.readouterr()
        return code, out, err

    return call


def test_recommend_for_a_user(run, folder):
    code, out, _ = run("recommend {m} --user 7 -k 3")
    assert code == 0
    model = cr.load(folder / "m.corank")
    expected = model.recommend([7], k=3)[7]
    lines = out.strip().splitlines()
    assert lines[0] == "user 7"
    assert [int(line.split()[1]) for line in lines[1:]] == [item for item, _ in expected]


def test_recommend_shows_titles(run):
    code, out, _ = run("recommend {m} --user 7 -k 2 --titles {t}")
    assert code == 0
    for line in out.strip().splitlines()[1:]:
        assert line.split("Film ")[1] == line.split()[1]


def test_recommend_for_a_history_leaves_it_out(run):
    code, out, _ = run("recommend {m} --history 1,2,3 -k 60")
    assert code == 0
    shown = {int(line.split()[1]) for line in out.strip().splitlines()[1:]}
    assert shown
    assert not shown & {1, 2, 3}


def test_recommend_candidates_and_seen(run):
    code, out, _ = run("recommend {m} --user 7 --candidates 4,5,6 --seen")
    assert code == 0
    assert {int(line.split()[1]) for line in out.strip().splitlines()[1:]} == {4, 5, 6}


def test_recommend_all_to_a_file(run):
    code, _, err = run("recommend {m} --all -k 4 -o recs.csv")
    assert code == 0
    assert "recs.csv" in err
    frame = pl.read_csv("recs.csv")
    assert frame.columns == ["user", "rank", "item", "score"]
    assert frame["user"].n_unique() == 120


def test_similar(run):
    code, out, _ = run("similar {m} --item 3 -k 5 --titles {t}")
    assert code == 0
    assert out.startswith("item 3  Film 3")
    assert len(out.strip().splitlines()) == 6


def test_fit_flags_reach_the_model(run):
    code, _, err = run("fit wmf {r} -o a.corank --dim 3 --reg-power 0.5 --epochs 2 --solver exact --seed 4")
    assert code == 0
    assert "user=userId item=movieId value=rating time=timestamp" in err
    model = cr.load("a.corank")
    assert (model.dim, model.reg_power, model.epochs, model.solver, model.seed) == (3, 0.5, 2, "exact", 4)


@pytest.mark.parametrize("name", cr.available())
def test_every_model_can_be_fitted_and_asked(run, name):
    epochs = "--epochs 2" if hasattr(cr.find(name), "epochs") else ""
    assert run(f"fit {name} {{r}} {epochs} -o {name}.corank")[0] == 0
    code, out, _ = run(f"recommend {name}.corank --user 1 -k 2")
    assert code == 0
    assert len(out.strip().splitlines()) == 3


def test_evaluate_on_new_rows(run, made):
    rng = np.random.default_rng(0)
    pl.DataFrame({"user": rng.integers(1, 125, 300), "item": rng.integers(0, 100, 300)}).write_csv("test.csv")
    code, out, _ = run("evaluate {m} test.csv --metrics ndcg@5,recall@20")
    assert code == 0
    assert "ndcg@5" in out
    assert "recall@20" in out
    assert "full ranking of" in out
    assert "left out" in out


def test_compare_writes_report_and_model(run):
    code, out, err = run("compare {r} -o res --models popularity,item_knn,wmf --metrics ndcg@10,recall@5")
    assert code == 0
    assert out.count("[") >= 3  # intervals
    assert "full ranking of" in out
    page = Path("res/report.html").read_text()
    assert "popularity" in page
    assert "<svg" in page
    assert cr.load("res/best.corank").recommend([1], k=1)
    assert "best model" in err


def test_compare_builds_its_models_once(run, monkeypatch):
    built = []
    real = entries.make_model
    monkeypatch.setattr(entries, "make_model", lambda name, params: built.append(name) or real(name, params))
    assert run("compare {r} -o res --models popularity,item_knn --metrics ndcg@10")[0] == 0
    assert built == ["popularity", "item_knn"]


def test_compare_from_toml(run, folder):
    Path("e.toml").write_text(
        f"data = '{folder / 'ratings.csv'}'\nmetrics = ['recall@10']\n[split]\nname = 'holdout'\nby = 'user'\n"
        "[[model]]\nname = 'wmf'\ndim = 4\nlabel = 'small'\n[[model]]\nname = 'popularity'\n"
    )
    code, out, _ = run("compare e.toml -o res")
    assert code == 0
    assert "small" in out
    assert "holdout by user" in out


def test_tune_resumes_and_its_toml_feeds_fit(run):
    code, out, _ = run("tune item_knn {r} --trials 3 -o best.toml --storage s")
    assert code == 0
    assert "best of 3 trials" in out
    code, out, _ = run("tune item_knn {r} --trials 4 -o best.toml --storage s")
    assert code == 0
    assert "best of 4 trials" in out
    assert run("fit item_knn {r} --params best.toml -o t.corank")[0] == 0
    code, _, err = run("fit wmf {r} --params best.toml -o t.corank")
    assert code == 2
    assert "is for item_knn" in err


def test_models_and_data(run):
    code, out, _ = run("models")
    assert code == 0
    assert all(name in out for name in cr.available())
    code, out, _ = run("models wmf")
    assert code == 0
    assert "weight of the pairs without interaction" in out
    code, out, _ = run("data describe {r}")
    assert code == 0
    assert "2,500" in out
    assert "ml-1m" in run("data list")[1]
    assert run("data synth markov -o m.csv --users 20 --items 9")[0] == 0
    assert run("data synth realistic -o r.csv --users 50 --items 60 --rows 700 --labels items.csv")[0] == 0
    assert set(cr.item_table("items.csv").labels.columns) == {"group", "title"}
    assert pl.read_csv("m.csv")["user"].n_unique() == 20


def test_help_and_version(run, capsys):
    for words in (
        ["--help"],
        ["fit", "--help"],
        ["fit", "wmf", "--help"],
        ["data", "fetch", "--help"],
        ["--version"],
        [],
    ):
        with pytest.raises(SystemExit) as left:
            main(words)
        assert left.value.code == 0
    assert "corank" in capsys.readouterr().out


def test_the_model_may_stand_anywhere(run):
    assert run("fit -o a.corank --dim 3 wmf {r} --epochs 1")[0] == 0
    assert cr.load("a.corank").dim == 3


def test_compare_for_ratings(run):
    code, out, _ = run("compare {r} -o res --task explicit --models als,primal_cr,popularity")
    assert code == 0
    assert "rated: each user's test items only" in out
    assert "pairwise_error" in out


def test_sampled_negatives_with_default_metrics(run):
    code, out, _ = run("compare {r} -o res --models popularity,item_knn --protocol sampled --negatives 20")
    assert code == 0
    assert "20 uniform negatives" in out


def test_tune_keeps_what_is_given(run):
    code, out, _ = run("tune ease {r} --reg 250 --trials 3")
    assert code == 0
    assert "best of 1 trials" in out


def test_ids_with_commas(run):
    pl.DataFrame({"user": ["a", "a", "b"], "item": ["x, y", "z", "x, y"]}).write_csv("c.csv")
    assert run("fit popularity c.csv -o c.corank")[0] == 0
    assert main(["recommend", "c.corank", "--history", '"x, y"']) == 0
    assert main(["recommend", "c.corank", "--history", "x, y"]) == 0  # all of it is an id
    assert main(["recommend", "c.corank", "--history", '"x, y",z']) == 0
    assert main(["recommend", "c.corank", "--history", "x,y"]) == 2


MISTAKES = [
    ("fti wmf {r} -o x.corank", "did you mean 'fit'"),
    ("fit wfm {r} -o x.corank", "did you mean 'wmf'"),
    ("fit wmf {r} -o x.corank --dmi 4", "did you mean '--dim'"),
    ("fit wmf {r} -o x.corank --user-edges nowhere.csv", "file 'nowhere.csv' does not exist"),
    ("fit wmf {r} -o x.corank --user-edges .", "give the file in it that has the edges"),
    ("fit wmf {r} -o x.corank --user-edges {r}", "is given for the ratings and for the edges"),
    ("fit wmf {r} -o x.corank --edges {r}", "did you mean '--user-edges'"),
    ("fit ease {r} -o x.corank --dim 4", "`corank models ease` the hyper-parameters of ease"),
    ("fit ease {m} -o x.corank", "is a model file, not a table"),
    ("fit wmf {r} {r} -o x.corank", "is one argument too many for `corank fit`"),
    ("data describe {r} --sep ;", "did you mean '--separator'"),
    ("data synth markov -o x.parquet", "is written as CSV"),
    ("evaluate {m} {r} --negatives 5", "belong to the protocol sampled"),
    ("recommend {m} --user 1 --candidates nowhere.csv", "'nowhere.csv': there is no such file"),
    ("recommend . --user 1", "is a folder, not a model file: give the file in it"),
    ("fit sasrec {r} -o x.corank --no-bf16 true", "'true' follows it: write --bf16 for yes, --no-bf16 for no"),
    ("fit sasrec {r} -o x.corank --bf16=false", "'false' follows it: write --bf16 for yes, --no-bf16 for no"),
    ("compare {r} --split published", "split 'published' is for data with a split of its own"),
    ("fit sasrec {r} -o x.corank --bf16 true", "write --bf16 for yes, --no-bf16 for no"),
    ("fit sasrec --bf16 false {r} -o x.corank", "--bf16 takes no value, and 'false' follows it"),
    ("compare {r} --popular 1", "write --popular for yes, nothing for no"),
    ("data desribe {r}", "there is no command 'data desribe'; did you mean 'describe'"),
    ("fit wmf {r} -o x.corank --dim four", "--dim 'four': it must be a whole number"),
    ("fit wmf {r} -o x.corank --dim 0", "dim must be at least 1"),
    ("fit wmf {r} -o x.corank --solver magic", "magic"),
    ("fit wmf {r}", "-o/--out"),
    ("fit wmf nowhere.csv -o x.corank", "nowhere.csv"),
    ("fit wmf {r} -o x.corank --user who", "who"),
    ("fit wmf {r} -o x.corank --duplicates lst", "did you mean 'last'"),
    ("fit wmf {r} -o x.corank --positive 9", "lower positive"),
    ("compare {r} --metrics ndgc@10", "did you mean"),
    ("compare {r} --metrics ndcg@0", "ndcg@0"),
    ("compare {r} --models wmf,esae", "did you mean 'ease'"),
    ("fit fpmc {r} -o x.corank --targets last", "is not an option of `corank fit fpmc`, which bsarec, "),
    ("compare {r} --ties id", "--ties 'id': it must be one of file, item"),
    ("compare {r} --split holdout --ties item", "split holdout has no option 'ties'"),
    ("compare {r} --task explicit --ties item", "the rows are divided at random here: leave ties out"),
    ("compare {r} --test {r} --ties item", "test = 'ratings.csv' is a part of its own: leave ties out"),
    ("compare {r} --split leave_last", "did you mean 'leave_last_out'"),
    ("compare {r} --protocol fulll", "full"),
    ("compare nothing.toml", "nothing.toml"),
    ("compare {r} --negatives 5", "belong to protocol 'sampled'"),
    ("compare {r} --models ,", "names nothing"),
    ("compare {r} --metrics ,", "names nothing"),
    ("compare {r} --tune -3", "0 or more"),
    ("compare {r} --task implict", "implict"),
    ("evaluate {m} {r} --protocol ful", "did you mean 'full'"),
    ("fit wmf {r} -o .", "is a folder"),
    ("recommend {m} --user 99999", "unknown user 99999"),
    ("recommend {m} --user bob", "not an integer"),
    ("recommend {m} --history 99999", "unknown item 99999"),
    ("recommend {m}", "--user"),
    ("recommend {m} --user 1 --all", "one of them"),
    ("recommend {m} --user 1 -k 0", "at least 1"),
    ("recommend {m} --user 1 -k -3", "at least 1"),
    ("recommend nothing.corank --user 1", "nothing.corank"),
    ("recommend {r} --user 1", "not a corank model file"),
    ("similar {m} --item 99999", "unknown item"),
    ("tune wmf {r} --trials 0", "at least one"),
    ("models wnf", "did you mean 'wmf'"),
    ("data describe nowhere.csv", "nowhere.csv"),
    ("data fetch ml-1n", "did you mean"),
    ("data synth markov -o x.csv --rows 5", "realistic"),
    ("data synth markov -o x.csv --labels y.csv", "--labels is an option of `realistic` only"),
    ("data", "describe"),
    ("reproduce nothing", "no experiment"),
]


@pytest.mark.parametrize(("line", "expected"), MISTAKES, ids=[m[0] for m in MISTAKES])
def test_a_mistake_is_one_sentence(run, line, expected):
    code, out, err = run(line)
    assert code == 2
    assert out == ""
    last = [text for text in err.strip().splitlines() if not text.startswith("corank: compiling")]
    assert expected in last[-1]
    assert "Traceback" not in err
    assert not Path("x.corank").exists()


def test_unknown_option_in_toml(run, folder):
    Path("e.toml").write_text(f"data = '{folder / 'ratings.csv'}'\nmetrcs = ['recall@10']\n")
    code, _, err = run("compare e.toml")
    assert code == 2
    assert "did you mean 'metrics'" in err
    Path("e.toml").write_text(f"data = '{folder / 'ratings.csv'}'\n[[model]]\nname = 'wmf'\ndimm = 3\n")
    code, _, err = run("compare e.toml")
    assert code == 2
    assert "did you mean 'dim'" in err
    Path("e.toml").write_text("data = \n")
    assert run("compare e.toml")[0] == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_read_only_folder(run):
    Path("locked").mkdir(mode=0o500)
    code, _, err = run("fit wmf {r} -o locked/x.corank")
    assert code == 2
    assert "read-only" in err


def test_out_folder_that_is_a_file(run):
    """Also as root: a result that cannot be written is found before the work."""
    Path("taken").write_text("")
    Path("full/report.html").mkdir(parents=True)
    code, _, err = run("compare {r} -o full --models popularity")
    assert code == 2
    assert "is a folder" in err
    for line in ("fit wmf {r} -o taken/x.corank", "compare {r} -o taken", "recommend {m} --all -o taken/r.csv"):
        code, _, err = run(line)
        assert code == 2
        assert "taken" in err
    assert Path("taken").read_text() == ""


def test_failed_save_keeps_the_old_model(folder, tmp_path, monkeypatch):
    target = tmp_path / "m.corank"
    target.write_bytes((folder / "m.corank").read_bytes())
    monkeypatch.setattr(
        Path, "replace", lambda self, other: (_ for _ in ()).throw(OSError(28, "No space left on device"))
    )
    with pytest.raises(cr.CorankError, match="No space left"):
        cr.load(folder / "m.corank").save(target)
    monkeypatch.undo()
    assert cr.load(target)
    assert [p.name for p in tmp_path.iterdir()] == ["m.corank"]


def test_ctrl_c_keeps_what_was_learned(folder, tmp_path, ctrl_c):
    """The first Ctrl-C ends a long fit after its epoch and saves the model."""
    out = tmp_path / "m.corank"
    code = "import sys; from corank.cli import main; sys.exit(main(sys.argv[1:]))"
    fit = ["fit", "wmf", str(folder / "ratings.csv"), "-o", str(out), "--epochs", "1000000", "--dim", "8"]
    process = subprocess.Popen([sys.executable, "-c", code, *fit], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    while " users, " not in process.stderr.readline():  # the table is read, training comes next
        assert process.poll() is None
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "stopped early" in err
    assert len(cr.load(out).history_) < 1_000_000


def test_a_file_is_checked_without_a_fit(run, folder):
    Path("c.toml").write_text(f"data = '{folder / 'ratings.csv'}'\n[[model]]\nname = 'wmf'\ndim = 3\n")
    for command in ("compare c.toml --plan -o never", "reproduce c.toml --plan -o never"):
        code, out, _ = run(command)
        assert code == 0
        assert "WMF(dim=3)" in out
        assert out.endswith("checked: nothing was fitted\n")
    assert not Path("never").exists()


def test_a_named_model_that_fails_and_a_report_that_cannot_be_written(run, folder, monkeypatch):
    from corank import report

    Path("u.csv").write_text("user,item\n" + "".join(f"{u},{i}\n" for u in range(20) for i in range(u % 5, 9)))
    Path("f.toml").write_text("data = 'u.csv'\n[[model]]\nname = 'popularity'\ndays = 7.0\n[[model]]\nname = 'ease'\n")
    code, out, _ = run("compare f.toml -o failed")
    assert code == 1
    assert "skipped: popularity" in out
    monkeypatch.setattr(report, "write_html", lambda *a, **o: 1 / 0)
    code, out, err = run("compare u.csv --models ease -o broken")
    assert code == 1
    assert "report.html is missing: unexpected ZeroDivisionError" in err
    assert Path("broken/results.json").exists()
    assert Path("broken/best.corank").exists()
