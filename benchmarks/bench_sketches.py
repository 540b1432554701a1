"""Tensor and count sketches compared with scikit-learn, SciPy and Random Maclaurin features."""

from collections.abc import Callable
from functools import partial
from math import comb
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.polynomial.polynomial import polyval
from numpy.typing import NDArray
from scipy.linalg import clarkson_woodruff_transform
from sklearn.base import BaseEstimator, clone
from sklearn.kernel_approximation import PolynomialCountSketch
from sklearn.random_projection import SparseRandomProjection

from benchmarks.adult import adult_rows
from benchmarks.peak_memory import Task, measure_in_process
from benchmarks.timing import best_times, heading
from kernelmill import (
    CountSketch,
    DotProductFastfood,
    RandomMaclaurin,
    TensorSketch,
    get_num_threads,
)
from kernelmill.kernels import Polynomial

SEEDS = (1, 2, 3, 4)  # In addition to the seed of the map.


def unit_rows(n: int, d: int) -> NDArray[np.float32]:
    """Draw n rows of length 1 in float32, with nonnegative entries so that kernels are not 0."""
    X = np.abs(np.random.default_rng(0).standard_normal((n, d), dtype=np.float32))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X


def standard_errors(
    X: NDArray[Any], degree: int, coef0: float, n_columns: int
) -> NDArray[np.float64]:
    """Return standard errors of estimates of (<x, y> + coef0) ** degree, independent hashing."""
    U = np.hstack([X, np.full((len(X), 1), np.sqrt(coef0))]).astype(np.float64)
    a = (U @ U.T) ** 2
    s = U**2 @ (U**2).T
    b = np.outer(np.diag(U @ U.T), np.diag(U @ U.T)) - s
    terms = [
        comb(degree, m) * a ** (degree - m) * (b**m + (a - s) ** m) for m in range(1, degree + 1)
    ]
    return np.asarray(np.sqrt(np.maximum(sum(terms), 0) / n_columns))


def check_polynomial(features: Any, X: Any, degree: int, coef0: float = 0.0) -> None:
    """Assert that features of some rows, first and last ones, estimate the kernel.

    Errors are compared with those of a Tensor Sketch with independent hashing.
    """

    def expected(rows: NDArray[Any], n_columns: int) -> NDArray[np.float64]:
        return standard_errors(rows, degree, coef0, n_columns)

    check_estimates(features, X, lambda products: (products + coef0) ** degree, expected)


def check_estimates(
    features: Any,
    X: Any,
    kernel: Callable[[NDArray[Any]], NDArray[Any]],
    expected: Callable[[NDArray[Any], int], NDArray[Any]],
) -> None:
    """Assert that errors are not above 3 times the expected ones, for most of 5 seeds.

    The seed of `features` is one of them. Products of random signs have heavy tails: at degree 6,
    some draws in a hundred are more than 6 standard errors off, in every library. But the mean
    square of errors in units of standard errors is 1 on average, so that it is above 9 in at most
    one draw of 9, whatever the tails are. At high degrees and few columns it is a weak check.
    """
    some = X[[0, 1, 2, -3, -2, -1]]
    rows = np.asarray(some.toarray() if scipy.sparse.issparse(some) else some, np.float64)
    exact = kernel(rows @ rows.T)
    errors: list[float] = []
    for seed in (features.random_state, *SEEDS):
        other = clone(features).set_params(random_state=seed).fit(X[:8])
        Z = np.asarray((other if errors else features).transform(some), np.float64)
        scores = (Z @ Z.T - exact) / expected(rows, Z.shape[1])
        errors.append(float(np.sqrt((scores**2).mean())))
    assert np.median(errors) < 3, f"{features}: errors of {errors} standard errors"


# Numbers of columns: powers of two, a product of small primes, a large prime.
LENGTHS = {4096: "2^12", 5000: "2^3 5^4", 5003: "prime", 8192: "2^13"}
GOAL = "goal 40x, aim 80x"
LONG_DEGREE, LONG_DIM, LONG_ROWS = 4, 5000, 400


def tensor_sketch(X: Any, degree: int, n_columns: int, **options: Any) -> TensorSketch:
    """Fit TensorSketch and check its answers."""
    made: TensorSketch = TensorSketch(
        degree, n_components=n_columns, random_state=0, **options
    ).fit(X[:2])
    check_polynomial(made, X, degree)
    assert made.transform(X[:2]).dtype == np.float32
    return made


