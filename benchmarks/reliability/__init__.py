"""What was tried to break corank, and what held: `python -m benchmarks.reliability`, or `make fuzz`.

One file per part. It defines `PARTS`, a list of `Part`; a short form of each runs in the test suite.
"""
