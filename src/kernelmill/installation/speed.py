"""The speed of this installation, compared with scikit-learn and the limits of the machine.

Results are checked; wrong results raise an error.
"""

# ruff: noqa: PLC0415 # Benchmarks import scikit-learn.
from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np

from kernelmill.errors import KernelmillError
from kernelmill.formatting import plain
from kernelmill.random import Stream
from kernelmill.runtime.arrays import Floats

__all__ = ["Benchmark", "Timing", "WrongResultError", "list_benchmarks"]


class WrongResultError(KernelmillError):
    """A benchmark computed a wrong result."""


@dataclass(frozen=True)
class Timing:
    """The best time of one implementation, and the error of its result."""

    name: str
    seconds: float
    error: float | None = None


@dataclass(frozen=True)
class Benchmark:
    """Timings of several implementations on the same problem; kernelmill is the first."""

    title: str
    n_rows: int
    error_name: str
    timings: list[Timing]

    def as_json(self) -> dict[str, object]:
        """Return the fields, and the ratio of each time to that of kernelmill."""
        record = asdict(self)
        for each in record["timings"]:
            each["ratio"] = each["seconds"] / self.timings[0].seconds
        return record


def list_benchmarks(quick: bool) -> list[tuple[str, Callable[[], Benchmark]]]:
    """Return the names of the benchmarks and the functions that run them.

    Examples
    --------
    >>> [name for name, run in list_benchmarks(quick=True)]
    ['Fastfood', 'TensorSketch', 'KernelClassifier']
    """
    return [
        ("Fastfood", partial(_time_fastfood, quick)),
        ("TensorSketch", partial(_time_tensor_sketch, quick)),
        ("KernelClassifier", partial(_time_classifier, quick)),
    ]


