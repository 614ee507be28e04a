"""The command line: `corank COMMAND ...`.

A user's mistake gives a one-sentence message on standard error and exit code 2, never with a traceback.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from ..errors import CorankError
from ..memory import ran_out, room_for


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    from .parser import parse
    from .show import announcing_torch, report_compilation, show_log

    _open_streams()
    show_log()
    try:
        room_for("polars", "numba")
        args = parse(list(sys.argv[1:] if argv is None else argv))
        with announcing_torch():
            code = int(args.run(args) or 0)
        report_compilation()
        return code
    except CorankError as why:
        print(f"corank: {why}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("corank: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:  # `corank ... | head`
        sys.stderr.close()
        return 0
    except (MemoryError, RuntimeError, ImportError, OSError) as why:
        if ran_out(why):
            print(
                "corank: not enough memory for this; use fewer rows, a smaller dim, or another model", file=sys.stderr
            )
            return 2
        if not isinstance(why, OSError):
            raise
        print(f"corank: {why.strerror or why}{f': {why.filename}' if why.filename else ''}", file=sys.stderr)
        return 2


def _open_streams() -> None:
    """Standard streams that are closed lead nowhere: else the next file that is opened would get their number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False))  # noqa: SIM115
