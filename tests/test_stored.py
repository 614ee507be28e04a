"""What a model stores is declared, and a file that holds anything else is refused with one sentence."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.reliability._sealed import seal

import corank as cr
from corank.model_file import read_file
from corank.stored import permutes

USERS, ITEMS = 12, 9


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    pairs = [(u, i) for u in range(USERS) for i in rng.permutation(ITEMS)[:5]]
    user, item = np.array(pairs).T
    labels = {
        "title": np.array([f"Title {i}" for i in range(ITEMS)]),
        "year": np.arange(ITEMS),
        "genre": np.array(["A|B", "B", ""] * 3),
    }
    return cr.from_arrays(user=user, item=item, value=rng.integers(1, 6, user.size), item_labels=labels)


def crafted(model, data, path, change):
    """The fitted model in a file, changed by `change(arrays, meta)` and sealed again."""
    model.fit(data).save(path)
    meta, arrays = read_file(path)
    change(arrays, meta)
    seal(path, arrays, meta)
    return path


def array(name, new):
    def change(arrays, meta):
        arrays[name] = new(arrays[name])

    return change


def plain(name, new):
    def change(arrays, meta):
        meta["state"][name] = new

    return change


def without(name):
    def change(arrays, meta):
        (arrays if name in arrays else meta["state"]).pop(name)

    return change


def param(name, new):
    def change(arrays, meta):
        meta["params"][name] = new

    return change


def with_value(value, at=0):
    def new(old):
        old = old.copy()
        old.reshape(-1)[at] = value
        return old

    return new


WMF, LISTS = cr.WMF(dim=4, epochs=1), cr.ListMF(dim=4, epochs=1)
HOSTILE = {
    "vectors wider than dim": (
        WMF,
        param("dim", 1),
        "user_factors_ must be float32 .users x dim., with 1 dim and not 4",
    ),
    "weights that are not square": (
        cr.EASE(),
        array("item_weights_", lambda w: np.hstack([w, w[:, :4]])),
        "item_weights_ must be .* with 9 items and not 13",
    ),
    "two dimensions for one": (WMF, array("seen_index_", lambda a: a.reshape(-1, 5)), "seen_index_ must be int32"),
    "NaN": (WMF, array("item_factors_", with_value(np.nan)), "item_factors_ has NaN"),
    "infinity": (WMF, array("item_factors_", with_value(-np.inf)), "item_factors_ has NaN or infinity"),
    "ids twice": (WMF, array("items_ids", lambda a: a * 0 + 3), "items_ must be distinct"),
    "ids in another order": (WMF, array("users_ids", lambda a: a[::-1]), "users_ must be distinct and in rising order"),
    "too few titles": (WMF, plain("titles_", ["one"]), "titles_ must be one text per item"),
    "titles that are no text": (WMF, plain("titles_", [1] * ITEMS), "titles_ has 1"),
    "half a letter": (WMF, plain("titles_", ["\ud800"] * ITEMS), "surrogates not allowed"),
    "labels that are none": (WMF, plain("labels_", 3), "labels_ must be a name, a kind and words"),
    "labels of another form": (WMF, plain("labels_", [["year", "number"]]), "labels_ must be a name"),
    "a label twice": (WMF, plain("labels_", [["x", "number", []]] * 2), "labels_ must be a name"),
    "a label without numbers": (WMF, plain("labels_", [["x", "number", []]] * 3), "labels_ must be a name"),
    "a label of no kind": (WMF, plain("labels_", [["x", "code", []]]), "no known kind"),
    "words that are none": (WMF, plain("labels_", [["year", "number", []], ["g", "texts", 3]]), "labels_ must be"),
    "a word that is not there": (WMF, array("labels_.1", with_value(7)), "stands for nothing"),
    "too few years": (WMF, array("labels_.0", lambda a: a[1:]), "one entry per item"),
    "an infinite year": (WMF, array("labels_.0", with_value(np.inf)), "has infinity"),
    "texts of items that are not there": (WMF, array("labels_.1.ends", with_value(99, -1)), "running total"),
    "an array of no label": (WMF, plain("labels_", []), r"labels_\.1.* is not something that WMF stores"),
    "a label without its array": (WMF, without("labels_.0"), "labels_.0"),
    "another number of ratings": (
        cr.ALS(dim=4, epochs=1),
        array("seen_value_", lambda a: a[1:]),
        "seen_value_ must be",
    ),
    "a rating that is none": (cr.ALS(dim=4, epochs=1), array("seen_value_", with_value(np.nan)), "seen_value_ has NaN"),
    "nothing of reg": (WMF, without("reg_"), "reg_ must be a number"),
    "nothing of the average": (LISTS, without("average_"), "average_ is missing"),
    "an item that is not there": (LISTS, array("background_", with_value(ITEMS)), "background_ has 9, and 9 items"),
    "an item before the first": (LISTS, array("background_", with_value(-1)), "background_ has -1"),
    "a running total that falls": (WMF, array("seen_indptr_", with_value(99, 3)), "not a running total"),
    "a running total that is too long": (WMF, array("seen_indptr_", with_value(99, -1)), "seen_index_ must be"),
    "another type": (WMF, array("user_factors_", lambda a: a.astype(np.float64)), "user_factors_ must be float32"),
    "a method": (WMF, plain("_score", 3), "_score is not something that WMF stores"),
    "another attribute": (WMF, plain("extra_", 3), "extra_ is not something that WMF stores"),
    "a word for a number": (WMF, plain("rho_", "much"), "rho_ must be a number, at least 0, not 'much'"),
    "a number that is none": (WMF, plain("rho_", float("nan")), "rho_ must be a number"),
    "a number with too many digits": (WMF, param("seed", 10**30), "seed must have at most 62 bits"),
    "a history of text": (WMF, plain("history_", ["x"]), "history_ must be"),
    "no state": (WMF, lambda arrays, meta: meta.update(state=[1]), "not a whole corank model"),
    "no hyper-parameters": (WMF, lambda arrays, meta: meta.update(params=3), "newer corank"),
    "a format beyond all": (WMF, lambda arrays, meta: meta.update(format=float("inf")), "not a corank model file"),
    "no name": (WMF, lambda arrays, meta: meta.update(model=[]), "newer corank"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_file_is_refused(what, data, tmp_path):
    model, change, message = HOSTILE[what]
    path = crafted(type(model)(**model.params()), data, tmp_path / "m.corank", change)
    with pytest.raises(cr.ModelFileError, match=message):
        cr.load(path)


def test_sequences_point_into_the_catalogue(data, tmp_path):
    pytest.importorskip("torch")
    small = {"dim": 4, "epochs": 1, "max_len": 4}
    for model, name, value, message in (
        (cr.SASRec(**small), "recent_", ITEMS, "recent_ has 9"),
        (cr.SASRec(**small), "user_length_", 5, "more than max_len"),
        (cr.SASRec(**small), "user_length_", 1, "recent_ must be"),
        (cr.SSEPT(dim_user=2, **small), "user_row_", USERS, "user_row_ has 12"),
    ):
        path = crafted(model, data, tmp_path / "m.corank", array(name, with_value(value)))
        with pytest.raises(cr.ModelFileError, match=message):
            cr.load(path)
    path = crafted(cr.SASRec(**small), data, tmp_path / "m.corank", array("weights_", lambda w: w[:-16]))
    with pytest.raises(cr.ModelFileError, match="weights_ must be float32"):
        cr.load(path)


def test_there_is_a_rating_level(data, tmp_path):
    pytest.importorskip("torch")
    path = crafted(cr.GCMC(dim=4, epochs=1), data, tmp_path / "m.corank", array("levels_", lambda a: a[:0]))
    with pytest.raises(cr.ModelFileError, match="levels_ is empty"):
        cr.load(path)


def test_terminal_escapes_are_spelled_out(data, tmp_path, capsys):
    from corank.cli import main

    path = crafted(
        cr.Popularity(), data, tmp_path / "m.corank", plain("titles_", ["\x1b[2J\x1b]0;owned\x07 two\nlines"] * ITEMS)
    )
    assert main(["recommend", str(path), "--user", "0"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\x07" not in out
    assert r"\x1b[2J\x1b]0;owned\x07 two\nlines" in out


def test_what_is_not_declared_is_not_saved(data, tmp_path):
    model = cr.Popularity().fit(data)
    model.extra_ = 3
    with pytest.raises(cr.CorankError, match="extra_ is not something that Popularity stores; see _stores"):
        model.save(tmp_path / "m.corank")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("epoch", -5),
        ("epoch", 1),
        ("epoch", "2"),
        ("epoch", None),
        ("history", []),
        ("history", [1, 2]),
        ("history", None),
        ("random", {}),
        ("random", {"bit_generator": "MT19937"}),
        ("random", 7),
    ],
)
def test_a_hostile_checkpoint_is_refused(key, value, data, tmp_path):
    path = tmp_path / "wmf.checkpoint"
    cr.WMF(dim=4, epochs=4).fit(data, checkpoint=path, on_epoch=lambda entry: entry["epoch"] < 2)
    meta, arrays = read_file(path)
    meta["state"][key] = value
    seal(path, arrays, meta)
    with pytest.raises(cr.ModelFileError, match="not a whole checkpoint"):
        cr.WMF(dim=4, epochs=4).fit(data, checkpoint=path)
    assert path.exists()


def test_training_state_of_whole_numbers_is_checked(data, tmp_path):
    path = tmp_path / "cr.checkpoint"
    cr.PrimalCR(dim=4, epochs=4).fit(data, checkpoint=path, on_epoch=lambda entry: entry["epoch"] < 2)
    meta, arrays = read_file(path)
    arrays["state.order"] = with_value(10_000)(arrays["state.order"])
    seal(path, arrays, meta)
    with pytest.raises(cr.ModelFileError, match="order is not what training can continue from"):
        cr.PrimalCR(dim=4, epochs=4).fit(data, checkpoint=path)


def test_lists_of_training_have_each_item_once(data, tmp_path):
    path = tmp_path / "sql.checkpoint"
    model = {"feedback": "implicit", "requeue": True, "dim": 4, "epochs": 4}
    cr.SQLRank(**model).fit(data, checkpoint=path, on_epoch=lambda entry: entry["epoch"] < 2)
    meta, arrays = read_file(path)
    for change in (lambda index: index * 0 + 6, with_value(ITEMS), with_value(-1)):
        seal(path, arrays | {"state.index": change(arrays["state.index"])}, meta)
        with pytest.raises(cr.ModelFileError, match="index is not what training can continue from"):
            cr.SQLRank(**model).fit(data, checkpoint=path)


def test_codes_of_a_checkpoint_are_those_of_the_data(data, tmp_path):
    pytest.importorskip("torch")
    path = tmp_path / "pt.checkpoint"
    model = {"dim": 4, "dim_user": 2, "epochs": 4, "max_len": 4}
    cr.SSEPT(**model).fit(data, checkpoint=path, on_epoch=lambda entry: entry["epoch"] < 2)
    meta, arrays = read_file(path)
    seal(path, arrays | {"user_row_": with_value(1)(arrays["user_row_"])}, meta)
    with pytest.raises(cr.ModelFileError, match="user_row_ is not that of this data"):
        cr.SSEPT(**model).fit(data, checkpoint=path)


def test_permutes():
    rule = permutes(np.array([0, 3, 3, 5]))
    assert rule(np.array([2, 0, 1, 1, 0], np.int32))
    assert not rule(np.array([2, 0, 0, 1, 0], np.int32))
    assert not rule(np.array([2, 0, 1, 2, 0], np.int32))
    assert not rule(np.array([2, 0, -1, 1, 0], np.int32))
