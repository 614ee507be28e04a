"""The command line: `corank COMMAND ...`.

A user's mistake gives a one-sentence message on standard error and exit code 2, never with a traceback.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ..errors import CorankError, shorten


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    from .parser import parse
    from .show import announcing_torch, report_compilation, show_log

    show_log()
    try:
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
    except OSError as why:
        where = f": {shorten(str(why.filename), 200)}" if why.filename else ""
        print(f"corank: {why.strerror or why}{where}", file=sys.stderr)
        return 2
    except MemoryError:
        print("corank: not enough memory for this; use fewer rows, a smaller dim, or another model", file=sys.stderr)
        return 2
