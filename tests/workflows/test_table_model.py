"""Predictions, evaluations and features of tables; models restored from files."""

import numpy as np
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from scipy.special import ndtri
from sklearn.metrics import (
    balanced_accuracy_score,
    confusion_matrix,
    log_loss,
    mean_absolute_error,
    r2_score,
    roc_auc_score,
)

import kernelmill
from kernelmill import fit_table
from kernelmill.errors import KernelmillError
from kernelmill.files import ModelFileError, read_model_file, write_model_file
from kernelmill.io import TableError
from kernelmill.learners import load_learner
from kernelmill.workflows.evaluation import wilson_interval

from .conftest import rings, write_rings

QUICK = {"length_scale": 1.0, "alpha": 1e-5, "epochs": 10, "n_components": 64}


def encoded(model, path):
    return np.concatenate([X for X, _, _ in model._encode(path, {})])


def test_predictions_in_files(folder, rings_csv, classifier):
    for name in ("p.csv", "p.parquet", "p.feather"):
        assert classifier.predict_table(rings_csv, out=folder / name) == 1500
    lines = (folder / "p.csv").read_text().splitlines()
    assert lines[0] == "prediction"
    assert lines[1:] == classifier.predict(rings_csv).tolist()
    assert pq.read_table(folder / "p.parquet")["prediction"].to_pylist() == lines[1:]


def test_probabilities_and_kept_columns(folder, rings_csv, classifier):
    out = folder / "kept.csv"
    classifier.predict_table(rings_csv, out=out, probabilities=True, keep_columns=True)
    lines = out.read_text().splitlines()
    assert lines[0] == "a,color,b,place,prediction,probability of in,probability of out"
    first = lines[1].split(",")
    assert first[1] in ("red", "blue")
    assert float(first[-1]) + float(first[-2]) == pytest.approx(1, abs=1e-5)


def test_rows_that_are_too_large_are_named(folder):
    a = np.linspace(-1, 1, 60)
    targets = {"classification": np.where(a > 0, "high", "low"), "regression": a**2}
    path = folder / "far.csv"
    for task, target in targets.items():
        quick = {"tune": False, "length_scale": 1.0, "alpha": 1e-3, "n_components": 16}
        model = fit_table({"a": a, "t": target}, "t", **quick, feature_map="fastfood")
        path.write_text(f"a,t\n0.5,{target[0]}\n1e38,{target[0]}\n0.1,{target[0]}\n")
        options = {"probabilities": True} if task == "classification" else {"std": True}
        calls = {
            "the features of the row are not": lambda m=model: m.predict_row({"a": 1e38}),
            "far.csv: the features of row 2 are not": lambda m=model: m.predict(path),
            "csv: the features of row 2 are": lambda m=model, o=options: m.predict_table(path, **o),
            "csv: the features of a row from 1 to 3": lambda m=model: m.evaluate_table(path),
            "features of row 2 are not": lambda m=model: m.transform_table(path),
        }
        for message, call in calls.items():
            with pytest.raises(
                TableError, match=rf"{message}.*largest encoded .*; correct the row"
            ):
                call()


def test_std_is_that_of_the_learner(folder, waves_csv, regressor):
    regressor.predict_table(waves_csv, out=folder / "std.npy", std=True)
    both = np.load(folder / "std.npy")
    X = encoded(regressor, waves_csv)
    mean, std = regressor.learner.predict(X, return_std=True, include_noise=True)
    np.testing.assert_allclose(both, np.c_[mean, std])


def test_requests_that_cannot_be_met(folder, rings_csv, waves_csv, classifier, regressor):
    with pytest.raises(ValueError, match="std needs a regressor"):
        classifier.predict_table(rings_csv, out=folder / "x.csv", std=True)
    with pytest.raises(ValueError, match="probabilities needs a classifier"):
        regressor.predict_table(waves_csv, out=folder / "x.csv", probabilities=True)
    with pytest.raises(TableError, match="has strings"):
        classifier.predict_table(rings_csv, out=folder / "x.npy")
    hinge = fit_table(rings_csv, "place", loss="hinge", **QUICK)
    with pytest.raises(ValueError, match="log_loss"):
        hinge.predict_table(rings_csv, out=folder / "x.csv", probabilities=True)
    assert not (folder / "x.csv").exists()


