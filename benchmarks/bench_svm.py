"""KernelClassifier compared with scikit-learn's kernel SVM on all digits of MNIST, by CPU time.

SVC has one thread, so CPU times are compared; set OMP_NUM_THREADS=1 for the same in kernelmill. SVC
takes five to ten minutes on all pixels, and one minute on the principal components of
PrincipalFourier. Its results are stored in build/svm.json; delete the file to measure them again.
``python -m benchmarks.bench_svm exact`` measures only SVC.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.svm import SVC

from benchmarks.bench_mnist import EXACT, LENGTH_SCALE, N_PRINCIPAL, machine
from benchmarks.mnist import NOT_FOUND, Mnist, load_mnist
from benchmarks.timing import at_least, heading, load
from kernelmill import get_num_threads
from kernelmill.maps.principal_fourier import principal_directions

RESULT = Path("build/svm.json")
# Features, principal components (0: all pixels), epochs, seeds; the intended ratio of times and
# error in percent.
FITS = [
    (8192, N_PRINCIPAL, 3, 3, 80, 1.80),
    (8192, 0, 3, 3, 80, 1.80),
    (65536, N_PRINCIPAL, 4, 1, 5, 1.35),
]


def measure_exact(data: Mnist) -> dict[str, dict[str, Any]]:
    """Fit the SVM to pixels and to principal components, predict, and store times and errors."""
    P = principal_directions(data.X, N_PRINCIPAL).T.astype(np.float32)
    results = {
        "all pixels": _measure_svm(data.X, data.y, data.X_test, data.y_test),
        f"{N_PRINCIPAL} components": _measure_svm(data.X @ P, data.y, data.X_test @ P, data.y_test),
    }
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(results))
    return results


def _measure_svm(X: Any, y: Any, X_test: Any, y_test: Any) -> dict[str, Any]:
    exact = SVC(**EXACT)
    start, cpu = time.perf_counter(), time.process_time()
    exact.fit(X, y)
    fitted = {"fit": time.perf_counter() - start, "cpu": time.process_time() - cpu}
    cpu = time.process_time()
    error = float((exact.predict(X_test) != y_test).mean())
    return {**fitted, "predict_cpu": time.process_time() - cpu, "error": error, **EXACT}


def compare(data: Mnist, results: dict[str, dict[str, Any]]) -> None:
    """Fit ours and print the ratios to the SVM on all pixels, and on the components."""
    heading(f"MNIST, SVC{EXACT} and KernelClassifier, {get_num_threads()} threads; {load()}")
    for name, each in results.items():
        print(
            f"SVC, {name}: error {100 * each['error']:.2f} %, fit {each['cpu']:.1f} s of CPU time "
            f"({each['fit']:.1f} s), predict {each['predict_cpu']:.2f} s of CPU time"
        )
    exact, reduced = results.values()
    for n_components, directions, epochs, seeds, ratio, worst in FITS:
        if n_components > 8192 and not at_least("usual"):
            continue
        options = {"directions": directions, "epochs": epochs}
        times, errors, predictions = [], [], []
        for seed in range(seeds):
            model = machine(n_components, LENGTH_SCALE, random_state=seed, **options)
            start, cpu = time.perf_counter(), time.process_time()
            model.fit(data.X, data.y)
            times.append((time.process_time() - cpu, time.perf_counter() - start))
            errors.append(100 * float((model.predict(data.X_test) != data.y_test).mean()))
            cpu = time.process_time()
            model.predict(data.X_test)
            predictions.append(time.process_time() - cpu)
        best = min(times)
        found, mean = exact["cpu"] / best[0], float(np.mean(errors))
        predicted = exact["predict_cpu"] / min(predictions)
        print(
            f"{n_components} features of {directions or 784}, {epochs} epochs: error {mean:.2f} % "
            f"({min(errors):.2f} to {max(errors):.2f}, {seeds} seeds; aim {worst:.2f} %: "
            f"{_met(mean <= worst)}), fit {best[0]:.1f} s of CPU time ({best[1]:.1f} s), "
            f"{found:.1f}x faster than SVC on pixels (aim {ratio}x: {_met(found >= ratio)}) and "
            f"{reduced['cpu'] / best[0]:.1f}x than on components; predict {predicted:.0f}x faster",
            flush=True,
        )


def _met(is_met: bool) -> str:
    return "met" if is_met else "MISSED"


def main() -> None:
    """Measure the SVM if there are no results of it, and compare."""
    data = load_mnist()
    if data is None:
        print(NOT_FOUND)
        return
    if not RESULT.is_file() and not at_least("usual"):
        print("The SVM was left out: KERNELMILL_BENCH=short.")
        return
    exact = json.loads(RESULT.read_text()) if RESULT.is_file() else measure_exact(data)
    if sys.argv[-1] != "exact":
        compare(data, exact)


if __name__ == "__main__":
    main()
