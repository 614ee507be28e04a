"""The errors that a user can cause: one sentence each, naming the value, the rule and the remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


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


def shorten(text: str, width: int = 60) -> str:
    """What fits in a sentence of a text that may be a whole file."""
    return text if len(text) <= width else text[: width - 3] + "..."