def test_the_input_is_not_overwritten(folder, classifier):
    path = write_rings(folder / "again.csv", 50)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="is read, got"):
        classifier.predict_table(path, out=path)
    assert path.read_bytes() == before


def test_features_in_a_file(folder, rings_csv, classifier):
    assert classifier.transform_table(rings_csv, out=folder / "z.npy") == 1500
    Z = np.load(folder / "z.npy")
    assert (Z.shape, Z.dtype) == ((1500, 256), np.float32)
    X = encoded(classifier, rings_csv)
    np.testing.assert_array_equal(Z, classifier.learner.feature_map_.transform(X))


def test_columns_in_another_order_with_others_between(folder, rings_csv, classifier):
    path = folder / "moved.csv"
    rows = [line.split(",") for line in rings_csv.read_text().splitlines()]
    path.write_text(
        "\n".join(f"{b},new,{a},{color}" for a, color, b, _ in rows).replace("b,new,a", "b,x,a", 1)
    )
    np.testing.assert_array_equal(classifier.predict(path), classifier.predict(rings_csv))


def test_kinds_are_those_of_training(folder):
    """A category that looks like a number in the new file, and a number that is always missing."""
    path = folder / "codes.csv"
    X, y = rings(400)
    codes = np.where(X[:, 0] > 0, "A", "1")
    rows = [f"{c},{b:.4f},{t}" for c, b, t in zip(codes, X[:, 1], y, strict=True)]
    rows[0] = f"A,,{y[0]}"
    path.write_text("code,b,place\n" + "\n".join(rows))
    model = fit_table(path, "place", missing="impute", **QUICK)
    new = folder / "codes_new.csv"
    new.write_text("code,b\n1,\n1,\n")
    assert len(model.predict(new)) == 2


def test_missing_columns_are_named(folder, classifier):
    path = folder / "lacking.csv"
    path.write_text("a,b\n1,2\n3,4\n")
    with pytest.raises(TableError, match="lacks columns that the model needs: 'color'"):
        classifier.predict(path)


@pytest.mark.parametrize("target", [0, 2, 3])
def test_without_header_and_without_target(folder, target):
    """Columns after the target move by one where it is left out."""
    source = write_rings(folder / "full.data", 300, header=False)
    rows = [line.split(",") for line in source.read_text().splitlines()]
    if target != 3:  # a number as the target
        source = folder / f"full{target}.data"
        source.write_text("\n".join(",".join(row) for row in rows))
    bare = folder / f"bare{target}.data"
    bare.write_text("\n".join(",".join(v for i, v in enumerate(r) if i != target) for r in rows))
    options = {key: value for key, value in QUICK.items() if key != "epochs" or target == 3}
    model = fit_table(source, target, **options)
    np.testing.assert_array_equal(model.predict(source), model.predict(bare))
    assert model.evaluate_table(source).n_rows == 300
    with pytest.raises(TableError, match="no target"):
        model.evaluate_table(bare)


def test_classifier_metrics_are_those_of_scikit_learn(folder, classifier):
    path = write_rings(folder / "test.csv", 700, seed=1)
    found = classifier.evaluate_table(path, block_bytes=3000)
    X = encoded(classifier, path)
    y = rings(700, 1)[1]
    predicted, shares = classifier.learner.predict(X), classifier.learner.predict_proba(X)
    assert found.n_rows == 700
    assert found.confusion == confusion_matrix(y, predicted).tolist()
    assert found.metrics["error"] == pytest.approx(np.mean(predicted != y))
    assert found.metrics["baseline_error"] == pytest.approx(min(np.mean(y == p) for p in set(y)))
    assert found.metrics["balanced_error"] == pytest.approx(
        1 - balanced_accuracy_score(y, predicted)
    )
    assert found.metrics["log_loss"] == pytest.approx(log_loss(y, shares), rel=1e-5)
    assert found.metrics["auc"] == pytest.approx(roc_auc_score(y == "out", shares[:, 1]), abs=1e-3)
    assert found.metrics["error_low"] < found.metrics["error"] < found.metrics["error_high"]
    assert sum(found.calibration.counts) == 700