def peer(X: Any, degree: int, n_columns: int) -> Any:
    """Fit scikit-learn's tensor sketch and check its answers."""
    made = PolynomialCountSketch(degree=degree, n_components=n_columns, random_state=0).fit(X[:2])
    check_polynomial(made, X, degree)
    return made


def print_ratio(task: str, ours: float, theirs: float, n: int, goal: str = "") -> None:
    """Print microseconds per row of both, and their ratio."""
    print(
        f"{task:44s} {ours / n * 1e6:9.2f} {theirs / n * 1e6:12.2f} {theirs / ours:9.1f}x  {goal}"
    )


def against_polynomial_count_sketch() -> None:
    """Time transform on all threads, with the allocation of its output."""
    heading(
        "TensorSketch against PolynomialCountSketch, float32 given, "
        f"{get_num_threads()} threads: us a row"
    )
    print(f"{'task':44s} {'kernelmill':>9s} {'scikit-learn':>12s} {'ratio':>9s}")
    for task, X, degree, n_columns, goal in [
        ("dense, 784 -> 4096, p = 2, 1000 rows", unit_rows(1000, 784), 2, 4096, GOAL),
        ("dense, 784 -> 4096, p = 2, 4000 rows", unit_rows(4000, 784), 2, 4096, GOAL),
        ("dense, 64 -> 100, p = 2 (the default size)", unit_rows(20000, 64), 2, 100, ""),
        ("dense, 5000 -> 5000, p = 4", unit_rows(LONG_ROWS, LONG_DIM), 4, 5000, ""),
    ]:
        maps = {"ours": tensor_sketch(X, degree, n_columns), "theirs": peer(X, degree, n_columns)}
        out = np.empty((len(X), n_columns), np.float32)
        t = best_times(
            {
                **{name: partial(made.transform, X) for name, made in maps.items()},
                "fill": partial(out.fill, 1),
                "new": partial(np.full, out.shape, 1, np.float32),
            },
            rounds=5,
        )
        print_ratio(task, t["ours"], t["theirs"], len(X), goal)
        for name, seconds in (("out.fill(1)", t["fill"]), ("a new array of ones", t["new"])):
            us = seconds / len(X) * 1e6
            print(f"  {name:42s} {us:9.2f} {'':12s} {t['ours'] / seconds:9.1f}x this time for ours")
        one = best_times({name: partial(made.transform, X[:1]) for name, made in maps.items()})
        print_ratio("  a single row", one["ours"], one["theirs"], 1)


def sparse() -> None:
    """Time CSR rows against the peer and against the same rows as a dense array."""
    X, source = adult_rows()
    X = X[:16000]
    heading(f"TensorSketch of CSR rows, 123 -> 1024, p = 3, float32, {source}: us per row")
    print(f"{'task':44s} {'kernelmill':>9s} {'scikit-learn':>12s} {'ratio':>9s}")
    dense = X.toarray()
    ours, theirs = tensor_sketch(X, 3, 1024), peer(X, 3, 1024)
    np.testing.assert_allclose(ours.transform(X[:99]), ours.transform(dense[:99]), atol=1e-5)
    out = np.empty((X.shape[0], 1024), np.float32)
    # 2000 rows are enough for the peer: its time is proportional to the rows, and 16000 of them
    # take a gigabyte.
    t = best_times(
        {
            "csr": partial(ours.transform, X),
            "dense": partial(ours.transform, dense),
            "theirs, csr": partial(theirs.transform, X[:2000]),
            "theirs, dense": partial(theirs.transform, dense[:2000]),
            "fill": partial(out.fill, 1),
        },
        rounds=5,
    )
    n, part = X.shape[0], X.shape[0] / 2000
    print_ratio("CSR", t["csr"], t["theirs, csr"] * part, n, "goal 40x")
    print_ratio("dense", t["dense"], t["theirs, dense"] * part, n)
    print(f"CSR takes {t['csr'] / t['dense']:.2f} of the time of dense rows", end=", ")
    print(f"{t['csr'] / t['fill']:.1f} of that of out.fill(1)")


def lengths() -> None:
    """Time lengths of the output that are powers of two and others."""
    heading(f"TensorSketch, p = {LONG_DEGREE}, {LONG_DIM} columns, float32, all threads")
    print("    D            us a row  ns a column  / that of 8192")
    X = unit_rows(LONG_ROWS, LONG_DIM)
    maps = {D: tensor_sketch(X, LONG_DEGREE, D) for D in LENGTHS}
    t = best_times({str(D): partial(made.transform, X) for D, made in maps.items()}, rounds=7)
    per_column = {D: t[str(D)] / len(X) / D for D in LENGTHS}
    for D, factors in LENGTHS.items():
        print(
            f"{D:5d} = {factors:8s} {per_column[D] * D * 1e6:9.2f} {per_column[D] * 1e9:12.2f} "
            f"{per_column[D] / per_column[8192]:13.2f}x"
        )


