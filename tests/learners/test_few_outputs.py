"""Products with few outputs: against float64, on every instruction set, with any threads."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from kernelmill import Fastfood, KernelClassifier, RandomFourier, TensorSketch, _native
from kernelmill.learners.features import ReusedMemory, compute_features
from kernelmill.learners.few_outputs import add_weighted_rows, lay_out_columns, score_rows

# Rows, features and outputs that straddle vectors, blocks of registers and blocks of features.
SHAPES = [
    *((1, 1, 1), (2, 7, 2), (7, 15, 3), (8, 16, 4), (9, 17, 5), (15, 31, 6), (17, 33, 10)),
    *((33, 129, 11), (5, 8192, 1), (3, 8193, 7), (70, 300, 64), (4, 40, 65), (0, 5, 2), (5, 0, 2)),
]


def draw(rng, shape, dtype):
    return rng.normal(size=shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_scores_are_inner_products(isa, dtype, n_threads):
    rng = np.random.default_rng(0)
    for n, d, t in SHAPES:
        Z, weights = draw(rng, (n, d), dtype), draw(rng, (t, d), dtype)
        found = score_rows(Z, weights, n_threads)
        exact = Z.astype(np.longdouble) @ weights.T.astype(np.longdouble)
        # n additions in one order are off by at most n eps times the sum of magnitudes.
        bound = np.finfo(dtype).eps * (d + 1) * (np.abs(Z) @ np.abs(weights).T)
        assert found.shape == (n, t)
        assert (np.abs(found - exact) <= bound).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_sums_of_weighted_rows(isa, dtype, n_threads):
    rng = np.random.default_rng(1)
    for n, d, t in SHAPES:
        Z, factors, before = (
            draw(rng, (n, d), dtype),
            draw(rng, (n, t), dtype),
            draw(rng, (t, d), dtype),
        )
        sums = before.copy()
        add_weighted_rows(Z, factors, sums, n_threads)
        exact = before + factors.T.astype(np.longdouble) @ Z.astype(np.longdouble)
        magnitude = np.abs(before) + np.abs(factors).T @ np.abs(Z)
        assert (np.abs(sums - exact) <= np.finfo(dtype).eps * (n + 2) * magnitude).all()


def test_bits_do_not_depend_on_threads_rows_or_layout(isa):
    rng = np.random.default_rng(2)
    Z, weights = draw(rng, (300, 1000), np.float32), draw(rng, (10, 1000), np.float32)
    factors = draw(rng, (300, 10), np.float32)
    scores = score_rows(Z, weights, 1)
    np.testing.assert_array_equal(score_rows(Z, weights, 3), scores)
    np.testing.assert_array_equal(score_rows(Z[17:19], weights), scores[17:19])
    np.testing.assert_array_equal(score_rows(Z, weights[3:4])[:, 0], scores[:, 3])
    laid_out = lay_out_columns(weights.T).T
    np.testing.assert_array_equal(score_rows(Z, laid_out), scores)
    sums = [np.zeros((10, 1000), np.float32) for _ in range(3)]
    add_weighted_rows(Z, factors, sums[0], 1)
    add_weighted_rows(Z, factors, sums[1], 3)
    for part in (slice(0, 101), slice(101, 300)):  # ascending rows: parts may be added later
        add_weighted_rows(Z[part], factors[part], sums[2])
    np.testing.assert_array_equal(sums[1], sums[0])
    np.testing.assert_array_equal(sums[2], sums[0])


def test_unaligned_numbers_and_contiguous_columns_are_copied():
    rng = np.random.default_rng(0)
    Z, weights = rng.normal(size=(5, 7)), rng.normal(size=(2, 7))
    shifted = np.empty(weights.nbytes + 1, np.uint8)[1:].view(np.float64).reshape(2, 7)
    shifted[...] = weights
    assert not shifted.flags.aligned
    expected = score_rows(Z, weights)
    np.testing.assert_array_equal(score_rows(np.asfortranarray(Z), shifted), expected)
    sums, others = np.zeros((2, 7)), np.zeros((2, 7))
    add_weighted_rows(Z, expected, sums)
    add_weighted_rows(np.asfortranarray(Z), np.asfortranarray(expected), others)
    np.testing.assert_array_equal(sums, others)


def test_columns_are_laid_out_once():
    for shape in ((17, 3), (1, 1), (16, 2), (5, 0)):
        array = np.random.default_rng(3).normal(size=shape)
        columns = lay_out_columns(array)
        np.testing.assert_array_equal(columns, array)
        assert columns.strides[0] == 8
        assert lay_out_columns(columns) is columns
        assert shape[1] == 0 or (columns.ctypes.data % 64 == 0 and columns.strides[1] % 64 == 0)


@pytest.mark.parametrize(
    ("Z", "weights", "out"),
    [
        (np.ones((2, 3)), np.ones((1, 4)), np.ones((2, 1))),
        (np.ones((2, 3)), np.ones((1, 3)), np.ones((2, 2))),
        (np.ones((2, 3)), np.ones((1, 3), np.float32), np.ones((2, 1))),
        (np.ones((3, 2)).T, np.ones((1, 3)), np.ones((2, 1))),
        (np.ones(3), np.ones((1, 3)), np.ones((2, 1))),
    ],
)
def test_other_operands_are_rejected(Z, weights, out):
    with pytest.raises((TypeError, ValueError)):
        _native.score_rows(Z, weights, out, 1)
    with pytest.raises((TypeError, ValueError)):
        _native.add_weighted_rows(Z, out, weights, 1)
    both = np.ones((3, 3))
    with pytest.raises((TypeError, ValueError)):
        _native.score_rows(both, both, both, 1)


@pytest.mark.parametrize("loss", ["squared_hinge", "log_loss"])
def test_descent_does_not_depend_on_threads(loss):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(3000, 6)).astype(np.float32)
    y = (X**2).sum(axis=1).astype(int) // 3
    fits = [
        KernelClassifier(
            Fastfood(n_components=500, random_state=0),
            loss=loss,
            epochs=2,
            random_state=0,
            n_threads=n_threads,
        ).fit(X, y)
        for n_threads in (1, 2, 3)
    ]
    for other in fits[1:]:
        np.testing.assert_array_equal(other.coef_, fits[0].coef_)
        np.testing.assert_array_equal(other.intercept_, fits[0].intercept_)


def test_steps_depend_on_their_operands_alone(isa):
    """Threads, layouts, bad arguments; the core's own tests compare steps with long sums."""
    rng = np.random.default_rng(3)
    Z, factors = draw(rng, (60, 500), np.float32), draw(rng, (60, 3), np.float32)
    directions, damping = draw(rng, (8, 501), np.float32) / 30, np.full(8, 0.5, np.float32)
    start = draw(rng, (3, 501), np.float32)

    def step(n_threads, rows=Z, **changes):
        arrays = {name: start.copy() for name in ("last", "average", "move")} | changes
        scalars = (0.1, 1e-3, 1.0, 2.0, 0.25, n_threads)
        _native.descend(rows, factors, directions, damping, *arrays.values(), *scalars)
        return arrays["last"], arrays["average"]

    last, average = step(1)
    assert not np.array_equal(last, start)
    np.testing.assert_allclose(average, 0.75 * start + 0.25 * last, rtol=0, atol=1e-5)
    wide = np.zeros((60, 600), np.float32)
    wide[:, :500] = Z
    for other in (step(3), step(1, wide[:, :500]), step(1, move=lay_out_columns(start.T).T)):
        np.testing.assert_array_equal(other[0], last)
        np.testing.assert_array_equal(other[1], average)
    for wrong in ({"last": start[:, :-1].copy()}, {"average": start.astype(np.float64)}):
        with pytest.raises(TypeError):
            step(1, **wrong)
    both = start.copy()
    with pytest.raises(TypeError, match="overlap"):
        step(1, last=both, move=both)


