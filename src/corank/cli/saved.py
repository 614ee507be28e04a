"""`corank evaluate`, `recommend` and `similar`: commands that use a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..data import Dataset
from ..errors import CorankError, suggest
from .options import Args, comma_separated, evaluation_options, given, open_table, writable
from .show import ranking_text, say, titles_of


def evaluate(args: Args) -> None:
    """Evaluate a saved model on new rows."""
    from ..data.split import Split
    from ..evaluation.evaluate import evaluate as measure
    from ..experiment.options import METRICS
    from ..models import load

    protocol = args.protocol or "full"
    if protocol not in METRICS:
        raise CorankError(f"there is no protocol {protocol!r}{suggest(protocol, METRICS)}")

    model = load(args.model)
    test = open_table(args)
    user, item = model.users_.codes(test.users.ids)[test.user], model.items_.codes(test.items.ids)[test.item]
    known = (user >= 0) & (item >= 0)
    if not known.any():
        raise CorankError(
            f"none of the {len(test):,} rows of {args.file} has a user and an item that {args.model} knows"
        )
    if not known.all():
        unknown = np.count_nonzero(~known)
        say(f"{unknown:,} of {len(test):,} rows have a user or item that the model does not know: left out")
    owner = np.repeat(np.arange(len(model.users_)), np.diff(model.seen_indptr_)).astype(np.int32)
    train = Dataset(model.users_, model.items_, owner, model.seen_index_, np.ones(owner.size, np.float32))
    rows = Dataset(model.users_, model.items_, user[known], item[known], test.value[known], values=test.values)
    seen = _pairs_in_both(rows, train)
    if seen:
        say(f"{seen:,} rows are in the model's training data: metrics are optimistic on training rows")
    options = evaluation_options(args) | given(args, "seed")
    metrics = options.pop("metrics", METRICS[protocol])
    split = Split(train, rows.take(np.zeros(len(rows), np.bool_)), rows, f"rows of {Path(args.file).name}")
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


def _pairs_in_both(rows: Dataset, train: Dataset) -> int:
    """The number of (user, item) pairs of `rows` that are in `train` too."""
    items = len(rows.items)
    one, other = (data.user.astype(np.int64) * items + data.item for data in (rows, train))
    return int(np.isin(one, other).sum())
