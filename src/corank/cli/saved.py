"""`corank evaluate`, `recommend` and `similar`: commands that use a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..data import Dataset
from ..data.edges import counted
from ..data.given import codes_in, pairs
from ..data.split import Split
from ..errors import CorankError, suggest
from .options import Args, comma_separated, evaluation_options, given, open_source, writable
from .show import ranking_text, say, titles_of


def evaluate(args: Args) -> None:
    """Evaluate a saved model on new rows."""
    from ..evaluation.evaluate import evaluate as measure
    from ..experiment.options import METRICS
    from ..models import load

    protocol = args.protocol or "full"
    if protocol not in METRICS:
        raise CorankError(f"there is no protocol {protocol!r}{suggest(protocol, METRICS)}")

    model = load(args.model)
    if args.file is None:
        if args.test is None:
            raise CorankError("say which rows to evaluate on: corank evaluate MODEL FILE, or --test FILE")
        args.file, args.test = args.test, None
    source = open_source(args)
    test, notes = known_to(model, source.test if isinstance(source, Split) else source, args.model)
    owner = np.repeat(np.arange(len(model.users_)), np.diff(model.seen_indptr_)).astype(np.int32)
    train = Dataset(model.users_, model.items_, owner, model.seen_index_, np.ones(owner.size, np.float32))
    seen = int(np.isin(pairs(test), pairs(train)).sum())
    if seen:
        say(f"{seen:,} rows are in the model's training data: metrics are optimistic on training rows")
    if isinstance(source, Split):
        train = known_to(model, source.known(), args.model)[0]
    elif model.order_matters:
        raise CorankError(
            f"{model.name()} predicts from histories in their order, which {args.model} does not keep: give the "
            f"training rows too, as in  corank evaluate {args.model} TRAIN --test {args.file}"
        )
    options = evaluation_options(args) | given(args, "seed")
    metrics = options.pop("metrics", METRICS[protocol])
    name = source.name if isinstance(source, Split) else f"rows of {Path(args.file).name}"
    split = Split(train, test.take(np.zeros(len(test), np.bool_)), test, name, notes=notes)
    print(measure(model, split, metrics, **options))


def recommend(args: Args) -> None:
    """The best items for users, or for a history."""
    from ..atomic import replacing
    from ..models import load

    if sum([args.user is not None, args.history is not None, args.all]) != 1:
        raise CorankError("say for whom: --user ID, --history ID,ID,... or --all (one of them)")
    model = load(args.model)
    options: dict[str, Any] = {"k": args.k, "exclude_seen": not args.seen}
    if args.candidates is not None:
        options["items"] = [model.items_.parse(w) for w in comma_separated(args.candidates, "--candidates")]
    if args.history is not None:
        history = [model.items_.parse(w) for w in comma_separated(args.history, "--history")]
        ranking = model.recommend(histories={"this history": history}, **options)
    else:
        users = None if args.all else [model.users_.parse(w) for w in args.user]
        ranking = model.recommend(users, **options)
    if args.out:
        out = Path(args.out)
        writable(out.parent)
        with replacing(out) as part:
            ranking.to_frame().write_csv(part)
        say(f"{len(ranking):,} lists written to {out}")
    else:
        print(ranking_text(ranking, titles_of(model, args.titles), "user" if args.history is None else ""))


def similar(args: Args) -> None:
    """The items most similar to an item."""
    from ..models import load

    model = load(args.model)
    ranking = model.similar_items([model.items_.parse(w) for w in args.item], k=args.k)
    print(ranking_text(ranking, titles_of(model, args.titles), "item"))


def known_to(model: Any, rows: Dataset, path: str) -> tuple[Dataset, tuple[str, ...]]:
    """The rows over the vocabularies of a model, without those that it cannot know, and a sentence about these."""
    user, item = codes_in(model.users_, rows.users)[rows.user], codes_in(model.items_, rows.items)[rows.item]
    known = (user >= 0) & (item >= 0)
    if not known.any():
        raise CorankError(f"none of the {len(rows):,} rows has a user and an item that {path} knows: check the ids")
    time = None if rows.time is None else rows.time[known]
    kept = Dataset(model.users_, model.items_, user[known], item[known], rows.value[known], time)
    if known.all():
        return kept, ()
    counts = [
        counted(np.unique(code[at < 0]).size, side)
        for side, code, at in (("user", rows.user, user), ("item", rows.item, item))
        if (at < 0).any()
    ]
    left = f"{np.count_nonzero(~known):,} of {len(rows):,} rows are left out"
    return kept, (f"{left}: the model does not know {' and '.join(counts)}",)
