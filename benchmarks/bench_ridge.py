"""Exact ridge regression on streamed features against the bare product that bounds it.

The moments of n rows of D features take at least n D² multiplications, which is the BLAS routine
syrk, here on float64 features in memory.
"""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

from benchmarks.peak_memory import Task, measure_in_process
from benchmarks.timing import at_least, best_wall_and_cpu, heading, load
from kernelmill import Fastfood, KernelRegressor
from kernelmill.learners.statistics import rows_per_update

FULL_ROWS, PART_ROWS, SHORT_ROWS = 500_000, 50_000, 10_000
COLUMNS, FEATURES = 90, 4096
ALPHA, NOISE = 1.0, 0.1
SMALL_ALPHA = 1e-3  # Products are then summed in float64 (docs/decisions/030).


def draw_regression(n: int, seed: int = 0) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Draw normal rows, and a smooth function of them with noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, COLUMNS), dtype=np.float32)
    directions = np.random.default_rng(1).standard_normal((COLUMNS, 3)).astype(np.float32)
    directions /= np.linalg.norm(directions, axis=0)
    y = np.sin(X @ directions).sum(axis=1, dtype=np.float64)
    return X, y + NOISE * rng.standard_normal(n)


def regressor(n_components: int = FEATURES, alpha: float = ALPHA) -> Any:
    """Return the regressor that is timed."""
    features = Fastfood(n_components=n_components, length_scale=COLUMNS**0.5)
    return KernelRegressor(features, alpha=alpha, solver="exact", random_state=0)


def bare_syrk(chunk: NDArray[np.float64], n: int, moments: NDArray[np.float64]) -> None:
    """Add the products of n rows to the moments, using the same chunk repeatedly."""
    for begin in range(0, n, len(chunk)):
        rows = chunk[: min(len(chunk), n - begin)]
        dsyrk(1.0, rows.T, beta=1.0, c=moments, overwrite_c=1)


def check_solution() -> None:
    """Compare the weights with a direct solution from stored features."""
    X, y = draw_regression(3000)
    model = regressor(256).fit(X, y)
    Z = model.feature_map_.transform(X).astype(np.float64)
    Z -= Z.mean(axis=0)
    expected = np.linalg.solve(Z.T @ Z + ALPHA * np.eye(256), Z.T @ (y - y.mean()))
    # Both solve a system whose condition is at most (n + alpha) / alpha, features having length 1.
    tolerance = 3001 * 256 * float(np.finfo(np.float64).eps) * float(np.abs(expected).max())
    np.testing.assert_allclose(np.ravel(model.coef_), expected, rtol=0, atol=tolerance)


def against_syrk(n: int, rounds: int) -> None:
    """Time fit compared with the bare products of the same number of rows."""
    heading(f"exact ridge, {n} x {COLUMNS} float32 -> {FEATURES} features; {load()}")
    X, y = draw_regression(n)
    model = regressor()
    rng = np.random.default_rng(0)
    chunk = rng.standard_normal((rows_per_update(FEATURES), FEATURES)) / FEATURES**0.5
    moments = np.zeros((FEATURES, FEATURES), order="F")
    calls = {
        "dsyrk alone": partial(bare_syrk, chunk, n, moments),
        "fit, products in float64": partial(regressor(alpha=SMALL_ALPHA).fit, X, y),
        "fit, alpha = 1": partial(model.fit, X, y),
    }
    times = best_wall_and_cpu(calls, rounds)
    bare, bare_cpu = times["dsyrk alone"]
    work = n * FEATURES * (FEATURES + 1.0)
    for name, (seconds, cpu) in times.items():
        print(f"{name:26s} {seconds:8.2f} s {work / seconds / 1e9:8.1f} Gflop/s", end=" ")
        print(f"{seconds / bare:6.2f}x   CPU {cpu:8.2f} s {cpu / bare_cpu:6.2f}x")
    print("On a busy machine compare the CPU times, taken with OMP_NUM_THREADS=1.")
    X_test, y_test = draw_regression(2000, seed=2)
    score = model.score(X_test, y_test)
    print(f"R² on new rows {score:.4f} (at best {1 - NOISE**2 / y_test.var():.4f})")
    assert score > 0.5, "The fit explains less than half of what there is to explain."


def prepare_fit(n: int) -> Task:
    """Draw the rows; the task is to fit."""
    X, y = draw_regression(n)
    small = draw_regression(100)
    regressor(64).fit(*small)  # Loads libraries and starts threads.
    return lambda: {"intercept": float(regressor().fit(X, y).intercept_[0])}


def memory(n: int) -> None:
    """Measure the memory of a fit beyond the data."""
    heading("memory of fit beyond the data, in its own process")
    moments = 8 * FEATURES**2 / 1e6
    kept = 4 * n * FEATURES / 1e6
    measured = measure_in_process(prepare_fit, n)
    print(
        f"{n} rows: {measured.megabytes:.0f} MB; a matrix of moments takes {moments:.0f} MB, the "
        f"features of all rows would take {kept:.0f} MB"
    )
    assert measured.megabytes < 6 * moments, "More than a few matrices of moments were held."


def main() -> None:
    """Run all tables: 500,000 rows if "full", otherwise a part of them."""
    check_solution()
    if at_least("usual"):
        against_syrk(PART_ROWS, rounds=2)
        memory(PART_ROWS)
    else:
        against_syrk(SHORT_ROWS, rounds=3)
        memory(SHORT_ROWS)
    if at_least("full"):
        against_syrk(FULL_ROWS, rounds=1)


if __name__ == "__main__":
    main()
