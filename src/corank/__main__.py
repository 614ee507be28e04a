"""`python -m corank` and `corank` are the command line."""

from __future__ import annotations

import signal
import sys


def run() -> None:
    """Run the command line and exit with its code."""
    # Until a command has handlers of its own, Ctrl-C ends the process at once: Python's handler would print a traceback
    # of whatever is being imported.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from .cli import main

    sys.exit(main())


if __name__ == "__main__":
    run()
