"""What every model promises about its settings, its learning and its files; the two files beside it have the rest.

Nothing here names a model: a new file in `models/` is covered by being there.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import pickle

import numpy as np
import pytest

import corank as cr
from board import assert_same_ranking
from corank.params import check, params_of


def everything(model):
    """The score of every pair, through the public door."""
    users, items = model.users_.ids, model.items_.ids
    return model.predict(np.repeat(users, items.size), np.tile(items, users.size))


def state(model):
    """All that was learned, but for the clock."""
    clock = {"fit_seconds_", "history_"}
    return {k: v for k, v in model._learned().items() if k not in clock}


def assert_same_state(one, other):
    one, other = state(one), state(other)
    assert one.keys() == other.keys()
    for name, value in one.items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, other[name], err_msg=name)
        else:
            assert value == other[name], name


def assert_sentence(error):
    """One sentence: one line that says something."""
    text = str(error.value)
    assert "\n" not in text
    assert len(text.split()) >= 5


# ---- settings ----------------------------------------------------------------------------------------------------


def test_default_constructible(cls):
    assert isinstance(cls(), cr.Model)


def test_constructor_stores_and_nothing_else(cls):
    names = [f.name for f in dataclasses.fields(cls)]
    model = cls(seed="not looked at before fit")
    assert list(vars(model)) == names
    assert model.seed == "not looked at before fit"


def test_unknown_keyword_is_a_type_error(cls):
    with pytest.raises(TypeError, match="no_such_option"):
        cls(no_such_option=1)


def test_positional_arguments_are_refused(cls):
    with pytest.raises(TypeError):
        cls(1)


def test_found_by_the_name_of_its_file(cls):
    assert cr.find(cls.name()) is cls
    assert cls.__module__ == f"corank.models.{cls.name()}"


def test_public_by_its_class_name(cls):
    assert getattr(cr, cls.__name__) is cls


def test_class_and_module_are_documented(cls):
    import sys

    assert cls.__doc__
    assert len(sys.modules[cls.__module__].__doc__) + len(cls.__doc__) > 200


def test_every_parameter_is_documented(cls):
    for name, (_, _, _, rule) in params_of(cls).items():
        assert len(rule.doc) >= 10, name


def test_every_parameter_has_a_plain_type(cls):
    for name, (kind, _, _, _) in params_of(cls).items():
        assert kind in (int, float, str, bool), name


def test_defaults_are_allowed(cls):
    check(cls())


def test_search_ranges_are_allowed_and_rise(cls):
    for name, (kind, _, _, rule) in params_of(cls).items():
        if rule.search is None:
            continue
        if kind in (int, float):
            low, high = rule.search
            assert low < high, name
            assert low > 0 or not rule.log, name
        for value in rule.search:
            check(cls(**{name: value}))


def test_something_can_be_searched_or_there_is_nothing_to_set(cls):
    rules = [rule for name, (_, _, _, rule) in params_of(cls).items() if name != "seed"]
    assert not rules or cls.name() == "popularity" or any(rule.search for rule in rules)


def test_params_round_trip(cls):
    model = cls(seed=7)
    assert cls(**model.params()).params() == model.params()
    assert model.params()["seed"] == 7


def test_params_are_json(cls):
    assert json.loads(json.dumps(cls().params())) == cls().params()


def test_repr_shows_the_parameters(cls):
    assert "seed=3" in repr(cls(seed=3))
    assert repr(cls()).startswith(cls.__name__)


@pytest.mark.parametrize("wrong", ["text", [1], True])
def test_wrong_type_is_a_sentence(cls, board, wrong):
    for name, (kind, _, _, _) in params_of(cls).items():
        if kind in (int, float):
            with pytest.raises(cr.CorankError, match=f"{name}=") as error:
                cls(**{name: wrong}).fit(board)
            assert_sentence(error)


def test_number_for_a_text_is_a_sentence(cls, board):
    for name, (kind, _, _, _) in params_of(cls).items():
        if kind is str:
            with pytest.raises(cr.CorankError, match=f"{name}=") as error:
                cls(**{name: 3}).fit(board)
            assert_sentence(error)


def test_out_of_range_is_a_sentence(cls, board):
    for name, (kind, _, _, rule) in params_of(cls).items():
        beyond = [b for b in ((rule.low, -1), (rule.high, 1)) if b[0] is not None]
        for bound, step in beyond if kind in (int, float) else []:
            with pytest.raises(cr.CorankError, match=name) as error:
                cls(**{name: kind(bound + step)}).fit(board)
            assert_sentence(error)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_numbers_must_be_finite(cls, board, wrong):
    for name, (kind, _, _, _) in params_of(cls).items():
        if kind is float:
            with pytest.raises(cr.CorankError, match=name) as error:
                cls(**{name: wrong}).fit(board)
            assert_sentence(error)


def test_unknown_choice_names_the_known_ones(cls, board):
    for name, (_, _, _, rule) in params_of(cls).items():
        if rule.choices:
            with pytest.raises(cr.CorankError, match=str(rule.choices[0])) as error:
                cls(**{name: "no such choice"}).fit(board)
            assert_sentence(error)


def test_negative_seed_is_refused(cls, board):
    with pytest.raises(cr.CorankError, match="seed"):
        cls(seed=-1).fit(board)


# ---- before fit --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ask",
    [
        lambda m, path: m.recommend([0]),
        lambda m, path: m.recommend(histories=[[0]]),
        lambda m, path: m.predict([0], [0]),
        lambda m, path: m.similar_items([0]),
        lambda m, path: m.save(path / "model.corank"),
    ],
    ids=["recommend", "histories", "predict", "similar", "save"],
)
def test_unfitted_says_so(cls, tmp_path, ask):
    with pytest.raises(cr.NotFitted, match="fit") as error:
        ask(cls(), tmp_path)
    assert_sentence(error)
    assert not list(tmp_path.iterdir())


# ---- learning ----------------------------------------------------------------------------------------------------


def test_fit_returns_self(new, board):
    model = new()
    assert model.fit(board) is model


def test_fit_leaves_the_parameters_alone(new, board):
    model = new(seed=5)
    before = model.params()
    assert model.fit(board).params() == before


def test_fit_of_nothing_is_a_sentence(new, board):
    with pytest.raises(cr.CorankError, match="no rows") as error:
        new().fit(board.take(np.zeros(len(board), bool)))
    assert_sentence(error)


def test_refit_forgets(new, board, model):
    used = new().fit(cr.from_arrays(user=[1, 1, 2], item=[4, 5, 4], value=[1.0, 3.0, 2.0]))
    assert_same_state(used.fit(board), model)


def test_same_seed_same_scores(new, board, model):
    assert_same_state(new().fit(board), model)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_any_number_of_threads_gives_the_same_bits(new, board, model, count):
    cr.set_threads(count)
    again = new().fit(board)
    assert_same_state(again, model)
    np.testing.assert_allclose(everything(again), everything(model), rtol=1e-5)


def test_other_seed_is_a_model_too(new, board):
    assert np.isfinite(everything(new(seed=123).fit(board))).all()


def test_inputs_stay_untouched(new, board):
    columns = ("user", "item", "value", "time")
    before = [getattr(board, name).tobytes() for name in columns]
    rows = board.csr()
    model = new().fit(board)
    model.recommend(k=3)
    assert [getattr(board, name).tobytes() for name in columns] == before
    np.testing.assert_array_equal(board.csr().value, rows.value)


def test_what_is_learned_ends_in_an_underscore(new, board):
    model = new()
    before = set(vars(model))
    model.fit(board)
    new = {name for name in set(vars(model)) - before if not name.startswith("_")}
    assert new
    assert all(name.endswith("_") for name in new)


def test_learned_numbers_are_finite(model):
    for name, value in model._learned().items():
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            assert np.isfinite(value).all(), name


def test_history_has_an_entry_an_epoch(model):
    asked = model.used_params().get("epochs", 0)
    assert [entry["epoch"] for entry in model.history_] == list(range(1, asked + 1))
    seconds = [entry["seconds"] for entry in model.history_]
    assert seconds == sorted(seconds)
    assert model.fit_seconds_ >= (seconds[-1] if seconds else 0)


def test_objective_never_rises(model, new, board):
    if not any("objective" in entry for entry in model.history_):
        pytest.skip("has no objective that falls by epochs")
    noise = 1e-6
    if hasattr(model, "lr"):  # stochastic gradients: the default rate may overshoot in the first epochs
        noise, model = 0.02, new(lr=model.lr / 3).fit(board)
    values = [entry["objective"] for entry in model.history_]
    assert all(b <= a * (1 + noise) + 1e-6 for a, b in itertools.pairwise(values)), values


def test_on_epoch_sees_each_entry(new, board):
    seen = []
    model = new().fit(board, on_epoch=seen.append)
    assert seen == model.history_


def test_on_epoch_can_stop(new, board):
    model = new().fit(board, on_epoch=lambda entry: entry["epoch"] < 2)
    assert len(model.history_) == min(2, model.used_params().get("epochs", 0))
    assert np.isfinite(everything(model)).all()


def test_interrupted_fit_leaves_no_half_model(cls, new, board, monkeypatch):
    def interrupted(self, *args):
        learn(self, *args)
        raise KeyboardInterrupt

    model, learn = new().fit(board), cls._fit
    monkeypatch.setattr(cls, "_fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(board)
    with pytest.raises(cr.NotFitted):
        model.recommend([0])
    monkeypatch.undo()
    model.fit(board)
    assert len(model.recommend([0], k=1)) == 1


def test_interruption_by_the_callback_leaves_no_half_model(cls, new, board):
    def stop(entry):
        raise KeyboardInterrupt

    if not hasattr(cls, "epochs"):
        pytest.skip("has no epochs, so nothing calls back")
    model = new()
    with pytest.raises(KeyboardInterrupt):
        model.fit(board, on_epoch=stop)
    with pytest.raises(cr.NotFitted):
        model.recommend([0])


def test_valid_of_other_data_is_refused(new, board):
    with pytest.raises(cr.CorankError, match="valid") as error:
        new().fit(board, valid=cr.from_arrays(user=[1], item=[2]))
    assert_sentence(error)


def test_valid_is_measured_each_epoch(new, board):
    split = cr.leave_last_out(board)
    model = new().fit(split.train, valid=split.valid)
    assert all(0 <= entry["ndcg@10"] <= 1 for entry in model.history_)
    assert_same_state(model, new().fit(split.train))


def test_order_of_rows_is_no_matter_unless_it_is(cls, new, board, model):
    if cls.order_matters:
        pytest.skip("a model of sequences")
    shuffled = new().fit(board.take(np.random.default_rng(0).permutation(len(board))))
    np.testing.assert_allclose(everything(shuffled), everything(model), rtol=1e-3, atol=1e-3)


# ---- files -------------------------------------------------------------------------------------------------------


@pytest.fixture
def path(model, tmp_path):
    model.save(tmp_path / "model.corank")
    return tmp_path / "model.corank"


def test_loaded_model_knows_the_same(model, path):
    assert_same_state(cr.load(path), model)


def test_loaded_model_recommends_the_same(model, path):
    assert_same_ranking(model.recommend(k=5), cr.load(path).recommend(k=5))


def test_loaded_model_answers_histories(model, path):
    assert_same_ranking(*(m.recommend(histories=[[2, 4], [3]], k=5) for m in (model, cr.load(path))))


def test_loaded_model_has_the_same_parameters(cls, new, board, tmp_path):
    new(seed=11).fit(board).save(tmp_path / "other.corank")
    loaded = cr.load(tmp_path / "other.corank")
    assert type(loaded) is cls
    assert loaded.params() == new(seed=11).params()


def test_loaded_model_can_learn_again(board, model, path):
    assert_same_state(cr.load(path).fit(board), model)


def test_file_may_be_renamed(model, path):
    moved = path.rename(path.with_name("neuer Name ☃"))
    assert_same_state(cr.load(moved), model)


def test_save_replaces_the_old_file(new, model, path):
    other = new().fit(cr.from_arrays(user=[1, 1, 2], item=[4, 5, 4], value=[1.0, 2.0, 1.0]))
    other.save(path)
    assert_same_state(cr.load(path), other)
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_file_holds_numbers_and_json_only(path):
    raw = path.read_bytes()
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    assert set(header.pop("__metadata__")) == {"corank"}
    assert {entry["dtype"] for entry in header.values()} <= {"F32", "F64", "I32", "I64", "U8", "BOOL"}
    with pytest.raises((pickle.UnpicklingError, ValueError, EOFError, KeyError, IndexError, AttributeError)):
        pickle.loads(raw)
