"""Sine and cosine together against numpy's sine and cosine, one thread, and against a copy."""

import numpy as np

from benchmarks.timing import best_times, heading
from kernelmill.transforms import sincos


def main() -> None:
    """Time arrays in cache and in memory."""
    heading("sincos, one thread: ns an element, and ratio to numpy.sin + numpy.cos")
    print("dtype    elements  largest  kernelmill   numpy  ratio  two copies")
    for dtype in (np.float32, np.float64):
        for count, largest in [(4096, 10.0), (4096, 1e5), (1 << 22, 10.0)]:
            x = np.random.default_rng(0).uniform(-largest, largest, count).astype(dtype)
            s, c = np.empty_like(x), np.empty_like(x)

            def numpys(x=x, s=s, c=c):  # type: ignore[no-untyped-def]
                np.sin(x, out=s)
                np.cos(x, out=c)

            def copies(x=x, s=s, c=c):  # type: ignore[no-untyped-def]
                np.copyto(s, x)
                np.copyto(c, x)

            sine, cosine = sincos(x)
            tolerance = 4 * np.finfo(dtype).eps
            assert np.abs(sine - np.sin(x)).max() < tolerance
            assert np.abs(cosine - np.cos(x)).max() < tolerance
            t = best_times(
                {
                    "kernelmill": lambda x=x, s=s, c=c: sincos(x, out=(s, c), n_threads=1),
                    "numpy": numpys,
                    "copies": copies,
                }
            )
            ns = {name: seconds / count * 1e9 for name, seconds in t.items()}
            print(
                f"{np.dtype(dtype).name} {count:9d} {largest:8.0e} {ns['kernelmill']:11.2f} "
                f"{ns['numpy']:7.2f} {ns['numpy'] / ns['kernelmill']:5.1f}x {ns['copies']:11.2f}"
            )


if __name__ == "__main__":
    main()
