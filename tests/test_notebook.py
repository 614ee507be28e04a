"""What a notebook shows: short texts and escaped HTML, and the habits of scikit-learn."""

from __future__ import annotations

import dataclasses
import html.parser

import numpy as np
import pytest
from sklearn.base import clone

import corank as cr
from corank.experiment.results import Results, Row
from corank.notebook import html_table

NASTY = "<script>alert('x')</script> & Co"


class Tags(html.parser.HTMLParser):
    """Checks that tags are closed in order, and collects the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.text: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def data() -> cr.Dataset:
    rng = np.random.default_rng(0)
    user, item = rng.integers(0, 20, 300), rng.integers(0, 15, 300)
    names = np.array([f"item {i}" for i in range(15)])
    made = cr.from_arrays(user=user, item=names[item], value=rng.integers(1, 6, 300), time=np.arange(300))
    return dataclasses.replace(made, item_labels={"title": np.array([NASTY] * 15)})


@pytest.fixture(scope="module")
def split(data: cr.Dataset) -> cr.Split:
    return dataclasses.replace(cr.holdout(data, by="user"), name=NASTY)


@pytest.fixture(scope="module")
def model(split: cr.Split) -> cr.Model:
    return cr.WMF(dim=3, epochs=2).fit(split.train)


def test_everything_that_is_shown_is_escaped(data: cr.Dataset, split: cr.Split, model: cr.Model) -> None:
    report = cr.evaluate(model, split, ["ndcg@5", "coverage@5"], name=NASTY)
    results = Results(split, [Row(NASTY, model, report)], ("ndcg@5",), name=NASTY, failed={"x": NASTY})
    shown = {
        "ranking": model.recommend(k=2),
        "report": report,
        "results": results,
        "split": split,
    }
    for name, value in shown.items():
        tags = Tags(value._repr_html_())
        assert "script" not in tags.seen, name
        assert any("alert('x')" in text for text in tags.text), name
        assert "table" in tags.seen
        assert "\n" not in repr(value)
        assert len(repr(value)) < 200
    assert "300" not in Tags(html_table([["a"]], notes=["b"], more="c")).text
    facts = Tags(data._repr_html_()).text
    assert f"{len(data):,}" in facts
    assert "rows/user" in facts


def test_a_ranking_shows_its_first_lists_only(model: cr.Model) -> None:
    shown = model.recommend(k=2)._repr_html_()
    assert shown.count("<tr>") == 1 + 3 * 2
    assert "and 17 more users" in shown
    assert "more users" not in model.recommend(3)._repr_html_()


def test_repr_shows_what_differs_from_the_defaults() -> None:
    assert repr(cr.WMF()) == "WMF()"
    assert repr(cr.WMF(dim=3, seed=1)) == "WMF(seed=1, dim=3)"

    @dataclasses.dataclass(kw_only=True, eq=False, repr=False)
    class Own(cr.WMF):
        def __repr__(self) -> str:
            return "mine"

    assert repr(Own()) == "mine"


@pytest.mark.parametrize("name", cr.available())
def test_scikit_learn_can_clone_a_model(name: str) -> None:
    model = cr.find(name)(seed=5)
    copy = clone(model)
    assert type(copy) is type(model)
    assert copy is not model
    assert copy.get_params() == model.get_params(deep=False)
    assert copy.params() == model.params()


def test_a_clone_of_a_fitted_model_is_not_fitted(model: cr.Model) -> None:
    copy = clone(model)
    assert copy.params() == model.params()
    with pytest.raises(cr.NotFitted):
        copy.recommend()


def test_params_can_be_set_and_a_typo_changes_nothing() -> None:
    model = cr.WMF(dim=3)
    assert model.set_params(dim=5, epochs=1) is model
    assert (model.dim, model.epochs) == (5, 1)
    with pytest.raises(cr.CorankError, match="WMF has no hyper-parameter 'dmi'; did you mean 'dim'"):
        model.set_params(epochs=9, dmi=4)
    assert model.epochs == 1


def test_names_complete() -> None:
    names = dir(cr)
    assert {"EASE", "WMF", "evaluate", "read_csv", "Dataset"} <= set(names)
    assert names == sorted(names)


def test_a_frame_and_back(data: cr.Dataset) -> None:
    for backend in ("polars", "pandas", "pyarrow"):
        frame = data.to_frame(backend)
        again = cr.from_frame(frame, user="user", item="item", value="value", time="time", duplicates="keep")
        for name in ("user", "item", "value", "time"):
            np.testing.assert_array_equal(getattr(again, name), getattr(data, name))
        assert again.items == data.items
    assert cr.from_arrays(user=[1], item=[2]).to_frame().columns == ["user", "item", "value"]
    with pytest.raises(cr.CorankError, match="use 'polars', 'pandas' or 'pyarrow'"):
        data.to_frame("excel")
