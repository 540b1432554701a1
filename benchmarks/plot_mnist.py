"""The plot of the README: test error on MNIST against the time of the fit.

`KernelClassifier` with increasing numbers of features, of principal components and of all pixels,
scikit-learn's pipeline of `RBFSampler` and `SGDClassifier`, its linear and its kernel support
vector machine, each on all 60,000 digits. Times are CPU times of one thread. Measure
(some 15 minutes) and draw:

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.plot_mnist measure
    python -m benchmarks.plot_mnist draw
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

from benchmarks.bench_mnist import ALPHA, EXACT, LENGTH_SCALE, N_PRINCIPAL, machine
from benchmarks.mnist import NOT_FOUND, Mnist, load_mnist

FIGURES = Path(__file__).resolve().parents[1] / "docs" / "figures"
NUMBERS, PLOT = FIGURES / "mnist.json", FIGURES / "mnist.svg"
OURS, PIPELINE = "KernelClassifier(PrincipalFourier)", "RBFSampler + SGDClassifier"
ALL_PIXELS = "KernelClassifier(Fastfood)"
KERNEL_SVM, LINEAR_SVM = "SVC, exact kernel", "LinearSVC"
GAMMA = 0.5 / LENGTH_SCALE**2


def models() -> list[tuple[str, int | None, Any]]:
    """Return the models to fit, each with its name and number of features, fast ones first."""
    ours = [
        (name, n_components, machine(n_components, directions=directions, random_state=0))
        for name, directions in ((OURS, N_PRINCIPAL), (ALL_PIXELS, 0))
        for n_components in (256, 1024, 4096, 8192, 16384)
    ]
    peers = [
        (
            PIPELINE,
            n_components,
            make_pipeline(
                RBFSampler(gamma=GAMMA, n_components=n_components, random_state=0),
                SGDClassifier(alpha=ALPHA, random_state=0),
            ),
        )
        for n_components in (256, 1024, 4096)
    ]
    exact = [
        (LINEAR_SVM, None, LinearSVC(C=0.1, dual=False, random_state=0)),
        (KERNEL_SVM, None, SVC(**EXACT)),
    ]
    return [*ours, *peers, *exact]


def measure(data: Mnist) -> None:
    """Fit every model once, print its error and CPU time and write all of them to a file."""
    machine(64, epochs=1).fit(data.X[:200], data.y[:200])  # Loads libraries and starts threads.
    results = []
    for name, n_components, model in models():
        start = time.process_time()
        model.fit(data.X, data.y)
        seconds = time.process_time() - start
        error = float((model.predict(data.X_test) != data.y_test).mean())
        print(f"{name:28} {n_components or '':6} {error:7.2%} {seconds:8.1f} s", flush=True)
        results.append(
            {
                "model": name,
                "n_components": n_components,
                "error": round(error, 6),
                "cpu_seconds": round(seconds, 2),
            }
        )
    NUMBERS.write_text(json.dumps(results, indent=1) + "\n")


def draw() -> None:
    """Plot the numbers that `measure` wrote."""
    results = json.loads(NUMBERS.read_text())
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    styles = {OURS: ("tab:blue", "o-"), ALL_PIXELS: ("tab:cyan", "v-")}
    styles |= {PIPELINE: ("tab:orange", "s-")}
    styles |= {LINEAR_SVM: ("tab:grey", "D"), KERNEL_SVM: ("black", "*")}
    for name, (color, style) in styles.items():
        points = [result for result in results if result["model"] == name]
        seconds = [point["cpu_seconds"] for point in points]
        errors = [100 * point["error"] for point in points]
        axes.plot(seconds, errors, style, color=color, label=name, markersize=8)
        for point, x, y in zip(points, seconds, errors, strict=True):
            text = f"{point['n_components']:,} features" if point["n_components"] else ""
            axes.annotate(text, (x, y), (6, 4), textcoords="offset points", fontsize="x-small")
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="CPU time of the fit, seconds",
        ylabel="test error, %",
        title="MNIST: 60,000 training images, 10,000 test images",
    )
    axes.set_xticks(seconds := [1, 2, 5, 10, 20, 50, 100, 200], labels=map(str, seconds))
    axes.set_yticks(percents := [1.2, 1.5, 2, 3, 5, 8, 12], labels=map(str, percents))
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=3, fontsize="small")
    figure.savefig(PLOT, metadata={"Date": None})
    print(f"Wrote {PLOT}")


def main(action: str) -> None:
    """Measure or draw."""
    if action == "draw":
        draw()
        return
    data = load_mnist()
    if data is None:
        sys.exit(NOT_FOUND)
    measure(data)


if __name__ == "__main__":
    if sys.argv[1:] not in (["measure"], ["draw"]):
        sys.exit("Usage: python -m benchmarks.plot_mnist measure|draw")
    main(sys.argv[1])
