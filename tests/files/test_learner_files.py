"""Learners in files: the same predictions and attributes, and clear errors."""

import copy
import json
import os
import pickle
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from kernelmill import (
    Fastfood,
    KernelClassifier,
    KernelRegressor,
    PrincipalFourier,
    RandomFourier,
    TaylorSketch,
)
from kernelmill.files import (
    ModelFileError,
    read_model_file,
    under_prefix,
    without_prefix,
    write_model_file,
)
from kernelmill.kernels import Maclaurin, Matern, Radial
from kernelmill.learners import load_learner
from kernelmill.learners.loading import learner_from_record
from kernelmill.learners.saving import learner_record

RNG = np.random.default_rng(0)
X = RNG.standard_normal((300, 4))
Y = np.sin(X[:, 0]) + 0.1 * RNG.standard_normal(300)
CLASSES = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
SMALL = Fastfood(n_components=64, random_state=3)
EPS = {"float16": 2.0**-11, "float32": 2.0**-24, "float64": 0.0}


def classifiers():
    yield "default map", KernelClassifier(random_state=0, epochs=2)
    yield "hinge", KernelClassifier(SMALL, loss="hinge", random_state=1, epochs=2, n_threads=1)
    yield "exact", KernelClassifier(SMALL, loss="squared", class_weight="balanced")
    weights = {0: 1.0, 1: np.float32(2.0), 2: 3}
    yield "lbfgs", KernelClassifier(SMALL, solver="lbfgs", class_weight=weights, alpha=1e-2)
    held_out = KernelClassifier(SMALL, validation_fraction=0.2, epochs=3, random_state=0)
    yield "held out", held_out
    made = RandomFourier(Matern(1.5), features="complex", n_components=30)
    yield "complex", KernelClassifier(made, random_state=np.random.default_rng(0), epochs=2)


def regressors():
    yield "default", KernelRegressor("taylor_sketch", random_state=0)
    yield "tuned", KernelRegressor(Fastfood(n_components=32), tune=True, tune_budget=3)
    yield "several alpha", KernelRegressor(SMALL, alpha=np.array([0.1, 1.0, 10.0]))
    yield "by rows", KernelRegressor(SMALL, alpha=(0.1, 1.0), scoring="loo", fit_intercept=False)
    yield "noise", KernelRegressor(TaylorSketch(64), noise=0.01, random_state=0)
    yield "cg", KernelRegressor(SMALL, solver="cg")
    yield "rounding", KernelRegressor(SMALL, alpha=1e-14)  # eigenvectors instead of a factor


CLASSIFIERS, REGRESSORS = dict(classifiers()), dict(regressors())


@pytest.fixture(scope="module")
def fitted():
    made = {f"classifier, {name}": clone(m).fit(X, CLASSES) for name, m in CLASSIFIERS.items()}
    made |= {f"regressor, {name}": clone(m).fit(X, Y) for name, m in REGRESSORS.items()}
    outputs = np.stack([Y, 2 * Y], axis=1)
    made["regressor, outputs"] = clone(REGRESSORS["noise"]).fit(X, outputs)
    made["regressor, column"] = clone(REGRESSORS["noise"]).fit(X, Y[:, None])
    return made


NAMES = [
    *(f"classifier, {name}" for name in CLASSIFIERS),
    *(f"regressor, {name}" for name in REGRESSORS),
    "regressor, outputs",
    "regressor, column",
]


@pytest.fixture(params=NAMES)
def model(request, fitted):
    return fitted[request.param]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.kmill"


def scores_of(model, rows):
    if isinstance(model, KernelClassifier):
        return np.atleast_2d(model.decision_function(rows).T).T
    return np.atleast_2d(model.predict(rows).T).T


