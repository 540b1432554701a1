"""A kernel machine at linear cost, built by hand from kernelmill's parts.

Fastfood (Le, Sarlós & Smola 2013) approximates the Gaussian kernel by an inner product of random
features cos(Vx), sin(Vx), where V = S H G P H B / (sigma sqrt d) is a product of diagonal matrices,
a permutation and Walsh-Hadamard transforms: O(D log d) operations per row, and only a seed to
store.

    python examples/fastfood_by_hand.py
"""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

import kernelmill
from kernelmill import fwht, runtime
from kernelmill.random import Stream
from kernelmill.transforms import circular_convolve, sincos

SIGMA = 3.0


def fastfood(x: NDArray[Any], n_blocks: int, sigma: float, stream: Stream) -> NDArray[Any]:
    """Random features of the rows of x, whose number of columns d is a power of two."""
    d = x.shape[1]
    angles = np.empty((len(x), n_blocks, d), x.dtype)
    for block in range(n_blocks):
        part = stream.substream("block", block)  # does not depend on the number of blocks
        b = part.signs(d, dtype=x.dtype)
        g = part.normals(d)
        lengths = part.chis(d, df=d)
        s = lengths / (np.linalg.norm(g) * sigma * np.sqrt(d))
        order = part.permutation(d)
        y = fwht(x * b)[:, order] * g.astype(x.dtype)
        fwht(y, out=y)
        angles[:, block] = y * s.astype(x.dtype)
    sine, cosine = sincos(angles.reshape(len(x), -1))
    features: NDArray[Any] = np.hstack([cosine, sine])
    features /= np.sqrt(n_blocks * d)
    return features


def handwritten_digits() -> None:
    """Show how features approach the exact kernel on scikit-learn's digits."""
    x, y = load_digits(return_X_y=True)
    x = (x / 16).astype(np.float32)
    train, test, y_train, y_test = train_test_split(x, y, test_size=0.4, random_state=0)
    exact = rbf_kernel(test, test, gamma=1 / (2 * SIGMA**2))
    stream = Stream.from_seed(0)

    print(f"Handwritten digits: {len(train)} + {len(test)} images of 64 pixels, 10 classes\n")
    print("model                            outputs  mean |kernel error|  test error  seconds")

    def show(name: str, outputs: str, kernel_error: str, test_error: float, seconds: float) -> None:
        print(f"{name:32s} {outputs:>7s} {kernel_error:>20s} {test_error:10.1%} {seconds:8.2f}")

    start = time.perf_counter()
    error = 1 - RidgeClassifier().fit(train, y_train).score(test, y_test)
    show("linear", "64", "", error, time.perf_counter() - start)
    for n_blocks in (1, 4, 16, 64):
        start = time.perf_counter()
        z_train = fastfood(train, n_blocks, SIGMA, stream)
        z_test = fastfood(test, n_blocks, SIGMA, stream)
        error = 1 - RidgeClassifier(alpha=0.01).fit(z_train, y_train).score(z_test, y_test)
        seconds = time.perf_counter() - start
        off = float(np.abs(z_test @ z_test.T - exact).mean())
        show("linear on Fastfood features", str(z_test.shape[1]), f"{off:.4f}", error, seconds)
    start = time.perf_counter()
    machine = SVC(gamma=1 / (2 * SIGMA**2), C=10).fit(train, y_train)
    error = 1 - machine.score(test, y_test)
    show("exact kernel SVM", "", "0", error, time.perf_counter() - start)


def parts() -> None:
    """Time each part, and check it against a plain implementation."""
    threads = kernelmill.get_num_threads()
    print(f"\nThe parts (instruction set {runtime.get_isa()}, {threads} threads)\n")
    x = np.random.default_rng(0).standard_normal((1000, 1024)).astype(np.float32)

    def best_time(call: Any) -> tuple[float, Any]:
        best, result = float("inf"), None
        for _ in range(5):
            start = time.perf_counter()
            result = call()
            best = min(best, time.perf_counter() - start)
        return best, result

    def plain_convolution() -> NDArray[Any]:
        return np.fft.irfft(np.fft.rfft(x) * np.fft.rfft(x[::-1]), 1024)

    h = fwht(np.eye(1024, dtype=np.float32))
    rows = {
        "fwht            vs matrix product": (lambda: fwht(x), lambda: x @ h),
        "sincos          vs numpy.sin, cos": (lambda: sincos(x), lambda: (np.sin(x), np.cos(x))),
        "convolution     vs numpy.fft": (lambda: circular_convolve(x, x[::-1]), plain_convolution),
    }
    for name, (ours, theirs) in rows.items():
        (fast, a), (slow, b) = best_time(ours), best_time(theirs)
        assert np.allclose(a, b, atol=1e-3), name
        print(f"{name:36s} {fast * 1e3:7.2f} ms {slow * 1e3:9.2f} ms {slow / fast:7.1f}x")
    draws = Stream.from_seed(0).normals(3)
    print(f"\nThe same on every machine: Stream.from_seed(0).normals(3) = {draws}")


if __name__ == "__main__":
    handwritten_digits()
    parts()
