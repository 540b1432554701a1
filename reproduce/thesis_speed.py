"""The experiments of Sivertsen (2014), sections 4.2 and 4.3, appendices A and C: speed, MNIST."""

# ruff: noqa: PLC0415 # scikit-learn's estimators are imported when an experiment runs
from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import hadamard

from kernelmill.maps import Fastfood, TensorSketch
from kernelmill.transforms import fwht
from reproduce.claims import claim_ratio, claim_rows, claim_slope
from reproduce.data_sets import load_data
from reproduce.declaration import Cell, Column, Experiment, Scale
from reproduce.measuring import (
    fit_linear_svm,
    geometric,
    half_width_of_share,
    run_seeds,
    time_rounds,
)
from reproduce.thesis_errors import PAPER

__all__ = ["THESIS_SPEED"]

# Figures 4.9 to 4.11 and C.1 to C.3: time in n, D and d ------------------------------------------

_MAPS = ("Fastfood, z", "Fastfood, z''", "Tensor Sketch")


def _compute(name: str, X: Any, n: int, seed: int) -> Any:
    """Draw a map and compute the features of all rows, as the thesis times it."""
    settings: dict[str, Any] = {"random_state": seed, "n_threads": 1}
    if name == "Tensor Sketch":
        return TensorSketch(2, n_components=n, **settings).fit_transform(X)
    if name == "Fastfood, z":
        return Fastfood(n_components=2 * n, length_scale=2.0, **settings).fit_transform(X)
    phase = Fastfood(n_components=n, features="cos_phase", length_scale=2.0, **settings)
    return phase.fit_transform(X)


def _time_maps(
    problems: Sequence[tuple[int, Callable[[], tuple[Any, int]]]], scale: Scale, seed: int
) -> Iterator[Cell]:
    """Times at each x; a problem gives rows and a number of features."""
    for x, make in problems:
        X, n = make()
        calls = {name: partial(_compute, name, X, n, seed) for name in _MAPS}
        for name, times in time_rounds(calls, rounds=scale.choose(9, 5, 2)).items():
            yield Cell(float(x), name, tuple(1000 * each for each in times))


def _measure_in_n(_: str, scale: Scale, seed: int) -> Iterator[Cell]:
    sizes = scale.choose(
        list(geometric(1000, 512_000)), [4000, 16_000, 64_000, 256_000], [16_000, 32_000]
    )
    rng = np.random.default_rng(seed)
    problems = [(n, partial(_draw, rng, n, 16, 16)) for n in sizes]
    return _time_maps(problems, scale, seed)


def _measure_in_features(_: str, scale: Scale, seed: int) -> Iterator[Cell]:
    sizes = list(geometric(256, scale.choose(16_384, 16_384, 512), scale.choose(2, 8, 2)))
    n_rows = scale.choose(1000, 1000, 50)
    rng = np.random.default_rng(seed)
    return _time_maps([(n, partial(_draw, rng, n_rows, 16, n)) for n in sizes], scale, seed)


def _measure_in_columns(_: str, scale: Scale, seed: int) -> Iterator[Cell]:
    sizes = list(geometric(2, scale.choose(4096, 1024, 32), scale.choose(2, 8, 4)))
    n_rows, n = scale.choose(1000, 500, 30), scale.choose(4096, 4096, 64)
    rng = np.random.default_rng(seed)
    return _time_maps([(d, partial(_draw, rng, n_rows, d, n)) for d in sizes], scale, seed)


def _draw(rng: Any, n_rows: int, dim: int, n: int) -> tuple[Any, int]:
    return rng.uniform(size=(n_rows, dim)).astype(np.float32), n


_SPEED: dict[str, Any] = {
    "paper": PAPER,
    "columns": tuple(Column(name, "ms", better="") for name in _MAPS),
    "parts": {"uniform": ()},
    "value": "time",
    "log_y": True,
}
_TIMED = (
    "Time to draw the map and compute all features in float32, on one thread. Fastfood with z has "
    "D cosines and D sines, with z'' D cosines (appendix C); Tensor Sketch is of degree 2."
)
_Z_FASTER = claim_ratio(
    "z'' is faster than z (appendix C).", "Fastfood, z''", "Fastfood, z", at_most=1.0
)

FIGURE_4_9 = Experiment(
    name="thesis-figure-4-9",
    place="Figures 4.9 and C.1",
    title="Time against the number of rows",
    settings=f"d = 16, D = 16. {_TIMED}",
    row="rows n",
    measure=_measure_in_n,
    claims=(
        claim_slope(
            "Fastfood is linear in n (here: from 16,000 rows on, where fixed costs are small).",
            "Fastfood, z",
            0.8,
            1.2,
            start=16_000,
        ),
        claim_slope(
            "Tensor Sketch is linear in n (likewise).", "Tensor Sketch", 0.8, 1.2, start=16_000
        ),
        _Z_FASTER,
    ),
    **_SPEED,
)

