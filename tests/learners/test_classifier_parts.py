"""Losses, orders of rows, spectra: the parts of descent, each against something obvious."""

import numpy as np
import pytest

from kernelmill import Fastfood
from kernelmill.learners.losses import LOSSES
from kernelmill.learners.solvers.descent import Descent, Weights, held_out_rows, visiting_order
from kernelmill.learners.solvers.spectrum import TopSpectrum, _top_eigenpairs
from kernelmill.random import Stream


def obvious_loss(name, scores, code):
    """The loss of one row, as its definition has it."""
    signs = (
        [2.0 * code - 1]
        if len(scores) == 1
        else [1.0 if c == code else -1.0 for c in range(len(scores))]
    )
    if name == "log_loss":
        if len(scores) == 1:
            return np.log(1 + np.exp(-signs[0] * scores[0]))
        return np.log(np.exp(scores).sum()) - scores[code]
    single = {
        "hinge": lambda m: max(0.0, 1 - m),
        "squared_hinge": lambda m: max(0.0, 1 - m) ** 2,
        "squared": lambda m: 0.5 * (1 - m) ** 2,
    }[name]
    return sum(single(sign * score) for sign, score in zip(signs, scores, strict=True))


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("name", LOSSES)
def test_losses_and_derivatives(name, n_outputs):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(20, n_outputs)) * 3
    codes = rng.integers(0, max(2, n_outputs), 20)
    losses, derivatives = LOSSES[name].derivatives(scores.copy(), codes)
    step = 1e-6
    for i in range(20):
        assert losses[i] == pytest.approx(obvious_loss(name, scores[i], codes[i]), rel=1e-12)
        for j in range(n_outputs):
            moved = np.array([scores[i], scores[i]])
            moved[:, j] += [step, -step]
            up, down = (obvious_loss(name, row, codes[i]) for row in moved)
            assert derivatives[i, j] == pytest.approx((up - down) / (2 * step), abs=1e-5)


@pytest.mark.parametrize("name", LOSSES)
def test_losses_of_huge_scores_are_finite(name):
    for scores in (np.array([[1e30, -1e30, 0]]), np.array([[1e4]])):
        for code in range(2):
            losses, derivatives = LOSSES[name].derivatives(scores.copy(), np.array([code]))
            assert np.isfinite(losses).all()
            assert np.isfinite(derivatives).all()


@pytest.mark.parametrize("shares", [[0.3, 0.7], [0.001, 0.999], [0.2, 0.5, 0.3]], ids=str)
@pytest.mark.parametrize("name", LOSSES)
def test_first_scores_are_the_best_constant_ones(name, shares):
    shares = np.array(shares)
    best = LOSSES[name].first_scores(shares)

    def mean_loss(scores):
        rows = np.tile(scores, (len(shares), 1))
        return shares @ LOSSES[name].derivatives(rows, np.arange(len(shares)))[0]

    rng = np.random.default_rng(0)
    for size in (1e-2, 0.3, 3.0):
        for _ in range(50):
            assert mean_loss(best + size * rng.normal(size=best.shape)) >= mean_loss(best) - 1e-12


class TestVisitingOrder:
    def test_is_a_permutation_without_weights(self):
        order = visiting_order(1000, None, 1.0, Stream.from_seed(0))
        assert sorted(order) == list(range(1000))
        other = visiting_order(1000, None, 1.0, Stream.from_seed(1))
        assert not np.array_equal(order, other)

    def test_visits_are_weights_rounded_up_or_down(self):
        weights = np.random.default_rng(0).exponential(size=500)
        weights[:5] = 0
        expected = weights / weights.mean()
        mean = np.zeros(500)
        for seed in range(400):
            order = visiting_order(500, weights, weights.mean(), Stream.from_seed(seed))
            visits = np.bincount(order, minlength=500)
            assert (visits >= np.floor(expected)).all()
            assert (visits <= np.ceil(expected)).all()
            assert abs(len(order) - 500) <= 1
            mean += visits / 400
        # A number of visits is one of two integers: variance at most 1/4. Five standard
        # deviations for 500 rows: a false alarm once in 3000 seeds.
        assert np.abs(mean - expected).max() < 5 * 0.5 / np.sqrt(400)

    def test_equal_weights_are_no_weights(self):
        order = visiting_order(77, np.full(77, 0.3), 0.3, Stream.from_seed(0))
        assert sorted(order) == list(range(77))


def test_held_out_rows_are_a_share_of_each_class():
    codes = np.repeat([0, 1, 2], [1000, 100, 1])
    out = held_out_rows(codes, 0.2, Stream.from_seed(0), 0)
    assert [out[codes == c].sum() for c in range(3)] == [200, 20, 0]
    np.testing.assert_array_equal(out, held_out_rows(codes, 0.2, Stream.from_seed(0), 0))
    assert not np.array_equal(out, held_out_rows(codes, 0.2, Stream.from_seed(0), 1))
    assert not held_out_rows(codes, 0.0, Stream.from_seed(0), 0).any()


def rows_of(kind, n, seed):
    """Rows with steep spectra of several kinds."""
    rng = np.random.default_rng(seed)
    if kind == "clusters":
        return np.array([[0, 0], [50, 0], [0, 50]])[rng.integers(0, 3, n)] + rng.normal(size=(n, 2))
    if kind == "line":
        return rng.normal(size=(n, 1)) @ np.ones((1, 3))
    if kind == "constant":
        return np.ones((n, 3))
    return rng.normal(size=(n, 8))