def measure_times(calls: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the best time of each call in seconds.

    The calls take turns, so that slow periods of the machine affect all of them.

    Examples
    --------
    >>> sorted(measure_times({"a": int, "b": float}, rounds=2))
    ['a', 'b']
    """
    best = dict.fromkeys(calls, math.inf)
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def _time_fastfood(quick: bool) -> Benchmark:
    from sklearn.kernel_approximation import RBFSampler

    from kernelmill.maps import Fastfood

    n, d, n_components = (500 if quick else 2000), 784, 4096
    X = Stream.from_seed(0).normals((n, d), dtype=np.float32)
    fast = Fastfood(n_components=n_components, gamma=0.5 / d, random_state=0).fit(X)
    peer = RBFSampler(n_components=n_components, gamma=0.5 / d, random_state=0).fit(X)
    out, other = np.empty((2, n, n_components), np.float32)
    times = measure_times(
        {
            "kernelmill Fastfood": partial(fast.transform, X),
            "scikit-learn RBFSampler": partial(peer.transform, X),
            "limit: filling the output": partial(out.fill, 1),
            "limit: copying the output": partial(np.copyto, other, out),
        },
        rounds=3 if quick else 5,
    )
    exact = fast.exact_kernel(X[:40])
    # RBFSampler has a variance of up to 2 / D for each value, Fastfood half of it. The mean of 1600
    # errors is far below four standard deviations of a single error.
    bound = 4 * math.sqrt(2 / n_components)
    errors = {
        "kernelmill Fastfood": _check_error(fast.transform(X[:40]), exact, bound),
        "scikit-learn RBFSampler": _check_error(peer.transform(X[:40]), exact, bound),
    }
    title = f"Gaussian features of {plain.count(n)} rows, {d} -> {n_components}, float32"
    return _make_benchmark(title, n, "kernel error", times, errors)


def _time_tensor_sketch(quick: bool) -> Benchmark:
    from sklearn.kernel_approximation import PolynomialCountSketch

    from kernelmill.maps import TensorSketch

    n, d, n_components = (500 if quick else 2000), 784, 2048
    X = Stream.from_seed(1).normals((n, d), dtype=np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    fast = TensorSketch(2, gamma=1.0, coef0=1.0, n_components=n_components, random_state=0).fit(X)
    peer = PolynomialCountSketch(degree=2, gamma=1.0, coef0=1.0, n_components=n_components)
    peer.set_params(random_state=0).fit(X)
    times = measure_times(
        {
            "kernelmill TensorSketch": partial(fast.transform, X),
            "scikit-learn PolynomialCountSketch": partial(peer.transform, X),
        },
        rounds=3 if quick else 5,
    )
    exact = (X[:40].astype(float) @ X[:40].T.astype(float) + 1) ** 2
    # The variance for rows of norm 1 and an added constant is at most (3² - 1) k(x, x)² / D
    # = 128 / D (Pham & Pagh, 2013). The mean error is below two standard deviations.
    bound = 2 * math.sqrt(128 / n_components)
    errors = {
        "kernelmill TensorSketch": _check_error(fast.transform(X[:40]), exact, bound),
        "scikit-learn PolynomialCountSketch": _check_error(peer.transform(X[:40]), exact, bound),
    }
    title = (
        f"Polynomial features (degree 2) of {plain.count(n)} rows, {d} -> {n_components}, float32"
    )
    return _make_benchmark(title, n, "kernel error", times, errors)


def _time_classifier(quick: bool) -> Benchmark:
    from sklearn.svm import SVC

    from kernelmill.learners import KernelClassifier
    from kernelmill.maps import Fastfood

    n, n_test, d = (4000 if quick else 8000), 2000, 8
    stream = Stream.from_seed(2)
    X = stream.substream("rows").normals((n + n_test, d), dtype=np.float32)
    # A wavy border between the classes, with a tenth of the labels flipped.
    y = (np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] > 0) ^ (
        stream.substream("noise").uniforms(n + n_test) < 0.1
    )
    length_scale = 2.0
    features = Fastfood(n_components=1024, length_scale=length_scale, random_state=0)
    ours = KernelClassifier(features, loss="squared_hinge", random_state=0)
    exact = SVC(gamma=0.5 / length_scale**2)
    train, test = slice(n), slice(n, None)
    times = measure_times(
        {
            "kernelmill KernelClassifier": partial(ours.fit, X[train], y[train]),
            "scikit-learn SVC, exact kernel": partial(exact.fit, X[train], y[train]),
        },
        rounds=2,
    )
    errors = {
        "kernelmill KernelClassifier": float(1 - ours.score(X[test], y[test])),
        "scikit-learn SVC, exact kernel": float(1 - exact.score(X[test], y[test])),
    }
    mine, theirs = errors.values()
    # Four standard deviations of the difference of two error rates near 0.15, on 2000 rows.
    if mine > theirs + 4 * math.sqrt(2 * 0.15 * 0.85 / n_test):
        raise WrongResultError(
            f"the error of KernelClassifier must be close to that of SVC, {theirs:.1%}, "
            f"got {mine:.1%}",
            "run kernelmill doctor",
        )
    title = f"Training a classifier on {plain.count(n)} rows of {d} columns"
    return _make_benchmark(title, n, "test error", times, errors)


def _check_error(z: Floats, exact: Floats, bound: float) -> float:
    """Return the mean error of kernel values; one above the bound is a defect, not chance."""
    error = float(np.abs(z.astype(float) @ z.T.astype(float) - exact).mean())
    if not error < bound:
        raise WrongResultError(
            f"the mean error of kernel values must be below {bound:.3g}, got {error:.3g}",
            "run kernelmill doctor",
        )
    return error


def _make_benchmark(
    title: str, n_rows: int, error_name: str, times: dict[str, float], errors: dict[str, float]
) -> Benchmark:
    timings = [Timing(name, times[name], errors.get(name)) for name in times]
    return Benchmark(title, n_rows, error_name, timings)
