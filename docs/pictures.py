"""Placeholder."""


def rooms() -> str:
    return "<svg/>\n"


def interaction() -> str:
    return "<svg/>\n"
