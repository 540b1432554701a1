"""Errors of estimates of polynomial kernels, as in the papers: no times, tables of errors."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.adult import adult_rows
from benchmarks.timing import heading
from kernelmill import DotProductFastfood, RandomMaclaurin, TensorSketch
from kernelmill.kernels import Polynomial
from reproduce.tensor_sketch_paper import published_maclaurin

N_POINTS = 400
N_RUNS = 5
COLUMNS = [500, 1000, 1500, 2000, 2500, 3000]

# Sivertsen (2014), table 4.1: D, and the mean absolute error.
TABLE = {
    16: 8.39,
    32: 5.56,
    64: 4.99,
    128: 3.63,
    256: 2.19,
    512: 1.32,
    1024: 0.81,
    2048: 0.39,
    4096: 0.32,
    8192: 0.31,
}
TABLE_DIM = 16
TABLE_RUNS = 16
TABLE_PAIRS = 10000


Features = Callable[[Any, int, int], NDArray[Any]]  # of rows, columns and a seed


def of_map(make: Callable[..., Any]) -> Features:
    """Return the features of a transformer."""

    def features(X: Any, n_columns: int, seed: int) -> NDArray[Any]:
        Z: NDArray[Any] = make(n_components=n_columns, random_state=seed).fit_transform(X)
        return Z

    return features


def figure_maps(degree: int, coef0: float) -> dict[str, Features]:
    """Return the maps of figure 1, TS and RM, and some that Pham & Pagh do not have."""
    kernel = Polynomial(degree, coef0=coef0)
    sketch = partial(TensorSketch, degree, coef0=coef0)
    maps: dict[str, Features] = {
        "TS": of_map(sketch),
        "TS independent": of_map(partial(sketch, hashing="independent")),
        "RM of the paper": lambda X, D, seed: published_maclaurin(X, degree, coef0, D, seed),
        "RM geometric": of_map(partial(RandomMaclaurin, kernel, degrees="geometric")),
        "RM proportional": of_map(partial(RandomMaclaurin, kernel)),
    }
    maps["DP Fastfood"] = of_map(partial(DotProductFastfood, kernel))
    if coef0 > 0:
        maps["RM h01"] = of_map(partial(RandomMaclaurin, kernel, h01=True))
    return maps


def mean_relative_error(features: Features, X: Any, exact: NDArray[Any], D: int) -> float:
    """Average |estimate - k| / k over pairs of different rows with k > 0, and over runs."""
    pairs = np.triu(exact > 0, 1)
    errors = []
    for seed in range(N_RUNS):
        Z = features(X, D, seed)
        errors.append(np.mean(np.abs(Z @ Z.T - exact)[pairs] / exact[pairs]))
    return float(np.mean(errors))


def figure_1() -> None:
    """Measure relative errors as in figure 1 of Pham & Pagh (2013).

    TS is to be below the RM of the paper. RandomMaclaurin has less error than that, and where the
    kernel has a constant term it can have less than TS.
    """
    X, source = adult_rows()
    X = X[np.random.default_rng(0).choice(X.shape[0], N_POINTS, replace=False)].astype(np.float64)
    products = (X @ X.T).toarray()
    apart = int(np.triu(products == 0, 1).sum())
    heading(f"mean relative error on {source}, rows of length 1, {N_RUNS} runs")
    print(f"{N_POINTS * (N_POINTS - 1) // 2} pairs of {N_POINTS} rows, ", end="")
    print(f"{apart} of them with <x, y> = 0: left out where the kernel is 0")
    for degree in (2, 3, 4):
        for coef0 in (0.0, 1.0):
            maps = figure_maps(degree, coef0)
            exact = (products + coef0) ** degree
            base = "<x, y>" if coef0 == 0 else "(1 + <x, y>)"
            print(f"\n{base + '^' + str(degree):16s}" + "".join(f"{name:>16s}" for name in maps))
            for D in COLUMNS:
                errors = [mean_relative_error(features, X, exact, D) for features in maps.values()]
                print(f"D = {D:<12d}" + "".join(f"{error:16.4f}" for error in errors))


def table_error(D: int, hashing: str) -> tuple[float, float]:
    """Return the mean absolute error over runs, each with its own pairs, and its standard error."""
    errors = []
    for seed in range(TABLE_RUNS):
        x, y = np.random.default_rng(seed).uniform(size=(2, TABLE_PAIRS, TABLE_DIM))
        features = TensorSketch(2, n_components=D, hashing=hashing, random_state=seed).fit(x)
        estimates = np.einsum("ij,ij->i", features.transform(x), features.transform(y))
        errors.append(np.abs(estimates - np.einsum("ij,ij->i", x, y) ** 2).mean())
    return float(np.mean(errors)), float(np.std(errors, ddof=1) / np.sqrt(TABLE_RUNS))


def table_4_1() -> None:
    """Measure absolute errors as in table 4.1 of Sivertsen (2014)."""
    heading(
        f"mean absolute error of <x, y>^2, uniform in [0, 1]^{TABLE_DIM}, {TABLE_RUNS} runs of "
        f"{TABLE_PAIRS} pairs"
    )
    print("    D  published     independent  / published    collision_free  / published")
    for D, published in TABLE.items():
        print(f"{D:5d} {published:10.2f}", end="")
        for hashing in ("independent", "collision_free"):
            error, deviation = table_error(D, hashing)
            print(f"  {error:8.3f} +- {deviation:5.3f} {error / published:11.2f}x", end="")
        print()


def main() -> None:
    """Print all tables."""
    with threadpool_limits(1, user_api="blas"):  # products are small: more threads only wait
        figure_1()
        table_4_1()


if __name__ == "__main__":
    main()