class TestPredictions:
    @pytest.mark.parametrize("weights", list(EPS))
    def test_within_rounding(self, model, path, weights):
        model.save(path, weights=weights)
        again = load_learner(path)
        expected, found = scores_of(model, X), scores_of(again, X)
        assert found.dtype == expected.dtype
        if weights == "float64":
            np.testing.assert_array_equal(found, expected)
            return
        # Each weight is off by half a unit in its last place; features are at most 1.5 here.
        bound = EPS[weights] * np.abs(model.coef_).sum(axis=1) * 1.5
        assert (np.abs(found - expected) <= bound * 1.01 + 1e-13).all()

    def test_labels_and_probabilities(self, fitted, path):
        model = fitted["classifier, default map"]
        model.save(path, weights="float64")
        again = load_learner(path)
        for method in ("predict", "predict_proba", "predict_log_proba"):
            np.testing.assert_array_equal(getattr(again, method)(X), getattr(model, method)(X))
        assert again.score(X, CLASSES) == model.score(X, CLASSES)

    @pytest.mark.parametrize("name", ["default", "by rows", "noise", "outputs", "column"])
    def test_standard_deviations(self, fitted, path, name):
        model = fitted[f"regressor, {name}"]
        far = np.concatenate([X, 10 * X])
        _, expected = model.predict(far, return_std=True)
        # Eigenvectors, where there are several alpha, are made a triangular factor in the file.
        exact = 1e-12 if name == "by rows" else 0
        for weights, tolerance in (("float64", exact), ("float32", 1e-3)):
            model.save(path, weights=weights)
            again = load_learner(path)
            found = again.predict(far, return_std=True)[1]
            np.testing.assert_allclose(found, expected, rtol=tolerance)
            found = again.predict(far, return_std=True, include_noise=True)[1]
            expected_noisy = model.predict(far, return_std=True, include_noise=True)[1]
            np.testing.assert_allclose(found, expected_noisy, rtol=tolerance)
            evidence = again.log_marginal_likelihood()
            assert evidence == pytest.approx(model.log_marginal_likelihood(), rel=1e-12)

    def test_standard_deviations_of_eigenvectors(self, fitted, path):
        model = fitted["regressor, rounding"]
        X_far = np.concatenate([X, 10 * X])
        expected = model.predict(X_far, return_std=True)[1]
        model.save(path)
        found = load_learner(path).predict(X_far, return_std=True)[1]
        np.testing.assert_allclose(found, expected, rtol=1e-3)

    def test_in_a_fresh_process(self, fitted, path):
        model = fitted["classifier, default map"]
        model.save(path, weights="float64")
        np.save(path.with_name("X.npy"), X)
        code = (
            "import sys, numpy as np\n"
            "from kernelmill.learners import load_learner\n"
            "X = np.load(sys.argv[2])\n"
            "np.save(sys.argv[2], load_learner(sys.argv[1]).decision_function(X))\n"
        )
        command = [sys.executable, "-c", code, path, path.with_name("X.npy")]
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        subprocess.run(command, check=True, timeout=300, env=environment)
        found = np.load(path.with_name("X.npy"))
        np.testing.assert_array_equal(found, model.decision_function(X))


