"""Mergeable statistics: their definition, any division of rows, float32, errors, interrupts."""

import itertools
import math
import pickle
import signal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernelmill
from kernelmill.learners.statistics import RidgeStatistics, rows_per_update

EPS = np.finfo(np.float64).eps


def data(n_rows, n_features=7, n_targets=2, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n_rows, n_features)) + shift
    Y = Z @ rng.standard_normal((n_features, n_targets)) + rng.standard_normal((n_rows, n_targets))
    weights = rng.uniform(0.5, 2.0, n_rows)
    weights[::5] = 0.0
    return Z, Y, weights


def parts(statistics):
    return {
        "n_rows": statistics.n_rows,
        "weight": statistics.weight,
        "log_weight": statistics.log_weight,
        "feature_mean": statistics.feature_mean,
        "target_mean": statistics.target_mean,
        "moments": statistics.moments,
        "cross": statistics.cross,
        "target_moments": statistics.target_moments,
    }


def assert_same(a, b, bound):
    """Each part to `bound` of its size."""
    for name, value in parts(a).items():
        other = parts(b)[name]
        scale = max(1.0, float(np.abs(value).max()))
        np.testing.assert_allclose(other, value, rtol=0, atol=bound * scale, err_msg=name)


def test_definition():
    Z, Y, weights = data(500)
    got = RidgeStatistics(7, 2).update(Z, Y, weights)
    W = weights.sum()
    z, y = weights @ Z / W, weights @ Y / W
    bound = 500 * EPS * 10
    np.testing.assert_allclose(got.feature_mean, z, atol=bound)
    np.testing.assert_allclose(got.target_mean, y, atol=bound)
    moments = (weights[:, None] * (Z - z)).T @ (Z - z)
    np.testing.assert_allclose(got.moments, np.triu(moments), atol=bound * moments.max())
    cross = (weights[:, None] * (Z - z)).T @ (Y - y)
    np.testing.assert_allclose(got.cross, cross, atol=bound * np.abs(cross).max())
    np.testing.assert_allclose(got.target_moments, weights @ (Y - y) ** 2, rtol=bound)
    assert got.n_rows == 400
    np.testing.assert_allclose(got.weight, W, rtol=bound)
    np.testing.assert_allclose(got.log_weight, np.log(weights[weights > 0]).sum(), rtol=bound)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.integers(0, 60), max_size=5).map(sorted),
    st.permutations(range(6)),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_any_division_and_order_of_merging(cuts, order, weighted, seed):
    Z, Y, weights = data(60, seed=seed % 1000)
    weights = weights if weighted else None
    whole = RidgeStatistics(7, 2).update(Z, Y, weights)
    bounds = [0, *cuts, 60]
    pieces = [
        RidgeStatistics(7, 2).update(Z[a:b], Y[a:b], None if weights is None else weights[a:b])
        for a, b in itertools.pairwise(bounds)
    ]
    pieces = [pieces[i] for i in order if i < len(pieces)]
    rng = np.random.default_rng(seed)
    while len(pieces) > 1:  # a random tree
        i = rng.integers(len(pieces) - 1)
        pieces[i : i + 2] = [pieces[i].merge(pieces[i + 1])]
    assert_same(whole, pieces[0], 60 * 10 * EPS)


def test_rows_in_any_order_and_blocks_of_any_size():
    Z, Y, weights = data(5000)
    whole = RidgeStatistics(7, 2).update(Z, Y, weights)
    order = np.random.default_rng(1).permutation(5000)
    for step in (1, 13, 2047, 2048):
        got = RidgeStatistics(7, 2)
        for begin in range(0, 5000 if step > 1 else 300, step):
            rows = order[begin : begin + step]
            got.update(Z[rows], Y[rows], weights[rows])
        if step > 1:
            assert_same(whole, got, 5000 * EPS)
        else:
            rows = order[:300]
            one_block = RidgeStatistics(7, 2).update(Z[rows], Y[rows], weights[rows])
            assert_same(one_block, got, 5000 * EPS)


def test_large_means_do_not_cancel():
    # Without centering, 1e8² in a sum of 1e4 rows would leave moments of 1e4 no digit at all.
    Z, Y, _ = data(10_000)
    shift = 2.0**27
    Z = np.round(Z * 2**20) / 2**20  # so that the shift is without rounding
    Y = np.round(Y * 2**20) / 2**20
    plain = RidgeStatistics(7, 2).update(Z, Y)
    shifted = RidgeStatistics(7, 2)
    for begin in range(0, 10_000, 999):
        rows = slice(begin, begin + 999)
        shifted.update(Z[rows] + shift, Y[rows] + shift)
    # Means are wrong by some ulp of 2**27, 3e-8, and enter moments twice: once with a sum that
    # would vanish without rounding.
    bound = 1e4 * 2**27 * EPS * 10
    np.testing.assert_allclose(shifted.moments, plain.moments, rtol=0, atol=bound)
    np.testing.assert_allclose(shifted.cross, plain.cross, rtol=0, atol=bound)
    assert bound < 1e-2 * plain.moments.max()


