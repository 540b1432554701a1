"""Walsh-Hadamard transforms, circular convolutions, sine and cosine compared with their peers."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from benchmarks import prototypes
from benchmarks.timing import best_times, heading
from kernelmill import fwht, get_num_threads
from kernelmill.transforms import circular_convolve, sincos

# Elements per call. Short rows go in batches that stay in the second-level cache.
BATCH = 1 << 16


def single_thread() -> None:
    """Time 2**6 ... 2**20 on one thread, in place."""
    heading("fwht, one thread, in place: Gflop/s, and ratios of time in one run")
    library = prototypes.load()
    print("   n     rows  float32  vs prototype  float64/float32  copies of the rows")
    for log2_n in range(6, 21):
        n = 1 << log2_n
        rows = max(1, BATCH >> log2_n)
        half = max(1, rows // 2)  # The same number of bytes, except for one row.
        x, y = np.zeros((rows, n), np.float32), np.zeros((half, n), np.float64)
        z = np.empty_like(x)
        contenders: dict[str, Callable[[], object]] = {
            "float32": partial(fwht, x, out=x, n_threads=1),
            "float64": partial(fwht, y, out=y, n_threads=1),
            "copy": partial(np.copyto, z, x),
        }
        if library is not None:
            check = np.random.default_rng(0).standard_normal((rows, n)).astype(np.float32)
            theirs = check.copy()
            prototypes.fwht_rows(library, theirs, log2_n)
            np.testing.assert_allclose(fwht(check), theirs, atol=1e-5 * n)
            contenders["prototype"] = partial(prototypes.fwht_rows, library, x, log2_n)
        t = best_times(contenders)
        rate = rows * n * log2_n / t["float32"] / 1e9
        ratio = f"{t['prototype'] / t['float32']:8.2f}x" if library is not None else "      n/a"
        print(
            f"2^{log2_n:<3d} {rows:6d} {rate:8.1f}  {ratio:>12s} "
            f"{t['float64'] / half / (t['float32'] / rows):14.2f} {t['float32'] / t['copy']:18.1f}"
        )


def two_threads() -> None:
    """Time batches on one and two threads."""
    heading("fwht, float32: two threads against one")
    for rows, n in [(64, 1024), (256, 1024), (16, 4096), (64, 4096), (1, 1 << 20), (1, 1 << 22)]:
        x = np.zeros((rows, n), np.float32)
        t = best_times(
            {
                "one": partial(fwht, x, out=x, n_threads=1),
                "two": partial(fwht, x, out=x, n_threads=2),
            },
            rounds=25,
        )
        print(
            f"{rows:5d} x {n:<8d} {x.nbytes / 2**20:7.2f} MiB  {t['one'] * 1e6:9.1f} us -> "
            f"{t['two'] * 1e6:9.1f} us  {t['one'] / t['two']:.2f}x"
        )


def call_overhead() -> None:
    """Time calls with hardly any computation."""
    heading("call overhead from Python: a row of 8 elements")
    x = np.zeros(8, np.float32)
    y = np.zeros_like(x)
    t = best_times(
        {
            "fwht(x)": lambda: fwht(x),
            "fwht(x, out=y)": lambda: fwht(x, out=y),
            "numpy.cos(x, out=y), for comparison": lambda: np.cos(x, out=y),
        }
    )
    for name, seconds in t.items():
        print(f"{name:40s} {seconds * 1e6:6.2f} us")


def bench_fwht() -> None:
    """Run the tables of the Walsh-Hadamard transform."""
    single_thread()
    two_threads()
    call_overhead()


def convolve_by_scipy(x: NDArray[Any], y: NDArray[Any], threads: int) -> Any:
    """Convolve rows by the convolution theorem, in as few operations as scipy.fft allows."""
    spectrum = scipy.fft.rfft(x, workers=threads)
    spectrum *= scipy.fft.rfft(y, workers=threads)
    return scipy.fft.irfft(spectrum, x.shape[-1], workers=threads, overwrite_x=True)


def bench_convolution() -> None:
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


def sincos_by_numpy(x: NDArray[Any], s: NDArray[Any], c: NDArray[Any]) -> None:
    """Fill s and c by two ufuncs."""
    np.sin(x, out=s)
    np.cos(x, out=c)


def copy_twice(x: NDArray[Any], s: NDArray[Any], c: NDArray[Any]) -> None:
    """Read x and write s and c, the limit of the memory."""
    np.copyto(s, x)
    np.copyto(c, x)


def bench_sincos() -> None:
    """Time arrays in cache and in memory."""
    heading("sincos, one thread: ns per element, and ratio to numpy.sin + numpy.cos")
    print("dtype    elements  largest  kernelmill   numpy  ratio  two copies")
    for dtype in (np.float32, np.float64):
        for count, largest in [(4096, 10.0), (4096, 1e5), (1 << 22, 10.0)]:
            x = np.random.default_rng(0).uniform(-largest, largest, count).astype(dtype)
            s, c = np.empty_like(x), np.empty_like(x)
            sine, cosine = sincos(x)
            tolerance = 4 * np.finfo(dtype).eps
            assert np.abs(sine - np.sin(x)).max() < tolerance
            assert np.abs(cosine - np.cos(x)).max() < tolerance
            t = best_times(
                {
                    "kernelmill": partial(sincos, x, out=(s, c), n_threads=1),
                    "numpy": partial(sincos_by_numpy, x, s, c),
                    "copies": partial(copy_twice, x, s, c),
                }
            )
            ns = {name: seconds / count * 1e9 for name, seconds in t.items()}
            print(
                f"{np.dtype(dtype).name} {count:9d} {largest:8.0e} {ns['kernelmill']:11.2f} "
                f"{ns['numpy']:7.2f} {ns['numpy'] / ns['kernelmill']:5.1f}x {ns['copies']:11.2f}"
            )
