"""The command line: `corank COMMAND ...`.

A user's mistake gives a one-sentence message on standard error and exit code 2, never with a traceback.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence

from ..errors import NO_MEMORY, CorankError, shorten, visible
from ..system.memory import ran_out, room_for


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    from .stopping import Signals

    signals = Signals()
    try:
        with signals:
            return _run(list(sys.argv[1:] if argv is None else argv))
    except BaseException as why:
        if signals.received is not None:  # what a signal raises may come out of a library as another error
            return _ended(signals.received)
        return _ended(why)


def _run(argv: list[str]) -> int:
    from .parser import parse
    from .show import announcing_torch, report_compilation, show_log

    _open_streams()
    show_log()
    room_for("polars", "numba")
    args = parse(argv)
    with announcing_torch():
        code = int(args.run(args) or 0)
    report_compilation()
    sys.stdout.flush()  # here a full disk is one sentence; at the end of the process it would be a traceback
    return code


def _ended(why: BaseException) -> int:
    """Print why a command has ended, in one sentence; returns its exit code."""
    if isinstance(why, CorankError):
        return _say(str(why), 2)
    if isinstance(why, KeyboardInterrupt):
        return _say("stopped", getattr(why, "code", 130))
    if isinstance(why, BrokenPipeError):  # `corank ... | head`
        _drop_unwritable()
        return 0
    if ran_out(why):
        return _say(NO_MEMORY, 2)
    if isinstance(why, OSError):
        where = f": {shorten(str(why.filename), 200)}" if why.filename else ""
        return _say(f"{why.strerror or why}{where}", 2)
    raise why


def _say(text: str, code: int) -> int:
    with contextlib.suppress(OSError):
        print(f"corank: {visible(text)}", file=sys.stderr, flush=True)
    _drop_unwritable()
    return code


def _drop_unwritable() -> None:
    """Where output cannot be written, drop it: Python would try again at the end of the process, with a traceback."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            empty = os.open(os.devnull, os.O_WRONLY)
            os.dup2(empty, stream.fileno())
            os.close(empty)


def _open_streams() -> None:
    """Standard streams that are closed lead nowhere: else the next file that is opened would get their number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False))  # noqa: SIM115
