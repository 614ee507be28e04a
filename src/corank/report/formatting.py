"""Numbers and names as text: the same in reports, leaderboards and charts."""

from __future__ import annotations

import math

_ABBREVIATIONS = ("ndcg", "mrr", "map", "auc", "hlu", "rmse", "mae")


def plain(text: object) -> str:
    """One line that can be shown anywhere: control characters become blanks."""
    return "".join(c if c.isprintable() else " " for c in str(text))


def metric_title(name: str) -> str:
    """A metric as it is written in papers: NDCG@10, Recall@10."""
    word, at, k = plain(name).partition("@")
    written = word.upper() if word in _ABBREVIATIONS else word.replace("_", " ").capitalize()
    return written + at + k


def format_value(value: float | None) -> str:
    """The value of a metric: four decimals below 10, fewer above."""
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value:.4f}" if abs(value) < 10 else f"{value:.2f}" if abs(value) < 1000 else f"{value:,.0f}"


def format_interval(interval: tuple[float, float]) -> str:
    """[low, high], or nothing where there is no interval."""
    low, high = interval
    return f"[{format_value(low)}, {format_value(high)}]" if math.isfinite(low) and math.isfinite(high) else ""


def format_p(p: float | None) -> str:
    """A p-value; nothing where there was no test."""
    if p is None or math.isnan(p):
        return ""
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def format_duration(seconds: float) -> str:
    """Seconds with a unit, three digits at most."""
    if not math.isfinite(seconds):
        return "–"
    if seconds < 0.0995:
        return f"{1000 * seconds:.0f} ms" if seconds >= 0.0005 else "< 1 ms"
    if seconds < 600:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def count_of(n: int, noun: str) -> str:
    """A count with its noun: 1 user, 2,000 users."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
