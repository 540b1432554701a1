"""Errors of TaylorSketch and of Fastfood, for the Gaussian kernel at many length scales.

Both maps with 1024 columns, on normal data in 5, 20 and 100 dimensions and on scikit-learn's
digits. The errors depend on R, the typical distance of the data from their mean in length scales.
Prints the errors, which takes half a minute, and plots them:

    python examples/taylor_or_fastfood.py [plot.svg]
"""

import sys
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from kernelmill import Fastfood, TaylorSketch

N_COMPONENTS = 1024
N_ROWS = 500
RADII = [0.2, 0.3, 0.45, 0.7, 1.0, 1.4, 2.0, 3.0]
SEEDS = range(5)


def data_sets() -> dict[str, NDArray[np.float64]]:
    """The data sets."""
    rng = np.random.default_rng(0)
    sets = {f"normal, d = {dim}": rng.standard_normal((N_ROWS, dim)) for dim in (5, 20, 100)}
    digits = load_digits().data[rng.permutation(1797)[:N_ROWS]]
    return {**sets, "digits, d = 64": digits}


def errors(features: Any, X: NDArray[np.float64]) -> tuple[float, float]:
    """Root mean square errors: of all pairs, and of every row with its nearest neighbour."""
    squares, near_squares = [], []
    for seed in SEEDS:
        Z = features.set_params(random_state=seed).fit_transform(X)
        exact = features.exact_kernel(X)
        deviations = np.square(Z @ Z.T - exact)
        pairs = ~np.eye(len(X), dtype=bool)
        nearest = np.where(pairs, exact, -1).argmax(axis=1)
        squares.append(deviations[pairs].mean())
        near_squares.append(deviations[np.arange(len(X)), nearest].mean())
    return float(np.sqrt(np.mean(squares))), float(np.sqrt(np.mean(near_squares)))


def measure(X: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """Errors of both maps, of shape (radii, 2)."""
    radius = np.sqrt(X.var(axis=0).sum())
    result: dict[str, list[tuple[float, float]]] = {"TaylorSketch": [], "Fastfood": []}
    for ratio in RADII:
        length_scale = radius / ratio
        maps = {
            "TaylorSketch": TaylorSketch(N_COMPONENTS, length_scale=length_scale),
            "Fastfood": Fastfood(n_components=N_COMPONENTS, length_scale=length_scale),
        }
        for name, features in maps.items():
            result[name].append(errors(features, X))
    return {name: np.array(values) for name, values in result.items()}


def draw(results: dict[str, dict[str, NDArray[np.float64]]], path: str) -> None:
    """Plot the errors against R, a panel for each data set."""
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    panels = figure.subplots(1, len(results), sharey=True)
    colours = {"TaylorSketch": "tab:blue", "Fastfood": "tab:orange"}
    for axes, (title, result) in zip(panels, results.items(), strict=True):
        for name, values in result.items():
            for column, style in enumerate(("-", "--")):
                label = name if column == 0 else f"{name}, nearest neighbours"
                axes.plot(RADII, values[:, column], style, color=colours[name], label=label)
        axes.set(xscale="log", yscale="log", title=title, xlabel="R: distance from the mean / l")
        axes.set_xticks([0.2, 0.5, 1, 2, 3], labels=["0.2", "0.5", "1", "2", "3"])
        axes.minorticks_off()
        axes.set_ylim(1e-6, 1)
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("root mean square error")
    panels[0].legend(fontsize="x-small")
    figure.savefig(path)
    print(f"Drawn to {path}")


def main() -> None:
    """Print all errors, then draw them."""
    results = {}
    print("Root mean square errors, all pairs / nearest neighbours\n")
    print(f"{'data':18} {'R':>5}  {'TaylorSketch':>20} {'Fastfood':>20}   ratio")
    for title, X in data_sets().items():
        results[title] = result = measure(X)
        for i, radius in enumerate(RADII):
            taylor, fastfood = result["TaylorSketch"][i], result["Fastfood"][i]
            cells = [f"{a:9.1e} / {b:8.1e}" for a, b in (taylor, fastfood)]
            ratios = " / ".join(f"{ratio:.2f}" for ratio in taylor / fastfood)
            print(f"{title:18} {radius:5.2f}  {cells[0]:>20} {cells[1]:>20}   {ratios}")
    draw(results, sys.argv[1] if len(sys.argv) > 1 else "taylor_or_fastfood.svg")


if __name__ == "__main__":
    main()