FIGURE_4_10 = Experiment(
    name="thesis-figure-4-10",
    place="Figures 4.10 and C.2",
    title="Time against the number of features",
    settings=f"d = 16, n = 1,000. {_TIMED}",
    row="features D",
    measure=_measure_in_features,
    claims=(
        claim_slope("Fastfood looks linear in D.", "Fastfood, z", 0.7, 1.2),
        claim_slope("Tensor Sketch looks linear in D.", "Tensor Sketch", 0.7, 1.3),
        replace(
            claim_ratio(
                "Tensor Sketch is faster than Fastfood, also with z''.",
                "Tensor Sketch",
                "Fastfood, z''",
                at_most=1.0,
            ),
            reason="Both are other programs than those of the thesis; Fastfood has gained more.",
        ),
        _Z_FASTER,
    ),
    **_SPEED,
)

FIGURE_4_11 = Experiment(
    name="thesis-figure-4-11",
    place="Figures 4.11 and C.3",
    title="Time against the number of columns",
    settings=f"D = 4,096, n = 1,000. {_TIMED}",
    row="columns d",
    measure=_measure_in_columns,
    claims=(
        claim_slope("Fastfood grows as log d (here: exponent below 0.2).", "Fastfood, z", -1, 0.2),
        _Z_FASTER,
    ),
    **_SPEED,
)

# Figure A.1: the Walsh-Hadamard transform --------------------------------------------------------


def _measure_figure_a_1(_: str, scale: Scale, seed: int) -> Iterator[Cell]:
    n_rows = scale.choose(1000, 1000, 50)
    rng = np.random.default_rng(seed)
    for d in geometric(2, scale.choose(1024, 1024, 16), scale.choose(2, 8, 4)):
        X = rng.standard_normal((n_rows, d))
        H = hadamard(d).astype(np.float64)
        np.testing.assert_allclose(fwht(X), X @ H, atol=1e-9 * d)
        calls = {
            "fwht": partial(fwht, X, n_threads=1),
            "matrix product": partial(np.matmul, X, H),
        }
        for name, times in time_rounds(calls, rounds=scale.choose(15, 7, 2)).items():
            yield Cell(float(d), name, tuple(1000 * each for each in times))


FIGURE_A_1 = Experiment(
    name="thesis-figure-a-1",
    paper=PAPER,
    place="Figure A.1",
    title="Walsh-Hadamard transform against the product with its matrix",
    settings="1,000 random vectors in float64. The thesis multiplies with Boost, here NumPy's "
    "BLAS does, which may use several threads; the transform uses one. Results are compared first.",
    row="length d",
    columns=(
        Column("fwht", "ms", better=""),
        Column("matrix product", "ms", better="", ours=False),
    ),
    parts={"vectors": ()},
    measure=_measure_figure_a_1,
    value="time",
    log_y=True,
    claims=(
        claim_slope("The transform is O(d log d) (here: exponent up to 1.3).", "fwht", 0.3, 1.3),
        claim_ratio("It is faster than the product.", "fwht", "matrix product", at_most=1.0),
    ),
)

# Table 4.6: MNIST --------------------------------------------------------------------------------

_SIGMA, _C = 8.27, 100.0
_METHODS = {
    "SVM w. 4-deg poly.kernel": ("1.8", "10029", ""),
    "Tensor Sketch + LIBLINEAR": ("2.6", "509", "35"),
    "SVM w. Gaussian RBF": ("1.5", "76299", ""),
    "Fastfood + LIBLINEAR": ("1.9", "1177", "93"),
    "Fastfood + KernelClassifier": ("", "", ""),
}


def _make_map(part: str, X: Any, n: int, seed: int) -> Any:
    """Return the map of a method, with n features; of Fastfood as many cosines and sines."""
    if part == "Tensor Sketch + LIBLINEAR":
        # Features of length about 1: LIBLINEAR's penalty is for that size.
        gamma = 1.0 / float(np.mean((X * X).sum(axis=1)))
        return TensorSketch(2, gamma=gamma, n_components=n, random_state=seed)
    return Fastfood(n_components=2 * n, length_scale=_SIGMA, random_state=seed)


def _make_machine(part: str, X: Any, n: int, seed: int, epochs: int | None) -> Any:
    """Return the machine of a method that takes pixels."""
    from sklearn.svm import SVC

    from kernelmill.learners import KernelClassifier

    if part == "SVM w. 4-deg poly.kernel":
        return SVC(C=_C, kernel="poly", degree=4, gamma=0.01, cache_size=1000)
    if part == "SVM w. Gaussian RBF":
        return SVC(C=_C, gamma=0.5 / _SIGMA**2, cache_size=1000)
    return KernelClassifier(
        _make_map(part, X, n, seed), loss="squared_hinge", epochs=epochs, random_state=seed
    )


