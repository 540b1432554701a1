"""Maps of every kind and parameter, and rows to try them on."""

import numpy as np
import pytest
from sklearn.base import clone

from kernelmill import (
    CountSketch,
    DotProductFastfood,
    Fastfood,
    GaussianTemplates,
    Nystroem,
    RandomFourier,
    RandomMaclaurin,
    TaylorSketch,
    TensorSketch,
)
from kernelmill.kernels import (
    ArcCosine,
    BallConvolution,
    Cauchy,
    Exponential,
    ExponentialDotProduct,
    Gaussian,
    Laplacian,
    Maclaurin,
    Matern,
    Polynomial,
    Radial,
    RationalQuadratic,
    Spectrum,
    SpherePower,
)
from kernelmill.maps import registry
from kernelmill.random import Stream

DIM = 7
SCALES = np.array([0.5, 2.0, np.inf, 1.0, 7.0, 3.0, 1.5])  # of the columns


def given_factors():
    rng = np.random.default_rng(1)
    G, S = rng.standard_normal((2, 4, 16))
    permutation = [rng.permutation(16) for _ in range(4)]
    made = Fastfood.from_factors(rng.choice([-1, 1], (4, 16)), permutation, G, S, length_scale=3)
    return made.set_params(n_components=99)


MAPS = {
    "fastfood": Fastfood(),
    "fastfood complex": Fastfood(features="complex", length_scale="median"),
    "fastfood cos_phase": Fastfood("rbf", features="cos_phase", gamma="scale"),
    "fastfood independent": Fastfood("matern", blocks="independent", gamma=0.3),
    "fastfood of Matern": Fastfood(Matern(2.5), length_scale=np.float32(1.1)),
    "fastfood of smoothest Matern": Fastfood(Matern(np.inf)),
    "fastfood of Exponential": Fastfood(Exponential(), n_threads=2),
    "fastfood of RationalQuadratic": Fastfood(RationalQuadratic(0.1)),
    "fastfood of Cauchy": Fastfood(Cauchy(), random_state=None),
    "fastfood of BallConvolution": Fastfood(BallConvolution(3)),
    "fastfood of radii": Fastfood(Radial([0.1, 1.0, 3.0])),
    "fastfood sorf": Fastfood(Gaussian(), structure="sorf"),
    "fastfood dct": Fastfood(structure="dct"),
    "fastfood fft": Fastfood(structure="fft"),
    "fastfood of factors": given_factors(),
    "fastfood of columns": Fastfood(length_scale=SCALES),
    "fastfood sorf of columns": Fastfood(length_scale=SCALES, structure="sorf"),
    "fourier": RandomFourier(),
    "fourier complex": RandomFourier(features="complex"),
    "fourier cos_phase": RandomFourier(features="cos_phase"),
    "fourier orthogonal": RandomFourier(sampling="orthogonal"),
    "fourier qmc": RandomFourier(sampling="qmc"),
    "fourier of columns": RandomFourier("laplacian", length_scale=SCALES),
    "fourier not stored": RandomFourier(store_matrix=False),
    "fourier of Laplacian": RandomFourier(Laplacian(), random_state=np.random.default_rng(0)),
    "fourier of frequencies": RandomFourier(
        Spectrum(np.random.default_rng(0).standard_normal((60, DIM)))
    ),
    "count sketch": CountSketch(),
    "count sketch independent": CountSketch(hashing="independent", random_state=2**70),
    "tensor sketch": TensorSketch(3, gamma="scale", coef0=1),
    "tensor sketch independent": TensorSketch(hashing="independent", gamma=2),
    "taylor": TaylorSketch(),
    "taylor uncentered": TaylorSketch(center=None, normalize=False, radius=1.5, degree=3),
    "taylor of columns": TaylorSketch(length_scale=SCALES),
    "maclaurin": RandomMaclaurin(Polynomial(3, gamma=0.1, coef0=1.0), h01=True),
    "maclaurin of a list": RandomMaclaurin([1.0, 0.2, 0.0, 0.3], degrees="geometric"),
    "maclaurin of an array": RandomMaclaurin(np.array([1, 2, 3]), store_matrix=False, radius=2.0),
    "maclaurin of Maclaurin": RandomMaclaurin(Maclaurin([0.0, 1.0, 1.0])),
    "templates": GaussianTemplates(),
    "templates of columns": GaussianTemplates(length_scale=SCALES),
    "templates uncentered": GaussianTemplates(proper=False, center=None, spread=2.0),
    "templates student": GaussianTemplates(proper=False, weighting="student", df=4),
    "sphere": DotProductFastfood(),
    "sphere exponential": DotProductFastfood(ExponentialDotProduct(2.0), radius=1.0),
    "sphere arc-cosine": DotProductFastfood(ArcCosine(1), max_degree=16, blocks="independent"),
    "sphere powers": DotProductFastfood(SpherePower([1.0, 0.0, 2.0, 1.0]), max_degree=2),
    "sphere of a list": DotProductFastfood([1.0, 0.5]),
    "landmarks": Nystroem("exponential", n_components=20),
    "landmarks of columns": Nystroem(Laplacian(), n_components=20, length_scale=SCALES),
    "landmarks, all rows": Nystroem(RationalQuadratic(0.5), gamma="scale", n_components=40),
    "of a stream": Fastfood(random_state=Stream.from_seed(5)),
}


# A new map is tested with its default parameters, without a line here.
IN_TABLE = {type(each) for each in MAPS.values()}
MAPS |= {name: each() for name, each in registry.MAPS.items() if each not in IN_TABLE}


def fitted_maps():
    """All maps, fitted, by name; other columns than powers of two, and numbers of them."""
    X = np.random.default_rng(3).standard_normal((40, DIM)) + 1
    maps = {}
    for name, each in MAPS.items():
        copy = clone(each)
        if copy.random_state is None and name != "fastfood of Cauchy":
            copy.set_params(random_state=7)
        if copy.n_components == 100:
            copy.set_params(n_components=101)
        maps[name] = copy.fit(X)
    return maps


@pytest.fixture(scope="session")
def rows():
    """Rows to be mapped, some entries of which are 0."""
    rng = np.random.default_rng(4)
    return rng.standard_normal((23, DIM)) * (rng.uniform(size=(23, DIM)) < 0.7)


@pytest.fixture(scope="session")
def maps():
    return fitted_maps()


@pytest.fixture(params=MAPS)
def fitted_map(request, maps):
    return maps[request.param]
