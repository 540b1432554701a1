"""The tables of maps: every property of the contract is tested on each of them.

Maps of landmarks have a table of their own. Their features depend on the rows that they are fitted
on, of which they hold some, and there are no more features than rows; their matrix products are
those of BLAS, so features of other batches agree to rounding. Tests of bits, of small pickles and
of numbers of columns take `random_map` instead of `feature_map`.
"""

import numpy as np
import pytest
from sklearn.base import clone

from kernelmill import (
    AdditiveFourier,
    CountSketch,
    DotProductFastfood,
    Fastfood,
    GaussianTemplates,
    Nystroem,
    PrincipalFourier,
    RandomFourier,
    RandomMaclaurin,
    TaylorSketch,
    TensorSketch,
)
from kernelmill.kernels import ArcCosine, Laplacian, Matern, Polynomial, SpherePower
from kernelmill.maps import registry

MAPS = {
    "dense": RandomFourier(),
    "dense complex": RandomFourier(features="complex"),
    "dense cos_phase": RandomFourier(features="cos_phase"),
    "dense orthogonal": RandomFourier(sampling="orthogonal"),
    "dense qmc": RandomFourier(sampling="qmc"),
    "dense drawn again": RandomFourier(store_matrix=False),
    "dense orthogonal drawn again": RandomFourier(sampling="orthogonal", store_matrix=False),
    "dense Laplacian": RandomFourier(Laplacian()),
    "dense Matern qmc": RandomFourier(Matern(1.5), sampling="qmc"),
    "hadamard": Fastfood(),
    "hadamard complex": Fastfood(features="complex"),
    "hadamard cos_phase": Fastfood(features="cos_phase"),
    "hadamard independent": Fastfood(blocks="independent"),
    "hadamard Matern": Fastfood(Matern(1.5)),
    "hadamard BallConvolution": Fastfood("ball_convolution"),
    "sorf": Fastfood(structure="sorf"),
    "sorf complex": Fastfood(structure="sorf", features="complex"),
    "dct": Fastfood(structure="dct"),
    "dct independent": Fastfood(structure="dct", blocks="independent"),
    "fft": Fastfood(structure="fft"),
    "fft cos_phase": Fastfood(structure="fft", features="cos_phase"),
    "additive": AdditiveFourier(steps=[[0, 0.1], [0, 0.4]]),
    "additive Laplacian": AdditiveFourier(Laplacian(), steps=[[0, 0.1], [0, 0.4]]),
    "count sketch": CountSketch(),
    "count sketch independent": CountSketch(hashing="independent"),
    "tensor sketch": TensorSketch(),
    "tensor sketch of degree 1": TensorSketch(1, coef0=0.5),
    "tensor sketch inhomogeneous": TensorSketch(3, coef0=1.0, gamma="scale"),
    "tensor sketch independent": TensorSketch(hashing="independent"),
    "taylor": TaylorSketch(),
    "taylor unbiased": TaylorSketch(center=None, normalize=False),
    "maclaurin": RandomMaclaurin(),
    "maclaurin cubic": RandomMaclaurin(Polynomial(3, gamma=0.1, coef0=1.0)),
    "maclaurin custom, geometric": RandomMaclaurin([1.0, 0.2, 0.0, 0.3], degrees="geometric"),
    "maclaurin drawn again": RandomMaclaurin(Polynomial(3), store_matrix=False),
    "maclaurin h01": RandomMaclaurin(Polynomial(3, gamma=0.1, coef0=1.0), h01=True),
    "templates": GaussianTemplates(),
    "templates uncentered": GaussianTemplates(proper=False, center=None),
    "templates student": GaussianTemplates(proper=False, weighting="student"),
    "sphere": DotProductFastfood(),
    "sphere cubic": DotProductFastfood(Polynomial(3, gamma=0.1, coef0=1.0)),
    "sphere exponential": DotProductFastfood("exponential", radius=1.0),
    "sphere arc-cosine": DotProductFastfood(ArcCosine(1), max_degree=16, blocks="independent"),
    "sphere powers": DotProductFastfood(SpherePower([1.0, 0.0, 2.0, 1.0])),
}


OF_LANDMARKS = {
    "principal": PrincipalFourier(directions=3),  # the directions of these rows
    "landmarks": Nystroem(n_components=12),  # tests fit some 20 rows
    "landmarks Laplacian": Nystroem(Laplacian(), n_components=12),
    "landmarks exponential": Nystroem("exponential", n_components=12),
}


# A new map is tested with its default parameters, without a line here.
IN_TABLES = {type(each) for each in (*MAPS.values(), *OF_LANDMARKS.values())}
MAPS |= {name: each() for name, each in registry.MAPS.items() if each not in IN_TABLES}


def fixture_of(maps, name):
    """A fixture: each map of a table, fresh, with a fixed seed, not fitted."""

    @pytest.fixture(params=maps.values(), ids=maps.keys(), name=name)
    def fresh_map(request):
        return clone(request.param).set_params(random_state=7)

    return fresh_map


def scaled(maps):
    """Those whose features depend on columns divided by length scales alone."""
    return {
        name: each
        for name, each in maps.items()
        if "length_scale" in each.get_params()
        and not isinstance(each, AdditiveFourier | PrincipalFourier)
    }


random_map = fixture_of(MAPS, "random_map")
feature_map = fixture_of(MAPS | OF_LANDMARKS, "feature_map")
random_map_with_length_scale = fixture_of(scaled(MAPS), "random_map_with_length_scale")
map_with_length_scale = fixture_of(scaled(MAPS | OF_LANDMARKS), "map_with_length_scale")


@pytest.fixture
def one_map_per_class():
    """The first map of each class in the table, for checks that all maps of a class share."""
    maps = [*MAPS.values(), *OF_LANDMARKS.values()]
    first = {type(feature_map): feature_map for feature_map in reversed(maps)}
    return [clone(feature_map).set_params(random_state=7) for feature_map in first.values()]


@pytest.fixture
def fix_scale():
    """Set the scale of a map, where it has one, instead of computing it from the data."""

    def fix(feature_map, scale):
        for name in ("length_scale", "radius"):
            if name in feature_map.get_params():
                feature_map.set_params(**{name: scale})
        if hasattr(feature_map, "spread") and not isinstance(scale, str):
            feature_map.set_params(spread=scale)
        if getattr(feature_map, "gamma", None) == "scale":
            feature_map.set_params(gamma=scale)
        if "center" in feature_map.get_params():
            feature_map.set_params(center=None)
        return feature_map

    return fix


@pytest.fixture
def points():
    """Draw rows of standard normals: ``points(n_rows, n_columns, dtype)``."""

    def make(n_rows, n_columns, dtype=np.float64):
        rng = np.random.default_rng([n_rows, n_columns])
        return rng.standard_normal((n_rows, n_columns)).astype(dtype)

    return make


@pytest.fixture
def same_bits():
    """Assert that two arrays have the same dtype, shape and bytes."""

    def check(actual, expected):
        assert actual.dtype == expected.dtype
        assert actual.shape == expected.shape
        assert actual.tobytes() == expected.tobytes()

    return check


@pytest.fixture
def every_map():
    """The maps of both tables, not fitted."""
    return [*MAPS.values(), *OF_LANDMARKS.values()]
