"""Tensor and count sketches on batches: against scikit-learn, scipy, and writing the output."""

import os
import subprocess
import sys
from functools import partial
from typing import Any, Self

import numpy as np
import scipy.sparse
from scipy.linalg import clarkson_woodruff_transform
from sklearn.base import BaseEstimator
from sklearn.kernel_approximation import PolynomialCountSketch
from sklearn.random_projection import SparseRandomProjection

from benchmarks.adult import adult_rows
from benchmarks.polynomial_rows import check_polynomial, unit_rows
from benchmarks.timing import best_times, heading
from kernelmill import CountSketch, TensorSketch, get_num_threads

# The length of the output, at most that: a power of two, small primes, a large prime.
LENGTHS = {4096: "2^12", 5000: "2^3 5^4", 5003: "prime", 8192: "2^13"}
GOAL = "goal 40x, aim 80x"
LONG_DEGREE, LONG_DIM, LONG_ROWS = 4, 5000, 400


def tensor_sketch(X: Any, degree: int, n_columns: int, **options: Any) -> TensorSketch:
    """Fit TensorSketch and check its answers."""
    made: TensorSketch = TensorSketch(
        degree, n_components=n_columns, random_state=0, **options
    ).fit(X[:2])
    check_polynomial(made, X, degree)
    assert made.transform(X[:2]).dtype == np.float32
    return made


def peer(X: Any, degree: int, n_columns: int) -> Any:
    """Fit scikit-learn's tensor sketch and check its answers."""
    made = PolynomialCountSketch(degree=degree, n_components=n_columns, random_state=0).fit(X[:2])
    check_polynomial(made, X, degree)
    return made


def print_ratio(task: str, ours: float, theirs: float, n: int, goal: str = "") -> None:
    """Print microseconds per row of both, and their ratio."""
    print(
        f"{task:44s} {ours / n * 1e6:9.2f} {theirs / n * 1e6:12.2f} {theirs / ours:9.1f}x  {goal}"
    )


def against_polynomial_count_sketch() -> None:
    """Time transform on all threads, with the allocation of its output."""
    heading(
        "TensorSketch against PolynomialCountSketch, float32 given, "
        f"{get_num_threads()} threads: us a row"
    )
    print(f"{'task':44s} {'kernelmill':>9s} {'scikit-learn':>12s} {'ratio':>9s}")
    for task, X, degree, n_columns, goal in [
        ("dense, 784 -> 4096, p = 2, 1000 rows", unit_rows(1000, 784), 2, 4096, GOAL),
        ("dense, 784 -> 4096, p = 2, 4000 rows", unit_rows(4000, 784), 2, 4096, GOAL),
        ("dense, 64 -> 100, p = 2 (the default size)", unit_rows(20000, 64), 2, 100, ""),
        ("dense, 5000 -> 5000, p = 4", unit_rows(LONG_ROWS, LONG_DIM), 4, 5000, ""),
    ]:
        maps = {"ours": tensor_sketch(X, degree, n_columns), "theirs": peer(X, degree, n_columns)}
        out = np.empty((len(X), n_columns), np.float32)
        t = best_times(
            {
                **{name: partial(made.transform, X) for name, made in maps.items()},
                "fill": partial(out.fill, 1),
                "new": partial(np.full, out.shape, 1, np.float32),
            },
            rounds=5,
        )
        print_ratio(task, t["ours"], t["theirs"], len(X), goal)
        for name, seconds in (("out.fill(1)", t["fill"]), ("a new array of ones", t["new"])):
            us = seconds / len(X) * 1e6
            print(f"  {name:42s} {us:9.2f} {'':12s} {t['ours'] / seconds:9.1f}x this time for ours")
        one = best_times({name: partial(made.transform, X[:1]) for name, made in maps.items()})
        print_ratio("  a single row", one["ours"], one["theirs"], 1)


def sparse() -> None:
    """Time CSR rows against the peer and against the same rows as a dense array."""
    X, source = adult_rows()
    X = X[:16000]
    heading(f"TensorSketch of CSR rows, 123 -> 1024, p = 3, float32, {source}: us per row")
    print(f"{'task':44s} {'kernelmill':>9s} {'scikit-learn':>12s} {'ratio':>9s}")
    dense = X.toarray()
    ours, theirs = tensor_sketch(X, 3, 1024), peer(X, 3, 1024)
    np.testing.assert_allclose(ours.transform(X[:99]), ours.transform(dense[:99]), atol=1e-5)
    out = np.empty((X.shape[0], 1024), np.float32)
    # 2000 rows are enough for the peer: its time is proportional to the rows, and 16000 of them
    # take a gigabyte.
    t = best_times(
        {
            "csr": partial(ours.transform, X),
            "dense": partial(ours.transform, dense),
            "theirs, csr": partial(theirs.transform, X[:2000]),
            "theirs, dense": partial(theirs.transform, dense[:2000]),
            "fill": partial(out.fill, 1),
        },
        rounds=5,
    )
    n, part = X.shape[0], X.shape[0] / 2000
    print_ratio("CSR", t["csr"], t["theirs, csr"] * part, n, "goal 40x")
    print_ratio("dense", t["dense"], t["theirs, dense"] * part, n)
    print(f"CSR takes {t['csr'] / t['dense']:.2f} of the time of dense rows", end=", ")
    print(f"{t['csr'] / t['fill']:.1f} of that of out.fill(1)")