class TestAttributes:
    def test_they_are_there(self, model, path):
        model.save(path, weights="float64")
        again = load_learner(path)
        check_is_fitted(again)
        assert type(again) is type(model)
        left_out = {"statistics_"}
        public = {n for n in vars(model) if n.endswith("_") and not n.startswith("_")} - left_out
        assert public == {n for n in vars(again) if n.endswith("_") and not n.startswith("_")}
        for name in public - {"feature_map_"}:
            before, after = getattr(model, name), getattr(again, name)
            assert isinstance(before, type(after))  # numpy's float64 is a float
            if isinstance(before, dict):
                assert list(after) == sorted(before)
                for key, column in before.items():
                    np.testing.assert_array_equal(after[key], column)
            else:
                np.testing.assert_array_equal(after, before)

    def test_parameters(self, model, path):
        model.save(path)
        again = load_learner(path)
        before, after = model.get_params(deep=False), again.get_params(deep=False)
        assert set(before) == set(after)
        for name in set(before) - {"feature_map", "random_state", "checkpoint", "alpha"}:
            assert after[name] == before[name]
        np.testing.assert_array_equal(after["alpha"], before["alpha"])
        assert repr(after["feature_map"]) == repr(before["feature_map"]) or "complex" in repr(model)
        repr(again)
        assert clone(again).get_params(deep=False).keys() == before.keys()

    def test_fitted_again(self, fitted, path):
        model = fitted["classifier, hinge"]
        model.save(path)
        again = load_learner(path)
        again.fit(X, CLASSES)
        np.testing.assert_array_equal(again.coef_, model.coef_)
        again.partial_fit(X, CLASSES)  # it is no longer from a file

    def test_pickled(self, model, path):
        model.save(path)
        again = load_learner(path)
        copied = pickle.loads(pickle.dumps(again))
        np.testing.assert_array_equal(scores_of(copied, X), scores_of(again, X))
        copy.deepcopy(again)

    @pytest.mark.parametrize("weights", list(EPS))
    def test_saved_again_it_is_the_same_file(self, model, path, weights):
        model.save(path, weights=weights)
        before = path.read_bytes()
        load_learner(path).save(path, weights=weights)
        assert path.read_bytes() == before
        model.save(path, weights=weights)
        assert path.read_bytes() == before

    def test_checkpoints_of_the_trainer_stay_private(self, path, tmp_path):
        secret = tmp_path / "secret-place.npz"
        model = KernelClassifier(SMALL, checkpoint=secret, epochs=1).fit(X, CLASSES)
        model.save(path)
        assert b"secret-place" not in path.read_bytes()
        assert load_learner(path).checkpoint is None

    @pytest.mark.parametrize(
        "labels",
        [
            np.array([3, 5, 9]),
            np.array([0, 200, 255], np.uint8),
            np.array([2**63, 2**64 - 1, 1], np.uint64),
            np.array([-1.5, 0.5, 1e300]),
            np.array([0.25, 0.5, 1.0], np.float32),
            np.array(["no", "yes", "größer ☃"]),
            np.array(["no", "yes", "perhaps"], "U30"),
            np.array(["no", "yes", "perhaps"], object),
            np.array([False, True]),
            np.array(["b", "a"]),
        ],
    )
    def test_classes(self, path, labels):
        y = labels[CLASSES % len(labels)]
        if labels.dtype.kind == "f":
            y, labels = CLASSES.astype(labels.dtype), np.unique(CLASSES.astype(labels.dtype))
        model = KernelClassifier(SMALL, loss="squared").fit(X, y)
        model.save(path)
        again = load_learner(path)
        assert again.classes_.dtype == model.classes_.dtype
        assert again.classes_.tolist() == model.classes_.tolist()
        assert again.predict(X).dtype == model.predict(X).dtype

    def test_names_of_columns(self, path):
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame(X, columns=["a", "b", "größe", ""])
        model = KernelRegressor(SMALL).fit(frame, Y)
        model.save(path, weights="float64")
        again = load_learner(path)
        assert list(again.feature_names_in_) == ["a", "b", "größe", ""]
        np.testing.assert_array_equal(again.predict(frame), model.predict(frame))

    def test_arrays_in_parameters(self, path):
        made = Fastfood(Radial([0.5, 1.0]), n_components=32)
        model = KernelRegressor(made, random_state=0).fit(X, Y)
        model.save(path, weights="float64")
        again = load_learner(path)
        assert again.feature_map.kernel == made.kernel
        np.testing.assert_array_equal(again.predict(X), model.predict(X))


class TestSizes:
    def test_float16_halves_the_file_and_keeps_small_weights(self, path):
        model = KernelRegressor(Fastfood(n_components=4000, random_state=0)).fit(X, 1e-7 * Y)
        sizes = {}
        for weights in EPS:
            model.save(path, weights=weights, uncertainty=False)
            sizes[weights] = path.stat().st_size
            found = load_learner(path).predict(X)
            assert np.abs(found - model.predict(X)).max() < 1e-3 * np.abs(1e-7 * Y).max()
        assert sizes["float16"] < 2 * 4000 + 2500
        assert sizes["float32"] < 4 * 4000 + 2500
        assert sizes["float64"] < 8 * 4000 + 2500

    def test_weights_beyond_float32(self, path):
        for factor in (1e-60, 1e60):
            model = KernelRegressor(SMALL).fit(X, factor * Y)
            for weights in ("float16", "float32", "float64"):
                model.save(path, weights=weights)
                assert read_model_file(path).record["weights"] == "float64"
                np.testing.assert_array_equal(load_learner(path).predict(X), model.predict(X))

    def test_largest_weight_that_rounds_up(self):
        from kernelmill.learners.saving import scale_weights

        first, scale = scale_weights(np.array([[1 - 2.0**-20, 2.0**-28], [0.0, 0.0]]), "float16")
        second, scale_again = scale_weights(first.astype(float) * scale[:, np.newaxis], "float16")
        assert first.tobytes() == second.tobytes()
        assert scale.tobytes() == scale_again.tobytes()

    def test_uncertainty_is_kept_up_to_some_size(self, path):
        small = KernelRegressor(SMALL).fit(X, Y)
        small.save(path, uncertainty=False)
        again = load_learner(path)
        with pytest.raises(ValueError, match="uncertainty=True"):
            again.predict(X, return_std=True)
        with pytest.raises(ValueError, match="needs the statistics"):
            again.log_marginal_likelihood()
        with pytest.raises(ValueError, match="loaded without uncertainty"):
            again.save(path, uncertainty=True)
        small.save(path, uncertainty=True)
        load_learner(path).predict(X, return_std=True)
        with pytest.raises(ValueError, match="uncertainty must be True"):
            small.save(path, uncertainty="yes")

    def test_conjugate_gradients_have_none(self, fitted, path):
        with pytest.raises(ValueError, match="exact solver"):
            fitted["regressor, cg"].save(path, uncertainty=True)
        assert not path.exists()