def test_means_of_targets_far_from_zero_are_rounded_once():
    Z, Y, _ = data(3000)
    Y = Y + 1e12
    got = RidgeStatistics(7, 2).update(Z, Y)
    exact = [math.fsum(column) / 3000 for column in Y.T]
    np.testing.assert_allclose(got.target_mean, exact, rtol=2 * EPS, atol=0)


def test_float32_loses_nothing():
    Z, Y, _ = data(3000)
    Z = (Z + 100).astype(np.float32)
    exact = RidgeStatistics(7, 2).update(Z.astype(np.float64), Y)
    got = RidgeStatistics(7, 2).update(Z, Y)
    for name, value in parts(exact).items():
        np.testing.assert_array_equal(parts(got)[name], value, err_msg=name)


def test_integers_and_other_memory_orders():
    rng = np.random.default_rng(0)
    Z = rng.integers(-5, 5, (50, 7))
    Y = rng.integers(-5, 5, 50)
    exact = RidgeStatistics(7, 1).update(Z.astype(np.float64), Y.astype(np.float64))
    assert_same(exact, RidgeStatistics(7, 1).update(Z, Y), 0.0)
    assert_same(exact, RidgeStatistics(7, 1).update(np.asfortranarray(Z * 1.0), Y), 0.0)
    assert_same(exact, RidgeStatistics(7, 1).update(np.repeat(Z, 2, axis=0)[::2], Y), 0.0)


def test_empty_blocks_and_weights_of_zero_add_nothing():
    Z, Y, _ = data(50)
    whole = RidgeStatistics(7, 2).update(Z, Y)
    got = RidgeStatistics(7, 2).update(Z[:0], Y[:0]).update(Z, Y, np.zeros(50)).update(Z, Y)
    assert_same(whole, got, 0.0)
    assert_same(whole, RidgeStatistics(7, 2).merge(whole), 0.0)
    assert_same(whole, pickle.loads(pickle.dumps(whole)).merge(RidgeStatistics(7, 2)), 0.0)


def test_weights_are_repetitions():
    Z, Y, _ = data(60)
    counts = np.random.default_rng(3).integers(0, 4, 60)
    repeated = RidgeStatistics(7, 2).update(np.repeat(Z, counts, 0), np.repeat(Y, counts, 0))
    got = RidgeStatistics(7, 2).update(Z, Y, counts)
    np.testing.assert_allclose(got.moments, repeated.moments, atol=1000 * EPS * 200)
    np.testing.assert_allclose(got.cross, repeated.cross, atol=1000 * EPS * 200)


def test_merging_with_itself_is_seeing_the_rows_twice():
    Z, Y, _ = data(60)
    got = RidgeStatistics(7, 2).update(Z, Y)
    twice = RidgeStatistics(7, 2).update(Z, Y).update(Z, Y)
    assert_same(twice, got.merge(got), 600 * EPS)


def test_a_copy_is_what_finalize_gives():
    Z, Y, _ = data(60)
    got = RidgeStatistics(7, 2).update(Z, Y)
    before = pickle.loads(pickle.dumps(got))
    equations = got.finalize()
    first = equations.solve(1.0)
    assert_same(before, got, 0.0)
    got.update(Z + 1, Y)
    np.testing.assert_array_equal(equations.solve(1.0)[0], first[0])


@pytest.mark.parametrize(
    ("Z", "Y", "weights", "message"),
    [
        (np.full((3, 7), np.nan), np.zeros((3, 2)), None, "finite"),
        (np.full((3, 7), np.inf), np.zeros((3, 2)), None, "finite"),
        (np.full((3, 7), 1e200), np.zeros((3, 2)), None, "1e\\+140"),
        (np.zeros((3, 7)), np.full((3, 2), np.nan), None, "Y must be finite"),
        (np.zeros((3, 6)), np.zeros((3, 2)), None, r"\(n, 7\), got \(3, 6\)"),
        (np.zeros((3, 7)), np.zeros((3, 1)), None, r"\(n, 2\), got \(3, 1\)"),
        (np.zeros((3, 7)), np.zeros((4, 2)), None, "3 and 4"),
        (np.zeros((3, 7)), np.zeros((3, 2)), [1, 2], r"\(3,\)"),
        (np.zeros((3, 7)), np.zeros((3, 2)), [1, 2, -1], "-1"),
        (np.zeros((3, 7)), np.zeros((3, 2)), [1, 2, np.nan], "nan"),
        (np.zeros((3, 7)), np.full((3, 2), 9.0), [3e307] * 3, "sample_weight has a sum of 9e"),
        (np.full((3, 7), 1e120), np.zeros((3, 2)), [1e70] * 3, "sample_weight has a sum of 3e"),
        (np.zeros((3, 7)), np.zeros((3, 2)), ["a", "b", "c"], "real numbers"),
        (np.zeros((3, 7), complex), np.zeros((3, 2)), None, "real numbers"),
    ],
)
def test_errors_change_nothing(Z, Y, weights, message):
    good = data(50)
    got = RidgeStatistics(7, 2).update(*good)
    before = pickle.loads(pickle.dumps(got))
    with pytest.raises((ValueError, TypeError), match=message):
        got.update(Z, Y, weights)
    assert_same(before, got, 0.0)


