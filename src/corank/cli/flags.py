"""Options that several commands share. The flags of a model are generated from the fields of its dataclass."""

from __future__ import annotations

import argparse
from typing import Any

from ..params import params_of


def model_and_file(parser: argparse.ArgumentParser, argv: list[str]) -> None:
    """MODEL, FILE, and one flag per hyper-parameter of the model."""
    from ..models import available, find

    parser.add_argument("model", metavar="MODEL", help=f"one of: {', '.join(available())}")
    parser.add_argument("file", metavar="FILE", help="ratings as CSV, Parquet, a known archive or a dataset name")
    data_flags(parser)
    part_flags(parser)
    edge_flags(parser)
    if not argv or argv[0] != parser.prog.split()[-1]:
        return
    # The model may be at any position; if no word is a model, `find` reports the first one as a typo.
    asked = next((w for w in argv[1:] if w in available()), argv[1] if len(argv) > 1 else "-")
    if asked.startswith("-"):
        return
    group = parser.add_argument_group(f"hyper-parameters of {asked}")
    for name, (kind, _, default, rule) in params_of(find(asked)).items():
        options: dict[str, Any] = {"dest": f"param_{name}", "default": argparse.SUPPRESS}
        if kind is bool:
            options["action"] = argparse.BooleanOptionalAction
        else:
            options |= {
                "type": kind,
                "choices": rule.choices,
                "metavar": None if rule.choices else kind.__name__.upper(),
            }
        flags = dict.fromkeys([f"--{name.replace('_', '-')}", f"--{name}"])
        group.add_argument(*flags, help=f"{rule.doc} (default {default})".replace("%", "%%"), **options)


def graph_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="EDGES", help="a table with one row per edge: source, target and perhaps a weight"
    )
    parser.add_argument("-o", "--out", required=True, metavar="NPZ", help="where to write the arrays, e.g. dna.npz")
    parser.add_argument("--depth", type=int, metavar="D", help="radius of a neighbourhood in steps (default 2)")
    parser.add_argument(
        "--capacity", type=int, metavar="N", help="nodes that a filter can hold at that error rate (default 500)"
    )
    parser.add_argument(
        "--error", type=float, metavar="P", help="false positive rate of a filter at its capacity (default 0.1)"
    )
    parser.add_argument("--tight", action="store_true", help="half the bits: no more than the error rate needs")
    parser.add_argument(
        "--theta", type=float, metavar="N", help="stop growing the neighbourhood of a node beyond N nodes"
    )
    parser.add_argument("--seed", type=int, help="random seed of the hashes and of the order of neighbours (default 0)")
    parser.add_argument("--directed", action="store_true", help="edges lead from source to target only")
    parser.add_argument(
        "--sparse", action="store_true", help="write the bits as a sparse matrix for scipy.sparse.load_npz"
    )
    group = parser.add_argument_group("the table")
    for column in ("source", "target", "weight"):
        group.add_argument(f"--{column}", metavar="COLUMN", help=f"column with the {column}s (default: guessed)")
    group.add_argument("--separator", help="between columns (default: guessed)")


def data_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the table")
    for column in ("user", "item", "value", "time"):
        group.add_argument(f"--{column}", metavar="COLUMN", help=f"column with the {column}s (default: guessed)")
    group.add_argument("--separator", help="between columns (default: guessed)")
    group.add_argument(
        "--layout",
        choices=("rows", "lists"),
        help="rows: one interaction per line; lists: one user per line, `user item item ...` (default: guessed)",
    )
    group.add_argument("--duplicates", help="repeated pairs: last, first, sum, mean, max, keep or error (default last)")
    group.add_argument(
        "--values",
        metavar="KIND",
        help="kind of the values: ratings (on a scale), counts, or none to ignore them (default auto: detected)",
    )
    group.add_argument("--positive", type=float, metavar="V", help="drop rows with a value below V")


def part_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("a given split")
    group.add_argument("--test", metavar="FILE", help="test rows; FILE are the training rows then")
    group.add_argument("--valid", metavar="FILE", help="validation rows (default: cut from the training rows)")


def edge_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("graphs")
    for article, side, who in (
        ("a", "user", "friends; users with edges but without rows are kept"),
        ("an", "item", "related items"),
    ):
        text = f"a table with one row per edge, for models with {article} {side} graph: {who}"
        group.add_argument(f"--{side}-edges", metavar="FILE", help=text)


def protocol_flags(parser: argparse.ArgumentParser, split: bool = True) -> None:
    group = parser.add_argument_group("evaluation")
    if split:
        group.add_argument(
            "--split",
            help="leave_last_out, holdout, time_cut, strong_generalization or cold_users (default: the split that the "
            "data comes with, else by time if there are timestamps, else holdout)",
        )
        group.add_argument(
            "--ties",
            choices=("file", "item"),
            help="order of rows with equal timestamps, splits leave_last_out and time_cut: as in the file, or by item "
            "id (default file)",
        )
    group.add_argument(
        "--metrics", help="names separated by commas, e.g. ndcg@10,recall@20; models are ranked by the first"
    )
    default = "full; rated for task explicit" if split else "full"
    group.add_argument("--protocol", help=f"full, sampled or rated (default: {default})")
    # Where a model has a hyper-parameter `negatives`, --negatives is that one.
    names = [n for n in ("--sampled-negatives", "--negatives") if n not in parser._option_string_actions]
    group.add_argument(
        *names,
        dest="negatives",
        type=int,
        metavar="N",
        help="number of negatives per user, protocol sampled (default 100)",
    )
    group.add_argument("--popular", action="store_true", help="draw negatives by popularity, protocol sampled")
    group.add_argument("--relevant", type=float, metavar="V", help="test rows below V are not relevant")
    group.add_argument(
        "--gain",
        help="of a test row in NDCG: binary (1 if it is relevant) or exponential (2^rating - 1) (default: exponential "
        "for ratings on a scale under protocol rated, else binary)",
    )


def cluster_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("a Ray cluster")
    group.add_argument(
        "--ray",
        metavar="ADDRESS",
        help="run on a Ray cluster: auto for the one that this machine belongs to, host:port of its head, or local to "
        "start one here; a folder or URL is then read by the workers",
    )
    group.add_argument("--workers", type=int, metavar="N", help="number of workers (default: one per machine)")


def task_flag(parser: argparse.ArgumentParser) -> None:
    text = (
        "implicit: which items will a user take next? (default) explicit: in which order does a user rate items? "
        "sequential: as implicit, with the models that read a history in order"
    )
    parser.add_argument("--task", choices=("implicit", "explicit", "sequential"), help=text)


def list_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-k", type=int, default=10, help="number of items per list (default 10)")
    parser.add_argument("--titles", metavar="FILE", help="a table of item ids and titles to show")
    parser.add_argument(
        "-o", "--out", metavar="FILE", help="write the lists to a file: .parquet, .csv, .tsv or .jsonl (text also .gz)"
    )
