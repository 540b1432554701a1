"""Derives the constants of native/random/elementary.hpp and prints them as they stand there.

Every polynomial is the Chebyshev interpolant of its function on its interval, computed with 60
digits and rounded to double afterwards. The comment above each line gives the largest error of
the rounded polynomial, relative to the function the library evaluates with it.

Run: python tools/derive_random_constants.py   (needs mpmath)
"""

from __future__ import annotations

from collections.abc import Callable

from mpmath import mp, mpf

mp.dps = 60

Function = Callable[[mpf], mpf]


def chebyshev_interpolant(function: Function, low: mpf, high: mpf, terms: int) -> list[mpf]:
    """Coefficients c[0] + c[1] x + ... that meet `function` at the Chebyshev nodes."""
    nodes = [
        (low + high) / 2 + (high - low) / 2 * mp.cos((2 * k + 1) * mp.pi / (2 * terms))
        for k in range(terms)
    ]
    matrix = mp.matrix([[node**power for power in range(terms)] for node in nodes])
    values = mp.matrix([function(node) for node in nodes])
    return list(mp.lu_solve(matrix, values))


def rounded(value: mpf) -> float:
    return float(mp.nstr(value, 40))


def polynomial(coefficients: list[float], x: mpf) -> mpf:
    return mp.polyval([mpf(c) for c in reversed(coefficients)], x)


def largest(error: Function, low: mpf, high: mpf, points: int = 801) -> float:
    step = (high - low) / (points - 1)
    return float(max(abs(error(low + k * step)) for k in range(points)))


def hexadecimal(value: float) -> str:
    """Shortest C++ hexadecimal literal of a double."""
    mantissa, exponent = value.hex().split("p")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{mantissa}p{int(exponent)}"


def show(name: str, coefficients: list[float], error: float) -> None:
    print(f"// relative error {error:.1e}")
    print(f"{name}: " + ", ".join(hexadecimal(c) for c in coefficients))


def logarithm() -> None:
    # log((1 + s) / (1 - s)) = 2 s + s z R(z) with z = s^2 and m = (1 + s) / (1 - s) in
    # [sqrt(1/2), sqrt(2)), so |s| <= (sqrt(2) - 1) / (sqrt(2) + 1).
    bound = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * mpf("1.0001")

    def exact(z: mpf) -> mpf:
        if z < mpf(10) ** -12:
            return mpf(2) / 3 + 2 * z / 5 + 2 * z * z / 7
        s = mp.sqrt(z)
        return (2 * mp.atanh(s) / s - 2) / z

    r = [rounded(c) for c in chebyshev_interpolant(exact, mpf(0), bound, 7)]
    show("log_r", r, largest(lambda z: z * (polynomial(r, z) - exact(z)) / 2, mpf(0), bound))


def exponential() -> None:
    # exp(r) = 1 + (r + r^2 Q(r)) for |r| <= log(2) / 2.
    bound = mp.log(2) / 2 * mpf("1.0001")

    def exact(r: mpf) -> mpf:
        if abs(r) < mpf(10) ** -15:
            return mpf(1) / 2 + r / 6 + r * r / 24
        return (mp.exp(r) - 1 - r) / (r * r)

    q = [rounded(c) for c in chebyshev_interpolant(exact, -bound, bound, 11)]
    error = largest(lambda r: r * r * (polynomial(q, r) - exact(r)) / mp.exp(r), -bound, bound)
    show("exp_q", q, error)


def half_turn() -> None:
    # sin(pi x) = x (pi + z S(z)) and cos(pi x) = 1 + z C(z) with z = x^2, for 0 <= x <= 1/4.
    bound = mpf(1) / 16

    def sine(z: mpf) -> mpf:
        if z < mpf(10) ** -15:
            return -(mp.pi**3) / 6 + z * mp.pi**5 / 120
        x = mp.sqrt(z)
        return (mp.sin(mp.pi * x) / x - mp.pi) / z

    def cosine(z: mpf) -> mpf:
        if z < mpf(10) ** -15:
            return -(mp.pi**2) / 2 + z * mp.pi**4 / 24
        return (mp.cos(mp.pi * mp.sqrt(z)) - 1) / z

    s = [rounded(c) for c in chebyshev_interpolant(sine, mpf(0), bound, 7)]
    c = [rounded(c) for c in chebyshev_interpolant(cosine, mpf(0), bound, 7)]
    show("sin_s", s, largest(lambda z: z * (polynomial(s, z) - sine(z)) / 2, mpf(0), bound))
    show("cos_c", c, largest(lambda z: z * (polynomial(c, z) - cosine(z)), mpf(0), bound))


def split(name: str, value: mpf, bits: int) -> None:
    # value = high + low; `high` has `bits` bits, so that small integers times it are exact.
    exponent = int(mp.floor(mp.log(value, 2)))
    scale = mpf(2) ** (bits - 1 - exponent)
    high = mp.nint(value * scale) / scale
    print(f"{name}_high: {hexadecimal(rounded(high))}")
    print(f"{name}_low: {hexadecimal(rounded(value - high))}")


def main() -> None:
    split("ln2", mp.log(2), 40)  # the binary exponents it is multiplied by have at most 11 bits
    split("pi", mp.pi, 53)
    print(f"inverse_ln2: {hexadecimal(rounded(1 / mp.log(2)))}")
    print(f"sqrt2: {hexadecimal(rounded(mp.sqrt(2)))}")
    logarithm()
    exponential()
    half_turn()


if __name__ == "__main__":
    main()
