"""What can be typed. Flags of a model are made from the fields of its dataclass: there is one place for each."""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from ..errors import CorankError, suggest
from ..params import params_of
from . import commands
from . import data as data_commands
from . import graph as graph_commands

_YES_NO = ("true", "false", "yes", "no", "on", "off", "0", "1")
EPILOG = "corank COMMAND --help tells more; a first look: corank demo"


class Parser(argparse.ArgumentParser):
    """argparse that answers a mistake with one sentence."""

    def error(self, message: str) -> NoReturn:
        raise CorankError(f"{message} (see {self.prog} --help)")


def parse(argv: list[str]) -> argparse.Namespace:
    """The command and its options; mistyped names get a suggestion."""
    from .. import __version__

    names = {
        "demo",
        "compare",
        "fit",
        "evaluate",
        "recommend",
        "similar",
        "tune",
        "models",
        "data",
        "graph",
        "reproduce",
    }
    if argv and not argv[0].startswith("-") and argv[0] not in names:
        raise CorankError(f"there is no command {argv[0]!r}{suggest(argv[0], names)}")
    parser = Parser(
        prog="corank", description="Collaborative filtering and ranking.", epilog=EPILOG, allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"corank {__version__}")
    sub = parser.add_subparsers(metavar="COMMAND", parser_class=Parser)

    def command(name: str, run: Callable[..., Any], text: str) -> Parser:
        made: Parser = sub.add_parser(name, help=text, description=text, allow_abbrev=False)
        made.set_defaults(run=run)
        return made

    demo = command("demo", commands.demo, "compare all models on made-up data whose best possible answer is known")
    demo.add_argument("-o", "--out", default="corank-demo", help="folder for the report and the best model")
    demo.add_argument("--seed", type=int, default=0, help="fixes the data and the models (default 0)")

    compare = command(
        "compare", commands.compare, "which model ranks best for these users? leaderboard, report, best model"
    )
    compare.add_argument(
        "file", metavar="FILE", help="ratings as CSV, Parquet, a known archive, a dataset name or an experiment TOML"
    )
    compare.add_argument("-o", "--out", default="corank-results", help="folder for the report and the best model")
    compare.add_argument("--models", help="names separated by commas (default: all)")
    compare.add_argument("--tune", type=int, metavar="N", help="give every model N trials on validation first")
    compare.add_argument("--seed", type=int, help="fixes splits, negatives and models (default 0)")
    _data_flags(compare)
    _edge_flags(compare)
    _protocol_flags(compare)
    _task_flag(compare)

    fit = command("fit", commands.fit, "learn one model from all rows and save it")
    _model_and_file(fit, argv)
    fit.add_argument("-o", "--out", required=True, metavar="MODEL", help="where to save it, e.g. m.corank")
    fit.add_argument("--checkpoint", metavar="FILE", help="state of training: a fit that was killed goes on from it")
    fit.add_argument("--params", metavar="TOML", help="hyper-parameters from a file, e.g. one that `corank tune` wrote")

    tune = command("tune", commands.tune, "search hyper-parameters on validation; the best are written as TOML")
    _model_and_file(tune, argv)
    tune.add_argument("-o", "--out", metavar="TOML", help="where to write the best (default: MODEL.toml)")
    tune.add_argument("--trials", type=int, default=30, help="settings to try (default 30)")
    tune.add_argument(
        "--storage", metavar="DIR", help="where the search is kept to go on later (default: .corank-tune)"
    )
    _protocol_flags(tune)
    _task_flag(tune)

    evaluate = command("evaluate", commands.evaluate, "measure a saved model on rows it has not seen")
    evaluate.add_argument("model", metavar="MODEL")
    evaluate.add_argument(
        "file", metavar="FILE", help="test rows; users and items that the model does not know are left out"
    )
    _data_flags(evaluate)
    _protocol_flags(evaluate, split=False)
    evaluate.add_argument("--seed", type=int, help="fixes sampled negatives (default 0)")

    recommend = command("recommend", commands.recommend, "the best items for users, or for a history")
    recommend.add_argument("model", metavar="MODEL")
    recommend.add_argument("--user", action="append", metavar="ID", help="a user that fit saw (repeat for more)")
    recommend.add_argument("--history", metavar="ID,ID,...", help="items that a new user touched, oldest first")
    recommend.add_argument("--all", action="store_true", help="all users")
    recommend.add_argument("--candidates", metavar="ID,ID,...", help="choose from these items only")
    recommend.add_argument("--seen", action="store_true", help="items the user has seen may come back")
    recommend.add_argument("-o", "--out", metavar="CSV", help="write user,item,score,rank to a file")
    _list_flags(recommend)

    similar = command("similar", commands.similar, "the items nearest to an item")
    similar.add_argument("model", metavar="MODEL")
    similar.add_argument("--item", action="append", required=True, metavar="ID", help="an item (repeat for more)")
    _list_flags(similar)

    models = command("models", commands.models, "the models there are; with a name, its hyper-parameters")
    models.add_argument("name", nargs="?")

    data = command("data", data_commands.help_, "look at, fetch or make data")
    parts = data.add_subparsers(metavar="describe|fetch|list|synth", parser_class=Parser)
    describe = parts.add_parser("describe", help="counts, density, distributions, time span", allow_abbrev=False)
    describe.add_argument("file", metavar="FILE")
    describe.set_defaults(run=data_commands.describe)
    _data_flags(describe)
    fetch = parts.add_parser("fetch", help="download a public dataset from its publisher", allow_abbrev=False)
    fetch.add_argument("name")
    fetch.add_argument("--root", help="folder (default: CORANK_DATA or the cache folder)")
    fetch.set_defaults(run=data_commands.fetch)
    listed = parts.add_parser("list", help="the public datasets that corank can read", allow_abbrev=False)
    listed.set_defaults(run=data_commands.list_)
    synth = parts.add_parser("synth", help="make data whose truth is known", allow_abbrev=False)
    synth.add_argument("kind", choices=("realistic", "simulation", "markov"))
    synth.add_argument("-o", "--out", required=True, metavar="CSV")
    synth.add_argument("--users", type=int)
    synth.add_argument("--items", type=int)
    synth.add_argument("--rows", type=int, help="realistic only")
    synth.add_argument("--seed", type=int, default=0)
    synth.set_defaults(run=data_commands.synth)

    graph = command("graph", graph_commands.help_, "features of the nodes of a graph")
    ways = graph.add_subparsers(metavar="encode", parser_class=Parser)
    _graph_flags(
        ways.add_parser("encode", help="who is near whom, as bits of a Bloom filter (Graph DNA)", allow_abbrev=False)
    )

    reproduce = command("reproduce", commands.reproduce, "run an experiment file and write its result page")
    reproduce.add_argument("name", help="a TOML file, or the name of one in experiments/")
    reproduce.add_argument("-o", "--out", default="docs/results", help="folder for the pages (default docs/results)")

    if not argv:
        parser.print_help()
        sys.exit(0)
    chosen, name = (sub.choices[argv[0]], argv[0]) if argv[0] in sub.choices else (parser, "")
    for action in chosen._actions if name else ():  # `corank graph encode`
        if isinstance(action, argparse._SubParsersAction) and len(argv) > 1 and not argv[1].startswith("-"):
            if argv[1] not in action.choices:
                raise CorankError(f"there is no command '{name} {argv[1]}'{suggest(argv[1], action.choices)}")
            chosen, name = action.choices[argv[1]], f"{name} {argv[1]}"
    _check_switches(chosen, argv)
    args, unknown = parser.parse_known_args(argv)
    if unknown:
        flags = [f for action in chosen._actions for f in action.option_strings]
        raise CorankError(f"{unknown[0]!r} is not an option of `corank {name}`{suggest(unknown[0], flags)}")
    return args


