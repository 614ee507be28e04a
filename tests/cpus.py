"""The tests that depend on rounding, run with the instruction sets of other processors (`make test-cpus`).

A library picks its code by the processor that it finds; these variables make it pick as it would elsewhere. Each
configuration first shows what the libraries really chose, then runs the tests: one that asks for equal bits of a
matrix product fails under one of them. Only instruction sets that this processor has can be chosen.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

CONFIGURATIONS = {
    "as here": {},
    "no vector instructions beyond SSE": {
        "OPENBLAS_CORETYPE": "Prescott",
        "MKL_CBWR": "COMPATIBLE",
        "ATEN_CPU_CAPABILITY": "default",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "NUMBA_CPU_NAME": "generic",
        "NUMBA_CPU_FEATURES": "",
        "NPY_DISABLE_CPU_FEATURES": "X86_V3",
    },
    "Intel Haswell": {
        "OPENBLAS_CORETYPE": "Haswell",
        "MKL_CBWR": "AVX2",
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "NUMBA_CPU_NAME": "haswell",
    },
    # OpenBLAS in the wheels of numpy and scipy shares its Haswell kernels with Zen; torch and numba differ.
    "AMD Zen": {
        "OPENBLAS_CORETYPE": "Zen",
        "MKL_CBWR": "AVX",
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX",
        "NUMBA_CPU_NAME": "znver2",
    },
}
TESTS = ("tests/kernels", "tests/nn", "tests/models", "tests/test_checkpoint.py", "tests/test_old_files.py")
CHOSEN = """
import numba, numpy, scipy.linalg, threadpoolctl
blas = {lib["architecture"] for lib in threadpoolctl.threadpool_info() if lib["internal_api"] == "openblas"}
try:
    import torch
    found = torch.backends.cpu.get_cpu_capability()
except ModuleNotFoundError:
    found = "not installed"
print("OpenBLAS", *blas, "| torch", found, "| numba", numba.config.CPU_NAME or "host")
"""


def main(arguments: list[str]) -> int:
    """Run all configurations, or those whose names contain an argument; options go to pytest."""
    words = [a for a in arguments if not a.startswith("-")]
    options = [a for a in arguments if a.startswith("-")]
    root = Path(__file__).resolve().parents[1]
    failed = []
    for name, variables in CONFIGURATIONS.items():
        if words and not any(word.lower() in name.lower() for word in words):
            continue
        environment = {**os.environ, **variables}
        chosen = subprocess.run([sys.executable, "-c", CHOSEN], env=environment, capture_output=True, text=True)
        if chosen.returncode:
            print(f"{name}: skipped, this processor cannot do it", flush=True)
            continue
        print(f"{name}: {chosen.stdout.strip()}", flush=True)
        start = time.perf_counter()
        command = [sys.executable, "-m", "pytest", "-n", "auto", "--dist", "worksteal", *TESTS, *options]
        if subprocess.run(command, env=environment, cwd=root).returncode:
            failed.append(name)
        print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)
    print("failed: " + ", ".join(failed) if failed else "every configuration passed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
