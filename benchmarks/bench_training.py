"""Training and prediction compared with computing the same features.

Also the products of a batch with few outputs compared with NumPy's.
"""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.mnist import load_mnist
from benchmarks.timing import at_least, best_times, best_wall_and_cpu, heading, load
from kernelmill import Fastfood, KernelClassifier
from kernelmill.learners.few_outputs import add_weighted_rows, lay_out_columns, score_rows

FEATURES, BATCH, EPOCHS, OUTPUTS = 8192, 256, 4, 10


def rows_and_labels() -> tuple[NDArray[np.float32], NDArray[Any]]:
    """Return MNIST, or random rows of its shape with ten classes."""
    data = load_mnist()
    if data is not None:
        X, y = data.X, data.y
    else:
        rng = np.random.default_rng(0)
        X = rng.random((60_000, 784), dtype=np.float32)
        y = np.argmax(X[:, :10], axis=1)
    n = len(X) if at_least("usual") else 6000
    return X[:n], y[:n]


def fit_against_features() -> None:
    """Time fit and prediction, each compared with computing the features of its batches."""
    X, y = rows_and_labels()
    heading(f"{len(X)} x {X.shape[1]} -> {FEATURES} features, {EPOCHS} epochs; {load()}")
    feature_map = Fastfood(n_components=FEATURES, length_scale=5.0, random_state=0).fit(X)
    model = KernelClassifier(feature_map, loss="squared_hinge", epochs=EPOCHS, random_state=0)
    order = np.random.default_rng(0).permutation(len(X))
    some = X[:10_000]

    def all_features() -> None:
        for _ in range(EPOCHS):
            for begin in range(0, len(X), BATCH):
                feature_map.transform(X[order[begin : begin + BATCH]])

    def features_alone() -> None:
        for begin in range(0, len(some), BATCH):
            feature_map.transform(some[begin : begin + BATCH])

    fitted = best_wall_and_cpu(
        {"features as often": all_features, "fit": partial(model.fit, X, y)}, 3
    )
    show(fitted, "features as often")
    predicted = best_wall_and_cpu(
        {"features": features_alone, "predict": partial(model.predict, some)}, 5
    )
    show(predicted, "features")


def show(times: dict[str, tuple[float, float]], limit: str) -> None:
    """Print times and their ratios to the limit."""
    for name, (seconds, cpu) in times.items():
        ratios = seconds / times[limit][0], cpu / times[limit][1]
        print(f"{name:20s} {seconds:8.3f} s {ratios[0]:5.2f}x   CPU {cpu:8.3f} s {ratios[1]:5.2f}x")


def products_of_a_batch() -> None:
    """Time the two products with few outputs compared with NumPy's, and check them."""
    heading(f"products of {BATCH} x {FEATURES} with {OUTPUTS} outputs, float32; {load()}")
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((BATCH, FEATURES), dtype=np.float32)
    weights = lay_out_columns(rng.standard_normal((FEATURES, OUTPUTS), dtype=np.float32)).T
    factors = rng.standard_normal((BATCH, OUTPUTS), dtype=np.float32)
    sums = np.zeros((OUTPUTS, FEATURES), np.float32)
    columns = np.ascontiguousarray(weights.T)
    np.testing.assert_allclose(score_rows(Z, weights), Z @ columns, rtol=0, atol=1e-2)
    t = best_times(
        {
            "scores, NumPy": partial(np.matmul, Z, columns),
            "scores": partial(score_rows, Z, weights),
            "gradient, NumPy": partial(np.matmul, Z.T, factors),
            "gradient": partial(add_weighted_rows, Z, factors, sums),
        }
    )
    for name, seconds in t.items():
        ratio = seconds / t[name if name.endswith("NumPy") else f"{name}, NumPy"]
        rate = BATCH * FEATURES * OUTPUTS / seconds / 1e9
        print(f"{name:20s} {seconds * 1e3:7.3f} ms {rate:6.1f} G multiply-adds/s {ratio:5.2f}x")


def main() -> None:
    """Run all tables."""
    products_of_a_batch()
    fit_against_features()


if __name__ == "__main__":
    main()
