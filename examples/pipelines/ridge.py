"""Ridge on random features: kernel ridge regression without the n x n matrix.

Friedman's function of ten columns, five of which do not matter (Friedman 1991). The linear model
misses the bends, and its residuals show them; ridge regression on Fastfood features does not, and
approaches kernel ridge regression with more features.

    python examples/pipelines/ridge.py        # 4000 rows; or give another number
"""

import sys
import time
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.datasets import make_friedman1
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from kernelmill import Fastfood

LENGTH_SCALE, ALPHA = 1.0, 0.01
COMPONENTS = (32, 64, 128, 256, 512, 1024)
PICTURE = "ridge.png"


def models() -> dict[str, Any]:
    """The linear model, the same on more and more features, and the exact kernel machine."""
    result: dict[str, Any] = {"Ridge": Ridge()}
    for n in COMPONENTS:
        features = Fastfood(length_scale=LENGTH_SCALE, n_components=n, random_state=0)
        result[f"Ridge on {n} features"] = make_pipeline(features, Ridge(alpha=ALPHA))
    gamma = 1 / (2 * LENGTH_SCALE**2)
    result["KernelRidge"] = KernelRidge(kernel="rbf", gamma=gamma, alpha=ALPHA)
    return result


def draw(
    predictions: dict[str, NDArray[Any]], errors: dict[str, float], truth: NDArray[Any]
) -> None:
    """Residuals of three models, and the error as the number of features grows."""
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    *panels, last = figure.subplots(1, 4)
    shown = ("Ridge", f"Ridge on {COMPONENTS[-1]} features", "KernelRidge")
    for axes, name in zip(panels, shown, strict=True):
        axes.scatter(truth, predictions[name] - truth, s=3, alpha=0.5, c="#0072b2", linewidths=0)
        axes.axhline(0, color="black", linewidth=0.8)
        axes.set(title=f"{name}\nerror {errors[name]:.2f}", xlabel="true value", ylim=(-8, 8))
    panels[0].set_ylabel("error of the prediction")
    on_features = [errors[f"Ridge on {n} features"] for n in COMPONENTS]
    last.plot(COMPONENTS, on_features, "o-", color="#0072b2", label="on features")
    last.axhline(errors["Ridge"], color="#d55e00", linestyle="--", label="linear")
    last.axhline(errors["KernelRidge"], color="black", linestyle=":", label="exact kernel")
    last.set(
        xscale="log",
        ylim=(0, 3.6),
        title="Root mean square error\nby number of features",
        xlabel="number of features",
    )
    last.set_xticks(COMPONENTS, labels=map(str, COMPONENTS))
    last.minorticks_off()
    last.legend(fontsize="small", loc="upper right")
    figure.savefig(PICTURE, dpi=110)
    print(f"Drawn to {PICTURE}")


def main(n_rows: int = 4000) -> None:
    """Print errors and times, then draw."""
    X, y = make_friedman1(n_rows, noise=0.5, random_state=0)
    new, truth = make_friedman1(2000, noise=0.0, random_state=1)
    mean = y.mean()  # KernelRidge has no intercept
    print(f"Friedman's function: {n_rows} noisy values to learn from, {len(new)} to predict\n")
    print(f"{'model':24s} root mean square error  seconds (fit + predict)")
    predictions, errors = {}, {}
    for name, model in models().items():
        start = time.perf_counter()
        predictions[name] = mean + model.fit(X, y - mean).predict(new)
        seconds = time.perf_counter() - start
        errors[name] = float(np.sqrt(np.mean((predictions[name] - truth) ** 2)))
        print(f"{name:24s} {errors[name]:22.2f} {seconds:8.2f}")
    draw(predictions, errors, truth)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