class TestSpectrum:
    @pytest.mark.parametrize("n_features", [8, 300])
    def test_features_too_large_to_be_multiplied(self, n_features):
        Z = np.full((100, n_features), 1e18)
        assert TopSpectrum.of_sample(Z).longest > 1e36
        with pytest.raises(ValueError, match=r"products in float32 .*scale the columns"):
            TopSpectrum.of_sample(Z.astype(np.float32))

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("kind", ["constant", "normal"])
    def test_says_what_damping_leaves_on_other_rows(self, kind, dtype):
        """What steps of batches go by, within a factor of four: a few rows say it only roughly.

        For clusters and lines, whose spectra fall to nothing, rare rows exceed it by more; what
        keeps descent stable there is tested below.
        """
        feature_map = Fastfood(n_components=512, length_scale=3.0, random_state=0)
        sample = feature_map.fit_transform(rows_of(kind, 1200, 0).astype(dtype))
        spectrum = TopSpectrum.of_sample(sample)
        fresh = feature_map.transform(rows_of(kind, 3000, 1).astype(dtype)).astype(np.float64)
        fresh = np.hstack([fresh, np.full((3000, 1), spectrum.constant)])
        vectors = spectrum.vectors.astype(np.float64)
        shrink = 1 - np.sqrt(1 - spectrum.damping)
        damped = fresh - (fresh @ vectors * shrink) @ vectors.T
        largest = np.linalg.eigvalsh(damped.T @ damped / len(damped))[-1]
        longest = np.einsum("ij,ij->i", damped, damped).max()
        found = longest + 255 * largest
        assert found <= 4 * (spectrum.longest_left + 255 * spectrum.largest_left)

    def test_evens_out_the_spectrum(self):
        feature_map = Fastfood(n_components=512, length_scale=3.0, random_state=0)
        sample = feature_map.fit_transform(rows_of("normal", 2000, 0))
        spectrum = TopSpectrum.of_sample(sample)
        first = np.linalg.eigvalsh(sample.T @ sample / len(sample))[-1]
        assert spectrum.largest_left < first / 50
        plain = TopSpectrum.of_sample(sample, most=0)
        assert plain.vectors.shape == (513, 0)
        assert plain.largest_left > first

    def test_all_rows_give_the_exact_spectrum(self):
        feature_map = Fastfood(n_components=256, length_scale=3.0, random_state=0)
        sample = feature_map.fit_transform(rows_of("normal", 400, 0))
        spectrum = TopSpectrum.of_sample(sample, complete=True, ridge=1e-6)
        whole = np.hstack([sample, np.full((400, 1), spectrum.constant)])
        values, vectors = np.linalg.eigh(whole.T @ whole / 400)
        k = spectrum.vectors.shape[1]
        assert k == 200
        expected = 1 - (values[::-1][k] + 1e-6) / (values[::-1][:k] + 1e-6)
        np.testing.assert_allclose(spectrum.damping, expected, rtol=0, atol=1e-8)
        overlap = np.abs(np.sum(vectors[:, ::-1][:, :20] * spectrum.vectors[:, :20], axis=0))
        np.testing.assert_allclose(overlap, 1, atol=1e-6)
        # λ (λ_k+1 + ridge) / (λ + ridge) is largest for the first one.
        first = values[-1] * (values[::-1][k] + 1e-6) / (values[-1] + 1e-6)
        assert spectrum.largest_left == pytest.approx(first, rel=1e-6)
        quick = TopSpectrum.of_sample(sample, complete=True, ridge=1e-6, bounds=False)
        np.testing.assert_array_equal(quick.vectors, spectrum.vectors)
        np.testing.assert_array_equal(quick.damping, spectrum.damping)


@pytest.mark.parametrize("k", [1, 5, 30])
def test_products_of_columns_have_the_eigenpairs_of_products_of_rows(k):
    rows = np.random.default_rng(0).normal(size=(60, 12)) * 0.7 ** np.arange(12)
    expected, vectors = _top_eigenpairs(rows @ rows.T, k, None)
    values, found = _top_eigenpairs(rows @ rows.T, k, rows)
    np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-12 * expected[0])
    assert (values[12:] == 0).all()
    overlaps = np.abs((vectors * found).sum(axis=0))[:12]
    np.testing.assert_allclose(overlaps, 1, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["squared", "log_loss"])
@pytest.mark.parametrize("kind", ["clusters", "line", "normal"])
def test_descent_is_stable_on_rows_unlike_the_sample(kind, name):
    """Many passes over rows some of which lie where the sample has none."""
    feature_map = Fastfood(n_components=256, length_scale=3.0, random_state=0)
    sample = feature_map.fit_transform(rows_of(kind, 400, 0))
    rows = rows_of(kind, 2000, 1)
    rows[:20] *= np.linspace(1, 3, 20)[:, None]
    Z = feature_map.transform(rows)
    codes = (np.sin(rows.sum(axis=1)) > 0).astype(np.intp)
    loss = LOSSES[name]
    spectrum = TopSpectrum.of_sample(sample)
    descent = Descent(loss, 0.0, spectrum, loss.curvature(2), decay_rows=1 << 15)
    first = float(loss.derivatives(np.zeros((2, 1)), np.arange(2))[0].mean())  # longest steps
    weights = Weights.constant_scores(256, np.zeros(1), first, spectrum.constant, Z.dtype)
    means = []
    for epoch in range(100):
        order = visiting_order(2000, None, 1.0, Stream.from_seed(epoch)).reshape(-1, 40)
        means.append(sum(descent.step(weights, Z[rows], codes[rows]) for rows in order) / 2000)
    assert means[-1] < means[20] < means[0]
