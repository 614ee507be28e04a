"""Given splits from files, frames, folders and archives, in Python and on the command line."""

from __future__ import annotations

import zipfile
from pathlib import Path

import polars as pl
import pytest

import corank as cr
from corank.cli import main
from places import put


@pytest.fixture(scope="module")
def parts(tmp_path_factory) -> Path:
    """train.csv, valid.csv and test.csv, and a folder `lists` with the same rows as `user item item ...`."""
    here = tmp_path_factory.mktemp("given")
    data = cr.synthetic.realistic(users=80, items=120, rows=2_400, seed=1).data
    table = pl.DataFrame({"user": data.user + 1, "item": data.items.ids[data.item], "rating": data.value})
    table = table.sample(fraction=1, shuffle=True, seed=0)
    for name, rows in (("train", table[:1800]), ("valid", table[1800:2000]), ("test", table[2000:])):
        rows.write_csv(here / f"{name}.csv")
        users = rows.group_by("user", maintain_order=True)
        lines = (" ".join(map(str, [user, *own["item"].to_list()])) + "\n" for (user,), own in users)
        put(here / "lists" / f"{name}.txt", "".join(lines))
    return here


def sizes(split: cr.Split) -> tuple[int, int, int]:
    return len(split.train), len(split.valid), len(split.test)


def test_files_frames_and_datasets_give_the_same_split(parts: Path) -> None:
    files = [parts / f"{name}.csv" for name in ("train", "test", "valid")]
    split = cr.given_split(*files)
    assert sizes(split) == (1800, 200, 400)
    assert split.name == "given split (train.csv, test.csv, valid.csv)"
    for made in (map(pl.read_csv, files), (pl.read_csv(f).to_pandas() for f in files), map(cr.read_csv, files)):
        other = cr.given_split(*made)
        assert other.name == "given split"
        assert (other.test.item == split.test.item).all()
        assert (other.train.user == split.train.user).all()
    cut = cr.given_split(*files[:2], seed=5)
    assert cut.name == "given split (train.csv, test.csv); validation: 10 % of each user's training rows, seed 5"
    assert len(cut.train) + len(cut.valid) == 1800


def test_mistakes_are_one_sentence(parts: Path) -> None:
    with pytest.raises(cr.CorankError, match=r"no file and no dataset .*tset\.csv.* did you mean 'test\.csv'"):
        cr.given_split(parts / "train.csv", parts / "tset.csv")
    with pytest.raises(cr.CorankError, match="test is a int: give a Dataset, a file"):
        cr.given_split(parts / "train.csv", 3)
    with pytest.raises(cr.CorankError, match="test=None: give the test rows"):
        cr.given_split(parts / "train.csv", None)
    with pytest.raises(cr.CorankError, match="data is a Split already"):
        cr.Experiment(data=cr.given_split(parts / "train.csv", parts / "test.csv"), split="holdout").run()
    with pytest.raises(cr.CorankError, match="needs test rows beside it"):
        cr.Experiment(data=parts / "train.csv", valid=parts / "valid.csv").make_split()


def test_a_folder_is_a_given_split_with_all_its_parts(parts: Path) -> None:
    split = cr.Experiment(data=parts / "lists").make_split()
    assert sizes(split) == (1800, 200, 400)
    assert split.name == "given split of lists (train.txt, valid.txt, test.txt)"
    assert len(cr.datasets.open_any(parts / "lists")) == 2400


@pytest.mark.parametrize("names", ["train.csv test.csv", "mlTrain.csv mlTest.csv", "x.train.inter x.test.inter"])
def test_names_of_parts(tmp_path: Path, names: str) -> None:
    put(tmp_path / names.split()[0], "user,item\n1,5\n1,6\n2,5\n2,7\n")
    put(tmp_path / names.split()[1], "user,item\n1,7\n")
    split = cr.datasets.open_split(tmp_path)
    assert split is not None
    assert sizes(split) == (4, 0, 1)


