"""Features are finite, or an error names the row and its largest number: no NaN leaves a map."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from kernelmill import CountSketch, Fastfood, TensorSketch
from kernelmill.maps.finite import NotFiniteError, find_not_finite

ROWS = np.random.default_rng(0).uniform(0.1, 1, size=(20, 5))
MAGNITUDES = {
    np.float32: (1e3, 1e8, 1e13, 1e19, 1e25, 1e37, 3.4e38),
    np.float64: (1e3, 1e13, 1e52, 1e80, 1e110, 1e155, 1e250, 1.79e308),
}


def features_or_error(fitted, X):
    try:
        return fitted.transform(X), None
    except NotFiniteError as error:
        return None, error


@pytest.mark.parametrize("dtype", MAGNITUDES)
def test_every_map_gives_finite_features_or_an_error(feature_map, fix_scale, dtype):
    """Dense and sparse, few rows and many."""
    fitted = fix_scale(feature_map, 1.0).set_params(n_components=12).fit(ROWS)
    found = set()
    for magnitude in MAGNITUDES[dtype]:
        for sign in (1, -1):
            X = ROWS.astype(dtype)
            X[17] *= dtype(sign * magnitude)
            for given in (X, sp.csr_array(X), X[17:18]):
                row = 17 if given.shape[0] > 1 else 0
                Z, error = features_or_error(fitted, given)
                if error is None:
                    assert np.isfinite(Z).all()
                    continue
                found.add(magnitude)
                assert f"features of row {row} are not finite in {X.dtype}" in str(error)
                assert error.found.n_rows == 1
                assert abs(error.found.largest) == np.abs(X[17]).max()
                assert error.found.column == np.abs(X[17]).argmax()
    assert MAGNITUDES[dtype][0] not in found


@pytest.mark.parametrize(
    ("made", "magnitude"),
    [(TensorSketch(3), 1e13), (TensorSketch(2), 1e25), (CountSketch(2), 3e38), (Fastfood(), 3e38)],
)
def test_what_once_gave_nan(made, magnitude):
    fitted = made.set_params(random_state=0).fit(ROWS.astype(np.float32))
    X = np.full((40, 5), magnitude, np.float32)
    with pytest.raises(NotFiniteError, match=r"of row 0 .* in column 0 \(39 more rows like it\)"):
        fitted.transform(X)


def test_the_error_survives_a_pickle():
    with pytest.raises(NotFiniteError) as caught:
        TensorSketch(3).fit(ROWS).transform(np.full((1, 5), 1e200))
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert again.found == caught.value.found


def test_ordinary_rows_are_not_to_blame():
    large = np.full((1, 8), 1e300)
    made = Fastfood.from_factors(np.ones((1, 8)), [np.arange(8)], large, large)
    with pytest.raises(NotFiniteError, match=r"although its largest number is 1, .*larger length"):
        made.transform(np.ones((2, 8)))


@pytest.mark.parametrize("dtype", MAGNITUDES)
def test_find_not_finite(isa, dtype):
    largest = np.finfo(dtype).max
    for n_columns in (1, 7, 8, 9, 16, 17, 65):
        values = np.full((12, n_columns), largest, dtype)
        assert find_not_finite(values).tolist() == []
        for place in range(n_columns):
            changed = values.copy()
            changed[3, place], changed[7, place], changed[9, -1] = np.nan, np.inf, -np.inf
            assert find_not_finite(changed).tolist() == [3, 7, 9]
