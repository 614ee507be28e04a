"""The errors that a user can cause: one sentence each, naming the value, the rule and the remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

UNEXPECTED = "unexpected"  # how the reason of a defect begins
NO_MEMORY = "not enough memory: use fewer rows, a smaller dim, or another model"


class CorankError(ValueError):
    """Something is wrong with what was given; the message says what, why and what to do."""


class NotFitted(CorankError):
    """The model was used before it was fitted."""


class Stopped(CorankError):
    """A fit was stopped by its `on_progress` callback before it was finished."""


class ModelFileError(CorankError):
    """A model file cannot be trusted or understood."""


class NotWritten(CorankError):
    """A file could not be written: the disk is full, or the folder is not writable."""


class MissingExtra(CorankError):
    """A part that is installed only on request is needed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an optional part: install it with  pip install 'corank[{extra}]'")


def several(mistakes: Sequence[str], where: str = "", most: int = 10) -> CorankError:
    """One error for all mistakes that were found: a sentence where there is one, else a list with a line each."""
    if len(mistakes) == 1:
        return CorankError(f"{where}: {mistakes[0]}" if where else mistakes[0])
    more = [f"... and {len(mistakes) - most} more"] if len(mistakes) > most else []
    head = f"{where}: {len(mistakes)} mistakes" if where else f"{len(mistakes)} mistakes"
    return CorankError("\n  ".join([head, *mistakes[:most], *more]))


def suggest(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` when a near name exists, else the list of the known ones."""
    known = sorted(known)
    lower = {name.lower(): name for name in reversed(known)}
    near = difflib.get_close_matches(word.lower(), lower, n=1, cutoff=0.6)
    return f"; did you mean '{lower[near[0]]}'?" if near else f"; known: {', '.join(known)}"


_HIDDEN = {code: f"\\x{code:02x}" for code in (*range(32), 127, *range(128, 160)) if code not in (9, 10)}


def visible(text: str) -> str:
    """A text for a terminal: control characters, with which an id or title could move the cursor, are spelled out."""
    return text.translate(_HIDDEN).encode("utf-8", "backslashreplace").decode()


def reason(why: BaseException) -> str:
    """Why something failed, in a sentence: that of an error for users, or what is known of an unexpected one."""
    if isinstance(why, CorankError):
        return str(why)
    if isinstance(why, MemoryError):
        return NO_MEMORY
    return f"{UNEXPECTED} {type(why).__name__}: {shorten(' '.join(str(why).split()), 200)}"


def shorten(text: str, width: int = 60) -> str:
    """What fits in a sentence of a text that may be a whole file."""
    return text if len(text) <= width else text[: width - 3] + "..."


def show(value: object, width: int = 60) -> str:
    """A value in a sentence: its repr without control characters, cut where it is long."""
    if isinstance(value, int) and abs(value) >= 1 << 256:  # Python refuses to write out numbers of many digits
        return f"a whole number of {value.bit_length():,} bits"
    try:
        return shorten(repr(value), width)
    except ValueError:
        return f"a {type(value).__name__}"