def test_regressor_metrics_are_those_of_scikit_learn(waves_csv, regressor):
    found = regressor.evaluate_table(waves_csv, block_bytes=1000)
    X = encoded(regressor, waves_csv)
    y = np.array([float(line.split(",")[1]) for line in waves_csv.read_text().split()[1:]])
    mean, std = regressor.learner.predict(X, return_std=True, include_noise=True)
    assert found.metrics["rmse"] == pytest.approx(np.sqrt(np.mean((mean - y) ** 2)))
    assert found.metrics["mae"] == pytest.approx(mean_absolute_error(y, mean))
    assert found.metrics["r2"] == pytest.approx(r2_score(y, mean))
    limits = ndtri((1 + np.array(found.coverage.nominal)) / 2)
    inside = (np.abs(y - mean) / std)[:, None] <= limits
    np.testing.assert_allclose(found.coverage.observed, inside.mean(axis=0), atol=1e-3)
    assert len(found.actual) == len(found.predicted) == 1200


def test_wilson_interval():
    """Known values: 5 of 50 wrong (Newcombe 1998 has this interval for other counts by formula)."""
    low, high = wilson_interval(5, 50)
    assert (round(low, 4), round(high, 4)) == (0.0435, 0.2136)
    assert wilson_interval(0, 10)[0] == 0
    assert np.isnan(wilson_interval(0, 0)[0])


def test_unknown_labels_in_an_evaluation(folder, classifier):
    path = folder / "labels.csv"
    path.write_text("a,color,b,place\n1,red,2,in\n1,red,2,in.\n")
    with pytest.raises(TableError, match=r"'in.' in row 2.*in, out"):
        classifier.evaluate_table(path)


@pytest.mark.parametrize("weights", ["float64", "float32", "float16"])
def test_models_are_restored_from_files(
    folder, rings_csv, waves_csv, classifier, regressor, weights
):
    for model, path in ((classifier, rings_csv), (regressor, waves_csv)):
        file = folder / f"model-{weights}.kmill"
        model.save(file, weights=weights)
        loaded = kernelmill.load(file)
        assert loaded.summary == model.summary
        mine, theirs = model.evaluate_table(path), loaded.evaluate_table(path)
        assert mine.classes == theirs.classes
        name = "error" if model is classifier else "rmse"
        assert theirs.metrics[name] == pytest.approx(mine.metrics[name], abs=3e-3)
        if weights == "float64":
            np.testing.assert_array_equal(loaded.predict(path), model.predict(path))
        before = file.read_bytes()
        loaded.save(file, weights=weights)
        assert file.read_bytes() == before


def test_a_length_scale_for_each_column(folder, rings_csv):
    scales = np.array([1.0, np.inf, np.inf, 4.0])  # a, the colors, b
    feature_map = kernelmill.Fastfood(n_components=128, length_scale=scales, random_state=0)
    model = kernelmill.fit_table(rings_csv, "place", feature_map=feature_map, alpha=1e-5, epochs=10)
    assert model.summary.length_scale == 2.0  # the geometric mean
    file = folder / "columns.kmill"
    model.save(file, weights="float64")
    loaded = kernelmill.load(file)
    np.testing.assert_array_equal(loaded.learner.feature_map_.length_scale_, scales)
    assert loaded.summary == model.summary
    np.testing.assert_array_equal(loaded.predict(rings_csv), model.predict(rings_csv))
    page = folder / "columns.html"
    kernelmill.report.write_report(page, fit=loaded.summary)
    assert "length scale" in page.read_text()


def test_saving_takes_little_room(folder, classifier):
    file = folder / "small.kmill"
    classifier.save(file)
    held = len(str(classifier.summary.to_record()))
    assert file.stat().st_size < 256 * 4 + held + 20_000


