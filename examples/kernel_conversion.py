"""Estimates of one kernel, converted to those of another.

Lengths turn inner products into distances and back, and so the polynomial kernel into the Gaussian.
Features of the polynomial kernel contain the lengths of the points; those of the Gaussian kernel do
not, so the lengths have to be supplied. After Sivertsen's Figures 4.8 and D.1 (2014): 16 columns,
degree 2, length scale 2, points uniform on the unit cube. Prints mean relative errors and plots
estimates against exact values.

    python examples/kernel_conversion.py [kernel_conversion.png]
"""

import sys
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from kernelmill import Fastfood, TensorSketch
from kernelmill.kernels import Gaussian, Polynomial, convert, squared_norms

N_POINTS, N_COLUMNS = 100, 16
N_COMPONENTS = 1024
LENGTH_SCALE = 2.0

Row = tuple[str, str, NDArray[np.float64], NDArray[np.float64]]


def estimates() -> list[Row]:
    """Names of maps and of the kernels they are used for, estimates, and exact values.

    The first two are what the maps are made for, the others are converted.
    """
    x = np.random.default_rng(0).random((N_POINTS, N_COLUMNS))
    lengths = (x**2).sum(axis=1)
    mean_length = np.full(N_POINTS, lengths.mean())
    gaussian, polynomial = Gaussian(), Polynomial(2)
    # As in Sivertsen (2014); collision-free hashing would be exact, with 16**2 < N_COMPONENTS.
    sketch = TensorSketch(2, n_components=N_COMPONENTS, hashing="independent", random_state=0)
    fastfood = Fastfood(n_components=N_COMPONENTS, length_scale=LENGTH_SCALE, random_state=0)
    z = sketch.fit_transform(x)
    by_sketch, found_lengths = z @ z.T, squared_norms((z * z).sum(axis=1), polynomial)
    z = fastfood.fit_transform(x)
    by_fastfood, no_lengths = z @ z.T, (z * z).sum(axis=1)

    def to_polynomial(given: NDArray[Any]) -> NDArray[np.float64]:
        return convert(
            by_fastfood, gaussian, polynomial, length_scale=LENGTH_SCALE, squared_norms_X=given
        )

    to_gaussian = convert(
        by_sketch, polynomial, gaussian, length_scale=LENGTH_SCALE, squared_norms_X=found_lengths
    )
    exact_gaussian, exact_polynomial = gaussian(x, length_scale=LENGTH_SCALE), polynomial(x)
    pairs = np.triu_indices(N_POINTS, 1)
    rows = [
        ("Fastfood", "Gaussian", by_fastfood, exact_gaussian),
        ("TensorSketch", "polynomial", by_sketch, exact_polynomial),
        ("TensorSketch, converted", "Gaussian", to_gaussian, exact_gaussian),
        ("Fastfood, converted", "polynomial", to_polynomial(no_lengths), exact_polynomial),
        ("  mean length given", "polynomial", to_polynomial(mean_length), exact_polynomial),
        ("  lengths given", "polynomial", to_polynomial(lengths), exact_polynomial),
    ]
    return [(name, kernel, found[pairs], exact[pairs]) for name, kernel, found, exact in rows]


def plot(rows: list[Row], path: str) -> None:
    """Draw estimates against exact values, one panel for each row."""
    figure = Figure(figsize=(4 * len(rows), 4.4), layout="constrained")
    for axes, (name, kernel, found, exact) in zip(
        figure.subplots(1, len(rows), squeeze=False)[0], rows, strict=True
    ):
        ends = [exact.min(), exact.max()]
        axes.plot(ends, ends, color="0.6", linewidth=1, zorder=0)
        axes.scatter(exact, found, s=2, alpha=0.3, linewidths=0, rasterized=True)
        axes.set(
            title=name.replace("  ", "Fastfood, "), xlabel=f"{kernel} kernel", ylabel="estimate"
        )
    figure.savefig(path, dpi=120)
    print(f"\nEstimates against exact values: {path}")


def main() -> None:
    """Show mean relative errors, then plot the converted estimates."""
    rows = estimates()
    print(f"{N_POINTS} points in {N_COLUMNS} dimensions, {N_COMPONENTS} features\n")
    print(f"{'features':24s} {'kernel':12s} mean relative error")
    for name, kernel, found, exact in rows:
        print(f"{name:24s} {kernel:12s} {np.mean(np.abs(found / exact - 1)):18.1%}")
    plot(rows[2:], sys.argv[1] if len(sys.argv) > 1 else "kernel_conversion.png")


if __name__ == "__main__":
    main()
