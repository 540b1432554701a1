"""Parameters, seeds, copies and saved maps.

The digests below are a promise: a saved map is its seed, and no release may change what it draws.
``python tests/maps/test_maps_state.py`` prints the table again.
"""

import copy
import hashlib
import io
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pytest
from sklearn.base import clone

from kernelmill import Fastfood, RandomFourier
from kernelmill.kernels import Gaussian, Matern
from kernelmill.random import Stream

GOLDEN = {
    "hadamard Gaussian()": "043402a5578ca5b128c5006d23ca8485",
    "hadamard Matern(nu=1.5)": "2cd781f8c9e3ce7a667f13145127a64a",
    "hadamard independent Gaussian()": "cbcf3054c805a7dbf3bc1acc2099998c",
    "hadamard independent Matern(nu=1.5)": "3620b0d8bef6d5e0595b8e88046e6293",
    "sorf Gaussian()": "da83f2f0518730356ddb080c6d546847",
    "sorf Matern(nu=1.5)": "32355a4b32e202b9e83d6d08437664ee",
    "dct Gaussian()": "b33b44957b9f6618db106d1571d635a7",
    "dct Matern(nu=1.5)": "a0753bec1d5d8d3ba7fcd5ed3e1b478a",
    "dct independent Gaussian()": "939e6f11b8fc1dfd5a991cad93fc3433",
    "dct independent Matern(nu=1.5)": "3319d5271698a4bba1f2535a79c075d3",
    "fft Gaussian()": "dcbede8e3df34bc0279fe191af609dee",
    "fft Matern(nu=1.5)": "e95f564c811132e89f97f74ec4ba74d2",
    "iid Gaussian()": "eb577a70217f68ffb0bce2206dcd8437",
    "iid Matern(nu=1.5)": "0ff5b51a56f98d6dc5365d4914fdd137",
    "orthogonal Gaussian()": "85f31990e1c95cb5cf46c8bd5663c011",
    "orthogonal Matern(nu=1.5)": "edfd75a5d98778f3d97693fd15c47c66",
    "qmc Gaussian()": "ef87ca8d01d56cd2e428ab40f5527317",
    "qmc Matern(nu=1.5)": "e766840c1ee8353fbe79a9d2e2e142bd",
}


def golden_maps():
    """Small maps of every structure and sampling, by name."""
    kinds = {
        "hadamard": Fastfood(),
        "hadamard independent": Fastfood(blocks="independent"),
        "sorf": Fastfood(structure="sorf"),
        "dct": Fastfood(structure="dct"),
        "dct independent": Fastfood(structure="dct", blocks="independent"),
        "fft": Fastfood(structure="fft"),
        "iid": RandomFourier(),
        "orthogonal": RandomFourier(sampling="orthogonal"),
        "qmc": RandomFourier(sampling="qmc"),
    }
    fixed = {"n_components": 201, "length_scale": 1.25, "random_state": 42}
    return {
        f"{name} {kernel!r}": clone(kind).set_params(kernel=kernel, **fixed)
        for name, kind in kinds.items()
        for kernel in (Gaussian(), Matern(1.5))
    }


def digest(feature_map, dim=11):
    """A hash of all coefficients in float64."""
    fitted = clone(feature_map).fit(np.zeros((1, dim)))
    arrays = [fitted._phases_in(np.dtype(np.float64))]
    if isinstance(fitted, RandomFourier):
        arrays.append(fitted.projection_.frequencies())
    else:
        factors = fitted.projection_.factors(np.float64)
        arrays += [factors.signs, factors.permutation, factors.inner, factors.outer]
    state = hashlib.sha256()
    for array in arrays:
        if array is not None:
            little = array.astype(array.dtype.newbyteorder("<"))
            state.update(f"{array.shape}".encode() + little.tobytes())
    return state.hexdigest()[:32]


@pytest.mark.parametrize("name", golden_maps())
def test_golden_coefficients(isa, name):
    assert digest(golden_maps()[name]) == GOLDEN[name]


