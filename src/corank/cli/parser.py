"""The commands and their options."""

from __future__ import annotations

import argparse
import difflib
import itertools
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from ..errors import CorankError, show, suggest
from ..models import others_have
from . import data as data_commands
from . import experiments, fitting, models, reproduce
from . import graph as graph_commands
from . import serve as serving
from .flags import (
    cluster_flags,
    data_flags,
    edge_flags,
    graph_flags,
    model_and_file,
    part_flags,
    protocol_flags,
    task_flag,
)
from .saved_parsers import saved_model_commands

_YES_NO = ("true", "false", "yes", "no", "on", "off", "0", "1")
EPILOG = "corank COMMAND --help shows the options; to try it: corank demo"
PLAN = "check everything that can be wrong before the first fit, print the plan, and fit nothing"
Command = Callable[[str, Callable[..., Any], str], "Parser"]  # (name, function, help) -> its parser


class Parser(argparse.ArgumentParser):
    """argparse whose errors are one sentence."""

    def error(self, message: str) -> NoReturn:
        raise CorankError(f"{message} (see {self.prog} --help)")

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError:
            name = action.option_strings[0] if action.option_strings else action.metavar or action.dest
            kind = {int: "a whole number", float: "a number"}.get(action.type)  # type: ignore[call-overload]
            if kind is None:
                raise
            raise CorankError(f"{name} {arg_string!r}: it must be {kind} (see {self.prog} --help)") from None

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        name = action.option_strings[0] if action.option_strings else action.metavar or action.dest
        raise CorankError(f"{name} {value!r}: it must be one of {', '.join(map(str, action.choices))}")


def parse(argv: list[str]) -> argparse.Namespace:
    """The command and its options; mistyped names get a suggestion."""
    from .. import __version__

    if broken := [word for word in argv if "\0" in word]:  # no file, name or number has one
        raise CorankError(f"{show(broken[0])} holds a NUL character: leave it out")
    parser = Parser(
        prog="corank", description="Collaborative filtering and ranking.", epilog=EPILOG, allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"corank {__version__}")
    sub = parser.add_subparsers(metavar="COMMAND", parser_class=Parser)

    def command(name: str, run: Callable[..., Any], text: str) -> Parser:
        made: Parser = sub.add_parser(name, help=text, description=text, allow_abbrev=False)
        made.set_defaults(run=run)
        return made

    _experiment_commands(command)
    _training_commands(command, argv)
    saved_model_commands(command, argv)
    _model_and_data_commands(command)
    _reproduce_command(command)
    serving.add_commands(command)
    if not argv:
        parser.print_help()
        sys.exit(0)
    if not argv[0].startswith("-") and argv[0] not in sub.choices:
        raise CorankError(f"there is no command {argv[0]!r}{suggest(argv[0], sub.choices)}")
    chosen, name = (sub.choices[argv[0]], argv[0]) if argv[0] in sub.choices else (parser, "")
    for action in chosen._actions if name else ():  # `corank graph encode`
        if isinstance(action, argparse._SubParsersAction) and len(argv) > 1 and not argv[1].startswith("-"):
            if argv[1] not in action.choices:
                raise CorankError(f"there is no command '{name} {argv[1]}'{suggest(argv[1], action.choices)}")
            chosen, name = action.choices[argv[1]], f"{name} {argv[1]}"
    _check_switches(chosen, argv)
    args, unknown = parser.parse_known_args(argv)
    if unknown:
        raise _unknown(unknown[0], chosen, f"corank {name}".strip(), getattr(args, "model", None))
    return args


def _unknown(word: str, parser: argparse.ArgumentParser, command: str, model: str | None) -> CorankError:
    """The error for a word that a command does not take: one too many, an option that is cut short, or a typo."""
    if not word.startswith("-"):
        return CorankError(
            f"{word!r} is one argument too many for `{command}`: leave it out, or write the name of its option "
            f"before it (see {command} --help)"
        )
    flags = [flag for action in parser._actions for flag in action.option_strings]
    long = [flag for flag in flags if flag.startswith("--")]
    flag = word.split("=")[0]
    word = flag.strip("-")
    begun = [name for name in long if word and (name.startswith(f"--{word}") or name.endswith(f"-{word}"))]
    near = f"; did you mean {begun[0]!r}?" if begun else suggest(flag, flags)
    hint = f" {model}" if command in ("corank fit", "corank tune") else ""
    if "did you mean" not in near or (hint and not begun and not _close(flag, long)):
        more = f", and `corank models{hint}` the hyper-parameters of {model}" if hint else ""
        near = f"; `{command}{hint} --help` lists the options{more}"
    others = others_have(word.replace("-", "_")) if hint else ""
    return CorankError(f"{flag!r} is not an option of `{command}{hint}`{others}{near}")


def _close(flag: str, flags: Sequence[str]) -> bool:
    return bool(difflib.get_close_matches(flag.lower(), flags, n=1, cutoff=0.75))


