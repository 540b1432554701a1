"""Maps as plain values: the same bits, few bytes, and nothing made that is not in the tables."""

import copy
import json
import pickle
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelmill import Fastfood, GaussianTemplates, RandomFourier, RandomMaclaurin, TensorSketch
from kernelmill.files import ModelFileError, read_model_file, write_model_file
from kernelmill.kernels import Maclaurin, Polynomial, Radial, Spectrum, Zonal
from kernelmill.maps.stored import map_from_record, map_record


def through_json(values):
    return json.loads(json.dumps(values))


def restored(fitted_map):
    values, tensors = map_record(fitted_map)
    return map_from_record(through_json(values), tensors)


def same_bits(actual, expected):
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    assert actual.tobytes() == expected.tobytes()


class TestBits:
    def test_same_features(self, isa, fitted_map, rows):
        for dtype in [np.float64, np.float32]:
            X = rows.astype(dtype)
            again = restored(fitted_map)
            same_bits(again.transform(X), fitted_map.transform(X))
            same_bits(again.transform(sp.csr_array(X)), fitted_map.transform(sp.csr_array(X)))
            same_bits(restored(fitted_map).transform(X[:1]), fitted_map.transform(X[:1]))

    def test_in_a_fresh_process(self, maps, rows, tmp_path):
        for number, each in enumerate(maps.values()):
            values, tensors = map_record(each)
            path = tmp_path / f"{number}.kmill"
            write_model_file(path, kind="map", record=values, tensors=tensors)
        code = (
            "import sys, numpy as np\n"
            "from kernelmill.maps.stored import map_from_record\n"
            "from kernelmill.files import read_model_file\n"
            "folder, n = sys.argv[1], int(sys.argv[2])\n"
            "rows = np.load(folder + '/rows.npy')\n"
            "for i in range(n):\n"
            "    file = read_model_file(f'{folder}/{i}.kmill')\n"
            "    Z = map_from_record(file.record, file.tensors).transform(rows)\n"
            "    np.save(f'{folder}/{i}.npy', Z)\n"
        )
        np.save(tmp_path / "rows.npy", rows)
        command = [sys.executable, "-c", code, str(tmp_path), str(len(maps))]
        subprocess.run(command, timeout=300, check=True)
        for number, each in enumerate(maps.values()):
            same_bits(np.load(tmp_path / f"{number}.npy"), each.transform(rows))

    def test_parameters_that_were_set_after_fit(self, maps, rows):
        fitted = copy.deepcopy(maps["taylor"])
        expected = fitted.transform(rows)
        fitted.set_params(n_components=5, length_scale=9.0, center=None, normalize=False)
        same_bits(restored(fitted).transform(rows), expected)

    def test_coefficients_that_were_changed_after_fit(self, rows):
        series = [1.0, 1.0, 0.5]
        fitted = RandomMaclaurin(series, random_state=0).fit(rows)
        expected = fitted.transform(rows)
        series[1] = 7.0
        same_bits(restored(fitted).transform(rows), expected)


class TestState:
    def test_attributes(self, fitted_map, rows):
        again = restored(fitted_map)
        assert repr(again.kernel_) == repr(fitted_map.kernel_)
        assert again.stream_ == fitted_map.stream_
        assert again.n_features_in_ == fitted_map.n_features_in_
        assert list(again.get_feature_names_out()) == list(fitted_map.get_feature_names_out())
        public = [name for name in vars(fitted_map) if name.endswith("_") and name[0] != "_"]
        assert set(public) <= set(vars(again))
        for name in ("length_scale_", "radius_", "gamma_", "spread_", "remainder_", "degree_"):
            expected = getattr(fitted_map, name, None)
            np.testing.assert_array_equal(getattr(again, name, None), expected)

    def test_parameters(self, fitted_map):
        again = restored(fitted_map)
        before, after = fitted_map.get_params(), again.get_params()
        assert set(before) == set(after)
        for name in set(before) - {"random_state", "kernel", "factors"}:
            np.testing.assert_array_equal(after[name], before[name])
        if isinstance(before["random_state"], int) and before["random_state"] < 2**63:
            assert after["random_state"] == before["random_state"]
        if "kernel" in before and hasattr(before["kernel"], "frequencies"):
            assert after["kernel"] == before["kernel"]
        repr(again)
        clone(again)

    def test_fitted_again_on_the_same_data(self, fitted_map, rows):
        again = restored(fitted_map)
        if again.random_state is None:
            pytest.skip("a map without a seed is another one each time")
        same_bits(clone(again).fit(rows).transform(rows), again.fit(rows).transform(rows))

    def test_pickled_and_described_again(self, fitted_map, rows):
        values, tensors = map_record(fitted_map)
        again = map_from_record(through_json(values), tensors)
        same_bits(pickle.loads(pickle.dumps(again)).transform(rows), again.transform(rows))
        values_again, tensors_again = map_record(again)
        assert {**values_again, "parameters": 0} == {**values, "parameters": 0}
        assert list(tensors_again) == list(tensors)
        for name in tensors:
            same_bits(tensors_again[name], tensors[name])

    def test_names_of_columns(self, rows):
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame(rows, columns=[f"größe {i}" for i in range(rows.shape[1])])
        fitted = Fastfood(random_state=0).fit(frame)
        again = restored(fitted)
        assert list(again.feature_names_in_) == list(fitted.feature_names_in_)
        same_bits(again.transform(frame), fitted.transform(frame))

    def test_large_maps_are_small_files(self, tmp_path, rows):
        path = tmp_path / "map.kmill"
        for made in (Fastfood, RandomFourier, TensorSketch, RandomMaclaurin):
            values, tensors = map_record(made(n_components=100_000).fit(rows))
            write_model_file(path, kind="map", record=values, tensors=tensors)
            assert path.stat().st_size < 1500
            file = read_model_file(path)
            assert map_from_record(file.record, file.tensors).n_components == 100_000