def _check_switches(parser: argparse.ArgumentParser, argv: list[str]) -> None:
    """A sentence for `--directed true` and `--directed=true`: switches are said by their names alone."""
    apart = [(a, b) for a, b in itertools.pairwise(argv) if b.lower() in _YES_NO]
    for flag, value in [*apart, *((a, b) for a, _, b in (word.partition("=") for word in argv if "=" in word))]:
        for action in parser._actions:
            if flag.startswith("--") and flag in action.option_strings and action.nargs == 0:
                both = isinstance(action, argparse.BooleanOptionalAction)
                on = action.option_strings[0]
                off = f"--no-{on.removeprefix('--')}" if both else "nothing"
                raise CorankError(f"{flag} takes no value, and {value!r} follows it: write {on} for yes, {off} for no")


def _model_and_file(parser: Parser, argv: list[str]) -> None:
    """MODEL, FILE, and a flag for each field of the model that is asked for."""
    from ..models import available, find

    parser.add_argument("model", metavar="MODEL", help=f"one of: {', '.join(available())}")
    parser.add_argument("file", metavar="FILE", help="ratings as CSV, Parquet, a known archive or a dataset name")
    _data_flags(parser)
    _edge_flags(parser)
    if not argv or argv[0] != parser.prog.split()[-1]:
        return
    # The model may stand anywhere; a first word that is no model is a typo that `find` answers.
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


