"""From a table to a model: good defaults, held-out rows, the same model for any way of reading."""

import gzip
import itertools
import json
import os
import pkgutil
import subprocess
import sys
import warnings
from contextlib import ExitStack

import numpy as np
import pyarrow as pa
import pytest
from pyarrow.csv import write_csv
from scipy.sparse import csr_array
from sklearn.datasets import dump_svmlight_file, load_digits
from sklearn.exceptions import ConvergenceWarning

import kernelmill
from kernelmill import Fastfood, TensorSketch, fit_table
from kernelmill.errors import ArgumentError
from kernelmill.io import TableError
from kernelmill.kernels import Polynomial
from kernelmill.learners.solvers import SOLVERS
from kernelmill.learners.tuning.length_scales import _walk
from kernelmill.runtime.progress import SilentProgress

from .conftest import rings, write_rings

QUICK = {"length_scale": 1.0, "alpha": 1e-5, "epochs": 10}  # nothing is tuned


@pytest.mark.representative
def test_classifier_without_settings(tuned_classifier, rings_csv):
    summary = tuned_classifier.summary
    assert (summary.task, summary.target, summary.classes) == (
        "classification",
        "place",
        ["in", "out"],
    )
    assert summary.n_rows + summary.n_held_out == 300
    assert 20 < summary.n_held_out < 40
    assert [(c.name, c.kind) for c in summary.columns] == [
        ("a", "numeric"),
        ("color", "category"),
        ("b", "numeric"),
    ]
    assert summary.n_inputs == 4
    assert tuned_classifier.evaluate_table(rings_csv).metrics["error"] < 0.04
    assert list(summary.seconds) == ["read", "tune", "train", "evaluate"]
    assert summary.kernel_check.rms_error < 0.2
    assert tuned_classifier.learner.classes_.tolist() == ["in", "out"]


@pytest.mark.representative
def test_regressor_without_settings(regressor):
    metrics = regressor.summary.held_out.metrics
    assert regressor.summary.task == "regression"
    assert 0.08 < metrics["rmse"] < 0.13  # the noise is 0.1
    coverage = regressor.summary.held_out.coverage
    assert dict(zip(coverage.nominal, coverage.observed, strict=True))[0.95] > 0.85


