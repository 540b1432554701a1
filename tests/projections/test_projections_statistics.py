"""Projections against slow explicit matrices, and the distribution of their entries.

Every statistical test compares a p-value, or a z-score with its Bonferroni threshold, with a
probability of false alarm of 1e-6. There are some 100 of them here, so with new seeds one would
fail with probability 1e-4; the seeds are fixed. Where a wrong projection is easy to think of, a
test shows that it would be noticed.
"""

import dataclasses
import functools

import numpy as np
import pytest
from scipy import fft, linalg, stats

from kernelmill import Fastfood
from kernelmill.kernels import BallConvolution, Gaussian, Matern
from kernelmill.projections import (
    DenseProjection,
    FeatureLayout,
    FourierProjection,
    HadamardProjection,
)
from kernelmill.random import Stream

FALSE_ALARM = 1e-6


def hadamard(dim, n, *, structure="hadamard", stratified=True, kernel=None, scale=1.0, seed=0):
    return HadamardProjection(
        kernel=kernel or Gaussian(),
        length_scale=scale,
        dim=dim,
        n_frequencies=n,
        stream=Stream.from_seed(seed).substream("projection statistics"),
        structure=structure,
        stratified=stratified,
    )


def fourier(dim, n, *, structure, stratified=True, seed=0):
    return FourierProjection(
        kernel=Gaussian(),
        length_scale=1.5,
        dim=dim,
        n_frequencies=n,
        stream=Stream.from_seed(seed).substream("projection statistics"),
        structure=structure,
        stratified=stratified,
    )


def dense(dim, n, *, sampling, kernel=None, scale=1.0, seed=0):
    return DenseProjection(
        kernel=kernel or Gaussian(),
        length_scale=scale,
        dim=dim,
        n_frequencies=n,
        stream=Stream.from_seed(seed).substream("projection statistics"),
        sampling=sampling,
        stored=False,
    )


def project(projection, X):
    out = np.full((len(X), projection.n_frequencies), np.nan, X.dtype)
    projection.features(X, FeatureLayout("projection", projection.n_frequencies), None, out)
    return out


def threshold(n_scores):
    return stats.norm.isf(FALSE_ALARM / 2 / n_scores)


# ---------------------------------------------------------------------------- explicit matrices