def _graph_flags(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=graph_commands.encode)
    parser.add_argument("file", metavar="EDGES", help="a table with a row an edge: source, target and perhaps a weight")
    parser.add_argument("-o", "--out", required=True, metavar="NPZ", help="where to write the arrays, e.g. dna.npz")
    parser.add_argument("--depth", type=int, metavar="D", help="steps that a node looks around (default 2)")
    parser.add_argument("--capacity", type=int, metavar="N", help="nodes that a filter is made for (default 500)")
    parser.add_argument(
        "--error", type=float, metavar="P", help="strangers taken for neighbours, at most (default 0.1)"
    )
    parser.add_argument("--tight", action="store_true", help="half the bits: what the error rate needs and no more")
    parser.add_argument("--theta", type=float, metavar="N", help="a node stops taking neighbours beyond N nodes")
    parser.add_argument("--seed", type=int, help="fixes the hash and the order of neighbours (default 0)")
    parser.add_argument("--directed", action="store_true", help="a source sees its target, and not the other way round")
    parser.add_argument("--sparse", action="store_true", help="write the bits as a matrix for scipy.sparse.load_npz")
    group = parser.add_argument_group("the table")
    for column in ("source", "target", "weight"):
        group.add_argument(f"--{column}", metavar="COLUMN", help=f"column with the {column}s (default: guessed)")
    group.add_argument("--separator", help="between columns (default: guessed)")


def _data_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the table")
    for column in ("user", "item", "value", "time"):
        group.add_argument(f"--{column}", metavar="COLUMN", help=f"column with the {column}s (default: guessed)")
    group.add_argument("--separator", help="between columns (default: guessed)")
    group.add_argument("--duplicates", help="repeated pairs: last, first, sum, mean, max, keep or error (default last)")
    group.add_argument("--positive", type=float, metavar="V", help="leave out rows with a value below V")


def _edge_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("graphs")
    for side, who in (("user", "friends: users who have friends only are users too"), ("item", "related items")):
        text = f"a table with a row an edge, for models with a graph of {side}s; {who}"
        group.add_argument(f"--{side}-edges", metavar="FILE", help=text)


def _protocol_flags(parser: argparse.ArgumentParser, split: bool = True) -> None:
    group = parser.add_argument_group("evaluation")
    if split:
        group.add_argument(
            "--split",
            help="leave_last_out, holdout, time_cut, strong_generalization or cold_users (default: by the data)",
        )
    group.add_argument("--metrics", help="names separated by commas, e.g. ndcg@10,recall@20; the first one decides")
    group.add_argument("--protocol", help="full, sampled or rated (default full)")
    # Some models have a hyper-parameter of that name, which is then the one that is meant.
    names = [n for n in ("--sampled-negatives", "--negatives") if n not in parser._option_string_actions]
    group.add_argument(
        *names, dest="negatives", type=int, metavar="N", help="candidates of protocol sampled (default 100)"
    )
    group.add_argument("--popular", action="store_true", help="draw negatives by popularity")
    group.add_argument("--relevant", type=float, metavar="V", help="test rows below V do not count as relevant")


def _task_flag(parser: argparse.ArgumentParser) -> None:
    text = (
        "implicit: who takes what next? (default) explicit: in which order does a user rate? "
        "sequential: as implicit, with the models that read a history in its order"
    )
    parser.add_argument("--task", choices=("implicit", "explicit", "sequential"), help=text)


def _list_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-k", type=int, default=10, help="length of the list (default 10)")
    parser.add_argument("--titles", metavar="FILE", help="a table with item ids and titles, to show them")
