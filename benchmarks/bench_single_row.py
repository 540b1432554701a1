"""One row at a time: Fastfood against a dense matrix-vector product, in time and memory."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.gaussian_rows import check_features, draw_rows, fastfood
from benchmarks.timing import best_times, heading
from kernelmill import get_num_threads
from kernelmill.projections import HadamardProjection

SIZES = [(1024, 16384), (4096, 32768), (8192, 65536)]


def dense_features(W: NDArray[Any], phases: NDArray[Any], x: NDArray[Any]) -> NDArray[Any]:
    """Map one row by numpy, which has BLAS multiply and its own cosine."""
    z: NDArray[Any] = W @ x
    z += phases
    np.cos(z, out=z)
    z *= np.float32(np.sqrt(2 / len(W)))
    return z


def main() -> None:
    """Time rows of increasing length, on one thread and on all."""
    heading("one row, float32, cos(Wx + b): us, and ratios of numpy's dense product to Fastfood")
    print("   d  frequencies threads  numpy  Fastfood      time    dense MB  Fastfood MB    memory")
    for d, n in SIZES:
        X = draw_rows(8, d)
        features = fastfood(X, n, features="cos_phase")
        check_features(features, X)
        assert isinstance(features.projection_, HadamardProjection)
        coefficients = features.projection_.factors(np.float32).nbytes
        rng = np.random.default_rng(0)
        W = rng.standard_normal((n, d), dtype=np.float32)
        W /= np.float32(np.sqrt(d))
        phases = rng.uniform(0, 2 * np.pi, n).astype(np.float32)
        some = slice(0, n, n // 5)
        expected = np.sqrt(2 / n) * np.cos(W[some].astype(float) @ X[0] + phases[some])
        np.testing.assert_allclose(dense_features(W, phases, X[0])[some], expected, atol=1e-6)
        for threads in sorted({1, get_num_threads()}):
            with threadpool_limits(threads):
                t = best_times(
                    {
                        "numpy": partial(dense_features, W, phases, X[0]),
                        "fastfood": partial(features.transform, X[:1]),
                    },
                    rounds=11,
                )
            print(
                f"{d:4d} {n:12d} {threads:7d} {t['numpy'] * 1e6:7.0f} {t['fastfood'] * 1e6:8.1f} "
                f"{t['numpy'] / t['fastfood']:9.1f}x {W.nbytes / 1e6:10.1f} "
                f"{coefficients / 1e6:12.3f} {W.nbytes / coefficients:9.0f}x"
            )
        del W


if __name__ == "__main__":
    main()
