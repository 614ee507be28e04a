"""The schema of experiment files: each mistake is a sentence before the first fit, and all of them come at once."""

from __future__ import annotations

import inspect

import pytest

import corank as cr
from corank.experiment import kinds, schema

START = "data = { synthetic = 'realistic', users = 40, items = 40, rows = 400, groups = 3, friends = 3 }\n"
ROW = "[[model]]\nname = 'popularity'\n"


def load(tmp_path, text):
    (tmp_path / "e.toml").write_text(text)
    return cr.Experiment.from_toml(tmp_path / "e.toml")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "seeds = 5",
            r"e.toml: seeds = 5: it must be a list of whole numbers of 0 or more, such as seeds = \[1, 2, 3\]",
        ),
        ("seeds = [1, 1]", "a seed is in it twice"),
        ("seeds = [1.5]", "seeds has 1.5: it must be a whole number of 0 or more"),
        ("gain = 5", "gain = 5: gain is that of NDCG"),
        ("metrics = 5", "metrics = 5: it must be a list of metrics"),
        ("metrics = 'ndcg@10'", "metrics = 'ndcg@10': it must be a list of metrics"),
        ("metrics = ['ndgc@10']", "there is no metric 'ndgc@10'; did you mean 'ndcg@10'"),
        ("split = [1]", r"split = \[1\]: it must be the name of a split"),
        ("split = { name = 'holdout', test = 1.5 }", "split holdout.test = 1.5: it must be a share"),
        ("split = { name = 'fixed_per_user' }", "train must be given, e.g. train = 50"),
        ("split = { name = 'holdout', tset = 0.2 }", "no option 'tset'; did you mean 'test'"),
        (
            "split = { name = 'leave_last_out', ties = 'id' }",
            "ties = 'id' is not known; known: file, item",
        ),
        ("split = { name = 'holdout', ties = 'item' }", "split holdout has no option 'ties'"),
        ("split = { name = 'auto', ties = 3 }", "split auto.ties = 3: it must be one of 'file', 'item'"),
        ("split = { name = 'auto', test = 0.1 }", "split auto has no option 'test': choose a split"),
        ("split = { name = 'published', ties = 'item' }", "split published has no option 'ties': choose a split"),
        ("columns = 3", "columns = 3: it must be a table"),
        ("name = '../../escaped/here'", "name = '../../escaped/here': it must be a name"),
        ('name = "a\\u0000"', "it must be a name"),
        ("name = ''", "it must be a name"),
        ("relevant = nan", "relevant = nan: it must be a finite number"),
        ("seed = 9223372036854775808", "below 2\\^62"),
        ("title = 2024-01-31", "it must be a text"),
        ("between = ['a', 'b']", "give the labels of two rows"),
        ("negatives = 7", "belong to protocol 'sampled'"),
        ("protocol = 'rated'\nmetrics = ['coverage@10']", "needs protocol 'full', not 'rated'"),
        ("valid = 'nowhere.csv'", "there is no file 'nowhere.csv'"),
        ("curves = true\nseeds = [1, 2]", "seeds would have no effect"),
        ("columns = { user = 'u' }", "this data is generated: leave columns out"),
        ("split = 'published'", "this data is generated: use 'auto'"),
        ("[data.users]\nx = 1", "cannot be read as TOML"),
    ],
    ids=str,
)
def test_one_mistake_is_one_sentence(tmp_path, line, expected):
    with pytest.raises(cr.CorankError, match=expected) as caught:
        load(tmp_path, START + line + "\n" + ROW)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("published = 'x'", r"model 1 \(popularity\), published = 'x': it must be a table of figures"),
        ("published = { 'ndcg@10' = 'x' }", "published.ndcg@10 = 'x': it must be a finite number"),
        ("published = { ndcgg = 1.0 }", "there is no metric 'ndcgg'"),
        ("label = 3", "label = 3: it must be a text"),
        ("at_most = 0", "at_most = 0: it must be a whole number of 1 or more"),
        ("days = 'x'", r"Popularity\(days='x'\): days must be a number"),
        ("tied = true", "popularity has no hyper-parameter 'tied', which gru4rec has; known: days, seed"),
        ("targets = 'last'", "popularity has no hyper-parameter 'targets', which bsarec, .* have; known: days, seed"),
        ("dayz = 3.0", "popularity has no hyper-parameter 'dayz'; did you mean 'days'"),
    ],
    ids=str,
)
def test_mistakes_in_rows_name_the_row(tmp_path, line, expected):
    with pytest.raises(cr.CorankError, match=expected):
        load(tmp_path, START + ROW + line + "\n")


