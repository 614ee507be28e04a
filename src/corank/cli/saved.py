"""`corank evaluate`, `recommend` and `similar`: commands that use a saved model, or lists."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..answering.diversity import recommend_diverse
from ..answering.ranking import Ranking
from ..answering.ranking_file import format_of, write_lists
from ..answering.rules import parse_where
from ..data import Dataset
from ..data.edges import counted
from ..data.given import codes_in
from ..data.split import Split
from ..errors import CorankError, suggest
from ..reading.packed import is_table
from .items import ItemFinder
from .options import Args, evaluation_options, given, open_divided, open_source, split_asked, writable
from .show import ranking_text, say

CHUNK = 20_000  # users whose lists are in memory at a time


def evaluate(args: Args) -> None:
    """Evaluate a saved model on new rows, or lists on a split of the data."""
    from ..evaluation.evaluate import evaluate as measure
    from ..experiment.options import METRICS

    protocol = args.protocol or "full"
    if protocol not in METRICS:
        raise CorankError(f"there is no protocol {protocol!r}{suggest(protocol, METRICS)}")
    options = evaluation_options(args) | given(args, "seed")
    if protocol != "sampled" and ("negatives" in options or "popular" in options):
        raise CorankError(
            f"--negatives and --popular belong to the protocol sampled, and this one is {protocol}: leave them out, or "
            "add --protocol sampled"
        )
    metrics = options.pop("metrics", METRICS[protocol])
    if args.lists is not None:
        name = args.name or Path(args.lists).name
        print(measure(args.lists, _split_of_data(args, options), metrics, name=name, **options))
    else:
        print(measure(*_model_and_split(args), metrics, **options))


def _split_of_data(args: Args, options: dict[str, Any]) -> Split:
    """The split of the table, as `compare` makes it."""
    from ..experiment.experiment import Experiment

    if args.file is None:
        raise CorankError("say which data the lists are for: corank evaluate --lists LISTS FILE")
    args.task = None
    experiment = Experiment(data=open_divided(args), split=split_asked(args), **options)
    experiment.check()
    split = experiment.make_split()
    say(f"{split.name}: {len(split.test):,} test rows of {len(split.users):,} users")
    return split


def _model_and_split(args: Args) -> tuple[Any, Split]:
    """The model, and a split whose test rows are those of the table."""
    from ..evaluation.evaluate import warn_of_training_rows
    from ..models import load

    model = load(args.model)
    if args.file is None:
        if args.test is None:
            raise CorankError("say which rows to evaluate on: corank evaluate MODEL FILE, or --test FILE")
        args.file, args.test = args.test, None
    source = open_source(args)
    rows, notes = known_to(model, source.test if isinstance(source, Split) else source, args.model)
    warn_of_training_rows(model, rows)
    if isinstance(source, Split):
        train, name = known_to(model, source.known(), args.model)[0], source.name
    else:
        learned = model._training_rows()
        owner = np.repeat(np.arange(learned.rows), np.diff(learned.indptr)).astype(np.int32)
        train = Dataset(model.users_, model.items_, owner, learned.index, np.ones(owner.size, np.float32))
        name = f"rows of {Path(args.file).name}"
    return model, Split(train, rows.take(np.zeros(len(rows), np.bool_)), rows, name, notes=notes)


def recommend(args: Args) -> None:
    """The best items for users, or for a history."""
    from ..models import load

    if sum([args.user is not None, args.history is not None, args.all]) != 1:
        raise CorankError("say for whom: --user ID, --history ITEM,ITEM,... or --all (one of them)")
    _check_out(args)
    model = load(args.model)
    if args.items is not None:
        model = model.with_items(args.items)
    items = ItemFinder(model, args.titles)
    options: dict[str, Any] = {"k": args.k, "exclude_seen": not args.seen}
    if args.where is not None:
        options["where"] = [rule for text in args.where for rule in parse_where(model, text)]
    if args.diversity_by is not None and args.diversity is None:
        raise CorankError("--diversity-by says what is similar: say how much it counts with --diversity 0.3")
    if args.exclude is not None:
        options["exclude"] = items.some_of(args.exclude, "--exclude")
    recommended: Callable[..., Ranking] = model.recommend
    if args.diversity is not None:
        recommended = partial(recommend_diverse, model, args.diversity, by=args.diversity_by)
    own = _candidates_of_users(args, model)
    if own is not None:
        options["items"] = own
    elif args.candidates is not None:
        options["items"] = items.all_of(args.candidates, "--candidates")
    if args.history is not None:
        history: dict[Hashable, list[Hashable]] = {"this history": items.history(args.history)}
        _give(args, items, "", [lambda: recommended(histories=history, **options)])
    else:
        everyone = model.users_.ids if own is None else list(own)
        users = everyone if args.all else [model.users_.parse(w) for w in args.user]
        cuts = [users[at : at + CHUNK] for at in range(0, len(users), CHUNK)]
        _give(args, items, "user", [partial(recommended, users=cut, **options) for cut in cuts])


def _candidates_of_users(args: Args, model: Any) -> dict[Hashable, list[Hashable]] | None:
    """{user: items} where --candidates is a table with a user and an item per row."""
    if args.candidates is None or len(args.candidates) != 1:
        return None
    path = Path(args.candidates[0])
    if not path.is_file():
        if is_table(path) and path.name not in map(str, model.items_.ids.tolist()):
            raise CorankError(f"--candidates {args.candidates[0]!r}: there is no such file: check its name")
        return None
    if args.history is not None:
        raise CorankError("--candidates with a file is for users: with --history, give items separated by commas")
    from ..experiment.source import open_rows

    table = open_rows(args.candidates[0])
    rows = table.csr()
    items = [model.items_.parse(str(item)) for item in table.items.ids.tolist()]
    owners = [model.users_.parse(str(user)) for user in table.users.ids.tolist()]
    lists = np.split(rows.index, rows.indptr[1:-1])
    return {owner: [items[code] for code in one] for owner, one in zip(owners, lists, strict=True)}


def similar(args: Args) -> None:
    """The items most similar to an item, or the users most similar to a user."""
    from ..models import load

    if (args.item is None) == (args.user is None):
        raise CorankError("say what to compare: --item ITEM or --user ID (one of them)")
    _check_out(args)
    model = load(args.model)
    items = ItemFinder(model, args.titles)
    if args.item is not None:
        asked = items.all_of(args.item, "--item")
        _give(args, items, "item", [lambda: model.similar_items(asked, k=args.k)])
    else:
        users = [model.users_.parse(w) for w in args.user]
        _give(args, items, "user", [lambda: model.similar_users(users, k=args.k)])


def _check_out(args: Args) -> None:
    """Raise before the model is read, not after the work, if the lists cannot be written."""
    if args.out:
        format_of(args.out)
        writable(Path(args.out).parent, Path(args.out), sources=[args.model])


def _give(args: Args, items: ItemFinder, what: str, parts: Sequence[Callable[[], Ranking]]) -> None:
    """Write the rankings to a file, one after the other, or print them."""
    own = items.model.items_
    titles = [items.titles.get(item, "") for item in own.ids.tolist()] if items.titles else []
    rankings = (part() for part in parts)
    if args.out:
        titled = (dataclasses.replace(one, titles=titles if one.vocab is own else ()) for one in rankings)
        say(f"{counted(write_lists(args.out, titled), 'list')} written to {args.out}")
        return
    for ranking in rankings:
        print(ranking_text(ranking, items.titles if ranking.vocab is own else {}, what))


def known_to(model: Any, rows: Dataset, path: str) -> tuple[Dataset, tuple[str, ...]]:
    """The rows over the vocabularies of a model, without those that it cannot know, and a sentence about these."""
    user, item = codes_in(model.users_, rows.users)[rows.user], codes_in(model.items_, rows.items)[rows.item]
    known = (user >= 0) & (item >= 0)
    if not known.any():
        raise CorankError(f"none of the {len(rows):,} rows has a user and an item that {path} knows: check the ids")
    time = None if rows.time is None else rows.time[known]
    kept = Dataset(model.users_, model.items_, user[known], item[known], rows.value[known], time, values=rows.values)
    if known.all():
        return kept, ()
    counts = [
        counted(np.unique(code[at < 0]).size, side)
        for side, code, at in (("user", rows.user, user), ("item", rows.item, item))
        if (at < 0).any()
    ]
    left = f"{np.count_nonzero(~known):,} of {len(rows):,} rows are left out"
    return kept, (f"{left}: the model does not know {' and '.join(counts)}",)