@functools.cache
def transform_matrix(structure, p):
    """H with entries of size 1, or an orthogonal matrix of cosines, or of cosines and sines."""
    if structure in ("hadamard", "sorf"):
        return linalg.hadamard(p).astype(np.float64)
    if structure == "dct":
        return fft.dct(np.eye(p), axis=0, norm="ortho")
    places = np.arange(p)
    rows = [np.cos(2 * np.pi * (k * places % p) / p) for k in range(p // 2 + 1)]
    rows += [-np.sin(2 * np.pi * (k * places % p) / p) for k in range(1, (p + 1) // 2)]
    matrix = np.array(rows)
    return matrix / np.linalg.norm(matrix, axis=1, keepdims=True)


def permutation_matrix(places):
    return np.eye(len(places))[places]


def explicit_matrix(projection, structure):
    """V with all columns of the padded input, factor by factor; and a bound of what rounding does.

    The second is S |H| |G| P |H| |B|: what V would be if nothing cancelled.
    """
    factors = projection.factors(np.float64)
    n_blocks, p = factors.outer.shape
    H = transform_matrix(structure, p)
    blocks, bounds = [], []
    for block in range(n_blocks):
        group = block // factors.blocks_per_group
        V, bound = np.eye(p), np.eye(p)
        for signs in np.atleast_2d(factors.signs[group]):
            V, bound = H @ (signs[:, np.newaxis] * V), np.abs(H) @ bound
        if factors.permutation is not None:
            places = factors.permutation[group]
            V, bound = V[places], bound[places]
        if factors.inner is not None:
            G = factors.inner[block][:, np.newaxis]
            V, bound = H @ (G * V), np.abs(H) @ (np.abs(G) * bound)
        S = factors.outer[block][:, np.newaxis]
        blocks.append(S * V)
        bounds.append(np.abs(S) * bound)
    n, d = projection.n_frequencies, projection.dim
    order = factors.rows_in_order() if hasattr(factors, "rows_in_order") else slice(None)
    return np.concatenate(blocks)[order][:n, :d], np.concatenate(bounds)[order][:n, :d]


def tolerance(bound, X, dtype, p):
    """Of z: each of at most 3 log2(p) additions and 5 products rounds once, the factors twice."""
    roundings = 3 * np.log2(p) + 10
    return roundings * np.finfo(dtype).eps * (np.abs(X).astype(np.float64) @ bound.T) + 1e-300


# (dim, n_frequencies, rows): no size is a multiple of a block, a group or a vector.
SIZES = [(1, 7, 5), (3, 77, 1), (16, 131, 20), (20, 301, 7), (100, 500, 13), (1000, 1501, 2)]


@functools.cache
def reference(structure, stratified, dim, n):
    if structure in ("hadamard", "sorf"):
        projection = hadamard(dim, n, structure=structure, stratified=stratified, scale=1.5)
    else:
        projection = fourier(dim, n, structure=structure, stratified=stratified)
    return projection, *explicit_matrix(projection, structure)


def points(n_rows, dim, dtype):
    rng = np.random.default_rng(dim)
    return (rng.standard_normal((n_rows, dim)) / np.sqrt(dim)).astype(dtype)


def check_against_matrix(structure, stratified, size, dtype):
    dim, n, n_rows = size
    projection, V, bound = reference(structure, stratified, dim, n)
    assert V.shape == (n, dim)
    for rows in {1, n_rows}:
        X = points(rows, dim, dtype)
        error = np.abs(project(projection, X) - X.astype(np.float64) @ V.T)
        assert (error <= tolerance(bound, X, dtype, projection.block_size)).all()


@pytest.mark.parametrize(
    ("structure", "stratified"), [("hadamard", True), ("hadamard", False), ("sorf", False)]
)
def test_hadamard_projections_are_the_product_of_their_factors(isa, structure, stratified):
    for size in SIZES:
        for dtype in [np.float32, np.float64]:
            check_against_matrix(structure, stratified, size, dtype)


def test_every_number_of_rows_gives_the_product_of_the_factors(isa):
    for n_rows in range(1, 21):
        check_against_matrix("hadamard", True, (20, 301, n_rows), np.float32)


@pytest.mark.representative
@pytest.mark.parametrize(
    ("structure", "stratified"), [("dct", True), ("dct", False), ("fft", False)]
)
def test_fourier_projections_are_the_product_of_their_factors(isa, structure, stratified):
    for size in [*SIZES[:4], (101, 500, 3)]:
        for dtype in [np.float32, np.float64]:
            check_against_matrix(structure, stratified, size, dtype)


@pytest.mark.parametrize("wrong", ["scale", "permutation", "strata"])
def test_wrong_factors_would_be_noticed(wrong):
    projection, V, bound = reference("hadamard", True, 20, 301)
    X = points(3, 20, np.float32)
    factors = projection.factors(np.float64)
    if wrong == "scale":
        other = V / np.sqrt(2)
    elif wrong == "permutation":  # the inverse one
        inverse = np.argsort(factors.permutation, axis=1).astype(np.int32)
        changed = hadamard(20, 301, scale=1.5)
        changed._factors["d"] = dataclasses.replace(factors, permutation=inverse)
        other, _ = explicit_matrix(changed, "hadamard")
    else:  # blocks that do not share the signs of their group
        other, _ = explicit_matrix(hadamard(20, 301, stratified=False, scale=1.5), "hadamard")
    error = np.abs(project(projection, X) - X.astype(np.float64) @ other.T)
    assert (error > tolerance(bound, X, np.float32, 64)).mean() > 0.3


def expected_features(z, layout, phases):
    if layout.kind == "complex":
        return np.exp(1j * z) * layout.scale
    if layout.kind == "cos_phase":
        return np.cos(z + phases) * layout.scale
    pairs, odd = divmod(layout.n_columns, 2)
    columns = [np.cos(z[:, :pairs]), np.sin(z[:, :pairs])]
    if odd:
        columns.append(np.cos(z[:, pairs:] + phases[pairs:]))
    return np.concatenate(columns, axis=1) * layout.scale


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("kind", "n_columns"),
    [
        ("cos_sin", 1),
        ("cos_sin", 2),
        ("cos_sin", 601),
        ("cos_sin", 602),
        ("complex", 301),
        ("cos_phase", 301),
    ],
)
@pytest.mark.parametrize("structure", ["hadamard", "sorf", "dct", "fft"])
def test_features_are_functions_of_the_explicit_projection(isa, structure, kind, n_columns, dtype):
    layout = FeatureLayout(kind, n_columns)
    n = layout.n_frequencies
    stratified = structure in ("hadamard", "dct")
    projection, V, bound = reference(structure, stratified, 20, n)
    X = points(9, 20, dtype)
    phases = layout.phases(Stream.from_seed(3))
    out, view = layout.empty(len(X), np.dtype(dtype))
    rounded = None if phases is None else phases.astype(dtype)
    projection.features(X, layout, rounded, view)
    expected = expected_features(X.astype(np.float64) @ V.T, layout, phases)
    # cos and sin have slope at most 1; a phase below 2 pi, its sum with z and the result round too
    slack = tolerance(bound, X, dtype, projection.block_size) + 12 * np.finfo(dtype).eps
    if kind == "cos_sin":
        pairs = n_columns // 2
        slack = np.concatenate([slack[:, :pairs], slack[:, :pairs], slack[:, pairs:]], axis=1)
    assert (np.abs(out - expected) <= layout.scale * slack).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("p", "n_blocks", "dim"), [(1, 3, 1), (16, 3, 16), (64, 5, 50)])
def test_given_factors_make_the_matrix_of_the_paper(isa, p, n_blocks, dim, dtype):
    rng = np.random.default_rng(p)
    B = rng.choice([-1.0, 1.0], (n_blocks, p))
    places = np.array([rng.permutation(p) for _ in range(n_blocks)])
    G = rng.standard_normal((n_blocks, p))
    S = np.sqrt(rng.chisquare(p, (n_blocks, p))) / np.linalg.norm(G, axis=1, keepdims=True)
    H = linalg.hadamard(p).astype(np.float64)
    blocks = [
        np.diag(s) @ H @ np.diag(g) @ permutation_matrix(i) @ H @ np.diag(b) / (2.5 * np.sqrt(p))
        for b, i, g, s in zip(B, places, G, S, strict=True)
    ]
    V = np.concatenate(blocks)[:, :dim]
    X = points(4, dim, dtype)
    made = Fastfood.from_factors(B, places, G, S, length_scale=2.5, n_features=dim)
    z = X.astype(np.float64) @ V.T
    expected = np.concatenate([np.cos(z), np.sin(z)], axis=1) / np.sqrt(n_blocks * p)
    # ||z - exact|| in units of rounding: |H| |G| P |H| sums p |G| for every entry of x
    sums = np.abs(X).sum(axis=1).max() * np.abs(S * np.abs(G).sum(axis=1, keepdims=True)).max()
    slack = (3 * np.log2(p) + 10) * sums / (2.5 * np.sqrt(p)) + 12
    assert np.abs(made.transform(X) - expected).max() * np.sqrt(n_blocks * p) <= (
        slack * np.finfo(dtype).eps
    )


# ---------------------------------------------------------------------- distribution of entries


@pytest.mark.parametrize("dim", [1, 16, 64])
@pytest.mark.parametrize("stratified", [True, False])
@pytest.mark.parametrize("kernel", [Gaussian(), Matern(1.5), BallConvolution(3)], ids=repr)
def test_rows_have_the_radii_of_the_stream_as_lengths(kernel, stratified, dim):
    """Exactly, where nothing is cut off; for Matern and Gaussian in the padded dimension."""
    projection = hadamard(dim, 333, kernel=kernel, stratified=stratified, scale=0.5)
    V, _ = explicit_matrix(projection, "hadamard")
    p = projection.block_size
    if kernel.gaussian_mixture and dim < p:
        padded = hadamard(p, 333, kernel=kernel, stratified=stratified, scale=0.5)
        np.testing.assert_array_equal(V, explicit_matrix(padded, "hadamard")[0][:, :dim])
        V, _ = explicit_matrix(padded, "hadamard")
    in_dim = p if kernel.gaussian_mixture else dim
    order = projection.factors().rows_in_order()
    radii = kernel.radii(projection.stream.substream("radii"), order.size, in_dim)[order[:333]]
    np.testing.assert_allclose(np.linalg.norm(V, axis=1), radii / 0.5, rtol=1e-12)


@pytest.mark.parametrize("structure", ["hadamard", "sorf", "fft"])
def test_lengths_of_whole_rows_are_chi_distributed(structure):
    """Not so for "dct": the entries of a row of cosines differ, and so do those of T G P T B."""
    p = 96 if structure == "fft" else 64
    make = fourier if structure == "fft" else functools.partial(hadamard, scale=1.5)
    z = project(make(p, 20_000, structure=structure), np.eye(p))
    lengths = 1.5 * np.linalg.norm(z, axis=0)
    assert stats.kstest(lengths, stats.chi(p).cdf).pvalue > FALSE_ALARM
    assert stats.kstest(lengths, stats.chi(p - 2).cdf).pvalue < FALSE_ALARM


# Draws for Kolmogorov-Smirnov. It alarms (p < 1e-6) where distribution functions are further apart
# than 2.7 / sqrt(6000) = 0.035; a width off by sqrt(2) is 0.08 away for these distributions.
KS_SIZE = 6000


def one_frequency_of_each_group(dim, kernel, stratified, places):
    """z_j of many independent groups of blocks, at each of some places j in a group."""
    p = hadamard(dim, 1).block_size
    group = 4 * p if stratified else p
    x = points(1, dim, np.float64) * 1.3
    projection = hadamard(dim, KS_SIZE * group, kernel=kernel, stratified=stratified)
    z = project(projection, x).reshape(KS_SIZE, group) / np.linalg.norm(x)
    return [z[:, place] for place in places]


@pytest.mark.parametrize("stratified", [True, False])
@pytest.mark.parametrize("dim", [1, 3, 16, 33])
def test_hadamard_projections_of_a_point_are_normal(dim, stratified):
    for z in one_frequency_of_each_group(dim, Gaussian(), stratified, (0, 13, -1)):
        assert stats.kstest(z, "norm").pvalue > FALSE_ALARM / 3
        for wrong in (np.sqrt(2), np.sqrt(0.5)):
            assert stats.kstest(z * wrong, "norm").pvalue < FALSE_ALARM / 3


@pytest.mark.parametrize("dim", [3, 16])
@pytest.mark.parametrize(("nu", "wrong_nu"), [(0.5, 1.5), (1.5, 0.5)])
def test_hadamard_projections_for_matern_are_student_t(nu, wrong_nu, dim):
    for z in one_frequency_of_each_group(dim, Matern(nu), True, (5, 40)):
        assert stats.kstest(z, stats.t(2 * nu).cdf).pvalue > FALSE_ALARM / 2
        assert stats.kstest(z, stats.t(2 * wrong_nu).cdf).pvalue < FALSE_ALARM / 2
        assert stats.kstest(np.sqrt(2) * z, stats.t(2 * nu).cdf).pvalue < FALSE_ALARM / 2


@pytest.mark.parametrize("dim", [1, 3, 16, 33])
@pytest.mark.parametrize("sampling", ["iid", "orthogonal"])
def test_dense_projections_of_a_point_are_normal_and_student_t(sampling, dim):
    """All rows if they are independent, else the first of each orthogonal matrix."""
    x = points(1, dim, np.float64) * 1.3
    step = dim if sampling == "orthogonal" else 1
    for kernel, law in [(Gaussian(), stats.norm), (Matern(1.5), stats.t(3))]:
        projection = dense(dim, KS_SIZE * step, sampling=sampling, kernel=kernel, scale=2.0)
        z = project(projection, x)[0, ::step] * 2 / np.linalg.norm(x)
        assert stats.kstest(z, law.cdf).pvalue > FALSE_ALARM / 2
        assert stats.kstest(np.sqrt(2) * z, law.cdf).pvalue < FALSE_ALARM / 2


# Groups whose entries of V are averaged: by the central limit theorem their mean is normal.
N_GROUPS = 2000
GROUP = 256  # four blocks of 64 rows


def scores_of_products(V, n_groups, first, second):
    """z-scores of the mean of V_i V_j^T over groups, entry by entry, for pairs (i, j) of rows."""
    rows = V.reshape(n_groups, -1, V.shape[1])
    products = rows[:, first, :, np.newaxis] * rows[:, second, np.newaxis, :]
    return products.mean(axis=0) / (products.std(axis=0) / np.sqrt(n_groups))


@pytest.mark.parametrize("dim", [5, 16])
@pytest.mark.parametrize("stratified", [True, False])
def test_different_rows_are_uncorrelated(stratified, dim):
    """E[V_i V_j^T] = 0 within a block and across the blocks of a group, but E[V_i V_i^T] = 1."""
    V = project(hadamard(dim, GROUP * N_GROUPS, stratified=stratified, seed=1), np.eye(dim)).T
    rng = np.random.default_rng(0)
    # pairs within a block, at one place of two blocks of a group, and anywhere in the group
    within = [(0, 1), (0, 15), (6, 9), (33, 46)]
    across = [(0, 64), (3, 67), (7, 135), (20, 212)]
    anywhere = [tuple(rng.choice(GROUP, 2, replace=False)) for _ in range(24)]
    first, second = np.array(within + across + anywhere).T
    scores = scores_of_products(V, N_GROUPS, first, second)
    assert np.abs(scores).max() < threshold(scores.size)
    same = scores_of_products(V, N_GROUPS, first, first)
    places = np.arange(dim)
    assert np.abs(same[:, places, places]).min() > 3 * threshold(scores.size)
    same[:, places, places] = 0
    assert np.abs(same).max() < threshold(scores.size)
    # and the variance of an entry is 1: of normals, the mean square deviates by sqrt(2 / n)
    entries = V.reshape(N_GROUPS, GROUP, dim)[:, first]
    mean_squares = (np.square(entries).mean(axis=0) - 1) / np.sqrt(2 / N_GROUPS)
    assert np.abs(mean_squares).max() < threshold(mean_squares.size)
    assert np.abs(2 * mean_squares + 1 / np.sqrt(2 / N_GROUPS)).min() > threshold(scores.size)


def test_rows_that_share_their_normals_would_be_noticed():
    """Without separate signs, the same row of two blocks has a mean product that is not 0."""
    projection = hadamard(16, GROUP * 400)
    factors = projection.factors(np.float64)
    unsigned = dataclasses.replace(factors, inner=np.abs(factors.inner))
    projection._factors["d"] = unsigned
    V = project(projection, np.eye(16)).T
    scores = scores_of_products(V, 400, np.array([0]), np.array([64]))
    assert np.abs(scores).max() > 2 * threshold(scores.size)


def test_phases_are_uniform_on_the_circle():
    """Inner products would not show it: half of the circle gives the same means and variances."""
    phases = FeatureLayout("cos_phase", KS_SIZE).phases(Stream.from_seed(1))
    uniform = stats.uniform(0, 2 * np.pi)
    assert stats.kstest(phases, uniform.cdf).pvalue > FALSE_ALARM
    assert stats.kstest(phases / 2, uniform.cdf).pvalue < FALSE_ALARM
