"""The elementary functions under the distributions: their accuracy, constants and independence of
the C library.
"""

import re
import subprocess
import sys
from pathlib import Path

import mpmath
import numpy as np
import pytest
from scipy import special

from kernelmill import _native
from kernelmill.random import normal_quantile

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "native" / "random").glob("*.?pp"))
COUNT = 1500


def evaluated(name, x):
    out = np.empty_like(x)
    _native.elementary(name, x, out, 1)
    return out


def largest_error(name, exact, x):
    """In units in the last place of the exact value."""
    errors = []
    with mpmath.workdps(40):
        for argument, result in zip(x.tolist(), evaluated(name, x).tolist(), strict=True):
            truth = exact(mpmath.mpf(argument))
            errors.append(abs(mpmath.mpf(result) - truth) / float(np.spacing(abs(float(truth)))))
    return max(errors)


def spread(low, high):
    return np.random.default_rng(0).uniform(low, high, COUNT)


@pytest.mark.parametrize(
    "x",
    [
        np.exp(spread(-744, 709)),
        spread(0.5, 2),
        1 + spread(-1e-3, 1e-3),
        1 + spread(-1e-9, 1e-9),
        np.array([5e-324, 2.0**-1022, 2.0**-53, 1 - 2.0**-53, 1 + 2.0**-52, 1.7e308]),
        np.nextafter(np.sqrt([0.5, 0.5, 2, 2, 8]), [0, 1, 1, 2, 3]),
    ],
)
def test_log(x):
    assert largest_error("log", mpmath.log, x) < 1


@pytest.mark.parametrize("x", [spread(-708, 709.7), spread(-1, 1), spread(-1e-9, 1e-9)])
def test_exp(x):
    assert largest_error("exp", mpmath.exp, x) < 1


def test_exact_values():
    assert evaluated("log", np.array([1.0])) == 0
    x = np.array([0.0, -0.0, -np.inf, -800.0, -746.0, 800.0, np.inf])
    np.testing.assert_array_equal(evaluated("exp", x), [1, 1, 0, 0, 0, np.inf, np.inf])
    assert evaluated("tan_pi", np.array([0.25])) == 1


def test_exp_reaches_the_smallest_numbers():
    # Subnormal numbers have fewer bits; one unit of the last one is allowed here.
    assert largest_error("exp", mpmath.exp, spread(-745, -708)) < 1.5


@pytest.mark.parametrize("x", [spread(0, 0.5), np.exp(spread(-300, -1)), 0.5 - spread(0, 1e-3)])
def test_tan_pi(x):
    assert largest_error("tan_pi", lambda t: mpmath.tan(mpmath.pi * t), x) < 3.5


def exact_quantile(p):
    # Newton's steps from scipy's value; each doubles the digits.
    x = mpmath.mpf(float(special.ndtri(float(p))))
    for _ in range(3):
        x -= (mpmath.ncdf(x) - p) / mpmath.npdf(x)
    return x


@pytest.mark.parametrize("p", [spread(0, 0.5), spread(0.5, 1), np.exp(spread(-700, -1))])
def test_normal_quantile(p):
    p = p[:300]
    with mpmath.workdps(40):
        truth = np.array([float(exact_quantile(mpmath.mpf(v))) for v in p.tolist()])
    np.testing.assert_allclose(normal_quantile(p), truth, rtol=2e-15)


def test_normal_quantile_is_odd_and_ordered():
    p = np.linspace(0, 0.5, 100_001)
    x = normal_quantile(p)
    assert x[0] == -np.inf
    assert x[-1] == 0
    assert (np.diff(x[1:]) > 0).all()
    exact = np.arange(1, 2**10) / 2**10  # 1 - p is exact
    np.testing.assert_array_equal(normal_quantile(1 - exact), -normal_quantile(exact))
    # Where the pieces of the approximation meet, and p changes by its last bit.
    for seam in (0.075, 0.925, np.exp(-25)):
        p = seam + np.arange(-1000, 1001) * np.spacing(seam)
        steps = np.diff(normal_quantile(p))
        assert steps.min() > -4 * np.spacing(np.abs(normal_quantile(seam)))


def test_normal_quantile_of_shapes():
    p = np.linspace(0.1, 0.9, 12).reshape(3, 4)
    np.testing.assert_array_equal(normal_quantile(p.T), normal_quantile(p).T)
    assert normal_quantile(0.5).shape == ()
    assert normal_quantile(0.5) == 0


def test_the_constants_are_those_of_the_derivation():
    script = ROOT / "tools" / "derive_random_constants.py"
    printed = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=True
    ).stdout
    header = (ROOT / "native" / "random" / "elementary.hpp").read_text()
    constants = {}
    for name, values in re.findall(r"constexpr double (\w+)(?:\[\])? = ([^;]*);", header):
        constants[name] = re.findall(r"-?0x[0-9a-f.]+p-?\d+", values)
    lines = [line.split(": ") for line in printed.splitlines() if not line.startswith("//")]
    assert {name: values.split(", ") for name, values in lines} == constants


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_no_function_of_the_c_library(source):
    # The square root is exact by IEEE 754; nothing else of <cmath> is.
    code = re.sub(r"//[^\n]*", "", source.read_text())
    names = (
        r"(?:log|log2|log10|log1p|exp|exp2|expm1|pow|sin|cos|tan|atan|erf|lgamma|tgamma|cbrt|fma)"
    )
    assert not re.search(rf"std::{names}\s*\(", code)
    assert not re.search(r"__builtin_", code)
    if source.name == "elementary.hpp":  # defines log and exp, each once, and calls neither
        assert len(re.findall(rf"(?<![\w:]){names}\(", code)) == 2
    else:
        assert not re.search(rf"(?<![\w:]){names}f?\(", code)
    assert len(SOURCES) >= 9
