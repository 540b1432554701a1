"""Feature maps compared with RBFSampler, dense products and the cost of writing their output."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.kernel_approximation import RBFSampler
from threadpoolctl import threadpool_limits

from benchmarks.peak_memory import Task, measure_in_process
from benchmarks.timing import best_times, heading
from kernelmill import Fastfood, GaussianTemplates, RandomFourier, TaylorSketch, get_num_threads
from kernelmill.kernels import Gaussian
from kernelmill.projections import HadamardProjection
from kernelmill.projections.base import FeatureLayout


def draw_rows(n: int, d: int, dtype: Any = np.float32) -> NDArray[Any]:
    """Draw n normal rows; at length scale sqrt(d) two of them have a kernel of about 1 / e."""
    return np.random.default_rng(0).standard_normal((n, d), dtype=np.float32).astype(dtype)


def fit_map(kind: type[Any], X: Any, n_components: int, **options: Any) -> Any:
    """Fit a map of kernelmill with length scale sqrt(d)."""
    length_scale = float(np.sqrt(X.shape[1]))
    made = kind(n_components=n_components, length_scale=length_scale, random_state=0, **options)
    return made.fit(X[:2])


def fastfood(X: Any, n_components: int, **options: Any) -> Fastfood:
    """Fit Fastfood to rows of `draw_rows`."""
    made: Fastfood = fit_map(Fastfood, X, n_components, **options)
    return made


def random_fourier(X: Any, n_components: int, **options: Any) -> RandomFourier:
    """Fit RandomFourier to rows of `draw_rows`."""
    made: RandomFourier = fit_map(RandomFourier, X, n_components, **options)
    return made


def check_features(features: Any, X: Any) -> None:
    """Assert that the features of some rows, first and last ones, estimate the kernel."""
    rows = X[[0, 1, 2, -3, -2, -1]]
    if scipy.sparse.issparse(rows):
        rows = rows.toarray()
    Z = features.transform(rows).astype(np.float64)
    exact = Gaussian()(rows, length_scale=float(np.sqrt(X.shape[1])))
    error = np.abs(Z @ Z.T - exact).max()
    assert error < 6 / np.sqrt(Z.shape[1]), f"{features}: error {error:.3f}"


# (columns of the input, columns of the output)
SIZES = [(64, 8192), (784, 8192), (1024, 32768), (4096, 65536), (10, 1000), (16, 4096), (32, 4096)]
MAX_OUTPUT_BYTES = 128 << 20
MAX_FLOPS = 8e10  # Of a dense product, about a second.
# Outputs of more than 32 MiB are new pages in every call, whatever was allocated before.
OPTION_ROWS = 4096
CROSSOVER_DIMENSIONS = [1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 256]


def batch_size(d: int, n_columns: int) -> int:
    """Choose a number of rows that fits into memory and a second."""
    rows = min(MAX_OUTPUT_BYTES / (4 * n_columns), MAX_FLOPS / (2 * d * n_columns))
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
    """Time the constructions that the parameters select."""
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
    X = draw_rows(128, 784)  # Few rows, so that other programs rarely interrupt a call.
    csr = scipy.sparse.csr_array(X * (np.random.default_rng(1).random(X.shape) < 0.1))
    scale = np.sqrt(784)
    scales = np.exp(np.random.default_rng(2).normal(size=784) / 2)
    scales *= scale * np.sqrt(np.mean(scales**-2.0))  # Keeps the mean squared distance.
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


def bench_maps() -> None:
    """Run the tables of batches."""
    against_rbf_sampler()
    dtypes()
    crossover()
    options()
    sparse()
    column_scales()


LAYOUT = FeatureLayout("cos_sin", 8192)


def allocate_and_fill(shape: tuple[int, int]) -> NDArray[Any]:
    """Fill a new array, including its page faults."""
    out = np.empty(shape, np.float32)
    out.fill(1)
    return out


def writing() -> None:
    """Time Fastfood compared with writing the same number of bytes."""
    n = 2000
    heading(f"Fastfood, {n} x 784 -> 8192, float32, beside writing the output: us per row")
    print("threads  task                             us a row  / out.fill  / empty + fill")
    X = draw_rows(n, 784)
    out = np.empty((n, LAYOUT.n_columns), np.float32)
    for threads in sorted({1, get_num_threads()}):
        features = fastfood(X, LAYOUT.n_columns, n_threads=threads)
        check_features(features, X)
        features.projection_.features(X, LAYOUT, None, out, threads)
        np.testing.assert_array_equal(out[-3:], features.transform(X[-3:]))
        parts = np.array_split(out, threads)
        with ThreadPoolExecutor(threads) as pool:

            def fill_together(
                pool: ThreadPoolExecutor = pool, parts: list[NDArray[Any]] = parts
            ) -> None:
                list(pool.map(lambda part: part.fill(1), parts))

            t = best_times(
                {
                    "out.fill(1), one thread": partial(out.fill, 1),
                    "out.fill(1), parts on each thread": fill_together,
                    "np.empty and fill, one thread": partial(allocate_and_fill, out.shape),
                    "projection_.features into out": partial(
                        features.projection_.features, X, LAYOUT, None, out, threads
                    ),
                    "transform": partial(features.transform, X),
                },
                rounds=40,  # In one of them, both cores should be idle.
            )
        for name, seconds in t.items():
            print(
                f"{threads:7d}  {name:33s} {seconds / n * 1e6:7.2f} "
                f"{seconds / t['out.fill(1), one thread']:10.2f}x "
                f"{seconds / t['np.empty and fill, one thread']:13.2f}x"
            )


def prepare_transform(kind: str, options: dict[str, Any]) -> Task:
    """Fit a map by its name; the task is to transform 20000 rows."""
    X = draw_rows(20_000, 784)
    family: Any = {"Fastfood": Fastfood, "RandomFourier": RandomFourier, "RBFSampler": RBFSampler}
    features = family[kind](n_components=4096, random_state=0, **options).fit(X[:100])
    check_features(features, X)
    return lambda: {"output": features.transform(X).nbytes / 1e6}


def memory() -> None:
    """Measure the peak resident memory in separate processes (Linux)."""
    heading("memory of transform beyond its output, 20000 x 784 -> 4096, float32: MB (output 328)")
    for kind, options in (
        ("Fastfood", {"length_scale": 28.0}),
        ("RandomFourier", {"length_scale": 28.0}),
        ("RandomFourier", {"length_scale": 28.0, "store_matrix": False}),
        ("RBFSampler", {"gamma": 0.5 / 784}),
    ):
        measured = measure_in_process(prepare_transform, kind, options)
        title = kind + ", store_matrix=False" * ("store_matrix" in options)
        print(f"{title:36s} {measured.megabytes - measured.result['output']:8.1f}")


def bench_map_limits() -> None:
    """Run the tables of time and memory for the output."""
    writing()
    memory()


ROW_SIZES = [(1024, 16384), (4096, 32768), (8192, 65536)]


def dense_features(W: NDArray[Any], phases: NDArray[Any], x: NDArray[Any]) -> NDArray[Any]:
    """Map one row with NumPy: a BLAS product and NumPy's cosine."""
    z: NDArray[Any] = W @ x
    z += phases
    np.cos(z, out=z)
    z *= np.float32(np.sqrt(2 / len(W)))
    return z


def bench_single_row() -> None:
    """Time rows of increasing length, on one thread and on all."""
    heading("one row, float32, cos(Wx + b): us, and ratios of numpy's dense product to Fastfood")
    print("   d  frequencies threads  numpy  Fastfood      time    dense MB  Fastfood MB    memory")
    for d, n in ROW_SIZES:
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
