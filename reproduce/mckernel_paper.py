"""The experiments of Curtó et al. (2017), McKernel: Walsh-Hadamard transform, MNIST by SGD."""

# ruff: noqa: PLC0415 # scikit-learn's estimators are imported when an experiment runs
from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.fft
from numpy.typing import NDArray
from scipy.linalg import hadamard

from kernelmill.kernels import BallConvolution
from kernelmill.learners import KernelClassifier
from kernelmill.maps import Fastfood
from kernelmill.transforms import fwht
from reproduce.claims import claim_ratio, claim_rows, claim_slope
from reproduce.data_sets import load_data
from reproduce.declaration import Cell, Column, Experiment, Paper, Scale
from reproduce.measuring import (
    geometric,
    half_width_of_share,
    run_seeds,
    time_rounds,
)

__all__ = ["MCKERNEL_EXPERIMENTS"]

PAPER = Paper(
    "mckernel",
    "Curtó et al. (2017)",
    "McKernel: A Library for Approximate Kernel Expansions in Log-linear Time",
    "A fast Walsh-Hadamard transform, and logistic regression on Fastfood features of the ball "
    "convolution kernel, trained by plain stochastic gradient descent, beside logistic regression "
    "on pixels.",
)

# Figure 1: the Walsh-Hadamard transform ----------------------------------------------------------


