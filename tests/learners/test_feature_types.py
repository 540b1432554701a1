"""Rows of other types than the first ones, and features that are not finite."""

import numpy as np
import pytest

from kernelmill import AdditiveFourier, Fastfood, KernelClassifier

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 4))
Y = (X[:, 0] * X[:, 1] > 0).astype(int)


@pytest.mark.parametrize("family", [Fastfood, AdditiveFourier])
@pytest.mark.parametrize("types", [(np.float64, np.float32), (np.float32, np.float64, np.int64)])
def test_later_rows_take_on_the_type_of_the_first(family, types):
    features = family(n_components=64, length_scale=1.0, random_state=0)
    model = KernelClassifier(features, solver="sgd")
    for dtype in types:
        model.partial_fit(X.astype(dtype), Y, classes=[0, 1])
    assert model.coef_.dtype == types[0]
    assert model.score(X, Y) > 0.7


def test_lbfgs_rejects_features_that_are_not_finite():
    rows = RNG.normal(size=(3000, 6)).astype(np.float32)
    rows[2500, 0] = 3e38
    model = KernelClassifier(Fastfood(n_components=32, length_scale=1.0), solver="lbfgs")
    with (
        np.errstate(all="ignore"),
        pytest.raises(
            ValueError,
            match=r"features of a row are not finite in float32: .* 3e\+38, in column 0",
        ),
    ):
        model.fit(rows, rows[:, 1] > 0)
