"""Scores, probabilities and standard deviations are finite, or an error names the row."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from kernelmill import KernelClassifier, KernelRegressor, TensorSketch, load_predictor
from kernelmill.errors import ArgumentError
from kernelmill.files import ModelFileError, read_model_file, write_model_file
from kernelmill.learners import load_learner
from kernelmill.maps.finite import NotFiniteError
from kernelmill.maps.registry import MAPS

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(200, 3))
Y = X[:, 0] + X[:, 1] ** 2
CLASSES = np.digitize(X[:, 0], [-0.3, 0.3])
MAGNITUDES = {
    np.float32: (1e4, 1e13, 1e25, 3.4e38),
    np.float64: (1e4, 1e52, 1e155, 1.79e308),
}
BOUNDED = {"nystroem", "gaussian_templates", "taylor_sketch"}  # far rows have features of 0


def small(name):
    fixed = {"additive_fourier": {"steps": [[0, 0.0]]}, "tensor_sketch": {"degree": 3}}
    return MAPS[name](n_components=16, random_state=0, **fixed.get(name, {}))


def with_row(dtype, number):
    rows = X[:40].astype(dtype)
    rows[17] = dtype(number)
    return rows


def ways(model):
    """Return the ways in which a model predicts; each takes rows."""
    found = [model.predict, lambda rows: model.predict_row(rows[17])]
    if isinstance(model, KernelRegressor):
        return [*found, lambda rows: np.hstack(model.predict(rows, return_std=True))]
    return [*found, model.decision_function, model.predict_proba, model.predict_log_proba]


def judge(predict, rows):
    """Return whether there are predictions, which are finite, or an error with the row."""
    try:
        predicted = np.atleast_1d(predict(rows))
    except NotFiniteError as error:
        found, text = error.found, str(error)
    else:
        assert predicted.dtype.kind != "f" or np.isfinite(predicted).all()
        return True
    assert f"of row {found.row} are not finite in float" in text
    assert found.row in (0, 17)  # of one row, or of all
    assert found.n_rows == 1
    assert found.largest == rows[17, 0]
    return False


@pytest.mark.parametrize("dtype", MAGNITUDES)
@pytest.mark.parametrize("name", MAPS)
def test_predictions_are_finite_or_an_error(name, dtype):
    rows = X.astype(dtype)
    classifier = KernelClassifier(small(name), epochs=2, random_state=0).fit(rows, CLASSES)
    regressor = KernelRegressor(small(name), alpha=1e-2).fit(rows, Y)
    outcomes = set()
    for model in (classifier, regressor):
        for predict in ways(model):
            found = [judge(predict, with_row(dtype, number)) for number in MAGNITUDES[dtype]]
            assert found[0]
            outcomes.update(found)
        sparse = with_row(dtype, MAGNITUDES[dtype][-1])
        judge(lambda rows, model=model: model.predict(sp.csr_array(rows)), sparse)
    assert (False in outcomes) == (name not in BOUNDED)


@pytest.mark.parametrize("solver", ["sgd", "lbfgs", "exact"])
def test_fits_raise_what_predictions_raise(solver):
    loss = "squared" if solver == "exact" else "log_loss"
    rows = with_row(np.float32, 1e13)
    fitted = KernelClassifier(small("tensor_sketch"), solver=solver, loss=loss, random_state=0)
    message = r"the features of (a row|row 17) are not finite in float32: .* number is 1e\+13"
    with pytest.raises(NotFiniteError, match=message):
        fitted.fit(rows, CLASSES[:40])
    fitted.fit(X.astype(np.float32), CLASSES)
    with pytest.raises(NotFiniteError, match=message):
        fitted.predict(rows)
    with pytest.raises(NotFiniteError, match=message):
        KernelRegressor(small("tensor_sketch")).fit(rows, Y[:40])


def test_streams_raise_and_keep_the_model():
    rows, large = X.astype(np.float32), with_row(np.float32, 1e13)
    classifier = KernelClassifier(small("tensor_sketch"), solver="sgd", random_state=0)
    classifier.partial_fit(rows, CLASSES, classes=[0, 1, 2])
    regressor = KernelRegressor(small("tensor_sketch")).fit(rows, Y)
    for model, targets in ((classifier, CLASSES), (regressor, Y)):
        before = model.predict(rows)
        with pytest.raises(NotFiniteError, match="a row are not finite"):
            model.partial_fit(large, targets[:40])
        with pytest.raises(NotFiniteError, match="a row are not finite"):
            model.fit_blocks([(rows, targets), (large, targets[:40])])
        np.testing.assert_array_equal(model.predict(rows), before)


def test_rows_are_counted_in_all_blocks_and_in_pipelines():
    rows = np.tile(X, (60, 1))
    rows[[9876, 11000]] = 1e200
    pipeline = make_pipeline(FunctionTransformer(), small("tensor_sketch"))
    for feature_map in (small("tensor_sketch"), pipeline):
        model = KernelRegressor(feature_map, alpha=1e-2).fit(X, Y)
        with pytest.raises(NotFiniteError, match=r"features of row 9876 .* \(1 more row like it\)"):
            model.predict(rows)
    with pytest.raises(NotFiniteError, match=r"features of row 9876 "):
        pipeline.fit(X).transform(rows)


def crafted(folder, model, **numbers):
    """The file of a model in which all numbers of a tensor, or one of its attributes, are this."""
    path = folder / "model.kmill"
    model.save(path, weights="float64")
    file = read_model_file(path)
    tensors, record = dict(file.tensors), file.record
    for name, number in numbers.items():
        if name in tensors:
            tensors[name] = np.full_like(tensors[name], number)
            if name == "factor":  # of one place that is not on its diagonal
                places = np.arange(len(tensors[name]))
                tensors[name] = np.where(places == 9, number, file.tensors[name])
        else:
            assert name in record["map"]["learnt"]
            record["map"]["learnt"][name] = number
    write_model_file(path, kind=file.kind, record=record, tensors=tensors)
    return path


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("fastfood", {"feature_mean": 1e300}),
        ("fastfood", {"factor": 1e300}),
        ("random_fourier", {"length_scale_": 1e-308}),
        ("fastfood", {"length_scale_": 1e-308}),
        ("principal_fourier", {"map/directions": 1.7e308}),
        ("nystroem", {"dual": 1.7e308}),
        ("fastfood", {"coef": 1.7e308}),
        ("tensor_sketch", {"intercept": 1.7e308, "coef": 1.7e308}),
    ],
)
def test_crafted_files_predict_finite_numbers_or_raise(tmp_path, name, numbers):
    model = KernelRegressor(small(name), alpha=1e-2).fit(X, Y)
    path = crafted(tmp_path, model, **numbers)
    outcomes = set()
    for load in (load_predictor, load_learner):
        for rows in (X, X.astype(np.float32)):
            for options in ({}, {"return_std": True}):
                found = message_or_predictions(load, path, rows, options)
                if isinstance(found, str):
                    assert "finite" in found or "too large" in found or "too small" in found
                else:
                    assert all(np.isfinite(part).all() for part in np.atleast_2d(found))
                outcomes.add(type(found))
    assert str in outcomes


def message_or_predictions(load, path, rows, options):
    try:
        return load(path).predict(rows, **options)
    except (ModelFileError, ArgumentError) as error:
        return str(error)


def test_ordinary_rows_are_not_to_blame_for_large_weights():
    model = KernelRegressor(TensorSketch(n_components=16, random_state=0)).fit(X, Y)
    model.coef_ = np.full_like(model.coef_, 1e308)
    with pytest.raises(NotFiniteError, match=r"scores of row 0 .* although its largest .*small"):
        model.predict(10 * np.abs(X))
