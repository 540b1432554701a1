"""Reprint the constants of native/kernels/sincos.hpp and native/kernels/feature_sincos.hpp.

    python tools/derive_sincos_constants.py        # needs mpmath

sin r = r + r^3 P(r^2) and cos r = 1 - r^2/2 + r^4 Q(r^2) on |r| <= pi/4. P and Q interpolate at
Chebyshev nodes, which is within a small factor of the best polynomial of that degree.
pi/2 is cut into parts: full-width ones for targets with a fused multiply-add, which rounds x - q A
only once; short ones, whose product with the integer q is exact, for targets without.

The sines and cosines of float32 features are of the same form on |r| <= pi/2, with a term more.
"""

import mpmath as mp
import numpy as np

mp.mp.prec = 300


def interpolant(f, degree, end):
    """Coefficients, lowest first, of the Chebyshev interpolant of f on [0, end]."""
    n = degree + 1
    nodes = [end / 2 * (1 + mp.cos(mp.pi * (2 * k + 1) / (2 * n))) for k in range(n)]
    vandermonde = mp.matrix([[z**j for j in range(n)] for z in nodes])
    return mp.lu_solve(vandermonde, mp.matrix([f(z) for z in nodes]))


def parts(value, bits, count):
    """`value` as a sum of `count` numbers of `bits[i]` significant bits, each rounded down.

    Rounded down, all parts are positive, and -0 stays -0 when q = 0 times each is taken off.
    """
    out = []
    for i in range(count):
        exponent = mp.floor(mp.log(abs(value), 2)) + 1 - bits[i]
        part = mp.floor(value / mp.mpf(2) ** exponent) * mp.mpf(2) ** exponent
        out.append(part)
        value -= part
    return out


def show(name, values, dtype):
    text = ", ".join(float(dtype(float(v))).hex() for v in values)
    print(f"{name}: {text}")


end = (mp.pi / 4) ** 2


def sine_rest(z):
    r = mp.sqrt(z)
    return (mp.sin(r) - r) / (r * z)


def cosine_rest(z):
    return (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2


for dtype, degree, width in ((np.float32, 2, 24), (np.float64, 5, 53)):
    print(dtype.__name__)
    show("  sine P", interpolant(sine_rest, degree, end), dtype)
    show("  cosine Q", interpolant(cosine_rest, degree, end), dtype)
    show("  pi/2 in full parts", parts(mp.pi / 2, [width] * 3, 3), dtype)
    show("  2/pi", [2 / mp.pi], dtype)
show("pi/2, float64 for float32 without fma", parts(mp.pi / 2, [30, 53], 2), np.float64)
show("pi/2, float64 without fma", parts(mp.pi / 2, [23, 23, 23, 23, 53], 5), np.float64)
half_turn = (mp.pi / 2) ** 2 * (1 + mp.mpf(2) ** -10)  # q is rounded, so |r| may be a little more
print("features, float32")
show("  sine P", interpolant(sine_rest, 3, half_turn), np.float32)
show("  cosine Q", interpolant(cosine_rest, 3, half_turn), np.float32)
show("  pi in full parts", parts(mp.pi, [24] * 2, 2), np.float32)
show("  1/pi", [1 / mp.pi], np.float32)
