"""Protocols, ranks of the held-out items, metrics, confidence intervals and significance tests."""
