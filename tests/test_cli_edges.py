"""A graph from two files to a fitted model: `--user-edges` and `--item-edges`, and the same in an experiment."""

from __future__ import annotations

import shlex
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import corank as cr
from corank.cli import main


@pytest.fixture
def here(tmp_path, monkeypatch):
    """ratings.csv of 60 people, friends.csv in which 4 more have friends only, related.csv with an unknown item."""
    monkeypatch.chdir(tmp_path)
    made = cr.synthetic.simulation(users=65, items=30, rank=3, edge=0.1, train=0.3, valid=0.1, seed=2)
    data = made.data.take(made.data.user >= 5)
    named = [f"u{u}" for u in range(65)]
    rows = {"user": [named[u] for u in data.user], "item": data.item, "rating": np.round(data.value, 2)}
    pl.DataFrame(rows).write_csv("ratings.csv")
    ties = made.data.user_graph.scipy().tocoo()
    pl.DataFrame({"user": [named[u] for u in ties.row], "friend": [named[u] for u in ties.col]}).write_csv(
        "friends.csv"
    )
    (tmp_path / "related.csv").write_text("item,related\n1,2\n2,999\n")
    return made.data.user_graph


def run(capsys, *words):
    code = main([str(w) for w in words])
    out, err = capsys.readouterr()
    return code, out, err


def test_fit_learns_from_both_graphs(here, capsys):
    files = ("--user-edges", "friends.csv", "--item-edges", "related.csv")
    small = ("--dim", 3, "--epochs", 3, "--user-graph", "g", "--item-graph", "g")
    code, _, err = run(capsys, "fit", "grmf", "ratings.csv", *files, *small, "-o", "m.corank")
    assert code == 0
    edges = here.index.size // 2
    assert "corank: friends.csv: source=user target=friend (separator ',', header)" in err
    assert f"corank: friends.csv: {edges} edges between users; 4 users without rows (u0, u1, u3, ...) were added" in err
    assert "corank: related.csv: 1 edge between items; 1 item without rows (999) was left out, with its edges" in err
    model = cr.load("m.corank")
    data = cr.read_csv("ratings.csv").with_graph(users="friends.csv", items="related.csv")
    own = cr.GRMF(dim=3, epochs=3, user_graph="g", item_graph="g").fit(data)
    np.testing.assert_array_equal(own.user_factors_, model.user_factors_)
    np.testing.assert_array_equal(own.item_factors_, model.item_factors_)
    code, out, _ = run(capsys, "recommend", "m.corank", "--user", "u3", "-k", 2)  # who has rated nothing
    assert code == 0
    assert out.startswith("user u3\n    1  ")
    assert model.user_factors_[model.users_.codes(["u3"])].any()
    assert "999" not in model.items_.ids.astype(str)


def test_positive_leaves_out_rows_and_not_friends(here, capsys):
    code, _, err = run(
        capsys, *("fit", "grwmf", "ratings.csv", "--user-edges", "friends.csv", "--positive", 0.5, "-o", "m.corank")
    )
    assert code == 0
    assert "added" in err
    assert len(cr.load("m.corank").users_) == 64


def test_models_of_graphs_join_compare(here, capsys):
    words = ("compare", "ratings.csv", "--user-edges", "friends.csv", "--task", "explicit", "-o", "out")
    code, out, _ = run(capsys, *words)
    assert code == 0
    assert "grmf" in out
    assert "co_factor" in out
    code, out, _ = run(capsys, "compare", "ratings.csv", "--task", "explicit", "-o", "out")
    assert code == 0
    assert "grmf" not in out


def test_tune_takes_edges(here, capsys):
    pytest.importorskip("optuna")
    options = ("--user-edges", "friends.csv", "--trials", 1, "--epochs", 2, "--dim", 2, "--user-graph", "g")
    code, _, err = run(capsys, "tune", "grwmf", "ratings.csv", *options)
    assert code == 0
    assert "no graph" not in err  # which the model would say
    assert "edges between users" in err


def test_what_tune_found_can_be_used_as_it_says(here, tmp_path, capsys):
    pytest.importorskip("optuna")
    for name in ("ratings", "friends"):
        (tmp_path / f"{name}.csv").rename(f"my {name}.csv")
    options = ("--user-edges", "my friends.csv", "--positive", -0.5, "--item", "item", "-o", "the best.toml")
    small = ("--trials", 1, "--epochs", 2, "--dim", 2, "--user-graph", "g")
    code, _, err = run(capsys, "tune", "grwmf", "my ratings.csv", *options, *small)
    assert code == 0
    line = next(line for line in err.splitlines() if line.startswith("use it:"))  # compiling may be told of after it
    assert line == (
        "use it:  corank fit grwmf 'my ratings.csv' --item item --positive -0.5 --user-edges 'my friends.csv' "
        "--params 'the best.toml' -o m.corank"
    )
    assert run(capsys, *shlex.split(line)[3:])[0] == 0


