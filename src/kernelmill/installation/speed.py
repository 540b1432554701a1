"""What `kernelmill bench` measures: contenders in turns, each with its answer checked."""

# ruff: noqa: PLC0415 # scikit-learn waits until a contest runs
from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.random import Stream

__all__ = ["Contender", "Contest", "contests"]


@dataclass(frozen=True)
class Contender:
    """A way to do it, its best time, and how far its answer is off."""

    name: str
    seconds: float
    answer: float | None = None


@dataclass(frozen=True)
class Contest:
    """Contenders at the same work; kernelmill is the first."""

    title: str
    n_rows: int
    answer_name: str
    contenders: list[Contender]

    def as_json(self) -> dict[str, Any]:
        """The contest, with the ratio of each time to that of kernelmill."""
        made = asdict(self)
        for each in made["contenders"]:
            each["ratio"] = each["seconds"] / self.contenders[0].seconds
        return made


def contests(quick: bool) -> list[tuple[str, Callable[[], Contest]]]:
    """The contests by name, to be run one by one.

    Examples
    --------
    >>> [name for name, run in contests(quick=True)]
    ['Fastfood', 'TensorSketch', 'KernelClassifier']
    """
    return [
        ("Fastfood", partial(_fastfood, quick)),
        ("TensorSketch", partial(_tensor_sketch, quick)),
        ("KernelClassifier", partial(_classifier, quick)),
    ]


def best_times(calls: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The best time of each call in seconds; they take turns, so that slow spells hit them all.

    Examples
    --------
    >>> sorted(best_times({"a": int, "b": float}, rounds=2))
    ['a', 'b']
    """
    best = dict.fromkeys(calls, math.inf)
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def _fastfood(quick: bool) -> Contest:
    from sklearn.kernel_approximation import RBFSampler

    from kernelmill.maps import Fastfood

    n, d, n_components = (500 if quick else 2000), 784, 4096
    X = Stream.from_seed(0).normals((n, d), dtype=np.float32)
    fast = Fastfood(n_components=n_components, gamma=0.5 / d, random_state=0).fit(X)
    peer = RBFSampler(n_components=n_components, gamma=0.5 / d, random_state=0).fit(X)
    out, other = np.empty((2, n, n_components), np.float32)
    times = best_times(
        {
            "kernelmill Fastfood": partial(fast.transform, X),
            "scikit-learn RBFSampler": partial(peer.transform, X),
            "limit: filling the output": partial(out.fill, 1),
            "limit: copying the output": partial(np.copyto, other, out),
        },
        rounds=3 if quick else 5,
    )
    exact = fast.exact_kernel(X[:40])
    # RBFSampler's variance is up to 2 / D for each value, Fastfood's half of it: the mean of 1600
    # errors is far below four standard deviations of one.
    bound = 4 * math.sqrt(2 / n_components)
    answers = {
        "kernelmill Fastfood": _kernel_error(fast.transform(X[:40]), exact, bound),
        "scikit-learn RBFSampler": _kernel_error(peer.transform(X[:40]), exact, bound),
    }
    title = f"Gaussian features of {n:,} rows, {d} -> {n_components}, float32"
    return _contest(title, n, "kernel error", times, answers)


def _tensor_sketch(quick: bool) -> Contest:
    from sklearn.kernel_approximation import PolynomialCountSketch

    from kernelmill.maps import TensorSketch

    n, d, n_components = (500 if quick else 2000), 784, 2048
    X = Stream.from_seed(1).normals((n, d), dtype=np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    settings: dict[str, Any] = {
        "degree": 2,
        "gamma": 1.0,
        "coef0": 1.0,
        "n_components": n_components,
    }
    fast = TensorSketch(**settings, random_state=0).fit(X)
    peer = PolynomialCountSketch(**settings, random_state=0).fit(X)
    times = best_times(
        {
            "kernelmill TensorSketch": partial(fast.transform, X),
            "scikit-learn PolynomialCountSketch": partial(peer.transform, X),
        },
        rounds=3 if quick else 5,
    )
    exact = (X[:40].astype(float) @ X[:40].T.astype(float) + 1) ** 2
    # The variance for rows of norm 1 and an added constant is at most (3² - 1) k(x, x)² / D
    # = 128 / D (Pham and Pagh); the mean of the errors is below two of its roots.
    bound = 2 * math.sqrt(128 / n_components)
    answers = {
        "kernelmill TensorSketch": _kernel_error(fast.transform(X[:40]), exact, bound),
        "scikit-learn PolynomialCountSketch": _kernel_error(peer.transform(X[:40]), exact, bound),
    }
    title = f"Polynomial features (degree 2) of {n:,} rows, {d} -> {n_components}, float32"
    return _contest(title, n, "kernel error", times, answers)


def _classifier(quick: bool) -> Contest:
    from sklearn.svm import SVC

    from kernelmill.learners import KernelClassifier
    from kernelmill.maps import Fastfood

    n, n_test, d = (4000 if quick else 8000), 2000, 8
    stream = Stream.from_seed(2)
    X = stream.substream("rows").normals((n + n_test, d), dtype=np.float32)
    # A wavy border that no linear model follows, and a tenth of the labels turned.
    y = (np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] > 0) ^ (
        stream.substream("noise").uniforms(n + n_test) < 0.1
    )
    length_scale = 2.0
    features = Fastfood(n_components=1024, length_scale=length_scale, random_state=0)
    ours = KernelClassifier(features, loss="squared_hinge", random_state=0)
    exact = SVC(gamma=0.5 / length_scale**2)
    train, test = slice(n), slice(n, None)
    times = best_times(
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
    # Four standard deviations of a difference of two shares near 0.15 of 2000 rows.
    if mine > theirs + 4 * math.sqrt(2 * 0.15 * 0.85 / n_test):
        raise ValueError(
            f"KernelClassifier should err about as often as SVC ({theirs:.1%}), got {mine:.1%}; "
            "run kernelmill doctor"
        )
    title = f"Training a classifier on {n:,} rows of {d} columns"
    return _contest(title, n, "test error", times, errors)


def _kernel_error(z: NDArray[Any], exact: NDArray[Any], bound: float) -> float:
    """The mean error of kernel values; one above the bound is a fault, not chance."""
    error = float(np.abs(z.astype(float) @ z.T.astype(float) - exact).mean())
    if not error < bound:
        raise ValueError(
            f"kernel values should be off by less than {bound:.3g} on average, got {error:.3g}; "
            "run kernelmill doctor"
        )
    return error


def _contest(
    title: str, n_rows: int, answer_name: str, times: dict[str, float], answers: dict[str, float]
) -> Contest:
    contenders = [Contender(name, times[name], answers.get(name)) for name in times]
    return Contest(title, n_rows, answer_name, contenders)