def lengths() -> None:
    """Time lengths of the output that are powers of two and others."""
    heading(f"TensorSketch, p = {LONG_DEGREE}, {LONG_DIM} columns, float32, all threads")
    print("    D            us a row  ns a column  / that of 8192")
    X = unit_rows(LONG_ROWS, LONG_DIM)
    maps = {D: tensor_sketch(X, LONG_DEGREE, D) for D in LENGTHS}
    t = best_times({str(D): partial(made.transform, X) for D, made in maps.items()}, rounds=7)
    per_column = {D: t[str(D)] / len(X) / D for D in LENGTHS}
    for D, factors in LENGTHS.items():
        print(
            f"{D:5d} = {factors:8s} {per_column[D] * D * 1e6:9.2f} {per_column[D] * 1e9:12.2f} "
            f"{per_column[D] / per_column[8192]:13.2f}x"
        )


MEASURE_PEAK = """
import sys
from kernelmill import TensorSketch
from sklearn.kernel_approximation import PolynomialCountSketch
from benchmarks.polynomial_rows import check_polynomial, unit_rows

def kilobytes(name):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(name))

features = eval(sys.argv[1])
n = int(sys.argv[2])
X = unit_rows(n, 5000)
features.fit(X[:8])
check_polynomial(features, X, 4)
before = kilobytes("VmRSS")
# What went before may have reached further than what is resident now.
with open("/proc/self/clear_refs", "w") as peak:
    peak.write("5")
Z = features.transform(X)
assert kilobytes("VmHWM") >= before + Z.nbytes // 1024
print(kilobytes("VmHWM") - before - Z.nbytes // 1024, Z.nbytes)
"""


def memory() -> None:
    """Measure the peak resident memory in separate processes (Linux)."""
    heading("memory of transform beyond its output, 5000 -> D, p = 4, float32 given: MB")
    print("map                        D  rows  output  beyond it")
    # Arrays that were freed before must not stay resident, to be used again.
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536"}
    for name, D, n in [
        ("TensorSketch", 5000, 500),
        ("TensorSketch", 5000, 4000),
        ("TensorSketch", 4096, 4000),
        ("TensorSketch", 5003, 4000),
        ("TensorSketch", 8192, 4000),
        ("PolynomialCountSketch", 5000, 500),
    ]:
        expression = f"{name}(degree=4, n_components={D}, random_state=0)"
        ran = subprocess.run(
            [sys.executable, "-c", MEASURE_PEAK, expression, str(n)],
            check=True,
            capture_output=True,
            text=True,
            env=environment,
        )
        beyond, output = map(int, ran.stdout.split())
        print(f"{name:22s} {D:5d} {n:5d} {output / 1e6:7.1f} {beyond * 1024 / 1e6:10.1f}")


class ClarksonWoodruff(BaseEstimator):  # type: ignore[misc] # scikit-learn is untyped
    """scipy's count sketch of columns, given the transpose; it draws its hashes in every call."""

    def __init__(self, n_components: int, random_state: int = 0) -> None:
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: Any) -> Self:
        """Do nothing."""
        return self

    def transform(self, X: Any) -> Any:
        """Return the sketches of the rows of X."""
        sketch = clarkson_woodruff_transform(X.T, self.n_components, self.random_state).T
        return sketch.toarray() if scipy.sparse.issparse(sketch) else sketch


def count_sketches() -> None:
    """Time random projections of degree 1."""
    heading("CountSketch beside other sparse projections, float32 given, all threads: us per row")
    print(
        "    d     D  rows of    kernelmill  clarkson_woodruff  SparseRandomProjection"
        "  out.fill     ratios"
    )
    for d, D, density in [
        (784, 256, 1.0),
        (2000, 1000, 1.0),
        (10000, 1000, 1.0),
        (10000, 1000, 0.01),
    ]:
        X: Any = unit_rows(2000, d)
        if density < 1:
            X *= np.random.default_rng(1).random(X.shape, dtype=np.float32) < density
            X = scipy.sparse.csr_matrix(X)
        ours = CountSketch(D, random_state=0).fit(X[:2])
        woodruff = ClarksonWoodruff(D)
        sparse_signs = SparseRandomProjection(D, dense_output=True, random_state=0).fit(X[:2])
        # Signs with a density of 1 / sqrt(d) are of less error than a count sketch.
        for made in (ours, woodruff, sparse_signs):
            check_polynomial(made, X, 1)
        out = np.empty((X.shape[0], D), np.float32)
        t = best_times(
            {
                "ours": partial(ours.transform, X),
                "woodruff": partial(woodruff.transform, X),
                "signs": partial(sparse_signs.transform, X),
                "fill": partial(out.fill, 1),
            },
            rounds=5,
        )
        us = {name: seconds / X.shape[0] * 1e6 for name, seconds in t.items()}
        print(
            f"{d:5d} {D:5d}  {'dense' if density == 1 else 'CSR 1 %':9s} {us['ours']:11.2f} "
            f"{us['woodruff']:18.2f} {us['signs']:23.2f} {us['fill']:9.2f} "
            f"{us['woodruff'] / us['ours']:9.1f}x {us['signs'] / us['ours']:7.1f}x"
        )


def main() -> None:
    """Run all tables."""
    against_polynomial_count_sketch()
    sparse()
    lengths()
    memory()
    count_sketches()


if __name__ == "__main__":
    main()