def test_a_matrix_for_a_model_of_columns_and_the_reverse(folder, rings_csv, classifier):
    np.save(folder / "m.npy", np.random.default_rng(0).normal(size=(200, 3)))
    with pytest.raises(TableError, match="is a matrix"):
        classifier.predict(folder / "m.npy")
    model = fit_table(folder / "m.npy", 0, n_components=16, tune=False)
    with pytest.raises(TableError, match="is a table with columns"):
        model.predict(rings_csv)


def test_texts_without_header_keep_their_first_row(folder):
    """A first row of texts alone looks like a header, but the model knows better."""
    rng = np.random.default_rng(0)
    rows = [",".join(rng.choice(list("abc"), 3)) for _ in range(200)]
    path = folder / "texts.csv"
    path.write_text("\n".join(rows))
    model = fit_table(path, 2, header=False, **QUICK)
    new = folder / "texts_new.csv"
    for n in (1, 3):
        new.write_text("\n".join(row[:3] for row in rows[:n]))
        assert len(model.predict(new)) == n


def test_dropped_columns_that_are_absent_are_not_guessed(folder):
    X = np.random.default_rng(0).normal(size=(200, 4))
    full, part = folder / "four.csv", folder / "three.csv"
    for path, columns in ((full, X), (part, X[:, 1:])):
        path.write_text("\n".join(",".join(map(str, row)) for row in columns.tolist()))
    model = fit_table(full, 3, drop=[0], n_components=16, tune=False)
    with pytest.raises(TableError, match="which column is absent"):
        model.predict(part)
    np.save(folder / "four.npy", X)
    np.save(folder / "three.npy", X[:, 1:])
    model = fit_table(folder / "four.npy", 3, drop=[0], n_components=16, tune=False)
    assert model.summary.n_inputs == 2
    with pytest.raises(TableError, match="which column is absent"):
        model.predict(folder / "three.npy")


def test_kept_columns_are_unchanged(folder):
    """Large numbers, dates and names that predictions would have."""
    rng = np.random.default_rng(0)
    path, out = folder / "whole.csv", folder / "whole_out.csv"
    rows = [
        f"{2**53 + i},00{i % 10},2024-01-{i % 28 + 1:02d},{rng.normal():.3f}" for i in range(200)
    ]
    path.write_text("id,prediction,when,y\n" + "\n".join(rows))
    model = fit_table(path, "y", drop=["id", "when"], n_components=16, tune=False)
    model.predict_table(path, out=out, keep_columns=True)
    lines = out.read_text().splitlines()
    assert lines[0] == "id,prediction,when,y,prediction (model)"
    assert lines[2].startswith(f"{2**53 + 1},001,2024-01-02,")


def test_kept_columns_have_the_text_of_the_file(folder):
    """Signs, zeros and missing values; as numbers where the format has types."""
    path = folder / "signs.csv"
    rows = [
        f'{i % 40}%,"{i % 9},100.50",{i % 7}.0,{"NA" if i % 5 else "a"},{i % 3}' for i in range(200)
    ]
    path.write_text("rate,amount,text of rate,kind,y\n" + "\n".join(rows))
    model = fit_table(path, "y", n_components=16, tune=False, missing="impute", task="regression")
    model.predict_table(path, out=folder / "signs_out.tsv", keep_columns=True)
    lines = (folder / "signs_out.tsv").read_text().splitlines()
    assert lines[2].replace('"', "").startswith("1%\t1,100.50\t1.0\tNA\t1\t")
    typed = model.predict_table(path, keep_columns=True)
    assert typed["amount"][1].as_py() == 1100.5
    comma = folder / "comma.csv"
    comma.write_text("a;c;y\n" + "\n".join(f"{i % 9},5;x{i % 3};{i % 4},25" for i in range(200)))
    model = fit_table(comma, "y", n_components=16, tune=False)
    model.predict_table(comma, out=folder / "comma_out.csv", keep_columns=True)
    assert (folder / "comma_out.csv").read_text().splitlines()[2].startswith("1.5,x1,1.25,")


def test_kinds_cannot_be_changed_for_a_model(rings_csv, classifier):
    with pytest.raises(TableError, match="categorical is not allowed here"):
        classifier.predict(rings_csv, categorical=["a"])


