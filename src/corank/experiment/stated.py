"""What an experiment file states: how settings were chosen, and what published figures were measured under.

Neither follows from the code, and no figure can be judged without them: a page prints both, and says where they are
not recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import show
from .kinds import TEXT, Kind, Mistakes, list_of, one_of, readable, table_of, whole

# ---- how the settings of a row were chosen -------------------------------------------------------------------------

BY = {
    "search": "a search",
    "person": "hand",
    "paper": "settings of the paper, none tried here",
    "defaults": "defaults, none tried here",
    "unknown": "not recorded",
    "fixed": "fixed by the question that the page asks",
}


def _count_mistakes(key: str, value: Any) -> Mistakes:
    if not (readable(value) and value.strip()):
        yield from (f"{wrong}, or a text such as 'a few'" for wrong in whole(1).mistakes(key, value))


CHOSEN_KEYS: dict[str, Kind] = {
    "by": one_of(*BY),
    "settings": Kind("a whole number of 1 or more, or a text such as 'a few'", _count_mistakes),
    "rows": TEXT,
    "note": TEXT,
}
CHOSEN = table_of(
    CHOSEN_KEYS,
    "a table that says how the settings were chosen",
    "{by = 'person', settings = 7, rows = 'a fifth of the training rows'}",
)


def how_chosen(chosen: Mapping[str, Any], trials: int, given: bool) -> str:
    """How the settings of a row were chosen, in words.

    trials : those of the search in this run. given : whether the file sets hyper-parameters of the row.
    """
    words = f"{trials} tried by a search on the validation rows" if trials else ""
    by = chosen.get("by")
    if by in ("search", "person"):
        tried = f"{chosen.get('settings', 'number not recorded')} tried by {BY[by]}"
        rows = f"on {chosen['rows']}" if "rows" in chosen else "on rows that are not recorded"
        words += f"{'; before that, ' if words else ''}{tried} {rows}"
    elif by is not None:
        words += f"{'; the others: ' if words else ''}{BY[by]}"
    elif not words:
        words = "not recorded" if given else BY["defaults"]
    return f"{words}; {chosen['note']}" if "note" in chosen else words


# ---- what published figures were measured under --------------------------------------------------------------------


def _refit_mistakes(key: str, value: Any) -> Mistakes:
    if not isinstance(value, bool) and value != "not stated":
        yield f"{key} = {show(value)}: it must be true, false or 'not stated'"


UNDER_KEYS: dict[str, Kind] = {
    "source": TEXT,
    "protocol": TEXT,
    "refit": Kind("true, false or 'not stated'", _refit_mistakes),
    "targets": TEXT,
    "ties": TEXT,
    "note": TEXT,
}
UNDER = table_of(
    UNDER_KEYS,
    "a table that says what the published figures were measured under",
    "{source = 'Kang and McAuley 2018', refit = false}",
)
_REFIT = {True: "trained with", False: "trained without"}


def measured_under(under: Mapping[str, Any], sequential: bool) -> str:
    """What published figures were measured under, in words; for sequences, also what is not recorded."""
    source = under.get("source", "source not recorded")
    parts = [under.get("protocol", "protocol not recorded")]
    refit = under.get("refit")
    if refit is not None or sequential:
        learned = _REFIT.get(refit) if isinstance(refit, bool) else "not stated whether trained with"
        parts.append(f"{learned} the rows that are validation rows here")
    for name, words in (("targets", "targets"), ("ties", "equal timestamps")):
        if name in under or sequential:
            parts.append(f"{words}: {under.get(name, 'not recorded')}")
    parts += [under["note"]] if "note" in under else []
    return f"{source}: {'; '.join(parts)}"


def refit_mistakes(refit: bool, under: Mapping[str, Any], where: str) -> Mistakes:
    """A figure that was measured with a final fit on the validation rows is never beside one without."""
    theirs = under.get("refit")
    if theirs == refit or (not refit and theirs in (None, "not stated")):
        return
    if not isinstance(theirs, bool):
        yield (
            f"{where}: with refit = true a published figure must have learned from the same rows: say so with "
            "published_under = {refit = true}, or drop refit or the figure"
        )
    else:
        yield (
            f"{where}: published_under.refit = {str(theirs).lower()} beside refit = {str(refit).lower()}: figures with "
            "and without a final fit on the validation rows are not comparable: change refit, or drop the figure"
        )


REMARKS = list_of(TEXT, "sentences", "['The test rows were looked at before.']")