def test_same_seed_same_model(rings_csv):
    model, again, other = (
        fit_table(rings_csv, "place", n_components=64, **QUICK, random_state=seed)
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(again.learner.coef_, model.learner.coef_)
    assert again.summary.held_out.confusion == model.summary.held_out.confusion
    assert other.summary.held_out.confusion != model.summary.held_out.confusion


def test_held_out_rows_are_not_trained_on(folder):
    """Labels that are noise: a model of all rows would know them, one of the others cannot."""
    rng = np.random.default_rng(0)
    path = folder / "noise.csv"
    rows = (
        f"{a},{b},{'yes' if c else 'no'}"
        for (a, b), c in zip(rng.normal(size=(300, 2)), rng.random(300) < 0.5, strict=True)
    )
    path.write_text("a,b,c\n" + "\n".join(rows))
    model = fit_table(
        path, "c", n_components=1024, length_scale=0.02, alpha=1e-9, holdout=0.6, epochs=100
    )
    summary = model.summary
    held_out = summary.held_out.metrics["error"]
    # Binomial, 180 rows, p = 1/2: below 0.3 with probability 3e-8.
    assert summary.n_held_out > 170
    assert held_out > 0.3
    mistakes = 300 * model.evaluate_table(path).metrics["error"] - summary.n_held_out * held_out
    assert mistakes < 0.05 * summary.n_rows


@pytest.mark.parametrize("memory", [0, 256 << 20])
def test_rows_of_a_sorted_file_are_mixed(folder, memory):
    """Blocks are small where rows are not kept, and several of them are trained on together."""
    path = write_rings(folder / f"sorted{memory}.csv", 40_000, order=np.argsort)
    options = {**QUICK, "epochs": 2}
    model = fit_table(path, "place", n_components=64, memory=memory, **options)
    assert model.summary.held_out.metrics["error"] < 0.03


def test_reading_again_gives_the_same_regressor_as_keeping(waves_csv):
    options = {"n_components": 64, "length_scale": 0.5, "alpha": 0.1}
    kept = fit_table(waves_csv, "y", **options)
    read = fit_table(waves_csv, "y", memory=0, block_bytes=1000, **options)
    np.testing.assert_allclose(kept.learner.coef_, read.learner.coef_, rtol=1e-6, atol=1e-8)
    assert kept.summary.n_rows == read.summary.n_rows


def test_compressed_and_several_files(folder, rings_csv):
    text = rings_csv.read_text().splitlines(keepends=True)
    for number, part in enumerate((text[1:700], text[700:])):
        with gzip.open(folder / f"part-{number}.csv.gz", "wt") as file:
            file.write(text[0] + "".join(part))
    options = {"n_components": 64, **QUICK}
    parts = fit_table(str(folder / "part-*.csv.gz"), "place", **options)
    whole = fit_table(rings_csv, "place", **options)
    np.testing.assert_array_equal(parts.learner.coef_, whole.learner.coef_)


def test_without_a_header_the_target_is_a_place(folder):
    path = write_rings(folder / "bare.data", header=False)
    model = fit_table(path, 3, n_components=64, tune=False)
    assert model.inputs.numbered
    assert model.summary.target == "3"
    assert any("No header" in note for note in model.summary.notes)


@pytest.fixture(scope="module")
def heavy_npy(tmp_path_factory):
    """Columns with a few giant values: some rows are many times as long as others."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 20))
    X[:, 10:] = np.exp(2.5 * X[:, 10:])
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=1500)
    path = tmp_path_factory.mktemp("heavy") / "heavy.npy"
    np.save(path, np.c_[X, y])
    return path


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("tensor_sketch", 0.6),
        ("dot_product_fastfood", 0.4),
        ("random_maclaurin", 0.4),
        ("count_sketch", 0.1),  # linear
    ],
)
def test_polynomial_kernels_survive_long_rows(folder, heavy_npy, name, least):
    """Without scaled rows R² was between -0.3 and -1, and 0.2 for the linear kernel."""
    model = fit_table(heavy_npy, 20, feature_map=name, n_components=512, holdout=0.3)
    assert model.summary.held_out.metrics["r2"] > least
    assert any("Rows are divided by" in note for note in model.summary.notes)
    model.save(folder / "m.kmill", weights="float64")
    again = kernelmill.load(folder / "m.kmill")
    assert again.encoder.rows == model.encoder.rows
    np.testing.assert_array_equal(again.predict(heavy_npy), model.predict(heavy_npy))
    rows = model.encoder.encode(np.load(heavy_npy)[:, :20])
    assert (np.linalg.norm(rows, axis=1) < 3).all()


def test_rows_are_as_they_are_for_other_maps(heavy_npy):
    """Those with a gamma, map objects, and kernels of distances."""
    quick = {"n_components": 16, "tune": False}
    for options in (
        {"feature_map": "tensor_sketch", "map_options": {"gamma": "scale"}},
        {"feature_map": TensorSketch(2, n_components=16)},
        {},
    ):
        assert fit_table(heavy_npy, 20, **quick, **options).encoder.rows is None


def test_polynomials_have_linear_terms_by_default(heavy_npy):
    for name in ("tensor_sketch", "dot_product_fastfood", "random_maclaurin"):
        model = fit_table(heavy_npy, 20, feature_map=name, n_components=16, tune=False)
        assert model.learner.feature_map_.kernel_ == Polynomial(2, coef0=1.0)


def test_search_for_the_ridge_goes_to_its_optimum():
    def errors_of(best):
        def measure(ridge):
            return abs(np.log10(ridge / best))

        errors = {0.1: measure(0.1)}
        _walk(errors, measure, 10**0.5, 1e7)
        if min(errors, key=errors.get) == 0.1:
            _walk(errors, measure, 10**-0.5, 1e-8)
        return errors

    for best in (1e5, 1e-4):
        errors = errors_of(best)
        assert min(errors, key=errors.get) == pytest.approx(best)
    assert len(errors_of(0.1)) == 3
    assert max(errors_of(1e30)) == pytest.approx(1e7)  # both directions have an end
    assert 1e-9 < min(errors_of(1e-30)) < 2e-8


def test_matrices_with_labels(folder):
    X, y = load_digits(return_X_y=True)
    np.savez(folder / "digits.npz", X=X, y=y)
    dump_svmlight_file(csr_array(X), y, str(folder / "digits.svm"))
    np.save(folder / "digits.npy", np.c_[y, X])
    options = {"n_components": 256, "alpha": 1e-5, "epochs": 10}
    for name, target in (("digits.npz", None), ("digits.npy", 0)):
        model = fit_table(folder / name, target, length_scale=8.0, **options)
        assert model.summary.n_inputs == 64
        assert model.summary.held_out.metrics["error"] < 0.06
        assert model.learner.classes_.tolist() == list(range(10))
        assert model.predict(folder / name)[:3].tolist() == [0, 1, 2]
    sparse = fit_table(folder / "digits.svm", length_scale=2.0, **options)
    assert sparse.summary.held_out.metrics["error"] < 0.06


def test_numeric_targets_of_a_matrix_without_its_target(folder):
    X, y = load_digits(return_X_y=True)
    np.save(folder / "with.npy", np.c_[y, X])
    np.save(folder / "without.npy", X)
    model = fit_table(folder / "with.npy", 0, n_components=256, length_scale=8.0, alpha=1e-5)
    np.testing.assert_array_equal(
        model.predict(folder / "with.npy"), model.predict(folder / "without.npy")
    )
    with pytest.raises(TableError, match="has no target"):
        model.evaluate_table(folder / "without.npy")


def test_maps_and_kernels(rings_csv):
    options = {"tune": False, "n_components": 128}
    by_name = fit_table(
        rings_csv, "place", feature_map="tensor_sketch", map_options={"degree": 2}, **options
    )
    assert isinstance(by_name.learner.feature_map_, TensorSketch)
    assert by_name.summary.length_scale is None
    assert by_name.summary.held_out.metrics["error"] < 0.1  # a circle is of degree two
    matern = fit_table(rings_csv, "place", kernel="matern", **options)
    assert matern.summary.kernel == "Matern(nu=1.5)"
    rough = fit_table(rings_csv, "place", kernel="matern:nu=0.5", **options)
    assert rough.summary.kernel == "Matern(nu=0.5)"
    # Its default structure takes this kernel with any number of columns.
    ball = fit_table(rings_csv, "place", kernel="ball_convolution:t=2", **options)
    assert ball.summary.kernel == "BallConvolution(t=2)"
    by_option = {"kernel": "ball_convolution"}
    assert fit_table(rings_csv, "place", map_options=by_option, **options).summary.held_out
    given = Fastfood(n_components=32, length_scale=1.0, random_state=5)
    model = fit_table(rings_csv, "place", feature_map=given, tune=False)
    assert model.summary.n_components == 32
    assert model.summary.length_scale == 1.0


@pytest.mark.usefixtures("full_tuning")
def test_tuning_beats_a_bad_start(folder):
    """Many columns of noise around two that matter: the default length scale is too short."""
    rng = np.random.default_rng(0)
    X, y = rings(500)
    path = folder / "wide.csv"
    both = np.hstack([5 * X, rng.normal(size=(500, 6))])
    path.write_text(
        ",".join("abcdefghy")
        + "\n"
        + "\n".join(
            ",".join(map(str, row)) + f",{t}" for row, t in zip(both.tolist(), y, strict=True)
        )
    )
    models = [
        fit_table(path, "y", n_components=128, kernel="gaussian", tune=tune, holdout=0.3)
        for tune in (False, True)
    ]
    errors = [model.summary.held_out.metrics["error"] for model in models]
    assert errors[1] <= errors[0]
    assert errors[1] < 0.2


def test_missing_values(folder):
    path = folder / "holes.csv"
    X, y = rings(400)
    rows = [f"{a:.4f},{b:.4f},{t}" for (a, b), t in zip(X, y, strict=True)]
    rows[7], rows[9] = f"?,{X[7, 1]:.4f},{y[7]}", f"{X[9, 0]:.4f},{X[9, 1]:.4f},"
    path.write_text("a,b,place\n" + "\n".join(rows))
    with pytest.raises(TableError, match=r"holes.csv: column 'a' has no value in row 8.*impute"):
        fit_table(path, "place")
    model = fit_table(path, "place", missing="impute", n_components=64, tune=False)
    assert model.summary.n_rows + model.summary.n_held_out == 399
    assert model.summary.columns[0].missing == 1
    assert "Left out 1 row without a target." in model.summary.notes
    path.write_text("a,b,place\n" + "\n".join(rows).replace("?", "0"))
    with pytest.raises(TableError, match="row 10 has no value for the target 'place'"):
        fit_table(path, "place")
    assert len(model.predict(path)) == 400


@pytest.mark.parametrize("present", ["b", "1.5"])  # classes, and numbers
def test_words_that_are_read_as_missing_targets_are_named(tmp_path, present):
    path = tmp_path / "rows.csv"
    words = [present, "n/a", "7" if present == "1.5" else "c", "NULL", ""]
    path.write_text("x,y\n" + "".join(f"{i / 3},{words[i % 5]}\n" for i in range(40)))
    problem = r"row 2 has no value .* 'y' \('n/a', 'NULL' are read as missing\);"
    with pytest.raises(TableError, match=problem):
        fit_table(path, "y")
    expected = "Left out 24 rows without a target ('n/a', 'NULL' are read as missing)"
    model = fit_table(path, "y", missing="impute", n_components=8, tune=False, holdout=0)
    advice = "; if they are classes, keep them (not_missing=['n/a', 'NULL'])."
    assert expected + ("." if present == "1.5" else advice) in model.summary.notes
    assert expected + "." in map(str, model.evaluate_table(path).notes)
    if present == "b":
        settings = {"n_components": 8, "tune": False, "alpha": 1e-3}
        kept = fit_table(path, "y", missing="impute", not_missing=["n/a"], **settings)
        assert kept.summary.classes == ["b", "c", "n/a"]
        assert "n/a" in kept.predict(path)
    rows = {"x": [1.0, 2.0, 3.0], "lists": [[1]] * 3, "y": [1.0, None, 2.0]}
    with pytest.raises(TableError, match=r"row 2 has no value for the target 'y'; fill"):
        fit_table(pa.table(rows), "y", drop=["lists"])


def test_dates_and_identifiers_get_advice(folder):
    path = folder / "dates.csv"
    path.write_text(
        "when,x,y\n" + "\n".join(f"2024-05-{i % 28 + 1:02d},{i**2},{i % 2}" for i in range(200))
    )
    notes = fit_table(path, "y", n_components=16, tune=False).summary.notes
    assert any(note.startswith("Column 'when' has dates (year first)") for note in notes)
    with pytest.raises(TableError, match="the target 'when' must contain numbers or strings"):
        fit_table(path, "when")
    model = fit_table(path, "y", drop=["when"], n_components=16, tune=False)
    assert [c.name for c in model.summary.columns] == ["x"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target": None}, "target must be given; the columns of .* are a, color, b, place"),
        ({"target": "plce"}, "a similar name: 'place', or use one of its columns: 'a', 'color'"),
        ({"target": 9}, "between 0 and 3"),
        ({"task": "guess"}, "task must be one of"),
        ({"missing": "drop"}, "missing must be one of"),
        ({"holdout": 1.5}, "holdout must be"),
        ({"length_scale": -1}, "length_scale must be"),
        ({"alpha": "a"}, "alpha must be"),
        ({"epochs": 0}, "epochs must be"),
        ({"loss": "l2"}, "loss must be one of"),
        ({"solver": "newton"}, "solver must be one of auto, sgd, .* for classification"),
        ({"solver": "cg"}, "solver must be one of auto, sgd, .* got 'cg'"),
        ({"solver": "exact"}, "solver is 'exact', which needs loss='squared'"),
        ({"solver": "lbfgs", "loss": "hinge"}, "needs a smooth loss"),
        ({"solver": "lbfgs", "batch_size": 8}, "batch_size is for gradient descent solvers, got 8"),
        ({"loss": "squared", "batch_size": 8}, "for the solver 'exact'"),
        ({"loss": "squared", "epochs": 8}, "epochs is for gradient descent"),
        ({"batch_size": 0}, "batch_size must be"),
        ({"learning_rate": 0.1}, "learning_rate is for the solver 'plain_sgd'"),
        ({"solver": "plain_sgd", "learning_rate": -1}, "learning_rate must be a positive"),
        ({"feature_map": "rff"}, "feature_map must be one of"),
        ({"feature_map": "tensor_sketch", "kernel": "rbf"}, "no parameter 'kernel'"),
        (
            {"kernel": "laplacian", "feature_map": "fastfood"},
            "got Laplacian; use .* .feature_map='random_fourier'",
        ),
        ({"kernel": "matern:mu=1"}, "kernel must be matern:nu=NUMBER"),
        ({"feature_map": "tensor_sketch", "length_scale": 1.0}, "no length scale"),
        ({"drop": ["a", "b", "color"]}, "no columns left except"),
        ({"random_state": -1}, "random_state must be"),
        ({"n_components": 0}, "n_components must be"),
        ({"task": "regression"}, r"line 2, column 'place' .*'(in|out)' is not a number"),
        ({"drop": ["place"]}, "among the dropped"),
        ({"categorial": ["a"]}, "use 'categorical'"),
        ({"random_state": 2**70}, "random_state must be"),
        ({"n_threads": 10**6}, "n_threads must be"),
    ],
    ids=lambda value: None if isinstance(value, str) else str(value),
)
def test_bad_settings_have_remedies(rings_csv, options, words):
    with pytest.raises((ValueError, TypeError), match=words):
        fit_table(rings_csv, **{"target": "place", **options})


@pytest.mark.parametrize("option", [{"epochs": 3}, {"batch_size": 3}, {"learning_rate": 0.1}])
def test_options_of_descent_are_not_for_regression(waves_csv, option):
    (name,) = option
    with pytest.raises(ArgumentError, match=f"{name} is for classification"):
        fit_table(waves_csv, "y", **option)
    with pytest.raises(ArgumentError, match="auto, exact, cg for regression, got 'sgd'"):
        fit_table(waves_csv, "y", solver="sgd")


@pytest.mark.parametrize(
    "options",
    [
        {"solver": "sgd", "batch_size": 20},
        {"solver": "lbfgs"},
        {"solver": "lbfgs", "epochs": 30},
        {"solver": "exact", "loss": "squared"},
        {"solver": "plain_sgd", "learning_rate": 0.5, "batch_size": 5, "epochs": 20},
    ],
    ids=lambda options: "-".join(map(str, options.values())),
)
@pytest.mark.parametrize("memory", [0, 256 << 20])
def test_solvers_of_classifiers(tmp_path, rings_csv, options, memory):
    """Also with a checkpoint, which the command line always asks for."""
    common = {"n_components": 64, "length_scale": 1.0, "alpha": 1e-5}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = fit_table(
            rings_csv,
            "place",
            memory=memory,
            checkpoint=tmp_path / "checkpoint",
            **common,
            **options,
        )
    assert model.summary.solver == model.learner.solver_ == options["solver"]
    assert {name: getattr(model.learner, name) for name in options} == options
    assert model.summary.held_out.metrics["error"] < 0.1


def test_solvers_of_regressors(waves_csv):
    common = {"n_components": 64, "length_scale": 0.5, "alpha": 0.1}
    exact, iterated = (fit_table(waves_csv, "y", solver=s, **common) for s in ("exact", "cg"))
    assert (exact.summary.solver, iterated.summary.solver) == ("exact", "cg")
    assert fit_table(waves_csv, "y", **common).summary.solver == "exact"
    errors = [model.summary.held_out.metrics["rmse"] for model in (exact, iterated)]
    assert errors[1] == pytest.approx(errors[0], rel=1e-3)


_SOLVE = {  # the function of each solver
    "solve_sgd": "sgd",
    "solve_lbfgs": "lbfgs",
    "solve_signs": "exact",
    "solve_exact": "exact",
    "solve_cg": "cg",
}


@pytest.mark.parametrize("task", ["log_loss", "hinge", "squared", "regression"])
def test_one_choice_of_the_solver(few_epochs, monkeypatch, task):
    """Checks, what runs and what the summary reports agree, below and above the exact solver's
    limit of features, which is 40 here; landmarks are at most as many as rows.
    """
    monkeypatch.setattr("kernelmill.learners.solvers.choice.MOST_EXACT_FEATURES", 40)
    called = []
    for name, solver in _SOLVE.items():
        place = f"kernelmill.learners.solvers.choice.{name}"
        solve = pkgutil.resolve_name(place)
        monkeypatch.setattr(
            place, lambda *a, _s=solver, _f=solve, **k: (called.append(_s), _f(*a, **k))[1]
        )
    X, labels = rings(36, seed=1)
    is_regression = task == "regression"
    table = {"a": X[:, 0], "b": X[:, 1], "y": X[:, 0] if is_regression else labels}
    common = {"tune": False, "length_scale": 1.0, "alpha": 0.01}
    common |= {} if is_regression else {"loss": task}
    solvers = SOLVERS["regression" if is_regression else "classification"]
    maps = [("fastfood", 32, 1 << 20), ("fastfood", 64, 0), ("nystroem", 64, 1 << 20)]
    for solver, epochs, feature_map in itertools.product(solvers, (None, 2), maps):
        name, n_components, memory = feature_map
        options = {"solver": solver, "epochs": epochs, "n_components": n_components}
        is_exact = (n_components if name == "fastfood" else 32) <= 40
        least_squares = task in ("squared", "regression")
        wanted = {"auto": "sgd", "plain_sgd": "sgd"}.get(solver, solver)
        if solver == "auto" and least_squares:
            wanted = "exact" if is_exact else "cg" if is_regression else "sgd"
        is_wrong = epochs is not None and (is_regression or wanted == "exact")
        is_wrong |= wanted == "exact" and not least_squares
        is_wrong |= wanted == "lbfgs" and task == "hinge"
        called.clear()
        with ExitStack() as stack, warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            if is_wrong:
                stack.enter_context(pytest.raises(ArgumentError))
            model = fit_table(table, "y", feature_map=name, memory=memory, **options, **common)
        assert called == ([] if is_wrong else [wanted]), options
        if not is_wrong:
            used = "plain_sgd" if solver == "plain_sgd" else wanted
            assert model.summary.solver == used, options
            assert getattr(model.learner, "solver_", used) == used


def test_one_row_is_left_to_train_on():
    rows = {"a": [1.0, 2.0], "y": [0.5, 1.5]}
    for seed in range(4):
        summary = fit_table(rows, "y", holdout=0.9, n_components=8, random_state=seed).summary
        assert (summary.n_rows, summary.n_held_out) == (1, 1)


def test_few_rows(folder):
    path = folder / "few.csv"
    path.write_text("a,y\n1,p\n2,q\n3,p\n4,q\n")
    model = fit_table(path, "y", n_components=16)
    assert model.summary.held_out is None
    notes = str(model.summary.notes)
    assert "the table has fewer than 100 rows.'" in notes  # too few for folds
    assert set(model.predict(path)) <= {"p", "q"}


@pytest.mark.parametrize("target", ["label", "value"])
def test_a_dozen_rows_suggest_folds(few_epochs, monkeypatch, target):
    """Rows without a held-out error: the remedy works, and is not repeated when it is followed."""
    values = np.arange(12.0)
    rows = {"a": values, "value": np.sin(values), "label": np.where(values < 5, "p", "q")}
    rows = {name: column for name, column in rows.items() if name in ("a", target)}
    settings = {"n_components": 16, "tune": False}
    reason = "No rows are held out to measure the error: the table has fewer than 100 rows"
    found = fit_table(rows, target, **settings).summary
    assert f"{reason}; estimate it by cross-validation (folds=5)." in found.notes
    followed = fit_table(rows, target, folds=5, **settings).summary
    assert f"{reason}." in followed.notes
    assert len(followed.cross_validation.errors) == 5
    assert np.isfinite(followed.cross_validation.mean)
    monkeypatch.delattr("kernelmill.workflows.training.plan.TrainingPlan.fit")
    with pytest.raises(ArgumentError, match="folds must be at most 12"):  # before the training
        fit_table(rows, target, folds=13, **settings)


def test_progress_receives_every_row(rings_csv):
    class Watch(SilentProgress):
        def __init__(self):
            self.stages, self.rows = [], {}

        def start(self, stage, total=None, unit="rows"):
            self.stages.append((stage, total, unit))

        def advance(self, amount, status=""):
            name = self.stages[-1][0]
            self.rows[name] = self.rows.get(name, 0) + amount

        def note(self, message):
            assert str(message).endswith(".")

    watch = Watch()
    model = fit_table(rings_csv, "place", n_components=64, epochs=3, tune=False, progress=watch)
    stages = [stage for stage, _, _ in watch.stages]
    assert stages == ["Reading", "Encoding", "Training", "Evaluating"]
    assert watch.rows["Reading"] == watch.rows["Encoding"] == 1500
    assert watch.rows["Training"] == 3 * model.summary.n_rows


def test_a_killed_training_run_resumes(folder, rings_csv):
    class Killed(BaseException):
        pass

    class Killer(SilentProgress):
        def start(self, stage, total=None, unit="rows"):
            self.training, self.rows = stage == "Training", 0

        def advance(self, amount, status=""):
            self.rows += amount
            if self.training and self.rows > 8000:
                raise Killed

    options = {"n_components": 64, "length_scale": 1.0, "alpha": 1e-5, "epochs": 12}
    path = folder / "rings.checkpoint"
    saving = {"checkpoint": path, "checkpoint_seconds": 0.0}
    with pytest.raises(Killed):
        fit_table(rings_csv, "place", progress=Killer(), **saving, **options)
    assert path.exists()
    resumed = fit_table(rings_csv, "place", **saving, **options)
    assert path.exists()  # until the model is in a file, too
    resumed.save(folder / "resumed.kmill")
    assert not path.exists()
    whole = fit_table(rings_csv, "place", **options)
    np.testing.assert_array_equal(resumed.learner.coef_, whole.learner.coef_)


def test_summary_is_json(tuned_classifier, classifier, regressor):
    for model in (tuned_classifier, classifier, regressor):
        text = json.dumps(model.summary.to_record(), allow_nan=False)
        again = type(model.summary).from_record(json.loads(text))
        assert again == model.summary


def test_a_file_that_changes_after_the_first_pass_is_rejected(folder):
    path = write_rings(folder / "growing.data", 300, header=False)

    class Writer(SilentProgress):
        def note(self, message):
            """Notes about the first pass are reported at its end."""
            with path.open("a") as file:
                file.write("0.5,red,0.5,in\n")

    with pytest.raises(TableError, match="chang"):
        fit_table(path, 3, memory=0, n_components=16, tune=False, progress=Writer())


MEASURE = """
import functools, sys
import kernelmill.workflows.training.fit_table as fit
from kernelmill.workflows.comparison.benchmark import PeakMemory

fit.survey_table = functools.partial(fit.survey_table, sample_rows=5000)
options = {"n_components": 32, "length_scale": 0.5, "alpha": 0.1, "memory": 0, "n_threads": 1}
for path in sys.argv[1:]:
    watch = PeakMemory()
    fit.fit_table(path, "y", block_bytes=1 << 16, **options)
    print(watch.bytes_more())
"""


def test_memory_does_not_grow_with_the_rows(folder):
    """150,000 rows more, read again in each pass: 3 MB of text, 2.4 MB of numbers.

    Up to 250,000 rows, held-out rows and buffers grow.
    """
    x = np.random.default_rng(0).uniform(-3, 3, 400_000).round(6)
    rows = pa.table({"x": x, "y": np.sin(2 * x).round(6)})
    first, small, large = (folder / f"{n}.csv" for n in (10_000, 250_000, 400_000))
    for path in (first, small, large):
        write_csv(rows[: int(path.stem)], path)
    # In a process of its own, whose allocators give back what is freed. The first time, libraries
    # take their buffers.
    environment = os.environ | {
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "MALLOC_ARENA_MAX": "1",
        "MALLOC_MMAP_THRESHOLD_": "65536",
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = [sys.executable, "-c", MEASURE, first, small, large]
    printed = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True, timeout=300
    ).stdout.split()
    if "None" in printed:
        pytest.skip("the system does not tell the peak of the memory")
    _, before, after = map(int, printed)
    assert after - before < 1 << 20, printed