def test_missing_values_in_prediction_say_to_fit_again(folder, classifier):
    path = folder / "hole.csv"
    path.write_text("a,color,b\n1,red,2\n,red,2\n")
    with pytest.raises(TableError, match=r"'a' has no value in row 2.*train the model again"):
        classifier.predict(path)


def test_values_that_are_not_numbers_in_prediction(folder, classifier):
    path = folder / "typo.csv"
    path.write_text("a,color,b\n1,red,2\n1x,red,2\n")
    with pytest.raises(TableError, match=r"line 3.*'1x' is not a number; correct it: the model"):
        classifier.predict(path)


def test_repr_is_short(classifier, regressor):
    assert repr(classifier).startswith("<TableModel of 'place': classification, 256 features, held")
    assert len(repr(regressor.summary)) < 5000
    assert "<list of" in repr(regressor.summary)


def test_zero_based_indices_stay_zero_based(folder):
    """A file without the index 0 for a model of one that has it: its columns do not move."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (300, 4))
    lines = [f"{x[1]} " + " ".join(f"{i}:1" for i in np.flatnonzero(x)) for x in X]
    path, new = folder / "zero.svm", folder / "new.svm"
    path.write_text("\n".join(lines))
    model = fit_table(path, **{**QUICK, "n_components": 256})
    new.write_text("1 1:1 3:1\n0 2:1 3:1\n")
    assert model.predict(new).tolist() == [1, 0]
    assert model.inputs.zero_based
    model.save(folder / "zero.kmill")
    assert kernelmill.load(folder / "zero.kmill").predict(new).tolist() == [1, 0]


def edited(folder, model, change):
    file = folder / "edited.kmill"
    model.save(file)
    content = read_model_file(file)
    change(content.record)
    write_model_file(file, kind=content.kind, record=content.record, tensors=content.tensors)
    return file


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r["encoder"]["columns"].pop(),
        lambda r: r["encoder"].update(kind="matrix"),
        lambda r: r["inputs"].update(columns=None),
        lambda r: r["inputs"]["columns"].reverse(),
        lambda r: r["target"].update(task="regression"),
        lambda r: r["target"]["classes"].append("third"),
        lambda r: r["target"].update(target="a"),
        lambda r: r["summary"].update(surprise=1),
        lambda r: r["summary"].update(n_rows="many"),
        lambda r: r.pop("learner"),
        lambda r: r["learner"].update(n_features_in=7),
        lambda r: r["inputs"].update(numbered=True),
        lambda r: r["inputs"].update(n_columns=2),
        lambda r: r["inputs"].update(dropped=[0]),
        lambda r: r["inputs"].update(zero_based=True),
        lambda r: r["inputs"].update(target=1),
        lambda r: r["summary"].update(target="a"),
        lambda r: r["summary"].update(n_components=7),
        lambda r: r["summary"]["classes"].reverse(),
    ],
    ids=[f"change {number}" for number in range(19)],
)
def test_parts_that_do_not_fit_are_rejected(folder, classifier, change):
    with pytest.raises(ModelFileError, match=r"edited\.kmill"):
        kernelmill.load(edited(folder, classifier, change))


@pytest.fixture(scope="module")
def matrix_model(folder):
    """A model of the column 3 of a matrix, of which the column 1 is dropped."""
    X = np.random.default_rng(0).normal(size=(120, 5))
    np.save(folder / "matrix.npy", X)
    return fit_table(folder / "matrix.npy", 3, drop=[1], n_components=16, tune=False)


@pytest.mark.parametrize(
    "change",
    [
        {"dropped": [99]},
        {"dropped": [-1]},
        {"dropped": [1, 1]},
        {"dropped": [3]},
        {"dropped": []},
        {"dropped": [0, 1]},
        {"target": 0},
        {"target": 5},
        {"target": "3"},
        {"n_columns": 4},
        {"n_columns": 0},
        {"numbered": False},
        {"missing_codes": ["-9"]},
    ],
    ids=str,
)
def test_columns_of_a_matrix_that_do_not_fit_are_rejected(folder, matrix_model, change):
    with pytest.raises(ModelFileError, match=r"edited\.kmill"):
        kernelmill.load(edited(folder, matrix_model, lambda r: r["inputs"].update(change)))


def test_a_file_of_an_unknown_kind(folder):
    file = folder / "kind.kmill"
    write_model_file(file, kind="forest", record={}, tensors={})
    with pytest.raises(ModelFileError, match="'forest'"):
        kernelmill.load(file)


@pytest.mark.parametrize(
    ("made", "n_columns", "problem"),
    [
        (kernelmill.RandomFourier(n_components=1 << 20), 8192, "of memory"),
        (
            kernelmill.TensorSketch(degree=4096, n_components=1 << 16),
            100,
            "operations for each row",
        ),
    ],
    ids=["memory", "time"],
)
def test_maps_that_a_budget_does_not_allow(folder, made, n_columns, problem):
    """Files of which a changed record asks for more than anybody expects."""
    path = folder / "costly.kmill"
    X = np.random.default_rng(0).normal(size=(40, 3))
    small = type(made)(n_components=16, random_state=0)
    kernelmill.KernelRegressor(small, random_state=0).fit(X, X[:, 0]).save(path)
    file = read_model_file(path)
    record = file.record["map"]
    record["parameters"] |= {"n_components": made.n_components, "degree": 4096}
    if "degree" not in made.get_params():
        del record["parameters"]["degree"]
    record["n_features_in"] = n_columns
    write_model_file(path, kind=file.kind, record=file.record, tensors=file.tensors)
    for load in (kernelmill.load, kernelmill.load_predictor, load_learner):
        with pytest.raises(ModelFileError, match=f"{problem}.*max_memory="):
            load(path)
        with pytest.raises(ModelFileError, match="must have a feature for each of 16 weights"):
            load(path, max_memory=1 << 50)


@pytest.fixture(scope="module")
def same_learner(tmp_path_factory):
    """A regressor of four columns as an estimator and as a predictor, from one file."""
    path = tmp_path_factory.mktemp("learner") / "learner.kmill"
    X = np.random.default_rng(0).normal(size=(40, 4))
    feature_map = kernelmill.Fastfood(n_components=16, random_state=0)
    kernelmill.KernelRegressor(feature_map).fit(X, X[:, 0]).save(path)
    return kernelmill.load(path), kernelmill.load_predictor(path)


@pytest.mark.parametrize(
    "convert",
    [
        *(scipy.sparse.csc_matrix, scipy.sparse.coo_matrix, scipy.sparse.lil_matrix),
        *(np.asfortranarray, list),
        *(
            lambda X, dtype=dtype: X.astype(dtype)
            for dtype in ("O", "U", ">f4", ">f8", "f2", "i4", "g")
        ),
        lambda X: scipy.sparse.csr_array(X.astype("i4")),
        lambda X: scipy.sparse.csr_array((X[:, 0], [3, 1, 1, 0], [0, 4, 4, 4, 4]), (4, 4)),
    ],
)
def test_predictors_take_the_data_that_estimators_take(same_learner, convert):
    estimator, predictor = same_learner
    X = convert(np.random.default_rng(1).normal(size=(4, 4)))  # square, its transpose fits as well
    np.testing.assert_array_equal(predictor.predict(X), estimator.predict(X))


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (np.ma.masked_array(np.ones(4), [1, 0, 0, 0]), "masked"),
        (np.full(4, 1 + 5j), "complex"),
        (["a"] * 4, "could not convert string to float"),
        ([10**400] * 4, "too large"),
        ([[1], 2, 3, 4], "inhomogeneous"),
        ([None] * 4, "NaN|NoneType"),
    ],
)
def test_predictors_refuse_what_is_no_row_of_numbers(same_learner, row, problem):
    estimator, predictor = same_learner
    rows = row[np.newaxis] if isinstance(row, np.ndarray) else [row]
    calls = [(estimator.predict_row, row), (predictor.predict_row, row), (predictor.predict, rows)]
    for predict, given in calls:
        with pytest.raises(KernelmillError, match=problem):
            predict(given)
    with pytest.raises(KernelmillError, match="complex"):
        predictor.predict(scipy.sparse.csr_array(np.full((2, 4), 1j)))