def radix_2(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the Walsh-Hadamard transform as a loop over butterflies in NumPy.

    Examples
    --------
    >>> import numpy as np
    >>> from reproduce.mckernel_paper import radix_2
    >>> radix_2(np.array([1.0, 2.0, 3.0, 4.0]))
    array([10., -2., -4.,  0.])
    """
    out, half = x.copy(), 1
    while half < len(out):
        pairs = out.reshape(-1, 2, half)
        first = pairs[:, 0] + pairs[:, 1]
        pairs[:, 1] = pairs[:, 0] - pairs[:, 1]
        pairs[:, 0] = first
        half *= 2
    return out


_LARGEST_MATRIX = 2048


def _measure_figure_1(_: str, scale: Scale, seed: int) -> Iterator[Cell]:
    rng = np.random.default_rng(seed)
    for n in geometric(2**6, scale.choose(2**22, 2**16, 2**8), scale.choose(2, 4, 4)):
        x = rng.standard_normal(n).astype(np.float32)
        np.testing.assert_allclose(fwht(x), radix_2(x), atol=1e-4 * n)
        calls: dict[str, Any] = {
            "fwht": partial(fwht, x, n_threads=1),
            "NumPy butterflies": partial(radix_2, x),
            "scipy.fft.rfft": partial(scipy.fft.rfft, x, workers=1),
        }
        if n <= _LARGEST_MATRIX:
            calls["matrix product"] = partial(np.dot, hadamard(n).astype(np.float32), x)
        for name, times in time_rounds(calls, rounds=scale.choose(15, 9, 2)).items():
            yield Cell(float(n), name, tuple(1e6 * each for each in times))


FIGURE_1 = Experiment(
    name="mckernel-figure-1",
    paper=PAPER,
    place="Figure 1",
    title="Walsh-Hadamard transform against its length",
    settings="One vector in float32, one thread. The paper compares with Spiral, which is not at "
    "hand as a package; the peers here are butterflies in NumPy, SciPy's Fourier transform of real "
    "numbers, and the matrix product. The transforms are compared before they are timed.",
    row="length",
    columns=(
        Column("fwht", "µs", better=""),
        *(
            Column(name, "µs", better="", ours=False)
            for name in ("NumPy butterflies", "scipy.fft.rfft", "matrix product")
        ),
    ),
    parts={"vectors": ()},
    measure=_measure_figure_1,
    value="time",
    log_y=True,
    claims=(
        claim_ratio(
            "The transform is at least twice as fast as its peer (Spiral there, SciPy's Fourier "
            "transform here).",
            "scipy.fft.rfft",
            "fwht",
            at_least=2.0,
        ),
        claim_slope("It takes O(n log n) (here: exponent up to 1.2).", "fwht", 0.3, 1.2),
    ),
)

# Figures 2 and 3: MNIST --------------------------------------------------------------------------

_BLOCK = 1024  # 784 pixels, padded to a power of two
_FIGURES = {"Figure 2": (32_768, 8192), "Figure 3": (60_000, 10_000)}


def _measure_mnist(figure: str, part: str, scale: Scale, seed: int) -> Iterator[Cell]:
    from sklearn.preprocessing import FunctionTransformer

    n_paper, n_test_paper = _FIGURES[figure]
    rows = load_data("mnist")
    n_training = min(rows.n_training, scale.choose(n_paper, n_paper // 40, 100))
    n_test = min(rows.n_test, scale.choose(n_test_paper, 2000, 50))
    epochs = scale.choose(20, 4, 1)
    deviation = ""
    if scale is not Scale.FULL:
        deviation = f"{n_training:,} of {n_paper:,} training rows, {epochs} of 20 epochs"
    test = slice(rows.n_training, rows.n_training + n_test)
    X_test, y_test = rows.X[test], rows.y[test]
    expansions = scale.choose([1, 2, 4, 8], [1, 2, 4], [1, 4])
    accuracies: dict[int, list[float]] = {}
    for run in run_seeds(seed, scale.choose(1, 3, 2)):
        order = np.random.default_rng(run).permutation(rows.n_training)[:n_training]
        X, y = rows.X[order], rows.y[order]
        settings: dict[str, Any] = {"solver": "plain_sgd", "epochs": epochs, "batch_size": 10}
        settings |= {"alpha": 1e-9, "random_state": run}
        for number in expansions if part == "MRBF" else expansions[:1]:
            if part == "MRBF":
                columns = 2 * _BLOCK * number if scale is not Scale.TEST else 64 * number
                feature_map: Any = Fastfood(
                    BallConvolution(40),
                    length_scale=1.0,
                    n_components=columns,
                    random_state=run,
                    blocks="independent",
                )
                machine = KernelClassifier(feature_map, learning_rate=0.001, **settings)
            else:
                # Steps of plain descent are for features of the size of cosines and sines.
                size = 2 * float(np.mean((X * X).sum(axis=1))) / X.shape[1]
                machine = KernelClassifier(
                    FunctionTransformer(), learning_rate=0.01 * size, **settings
                )
            share = float(np.mean(machine.fit(X, y).predict(X_test) == y_test))
            accuracies.setdefault(number, []).append(100 * share)
    for number in expansions:
        runs = tuple(accuracies[number if part == "MRBF" else expansions[0]])
        half = None if len(runs) > 1 else 100 * half_width_of_share(runs[0] / 100, n_test)
        yield Cell(float(number), part, runs, half, deviation)


def _declare_mnist(figure: str, title: str) -> Experiment:
    n_training, n_test = _FIGURES[figure]
    return Experiment(
        name=f"mckernel-{figure.lower().replace(' ', '-')}",
        paper=PAPER,
        place=figure,
        title=title,
        settings=f"{n_training:,} training and {n_test:,} test images, pixels in [0, 1]. MRBF: "
        "softmax regression on Fastfood features of the ball convolution kernel with σ = 1 and "
        "t = 40, 1,024 cosines and as many sines for each expansion; LR: on pixels. Plain "
        "stochastic gradient descent with batches of 10 for 20 epochs, at learning rates 0.001 "
        "(MRBF) and 0.01 (LR). One run, whose interval is that of an error on the test images; up "
        "to eight expansions. The paper draws curves without numbers. It calls Figure 2 "
        "full-batch; its caption has batches of 10, like that of Figure 3.",
        row="kernel expansions",
        columns=(Column("MRBF", "%", "higher"), Column("LR", "%", "higher")),
        parts=dict.fromkeys(("LR", "MRBF"), ("mnist",)),
        measure=partial(_measure_mnist, figure),
        value="accuracy on test rows",
        claims=(
            claim_ratio("MRBF is more accurate than LR.", "MRBF", "LR", at_least=1.0),
            claim_rows(
                "More expansions are more accurate (here: four against one).",
                "MRBF",
                4.0,
                1.0,
                at_least=1.0,
            ),
        ),
    )


FIGURE_2 = _declare_mnist("Figure 2", "MNIST: powers of two of training and test rows")
FIGURE_3 = _declare_mnist("Figure 3", "MNIST: all rows in mini-batches")

MCKERNEL_EXPERIMENTS = (FIGURE_1, FIGURE_2, FIGURE_3)
