"""Circular convolution against scipy.fft with the same number of threads."""

import numpy as np
import scipy.fft

from benchmarks.timing import best_times, heading
from kernelmill import get_num_threads
from kernelmill.transforms import circular_convolve


def main() -> None:
    """Time pairs of rows, alone and in batches."""
    for dtype in (np.float32, np.float64):
        name = np.dtype(dtype).name
        heading(f"circular convolution of pairs of rows, {name}: us a pair, and ratio to scipy.fft")
        print("     n    rows threads  kernelmill     scipy  ratio")
        for n, rows in [(64, 1024), (256, 256), (1024, 64), (4096, 1), (4096, 64), (16384, 16)]:
            rng = np.random.default_rng(0)
            x, y = (rng.standard_normal((rows, n)).astype(dtype) for _ in range(2))
            out = np.empty_like(x)
            for threads in sorted({1, get_num_threads()}):

                def ours(x=x, y=y, out=out, threads=threads):  # type: ignore[no-untyped-def]
                    return circular_convolve(x, y, n_threads=threads)

                def scipys(x=x, y=y, n=n, threads=threads):  # type: ignore[no-untyped-def]
                    spectrum = scipy.fft.rfft(x, workers=threads)
                    spectrum *= scipy.fft.rfft(y, workers=threads)
                    return scipy.fft.irfft(spectrum, n, workers=threads, overwrite_x=True)

                scale = np.linalg.norm(x) * np.linalg.norm(y)
                assert np.abs(ours() - scipys()).max() < 1e-5 * scale
                t = best_times({"kernelmill": ours, "scipy": scipys})
                print(
                    f"{n:6d} {rows:6d} {threads:7d} {t['kernelmill'] / rows * 1e6:11.2f} "
                    f"{t['scipy'] / rows * 1e6:9.2f} {t['scipy'] / t['kernelmill']:5.2f}x"
                )


if __name__ == "__main__":
    main()
