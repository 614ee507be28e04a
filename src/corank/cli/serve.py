"""`corank serve` and `corank feedback`: models behind HTTP, and what users told them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import CorankError, MissingExtra
from .options import Args, writable
from .show import say

if TYPE_CHECKING:
    from ..serve.settings import Settings

EXTRA = ("fastapi", "uvicorn", "prometheus_client", "sqlalchemy", "orjson")


def add_commands(command: Callable[[str, Callable[..., Any], str], Any]) -> None:
    """The two commands and their options."""
    made = command("serve", serve, "serve saved models over HTTP, with a page to look at them")
    made.add_argument("model", metavar="MODEL", help="the model that answers by default")
    made.add_argument(
        "--model", dest="more", action="append", metavar="NAME=MODEL", help="another model (may be repeated)"
    )
    made.add_argument(
        "--share", action="append", metavar="NAME=SHARE", help="share of the users that another model answers, 0 to 1"
    )
    made.add_argument("--items", metavar="FILE", help="table of items: titles, and labels for filters")
    made.add_argument("--results", metavar="DIR", help="folder of `corank compare`: its leaderboard is on the page")
    made.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    made.add_argument("--port", type=int, default=8000, help="port, 0 for any free one (default 8000)")
    made.add_argument(
        "--token-file", metavar="FILE", help="file with the secret that allows feedback and changes of models"
    )
    made.add_argument(
        "--store",
        metavar="URL",
        help="feedback store: a SQLite file or postgresql://... (default: a file beside the model, with --token-file)",
    )
    made.add_argument("--open-reads", action="store_true", help="on other addresses, reading needs no token")
    made.add_argument("--allow-host", action="append", metavar="NAME", help="another name that clients may use")
    made.add_argument("--cors", action="append", metavar="ORIGIN", help="an origin whose pages may read answers")
    made.add_argument("--workers", type=int, default=1, help="processes (default 1)")
    made.add_argument("--threads", type=int, default=1, help="threads that score a batch, per process (default 1)")
    made.add_argument("--connections", type=int, metavar="N", help="most sockets per process (default 1,000)")
    made.add_argument("--quiet", action="store_true", help="no line per request in the log")

    exported = command("feedback", feedback, "write the feedback of a store as a table, for the next fit")
    exported.add_argument("store", metavar="STORE", help="a SQLite file or postgresql://...")
    exported.add_argument("-o", "--out", required=True, metavar="FILE", help=".csv, .tsv or .parquet")


def serve(args: Args) -> int:
    """Serve saved models until a signal says stop."""
    _require_extra("corank serve")
    from ..serve.run import run

    return run(settings_of(args))


def settings_of(args: Args) -> Settings:
    from ..serve.settings import Limits, Settings

    models = {_name(args.model): args.model}
    for text in args.more or ():
        name, equals, file = text.partition("=")
        if not equals:
            name, file = _name(text), text
        if name in models:
            raise CorankError(f"two models are called {name!r}: give one of them another name, --model NAME={file}")
        models[name] = file
    store = args.store
    if store is None and args.token_file is not None:
        store = f"sqlite:///{Path(args.model).resolve().with_suffix('.feedback.sqlite')}"
    limits = {} if args.connections is None else {"connections": args.connections}
    return Settings(
        models={name: str(Path(file).resolve()) for name, file in models.items()},
        shares=_shares(args.share or ()),
        items=args.items,
        store=_store_url(store),
        results=args.results,
        host=args.host,
        port=args.port,
        workers=args.workers,
        threads=args.threads,
        token_file=args.token_file,
        open_reads=args.open_reads,
        hosts=tuple(args.allow_host or ()),
        origins=tuple(args.cors or ()),
        logs=not args.quiet,
        limits=Limits(**limits),
    )


def feedback(args: Args) -> None:
    """Write the feedback of a store as a table."""
    _require_extra("corank feedback")
    from ..serve.export import write_feedback

    writable(Path(args.out).parent, Path(args.out))
    rows = write_feedback(str(_store_url(args.store)), args.out)
    say(f"{rows:,} events written to {args.out}")


def _require_extra(what: str) -> None:
    import importlib.util

    if any(importlib.util.find_spec(name) is None for name in EXTRA):
        raise MissingExtra(what, "serve")


def _name(file: str) -> str:
    """The name of a model that was given none: that of its file."""
    return Path(file).name.removesuffix(".corank")


def _shares(texts: Sequence[str]) -> dict[str, float]:
    shares: dict[str, float] = {}
    for text in texts:
        name, _, number = text.partition("=")
        try:
            shares[name] = float(number)
        except ValueError:
            raise CorankError(f"--share {text!r}: write NAME=SHARE, such as --share b=0.1") from None
    return shares


def _store_url(store: str | None) -> str | None:
    """A URL, or the path of a SQLite file."""
    if store is None or "://" in store:
        return store
    return f"sqlite:///{Path(store).resolve()}"
