"""Two-sample tests: power and cost.

Compares `two_sample_test` with the exact maximum mean discrepancy of the Gaussian kernel, whose
permutation test takes memory and time quadratic in the number of rows. Prints power and times,
which takes some minutes, and plots them:

    python examples/two_samples.py [plot.svg]
"""

import sys
import time
from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from kernelmill import Fastfood
from kernelmill.kernels import Gaussian
from kernelmill.stats import two_sample_test

Rows = NDArray[np.float64]

N_ROWS = 200
DIM = 5
LEVEL = 0.05
N_PERMUTATIONS = 199
N_TESTS = 150
SIZES = [1000, 2000, 4000, 8000, 32_000, 128_000, 512_000]
LARGEST_EXACT = 8000


def draw_shifted(rng: np.random.Generator, n: int, effect: float) -> Rows:
    """Normal rows, the first column shifted."""
    rows = rng.normal(size=(n, DIM))
    rows[:, 0] += effect
    return rows


def draw_scaled(rng: np.random.Generator, n: int, effect: float) -> Rows:
    """Normal rows of another standard deviation."""
    return rng.normal(scale=1 + effect, size=(n, DIM))


def draw_skewed(rng: np.random.Generator, n: int, effect: float) -> Rows:
    """Columns of mean 0 and variance 1 with the skewness `effect`: shifted gamma variables."""
    if effect == 0:
        return rng.normal(size=(n, DIM))
    shape = 4 / effect**2
    return np.asarray((rng.gamma(shape, size=(n, DIM)) - shape) / np.sqrt(shape))


ALTERNATIVES: dict[str, tuple[Callable[..., Rows], list[float]]] = {
    "mean of one column": (draw_shifted, [0.0, 0.15, 0.3, 0.45, 0.6]),
    "standard deviation": (draw_scaled, [0.0, 0.06, 0.12, 0.18, 0.24]),
    "skewness": (draw_skewed, [0.0, 1.0, 1.7, 2.4, 3.0]),
}


def exact_p_value(X: Rows, Y: Rows, length_scale: float, rng: np.random.Generator) -> float:
    """The permutation test with the whole kernel matrix."""
    n_x, n_y = len(X), len(Y)
    kernel = Gaussian()(np.concatenate([X, Y]), length_scale=length_scale)
    weights = np.tile(np.r_[np.full(n_x, 1 / n_x), np.full(n_y, -1 / n_y)], (1 + N_PERMUTATIONS, 1))
    weights[1:] = rng.permuted(weights[1:], axis=1)
    discrepancies = np.einsum("ij,ij->i", weights @ kernel, weights)
    return float((discrepancies >= discrepancies[0] * (1 - 1e-9)).mean())


def power(draw: Callable[..., Rows], effect: float) -> list[float]:
    """The power of each test: exact, 2048 features, 128 features."""
    rng = np.random.default_rng(0)
    found = np.zeros(3)
    for seed in range(N_TESTS):
        X, Y = draw(rng, N_ROWS, 0.0), draw(rng, N_ROWS, effect)
        p_values = []
        for n_components in (2048, 128):
            features = Fastfood(n_components=n_components, length_scale="median")
            result = two_sample_test(
                X, Y, feature_map=features, n_permutations=N_PERMUTATIONS, random_state=seed
            )
            p_values.append(result.p_value)
        assert result.length_scale is not None
        p_values.insert(0, exact_p_value(X, Y, result.length_scale, rng))
        found += np.array(p_values) <= LEVEL
    return [float(share) for share in found / N_TESTS]


def seconds(n_rows: int) -> tuple[float, float]:
    """Times of the exact test (NaN if it would take too long) and of the test on 2048 features."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(2, n_rows // 2, DIM))
    two_sample_test(X[:100], Y[:100], random_state=0)  # threads and coefficients are ready
    begin = time.perf_counter()
    result = two_sample_test(X, Y, n_permutations=N_PERMUTATIONS, random_state=0)
    ours = time.perf_counter() - begin
    if n_rows > LARGEST_EXACT:
        return float("nan"), ours
    assert result.length_scale is not None
    begin = time.perf_counter()
    exact_p_value(X, Y, result.length_scale, rng)
    return time.perf_counter() - begin, ours


def draw_plot(
    powers: dict[str, list[list[float]]], times: list[tuple[float, float]], path: str
) -> None:
    """Power against the size of the difference, and time against the number of rows."""
    figure = Figure(figsize=(12, 3.2), layout="constrained")
    panels = figure.subplots(1, len(powers) + 1)
    names = ["exact, quadratic", "2048 features", "128 features"]
    styles = [("black", "--"), ("tab:blue", "-"), ("tab:orange", "-")]
    for axes, (title, values) in zip(panels, powers.items(), strict=False):
        effects = ALTERNATIVES[title][1]
        for column, (name, (color, style)) in enumerate(zip(names, styles, strict=True)):
            axes.plot(effects, np.array(values)[:, column], style, color=color, label=name)
        axes.axhline(LEVEL, color="grey", linewidth=0.7)
        axes.set(title=title, xlabel="difference", ylim=(0, 1.02))
    panels[0].set_ylabel(f"power at level {LEVEL}")
    panels[0].legend(fontsize="small")
    panels[-1].loglog(SIZES, [exact for exact, _ in times], "k--o")
    panels[-1].loglog(SIZES, [ours for _, ours in times], "o-", color="tab:blue")
    panels[-1].set(title="seconds", xlabel="rows of both samples")
    figure.savefig(path)
    print(f"Drawn to {path}")


def main() -> None:
    """Print power and times, then draw them."""
    powers = {}
    print(f"Power at level {LEVEL}: {N_ROWS} against {N_ROWS} rows, {N_TESTS} tests each\n")
    print(f"{'difference':20} {'size':>5} {'exact':>8} {'D = 2048':>9} {'D = 128':>8}")
    for title, (draw, effects) in ALTERNATIVES.items():
        powers[title] = [power(draw, effect) for effect in effects]
        for effect, (exact, many, few) in zip(effects, powers[title], strict=True):
            print(f"{title:20} {effect:5.2f} {exact:8.2f} {many:9.2f} {few:8.2f}")
    print(f"\n{'rows':>8} {'exact, s':>10} {'D = 2048, s':>12}")
    times = [seconds(n_rows) for n_rows in SIZES]
    for n_rows, (exact, ours) in zip(SIZES, times, strict=True):
        print(f"{n_rows:8} {exact:10.3f} {ours:12.3f}")
    draw_plot(powers, times, sys.argv[1] if len(sys.argv) > 1 else "two_samples.svg")


if __name__ == "__main__":
    main()