def prepare_transform(name: str, n_columns: int, n: int) -> Task:
    """Fit a sketch of degree 4 by its name; the task is to transform."""
    X = unit_rows(n, LONG_DIM)
    kind: Any = {"ours": TensorSketch, "theirs": PolynomialCountSketch}[name]
    features = kind(degree=LONG_DEGREE, n_components=n_columns, random_state=0).fit(X[:8])
    check_polynomial(features, X, LONG_DEGREE)
    return lambda: {"output": features.transform(X).nbytes / 1e6}


def memory() -> None:
    """Measure the peak resident memory in separate processes (Linux)."""
    heading("memory of transform beyond its output, 5000 -> D, p = 4, float32 given: MB")
    print("map                        D  rows  output  beyond it")
    # Freed arrays must not stay resident, or their memory would be used again.
    for name, D, n in [
        ("ours", 5000, 500),
        ("ours", 5000, 4000),
        ("ours", 4096, 4000),
        ("ours", 5003, 4000),
        ("ours", 8192, 4000),
        ("theirs", 5000, 500),
    ]:
        measured = measure_in_process(
            prepare_transform, name, D, n, environment={"MALLOC_MMAP_THRESHOLD_": "65536"}
        )
        output = measured.result["output"]
        title = {"ours": "TensorSketch", "theirs": "PolynomialCountSketch"}[name]
        print(f"{title:22s} {D:5d} {n:5d} {output:7.1f} {measured.megabytes - output:10.1f}")


class ClarksonWoodruff(BaseEstimator):  # type: ignore[misc] # scikit-learn is untyped
    """scipy's count sketch of columns, given the transpose; it draws its hashes in every call."""

    def __init__(self, n_components: int, random_state: int = 0) -> None:
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: Any) -> Self:
        """Do nothing."""
        return self

    def transform(self, X: Any) -> Any:
        """Return the sketches of the rows of X."""
        sketch = clarkson_woodruff_transform(X.T, self.n_components, self.random_state).T
        return sketch.toarray() if scipy.sparse.issparse(sketch) else sketch


def count_sketches() -> None:
    """Time random projections of degree 1."""
    heading("CountSketch beside other sparse projections, float32 given, all threads: us per row")
    print(
        "    d     D  rows of    kernelmill  clarkson_woodruff  SparseRandomProjection"
        "  out.fill     ratios"
    )
    for d, D, density in [
        (784, 256, 1.0),
        (2000, 1000, 1.0),
        (10000, 1000, 1.0),
        (10000, 1000, 0.01),
    ]:
        X: Any = unit_rows(2000, d)
        if density < 1:
            X *= np.random.default_rng(1).random(X.shape, dtype=np.float32) < density
            X = scipy.sparse.csr_matrix(X)
        ours = CountSketch(D, random_state=0).fit(X[:2])
        woodruff = ClarksonWoodruff(D)
        sparse_signs = SparseRandomProjection(D, dense_output=True, random_state=0).fit(X[:2])
        # Signs with a density of 1 / sqrt(d) have less error than a count sketch.
        for made in (ours, woodruff, sparse_signs):
            check_polynomial(made, X, 1)
        out = np.empty((X.shape[0], D), np.float32)
        t = best_times(
            {
                "ours": partial(ours.transform, X),
                "woodruff": partial(woodruff.transform, X),
                "signs": partial(sparse_signs.transform, X),
                "fill": partial(out.fill, 1),
            },
            rounds=5,
        )
        us = {name: seconds / X.shape[0] * 1e6 for name, seconds in t.items()}
        print(
            f"{d:5d} {D:5d}  {'dense' if density == 1 else 'CSR 1 %':9s} {us['ours']:11.2f} "
            f"{us['woodruff']:18.2f} {us['signs']:23.2f} {us['fill']:9.2f} "
            f"{us['woodruff'] / us['ours']:9.1f}x {us['signs'] / us['ours']:7.1f}x"
        )


def bench_sketches() -> None:
    """Compare sketches with those of scikit-learn and SciPy."""
    against_polynomial_count_sketch()
    sparse()
    lengths()
    memory()
    count_sketches()


