"""LinearSVC on random features: the regions of a kernel SVM at the cost of a linear SVM.

Two noisy spirals. A linear model cannot separate them; LIBLINEAR on random features of the
Gaussian kernel finds the regions of the exact kernel SVM, and its cost is linear in the number of
rows, not quadratic.

    python examples/pipelines/linear_svc.py        # 20000 rows; or give another number
"""

import sys
import time
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

from kernelmill import RandomFourier

LENGTH_SCALE = 0.5
PICTURE = "linear_svc.png"


def spirals(n: int, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Points near two spirals that wind around each other, and which spiral it is."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    angle = 3 * np.pi * np.sqrt(rng.uniform(0.02, 1, n))
    turned = angle + np.pi * y
    X = (angle / np.pi)[:, None] * np.column_stack([np.cos(turned), np.sin(turned)])
    return X + rng.normal(scale=0.3, size=X.shape), y


def models() -> dict[str, Any]:
    """A linear SVM, the same on features (RandomFourier: Fastfood pays from 32 columns on), SVC."""

    def on_features(n_components: int) -> Any:
        features = RandomFourier(
            length_scale=LENGTH_SCALE, n_components=n_components, random_state=0
        )
        return make_pipeline(features, LinearSVC(dual=False, tol=1e-2))

    return {
        "LinearSVC": LinearSVC(dual=False),
        "LinearSVC on 30 features": on_features(30),
        "LinearSVC on 200 features": on_features(200),
        "SVC, exact kernel": SVC(gamma=1 / (2 * LENGTH_SCALE**2)),
    }


def draw(fitted: dict[str, tuple[Any, str]], X: NDArray[Any], y: NDArray[Any]) -> None:
    """The regions of each model under some of the points."""
    ticks = np.linspace(-3.7, 3.7, 120)
    grid = np.stack(np.meshgrid(ticks, ticks), axis=-1)
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    panels = figure.subplots(1, len(fitted), sharey=True)
    panels[0].set_ylabel("column 2")
    for axes, (name, (model, result)) in zip(panels, fitted.items(), strict=True):
        side = model.decision_function(grid.reshape(-1, 2)).reshape(grid.shape[:2])
        axes.contourf(ticks, ticks, side, [-np.inf, 0, np.inf], colors=["#9ecae8", "#f6cf8f"])
        axes.contour(ticks, ticks, side, [0], colors="black", linewidths=0.8)
        for label, colour, marker in ((0, "#00497a", "o"), (1, "#b34700", "^")):
            axes.scatter(*X[y == label][:150].T, s=5, c=colour, marker=marker)
        axes.set(title=f"{name}\n{result}", xlabel="column 1", aspect="equal")
    figure.savefig(PICTURE, dpi=110)
    print(f"Drawn to {PICTURE}")


def main(n_rows: int = 20_000) -> None:
    """Print errors and times, then draw."""
    X, y = spirals(n_rows, seed=0)
    new, y_new = spirals(4000, seed=1)
    print(f"Two spirals: {n_rows} points to learn from, {len(new)} new ones\n")
    print(f"{'model':28s} test error  seconds (fit + predict)")
    fitted = {}
    for name, model in models().items():
        start = time.perf_counter()
        error = 1 - model.fit(X, y).score(new, y_new)
        seconds = time.perf_counter() - start
        print(f"{name:28s} {error:10.1%} {seconds:8.2f}")
        fitted[name] = model, f"error {error:.1%}, {seconds:.2f} s"
    draw(fitted, new, y_new)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