def test_all_mistakes_come_at_once(tmp_path):
    text = START + "seeds = 5\nmetrcs = ['ndcg@10']\ntask = 'explict'\n" + ROW + "dim = 2\n[[model]]\nname = 'wnf'\n"
    with pytest.raises(cr.CorankError) as caught:
        load(tmp_path, text)
    head, *lines = str(caught.value).splitlines()
    assert head.endswith("e.toml: 5 mistakes")
    for words in ("did you mean 'metrics'", "seeds = 5", "did you mean 'explicit'", "no hyper-parameter", "'wnf'"):
        assert sum(words in line for line in lines) == 1
    many = START + "".join(f"key{n} = 1\n" for n in range(15)) + ROW
    with pytest.raises(cr.CorankError) as caught:
        load(tmp_path, many)
    assert len(str(caught.value).splitlines()) == 12
    assert str(caught.value).endswith("... and 5 more")


def test_damaged_files_are_sentences(tmp_path):
    file = tmp_path / "e.toml"
    for content in (b"\xff\xfe", b"a = " + b"[" * 50_000, b"a = " + b"9" * 5000, b"#" * 2_000_000, b"data = \0"):
        file.write_bytes(content)
        with pytest.raises(cr.CorankError, match=r"e\.toml cannot be read as TOML"):
            cr.Experiment.from_toml(file)
    file.write_bytes(b"\xef\xbb\xbf" + (START + ROW).replace("\n", "\r\n").encode())
    assert cr.Experiment.from_toml(file).models == [{"name": "popularity"}]
    with pytest.raises(cr.CorankError, match="it is no file"):
        cr.Experiment.from_toml(tmp_path)


def test_options_take_the_place_of_those_in_the_file(tmp_path):
    (tmp_path / "e.toml").write_text(START + "seeds = 5\nseed = 1\n" + ROW)
    made = cr.Experiment.from_toml(tmp_path / "e.toml", seeds=[3, 4])
    assert made.seeds == [3, 4]
    assert made.seed == 1


def test_the_schema_is_that_of_the_functions():
    for name, options in schema.SPLITS.items():
        assert {*options, "data"} == set(inspect.signature(getattr(cr, name)).parameters)
    fields = {f for f in cr.Experiment.__dataclass_fields__ if not f.startswith("_")}
    assert set(schema.options(cr.Experiment)) == fields


def test_defaults_are_valid():
    for name, (known, default) in schema.options(cr.Experiment).items():
        if default is not None and isinstance(default, str | int | float | tuple | bool):
            assert not list(known.kind.mistakes(name, default)), name


def test_numbers():
    for value in (True, "1", None, 10**5000, float("inf"), float("nan")):
        assert list(kinds.number().mistakes("x", value))
    assert not list(kinds.number().mistakes("x", 10**200))


class Broken(cr.Popularity):
    """A model with a defect."""

    def _fit(self, data, rows, training):
        raise RuntimeError("the solver\nbroke")


def test_a_defect_of_one_model_costs_no_other_row(tmp_path):
    data = cr.synthetic.realistic(users=60, items=60, rows=900, groups=3, friends=3).data
    results = cr.Experiment(data=data, models=[Broken(), "popularity"], metrics=["recall@5"]).run()
    assert [row.label for row in results.rows] == ["popularity"]
    assert results.failed == {"Broken": "unexpected RuntimeError: the solver broke"}
    with pytest.raises(cr.CorankError, match="Broken: unexpected RuntimeError: the solver broke"):
        cr.Experiment(data=data, models=[Broken()], metrics=["recall@5"]).run()


def test_tuning_of_a_hostile_name_stays_in_the_storage(tmp_path):
    pytest.importorskip("optuna")
    data = cr.synthetic.realistic(users=60, items=60, rows=900, groups=3, friends=3).data
    experiment = cr.Experiment(data=data, models=["item_knn"], metrics=["recall@5"], tune=1, name="CON: a*b")
    experiment.run(storage=tmp_path / "deep" / "storage")
    (made,) = (tmp_path / "deep" / "storage").iterdir()
    assert made.name.startswith("CON_ a_b-")
    experiment.name = "../../escaped"
    with pytest.raises(cr.CorankError, match="it must be a name"):
        experiment.run(storage=tmp_path / "deep" / "storage")


def test_missing_data_is_said_once(tmp_path):
    (tmp_path / "t.csv").write_text("user,item\n1,2\n")
    with pytest.raises(cr.CorankError) as caught:
        load(tmp_path, "test = 't.csv'\n" + ROW)
    assert str(caught.value).endswith(
        "e.toml: data is missing: name the data, e.g. data = 'ml-1m' or data = 'ratings.csv'"
    )
