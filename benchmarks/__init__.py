"""Speed, memory and scale against peers: same data, same threads, one run. `python -m benchmarks --help`."""
