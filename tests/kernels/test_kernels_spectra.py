"""Frequencies against the kernels whose spectral measure they claim to come from.

The mean of cos(w . delta) over the frequencies w estimates k(delta); its variance is known, since
cos(a)**2 = (1 + cos(2 a)) / 2. All z-scores of a test must stay below a threshold that, by
Bonferroni, a correct library passes with probability 1 - 1e-6 a test. There are about 130 tests
here, so with a new seed one would fail with probability 1.3e-4; the seeds are fixed.
"""

import functools

import numpy as np
import pytest
from scipy import stats

from kernelmill.kernels import BallConvolution, Gaussian, Matern, Spectrum
from kernelmill.random import Stream

FALSE_ALARM = 1e-6
SIZE = 200_000
DIMS = [1, 2, 50]


def stream_of(*name):
    return Stream.from_seed(5).substream("kernels", *map(str, name))


def differences(dim):
    """Vectors at which kernels of various widths are neither 0 nor 1."""
    directions = stream_of("directions").sphere(4, dim)
    return directions * np.array([0.1, 0.7, 2.0, 0.6 * np.sqrt(dim + 2)])[:, np.newaxis]


def z_scores(kernel, phases, dim, length_scale=1.0):
    """Of the mean cosines of the phases w . delta, one column for each of the differences."""
    deltas = differences(dim)
    origin = np.zeros((1, dim))
    k = kernel(origin, deltas, length_scale=length_scale)[0]
    variance = (1 + kernel(origin, 2 * deltas, length_scale=length_scale)[0]) / 2 - k**2
    return (np.cos(phases).mean(axis=0) - k) / np.sqrt(variance / len(phases))


def phases_of(kernel, dim, n):
    return kernel.frequencies(stream_of("law"), n, dim) @ differences(dim).T


@functools.cache
def phases_of_directions(dim):
    return stream_of("other directions").sphere(SIZE, dim) @ differences(dim).T


def threshold(n_scores):
    return stats.norm.isf(FALSE_ALARM / 2 / n_scores)


