"""Circular convolution against scipy.fft with the same number of threads."""

from functools import partial
from typing import Any

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from benchmarks.timing import best_times, heading
from kernelmill import get_num_threads
from kernelmill.transforms import circular_convolve


def convolve_by_scipy(x: NDArray[Any], y: NDArray[Any], threads: int) -> Any:
    """Convolve rows by the convolution theorem, in as few operations as scipy.fft allows."""
    spectrum = scipy.fft.rfft(x, workers=threads)
    spectrum *= scipy.fft.rfft(y, workers=threads)
    return scipy.fft.irfft(spectrum, x.shape[-1], workers=threads, overwrite_x=True)


def main() -> None:
    """Time pairs of rows, alone and in batches."""
    for dtype in (np.float32, np.float64):
        name = np.dtype(dtype).name
        heading(f"circular convolution of pairs of rows, {name}: us a pair, and ratio to scipy.fft")
        print("     n    rows threads  kernelmill     scipy  ratio")
        for n, rows in [(64, 1024), (256, 256), (1024, 64), (4096, 1), (4096, 64), (16384, 16)]:
            rng = np.random.default_rng(0)
            x, y = (rng.standard_normal((rows, n)).astype(dtype) for _ in range(2))
            for threads in sorted({1, get_num_threads()}):
                ours = partial(circular_convolve, x, y, n_threads=threads)
                scipys = partial(convolve_by_scipy, x, y, threads)
                scale = np.linalg.norm(x) * np.linalg.norm(y)
                assert np.abs(ours() - scipys()).max() < 1e-5 * scale
                t = best_times({"kernelmill": ours, "scipy": scipys})
                print(
                    f"{n:6d} {rows:6d} {threads:7d} {t['kernelmill'] / rows * 1e6:11.2f} "
                    f"{t['scipy'] / rows * 1e6:9.2f} {t['scipy'] / t['kernelmill']:5.2f}x"
                )


if __name__ == "__main__":
    main()
