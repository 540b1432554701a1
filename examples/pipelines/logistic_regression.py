"""LogisticRegression on random features: nonlinear probabilities.

Labels are drawn from known probabilities, a wavy function of two columns, so that predicted
probabilities can be compared with the true ones. Exact kernel logistic regression for comparison:
scikit-learn's Nystroem with all rows has inner products equal to the kernel, at a cost of n³.

    python examples/pipelines/logistic_regression.py        # 1500 rows; or give another number
"""

import sys
import time
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from kernelmill import RandomFourier

LENGTH_SCALE = 0.7
PICTURE = "logistic_regression.png"


def true_probability(X: NDArray[Any]) -> NDArray[Any]:
    """The probability of label 1 at each point of the square [-2, 2]²."""
    score = 4 * np.sin(2 * X[..., 0]) * np.cos(1.5 * X[..., 1]) + X[..., 1]
    probability: NDArray[Any] = 1 / (1 + np.exp(-score))
    return probability


def draw(fitted: dict[str, tuple[Any, str]]) -> None:
    """The probabilities over the square: the true ones, then those of each model."""
    ticks = np.linspace(-2, 2, 100)
    grid = np.stack(np.meshgrid(ticks, ticks), axis=-1)
    figure = Figure(figsize=(11, 3.3), layout="constrained")
    panels = figure.subplots(1, 1 + len(fitted), sharey=True)
    panels[0].set_ylabel("column 2")
    surfaces = [("truth", true_probability(grid), "labels are drawn from it")]
    for name, (model, result) in fitted.items():
        surface = model.predict_proba(grid.reshape(-1, 2))[:, 1].reshape(grid.shape[:2])
        surfaces.append((name, surface, result))
    for axes, (name, surface, result) in zip(panels, surfaces, strict=True):
        levels = np.linspace(0, 1, 11)
        filled = axes.contourf(ticks, ticks, surface, levels, cmap="cividis")
        axes.contour(ticks, ticks, surface, [0.5], colors="white", linewidths=1.5)
        axes.set(title=f"{name}\n{result}", xlabel="column 1", aspect="equal")
    figure.colorbar(filled, ax=panels, label="P(label 1); white: 1/2", shrink=0.8)
    figure.savefig(PICTURE, dpi=110)
    print(f"Drawn to {PICTURE}")


def main(n_rows: int = 1500) -> None:
    """Print errors of the probabilities and times, then draw."""
    rng = np.random.default_rng(0)
    X, new = rng.uniform(-2, 2, (n_rows, 2)), rng.uniform(-2, 2, (4000, 2))
    y = rng.random(n_rows) < true_probability(X)
    features = RandomFourier(length_scale=LENGTH_SCALE, n_components=300, random_state=0)
    exact = Nystroem(gamma=1 / (2 * LENGTH_SCALE**2), n_components=n_rows, random_state=0)
    models = {
        "linear": LogisticRegression(),
        "on 300 features": make_pipeline(features, LogisticRegression(C=10)),
        "exact kernel": make_pipeline(exact, LogisticRegression(C=10)),
    }
    print(f"Labels drawn from known probabilities: {n_rows} points to learn from\n")
    print(f"{'LogisticRegression':20s} mean |error of the probability|  seconds (fit + predict)")
    fitted = {}
    for name, model in models.items():
        start = time.perf_counter()
        probability = model.fit(X, y).predict_proba(new)[:, 1]
        seconds = time.perf_counter() - start
        error = np.abs(probability - true_probability(new)).mean()
        print(f"{name:20s} {error:31.3f} {seconds:8.2f}")
        fitted[name] = model, f"off by {error:.3f}, {seconds:.2f} s"
    draw(fitted)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