class TestParameters:
    def test_round_trip(self, feature_map):
        params = feature_map.get_params()
        assert clone(feature_map).get_params() == params
        assert type(feature_map)(**params).get_params() == params
        other = type(feature_map)().set_params(**params)
        assert repr(other) == repr(feature_map)

    def test_clone_is_not_fitted(self, feature_map, points):
        feature_map.fit(points(5, 3))
        copied = clone(feature_map)
        assert not [name for name in vars(copied) if name.endswith("_")]

    def test_transform_does_not_follow_parameters_set_after_fit(
        self, feature_map, points, same_bits
    ):
        X = points(20, 5)
        Z = feature_map.fit_transform(X)
        feature_map.set_params(n_components=7, features="cos_phase", length_scale=9.0, kernel="rbf")
        same_bits(feature_map.transform(X), Z)


class TestSeeds:
    def test_same_and_different(self, feature_map, points, same_bits):
        X = points(20, 5)
        Z = feature_map.fit_transform(X)
        same_bits(clone(feature_map).fit_transform(X), Z)
        same_bits(feature_map.fit(X).transform(X), Z)  # again
        other = clone(feature_map).set_params(random_state=8).fit_transform(X)
        assert not np.isclose(other, Z, atol=1e-4).all(axis=0).any()

    @pytest.mark.parametrize(
        "source",
        [
            lambda: np.random.RandomState(3),
            lambda: np.random.default_rng(3),
            lambda: Stream.from_seed(3),
            lambda: np.int64(3),
        ],
        ids=["RandomState", "Generator", "Stream", "int64"],
    )
    def test_sources(self, feature_map, points, same_bits, source):
        X = points(4, 5)
        Z, again = (feature_map.set_params(random_state=source()).fit_transform(X) for _ in "12")
        same_bits(again, Z)

    def test_generators_advance(self, points):
        X = points(4, 5)
        for state in (np.random.RandomState(3), np.random.default_rng(3)):
            first, second = (Fastfood(random_state=state).fit_transform(X) for _ in range(2))
            assert not np.allclose(first, second)

    def test_none_is_governed_by_numpy(self, feature_map, points, same_bits):
        X = points(4, 5)
        feature_map.set_params(random_state=None)
        state = np.random.get_state()  # what is tested is NumPy's global state
        try:
            np.random.seed(5)
            first, second = (feature_map.fit_transform(X) for _ in range(2))
            np.random.seed(5)
            same_bits(feature_map.fit_transform(X), first)
        finally:
            np.random.set_state(state)
        assert not np.allclose(first, second)


class TestCopies:
    @staticmethod
    def through_joblib(feature_map):
        file = io.BytesIO()
        joblib.dump(feature_map, file)
        file.seek(0)
        return joblib.load(file)

    def test_copies_are_the_same(self, feature_map, points, same_bits):
        X = points(20, 5)
        Z = feature_map.set_params(n_components=101).fit_transform(X)
        small = feature_map.transform(X.astype(np.float32))
        copies = [pickle.loads(pickle.dumps(feature_map, p)) for p in (2, pickle.HIGHEST_PROTOCOL)]
        copies += [copy.deepcopy(feature_map), copy.copy(feature_map)]
        copies += [self.through_joblib(feature_map)]
        for copied in copies:
            same_bits(copied.transform(X), Z)
            same_bits(copied.transform(X.astype(np.float32)), small)

    def test_unfitted_maps_can_be_pickled(self, feature_map):
        assert repr(pickle.loads(pickle.dumps(feature_map))) == repr(feature_map)

    def test_pickles_are_small(self, feature_map, points):
        X = points(20, 64)
        feature_map.set_params(n_components=100_000)
        feature_map.fit(X).transform(X)
        assert len(pickle.dumps(feature_map)) < 5000

    def test_another_process_loads_them(self, points, tmp_path, same_bits):
        X = points(20, 9)
        maps = [m.fit(X) for m in golden_maps().values()]
        (tmp_path / "maps").write_bytes(pickle.dumps((maps, X)))
        code = (
            "import pickle, sys\n"
            "maps, X = pickle.load(open(sys.argv[1], 'rb'))\n"
            "sys.stdout.buffer.write(pickle.dumps([m.transform(X) for m in maps]))\n"
        )
        command = [sys.executable, "-c", code, str(tmp_path / "maps")]
        run = subprocess.run(command, capture_output=True, timeout=120, check=True)
        for loaded, fitted in zip(pickle.loads(run.stdout), maps, strict=True):
            same_bits(loaded, fitted.transform(X))


if __name__ == "__main__":
    for name, feature_map in golden_maps().items():
        print(f'    "{name}": "{digest(feature_map)}",')  # noqa: T201
