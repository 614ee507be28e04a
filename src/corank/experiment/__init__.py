"""Models x data x split x protocol: experiments, tuning, results, and quality against training time."""
