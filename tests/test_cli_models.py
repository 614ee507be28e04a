"""The command line with every model, and the mistakes that only some of them can meet."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import corank as cr
from corank.cli import main


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    data = cr.synthetic.realistic(users=60, items=80, rows=1_200, groups=4, seed=3).data
    file = tmp_path_factory.mktemp("cli") / "ratings.csv"
    rows = {"user": data.user + 1, "item": data.item, "rating": data.value, "timestamp": data.time}
    pl.DataFrame(rows).write_csv(file)
    return file


def ended(capsys, *words) -> tuple[int, str]:
    code = main([str(w) for w in words])
    return code, capsys.readouterr().err


@pytest.mark.parametrize("name", cr.available())
@pytest.mark.parametrize("command", ["fit", "tune"])
def test_every_model_has_flags(command, name, capsys):
    """Hyper-parameters and options of the command may share a name, and must not get in each other's way."""
    with pytest.raises(SystemExit) as stopped:
        main([command, name, "--help"])
    assert stopped.value.code == 0
    assert f"hyper-parameters of {name}" in capsys.readouterr().out


def test_negatives_of_the_model_and_of_the_protocol(table, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    small = ("--epochs", 2, "--dim", 4, "--trials", 1)
    options = ("--negatives", 2, "--protocol", "sampled", "--sampled-negatives", 5)
    assert ended(capsys, "tune", "bpr", table, *small, *options)[0] == 0
    assert "negatives = 2" in (tmp_path / "bpr.toml").read_text()


def test_patience_holds_rows_out(table, tmp_path, capsys):
    code, err = ended(
        capsys, "fit", "sql_rank", table, "-o", tmp_path / "m.corank", "--patience", 1, "--epochs", 30, "--dim", 4
    )
    assert code == 0
    assert "held-out validation rows" in err
    assert len(cr.load(tmp_path / "m.corank").history_) < 30
    with pytest.raises(cr.CorankError, match="patience=3 needs validation rows"):
        cr.SQLRank(patience=3).fit(cr.synthetic.realistic(users=60, items=80, rows=1_200, groups=4, seed=3).data)


def test_steps_that_are_too_long(table, tmp_path, capsys):
    pytest.importorskip("torch")
    for lr in ("1e6", "1e30"):
        file = tmp_path / f"{lr}.corank"
        code, err = ended(
            capsys, "fit", "sasrec", table, "-o", file, "--epochs", 1, "--lr", lr, "--dim", 8, "--max-len", 20
        )
        assert code == 0 or "lower lr (now" in err
        assert code == 0 or not file.exists()
        if code == 0:  # what is saved must answer with numbers
            assert np.isfinite(cr.load(file).recommend(k=3).scores).all()
    assert code != 0


def test_checkpoint_is_not_the_ratings(table, tmp_path, capsys):
    before = Path(table).read_bytes()
    code, err = ended(capsys, "fit", "wmf", table, "-o", tmp_path / "m.corank", "--checkpoint", table)
    assert code == 2
    assert "is an input file and would be overwritten" in err
    assert Path(table).read_bytes() == before


def test_nothing_comes_next(tmp_path, capsys):
    pytest.importorskip("torch")
    (tmp_path / "single.csv").write_text("user,item,rating,timestamp\na,x,3,1\nb,y,4,2\nc,z,5,3\n")
    code, err = ended(capsys, "fit", "sasrec", tmp_path / "single.csv", "-o", tmp_path / "m.corank")
    assert code == 2
    assert "no user has two items" in err


def test_no_times_are_said(tmp_path, capsys):
    pytest.importorskip("torch")
    (tmp_path / "t.csv").write_text("user,item\na,x\na,y\nb,y\nb,x\n")
    code, err = ended(
        capsys, "fit", "sasrec", tmp_path / "t.csv", "-o", tmp_path / "m.corank", "--epochs", 1, "--dim", 4
    )
    assert code == 0
    assert "no times" in err


def test_explicit_needs_ratings(tmp_path, capsys):
    rows = "".join(f"u{u},i{(u * i) % 11}\n" for u in range(1, 20) for i in range(1, 10))
    (tmp_path / "t.csv").write_text("user,item\n" + rows)
    code, err = ended(capsys, "compare", tmp_path / "t.csv", "--task", "explicit", "-o", tmp_path / "out")
    assert code == 2
    assert "all rows here have one value" in err


@pytest.mark.parametrize("name", [n for n in cr.available() if not cr.find(n).takes_comparisons])
def test_comparisons_are_for_those_who_read_them(name):
    asked = cr.Dataset.from_comparisons(user=["a", "a", "b"], preferred=["x", "y", "y"], other=["y", "z", "z"])
    with pytest.raises(cr.CorankError, match="does not learn from comparisons"):
        cr.find(name)().fit(asked)


def test_class_names_are_understood(table, tmp_path, capsys):
    code, err = ended(capsys, "fit", "SASRec", table, "-o", tmp_path / "m.corank")
    assert code == 2
    assert "did you mean 'sasrec'" in err
