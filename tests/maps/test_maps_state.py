"""Parameters, seeds, copies and saved maps.

No release may change the digests below: a saved map stores its seed and draws again.
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
from kernelmill.maps.random_fourier import ShiftInvariantMap
from kernelmill.random import Stream

GOLDEN = {
    "hadamard Gaussian()": "28cf1b51b70555a8f42a293895f5a54f",
    "hadamard Matern(nu=1.5)": "1a0f88d200e3ed1416ce806a3be5a4b1",
    "hadamard independent Gaussian()": "a06a9a6eea99709c914e73dba8a4ab62",
    "hadamard independent Matern(nu=1.5)": "06a7c295e3640ab477c709ea5ce640aa",
    "sorf Gaussian()": "ab2e07b956f49501df31a0ba992aca30",
    "sorf Matern(nu=1.5)": "159976f97fd85ee20fe2c8d0d6c13b8b",
    "dct Gaussian()": "247e9ae1c921a2a3af55f6c8b20252e5",
    "dct Matern(nu=1.5)": "3701e743ada54c741a089b8d401b0e44",
    "dct independent Gaussian()": "a1bbe299af81b0a7e1dec64cbd4c7d4b",
    "dct independent Matern(nu=1.5)": "57fa9b7856e84274d39866bcb18c2131",
    "fft Gaussian()": "916d54d64f0906e9ce4bc8171460eb1f",
    "fft Matern(nu=1.5)": "e11030d3becaaf33ac5d701df551dda3",
    "iid Gaussian()": "e74f4af1662612718f7462ee0a4079ac",
    "iid Matern(nu=1.5)": "a9c4dc0e09b0200a922ec20e04d0e758",
    "orthogonal Gaussian()": "26ece8eb4e283b471f0fa6b5e4f7ffa6",
    "orthogonal Matern(nu=1.5)": "e43ffdce088b8e09545353d1301ceffc",
    "qmc Gaussian()": "7390b5e8c737034c6014c7a136d7d6d4",
    "qmc Matern(nu=1.5)": "f2f3aef3894999828c25c427230f2bb8",
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
    arrays = [fitted._draw_phases(np.dtype(np.float64))]
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


@pytest.mark.representative
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
        others = {"features": "cos_phase", "length_scale": 9.0, "kernel": "rbf", "radius": 9.0}
        others = {k: v for k, v in others.items() if k in feature_map.get_params()}
        feature_map.set_params(n_components=7, **others)
        same_bits(feature_map.transform(X), Z)


class TestSeeds:
    def test_same_and_different(self, feature_map, points, same_bits):
        X = points(20, 40)
        Z = feature_map.fit_transform(X)
        same_bits(clone(feature_map).fit_transform(X), Z)
        same_bits(feature_map.fit(X).transform(X), Z)  # again
        other = clone(feature_map).set_params(random_state=8).fit_transform(X)
        used = np.abs(Z).max(axis=0) > 0
        same = np.isclose(other, Z, atol=1e-4).all(axis=0)[used].mean()
        # A sign or a bucket can be the same by chance, and terms of low degree may be exact.
        assert same == 0 if isinstance(feature_map, ShiftInvariantMap) else same < 0.5

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
    def test_sources(self, one_map_per_class, points, same_bits, source):
        X = points(4, 5)
        for made in one_map_per_class:
            Z, again = (made.set_params(random_state=source()).fit_transform(X) for _ in "12")
            same_bits(again, Z)

    def test_generators_advance(self, points):
        X = points(4, 5)
        for state in (np.random.RandomState(3), np.random.default_rng(3)):
            first, second = (Fastfood(random_state=state).fit_transform(X) for _ in range(2))
            assert not np.allclose(first, second)

    def test_none_uses_the_global_state_of_numpy(self, one_map_per_class, points, same_bits):
        X = points(40, 5)  # more than there are landmarks
        state = np.random.get_state()  # what is tested is NumPy's global state
        try:
            for feature_map in one_map_per_class:
                feature_map.set_params(random_state=None, n_components=20)
                np.random.seed(5)
                first, second = (feature_map.fit_transform(X) for _ in range(2))
                np.random.seed(5)
                same_bits(feature_map.fit_transform(X), first)
                assert not np.allclose(first, second)
        finally:
            np.random.set_state(state)


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

    def test_pickles_are_small(self, random_map, points):
        X = points(20, 64)
        random_map.set_params(n_components=20_000)
        random_map.fit(X).transform(X)
        assert len(pickle.dumps(random_map)) < 5000

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
        run = subprocess.run(command, capture_output=True, timeout=300, check=True)
        for loaded, fitted in zip(pickle.loads(run.stdout), maps, strict=True):
            same_bits(loaded, fitted.transform(X))


if __name__ == "__main__":
    for name, feature_map in golden_maps().items():
        print(f'    "{name}": "{digest(feature_map)}",')  # noqa: T201
