"""Cost of learners by number of rows: ten times the rows, ten times the time, the same memory."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.peak_memory import Task, measure_in_process
from benchmarks.timing import at_least, best_times, heading, load
from kernelmill import Fastfood, KernelClassifier, KernelRegressor
from kernelmill.stats import two_sample_test

COLUMNS, FEATURES, CLASSES = 64, 1024, 5
TURNS = 2


def few_and_many() -> tuple[int, int]:
    """Return the two numbers of rows."""
    return (20_000, 200_000) if at_least("usual") else (2_000, 20_000)


def draw_rows(n: int, seed: int = 0) -> NDArray[np.float32]:
    """Draw n rows of unit variance."""
    return np.random.default_rng(seed).standard_normal((n, COLUMNS), dtype=np.float32)


def labels_of(X: NDArray[np.float32]) -> NDArray[np.intp]:
    """Return classes: the largest of the first columns squared."""
    return np.asarray(np.argmax(X[:, :CLASSES] ** 2, axis=1))


def targets_of(X: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return a smooth function of the rows."""
    return np.asarray(np.sin(X[:, 0]) + X[:, 1] * X[:, 2], np.float64)


def feature_map() -> Fastfood:
    """Return the map of all learners here."""
    return Fastfood(n_components=FEATURES, length_scale=COLUMNS**0.5, random_state=0)


def classifier() -> KernelClassifier:
    """Return a classifier with the same number of epochs for any number of rows."""
    return KernelClassifier(feature_map(), epochs=2, random_state=0)


def regressor() -> KernelRegressor:
    """Return an exact regressor."""
    return KernelRegressor(feature_map(), alpha=1.0, solver="exact", random_state=0)


def task(name: str, n: int) -> Callable[[], Any]:
    """Draw the data of a task and fit its model; the returned call is measured."""
    X = draw_rows(n)
    if name == "classifier, fit":
        return partial(classifier().fit, X, labels_of(X))
    if name == "regressor, fit":
        return partial(regressor().fit, X, targets_of(X))
    if name == "two_sample_test":
        return partial(two_sample_test, X, draw_rows(n, 1), feature_map=feature_map())
    some = draw_rows(3000, 2)
    if name.startswith("classifier"):
        model: Any = classifier().fit(some, labels_of(some))
        if name == "classifier, transform and product":
            return partial(kept_features, model, X)
        return partial(getattr(model, name.partition(", ")[2]), X)
    model = regressor().fit(some, targets_of(some))
    return partial(model.predict, X, return_std=name.endswith("return_std"))


def kept_features(model: Any, X: NDArray[np.float32]) -> NDArray[Any]:
    """Score rows with features of all of them in memory, as a pipeline does."""
    Z = model.feature_map_.transform(X)
    return np.asarray(Z @ model.coef_.T + model.intercept_)


def prepare(name: str, n: int) -> Task:
    """Run a small task, which loads libraries and starts threads, and prepare the task."""
    task(name, 1000)()
    call = task(name, n)

    def run() -> dict[str, Any]:
        call()
        return {}

    return run


def growth() -> None:
    """Measure each task with few rows and with many."""
    few, many = few_and_many()
    heading(f"{few} and {many} rows of {COLUMNS}, {FEATURES} features; {load()}")
    print("                          time, us a row            CPU, us a row           memory, MB")
    print("                           few    many  ratio     few    many  ratio       few    many")
    for name in (
        "classifier, fit",
        "classifier, predict",
        "classifier, predict_proba",
        "regressor, fit",
        "regressor, predict",
        "regressor, return_std",
        "two_sample_test",
    ):
        turns = [[measure_in_process(prepare, name, n) for n in (few, many)] for _ in range(TURNS)]
        t = [min(turn[i].seconds for turn in turns) for i in (0, 1)]
        cpu = [min(turn[i].cpu_seconds for turn in turns) for i in (0, 1)]
        peaks = [max(turn[i].megabytes for turn in turns) for i in (0, 1)]
        print(
            f"{name:25s} {t[0] / few * 1e6:7.2f} {t[1] / many * 1e6:7.2f} {t[1] / t[0]:5.1f}x "
            f"{cpu[0] / few * 1e6:7.2f} {cpu[1] / many * 1e6:7.2f} {cpu[1] / cpu[0]:5.1f}x "
            f"{peaks[0]:9.1f} {peaks[1]:7.1f}",
            flush=True,
        )
        # Results and row orders have a few numbers for each row; features would have a thousand.
        allowed = 8 * 8 * many / 1e6 + 20
        assert peaks[1] - peaks[0] < allowed, f"The memory of {name!r} grows with the rows."


def compare_fused_prediction() -> None:
    """Compare prediction without an array of features with transform and a product."""
    _, n = few_and_many()
    heading(f"decision_function of {n} rows, {FEATURES} features; {load()}")
    names = ["classifier, decision_function", "classifier, transform and product"]
    calls = {name: task(name, n) for name in names}
    scores = [call() for call in calls.values()]
    # A sum of D products of numbers below 1 / sqrt(D / 2) and the weights, in two orders.
    largest = float(np.abs(scores[1]).max())
    np.testing.assert_allclose(scores[0], scores[1], rtol=0, atol=FEATURES * 1e-7 * largest)
    del scores
    t = best_times(calls, rounds=5)
    for name in names:
        peak = measure_in_process(prepare, name, n).megabytes
        print(
            f"{name:36s} {t[name] / n * 1e6:7.2f} us a row {t[name] / t[names[1]]:6.2f}x "
            f"{peak:8.1f} MB beyond the data"
        )


def main() -> None:
    """Run all tables."""
    growth()
    compare_fused_prediction()


if __name__ == "__main__":
    main()