@pytest.mark.parametrize(
    "feature_map",
    [
        Fastfood(n_components=64),
        Fastfood(n_components=37, length_scale=2.0),
        Fastfood(n_components=20, features="complex"),
        Fastfood(n_components=2000, structure="sorf"),
        Fastfood(n_components=50, structure="dct"),
        RandomFourier(n_components=33),
        TensorSketch(n_components=30),
        StandardScaler(),
    ],
    ids=repr,
)
def test_features_in_reused_memory_are_the_same(feature_map):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 20))
    fitted = clone(feature_map).fit(X)
    if hasattr(fitted, "random_state"):
        fitted = clone(feature_map).set_params(random_state=0).fit(X)
    features = ReusedMemory(partial(compute_features, fitted))
    narrow = X.astype(np.float32)
    for rows in (X[:50], X, X[60:61], narrow, narrow[:0:-3], X[5:30, :].copy(order="F"), X[:70]):
        expected = compute_features(fitted, rows)
        np.testing.assert_array_equal(features(rows), expected)
        weights = rng.normal(size=(3, expected.shape[1])).astype(expected.dtype)
        Z, scores = features.score(rows, weights, None)
        np.testing.assert_array_equal(Z, expected)
        np.testing.assert_array_equal(scores, score_rows(expected, weights))
    if not isinstance(feature_map, StandardScaler):
        some = scipy.sparse.csr_array(np.where(X > 1, X, 0))
        np.testing.assert_array_equal(features(some), compute_features(fitted, some))


def test_subclasses_compute_their_own_features():
    class Twice(Fastfood):
        def _features(self, X):
            return 2 * super()._features(X)

    X = np.ones((3, 2))
    fitted = Twice(n_components=8, random_state=0).fit(X)
    np.testing.assert_array_equal(
        ReusedMemory(partial(compute_features, fitted))(X), fitted.transform(X)
    )


@pytest.mark.parametrize(("scale", "is_limited"), [(1.0, False), (1000.0, True)])
def test_later_epochs_limit_steps_if_the_first_one_did(monkeypatch, scale, is_limited):
    """Rows that the sample of the spectrum lacks make steps too long, in every epoch."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 10))
    X[rng.permutation(4000)[:3]] *= scale  # few, so that they are probably not in the sample
    y = X[:, 0] > 0
    curvatures = []

    def descend(*arguments):
        curvatures.append(arguments[-3])
        return native(*arguments)

    native = _native.descend
    monkeypatch.setattr(_native, "descend", descend)
    KernelClassifier(FunctionTransformer(), epochs=3, random_state=0).fit(X, y)
    first, second, third = np.array_split(np.array(curvatures) > 0, 3)
    assert first.all()
    assert second.all() == third.all() == is_limited
    assert second.any() == third.any() == is_limited