def _experiment_commands(command: Command) -> None:
    demo = command(
        "demo", experiments.demo, "compare all models on synthetic data, whose best possible result is known"
    )
    demo.add_argument("-o", "--out", default="corank-demo", help="folder for the report and the best model")
    demo.add_argument("--seed", type=int, default=0, help="random seed of the data and the models (default 0)")

    compare = command(
        "compare", experiments.compare_models, "compare models on your data: leaderboard, report, best model"
    )
    compare.add_argument(
        "file", metavar="FILE", help="ratings as CSV, Parquet, a known archive, a dataset name or an experiment TOML"
    )
    compare.add_argument("-o", "--out", default="corank-results", help="folder for the report and the best model")
    compare.add_argument("--models", help="names separated by commas (default: all models of the task)")
    compare.add_argument(
        "--tune", type=int, metavar="N", help="tune every model first, with N trials on validation rows"
    )
    compare.add_argument("--seed", type=int, help="random seed of splits, negatives and models (default 0)")
    compare.add_argument("--plan", action="store_true", help=PLAN)
    data_flags(compare)
    part_flags(compare)
    edge_flags(compare)
    protocol_flags(compare)
    task_flag(compare)


def _training_commands(command: Command, argv: list[str]) -> None:
    fit = command("fit", fitting.fit, "train one model and save it")
    model_and_file(fit, argv)
    fit.add_argument("--all-rows", action="store_true", help="learn from the test rows of a given split too")
    fit.add_argument("-o", "--out", required=True, metavar="MODEL", help="where to save it, e.g. m.corank")
    fit.add_argument(
        "--checkpoint", metavar="FILE", help="file for the state of training: an interrupted fit resumes from it"
    )
    fit.add_argument("--params", metavar="TOML", help="hyper-parameters from a file, e.g. one written by `corank tune`")
    fit.add_argument(
        "--on-disk",
        choices=("auto", "always", "never"),
        default="auto",
        help="read Parquet files into sorted files beside the model instead of memory (wmf, bpr, primal_cr); auto: "
        "where reading them would take more than half of the free memory",
    )
    cluster_flags(fit)

    tune = command("tune", fitting.tune, "search hyper-parameters on validation rows; the best are written as TOML")
    model_and_file(tune, argv)
    tune.add_argument(
        "-o", "--out", metavar="TOML", help="where to write the best hyper-parameters (default: MODEL.toml)"
    )
    tune.add_argument("--trials", type=int, default=30, help="number of trials (default 30)")
    tune.add_argument(
        "--storage", metavar="DIR", help="folder for the state of the search, to resume it (default: .corank-tune)"
    )
    protocol_flags(tune)
    task_flag(tune)


def _model_and_data_commands(command: Command) -> None:
    listing = command(
        "models", models.list_models, "list all models; with a name, its description and hyper-parameters"
    )
    listing.add_argument("name", nargs="?")

    data = command("data", data_commands.help_, "describe, download or generate data")
    parts = data.add_subparsers(metavar="describe|fetch|list|synth", parser_class=Parser)
    describe = parts.add_parser("describe", help="counts, density, distributions, time span", allow_abbrev=False)
    describe.add_argument("file", metavar="FILE")
    describe.set_defaults(run=data_commands.describe)
    data_flags(describe)
    fetch = parts.add_parser("fetch", help="download a public dataset from its publisher", allow_abbrev=False)
    fetch.add_argument("name")
    fetch.add_argument("--root", help="folder (default: CORANK_DATA or the cache folder)")
    fetch.set_defaults(run=data_commands.fetch)
    listed = parts.add_parser("list", help="the public datasets that corank can read", allow_abbrev=False)
    listed.set_defaults(run=data_commands.list_)
    synth = parts.add_parser("synth", help="generate synthetic data", allow_abbrev=False)
    synth.add_argument("kind", choices=("realistic", "simulation", "markov"))
    synth.add_argument("-o", "--out", required=True, metavar="CSV")
    synth.add_argument("--users", type=int)
    synth.add_argument("--items", type=int)
    synth.add_argument("--rows", type=int, help="realistic only")
    synth.add_argument("--labels", metavar="CSV", help="also a table of the items: titles and groups; realistic only")
    synth.add_argument("--seed", type=int, default=0)
    synth.set_defaults(run=data_commands.synth)

    graph = command("graph", graph_commands.help_, "features of the nodes of a graph")
    kinds = graph.add_subparsers(metavar="encode", parser_class=Parser)
    encode = kinds.add_parser("encode", help="Graph DNA: neighbourhoods as Bloom filters", allow_abbrev=False)
    encode.set_defaults(run=graph_commands.encode)
    graph_flags(encode)


def _reproduce_command(command: Command) -> None:
    made = command("reproduce", reproduce.reproduce, "run an experiment file and write its result page, or check one")
    made.add_argument("name", help="a TOML file, or the name of an experiment of corank")
    made.add_argument("-o", "--out", default="docs/results", help="folder for the pages (default docs/results)")
    made.add_argument("--plan", action="store_true", help=PLAN)
    made.add_argument(
        "--check",
        action="store_true",
        help="run a page again and say which figures moved; the exit code is 1 if any did",
    )
    made.add_argument("--page", metavar="PAGE", help="the page to check (default: that of the experiment in --out)")


def _check_switches(parser: argparse.ArgumentParser, argv: list[str]) -> None:
    """Refuse `--directed true` and `--directed=true`: switches take no value."""
    apart = [(a, b) for a, b in itertools.pairwise(argv) if b.lower() in _YES_NO]
    for flag, value in [*apart, *((a, b) for a, _, b in (word.partition("=") for word in argv if "=" in word))]:
        for action in parser._actions:
            if flag.startswith("--") and flag in action.option_strings and action.nargs == 0:
                both = isinstance(action, argparse.BooleanOptionalAction)
                on = action.option_strings[0]
                off = f"--no-{on.removeprefix('--')}" if both else "nothing"
                raise CorankError(f"{flag} takes no value, and {value!r} follows it: write {on} for yes, {off} for no")
