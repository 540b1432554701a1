"""How far the bounds of the papers are above the errors that they bound.

Simulates each bound of `kernelmill.diagnostics.bounds` and prints it beside what is measured: a
variance, or the error that is exceeded with probability 5 %. Ratios below 1 belong to lemma 6 of
Pham & Pagh (2013) as published, which does not hold from degree 2 on.

    python examples/bounds.py
"""

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from kernelmill import RandomFourier, fwht
from kernelmill.diagnostics import bounds, gram_errors

N_DRAWS = 3000
PROBABILITY = 0.95
Row = tuple[str, float, float]  # what, bound, measured


def invert(tail: Callable[..., float], *args: float) -> float:
    """The error at which ``tail(error, *args)``, a bound of probabilities, is 5 %: bisection."""
    low, high = 1e-6, 1e12
    while high / low > 1.0001:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if tail(middle, *args) <= 1 - PROBABILITY else (middle, high)
    return high


def quantile(errors: NDArray[np.float64]) -> float:
    """The error that is exceeded with probability 5 %."""
    return float(np.quantile(np.abs(errors), PROBABILITY))


def fourier_rows(rng: np.random.Generator) -> Iterator[Row]:
    """Hoeffding's inequality (Sivertsen, 2014, eq. 2.18) for 512 columns."""
    for distance in (0.5, 1.0, 4.0):
        cosines = np.cos(distance * rng.normal(size=(N_DRAWS, 256))).mean(axis=1)
        bound = invert(bounds.fourier_tail, 512)
        error = quantile(cosines - math.exp(-(distance**2) / 2))
        yield f"eq. 2.18, distance {distance:g}", bound, error


def fastfood_rows(rng: np.random.Generator) -> Iterator[Row]:
    """Theorems 9 and 11 of Le, Sarlós & Smola (2013), for one block of 16 frequencies."""
    d = 16
    for distance in (0.5, 1.0, 2.0, 3.0):
        v = np.full((N_DRAWS, d), distance / 4) * rng.choice([-1.0, 1.0], (N_DRAWS, d))
        mixed = rng.permuted(fwht(v) / 4, axis=1)
        G = rng.normal(size=mixed.shape)
        lengths = np.sqrt(rng.chisquare(d, G.shape)) / np.linalg.norm(G, axis=1, keepdims=True)
        errors = np.cos(lengths * fwht(G * mixed)).mean(axis=1) - math.exp(-(distance**2) / 2)
        variance = float(bounds.fastfood_variance(distance, d))
        yield f"Theorem 9, distance {distance:g}", variance, float(np.mean(errors**2))
        largest = float(bounds.fastfood_deviation(distance, d, PROBABILITY))
        yield f"Theorem 11, distance {distance:g}", largest, quantile(errors)


def sorf_rows(rng: np.random.Generator) -> Iterator[Row]:
    """Theorem 3 of Yu et al. (2016): the bias of SORF, whose frequencies all have one length."""
    for d in (16, 64):
        u = np.full((40 * N_DRAWS // d, d), d**-0.5)
        for _ in range(3):
            u = fwht(u * rng.choice([-1.0, 1.0], u.shape)) / math.sqrt(d)
        for distance in (1.0, 2.0):
            mean = float(np.cos(distance * math.sqrt(d) * u).mean())
            bias = abs(mean - math.exp(-(distance**2) / 2))
            bound = float(bounds.sorf_bias(distance, d))
            yield f"bias of SORF, {d} columns, distance {distance:g}", bound, bias


def sketches(x: NDArray[np.float64], degree: int, D: int, seed: int) -> NDArray[np.float64]:
    """Tensor sketches of a vector with many independent hash functions, in the Fourier domain."""
    rng = np.random.default_rng(seed)
    product: NDArray[np.complex128] = np.ones((N_DRAWS, D // 2 + 1), np.complex128)
    for _ in range(degree):
        buckets = rng.integers(D, size=(N_DRAWS, x.size))
        counts = np.zeros((N_DRAWS, D))
        np.add.at(
            counts,
            (np.arange(N_DRAWS)[:, np.newaxis], buckets),
            x * rng.choice([-1.0, 1.0], buckets.shape),
        )
        product *= np.fft.rfft(counts)
    return np.fft.irfft(product, D)


def sketch_rows(rng: np.random.Generator) -> Iterator[Row]:
    """Lemmas 6 to 9 of Pham & Pagh (2013), for two close points."""
    x = rng.uniform(0.2, 1.0, 50)
    y = x + rng.normal(0, 0.2, 50)
    D = 256
    for p in (2, 3):
        exact = float(x @ y) ** p
        estimates = np.einsum("ij,ij->i", *(sketches(each, p, D, seed=p) for each in (x, y)))
        errors = estimates - exact
        variance = float(np.mean(errors**2))
        published = (exact**2 + float((x @ x) * (y @ y)) ** p) / D
        yield f"lemma 6 as published, degree {p}", published, variance
        yield f"lemma 6 corrected, degree {p}", float(bounds.sketch_variance(x, y, p, D)), variance
        cosine = float(x @ y / math.sqrt((x @ x) * (y @ y)))
        relative = invert(bounds.sketch_relative_tail, cosine, p, D)
        yield f"lemma 7 corrected, degree {p}", relative, quantile(errors / exact)
        largest = float(bounds.sketch_largest_value(x, y, p))
        yield f"lemma 8, degree {p}", largest, float(np.abs(estimates).max())
        radius = float(max(x.sum(), y.sum()))
        mean = invert(bounds.sketch_mean_tail, 10, radius, p)
        yield f"lemma 9, degree {p}", mean, quantile(errors.reshape(-1, 10).mean(axis=1))


def gram_rows(rng: np.random.Generator) -> Iterator[Row]:
    """Matrix Bernstein, and what it says about ridge regression, for 200 points of a cube."""
    X = rng.uniform(size=(200, 3))
    y = np.sin(4 * X[:, 0]) + X[:, 1]
    for length_scale in (0.05, 0.5, 2.0):
        features = RandomFourier(length_scale=length_scale, n_components=400)
        found = gram_errors(features, X, y, alpha=1.0, n_seeds=4)
        bound = bounds.gram_deviation(200, found.kernel_spectral, 200, PROBABILITY)
        yield f"Bernstein, length scale {length_scale:g}", bound, found.spectral.value
        assert found.fit_change is not None
        change = bounds.ridge_deviation(found.spectral.value, 1.0)
        yield f"ridge, length scale {length_scale:g}", change, found.fit_change.value


def main() -> None:
    """Print the table."""
    print(f"{'bound':<38} {'bound':>10} {'measured':>10} {'ratio':>10}")
    for rows in (fourier_rows, fastfood_rows, sorf_rows, sketch_rows, gram_rows):
        for name, bound, measured in rows(np.random.default_rng(0)):
            print(f"{name:<38} {bound:>10.3g} {measured:>10.3g} {bound / measured:>10.3g}")


if __name__ == "__main__":
    main()
