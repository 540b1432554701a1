"""Random streams beside numpy's generators, one thread."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.timing import best_times, heading
from kernelmill.random import Stream


def main() -> None:
    """Time a million draws of each kind."""
    heading("a million draws, float64, one thread: ns each (numpy: default_rng, and its Philox)")
    print("                kernelmill  PCG64  Philox")
    n = 1_000_000
    stream = Stream.from_seed(0)
    pcg = np.random.default_rng(0)
    philox = np.random.Generator(np.random.Philox(0))
    rows: dict[str, tuple[Callable[[], object], Callable[[Any], object]]] = {
        "signs": (
            lambda: stream.signs(n, n_threads=1),
            lambda g: 1.0 - 2.0 * g.integers(0, 2, n, dtype=np.int8),
        ),
        "uniforms": (lambda: stream.uniforms(n, n_threads=1), lambda g: g.random(n)),
        "normals": (lambda: stream.normals(n, n_threads=1), lambda g: g.standard_normal(n)),
        "chis, df 784": (
            lambda: stream.chis(n, 784, n_threads=1),
            lambda g: np.sqrt(g.chisquare(784, n)),
        ),
        "cauchys": (lambda: stream.cauchys(n, n_threads=1), lambda g: g.standard_cauchy(n)),
        "permutation": (lambda: stream.permutation(n), lambda g: g.permutation(n)),
    }
    for name, (ours, theirs) in rows.items():
        t = best_times(
            {
                "ours": ours,
                "pcg": partial(theirs, pcg),
                "philox": partial(theirs, philox),
            },
            rounds=5,
        )
        print(
            f"{name:14s} {t['ours'] / n * 1e9:11.2f} {t['pcg'] / n * 1e9:6.2f} "
            f"{t['philox'] / n * 1e9:7.2f}"
        )


if __name__ == "__main__":
    main()
