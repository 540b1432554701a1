"""Walsh-Hadamard transform: against the prototype, the other dtype, two threads and a copy."""

from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks import prototypes
from benchmarks.timing import best_times, heading
from kernelmill import fwht

# Elements per call. Short rows go in batches that stay in the second-level cache.
BATCH = 1 << 16


def single_thread() -> None:
    """Time 2**6 ... 2**20 on one thread, in place."""
    heading("fwht, one thread, in place: Gflop/s, and ratios of time in one run")
    library = prototypes.load()
    print("   n     rows  float32  vs prototype  float64/float32  copies of the rows")
    for log2_n in range(6, 21):
        n = 1 << log2_n
        rows = max(1, BATCH >> log2_n)
        half = max(1, rows // 2)  # the same number of bytes, where there are rows to leave out
        x, y = np.zeros((rows, n), np.float32), np.zeros((half, n), np.float64)
        z = np.empty_like(x)
        contenders: dict[str, Callable[[], object]] = {
            "float32": partial(fwht, x, out=x, n_threads=1),
            "float64": partial(fwht, y, out=y, n_threads=1),
            "copy": partial(np.copyto, z, x),
        }
        if library is not None:
            check = np.random.default_rng(0).standard_normal((rows, n)).astype(np.float32)
            theirs = check.copy()
            prototypes.fwht_rows(library, theirs, log2_n)
            np.testing.assert_allclose(fwht(check), theirs, atol=1e-5 * n)
            contenders["prototype"] = partial(prototypes.fwht_rows, library, x, log2_n)
        t = best_times(contenders)
        rate = rows * n * log2_n / t["float32"] / 1e9
        ratio = f"{t['prototype'] / t['float32']:8.2f}x" if library is not None else "      n/a"
        print(
            f"2^{log2_n:<3d} {rows:6d} {rate:8.1f}  {ratio:>12s} "
            f"{t['float64'] / half / (t['float32'] / rows):14.2f} {t['float32'] / t['copy']:18.1f}"
        )


def two_threads() -> None:
    """Time batches on one and two threads."""
    heading("fwht, float32: two threads against one")
    for rows, n in [(64, 1024), (256, 1024), (16, 4096), (64, 4096), (1, 1 << 20), (1, 1 << 22)]:
        x = np.zeros((rows, n), np.float32)
        t = best_times(
            {
                "one": partial(fwht, x, out=x, n_threads=1),
                "two": partial(fwht, x, out=x, n_threads=2),
            },
            rounds=25,
        )
        print(
            f"{rows:5d} x {n:<8d} {x.nbytes / 2**20:7.2f} MiB  {t['one'] * 1e6:9.1f} us -> "
            f"{t['two'] * 1e6:9.1f} us  {t['one'] / t['two']:.2f}x"
        )


def call_overhead() -> None:
    """Time calls that hardly compute."""
    heading("call overhead from Python: a row of 8 elements")
    x = np.zeros(8, np.float32)
    y = np.zeros_like(x)
    t = best_times(
        {
            "fwht(x)": lambda: fwht(x),
            "fwht(x, out=y)": lambda: fwht(x, out=y),
            "numpy.cos(x, out=y), for comparison": lambda: np.cos(x, out=y),
        }
    )
    for name, seconds in t.items():
        print(f"{name:40s} {seconds * 1e6:6.2f} us")


def main() -> None:
    """Run all tables."""
    single_thread()
    two_threads()
    call_overhead()


if __name__ == "__main__":
    main()
