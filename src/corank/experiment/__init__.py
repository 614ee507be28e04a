"""Experiments (models x data x split x protocol), tuning, results, and curves of quality against training time."""
