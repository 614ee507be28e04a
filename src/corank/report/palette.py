"""Colours and markers of the charts.

Neutral colours are those of the page's stylesheet (`templates/base.css`): `svg.draw` writes them as CSS variables, so
that a chart follows the dark mode of the page around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

INK, MUTED, FAINT, PAPER = "#1c2128", "#667080", "#d9dee4", "#fefefe"
BLUE, SKY, VIOLET, BROWN = "#0072b2", "#3a9bd9", "#7d6bc4", "#8a5a2b"
ACCENT, WARM = "#0a74b4", "#d55e00"  # for areas: the same in light and dark
TIERS = ("#0b4f7a", "#5aa2cf", "#c4dcec")  # item popularity, dark = the most popular
CSS_VARIABLES = {
    INK: "--ink",
    MUTED: "--muted",
    FAINT: "--line",
    PAPER: "--card",
    BLUE: "--blue",  # these four are too dark for text on a dark page
    SKY: "--sky",
    VIOLET: "--violet",
    BROWN: "--brown",
}
# Okabe and Ito's colours, the light ones darkened to be readable on white; marker shapes distinguish them too.
_COLOURS = (BLUE, "#d55e00", "#009e73", "#c0629a", "#b58900", SKY, VIOLET, BROWN)
_SHAPES = "os^DvPX*"


class Style(NamedTuple):
    """How one model looks in every chart: a colour and a matplotlib marker."""

    colour: str
    shape: str


def styles(labels: Sequence[str], oracles: Sequence[str] = (), first: Sequence[str] = ()) -> dict[str, Style]:
    """One style per label, in alphabetical order: a model looks the same in the next report; oracles are grey.

    first : labels that choose before the others, where there are more than the 8 colours.
    """
    contenders = sorted(set(labels) - set(oracles), key=lambda label: (label not in first, label))
    found = {label: Style(_COLOURS[i % 8], _SHAPES[(i + i // 8) % 8]) for i, label in enumerate(contenders)}
    return found | {label: Style(MUTED, "D") for label in oracles}


def is_dark(colour: str) -> bool:
    """White text is easier to read on it than black."""
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(colour)
    return bool(0.3 * red + 0.59 * green + 0.11 * blue < 0.6)
