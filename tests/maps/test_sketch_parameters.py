"""Parameters of the sketches and their errors."""

import numpy as np
import pytest

from kernelmill import CountSketch, TensorSketch


def test_takes_the_place_of_scikit_learns():
    from sklearn.kernel_approximation import PolynomialCountSketch

    X = np.random.default_rng(3).uniform(size=(30, 10))
    theirs = PolynomialCountSketch(
        gamma=0.5, degree=3, coef0=1, n_components=2000, random_state=0
    ).fit(X)
    ours = TensorSketch(**theirs.get_params()).fit(X)
    Z = ours.transform(X)
    assert Z.shape == theirs.transform(X).shape
    np.testing.assert_allclose(Z @ Z.T, (0.5 * X @ X.T + 1) ** 3, rtol=1e-10)


def test_gamma_scale():
    X = np.random.default_rng(4).uniform(-2, 5, (50, 7))
    gamma = TensorSketch(gamma="scale").fit(X).gamma_
    assert gamma == pytest.approx(1 / (7 * X.var()), rel=1e-12)
    assert TensorSketch(gamma="scale").fit(np.ones((3, 2))).gamma_ == 1.0
    with pytest.raises(ValueError, match=r"gamma must be .*got 'auto'; pass gamma=1"):
        TensorSketch(gamma="auto").fit(X)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"degree": 0}, "degree must be .* got 0"),
        ({"degree": 2.5}, "degree must be"),
        ({"gamma": -1.0}, "gamma must be a positive"),
        ({"gamma": np.inf}, "gamma must be a positive"),
        ({"coef0": -0.5}, "coef0 must be .*not negative, got -0.5"),
        ({"coef0": np.nan}, "coef0 must be"),
        ({"hashing": "random"}, "hashing must be one of 'collision_free', 'independent'"),
        ({"n_components": 0}, "n_components must be"),
        ({"n_components": 2**31}, "n_components must be"),
    ],
)
def test_bad_parameters(params, message):
    with pytest.raises((ValueError, TypeError), match=message):
        TensorSketch(**params).fit(np.ones((3, 2)))
    if "n_components" in params or "hashing" in params:
        with pytest.raises((ValueError, TypeError), match=message):
            CountSketch(**params).fit(np.ones((3, 2)))