def test_archive_parts_files_of_one_table_and_patterns(parts: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        for name in ("train", "test"):
            archive.write(parts / f"{name}.csv", f"inner/{name}.csv")
    split = cr.datasets.open_split(tmp_path / "z.zip")
    assert split is not None
    assert sizes(split) == (1800, 0, 400)
    table = pl.read_csv(parts / "train.csv")
    (tmp_path / "many").mkdir()
    for i in range(3):
        table[600 * i : 600 * (i + 1)].write_csv(tmp_path / "many" / f"part-{i:04}.csv")
    whole = cr.read_csv(parts / "train.csv")
    for place in (tmp_path / "many", tmp_path / "many" / "part-*.csv"):
        assert cr.datasets.open_any(place).value.tolist() == whole.value.tolist()
    put(tmp_path / "many" / "part-0003.csv", "user,product\n1,2\n")
    with pytest.raises(cr.CorankError, match="cannot be one table: their columns differ"):
        cr.datasets.open_any(tmp_path / "many")
    put(tmp_path / "many" / "movies.csv", "item,title\n1,x\n")
    with pytest.raises(cr.CorankError, match=r"holds 5 tables .*: give one of them"):
        cr.datasets.open_any(tmp_path / "many")


def test_a_published_split_is_the_default(root: Path, caplog) -> None:
    put(root / "gowalla" / "train.txt", "0 1 2 3\n1 2 4\n2 1 3\n3 4 1 2\n")
    put(root / "gowalla" / "test.txt", "0 4\n1 1\n")
    split = cr.Experiment(data="gowalla").make_split()
    assert split.name.startswith("gowalla as published; validation: 10 %") or split.name == "gowalla as published"
    assert len(split.test) == 2
    other = cr.Experiment(data="gowalla", split={"name": "holdout", "test": 0.3, "valid": 0.1}).make_split()
    assert other.name.startswith("holdout")
    assert "gowalla as published is not used" in caplog.text
    put(root / "gowalla" / "valid.txt", "0 9\n3 3\n")  # not the published files: nothing is dropped
    assert len(cr.Experiment(data=root / "gowalla").make_split().valid) == 2


def test_order_without_times(tmp_path: Path) -> None:
    path = put(tmp_path / "order.txt", "".join(f"{u} {i}\n" for u in range(9) for i in (9, 3, 7, 5, 4)))
    split = cr.Experiment(data=path, task="sequential").make_split()
    assert split.name == "leave-last-out"
    assert split.notes == ("no times: the order of the file is the order of events",)
    assert set(split.test.items.ids[split.test.item].tolist()) == {4}
    assert cr.Experiment(data=path).make_split().name.startswith("holdout by user")


def test_tables_of_other_things_are_one_sentence(tmp_path: Path) -> None:
    texts = put(tmp_path / "texts.tsv", "".join(f"a sentence about {i}\t{i % 2}\n" for i in range(30)))
    with pytest.raises(cr.CorankError, match=r"each of the 30 users has one row .*no table of interactions"):
        cr.Experiment(data=texts).make_split()
    graph = put(
        tmp_path / "kg.txt", "".join(f"{i}\tfilm.{'actor' if i % 2 else 'genre'}\t{i * 7}\n" for i in range(999))
    )
    with pytest.raises(cr.CorankError, match="looks like a graph"):
        cr.datasets.open_any(graph)


def test_the_command_line(parts: Path, tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    train, valid, test = (str(parts / f"{name}.csv") for name in ("train", "valid", "test"))
    assert main(["compare", train, "--test", test, "--models", "popularity"]) == 0
    out, err = capsys.readouterr()
    assert "given split (train.csv, test.csv); validation: 10 % of each user's training rows, seed 0" in out
    assert "cut from training" in err
    assert main(["compare", train, "--test", test, "--valid", valid, "--models", "popularity"]) == 0
    assert "given split (train.csv, valid.csv, test.csv)" in capsys.readouterr().out
    assert main(["fit", "item_knn", train, "--test", test, "-o", "m.corank"]) == 0
    fitted = capsys.readouterr().out
    assert main(["evaluate", "m.corank", "--test", test]) == 0
    numbers = [line for line in fitted.splitlines()[2:] if not line.startswith("note:")]
    assert capsys.readouterr().out.splitlines()[2:] == numbers
    assert main(["tune", "item_knn", train, "--test", test, "--trials", "1", "-o", "k.toml"]) == 0
    assert f"--test {test}" in capsys.readouterr().err
    put(tmp_path / "new.csv", "user,item,rating\n1,1,3\n1,999,3\n777,1,2\n")
    assert main(["evaluate", "m.corank", "--test", "new.csv"]) == 0
    out, err = capsys.readouterr()
    assert "2 of 3 rows are left out: the model does not know 1 user and 1 item" in out
    assert main(["evaluate", "m.corank"]) == 2
    assert "say which rows to evaluate on" in capsys.readouterr().err
    assert main(["compare", train, "--test", test, "--split", "holdout"]) == 2
    assert "drop one" in capsys.readouterr().err
    put(tmp_path / "e.toml", f"data = '{train}'\ntest = '{test}'\n[[model]]\nname = 'popularity'\n")
    assert main(["compare", "e.toml"]) == 0
    assert "given split (train.csv, test.csv); validation" in capsys.readouterr().out
