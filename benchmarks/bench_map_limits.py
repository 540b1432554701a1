"""Feature maps against what bounds them: writing the output, its memory, and the prototype."""

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import prototypes
from benchmarks.gaussian_rows import check_features, draw_rows, fastfood
from benchmarks.timing import best_times, heading
from kernelmill import Fastfood, get_num_threads
from kernelmill.projections.layout import FeatureLayout

LAYOUT = FeatureLayout("cos_sin", 8192)


def allocate_and_fill(shape: tuple[int, int]) -> NDArray[Any]:
    """Write a new array, page faults and all."""
    out = np.empty(shape, np.float32)
    out.fill(1)
    return out


def writing() -> None:
    """Time Fastfood beside writing as many bytes of ones."""
    n = 2000
    heading(f"Fastfood, {n} x 784 -> 8192, float32, beside writing the output: us per row")
    print("threads  task                             us a row  / out.fill  / empty + fill")
    X = draw_rows(n, 784)
    out = np.empty((n, LAYOUT.n_columns), np.float32)
    for threads in sorted({1, get_num_threads()}):
        features = fastfood(X, LAYOUT.n_columns, n_threads=threads)
        check_features(features, X)
        features.projection_.features(X, LAYOUT, None, out, threads)
        np.testing.assert_array_equal(out[-3:], features.transform(X[-3:]))
        parts = np.array_split(out, threads)
        with ThreadPoolExecutor(threads) as pool:

            def fill_together(
                pool: ThreadPoolExecutor = pool, parts: list[NDArray[Any]] = parts
            ) -> None:
                list(pool.map(lambda part: part.fill(1), parts))

            t = best_times(
                {
                    "out.fill(1), one thread": partial(out.fill, 1),
                    "out.fill(1), parts on each thread": fill_together,
                    "np.empty and fill, one thread": partial(allocate_and_fill, out.shape),
                    "projection_.features into out": partial(
                        features.projection_.features, X, LAYOUT, None, out, threads
                    ),
                    "transform": partial(features.transform, X),
                },
                rounds=40,  # two busy threads need two idle cores in one of them
            )
        for name, seconds in t.items():
            print(
                f"{threads:7d}  {name:33s} {seconds / n * 1e6:7.2f} "
                f"{seconds / t['out.fill(1), one thread']:10.2f}x "
                f"{seconds / t['np.empty and fill, one thread']:13.2f}x"
            )


MEASURE_PEAK = """
import sys
import numpy as np
from kernelmill import Fastfood, RandomFourier
from sklearn.kernel_approximation import RBFSampler

def kilobytes(name):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(name))

features = eval(sys.argv[1])
X = np.random.default_rng(0).standard_normal((20000, 784), dtype=np.float32)
features.fit(X[:100])
features.transform(X[:100])
before = kilobytes("VmRSS")
Z = features.transform(X)
assert Z.dtype == np.float32 and kilobytes("VmHWM") >= before + Z.nbytes // 1024
gram = Z[:3].astype(float) @ Z[:3].T
squares = ((X[:3, None] - X[:3]) ** 2).sum(axis=2)
assert abs(gram - np.exp(-squares / (2 * 784))).max() < 0.1
print(kilobytes("VmHWM") - before - Z.nbytes // 1024)
"""


def memory() -> None:
    """Measure the peak resident memory in separate processes (Linux)."""
    heading("memory of transform beyond its output, 20000 x 784 -> 4096, float32: MB (output 328)")
    for expression in (
        "Fastfood(n_components=4096, length_scale=28.0, random_state=0)",
        "RandomFourier(n_components=4096, length_scale=28.0, random_state=0)",
        "RandomFourier(n_components=4096, length_scale=28.0, random_state=0, store_matrix=False)",
        "RBFSampler(n_components=4096, gamma=0.5 / 784, random_state=0)",
    ):
        ran = subprocess.run(
            [sys.executable, "-c", MEASURE_PEAK, expression],
            check=True,
            capture_output=True,
            text=True,
        )
        name = expression.partition("(")[0] + (", store_matrix=False" * ("False" in expression))
        print(f"{name:36s} {int(ran.stdout) * 1024 / 1e6:8.1f}")


def prototype() -> None:
    """Time the prototype with coefficients that Fastfood is given too."""
    heading("Fastfood 784 -> 8192, float32, one thread, into a given output: us per row")
    library = prototypes.load()
    n, p, n_blocks = 1000, 1024, 4
    X = draw_rows(n, 784)
    out = prototypes.aligned_empty((n, LAYOUT.n_columns))
    made = fastfood(X, LAYOUT.n_columns, n_threads=1)
    independent = fastfood(X, LAYOUT.n_columns, n_threads=1, blocks="independent")
    contenders: dict[str, Callable[[], object]] = {
        "kernelmill, stratified": partial(made.projection_.features, X, LAYOUT, None, out, 1),
        "kernelmill, independent": partial(
            independent.projection_.features, X, LAYOUT, None, out, 1
        ),
    }
    if library is not None:
        rng = np.random.default_rng(0)
        B = rng.choice([-1.0, 1.0], (n_blocks, p))
        P = np.array([rng.permutation(p) for _ in range(n_blocks)])
        G = rng.standard_normal((n_blocks, p))
        S = np.sqrt(rng.chisquare(p, (n_blocks, p))) / np.linalg.norm(G, axis=1, keepdims=True)
        given = Fastfood.from_factors(B, P, G, S, n_features=784, length_scale=28.0)
        factors = prototypes.FastfoodFactors.of(B, P, G, S / (28.0 * np.sqrt(p)))
        contenders["prototype"] = partial(prototypes.fastfood, library, X, factors, out)
        contenders["prototype"]()
        np.testing.assert_allclose(out[-3:], given.transform(X[-3:]), atol=1e-5)
    t = best_times(contenders)
    for name, seconds in t.items():
        ratio = f"{t['prototype'] / seconds:6.2f}x as fast as the prototype" if library else ""
        print(f"{name:24s} {seconds / n * 1e6:8.2f} {ratio}")


def main() -> None:
    """Run all tables."""
    writing()
    prototype()
    memory()


if __name__ == "__main__":
    main()