class TestRefusals:
    def test_partial_fit(self, fitted, path):
        for name, y in (("classifier, hinge", CLASSES), ("regressor, default", Y)):
            fitted[name].save(path)
            again = load_learner(path)
            expected = scores_of(again, X)
            with pytest.raises(ValueError, match="from a file"):
                again.partial_fit(X, y)
            np.testing.assert_array_equal(scores_of(again, X), expected)

    def test_other_likelihoods(self, fitted, path):
        fitted["regressor, default"].save(path)
        with pytest.raises(ValueError, match="statistics of the rows"):
            load_learner(path).log_marginal_likelihood(alpha=3.0)

    def test_not_fitted(self, path):
        with pytest.raises(NotFittedError):
            KernelClassifier().save(path)
        assert not path.exists()

    @pytest.mark.parametrize(
        ("feature_map", "match"),
        [
            (make_pipeline(StandardScaler(), SMALL), "feature_map must be a map of kernelmill"),
            (StandardScaler(), "feature_map must be a map of kernelmill"),
            (Fastfood(Radial(lambda s, n, dim: s.uniforms(n))), "kernel must be made of numbers"),
        ],
    )
    def test_maps_of_the_user(self, path, feature_map, match):
        path.write_bytes(b"as it was")
        model = KernelRegressor(feature_map).fit(X, Y)
        with pytest.raises(ModelFileError, match=match):
            model.save(path)
        assert path.read_bytes() == b"as it was"

    def test_subclasses(self, path):
        class Own(KernelRegressor):
            pass

        with pytest.raises(ModelFileError, match="got Own"):
            Own(SMALL).fit(X, Y).save(path)

    def test_labels(self, path):
        model = KernelClassifier(SMALL, loss="squared").fit(X, CLASSES)
        model.classes_ = np.array([1, "a", None], object)
        with pytest.raises(ModelFileError, match="labels must be"):
            model.save(path)

    def test_precisions(self, fitted, path):
        with pytest.raises(ValueError, match="weights must be one of"):
            fitted["regressor, cg"].save(path, weights="int8")

    def test_other_kinds_of_files(self, path):
        write_model_file(path, kind="table-model", record={}, tensors={})
        with pytest.raises(ModelFileError, match=r"holds a table-model.*kernelmill\.load"):
            load_learner(path)

    def test_a_part_of_a_larger_record(self, fitted):
        model = fitted["regressor, noise"]
        record, tensors = learner_record(model, "float64")
        larger = under_prefix("model", tensors) | {"x": np.ones(3)}
        again = learner_from_record(json.loads(json.dumps(record)), without_prefix("model", larger))
        np.testing.assert_array_equal(again.predict(X), model.predict(X))


HOSTILE = [10**18, -1, "5", 1.5, None, True, [], {}, [[5]], {"a": 1}, "x" * 1000, [1.5, "nan"]]