def test_ratings_are_no_edges(here, tmp_path, capsys):
    (tmp_path / "u.data").write_text("".join(f"{u}\t{i}\t3\n" for u in range(9) for i in range(20, 25)))
    (tmp_path / "same").symlink_to("u.data")
    for command in (("fit", "grmf", "u.data"), ("compare", "u.data"), ("tune", "grmf", "u.data")):
        for option in ("--user-edges", "--item-edges"):
            code, _, err = run(capsys, *command, option, "same", "-o", "out")
            assert code == 2
            assert "file 'same' is given for the ratings and for the edges" in err
    with pytest.raises(cr.CorankError, match="is given for the ratings and for the edges"):
        cr.Experiment(data="u.data", item_edges=tmp_path / "u.data").check()


def test_a_graph_that_is_asked_for_and_not_there(here, capsys, caplog):
    code, _, err = run(capsys, "fit", "grmf", "ratings.csv", "--item-graph", "g", "-o", "m.corank")
    assert code == 2
    assert "--item-edges FILE" in err
    assert "plain" not in err + caplog.text


def test_edges_of_a_table_and_a_published_split(here, capsys):
    words = ("compare", "ratings.csv", "--user-edges", "friends.csv", "--split", "published", "-o", "out")
    code, _, err = run(capsys, *words)
    assert code == 2
    assert err.strip().splitlines()[-1].startswith("corank: split 'published' is for data with a split of its own")


def test_edges_of_an_experiment(here, tmp_path, capsys, monkeypatch):
    (tmp_path / "e.toml").write_text(
        "data = 'ratings.csv'\nuser_edges = 'friends.csv'\nmetrics = ['recall@5']\n"
        "[[model]]\nname = 'grwmf'\ndim = 2\nepochs = 2\n"
    )
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")  # the files stand beside the TOML file
    code, _, err = run(capsys, "compare", "../e.toml", "-o", "out")
    assert code == 0
    assert "edges between users" in err
    assert len(cr.load("out/best.corank").users_) == 64
    code, _, err = run(capsys, "compare", "../e.toml", "-o", "out", "--user-edges", "friends.csv")
    assert code == 2  # the option wins, and is not looked for beside the TOML file
    assert "file 'friends.csv' does not exist" in err


def test_a_model_that_uses_no_graph(here, capsys):
    code, _, err = run(capsys, "fit", "als", "ratings.csv", "--user-edges", "friends.csv", "-o", "m.corank")
    assert code == 0
    assert "als does not use a graph: the edges add users and have no other effect\n" in err
    code, _, err = run(capsys, "fit", "ease", "ratings.csv", "--item-edges", "related.csv", "-o", "m.corank")
    assert "ease does not use a graph: the edges have no effect\n" in err
    code, _, err = run(capsys, "fit", "mf", "ratings.csv", "--user-edges", "friends.csv", "-o", "m.corank")
    assert "does not use a graph" not in err


def test_edges_are_never_written_over(here, capsys, tmp_path):
    before = (tmp_path / "friends.csv").read_text()
    code, _, err = run(capsys, "fit", "als", "ratings.csv", "--user-edges", "friends.csv", "-o", "friends.csv")
    assert code == 2
    assert "is an input file" in err
    assert (tmp_path / "friends.csv").read_text() == before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"user_edges": 3}, "user_edges = 3: it must be the name of a file"),
        ({"item_edges": "nowhere.csv"}, "'nowhere.csv' does not exist"),
        ({"user_edges": "friends.csv", "data": {"synthetic": "simulation"}}, "generated or split already"),
    ],
)
def test_wrong_edges_of_an_experiment_are_a_sentence(here, options, words):
    with pytest.raises(cr.CorankError, match=words):
        cr.Experiment(**{"data": "ratings.csv", **options}).check()


def test_a_named_dataset_with_a_graph_brings_its_models(tmp_path, monkeypatch):
    folder = tmp_path / "filmtrust"
    folder.mkdir()
    rng = np.random.default_rng(0)
    rows = {(int(u), int(i)) for u, i in rng.integers(1, 20, (200, 2))}
    (folder / "ratings.txt").write_text("".join(f"{u} {i} {1 + (u + i) % 4}\n" for u, i in sorted(rows)))
    (folder / "trust.txt").write_text("1 2 1\n2 3 1\n4 40 1\n")
    monkeypatch.setenv("CORANK_DATA", str(tmp_path))
    asked = cr.Experiment(data="filmtrust", task="explicit")
    assert "grmf" in [row.label for row in asked.entries()]
    assert asked._rows(0) is asked._rows(1)  # opened once
    made = {"synthetic": "simulation", "users": 40, "items": 20, "rank": 2, "train": 0.5}
    assert "grmf" in [row.label for row in cr.Experiment(data=made, task="explicit").entries()]


def test_a_file_that_changed_is_read_again(tmp_path):
    file = tmp_path / "r.csv"
    asked = cr.Experiment(data=file, models=["popularity"], split={"name": "holdout"}, metrics=["recall@5"])
    for users in (10, 20):
        file.write_text("user,item\n" + "".join(f"{u},{i}\n" for u in range(users) for i in range(5)))
        assert len(asked.run().split.train.users) == users


def test_torch_is_announced_once_and_only_when_it_is_loaded():
    pytest.importorskip("torch")
    code = (
        "import importlib.util, sys\n"
        "from corank.cli.show import announcing_torch\n"
        "with announcing_torch():\n"
        "    importlib.util.find_spec('torch')\n"
        "    print('looked', file=sys.stderr)\n"
        "    import torch\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stderr.splitlines() == ["looked", "corank: loading PyTorch, which takes some seconds"]
