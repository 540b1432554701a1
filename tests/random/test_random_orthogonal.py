"""Random orthogonal matrices: orthogonal, uniform in the sense of Haar, the same bits everywhere.

The statistics are 44 assertions at level 1e-4 with fixed seeds: with new ones, a correct library
would fail somewhere in 0.4 % of the cases.
"""

import numpy as np
import pytest
from scipy import stats

from kernelmill.random import Stream

LEVEL = 1e-4
COUNT = 5_000
DIMS = [2, 3, 8, 17]


def matrices(dim):
    stream = Stream.from_seed(31).substream("haar", dim)
    return np.array([stream.orthogonal(dim, index=i) for i in range(COUNT)])


# Drawn before a test chooses an instruction set.
USUAL = {dim: Stream.from_seed(35).orthogonal(dim) for dim in (5, 8, 65, 200)}
DRAWN = {dim: matrices(dim) for dim in DIMS}


def assert_mean(values, mean, variance):
    z = (np.mean(values) - mean) / np.sqrt(variance / len(values))
    assert abs(z) < stats.norm.isf(LEVEL / 2), z


def assert_coordinate(x, dim):
    """Distributed as a coordinate of a uniform direction."""
    assert stats.kstest(x**2, stats.beta(0.5, (dim - 1) / 2).cdf).pvalue > LEVEL
    assert stats.binomtest(int((x > 0).sum()), x.size, 0.5).pvalue > LEVEL


@pytest.mark.parametrize("dim", [1, 2, 3, 7, 8, 9, 16, 17, 100, 257])
def test_rows_and_columns_are_orthonormal(dim):
    q = Stream.from_seed(30).orthogonal(dim)
    assert q.shape == (dim, dim)
    assert q.dtype == np.float64
    assert abs(q @ q.T - np.eye(dim)).max() <= 1e-13 * dim
    assert abs(q.T @ q - np.eye(dim)).max() <= 1e-13 * dim


@pytest.mark.parametrize("dim", DIMS)
def test_entries_are_coordinates_of_directions(dim):
    q = DRAWN[dim]
    assert_coordinate(q[:, 0, 0], dim)
    assert_coordinate(q[:, -1, -1], dim)
    assert_coordinate(q[:, -1, 0], dim)
    # Between directions that no axis is close to: this mixes all columns.
    a, b = np.ones(dim) / np.sqrt(dim), np.arange(1.0, dim + 1)
    assert_coordinate(q @ (b / np.linalg.norm(b)) @ a, dim)


@pytest.mark.parametrize("dim", DIMS)
def test_determinants_have_both_signs(dim):
    positive = int((np.linalg.det(DRAWN[dim]) > 0).sum())
    assert stats.binomtest(positive, COUNT, 0.5).pvalue > LEVEL


@pytest.mark.parametrize("dim", [8, 17])
def test_traces(dim):
    # The moments of the trace up to the fourth are those of a standard normal variable: Diaconis &
    # Shahshahani, "On the eigenvalues of random matrices" (1994).
    trace = np.trace(DRAWN[dim], axis1=1, axis2=2)
    assert_mean(trace, 0, 1)
    assert_mean(trace**2, 1, 2)


def test_matrices_of_neighbouring_indices_are_unrelated():
    q = DRAWN[8]
    products = (q[:-1] * q[1:]).sum(axis=(1, 2))  # the trace of a uniform matrix again
    assert_mean(products[::2], 0, 1)
    assert_mean(products[::2] ** 2, 1, 2)
    assert_mean(q[:, 0, 0] * Stream.from_seed(32).normals(COUNT), 0, 1 / 8)


def test_one_dimension_is_a_sign():
    drawn = [Stream.from_seed(33).orthogonal(1, index=i).item() for i in range(1000)]
    assert set(drawn) == {-1.0, 1.0}
    assert stats.binomtest(drawn.count(1.0), 1000, 0.5).pvalue > LEVEL


@pytest.mark.parametrize("dim", USUAL)
def test_bits_depend_on_neither_threads_nor_instruction_set(isa, dim):
    for n_threads in (1, 3):
        drawn = Stream.from_seed(35).orthogonal(dim, n_threads=n_threads)
        assert drawn.tobytes() == USUAL[dim].tobytes()


def test_errors():
    stream = Stream.from_seed(0)
    for dim in (0, -1):
        with pytest.raises(ValueError, match=f"dim must be at least 1, got {dim}"):
            stream.orthogonal(dim)
    with pytest.raises(TypeError, match=r"dim must be an integer, got 2\.0"):
        stream.orthogonal(2.0)
    with pytest.raises(ValueError, match="index must be between 0 and"):
        stream.orthogonal(2, index=-1)
    with pytest.raises(ValueError, match="n_threads"):
        stream.orthogonal(2, n_threads=0)
