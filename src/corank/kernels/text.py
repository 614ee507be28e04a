"""Tables of numbers as text, parsed exactly or not at all; and the shape of any table, checked byte by byte.

`numbers` accepts one spelling of each integer, so that no two ids become one, and gives up at the first byte that it
does not expect (quotes, signs, blank lines, another number of fields): a slower reader takes over then.

Shapes: text uint8[bytes], whole lines that end with a line feed; cuts int64[pieces + 1], the pieces into which it is
divided, each of whole lines; slot int8[columns], the row of `out` that a column goes to, or -1.
"""

from __future__ import annotations

import numpy as np

from .threads import kernel

FEED, RETURN, QUOTE, ZERO, NINE, MINUS, POINT = 10, 13, 34, 48, 57, 45, 46
DIGITS = 18  # so many always fit in 64 bits
# What `shape` keeps from one block of text to the next.
STATE, FIELDS, RECORDS, BLANK, QUOTED, INNER, BROKEN, RETURNED, INSIDE, ENCLOSED = range(10)
_START, _PLAIN, _QUOTED, _CLOSED = 0, 1, 2, 3


@kernel
def numbers(
    start: int,
    stop: int,
    text: np.ndarray,
    cuts: np.ndarray,
    separator: int,
    width: int,
    slot: np.ndarray,
    decimal: np.ndarray,
    out: np.ndarray,
    places: np.ndarray,
    counts: np.ndarray,
) -> None:
    """Parse the rows of pieces start to stop.

    width : bytes of the separator, 1 or 2 (the same byte twice)
    decimal : bool[slots], whether a slot takes decimals; other slots take integers in their shortest form
    out : int64[slots, rows], the digits of each number; places : uint8[rows], digits after the point of the decimals
    counts : int64[pieces], the rows of each piece, or -1 where something is not a number. The rows of a piece begin at
        `cuts[piece] // (2 * columns)`: a field and what ends it take two bytes at least.
    """
    columns = slot.size
    for piece in range(start, stop):
        at, end = cuts[piece], cuts[piece + 1]
        row = at // (2 * columns)
        first = row
        good = True
        while good and at < end:
            for c in range(columns):
                s = slot[c]
                begin = at
                if s >= 0:
                    negative = text[at] == MINUS
                    at += negative
                    number, digits, after, points = 0, 0, 0, 0
                    lead = at
                    while True:
                        b = text[at]
                        if b >= ZERO and b <= NINE:
                            number = number * 10 + (b - ZERO)
                            digits += 1
                            after += points
                        elif b == POINT and points == 0 and decimal[s]:
                            points = 1
                        else:
                            break
                        at += 1
                    good = digits > 0 and digits <= DIGITS
                    if not decimal[s] and text[lead] == ZERO and (digits > 1 or negative):
                        good = False
                    out[s, row] = -number if negative else number
                    if decimal[s]:
                        places[row] = after
                else:
                    while text[at] > RETURN and text[at] < 128 and text[at] != separator and text[at] != QUOTE:
                        at += 1
                if c < columns - 1:
                    good = good and text[at] == separator and (width == 1 or text[at + 1] == separator)
                    at += width
                else:
                    if text[at] == RETURN:
                        at += 1
                    good = good and text[at] == FEED
                    at += 1
                if not good or at > end or at == begin:
                    good = False
                    break
            row += 1
        counts[piece] = row - first if good else -1


@kernel
def shape(text: np.ndarray, separator: int, columns: int, kept: np.ndarray) -> bool:
    """Whether a block of a table is regular, and its counts in `kept` (int64[10], zeros before the first block).

    Regular: each record has as many fields as there are columns; quotes enclose whole fields and are doubled inside;
    a carriage return stands before a line feed alone; no zero bytes; no record after a blank line.
    kept : RECORDS, BLANK lines at the end, QUOTED fields, fields with INNER quotes, quoted line breaks (BROKEN), and
        quoted lines that look like records (ENCLOSED)
    """
    state, fields, returned, inside = kept[STATE], kept[FIELDS], kept[RETURNED], kept[INSIDE]
    for at in range(text.size):
        b = text[at]
        if state == _QUOTED:
            if b == QUOTE:
                state = _CLOSED
            elif b == separator:
                inside += 1
            elif b in (FEED, RETURN):
                kept[BROKEN] += 1
                kept[ENCLOSED] += inside == columns - 1
                inside = 0
            elif b == 0:
                return False
            continue
        if returned and b != FEED:
            return False
        if b == separator:
            fields += 1
            state = _START
        elif b == FEED:
            if fields == 0 and state == _START:
                kept[BLANK] += 1
            elif fields != columns - 1 or kept[BLANK] > 0:
                return False
            else:
                kept[RECORDS] += 1
            fields, state, returned = 0, _START, 0
        elif b == RETURN:
            returned = 1
        elif b == 0:
            return False
        elif state == _START:
            state = _PLAIN
            if b == QUOTE:
                state = _QUOTED
                inside = -columns  # the rest of a line is no record
                kept[QUOTED] += 1
        elif b == QUOTE:
            if state == _CLOSED:
                state = _QUOTED
            else:
                kept[INNER] += 1
        elif state == _CLOSED:
            return False
    kept[STATE], kept[FIELDS], kept[RETURNED], kept[INSIDE] = state, fields, returned, inside
    return True


@kernel
def even(
    start: int, stop: int, text: np.ndarray, cuts: np.ndarray, separator: int, columns: int, counts: np.ndarray
) -> None:
    """The lines of each piece of a text without quotes, or -1 where one has another number of fields: int64[pieces]."""
    for piece in range(start, stop):
        lines, fields, same = 0, 1, True
        for at in range(cuts[piece], cuts[piece + 1]):
            fields += text[at] == separator
            if text[at] == FEED:
                same = same and fields == columns
                lines += 1
                fields = 1
        counts[piece] = lines if same else -1
