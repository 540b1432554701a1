"""Growth of the costs of Tensor Sketch and of Random Maclaurin."""

from functools import partial
from typing import Any

import numpy as np
from numpy.polynomial.polynomial import polyval
from numpy.typing import NDArray
from scipy.optimize import nnls

from benchmarks.polynomial_rows import check_estimates, check_polynomial, unit_rows
from benchmarks.timing import best_times, heading
from kernelmill import DotProductFastfood, RandomMaclaurin, TensorSketch
from kernelmill.kernels import Polynomial

# One of n, p, d and D at a time departs from these.
USUAL = {"n": 2000, "p": 3, "d": 1000, "D": 2048}
VARIED = {
    "n": [250, 500, 1000, 2000, 4000, 8000],
    "p": [2, 3, 4, 6, 8],
    "d": [10, 100, 1000, 4000, 16000],
    "D": [128, 256, 512, 1024, 2048, 4096, 8192, 16384],
}
FIGURE_KERNEL = Polynomial(4, coef0=1.0)
FIGURE_COLUMNS = [500, 1000, 2000, 3000, 4000]
FIGURE_SQUARES = [512, 1024, 2048, 4096]
MOST_PRODUCTS = 1.2e10  # multiplications of Random Maclaurin in a call: about a second


def growth() -> None:
    """Time TensorSketch while one of the sizes varies."""
    heading("TensorSketch, float32, all threads: us per row, and that / p (d + D log2 D) in ns")
    parts, times = [], []  # of one factor of one row: d and D log2 D; ns
    for varied, values in VARIED.items():
        others = ", ".join(f"{name} = {USUAL[name]}" for name in USUAL if name != varied)
        print(f"{varied:>6s}  us a row     ns   ({others})")
        quotients = []
        for value in values:
            size = {**USUAL, varied: value}
            X = unit_rows(size["n"], size["d"])
            features = TensorSketch(size["p"], n_components=size["D"], random_state=0).fit(X[:2])
            check_polynomial(features, X, size["p"])
            seconds = best_times({"ours": partial(features.transform, X)}, rounds=7)["ours"]
            steps = size["p"] * (size["d"] + size["D"] * np.log2(size["D"]))
            quotients.append(seconds / size["n"] / steps * 1e9)
            parts.append((size["d"], size["D"] * np.log2(size["D"])))
            times.append(seconds / size["n"] / size["p"] * 1e9)
            print(f"{value:6d} {seconds / size['n'] * 1e6:9.2f} {quotients[-1]:7.4f}")
        print(f"       largest quotient / smallest: {max(quotients) / min(quotients):.2f}")
    print_fit(np.array(parts), np.array(times))


def print_fit(parts: NDArray[Any], times: NDArray[Any]) -> None:
    """Fit one constant to columns read and one to transforms, with least relative deviations.

    To read an entry and to add it to a bucket takes longer than a step of a transform, so the
    quotient by their sum cannot be the same for all d and D.
    """
    constants, _ = nnls(parts / times[:, np.newaxis], np.ones(len(times)))
    ratios = times / (parts @ constants)
    print(f"a row / p = {constants[0]:.4f} ns d + {constants[1]:.4f} ns D log2 D fits best:")
    print(f"  measured: {ratios.min():.2f} to {ratios.max():.2f} times that")


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
        n = int(np.clip(MOST_PRODUCTS / (2 * d * n_columns), 100, 2000))
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


def figure_2() -> None:
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


def main() -> None:
    """Run all tables."""
    growth()
    figure_2()


if __name__ == "__main__":
    main()