def _measure_table_4_6(part: str, scale: Scale, seed: int) -> Iterator[Cell]:
    rows = load_data("mnist")
    n_training = min(rows.n_training, scale.choose(60_000, 600, 100))
    n_test = min(rows.n_test, scale.choose(10_000, 2000, 50))
    n = scale.choose(4096, 512, 64)
    deviation = "" if scale is Scale.FULL else f"{n_training:,} of 60,000 training rows, D = {n}"
    test = slice(rows.n_training, rows.n_training + n_test)
    n_runs = 1 if part.startswith("SVM") else scale.choose(1, 3, 1)
    measured: dict[str, list[float]] = {}
    for run in run_seeds(seed, n_runs):
        chosen = np.random.default_rng(run).permutation(rows.n_training)[:n_training]
        X, y, X_test = rows.X[chosen], rows.y[chosen], rows.X[test]
        clock = time.perf_counter
        if part.endswith("LIBLINEAR"):
            begin = clock()
            fitted = _make_map(part, X, n, run).fit(X)
            Z = fitted.transform(X)
            measured.setdefault("Trans.", []).append(clock() - begin)
            begin = clock()
            machine = fit_linear_svm(Z, y, run, C=_C)
            seconds = clock() - begin
            begin = clock()
            predicted = machine.predict(fitted.transform(X_test))
        else:
            begin = clock()
            epochs = scale.choose(None, None, 2)
            machine = _make_machine(part, X, n, run, epochs).fit(X, y)
            seconds = clock() - begin
            begin = clock()
            predicted = machine.predict(X_test)
        measured.setdefault("Test", []).append(clock() - begin)
        measured.setdefault("Training", []).append(seconds)
        wrong = float(np.mean(predicted != rows.y[test]))
        measured.setdefault("Error", []).append(100 * wrong)
    for column, runs in measured.items():
        half = None
        if column == "Error" and n_runs == 1:
            half = 100 * half_width_of_share(runs[0] / 100, n_test)
        yield Cell(part, column, tuple(runs), half, deviation)


TABLE_4_6 = Experiment(
    name="thesis-table-4-6",
    paper=PAPER,
    place="Table 4.6",
    title="MNIST: kernel SVMs and linear SVMs on features",
    settings="60,000 training and 10,000 test images, pixels in [0, 1]; C = 100, σ = 8.27. Kernel "
    "SVMs by scikit-learn's SVC (LIBSVM; the thesis: Shark); the polynomial kernel (0.01 ⟨x, y⟩)⁴ "
    "has no offset, its factor is not in the thesis. LIBLINEAR is LinearSVC with LIBLINEAR's "
    "default solver and stopping rule, D = 4,096: for Fastfood as many cosines and sines. As in "
    "the thesis, Tensor Sketch is of degree 2. The last row is kernelmill's own classifier on the "
    "same features. One run (the thesis: 10 for features), whose interval is that of an error on "
    "10,000 images. Transforming is the time for the training images, Test that of all "
    "predictions.",
    row="method",
    columns=(
        Column("Error", "%", panel="error"),
        Column("Training", "s", "", panel="time"),
        Column("Trans.", "s", "", panel="time"),
        Column("Test", "s", "", panel="time"),
    ),
    parts=dict.fromkeys(_METHODS, ("mnist",)),
    measure=_measure_table_4_6,
    value="",
    published={
        (method, column): text
        for method, texts in _METHODS.items()
        for column, text in zip(("Error", "Training", "Trans."), texts, strict=True)
        if text
    },
    published_runs=10,
    claims=(
        replace(
            claim_rows(
                "Training on features takes a fraction of the time of the RBF SVM.",
                "Training",
                "Fastfood + LIBLINEAR",
                "SVM w. Gaussian RBF",
                at_most=1.0,
            ),
            full_only=True,
        ),
        replace(
            claim_rows(
                "So it does with kernelmill's own classifier.",
                "Training",
                "Fastfood + KernelClassifier",
                "SVM w. Gaussian RBF",
                at_most=1.0,
            ),
            full_only=True,
        ),
    ),
    reasons={
        "SVM w. 4-deg poly.kernel": "Factor and offset of the kernel are not in the thesis.",
        "": "One vs. one (LIBSVM) and one vs. all (Shark, LIBLINEAR) differ, and LIBLINEAR stops "
        "before the optimum.",
    },
)

THESIS_SPEED = (FIGURE_4_9, FIGURE_4_10, FIGURE_4_11, TABLE_4_6, FIGURE_A_1)