class TestHostile:
    @staticmethod
    def places(values, path=()):
        for key, value in values.items():
            yield (*path, key)
            if isinstance(value, dict):
                yield from TestHostile.places(value, (*path, key))

    @staticmethod
    def changed(values, place, bad):
        copied = json.loads(json.dumps(values))
        inner = copied
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = bad
        return copied

    @pytest.mark.parametrize("name", ["classifier, lbfgs", "regressor, tuned"])
    def test_every_field(self, fitted, name):
        record, tensors = learner_record(fitted[name])
        n_rejected = 0
        tracemalloc.start()
        for place in self.places(record):
            for bad in HOSTILE:
                try:
                    again = learner_from_record(self.changed(record, place, bad), tensors)
                except ModelFileError:
                    n_rejected += 1
                else:
                    repr(again)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert n_rejected > 200
        assert peak < 20_000_000

    @pytest.mark.parametrize("name", ["classifier, lbfgs", "regressor, noise"])
    def test_every_tensor(self, fitted, name):
        record, tensors = learner_record(fitted[name], "float16")
        for key, tensor in tensors.items():
            wrong = [
                {k: v for k, v in tensors.items() if k != key},
                {**tensors, key: tensor.astype(np.int32)},
                {**tensors, key: tensor[..., :-1]},
                {**tensors, key: tensor[np.newaxis]},
                {**tensors, key: np.full_like(tensor, np.nan)},
                {**tensors, f"{key}_": tensor},  # of no field
            ]
            for each in wrong:
                if name.startswith("regressor") and key == "feature_mean" and key not in each:
                    continue  # as without an intercept
                with pytest.raises(ModelFileError):
                    learner_from_record(record, each)

    def test_messages_name_the_file(self, fitted, path):
        record, tensors = learner_record(fitted["regressor, noise"])
        bad = self.changed(record, ("map", "parameters", "n_components"), 65)
        write_model_file(path, kind="learner", record=bad, tensors=tensors)
        with pytest.raises(
            ModelFileError, match=r"model\.kmill' cannot be loaded.*do not use the file"
        ):
            load_learner(path)

    def test_classes_that_are_wide(self, fitted):
        record, tensors = learner_record(fitted["classifier, lbfgs"])
        for dtype in ("<U99999999", "O", "<V8", "float64", "<U1", "<M8[s]"):
            bad = {"dtype": dtype, "labels": ["aa", "bb", "cc"]}
            with pytest.raises(ModelFileError):
                learner_from_record({**record, "classes": bad}, tensors)

    def test_nothing_is_imported_by_name(self, fitted, path):
        record, tensors = learner_record(fitted["regressor, noise"])
        for place in (("learner",), ("map", "map"), ("feature_map", "map")):
            bad = self.changed(record, place, "os.system")
            write_model_file(path, kind="learner", record=bad, tensors=tensors)
            assert read_model_file(path).kind == "learner"
            with pytest.raises(ModelFileError, match=r"must be .*, got .os\.system"):
                load_learner(path)


def test_functions_as_series_are_refused(tmp_path):
    from kernelmill import RandomMaclaurin

    model = KernelRegressor(RandomMaclaurin(Maclaurin(lambda n: 1e-3**n), n_components=20))
    with pytest.raises(ModelFileError, match="kernel"):
        model.fit(X, Y).save(tmp_path / "model")


def test_weights_that_overflow_when_they_are_loaded(tmp_path):
    path = tmp_path / "model.kmill"
    X = np.random.default_rng(0).normal(size=(30, 2)).astype(np.float32)
    KernelRegressor(Fastfood(n_components=8, random_state=0)).fit(X, X[:, 0]).save(
        path, weights="float64"
    )
    file = read_model_file(path)
    record = file.record | {"coef_dtype": "float32"}
    file.tensors["coef"][0, 3] = 1e300
    write_model_file(path, kind=file.kind, record=record, tensors=file.tensors)
    with pytest.raises(ModelFileError, match="coef must be finite as float32, got 1e\\+300"):
        load_learner(path)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda P: P.astype(np.float32), r"got an array of float32 of shape \(2, 4\)\.$"),
        (lambda P: P[:, 1:].copy(), r"got an array of float64 of shape \(2, 3\)\.$"),
        (lambda P: P * np.nan, r"of shape \(2, 4\), with NaN or infinity\.$"),
    ],
)
def test_messages_name_what_is_in_place_of_directions(change, match):
    model = KernelRegressor(PrincipalFourier(n_components=8, directions=2)).fit(X, Y)
    record, tensors = learner_record(model)
    changed = {**tensors, "map/directions": change(tensors["map/directions"])}
    with pytest.raises(ModelFileError, match=match):
        learner_from_record(record, changed)
    del tensors["map/directions"]
    with pytest.raises(ModelFileError, match=r"got no tensor 'map/directions'\.$"):
        learner_from_record(record, tensors)
