"""How many features a map needs: the three answers, their cost, and the recommendation."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse, stats

from kernelmill import (
    CountSketch,
    Fastfood,
    GaussianTemplates,
    Nystroem,
    RandomFourier,
    RandomMaclaurin,
    TaylorSketch,
    TensorSketch,
)
from kernelmill.diagnostics import (
    FeatureRequirement,
    bounds,
    kernel_errors,
    list_maps,
    recommend_map,
    required_features,
)
from kernelmill.diagnostics.needed_features import coefficient_bytes, round_up
from kernelmill.errors import ArgumentError
from kernelmill.kernels import Matern

SMALL = {"n_pairs": 100, "n_seeds": 5, "most_features": 2048}


def rows(n=150, dim=6):
    return np.random.default_rng(0).uniform(size=(n, dim))


def test_three_answers_for_independent_frequencies():
    """The measured number reaches the tolerance with other seeds and pairs.

    The error exceeds the tolerance in 10 % of 20 x 1000 pairs, which depend on each other within a
    seed: means over 20 seeds are compared at 4.9 standard errors, with a slack of a tenth for the
    interval of the number itself.
    """
    X, tolerance = rows(), 0.08
    found = required_features(RandomFourier(), X, tolerance, 0.9, **SMALL)
    assert found.from_bound == bounds.fourier_features(tolerance, 0.9)
    assert found.variance_is_exact
    assert found.low <= found.measured <= found.high
    assert 0.75 < found.measured / found.from_variance < 1.33
    assert found.from_bound > 2 * found.measured
    again = kernel_errors(
        RandomFourier(n_components=found.from_variance), X, n_seeds=20, random_state=100
    )
    shares = (np.abs(again.differences) > tolerance).mean(axis=1)
    error = shares.std(ddof=1) / math.sqrt(len(shares))
    assert abs(shares.mean() - 0.1) < 4.9 * error + 0.01


def test_number_from_the_variance_is_that_of_normal_errors():
    """Two points at one distance: z^2 variances over the squared tolerance."""
    X = np.array([[0.0], [1.0]])
    found = required_features(RandomFourier(length_scale=1.0), X, 0.1, 0.95, **SMALL)
    variance = (1 - np.exp(-1.0)) ** 2  # of 2 / D cosines
    expected = stats.norm.ppf(0.975) ** 2 * variance / 0.1**2
    assert abs(found.from_variance - expected) <= 2


def test_extrapolation():
    found = required_features(Fastfood(), rows(), 0.005, **(SMALL | {"most_features": 512}))
    assert found.is_extrapolated
    assert max(found.sizes) == 512
    expected = 512 * (found.errors[-1] / 0.005) ** 2
    assert found.measured == math.ceil(expected)
    assert found.n_components == round_up(found.measured)
    assert found.seconds > 0


def test_extreme_tolerances():
    found = required_features(RandomFourier(), rows(), 1e-9, **(SMALL | {"most_features": 64}))
    assert found.from_bound is found.from_variance is found.measured is None
    assert FeatureRequirement.from_record(found.to_record()) == found
    single = rows().astype(np.float32)  # in which sums would be off by more than 1e-7
    assert required_features(TensorSketch(), single, 1e-9, **SMALL).measured <= 40
    found = required_features(TensorSketch(), rows(), 100.0, **SMALL)
    assert found.measured == 1
    assert "with 1 feature:" in recommend_map([found])[1]


def test_exact_sketches():
    """With 6^2 = 36 columns nothing is lost, and from 35 on hardly anything."""
    found = required_features(TensorSketch(2), rows(), 1e-3, **SMALL)
    assert 30 <= found.measured <= 40
    assert found.from_bound <= 36
    assert found.from_variance <= 36
    assert found.unit == pytest.approx(np.square(np.square(rows()).sum(axis=1)).mean(), rel=0.1)
    linear = required_features(CountSketch(), rows(), 1e-3, **SMALL)
    assert linear.measured <= 6


@pytest.mark.parametrize(
    "feature_map",
    [
        RandomMaclaurin([1.0, 0.5, 0.2], h01=True),
        TaylorSketch(),
        GaussianTemplates(length_scale="median"),
        Fastfood(Matern(1.5), structure="sorf"),
        RandomFourier("laplacian", features="cos_phase"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_other_maps(feature_map):
    found = required_features(feature_map, rows(), 0.1, **SMALL)
    assert found.measured <= found.high
    assert not found.is_extrapolated
    reached = kernel_errors(
        feature_map.set_params(n_components=2 * found.n_components), rows(), n_seeds=3
    )
    assert reached.quantile(0.95).value < 0.1 * found.unit


def test_landmarks_are_measured_on_other_rows():
    """At the landmarks themselves, Nyström features have no error at all."""
    X = rows(200, 6)
    needed = required_features(Nystroem(length_scale=0.5), X, 0.01, n_rows=10**5, **SMALL)
    inside = kernel_errors(Nystroem(n_components=200, length_scale=0.5), X, n_seeds=2)
    assert inside.quantile(0.95).value < 1e-4
    new = kernel_errors(
        Nystroem(n_components=100, length_scale=0.5), X[1::2], n_seeds=2, fit_on=X[::2]
    )
    assert new.quantile(0.95).value > 0.01
    assert needed.is_extrapolated
    assert needed.measured > 100
    few = required_features(Nystroem(length_scale=0.5), X, 0.01, **SMALL)
    assert few.measured == few.n_components == 200
    assert not few.is_extrapolated
    smooth = required_features(Nystroem(length_scale=3.0), X, 0.05, **SMALL)
    assert smooth.measured < 20
    assert required_features(Nystroem(), X[:3], 0.05, **SMALL).measured <= 3
    huge = required_features(Nystroem(length_scale=0.2), X, 1e-4, n_rows=10**9, **SMALL)
    assert huge.n_components is huge.seconds is None


def test_sparse_rows_and_records():
    X = sparse.csr_array(rows() * (rows() > 0.5))
    found = required_features(TensorSketch(2, coef0=1.0), X, 0.1, n_rows=10**6, **SMALL)
    assert found.n_rows == 10**6
    assert found.stored_bytes == 4 * 10**6 * found.n_components
    assert FeatureRequirement.from_record(found.to_record()) == found
    assert found.settings == {"coef0": 1.0}
    assert found.label == "tensor_sketch"


def test_memory_of_maps():
    """A dense matrix of float32 and of float64 is most of what a map holds."""
    X = rows(20, 50)
    fitted = RandomFourier(n_components=400).fit(X)
    fitted.transform(X)
    n_bytes = coefficient_bytes(fitted)
    assert 8 * 200 * 50 <= n_bytes < 1.2 * 8 * 200 * 50
    assert coefficient_bytes(Fastfood(n_components=400).fit(X)) < n_bytes / 4


def test_round_up():
    for size in [*range(1, 300), 12345, 999_999]:
        rounded = round_up(size)
        assert size <= rounded <= max(size, 1.25 * size)
        while rounded % 2 == 0:
            rounded //= 2
        assert rounded in (1, 3, 5, 7)


def test_list_of_maps():
    def names(*args, **settings):
        return [each.label for each in map(described, list_maps(*args, **settings))]

    def described(feature_map):
        return required_features(feature_map, rows(20, 3), 0.5, n_pairs=20, n_seeds=1)

    assert names("gaussian", 3) == [
        *("fastfood", "fastfood (sorf)", "random_fourier", "random_fourier (orthogonal)"),
        *("taylor_sketch", "gaussian_templates", "nystroem"),
    ]
    assert names("laplacian", 3) == ["random_fourier", "nystroem"]
    assert names("poly:degree=2,coef0=1", 3) == [
        *("tensor_sketch", "random_maclaurin", "dot_product_fastfood")
    ]
    wide = [type(each).__name__ for each in list_maps("gaussian", 10**5)]
    assert wide == ["Fastfood", "Fastfood", "TaylorSketch", "GaussianTemplates"]
    assert [each.store_matrix for each in list_maps("laplacian", 10**5)] == [False]
    assert [each.h01 for each in list_maps("poly:degree=3") if hasattr(each, "h01")] == [False]
    sorf = [each for each in list_maps("ball_convolution", 3) if isinstance(each, Fastfood)]
    assert [each.structure for each in sorf] == ["hadamard"]


def requirement(label, size, seconds, n_rows=10**5):
    blank = dict.fromkeys(("from_bound", "from_variance", "low", "high", "map_bytes"))
    return FeatureRequirement(
        map_name=label,
        construction="",
        tolerance=0.01,
        probability=0.95,
        unit=1.0,
        bound="",
        variance_is_exact=False,
        measured=size,
        is_extrapolated=False,
        n_components=size,
        seconds=seconds,
        stored_bytes=None,
        n_rows=n_rows,
        **blank,
    )


class TestRecommendation:
    def test_fastest(self):
        slow, fast = requirement("slow", 900, 9.0), requirement("fast", 1000, 2.0)
        at, sentence = recommend_map([slow, fast])
        assert at == 1
        assert sentence == (
            "Use fast with 1,000 features: 95 % of the pairs are then within 0.01, and the "
            "features of 100,000 rows take 2 s."
        )

    def test_fewest_among_equally_fast_ones(self):
        near = [requirement("many", 1000, 2.0), requirement("few", 600, 2.1)]
        assert recommend_map(near)[0] == 1

    def test_moments_are_equal(self):
        both = [requirement("many", 1000, 1e-4), requirement("few", 600, 9e-4)]
        at, sentence = recommend_map(both)
        assert at == 1
        assert "take less than 1 ms" in sentence

    def test_fewest_is_mentioned(self):
        both = [requirement("few", 100, 9.0), requirement("fast", 1000, 2.0)]
        assert "few needs the fewest, 100, and takes 9 s" in recommend_map(both)[1]

    def test_exact_kernel(self):
        few_rows = requirement("fast", 1000, 2.0, n_rows=500)
        assert "exact kernel is the better choice" in recommend_map([few_rows])[1]

    def test_landmarks_are_mentioned_only(self):
        """What they leave out of the kernel is missing in every model, however small it is."""
        both = [requirement("nystroem", 100, 1.0), requirement("fast", 1000, 2.0)]
        at, sentence = recommend_map(both)
        assert at == 1
        assert "nystroem needs the fewest, 100" in sentence
        assert recommend_map(both[:1])[0] == 0

    def test_none(self):
        failed = replace(requirement("bad", 1, 1.0), n_components=None)
        assert recommend_map([failed])[0] is None


def test_bad_input():
    X = rows()
    for name, call in {
        "tolerance must be a positive": lambda: required_features(Fastfood(), X, 0.0),
        "probability must be above 0 and below 1": lambda: required_features(
            Fastfood(), X, 0.1, 1.0
        ),
        "at least two rows": lambda: required_features(Fastfood(), X[:1], 0.1),
        "finite, positive": lambda: required_features(TensorSketch(), 0 * X, 0.1),
        "Polynomial has no length scale": lambda: list_maps("poly", length_scale=2.0),
        "kernel must be one of": lambda: list_maps("gausian"),
    }.items():
        with pytest.raises(ArgumentError, match=name):
            call()