class _Doubled(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return 2 * X


class _OwnFastfood(Fastfood):
    pass


def _lengths(stream, n, dim):
    return stream.uniforms(n)


@pytest.mark.parametrize(
    ("made", "named"),
    [
        (Fastfood(Radial(_lengths)), "kernel"),
        (Fastfood(Radial([1.0], value=np.cos)), "kernel"),
        (RandomFourier(Spectrum(lambda s, n, dim: s.normals((n, dim)))), "kernel"),
        (RandomMaclaurin(lambda n: 1e-3**n), "kernel"),
        (RandomMaclaurin(Maclaurin(lambda n: 1e-3**n)), "kernel"),
        (GaussianTemplates(weighting=_lengths, proper=False), "weighting"),
        (TensorSketch(5000, n_components=4), "degree"),
        (RandomMaclaurin(Polynomial(5000, gamma=1 / 4.25390625)), "kernel"),
        (StandardScaler(), "feature_map"),
        (make_pipeline(StandardScaler(), Fastfood()), "feature_map"),
        (_Doubled(), "feature_map"),
        (_OwnFastfood(), "feature_map"),
    ],
)
def test_what_no_file_can_hold(made, named, rows):
    with pytest.raises(ModelFileError, match=rf"^{named}.*(pickle|numbers)"):
        map_record(made.fit(rows))


def test_zonal_kernels_of_the_user(rows):
    from kernelmill import DotProductFastfood

    fitted = DotProductFastfood(Zonal(lambda t: (1 + t) / 2), max_degree=3).fit(rows)
    with pytest.raises(ModelFileError, match="kernel must be made of numbers"):
        map_record(fitted)


ONE_OF_EACH = [
    "fastfood of Matern",
    "fastfood of factors",
    "fourier",
    "count sketch",
    "tensor sketch",
    "taylor",
    "maclaurin",
    "templates",
    "sphere",
    "landmarks",
]
HOSTILE = [10**18, 2**31, -1, 0, "5", 1.5, None, True, [], {}, [[5]], {"a": 1}, "x" * 1000, -0.0]


class TestHostile:
    """Every field replaced by what it should not be: an error, or a map all the same."""

    @staticmethod
    def places(values, path=()):
        for key, value in values.items():
            yield (*path, key)
            if isinstance(value, dict):
                yield from TestHostile.places(value, (*path, key))

    @pytest.mark.parametrize("name", ONE_OF_EACH)
    def test_every_field(self, maps, name):
        values, tensors = map_record(maps[name])
        n_rejected = 0
        tracemalloc.start()
        for place in self.places(values):
            for bad in HOSTILE:
                changed = through_json(values)
                inner = changed
                for key in place[:-1]:
                    inner = inner[key]
                inner[place[-1]] = bad
                try:
                    map_from_record(changed, tensors)
                except ModelFileError:
                    n_rejected += 1
            changed = through_json(values)
            inner = changed
            for key in place[:-1]:
                inner = inner[key]
            del inner[place[-1]]
            with pytest.raises(ModelFileError):
                map_from_record(changed, tensors)
            inner["os.system"] = "echo"
            with pytest.raises(ModelFileError):
                map_from_record(changed, tensors)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert n_rejected > 60
        assert peak < 10_000_000

    def test_numbers_of_components(self, fitted_map):
        values, tensors = map_record(fitted_map)
        changed = through_json(values)
        for n in (10**18, 2**31, -5, 0, "100", 1e3, None):
            changed["parameters"]["n_components"] = n
            with pytest.raises(ModelFileError):
                map_from_record(changed, tensors)

    @pytest.mark.parametrize("bad", [None, [], "fastfood", 5, {}])
    def test_no_specification_at_all(self, bad):
        with pytest.raises(ModelFileError):
            map_from_record(bad, {})

    def test_missing_and_wrong_tensors(self, maps):
        for fitted in maps.values():
            values, tensors = map_record(fitted)
            for name, tensor in tensors.items():
                wrong = [
                    {k: v for k, v in tensors.items() if k != name},
                    {**tensors, name: tensor.astype(np.float16)},
                    {**tensors, name: tensor.reshape((1, 1, *tensor.shape))},
                    {**tensors, name: np.full(tensor.shape, np.nan)},
                ]
                for each in wrong:
                    with pytest.raises(ModelFileError):
                        map_from_record(through_json(values), each)
