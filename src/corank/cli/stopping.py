"""Ctrl-C and SIGTERM: a command ends without a traceback, keeps what it can, and exits with 130 or 143."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from types import FrameType, TracebackType
from typing import Any, Self

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}  # as shells count: 128 + the number of the signal

AGAIN = 0.01  # seconds until a signal is raised again where Python has dropped the exception


class Interrupted(KeyboardInterrupt):
    """A signal that ends the command."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number
        self.code = CODES[signal.Signals(number)]


class Signals:
    """Within this context a signal raises `Interrupted`; the next one has the effect that it had before."""

    def __init__(self) -> None:
        self.received: Interrupted | None = None
        self._alarm: Any = None  # the handler of SIGALRM before

    def __enter__(self) -> Self:
        self._before = _handle(self._on_signal)
        self._hook = sys.unraisablehook
        sys.unraisablehook = self._unraisable
        return self

    def __exit__(
        self, kind: type[BaseException] | None, why: BaseException | None, where: TracebackType | None
    ) -> None:
        _restore(self._before)
        sys.unraisablehook = self._hook
        if self._alarm is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._alarm)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        _restore(self._before)
        self.received = Interrupted(number)
        raise self.received

    def _unraisable(self, event: Any) -> None:
        """Python prints an exception in a finaliser or a callback and goes on: a signal is raised again soon after."""
        why = event.exc_value
        if not isinstance(why, Interrupted):
            self._hook(event)
            return
        if not hasattr(signal, "setitimer"):  # Windows
            tell("corank: stopped")
            os._exit(why.code)
        before = signal.signal(signal.SIGALRM, lambda number, frame: self._on_signal(why.number, frame))
        self._alarm = self._alarm or before
        signal.setitimer(signal.ITIMER_REAL, AGAIN)


class Stop:
    """Within this context the first signal asks for a clean stop; the second one ends the command at once.

    Contexts of one object can be nested: the outermost one counts.
    """

    def __init__(self, message: str = "stopping after this step and keeping the results so far") -> None:
        self.message = message  # may change as the command goes on
        self.why: Interrupted | None = None
        self._depth = 0

    @property
    def asked(self) -> bool:
        return self.why is not None

    def __enter__(self) -> Self:
        self._depth += 1
        if self._depth == 1:
            self._before = _handle(self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, why: BaseException | None, where: TracebackType | None
    ) -> None:
        self._depth -= 1
        if self._depth == 0:
            _restore(self._before)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            _restore(self._before)
            before = self._before[number]
            if callable(before):
                before(number, frame)
            raise Interrupted(number)
        self.why = Interrupted(number)
        again = "; press Ctrl-C again to stop at once" if number == signal.SIGINT else ""
        tell(f"\n{self.message}{again}")

    def raise_if_asked(self) -> None:
        """End the command with the code of the signal, once all that could be kept is kept."""
        if self.why is not None:
            raise self.why


def tell(text: str) -> None:
    """Print a line from a signal handler: `print` may be under way already, and is not made to be entered twice."""
    with contextlib.suppress(OSError):
        os.write(2, f"{text}\n".encode())


def _handle(function: Any) -> dict[int, Any]:
    """Handle both signals, except those that are ignored (as by `nohup`); returns the handlers before."""
    before = {int(number): signal.getsignal(number) for number in CODES}
    wanted = {number: handler for number, handler in before.items() if handler not in (signal.SIG_IGN, None)}
    for number in wanted:
        signal.signal(number, function)
    return wanted


def _restore(before: dict[int, Any]) -> None:
    for number, handler in before.items():
        signal.signal(number, handler)