@pytest.mark.parametrize("dim", DIMS)
def test_frequencies_have_the_kernel_as_characteristic_function(kernel, dim):
    scores = z_scores(kernel, phases_of(kernel, dim, SIZE if dim < 10 else SIZE // 5), dim)
    assert np.abs(scores).max() < threshold(scores.size), scores


@pytest.mark.parametrize("dim", DIMS)
def test_radii_times_directions_have_the_kernel_as_characteristic_function(radial_kernel, dim):
    radii = radial_kernel.radii(stream_of("radii"), SIZE, dim)
    scores = z_scores(radial_kernel, radii[:, np.newaxis] * phases_of_directions(dim), dim)
    assert np.abs(scores).max() < threshold(scores.size), scores


def test_a_length_scale_off_by_root_two_is_noticed(kernel):
    """The scores above would be far beyond their threshold, for every kernel in some dimension.

    Matern(0.01) is nearly 0 at all distances, hence at any length scale: it takes ten times as many
    draws, which the right length scale passes too.
    """
    dims, n = ((1,), 10 * SIZE) if kernel == Matern(0.01) else ((1, 3), SIZE)
    phases = {dim: phases_of(kernel, dim, n) for dim in dims}
    for length_scale in (1.0, np.sqrt(2), np.sqrt(0.5)):
        largest = max(np.abs(z_scores(kernel, phases[d], d, length_scale)).max() for d in dims)
        if length_scale == 1:
            assert largest < threshold(8)
        else:
            assert largest > 2 * threshold(8)


def test_coordinates_of_mixtures_are_frequencies_of_fewer_dimensions(mixture_kernel):
    """Kolmogorov-Smirnov of the lengths of 3 of 6 coordinates against radii in 3 dimensions."""
    six = mixture_kernel.radii(stream_of("six"), SIZE, 6)[:, np.newaxis]
    six = six * stream_of("directions of six").sphere(SIZE, 6)
    restricted = np.linalg.norm(six[:, :3], axis=1)
    three = mixture_kernel.radii(stream_of("three"), SIZE, 3)
    below = 1e10  # where nothing is cut; conditioning on it is the same on both sides
    test = stats.ks_2samp(np.minimum(restricted, below), np.minimum(three, below), method="asymp")
    assert test.pvalue > FALSE_ALARM


def test_restricting_other_spectra_would_be_noticed():
    """The power of the test above: half the coordinates of a ball are no ball."""
    kernel = BallConvolution(1)
    six = kernel.radii(stream_of("six"), SIZE, 6)[:, np.newaxis]
    six = six * stream_of("directions of six").sphere(SIZE, 6)
    three = kernel.radii(stream_of("three"), SIZE, 3)
    assert not kernel.gaussian_mixture
    assert stats.ks_2samp(np.linalg.norm(six[:, :3], axis=1), three).pvalue < FALSE_ALARM**2


def test_radii_and_directions_are_independent():
    """Correlations of the radius with each coordinate and its square, 6 of them."""
    frequencies = Matern(3.0).frequencies(stream_of("independence"), SIZE, 3)
    radii = np.linalg.norm(frequencies, axis=1)
    coordinates = frequencies / radii[:, np.newaxis]
    ranks = stats.rankdata(radii)
    for column in (*coordinates.T, *coordinates.T**2):
        r = np.corrcoef(ranks, column)[0, 1]
        assert abs(r) * np.sqrt(SIZE) < threshold(6)


@pytest.mark.parametrize("dim", [1, 2, 7])
def test_a_row_depends_on_its_position_alone(kernel, dim):
    stream = stream_of("position")
    whole = kernel.frequencies(stream, 10, dim)
    assert whole.shape == (10, dim)
    assert whole.dtype == np.float64
    np.testing.assert_array_equal(kernel.frequencies(stream, 4, dim, start=3), whole[3:7])
    np.testing.assert_array_equal(kernel.frequencies(stream, 10, dim), whole)
    assert kernel.frequencies(stream, 0, dim).shape == (0, dim)


@pytest.mark.parametrize("dim", [1, 2, 7])
def test_a_radius_depends_on_its_position_alone(radial_kernel, dim):
    stream = stream_of("position of radii")
    whole = radial_kernel.radii(stream, 1000, dim)
    assert whole.shape == (1000,)
    np.testing.assert_array_equal(radial_kernel.radii(stream, 67, dim, start=33), whole[33:100])


def test_streams_differ(kernel):
    first = kernel.frequencies(stream_of("a"), 20, 3)
    assert (kernel.frequencies(stream_of("b"), 20, 3) != first).any()


def test_heavy_tails_end_at_1e12(kernel):
    frequencies = kernel.frequencies(stream_of("tails"), 20_000, 2)
    assert np.isfinite(frequencies).all()
    assert np.abs(frequencies).max() <= 1e12


@pytest.mark.parametrize("nu", [0.0001, 0.01])
def test_tiny_nu_never_gives_infinity(nu):
    radii = Matern(nu).radii(stream_of("tiny"), 10_000, 1)
    assert 9e11 < radii.max() <= 1e12
    assert np.unique(radii).size == radii.size  # a single value for all would be an atom
    assert (radii > 0).all()


def test_gaussian_frequencies_are_the_normals_of_the_stream():
    stream = stream_of("normals")
    np.testing.assert_array_equal(Gaussian().frequencies(stream, 5, 3), stream.normals((5, 3)))


def test_the_frequencies_of_an_array_are_its_rows():
    rows = np.arange(12.0).reshape(4, 3)
    kernel = Spectrum(rows)
    np.testing.assert_array_equal(kernel.frequencies(stream_of(), 2, 3, start=1), rows[1:3])
    deltas = np.random.default_rng(0).normal(size=(5, 3))
    expected = np.cos(deltas @ rows.T).mean(axis=1)
    np.testing.assert_allclose(kernel(np.zeros((1, 3)), deltas)[0], expected, atol=1e-14)
