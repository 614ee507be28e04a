"""The options of the commands that use a saved model: evaluate, recommend, explain, similar, update, export."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from . import explaining, exporting, saved, updating
from .flags import data_flags, list_flags, protocol_flags

Command = Callable[[str, Callable[..., Any], str], argparse.ArgumentParser]  # (name, function, help) -> its parser


def saved_model_commands(command: Command, argv: list[str]) -> None:
    _evaluate(command, argv)
    _recommend(command)
    _explain(command)
    _similar(command)
    _update(command)
    _export(command)


def _evaluate(command: Command, argv: list[str]) -> None:
    evaluate = command("evaluate", saved.evaluate, "evaluate a saved model on new rows, or lists on your data")
    lists = any(word.split("=")[0] == "--lists" for word in argv)
    if not lists:
        evaluate.add_argument("model", metavar="MODEL")
    rows = "test rows; those with users or items unknown to the model are left out"
    evaluate.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="the data that the lists are for, which is split as in `compare`" if lists else rows,
    )
    evaluate.add_argument("--test", metavar="FILE", help="test rows")
    evaluate.add_argument("--valid", metavar="FILE", help="validation rows of a given split")
    evaluate.add_argument(
        "--lists",
        metavar="LISTS",
        help="evaluate a file with user, item, and rank or score per row instead of a model: --lists LISTS FILE",
    )
    evaluate.add_argument("--name", help="who made the lists (default: the name of their file)")
    data_flags(evaluate)
    protocol_flags(evaluate, split=lists)
    evaluate.add_argument("--seed", type=int, help="random seed of splits and sampled negatives (default 0)")


def _recommend(command: Command) -> None:
    recommend = command("recommend", saved.recommend, "recommend items for users, or for a history")
    recommend.add_argument("model", metavar="MODEL")
    recommend.add_argument(
        "--user", action="append", metavar="ID", help="a user of the training data (may be repeated)"
    )
    recommend.add_argument(
        "--history",
        action="append",
        metavar="ITEM,ITEM,...",
        help="items of an unseen user by id or title, oldest first (may be repeated)",
    )
    recommend.add_argument("--all", action="store_true", help="all users of the training data")
    recommend.add_argument(
        "--candidates",
        action="append",
        metavar="ITEM,ITEM,...",
        help="recommend only from these items, or from those of a table with a user and an item per row",
    )
    recommend.add_argument("--seen", action="store_true", help="do not exclude items that the user has seen")
    recommend.add_argument(
        "--exclude", action="append", metavar="ITEM,ITEM,...", help="items that are not recommended, by id or title"
    )
    recommend.add_argument("--items", metavar="FILE", help="a table of items: ids, labels and perhaps titles")
    recommend.add_argument(
        "--where",
        action="append",
        metavar="RULES",
        help="only items whose labels are so: year>=1990,genre=Comedy|Drama,available=true",
    )
    recommend.add_argument(
        "--diversity", type=float, metavar="D", help="from 0 (as it is) to 1: similar items do not follow each other"
    )
    recommend.add_argument(
        "--diversity-by", metavar="LABEL", help="items are similar by this label (default: by the model's vectors)"
    )
    list_flags(recommend)


def _explain(command: Command) -> None:
    explain = command("explain", explaining.explain, "which items of a history speak for the recommendations")
    explain.add_argument("model", metavar="MODEL")
    explain.add_argument("--user", metavar="ID", help="a user of the training data")
    explain.add_argument(
        "--history",
        action="append",
        metavar="ITEM,ITEM,...",
        help="items of an unseen user by id or title, oldest first (may be repeated)",
    )
    explain.add_argument(
        "--items",
        action="append",
        metavar="ITEM,ITEM,...",
        help="the items to explain (default: the best ones)",
    )
    explain.add_argument(
        "--kind",
        choices=("exact", "decomposition", "leave-one-out", "attention"),
        help="kind of explanation (default: the best that the model has)",
    )
    explain.add_argument("-k", type=int, default=5, help="number of items to explain (default 5)")
    explain.add_argument("--reasons", type=int, default=3, metavar="N", help="history items per item (default 3)")
    explain.add_argument("--titles", metavar="FILE", help="a table of item ids and titles to show")
    explain.add_argument(
        "-o", "--out", metavar="FILE", help="draw a chart (.svg), or write a table (.csv, .tsv, .parquet or .jsonl)"
    )


def _similar(command: Command) -> None:
    similar = command("similar", saved.similar, "the items most similar to an item, or users to a user")
    similar.add_argument("model", metavar="MODEL")
    similar.add_argument("--item", action="append", metavar="ITEM", help="an item, by id or title (may be repeated)")
    similar.add_argument("--user", action="append", metavar="ID", help="a user of the training data (may be repeated)")
    list_flags(similar)


def _update(command: Command) -> None:
    update = command("update", updating.update, "new rows, users and items for a saved model, without a refit")
    update.add_argument("model", metavar="MODEL")
    update.add_argument("file", metavar="FILE", help="the new rows; they count as newer than all others")
    update.add_argument("-o", "--out", required=True, metavar="MODEL", help="where to save the updated model")
    update.add_argument("--items", metavar="FILE", help="a table of items: ids, labels and perhaps titles")
    data_flags(update)


def _export(command: Command) -> None:
    export = command("export", exporting.export, "vectors, a search index or an ONNX network of a saved model")
    export.add_argument("model", metavar="MODEL")
    export.add_argument("--vectors", metavar="FILE", help="vectors of users and items, to .npz or .parquet")
    export.add_argument("--index", metavar="FILE", help="a usearch index of the items; its recall is measured")
    export.add_argument("--onnx", metavar="FILE", help="the network of a torch model; compared with onnxruntime")
    export.add_argument("-k", type=int, default=10, help="length of the lists whose recall is measured (default 10)")
