"""Invalid parameters and data raise an error whose message names the problem; nothing crashes."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from kernelmill import Fastfood, RandomFourier
from kernelmill.kernels import Gaussian, Laplacian, Spectrum

X = np.random.default_rng(0).standard_normal((30, 5))
BOTH = [RandomFourier, Fastfood]


def uniform_frequencies(stream, n, dim):
    return 2 * stream.uniforms((n, dim)) - 1


PARAMETERS = [
    ({"n_components": 0}, ValueError, r"n_components must be between 1 and .*, got 0"),
    ({"n_components": -1}, ValueError, r"n_components must be between 1 and .*, got -1"),
    ({"n_components": 2.5}, TypeError, r"n_components must be an integer, got 2\.5"),
    ({"n_components": "a"}, TypeError, "n_components must be an integer, got 'a'"),
    ({"n_components": None}, TypeError, "n_components must be an integer, got None"),
    ({"n_components": True}, TypeError, "n_components must be an integer, got True"),
    ({"features": "cosine"}, ValueError, "features must be one of 'cos_sin', .* got 'cosine'"),
    ({"features": None}, ValueError, "features must be one of 'cos_sin', .* got None"),
    ({"features": ["complex"]}, ValueError, "features must be one of"),
    ({"kernel": "gausian"}, ValueError, "kernel must be one of .*'gaussian'.* got 'gausian'"),
    ({"kernel": 3}, TypeError, "kernel must be one of .* got 3"),
    ({"kernel": None}, TypeError, "kernel must be one of .* got None"),
    ({"kernel": Gaussian}, TypeError, r"kernel must be an instance.* write Gaussian\(\)"),
    ({"gamma": -1}, ValueError, "gamma must be a positive, finite number, got -1"),
    ({"gamma": 0}, ValueError, "gamma must be a positive, finite number, got 0"),
    ({"gamma": np.nan}, ValueError, "gamma must be a positive, finite number, got nan"),
    ({"gamma": np.inf}, ValueError, "gamma must be a positive, finite number, got inf"),
    ({"gamma": "auto"}, ValueError, "gamma must be .* or 'scale', got 'auto'; pass"),
    ({"gamma": [1.0, 2.0]}, TypeError, "gamma must be a positive, finite number"),
    ({"gamma": True}, TypeError, "gamma must be a positive, finite number, got True"),
    ({"length_scale": -1}, ValueError, "length_scale must be a positive, finite number, got -1"),
    ({"length_scale": 0.0}, ValueError, "length_scale must be a positive, finite number"),
    ({"length_scale": np.nan}, ValueError, "length_scale must be a positive, finite number"),
    ({"length_scale": "mean"}, ValueError, "length_scale must be .*'median', got 'mean'"),
    ({"length_scale": [1.0, 2.0]}, ValueError, "length_scale must be one number, or have one for"),
    ({"n_threads": 0}, ValueError, "n_threads must be at least 1, got 0"),
    ({"n_threads": -1}, ValueError, "n_threads must be at least 1, got -1"),
    ({"n_threads": 1.5}, TypeError, r"n_threads must be an integer, got 1\.5"),
    ({"random_state": "a"}, TypeError, "random_state must be .* got 'a'"),
    ({"random_state": -1}, ValueError, "random_state must be at least 0, got -1"),
]
OF_FASTFOOD = [
    ({"structure": "hadamar"}, ValueError, "structure must be one of .* got 'hadamar'"),
    ({"structure": None}, ValueError, "structure must be one of .* got None"),
    ({"blocks": "stratify"}, ValueError, "blocks must be one of .* got 'stratify'"),
    (
        {"kernel": "laplacian"},
        ValueError,
        "must be radial.*got Laplacian; use the map random_fourier",
    ),
    (
        {"kernel": Laplacian()},
        ValueError,
        "must be radial.*got Laplacian; use the map random_fourier",
    ),
    (
        {"kernel": Spectrum(uniform_frequencies)},
        ValueError,
        "got Spectrum; use the map random_fourier",
    ),
]
OF_DENSE = [
    ({"sampling": "iidd"}, ValueError, "sampling must be one of .* got 'iidd'"),
    ({"sampling": None}, ValueError, "sampling must be one of .* got None"),
    (
        {"sampling": "orthogonal", "kernel": "laplacian"},
        ValueError,
        "sampling='orthogonal' needs a radial kernel, got Laplacian; .*sampling='iid'",
    ),
    (
        {"sampling": "qmc", "kernel": Spectrum(uniform_frequencies)},
        ValueError,
        "sampling='qmc' needs a radial kernel or Laplacian, got Spectrum; .*sampling='iid'",
    ),
]
WRONG = [(make, *case) for make in BOTH for case in PARAMETERS]
WRONG += [(Fastfood, *case) for case in OF_FASTFOOD]
WRONG += [(RandomFourier, *case) for case in OF_DENSE]


def name_of(value):
    return value.__name__ if isinstance(value, type) else str(value)[:50]


@pytest.mark.parametrize(("make", "parameters", "error", "message"), WRONG, ids=name_of)
def test_parameters(make, parameters, error, message):
    with pytest.raises(error, match=message):
        make(**parameters).fit(X)


@pytest.mark.parametrize(("make", "parameters", "error", "message"), WRONG, ids=name_of)
def test_a_failed_fit_leaves_the_old_one(make, parameters, error, message, same_bits):
    fitted = make(random_state=0).fit(X)
    Z = fitted.transform(X)
    state = dict(vars(fitted))
    with pytest.raises(error, match=message):
        fitted.set_params(**parameters).fit(np.ones((2, 9)))
    for name in ("n_features_in_", "kernel_", "length_scale_", "projection_", "stream_"):
        assert getattr(fitted, name) is state[name]
    fitted.n_threads = None  # the one parameter that transform looks at
    same_bits(fitted.transform(X), Z)


def test_too_wide_for_sobol_points():
    with pytest.raises(ValueError, match=r"at most 21201 columns.*got 21202; .*sampling='orth"):
        RandomFourier(sampling="qmc").fit(np.ones((1, 21202)))


@pytest.mark.parametrize("make", BOTH)
def test_threads_are_checked_in_transform(make):
    fitted = make(random_state=0).fit(X)
    for n_rows in (1, 30):
        with pytest.raises(ValueError, match="n_threads must be at least 1, got 0"):
            fitted.set_params(n_threads=0).transform(X[:n_rows])


def with_entry(value, form=np.asarray):
    data = X.copy()
    data[3, 2] = value
    return form(data)


DATA = {
    "NaN": (with_entry(np.nan), "NaN"),
    "infinity": (with_entry(np.inf), "infinity"),
    "minus infinity": (with_entry(-np.inf), "infinity"),
    "sparse NaN": (with_entry(np.nan, sp.csr_array), "NaN"),
    "sparse infinity": (with_entry(np.inf, sp.csr_array), "infinity"),
    "float32 infinity": (with_entry(np.inf).astype(np.float32), "infinity"),
    "strings": (np.array([["a", "b", "c", "d", "e"]]), "convert|float"),
    "one dimension": (np.ones(5), r"2D array, got 1D"),
    "three dimensions": (np.ones((2, 5, 1)), "dim 3"),
    "a number": (3.0, "2D array, got scalar"),
    "no rows": (np.empty((0, 5)), "0 sample"),
    "no columns": (np.empty((5, 0)), "0 feature|5 features"),
    "complex": (X + 0j, "[Cc]omplex"),
    "None": (None, "2D array, got scalar|NoneType"),
}


@pytest.mark.parametrize(("data", "message"), DATA.values(), ids=DATA.keys())
class TestData:
    def test_fit(self, one_map_per_class, data, message):
        for feature_map in one_map_per_class:
            with pytest.raises((ValueError, TypeError), match=message):
                feature_map.fit(data)

    def test_transform(self, one_map_per_class, data, message):
        for feature_map in one_map_per_class:
            feature_map.fit(X)
            with pytest.raises((ValueError, TypeError), match=message):
                feature_map.transform(data)
            if isinstance(data, np.ndarray) and data.ndim == 2 and len(data) > 10:
                with pytest.raises(ValueError, match=message):
                    feature_map.transform(data[3:4])


def test_wrong_number_of_columns(feature_map):
    feature_map.fit(X)
    for wrong in (X[:, :4], np.ones((30, 6)), X[:1, :4], sp.csr_array(X[:, :4])):
        message = f"{wrong.shape[1]} features, but .* is expecting 5 features"
        with pytest.raises(ValueError, match=message):
            feature_map.transform(wrong)


def test_not_fitted(feature_map):
    for rows in (X, X[:1]):
        with pytest.raises(NotFittedError):
            feature_map.transform(rows)
    with pytest.raises(NotFittedError):
        feature_map.exact_kernel(X)
    with pytest.raises(NotFittedError):
        feature_map.get_feature_names_out()


def set_entry(part, position, value):
    def damage(matrix):
        getattr(matrix, part)[position] = value

    return damage


def cut(part, n):
    def damage(matrix):
        setattr(matrix, part, getattr(matrix, part)[:-n])

    return damage


DAMAGES = {
    "too large index": set_entry("indices", 7, 5),
    "huge index": set_entry("indices", 7, 2**31 - 1),
    "negative index": set_entry("indices", 7, -1),
    "decreasing indptr": set_entry("indptr", 2, 2),
    "large indptr": set_entry("indptr", -1, 10**6),
    "large indptr inside": set_entry("indptr", 2, 10**6),
    "negative indptr": set_entry("indptr", 1, -3),
    "late start": set_entry("indptr", 0, 2),
    "short data": cut("data", 3),
    "short indptr": cut("indptr", 1),
}
INVALID_CSR = r"X is not a valid CSR matrix: .*; build it again"


@pytest.mark.parametrize("n_rows", [3, 40])
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_damaged_sparse_matrices(one_map_per_class, fix_scale, damage, n_rows):
    matrix = sp.csr_array(np.ones((n_rows, 5)))
    damage(matrix)
    for feature_map in one_map_per_class:
        feature_map.fit(X)
        with pytest.raises(ValueError, match=INVALID_CSR):
            feature_map.transform(matrix)
        for scale in ("scale", 1.0):
            fix_scale(feature_map, scale)
            with pytest.raises(ValueError, match=INVALID_CSR):
                feature_map.fit(matrix)


CHANGING = """
import faulthandler, sys, threading, time
import numpy as np, scipy.sparse as sp
from kernelmill import CountSketch, Fastfood, Nystroem, RandomFourier, TensorSketch
from kernelmill.kernels import Gaussian

