"""Scratch memory is a few lines per thread, regardless of the number of rows."""

import subprocess
import sys
import textwrap

PROLOGUE = """
    import numpy as np
    from kernelmill import fwht
    from kernelmill.transforms import circular_convolve, sincos

    def peak():
        with open("/proc/self/status") as status:
            return next(int(l.split()[1]) for l in status if l.startswith("VmHWM")) / 1024

    rows, n = 1 << 15, 1024
    x = np.ones((rows, n), np.float32)  # 128 MiB
    y = np.ones((rows, n), np.float32)
    out = np.full((rows, n), 2, np.float32)  # touched, unlike zeros
    small = np.ones((64, n), np.float32)
    fwht(small, n_threads=2), sincos(small), circular_convolve(small, small)  # start everything
    circular_convolve(small[:, :1000], small[0, :1000])  # loads scipy.fft
    before = peak()
"""

CALLS = {
    "fwht": "fwht(x, out=out, n_threads=2)",
    "fwht in place": "fwht(x, out=x, n_threads=2)",
    "fwht of columns": "fwht(x, axis=0, out=out, n_threads=2)",
    "fwht of Fortran order": "fwht(x.T, axis=0, out=out.T, n_threads=2)",
    "fwht of reversed rows": "fwht(x[:, ::-1], out=out, n_threads=2)",
    "sincos": "sincos(x, out=(y, out), n_threads=2)",
    "circular_convolve": "circular_convolve(x, y, out=out, n_threads=2)",
    "circular_convolve broadcast": "circular_convolve(x, y[0], out=out, n_threads=2)",
    "circular_convolve of 1000": "circular_convolve(x[:, :1000], y[0, :1000], out=out[:, :1000])",
}


def test_scratch_is_small():
    steps = [f"{call}\nprint(peak() - before)\n" for call in CALLS.values()]
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROLOGUE) + "".join(steps)],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    # The peak never falls, so a number belongs to the first call that reaches it. A copy of the
    # input would be 128 MiB. Columns of 32768 in tiles of 8 (16 with AVX-512) take 1 MiB (2 MiB)
    # per thread; the route through scipy transforms a few MiB at a time.
    peaks = dict(zip(CALLS, map(float, result.stdout.split()), strict=True))
    assert max(peaks.values()) < 16, peaks
