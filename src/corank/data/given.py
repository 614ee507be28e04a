"""Given splits: training, validation and test rows that somebody else has divided, over one vocabulary.

Rows are never moved between the parts and never dropped. What a reader of the results must know (test rows that no
model can predict, pairs in two parts, where the validation rows come from) is kept in the notes of the split.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import CorankError, shorten
from .columns import text_kind
from .csr import Array
from .dataset import Dataset
from .graph_alignment import renumbered
from .split import Split, from_the_end, random_generator, require_dataset, require_histories
from .values import detect
from .vocab import Vocab

log = logging.getLogger("corank.reading")
SHARE = 0.1  # of the training rows of each user, for validation


def align(train: Dataset, test: Dataset, valid: Dataset | None = None, *, name: str = "given split") -> Split:
    """A split of these parts, whose vocabularies are brought together; `valid` is empty if there is none.

    Users and items of all parts are known by id to all of them. The graphs are those of the training part.
    """
    parts = {"train": train, "valid": valid, "test": test}
    for part, data in parts.items():
        if data is not None:
            require_dataset(data, f"{part} of a given split")
            if len(data) == 0 and part != "valid":
                raise CorankError(f"the {part} part of {name} has no rows: there is nothing to {_PURPOSE[part]}")
    given = [data for data in parts.values() if data is not None]
    vocabs: dict[str, Vocab] = {}
    notes: list[str] = []
    for side in ("user", "item"):
        vocabs[side], mixed = union([getattr(data, f"{side}s") for data in given], side)
        notes += mixed
    kinds = {data.values for data in given}
    # The kind of values is one for all parts: a small test part alone could look like another.
    kind = kinds.pop() if len(kinds) == 1 else detect(np.concatenate([data.value for data in given]))
    moved = {
        part: dataclasses.replace(_recoded(data, vocabs), values=kind)
        for part, data in parts.items()
        if data is not None
    }
    for part in moved:  # labels such as titles may come with any part; a graph comes with the training rows
        if part != "train":
            moved["train"] = _with_labels_of(moved["train"], moved[part])
    first = moved["train"]
    about = {key: getattr(first, key) for key in ("user_graph", "item_graph", "user_labels", "item_labels")}
    rest = {part: dataclasses.replace(data, **about) for part, data in moved.items() if part != "train"}
    nothing = first.take(np.zeros(len(first), np.bool_))
    split = Split(first, rest.get("valid", nothing), rest["test"], name)
    _check_overlap(split)
    return noted(dataclasses.replace(split, notes=tuple(notes)))


def noted(split: Split) -> Split:
    """The split with notes on test rows that no model can predict and on pairs in two parts, which are logged too."""
    notes = (*split.notes, *_unknown(split), *_repeated(split))
    for note in notes:
        log.warning("%s: %s", split.name, note)
    return dataclasses.replace(split, notes=notes)


_PURPOSE = {"train": "learn from", "test": "evaluate on"}


def with_validation(split: Split, *, ordered: bool = False, seed: int = 0) -> Split:
    """The split with validation rows; where it has none, they are cut from the training rows, and the name says so.

    ordered : the last row of each user with two rows or more, instead of a random tenth of each user's rows.

    Such rows are for choosing hyper-parameters and for early stopping; `Split.valid_from_train` marks them, so that the
    final fit of a model uses all given training rows.
    """
    if len(split.valid) or split.history is not None:
        return split
    train = split.train
    rng = random_generator(seed)
    if ordered:
        position, length = from_the_end(train)
        chosen = (position == 0) & (length > 1)
        how = "the last training row of each user"
    else:
        place, length = from_the_end(dataclasses.replace(train, time=rng.permutation(len(train))))
        # Rounded at random, so that users with few rows take part: 7 rows give one with probability 0.7.
        wanted = np.floor(SHARE * length + rng.random(len(train.users))[train.user])
        chosen = place < np.minimum(wanted, length - 1)
        how = f"{SHARE:.0%} of each user's training rows, seed {seed}".replace("%", " %")
    if not chosen.any():
        return split
    log.info("%s: no validation part, so it is cut from training: %s (%s rows)", split.name, how, f"{chosen.sum():,}")
    return dataclasses.replace(
        split,
        train=train.take(~chosen),
        valid=train.take(chosen),
        name=f"{split.name}; validation: {how}",
        valid_from_train=True,
    )


def stack(parts: Sequence[Dataset]) -> Dataset:
    """The rows of several tables as one, in this order; graphs and labels are those of the first."""
    vocabs = {side: union([getattr(part, f"{side}s") for part in parts], side)[0] for side in ("user", "item")}
    data, *rest = (_recoded(part, vocabs) for part in parts)
    for part in rest:
        data = data.join(part)
    return data


def union(vocabs: list[Vocab], side: str) -> tuple[Vocab, list[str]]:
    """One vocabulary for all parts; integers become strings where one part has strings, which is noted."""
    if all(vocab == vocabs[0] for vocab in vocabs):
        return vocabs[0], []
    filled = [vocab for vocab in vocabs if len(vocab)]
    if len({vocab.strings for vocab in filled}) == 1:
        return Vocab.build(np.concatenate([vocab.ids for vocab in filled]), side)[0], []
    odd = next(i for vocab in filled if vocab.strings for i in vocab.ids.tolist() if text_kind([i]) != "int")
    note = f"some {side} ids are integers and some are not ({odd!r}): all are compared as text"
    return Vocab.build(np.concatenate([_as_text(vocab) for vocab in filled]), side)[0], [note]


def _as_text(vocab: Vocab) -> NDArray[Any]:
    return vocab.ids if vocab.strings else vocab.ids.astype(str).astype(object)


def _recoded(data: Dataset, vocabs: dict[str, Vocab]) -> Dataset:
    """The same rows over larger vocabularies; graphs and labels follow."""
    changes: dict[str, Any] = {}
    for side, vocab in vocabs.items():
        old: Vocab = getattr(data, f"{side}s")
        if old == vocab:
            changes[f"{side}s"] = vocab  # the same object in all parts: comparing vocabularies is then free
            continue
        changes |= renumbered(data, side, vocab, codes_in(vocab, old))
    return dataclasses.replace(data, **changes)


def _with_labels_of(data: Dataset, other: Dataset) -> Dataset:
    """The labels that only the other part has, and those of users and items that only occur there."""
    changes: dict[str, Any] = {}
    for side in ("user", "item"):
        own, more = dict(getattr(data, f"{side}_labels")), getattr(other, f"{side}_labels")
        for name, label in more.items():
            if name not in own:
                own[name] = label
            elif own[name] is not label and own[name].dtype.kind == label.dtype.kind == "O":
                own[name] = np.where(own[name] == "", label, own[name])
        changes[f"{side}_labels"] = own
    return dataclasses.replace(data, **changes)


def _check_overlap(split: Split) -> None:
    """Raise where training and test rows have nothing in common: files of other things, or other ids."""
    train, test = split.train, split.test
    known = np.unique(train.user).size
    if known > 0.99 * len(train) and not np.isin(test.user, train.user).mean() > 0.5:
        require_histories(train.take(np.unique(train.user, return_index=True)[1]))
    for side in ("user", "item"):
        if side == "user" and train.user_graph is not None:
            continue  # cold-start users: what is known of them is their neighbours
        codes = getattr(test, side)
        if not np.isin(codes, getattr(train, side)).any():
            vocab: Vocab = getattr(train, f"{side}s")
            one, other = vocab.ids[getattr(train, side)[0]], vocab.ids[codes[0]]
            raise CorankError(
                f"{split.name}: no {side} of the {len(test):,} test rows (the first is {shorten(str(other), 40)!r}) is "
                f"in the training rows (the first is {shorten(str(one), 40)!r}): both must be tables of interactions "
                "with the same ids; check the columns"
            )


def _unknown(split: Split) -> list[str]:
    """What is said of test rows whose user or item has no training row."""
    known = split.train.join(split.valid)
    test, notes = split.test, []
    cold = ~np.isin(test.item, known.item)
    if cold.any():
        notes.append(
            f"{cold.sum():,} of {len(test):,} test rows have an item without training rows ({_ids(test, 'item', cold)})"
            ": no model can predict them; they are kept and count as misses"
        )
    new = ~np.isin(test.user, known.user)
    if new.any():
        notes.append(
            f"{new.sum():,} of {len(test):,} test rows have a user without training rows ({_ids(test, 'user', new)}): "
            "they are kept, and such users get what a model recommends to everybody"
        )
    return notes


def _ids(data: Dataset, side: str, rows: NDArray[np.bool_]) -> str:
    """How many, and the first of them."""
    codes = np.unique(getattr(data, side)[rows])
    first = shorten(str(getattr(data, f"{side}s").ids[codes[0]]), 40)
    return f"{codes.size:,} {side}{'s' * (codes.size > 1)}, such as {first}"


def _repeated(split: Split) -> list[str]:
    """What is said of (user, item) pairs that are in two parts."""
    notes = []
    for one, other, what in (
        ("train", "test", "training"),
        ("valid", "test", "validation"),
        ("train", "valid", "training"),
    ):
        rows: Dataset = getattr(split, other)
        count = int(np.isin(pairs(rows), pairs(getattr(split, one))).sum())
        if count and count == len(rows) and other == "test":
            raise CorankError(
                f"{split.name}: all {count:,} test rows are {what} rows, and nothing is left to predict: give others"
            )
        if count:
            target = {"test": "test", "valid": "validation"}[other]
            notes.append(
                f"{count:,} of {len(rows):,} {target} rows repeat a (user, item) pair of the {what} rows: they are "
                "ranked like the others, and a model that recommends seen items has it easy with them"
            )
    return notes


def pairs(data: Dataset) -> Array:
    """One number per row that is equal for equal (user, item) pairs."""
    return np.asarray(data.user.astype(np.int64) * len(data.items) + data.item)


def codes_in(vocab: Vocab, other: Vocab) -> NDArray[np.int32]:
    """The code that each id of another vocabulary has in this one, -1 if none; "12" and 12 are the same id."""
    if vocab.strings == other.strings:
        return vocab.codes(other.ids)
    if vocab.strings:
        return vocab.codes(_as_text(other))
    return vocab.codes([int(i) if text_kind([i]) == "int" else i for i in other.ids.tolist()])