FIGURE_KERNEL = Polynomial(4, coef0=1.0)
FIGURE_COLUMNS = [500, 1000, 2000, 3000, 4000]
FIGURE_SQUARES = [512, 1024, 2048, 4096]
MAX_PRODUCTS = 1.2e10  # Multiplications of RandomMaclaurin in a call, about a second.


def figure_maps(X: Any, n_columns: int) -> dict[str, Any]:
    """Fit the maps of the figure."""
    maps = {
        "sketch": TensorSketch(4, coef0=1.0, n_components=n_columns, random_state=0),
        "geometric": RandomMaclaurin(
            FIGURE_KERNEL, degrees="geometric", n_components=n_columns, random_state=0
        ),
        "proportional": RandomMaclaurin(FIGURE_KERNEL, n_components=n_columns, random_state=0),
        "fastfood": DotProductFastfood(FIGURE_KERNEL, n_components=n_columns, random_state=0),
    }
    for features in maps.values():
        features.fit(X[:8])
    check_polynomial(maps["sketch"], X, 4, 1.0)
    for name in ("geometric", "proportional", "fastfood"):
        check_series(maps[name], X)
    return maps


def check_series(features: Any, X: Any) -> None:
    """Assert that the features of some rows estimate the kernel.

    A column of degree n contributes a_n / p_n, where p_n is the probability of n, times a product
    of n factors with the second moment |x|^2 |y|^2 + 2 <x, y>^2 - 2 sum x_i^2 y_i^2 each. Errors of
    DotProductFastfood were measured to be about those of proportional degrees.
    """
    a = FIGURE_KERNEL.coefficients(5)
    geometric = getattr(features, "degrees", None) == "geometric"
    shares = 0.5 ** np.arange(5) if geometric else a
    weights = a**2 / shares * shares.sum()

    def expected(rows: NDArray[Any], n_columns: int) -> NDArray[Any]:
        squares = rows**2
        lengths = squares.sum(axis=1)
        moment = np.outer(lengths, lengths) + 2 * (rows @ rows.T) ** 2 - 2 * squares @ squares.T
        return np.asarray(np.sqrt(polyval(moment, weights) / n_columns))

    check_estimates(features, X, lambda products: (products + 1) ** 4, expected)


def time_figure(sizes: list[tuple[int, int]]) -> list[dict[str, float]]:
    """Time the maps of the figure for (d, D): a table of us a row, and its lines."""
    print("                    us a row                              / TensorSketch")
    print("   d     D  rows        TS      RM geo     RM prop   DPF    RM geo  RM prop      DPF")
    lines = []
    for d, n_columns in sizes:
        n = int(np.clip(MAX_PRODUCTS / (2 * d * n_columns), 100, 2000))
        X = unit_rows(n, d)
        maps = figure_maps(X, n_columns)
        calls = {name: partial(made.transform, X) for name, made in maps.items()}
        us = {name: t / n * 1e6 for name, t in best_times(calls, rounds=5).items()}
        lines.append(us)
        print(
            f"{d:4d} {n_columns:5d} {n:5d} {us['sketch']:9.2f} {us['geometric']:11.2f} "
            f"{us['proportional']:11.2f} {us['fastfood']:5.2f} "
            f"{us['geometric'] / us['sketch']:8.1f}x {us['proportional'] / us['sketch']:7.1f}x "
            f"{us['fastfood'] / us['sketch']:7.2f}x"
        )
    return lines


def bench_sketch_costs() -> None:
    """Time maps as in figure 2 of Pham & Pagh (2013), kernel (1 + <x, y>)^4.

    TS is TensorSketch, RM RandomMaclaurin with geometric and proportional degrees; DPF,
    DotProductFastfood, is not in the paper.
    """
    heading("(1 + <x, y>)^4, float32, all threads: us per row, as D grows")
    small = time_figure([(123, D) for D in FIGURE_COLUMNS])
    large = time_figure([(780, D) for D in FIGURE_COLUMNS])
    print(f"d = 780 takes, of the time of d = 123, at D = {FIGURE_COLUMNS}:")
    for name, title in {
        "sketch": "TensorSketch",
        "geometric": "RandomMaclaurin, geometric",
        "proportional": "RandomMaclaurin, proportional",
        "fastfood": "DotProductFastfood",
    }.items():
        ratios = [more[name] / less[name] for less, more in zip(small, large, strict=True)]
        print(f"  {title:30s}", " ".join(f"{ratio:6.2f}x" for ratio in ratios))
    heading("(1 + <x, y>)^4, float32, all threads: us per row, as d = D grows")
    time_figure([(size, size) for size in FIGURE_SQUARES])
