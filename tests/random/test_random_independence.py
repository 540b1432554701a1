"""Neighbouring streams, positions and distributions are independent.

Tests at level 1e-4 with fixed seeds; see test_random_distributions.py for the sum.
"""

import itertools

import numpy as np
import pytest
from scipy import stats

from kernelmill.random import Stream

LEVEL = 1e-4
SIZE = 100_000


def assert_uncorrelated(x, y):
    z = np.mean(x * y) / np.std(x * y) * np.sqrt(x.size)
    assert abs(z) < stats.norm.isf(LEVEL / 2), z


def assert_independent_uniforms(u, v, cells=16):
    table, _, _ = np.histogram2d(u, v, bins=cells, range=[[0, 1], [0, 1]])
    assert stats.chisquare(table.ravel()).pvalue > LEVEL


NEIGHBOURS = {
    "seeds": (Stream.from_seed(0), Stream.from_seed(1)),
    "keys": (Stream(0), Stream(1)),
    "high key bits": (Stream(0), Stream(1 << 127)),
    "blocks": (Stream.from_seed(0).substream("b", 6), Stream.from_seed(0).substream("b", 7)),
    "parent": (Stream.from_seed(0), Stream.from_seed(0).substream(0)),
}


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_neighbouring_streams(name):
    a, b = NEIGHBOURS[name]
    assert_independent_uniforms(a.uniforms(SIZE), b.uniforms(SIZE))
    assert_uncorrelated(a.normals(SIZE), b.normals(SIZE))
    assert_uncorrelated(a.signs(SIZE), b.signs(SIZE))


def as_uniforms(stream):
    return {
        "signs": (stream.signs((SIZE, 4)) > 0) @ [0.5, 0.25, 0.125, 0.0625] + 1 / 32,
        "uniforms": stream.uniforms(SIZE),
        "normals": stats.norm.cdf(stream.normals(SIZE)),
        "gammas": stats.gamma.cdf(stream.gammas(SIZE, 2), 2),
        "chis": stats.chi.cdf(stream.chis(SIZE, 4), 4),
        "cauchys": stats.cauchy.cdf(stream.cauchys(SIZE)),
        "students": stats.t.cdf(stream.students(SIZE, 3), 3),
        "sphere": (stream.sphere(SIZE, 3)[:, 0] + 1) / 2,
        "ball": np.linalg.norm(stream.ball(SIZE, 3), axis=1) ** 3,
        "integers": (stream.integers(SIZE, 16) + 0.5) / 16,
    }


def test_distributions_of_one_stream():
    uniforms = as_uniforms(Stream.from_seed(11))
    for one, other in itertools.combinations(uniforms, 2):
        assert_independent_uniforms(uniforms[one], uniforms[other])


@pytest.mark.parametrize("lag", [1, 2, 3, 4, 5, 8, 64])
def test_positions_of_one_stream(lag):
    stream = Stream.from_seed(12)
    u, z = stream.uniforms(SIZE), stream.normals(SIZE)
    assert_independent_uniforms(u[:-lag], u[lag:])
    assert_uncorrelated(z[:-lag], z[lag:])
    assert_uncorrelated(z[:-lag] ** 2 - 1, z[lag:] ** 2 - 1)
    assert_uncorrelated(stream.signs(SIZE)[:-lag], stream.signs(SIZE)[lag:])


def test_both_ingredients_of_student_are_independent():
    # The size of t tells the chi below it, the sign only the normal above it.
    t = Stream.from_seed(13).students(SIZE, 1)
    neighbours = np.sign(t[:-1]), np.sign(np.abs(t[1:]) - 1)
    assert_uncorrelated(*neighbours)
    assert_uncorrelated(np.sign(t), np.sign(np.abs(t) - 1))


def test_rows_and_indices_are_independent():
    stream = Stream.from_seed(14)
    rows = stream.sphere(SIZE, 5)
    assert_uncorrelated(rows[:-1, 0], rows[1:, 0])
    assert_uncorrelated(rows[:-1, 0], rows[1:, 1])
    a, b = stream.permutation(SIZE, index=0), stream.permutation(SIZE, index=1)
    assert_uncorrelated(a - a.mean(), b - b.mean())
    n = stream.permutation(SIZE)
    assert_uncorrelated(n[:-1] - n.mean(), n[1:] - n.mean())