faulthandler.enable()
sys.setswitchinterval(1e-5)
X = sp.random_array((400, 300), density=0.1, format="csr", rng=np.random.default_rng(0))
X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
valid = X.copy()
seconds = 0.25

def change():
    while True:
        for name in ("indices", "indptr"):
            getattr(X, name)[1:] = 2**31 - 1
            getattr(X, name)[:] = getattr(valid, name)

maps = [CountSketch(64), TensorSketch(n_components=64), Fastfood(n_components=64),
        RandomFourier(n_components=64), Fastfood(structure="dct"), Nystroem()]
maps = [each.set_params(random_state=0).fit(valid) for each in maps]
calls = [*(each.transform for each in maps), Gaussian()]
threading.Thread(target=change, daemon=True).start()
for call in calls:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            call(X)
        except (ValueError, MemoryError):
            pass
print("done")
"""


def test_sparse_matrices_may_change_in_other_threads():
    """Indices that are checked and then read again would end the process."""
    command = [sys.executable, "-c", CHANGING]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert found.stdout == "done\n", found.stderr[-2000:]


def test_every_map_checks_its_data(feature_map):
    """The checks above run on one map of each class; this one runs on every map."""
    damaged = sp.csr_array(np.ones((3, 5)))
    damaged.indices[7] = 2**31 - 1
    bad = [(with_entry(np.nan), "NaN"), (with_entry(np.nan)[3:4], "NaN"), (damaged, INVALID_CSR)]
    for rows, message in bad:
        with pytest.raises(ValueError, match=message):
            feature_map.fit(rows)
    feature_map.fit(X)
    for rows, message in bad:
        with pytest.raises(ValueError, match=message):
            feature_map.transform(rows)


class TestFactors:
    @staticmethod
    def factors(n_blocks=3, size=8):
        rng = np.random.default_rng(0)
        B = rng.choice([-1.0, 1.0], (n_blocks, size))
        permutation = np.array([rng.permutation(size) for _ in range(n_blocks)])
        return B, permutation, rng.standard_normal((n_blocks, size)), np.ones((n_blocks, size))

    def rejects(self, message, *factors, **options):
        with pytest.raises((ValueError, TypeError), match=message):
            Fastfood.from_factors(*factors, **options)

    def test_shapes(self):
        B, permutation, G, S = self.factors()
        self.rejects(r"same shape.*G has \(3, 8\) and B has \(2, 8\)", B[:2], permutation, G, S)
        self.rejects(r"same shape.*G has \(3, 8\) and S has \(3, 4\)", B, permutation, G, S[:, :4])
        self.rejects(r"integers with the shape of G, \(3, 8\)", B, permutation[:2], G, S)
        self.rejects(r"S must be real and of shape", B, permutation, G, S[np.newaxis])
        self.rejects(r"B must be real and of shape", np.empty((0, 8)), permutation, G, S)
        self.rejects("must be a power of two, got 6", *self.factors(size=6))

    def test_values(self):
        B, permutation, G, S = self.factors()
        twice = permutation.copy()
        twice[1, 0] = twice[1, 1]
        self.rejects("every integer from 0 to 7 once", B, twice, G, S)
        self.rejects("every integer from 0 to 7 once", B, permutation + 1, G, S)
        self.rejects("every integer from 0 to 7 once", B, permutation - 1, G, S)
        self.rejects("permutation must be an array of integers", B, permutation.astype(float), G, S)
        self.rejects("G must be finite", B, permutation, G * np.nan, S)
        self.rejects("G must be real", B, permutation, G * 1j, S)
        self.rejects("S must be real", B, permutation, G, S.astype(str))

    def test_sizes(self):
        factors = self.factors()
        self.rejects("at most 8 columns, got 9", *factors, n_features=9)
        self.rejects("24 frequencies, but 25 are needed; .*n_components", *factors, n_components=50)
        self.rejects("n_components must be between 1 and", *factors, n_components=0)
        self.rejects("features must be one of", *factors, features="cos")
        self.rejects("length_scale must be a positive", *factors, length_scale=0)
        with pytest.raises(ValueError, match="expecting 8 features"):
            Fastfood.from_factors(*factors).transform(np.ones((2, 7)))
        with pytest.raises(ValueError, match="factors are custom"):
            Fastfood.from_factors(*factors).exact_kernel(np.ones((2, 8)))
