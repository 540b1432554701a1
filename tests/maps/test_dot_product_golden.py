"""Coefficients of the maps of dot-product kernels: the same in every release.

``python tests/maps/test_dot_product_golden.py`` prints the table.
"""

import hashlib

import numpy as np
import pytest
from sklearn.base import clone

from kernelmill import (
    CountSketch,
    DotProductFastfood,
    GaussianTemplates,
    RandomMaclaurin,
    TaylorSketch,
    TensorSketch,
)
from kernelmill.kernels import ArcCosine, Polynomial

MAPS = {
    "count sketch": CountSketch(),
    "count sketch independent": CountSketch(hashing="independent"),
    "tensor sketch": TensorSketch(3, gamma=0.25, coef0=4.0),
    "tensor sketch independent": TensorSketch(3, hashing="independent"),
    "taylor": TaylorSketch(length_scale=2.0, radius=1.5, center=None),
    "maclaurin": RandomMaclaurin(Polynomial(3, coef0=1.0), radius=1.0),
    "maclaurin geometric": RandomMaclaurin([1.0, 0.5, 0.25], degrees="geometric"),
    "sphere": DotProductFastfood(Polynomial(3, coef0=1.0), radius=1.0),
    "sphere zonal": DotProductFastfood(ArcCosine(1), radius=1.0, blocks="independent"),
    "templates": GaussianTemplates(length_scale=2.0, spread=1.0, center=None),
}
GOLDEN = {
    "count sketch": "f3a4a2c93c5819fa4154966070f7277d",
    "count sketch independent": "2ed38fa13d5c47fdd91500f2dafb83c3",
    "tensor sketch": "9edd36b0a6302d5f3afd00c256e7cadc",
    "tensor sketch independent": "2d422f7298f6aef0c9243fefaf4448b8",
    "taylor": "3af274b4f9a1895f7d7d307320ca1f26",
    "maclaurin": "3c143baab86f574af6afc6bbf0de4e4e",
    "maclaurin geometric": "2fb41e98061a5dda41996c6578925ace",
    "sphere": "4b4dd0ce6312231a046b14592fa7cede",
    "sphere zonal": "705b10e482d9d93881a7d2f5f8ab1c70",
    "templates": "12aad5ea2bdc64f03ee299bd99f8061d",
}


def coefficients(fitted):
    """All that was drawn, and what a column takes which part of it, as exact numbers."""
    if isinstance(fitted, TaylorSketch):
        sketches = fitted.sketches_
    elif isinstance(fitted, (CountSketch, TensorSketch)):
        sketches = [fitted.sketch_]
    elif isinstance(fitted, RandomMaclaurin):
        sketch = fitted.sketch_
        return [sketch.degrees, *(sketch.factors(k) for k in range(sketch.degrees.max()))]
    else:
        factors = fitted.projection_.factors(np.float64)
        drawn = [factors.signs, factors.permutation, factors.inner]
        return [*drawn, fitted.degrees_] if isinstance(fitted, DotProductFastfood) else drawn
    arrays = []
    for sketch in sketches:
        tables = sketch.tables(np.float64)
        arrays += [tables.buckets, tables.weights]
        if tables.offsets is not None:
            arrays.append(tables.offsets)
    return arrays


def digest(feature_map, dim=11):
    fitted = clone(feature_map).set_params(n_components=201, random_state=42)
    fitted.fit(np.zeros((1, dim)))
    state = hashlib.sha256()
    for array in coefficients(fitted):
        numbers = np.asarray(array) + 0  # no negative zeros
        little = numbers.astype(numbers.dtype.newbyteorder("<"))
        state.update(f"{array.shape}".encode() + little.tobytes())
    return state.hexdigest()[:32]


@pytest.mark.parametrize("name", MAPS)
def test_golden_coefficients_of_dot_product_maps(isa, name):
    assert digest(MAPS[name]) == GOLDEN[name]


if __name__ == "__main__":
    for name, feature_map in MAPS.items():
        print(f'    "{name}": "{digest(feature_map)}",')  # noqa: T201
