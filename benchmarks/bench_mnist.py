"""MNIST by linear models on random features, and scikit-learn's pipelines on a part of the rows.

$KERNELMILL_BENCH: "short" leaves out the largest maps, "full" repeats the fits with more seeds. The
kernel SVM on all rows is in bench_svm.py.
"""

import time
from functools import partial
from typing import Any

import numpy as np
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

from benchmarks.mnist import NOT_FOUND, Mnist, load_mnist
from benchmarks.peak_memory import Measured, Task, measure_in_process
from benchmarks.timing import at_least, heading, load, time_once
from kernelmill import Fastfood, KernelClassifier, PrincipalFourier

EXACT = {"C": 100, "gamma": 0.02}  # Length scale 5.
LENGTH_SCALE, ALPHA = 6.0, 1e-6
LARGE_LENGTH_SCALE = 5.0  # For all pixels and 16384 or more features.
N_PRINCIPAL = 64  # Number of principal components.
PEER_ROWS, PEER_FEATURES = 10_000, 2048
MAX_ERROR = 0.03  # A larger error with 8192 features indicates a defect.
WORST_PEER_ERROR = 0.1


def machine(n_components: int, length_scale: float = LENGTH_SCALE, **options: Any) -> Any:
    """Return a classifier on SORF features of all pixels, or of some principal components."""
    directions = options.pop("directions", 0)
    common: dict[str, Any] = {"n_components": n_components, "length_scale": length_scale}
    features: Any = Fastfood(structure="sorf", **common)
    if directions:
        features = PrincipalFourier(directions=directions, **common)
    return KernelClassifier(features, **{"loss": "squared_hinge", "alpha": ALPHA, **options})


def prepare_fit(n_components: int, length_scale: float, options: dict[str, Any]) -> Task:
    """Load the digits; the task fits and predicts, and times both."""
    data = load_mnist()
    assert data is not None
    machine(64, epochs=1).fit(data.X[:200], data.y[:200])  # Loads libraries and starts threads.

    def fit_and_predict() -> dict[str, Any]:
        model = machine(n_components, length_scale, **options)
        seconds, cpu = time_once(lambda: model.fit(data.X, data.y))
        wrong = model.predict(data.X_test) != data.y_test
        error = float(wrong.mean())
        return {"fit": seconds, "cpu": cpu, "error": error, "epochs": model.n_iter_}

    return fit_and_predict


def fit_of(n_components: int, length_scale: float, seeds: int, **options: Any) -> list[Measured]:
    """Fit with some seeds, each in its own process, and print a line."""
    runs = [
        measure_in_process(
            prepare_fit, n_components, length_scale, {**options, "random_state": seed}
        )
        for seed in range(seeds)
    ]
    errors = [100 * run.result["error"] for run in runs]
    name = options.get("solver", "") or options.get("loss", "squared_hinge")
    columns = options.get("directions", 0) or 784
    print(
        f"{n_components:8d} {columns:5d}  {name:13s} {length_scale:6.1f} "
        f"{runs[0].result['epochs']:6d}  "
        f"{np.mean(errors):5.2f} ({min(errors):.2f}-{max(errors):.2f}, {seeds})"
        f"{smallest(runs, 'fit'):9.1f} {smallest(runs, 'cpu'):8.1f} "
        f"{max(run.megabytes for run in runs):9.0f}"
    )
    if options.get("solver") != "plain_sgd":
        assert max(errors) < 100 * MAX_ERROR, (
            f"{max(errors):.2f} % of the digits were misclassified."
        )
    return runs


def fits() -> None:
    """Fit on all digits."""
    heading(f"MNIST, 60000 x 784 float32: all pixels, or {N_PRINCIPAL} components; {load()}")
    print(
        "features  from  loss          length epochs  error, % (range, seeds)  fit, s   CPU, s  "
        "peak, MB"
    )
    more = 3 if at_least("full") else 1
    few = {"directions": N_PRINCIPAL}
    fit_of(2048, LENGTH_SCALE, more, **few)
    fit_of(8192, LENGTH_SCALE, 3 if at_least("usual") else 1, epochs=3, **few)
    fit_of(8192, LENGTH_SCALE, more, loss="log_loss", alpha=1e-7, **few)
    fit_of(8192, LENGTH_SCALE, 3 if at_least("usual") else 1)
    fit_of(8192, LENGTH_SCALE, more, epochs=10)
    fit_of(8192, LENGTH_SCALE, more, loss="log_loss", alpha=1e-7)
    fit_of(8192, LENGTH_SCALE, 1, loss="log_loss", solver="plain_sgd", epochs=3, alpha=0.0)
    fit_of(16384, LARGE_LENGTH_SCALE, more, epochs=6)
    if at_least("usual"):
        fit_of(32768, LARGE_LENGTH_SCALE, more, epochs=6)
        fit_of(65536, LENGTH_SCALE, more, **few)
    print("error: mean over the seeds; fit: the fastest; peak: resident memory beyond the data")


def smallest(runs: list[Measured], key: str) -> float:
    """Return the smallest value of some runs."""
    return min(float(run.result[key]) for run in runs)


def peers(data: Mnist) -> None:
    """Compare pipelines of scikit-learn on a part of the rows; on all they take too long."""
    heading(f"{PEER_ROWS} rows, {PEER_FEATURES} features: fit and predict 10000 rows; {load()}")
    X, y = data.X[:PEER_ROWS], data.y[:PEER_ROWS]
    gamma = 0.5 / LENGTH_SCALE**2
    sampler = RBFSampler(gamma=gamma, n_components=PEER_FEATURES, random_state=0)
    nystroem = Nystroem(gamma=gamma, n_components=PEER_FEATURES, random_state=0)
    contenders = {
        "KernelClassifier, squared_hinge": machine(PEER_FEATURES, random_state=0),
        "KernelClassifier, log_loss": machine(PEER_FEATURES, loss="log_loss", random_state=0),
        "RBFSampler + SGDClassifier": make_pipeline(
            sampler, SGDClassifier(alpha=ALPHA, random_state=0)
        ),
        "RBFSampler + LinearSVC": make_pipeline(
            sampler, LinearSVC(C=1 / (ALPHA * PEER_ROWS), tol=1e-2, dual=False)
        ),
        "RBFSampler + LogisticRegression": make_pipeline(
            sampler, LogisticRegression(C=1 / (ALPHA * PEER_ROWS), max_iter=200)
        ),
        "Nystroem + LinearSVC": make_pipeline(nystroem, LinearSVC(C=10, tol=1e-2, dual=False)),
        "SVC": SVC(**EXACT),
    }
    print("                                  error, %    fit, s  predict, s   fit / first")
    first = 0.0
    for name, model in contenders.items():
        fit_seconds, _ = time_once(partial(model.fit, X, y))
        start = time.perf_counter()
        error = float((model.predict(data.X_test) != data.y_test).mean())
        seconds = time.perf_counter() - start
        first = first or fit_seconds
        print(
            f"{name:34s} {100 * error:7.2f} {fit_seconds:9.2f} {seconds:11.3f} "
            f"{fit_seconds / first:12.1f}x",
            flush=True,
        )
        assert error < WORST_PEER_ERROR, f"{name} misclassified {100 * error:.2f} %."


def main() -> None:
    """Run all tables."""
    data = load_mnist()
    if data is None:
        print(NOT_FOUND)
        return
    fits()
    peers(data)


if __name__ == "__main__":
    main()