def test_a_bad_row_after_many_good_ones_changes_nothing():
    Z, Y, _ = data(5000)
    Z[-1, 3] = np.nan
    got = RidgeStatistics(7, 2)
    with pytest.raises(ValueError, match="finite"):
        got.update(Z, Y)
    assert_same(RidgeStatistics(7, 2), got, 0.0)


@pytest.mark.parametrize("other", [RidgeStatistics(6, 2), RidgeStatistics(7, 1), None])
def test_only_the_like_are_merged(other):
    with pytest.raises((ValueError, TypeError), match="other must"):
        RidgeStatistics(7, 2).merge(other)


def test_no_rows_no_equations():
    with pytest.raises(ValueError, match="got none"):
        RidgeStatistics(7, 2).finalize()


def test_an_interrupt_waits_for_the_whole_update(monkeypatch):
    Z, Y, _ = data(5000)
    whole = RidgeStatistics(7, 2).update(Z, Y)
    add = RidgeStatistics._add

    def interrupted(*args):
        signal.raise_signal(signal.SIGINT)
        add(*args)

    monkeypatch.setattr(RidgeStatistics, "_add", interrupted)
    got = RidgeStatistics(7, 2)
    with pytest.raises(KeyboardInterrupt):
        got.update(Z, Y)
    assert_same(whole, got, 0.0)


def test_moments_stay_in_place():
    Z, Y, _ = data(50)
    got = RidgeStatistics(7, 2)
    moments = got.moments
    got.update(Z, Y).merge(RidgeStatistics(7, 2).update(Z, Y))
    assert got.moments is moments
    assert moments.any()


def test_sums_do_not_depend_on_threads_or_fused_instruction_sets():
    Z, Y, weights = data(700)
    fused = [isa for isa in kernelmill.runtime.available_isas() if isa != "baseline"]
    found = []
    before, threads = kernelmill.runtime.get_isa(), kernelmill.get_num_threads()
    try:
        for isa in fused or [before]:
            for n_threads in (1, 3):
                kernelmill.runtime.set_isa(isa)
                kernelmill.set_num_threads(n_threads)
                found.append(RidgeStatistics(7, 2).update(Z, Y, weights))
    finally:
        kernelmill.runtime.set_isa(before)
        kernelmill.set_num_threads(threads)
    for other in found[1:]:
        np.testing.assert_array_equal(other.moments, found[0].moments)
        np.testing.assert_array_equal(other.cross, found[0].cross)


def test_updates_are_bounded():
    for n_features in (1, 64, 4096, 8192, 10**6):
        rows = rows_per_update(n_features)
        assert 255 <= rows <= 2047
    assert rows_per_update(4096) == 2047


def test_single_precision_sums_blocks_in_double():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((5000, 40)).astype(np.float32) + np.float32(3)
    Y = Z[:, :2] @ np.array([[1.0, 2.0], [3.0, 4.0]]) + rng.standard_normal((5000, 2))
    exact = RidgeStatistics(40, 2).update(Z, Y)
    found = RidgeStatistics(40, 2, single_precision=True).update(Z[:2500], Y[:2500])
    found = pickle.loads(pickle.dumps(found)).update(Z[2500:], Y[2500:])
    assert found.n_rows == exact.n_rows
    eps = float(np.finfo(np.float32).eps)
    # A float32 sum of m terms in one order is off by at most m eps times the sum of magnitudes, and
    # each term by the rounding of two centered features.
    magnitude = np.sqrt(np.outer(np.diagonal(exact.moments), np.diagonal(exact.moments)))
    off = np.abs(found.moments - exact.moments)
    assert (off <= 131 * eps * magnitude).all()
    assert 0 < off.max() < 1e-6 * magnitude.max()
    assert np.abs(found.feature_mean - exact.feature_mean).max() < 10 * eps
    np.testing.assert_allclose(found.target_moments, exact.target_moments, rtol=1e-12)
    size = np.sqrt(np.outer(np.diagonal(exact.moments), exact.target_moments))
    assert (np.abs(found.cross - exact.cross) <= 131 * eps * size).all()
    for rows in ((Z.astype(np.float64), Y), (Z, Y, np.ones(5000))):  # these stay in float64
        other = RidgeStatistics(40, 2, single_precision=True).update(*rows)
        np.testing.assert_array_equal(other.moments, RidgeStatistics(40, 2).update(*rows).moments)


def test_products_with_large_targets_are_summed_in_float64():
    """In float32 they would be infinite."""
    rng = np.random.default_rng(0)
    Z, y = rng.standard_normal((50, 4)).astype(np.float32), 1e39 * rng.standard_normal(50)
    found = RidgeStatistics(4, 1, single_precision=True).update(Z, y)
    expected = RidgeStatistics(4, 1).update(Z, y)
    np.testing.assert_allclose(found.cross, expected.cross, rtol=1e-12)
