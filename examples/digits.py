"""From a linear model to a kernel machine by one line in a pipeline.

Compares a linear model, the same model on random features, and the exact kernel machine on the
handwritten digits of scikit-learn. Then compares the speed of the features with scikit-learn's.

    python examples/digits.py
"""

import time
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import kernelmill
from kernelmill import Fastfood, KernelClassifier, RandomFourier
from kernelmill.kernels import Matern

LENGTH_SCALE = 3.0
GAMMA = 1 / (2 * LENGTH_SCALE**2)
SIZES = (128, 512, 2048, 8192)  # numbers of features
N_ROWS = 2000  # whose features are timed


def compare_models() -> None:
    """Show test errors of a linear model on pixels, on features, and of the exact kernel SVM."""
    x, y = load_digits(return_X_y=True)
    x = (x / 16).astype(np.float32)
    train, test, y_train, y_test = train_test_split(x, y, test_size=0.4, random_state=0)
    print(f"Handwritten digits: {len(train)} + {len(test)} images of 64 pixels, 10 classes\n")
    print(f"{'model':38s} {'columns':>8s} {'mean |kernel error|':>20s} test error  seconds")

    def show(name: str, features: Any, classifier: Any) -> None:
        start = time.perf_counter()
        model = make_pipeline(features, classifier).fit(train, y_train)
        error = 1 - model.score(test, y_test)
        seconds = time.perf_counter() - start
        columns, off = "", ""
        if features != "passthrough":
            z = features.transform(test)
            columns = str(z.shape[1])
            off = f"{np.abs(z @ z.T - features.exact_kernel(test)).mean():.4f}"
        print(f"{name:38s} {columns:>8s} {off:>20s} {error:10.1%} {seconds:8.2f}")

    show("linear", "passthrough", RidgeClassifier())
    linear = RidgeClassifier(alpha=0.01)
    for n in SIZES:
        features = Fastfood(n_components=n, length_scale=LENGTH_SCALE, random_state=0)
        show("linear on Fastfood", features, linear)
    features = Fastfood("gaussian", structure="sorf", n_components=2048, random_state=0)
    show('  structure="sorf"', features.set_params(length_scale=LENGTH_SCALE), linear)
    features = Fastfood(Matern(nu=2.5), n_components=2048, length_scale="median", random_state=0)
    show("  Matern(nu=2.5), median distance", features, linear)
    dense = RandomFourier(n_components=2048, gamma=GAMMA, random_state=0)
    show("linear on RandomFourier", dense, linear)
    features = Fastfood(n_components=2048, length_scale=LENGTH_SCALE, random_state=0)
    machine = KernelClassifier(features, loss="squared_hinge", random_state=0)
    show("KernelClassifier, features not stored", "passthrough", machine)
    show("exact kernel SVM", "passthrough", SVC(gamma=GAMMA, C=10))
    print(
        "\nWith a thousand rows the exact kernel machine is fast; its cost grows with their square."
    )


def compare_speed() -> None:
    """Time feature maps with the same number of columns."""
    print(f"\nFeatures of {N_ROWS} rows, float32, {kernelmill.get_num_threads()} threads\n")
    print("inputs -> columns   RBFSampler  RandomFourier     Fastfood")
    for d, n_columns in ((64, 8192), (784, 8192)):
        x = np.random.default_rng(0).standard_normal((N_ROWS, d)).astype(np.float32)

        maps = [
            map_class(n_components=n_columns, random_state=0).fit(x)
            for map_class in (RBFSampler, RandomFourier, Fastfood)
        ]
        best = [float("inf")] * 3
        for _ in range(5):
            for i, features in enumerate(maps):
                start = time.perf_counter()
                features.transform(x)
                best[i] = min(best[i], time.perf_counter() - start)
        slow, dense, fast = best
        print(
            f"{d:6d} -> {n_columns:5d}  {slow * 1e3:9.0f} ms {dense * 1e3:8.0f} ms "
            f"({slow / dense:.1f}x) {fast * 1e3:6.0f} ms ({slow / fast:.0f}x)"
        )


def main() -> None:
    """Run both comparisons."""
    compare_models()
    compare_speed()


if __name__ == "__main__":
    main()
