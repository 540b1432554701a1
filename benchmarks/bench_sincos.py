"""Sine and cosine together against numpy's sine and cosine, one thread, and against a copy."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.timing import best_times, heading
from kernelmill.transforms import sincos


def sincos_by_numpy(x: NDArray[Any], s: NDArray[Any], c: NDArray[Any]) -> None:
    """Fill s and c by two ufuncs."""
    np.sin(x, out=s)
    np.cos(x, out=c)


def copy_twice(x: NDArray[Any], s: NDArray[Any], c: NDArray[Any]) -> None:
    """Read x and write s and c: the limit that memory sets."""
    np.copyto(s, x)
    np.copyto(c, x)


def main() -> None:
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


if __name__ == "__main__":
    main()
