"""GridSearchCV over `feature_map__length_scale`, the most important parameter.

Handwritten digits. With a length scale that is too short, each image is unlike all others; with one
that is too long, the model is nearly linear. In between the errors differ by a few images. The
parameter has the same name in a Pipeline and in a KernelClassifier.

    python examples/pipelines/grid_search.py        # 1797 images; or give a smaller number
"""

import sys
import time
from typing import Any

from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC

from kernelmill import Fastfood, KernelClassifier

LENGTH_SCALES = [0.5, 1, 2, 4, 8, 16]
FOLDS = 3
PICTURE = "grid_search.png"


def search(model: Any) -> GridSearchCV:
    """A search for the length scale of a model's feature map."""
    return GridSearchCV(model, {"feature_map__length_scale": LENGTH_SCALES}, cv=FOLDS)


def pipeline(n_components: int) -> Pipeline:
    """Features, then logistic regression on all of them at once."""
    return Pipeline(
        [
            ("feature_map", Fastfood(n_components=n_components, random_state=0)),
            ("classifier", LogisticRegression(C=100, max_iter=1000)),
        ]
    )


def exact_search() -> GridSearchCV:
    """The same search for the kernel SVM, over `gamma`."""
    gammas = [1 / (2 * scale**2) for scale in LENGTH_SCALES]
    return GridSearchCV(SVC(C=10), {"gamma": gammas}, cv=FOLDS)


def draw(errors: dict[str, NDArray[Any]], linear: float) -> None:
    """Errors in cross-validation by length scale, a curve for each model."""
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    styles = (("#56b4e9", "^-"), ("#0072b2", "o-"), ("#009e73", "D-"), ("black", "s:"))
    for (name, curve), (colour, style) in zip(errors.items(), styles, strict=True):
        axes.plot(LENGTH_SCALES, curve, style, color=colour, label=name)
        best = int(curve.argmin())
        axes.plot(LENGTH_SCALES[best], curve[best], style[0], color=colour, markersize=13)
    axes.axhline(linear, color="#d55e00", linestyle="--", label="linear, LogisticRegression")
    axes.set(xscale="log", yscale="log", xlabel="length scale", ylabel="error in cross-validation")
    axes.set_xticks(LENGTH_SCALES, labels=[f"{scale:g}" for scale in LENGTH_SCALES])
    axes.set_yticks([0.02, 0.05, 0.1, 0.2, 0.5], labels=["2%", "5%", "10%", "20%", "50%"])
    axes.minorticks_off()
    axes.set_title("Handwritten digits: large marks are what the search takes")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(PICTURE, dpi=110)
    print(f"Drawn to {PICTURE}")


def main(n_rows: int = 1797) -> None:
    """Print the best length scales, their errors and times; then draw."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:n_rows] / 16, y[:n_rows]
    classifier = LogisticRegression(max_iter=1000)
    linear = 1 - cross_val_score(classifier, X, y, cv=FOLDS).mean()
    many = Fastfood(n_components=512, random_state=0)
    searches = {
        "LogisticRegression on 128 features": search(pipeline(128)),
        "LogisticRegression on 512 features": search(pipeline(512)),
        "KernelClassifier, 512 features": search(KernelClassifier(many, epochs=10, random_state=0)),
        "SVC, exact kernel": exact_search(),
    }
    print(f"{len(X)} digits, {len(LENGTH_SCALES)} length scales, {FOLDS} folds\n")
    scales = "".join(f"{scale:7g}" for scale in LENGTH_SCALES)
    print(f"{'error by length scale':35s}{scales}  best  seconds (whole search)")
    errors = {}
    for name, searching in searches.items():
        start = time.perf_counter()
        searching.fit(X, y)
        seconds = time.perf_counter() - start
        errors[name] = 1 - searching.cv_results_["mean_test_score"]
        cells = "".join(f"{error:7.1%}" for error in errors[name])
        print(f"{name:35s}{cells} {LENGTH_SCALES[searching.best_index_]:5g} {seconds:8.2f}")
    print(f"{'linear, LogisticRegression':35s}{linear:7.1%}")
    draw(errors, float(linear))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
