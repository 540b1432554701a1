"""Feature maps on batches: against RBFSampler, each other, the other dtype and their options."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.kernel_approximation import RBFSampler

from benchmarks.gaussian_rows import check_features, draw_rows, fastfood, random_fourier
from benchmarks.timing import best_times, heading
from kernelmill import Fastfood, GaussianTemplates, RandomFourier, TaylorSketch

# (columns of the input, columns of the output)
SIZES = [(64, 8192), (784, 8192), (1024, 32768), (4096, 65536), (10, 1000), (16, 4096), (32, 4096)]
MOST_OUTPUT_BYTES = 128 << 20
MOST_FLOPS = 8e10  # of a dense product: about a second
# Outputs of more than 32 MiB are new pages in every call, whatever was allocated before.
OPTION_ROWS = 4096
CROSSOVER_DIMENSIONS = [1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 256]


def batch_size(d: int, n_columns: int) -> int:
    """Choose a number of rows that fits into memory and a second."""
    rows = min(MOST_OUTPUT_BYTES / (4 * n_columns), MOST_FLOPS / (2 * d * n_columns))
    return max(8, int(rows) // 8 * 8)


def against_rbf_sampler() -> None:
    """Time transform on all threads, with the allocation of its output."""
    heading("transform, float32, all threads: us per row, and ratios to RBFSampler")
    print(
        "    d columns    rows  RBFSampler  RandomFourier  Fastfood"
        "  RBFSampler / RandomFourier  / Fastfood"
    )
    for d, n_columns in SIZES:
        X = draw_rows(batch_size(d, n_columns), d)
        maps = {
            "sampler": RBFSampler(n_components=n_columns, gamma=0.5 / d, random_state=0).fit(X),
            "fourier": random_fourier(X, n_columns),
            "fastfood": fastfood(X, n_columns),
        }
        for features in maps.values():
            check_features(features, X)
            assert features.transform(X[:2]).dtype == np.float32
        calls = {name: partial(features.transform, X) for name, features in maps.items()}
        t = best_times(calls, rounds=7)
        us = {name: seconds / len(X) * 1e6 for name, seconds in t.items()}
        print(
            f"{d:5d} {n_columns:7d} {len(X):7d} {us['sampler']:11.2f} {us['fourier']:14.2f} "
            f"{us['fastfood']:9.2f} {us['sampler'] / us['fourier']:26.2f}x "
            f"{us['sampler'] / us['fastfood']:10.2f}x"
        )


def dtypes() -> None:
    """Time Fastfood in both dtypes."""
    heading("Fastfood 784 -> 8192, all threads: us per row")
    n = 2000
    calls = {}
    for dtype in (np.float32, np.float64):
        X = draw_rows(n, 784, dtype)
        features = fastfood(X, 8192)
        check_features(features, X)
        calls[np.dtype(dtype).name] = partial(features.transform, X)
    t = best_times(calls)
    for name, seconds in t.items():
        print(f"{name} {seconds / n * 1e6:8.2f}  {seconds / t['float32']:5.2f}x float32")


def crossover() -> None:
    """Find the dimension from which Fastfood is the faster map."""
    heading("RandomFourier against Fastfood, 4096 columns, float32, all threads: us per row")
    print("   d  RandomFourier  Fastfood  RandomFourier / Fastfood")
    ratios = {}
    for d in CROSSOVER_DIMENSIONS:
        X = draw_rows(4096, d)
        fitted: list[Fastfood | RandomFourier] = [random_fourier(X, 4096), fastfood(X, 4096)]
        maps = dict(zip(("fourier", "fastfood"), fitted, strict=True))
        for features in maps.values():
            check_features(features, X)
        t = best_times({name: partial(maps[name].transform, X) for name in maps})
        ratios[d] = t["fourier"] / t["fastfood"]
        us = {name: seconds / len(X) * 1e6 for name, seconds in t.items()}
        print(f"{d:4d} {us['fourier']:14.2f} {us['fastfood']:9.2f} {ratios[d]:24.2f}x")
    slower = [d for d in CROSSOVER_DIMENSIONS if ratios[d] < 1]
    above = [d for d in CROSSOVER_DIMENSIONS if d > max(slower, default=0)]
    print(
        f"Fastfood is the faster one from d = {above[0] if above else 'beyond these'} on"
        + (f" (slower up to {slower[-1]})" if slower else "")
    )


def options() -> None:
    """Time what the parameters choose from."""
    heading("784 -> 4096, float32, all threads: us per row, and ms to fit")
    X = draw_rows(OPTION_ROWS, 784)
    makers: dict[str, Callable[[], Any]] = {
        "Fastfood hadamard, stratified": partial(fastfood, X, 4096),
        "Fastfood hadamard, independent": partial(fastfood, X, 4096, blocks="independent"),
        "Fastfood sorf": partial(fastfood, X, 4096, structure="sorf"),
        "Fastfood dct, stratified": partial(fastfood, X, 4096, structure="dct"),
        "Fastfood dct, independent": partial(
            fastfood, X, 4096, structure="dct", blocks="independent"
        ),
        "Fastfood fft": partial(fastfood, X, 4096, structure="fft"),
        "RandomFourier iid": partial(random_fourier, X, 4096),
        "RandomFourier orthogonal": partial(random_fourier, X, 4096, sampling="orthogonal"),
        "RandomFourier qmc": partial(random_fourier, X, 4096, sampling="qmc"),
        "RandomFourier, store_matrix=False": partial(random_fourier, X, 4096, store_matrix=False),
    }
    calls, fits = {}, {}
    for name, make in makers.items():
        start = time.perf_counter()
        features = make()
        fits[name] = time.perf_counter() - start
        check_features(features, X)
        calls[name] = partial(features.transform, X)
    for name, seconds in best_times(calls, rounds=7).items():
        print(f"{name:36s} {seconds / len(X) * 1e6:8.2f} {fits[name] * 1e3:8.1f}")


def sparse() -> None:
    """Time CSR input against the same rows as a dense array."""
    heading("784 -> 4096, float32, all threads, 10 % of X not zero: us per row")
    print("                   dense      CSR  CSR / dense")
    X = draw_rows(OPTION_ROWS, 784)
    X *= np.random.default_rng(1).random(X.shape) < 0.1
    for make in (fastfood, random_fourier):
        features = make(X, 4096)
        csr = scipy.sparse.csr_array(X)
        check_features(features, csr)
        np.testing.assert_allclose(features.transform(csr), features.transform(X), atol=1e-5)
        t = best_times(
            {"dense": partial(features.transform, X), "csr": partial(features.transform, csr)}
        )
        us = {name: seconds / len(X) * 1e6 for name, seconds in t.items()}
        name = type(features).__name__
        print(f"{name:14s} {us['dense']:9.2f} {us['csr']:8.2f} {us['csr'] / us['dense']:11.2f}x")


def column_scales() -> None:
    """Time maps with a length scale for each column against those with one number."""
    heading("784 -> 4096, float32, one thread: a length scale per column / one for all, times")
    print("                         128 rows  one row  CSR, 10 % not zero")
    X = draw_rows(128, 784)  # few: a call ends before the machine does something else
    csr = scipy.sparse.csr_array(X * (np.random.default_rng(1).random(X.shape) < 0.1))
    scale = np.sqrt(784)
    scales = np.exp(np.random.default_rng(2).normal(size=784) / 2)
    scales *= scale * np.sqrt(np.mean(scales**-2.0))  # the same distances on average
    makers: dict[str, Callable[..., Any]] = {
        "Fastfood hadamard": Fastfood,
        "Fastfood sorf": partial(Fastfood, structure="sorf"),
        "RandomFourier": RandomFourier,
        "TaylorSketch": TaylorSketch,
        "GaussianTemplates": GaussianTemplates,
    }
    for name, make in makers.items():
        fixed = {"n_components": 4096, "random_state": 0, "n_threads": 1}
        one, many = (make(length_scale=each, **fixed).fit(X) for each in (scale, scales))
        scaled = X * (scale / scales).astype(np.float32)
        expected = make(length_scale=scale, **fixed).fit(scaled).transform(scaled[:6])
        np.testing.assert_allclose(many.transform(X[:6]), expected, atol=1e-3 * expected.max())
        ratios = []
        for rows in (X, X[:1], csr):
            calls = {"one": partial(one.transform, rows), "many": partial(many.transform, rows)}
            t = best_times(calls, rounds=201, shortest=5e-4)
            ratios.append(t["many"] / t["one"])
        print("{:22s} {:9.2f}x {:7.2f}x {:18.2f}x".format(name, *ratios))


def main() -> None:
    """Run all tables."""
    against_rbf_sampler()
    dtypes()
    crossover()
    options()
    sparse()
    column_scales()


if __name__ == "__main__":
    main()
