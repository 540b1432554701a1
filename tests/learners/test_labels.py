"""Labels that NumPy would change, or that cannot be sorted, saved or told apart."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from kernelmill import Fastfood, KernelClassifier, KernelRegressor, load
from kernelmill.errors import ArgumentError, ArgumentTypeError

N_ROWS = 24
X = np.random.default_rng(0).normal(size=(N_ROWS, 3))


def repeat(*labels):
    return [labels[row % len(labels)] for row in range(N_ROWS)]


def as_objects(labels):
    array = np.empty(len(labels), object)
    array[:] = labels
    return array


def classifier(**parameters):
    feature_map = Fastfood(n_components=16, length_scale=1.0)
    return KernelClassifier(feature_map, epochs=1, random_state=0, **parameters)


MISSING = "must not have missing labels, got {} at position {}; leave out rows without a label"
BAD = {
    "None": (("a", "b", None), MISSING.format("None", 2)),
    "None among numbers": ((1, None, 2), MISSING.format("None", 1)),
    "NaN among strings": (("a", float("nan"), "b"), MISSING.format("nan", 1)),
    "pandas.NA": (("a", pd.NA, "b"), MISSING.format("<NA>", 1)),
    "mixed": (("a", 1), "all numbers or all strings, got 'a' at position 0 and 1 at position 1"),
    "mixed late": ((1, 2.5, True, "1"), "got 1 at position 0 and '1' at position 3"),
    "surrogates": (("a", "\udc80"), r"valid Unicode, got '\udc80' with a lone surrogate; correct"),
    "NUL": (("a", "a\0", "b"), r"NUL characters at the end of labels, since NumPy drops them, got"),
    "only NUL": (("", "\0"), r"got '\x00'; remove them"),
    "65 bits": ((2**64, 2**64 + 1), "or only from 0 to 2**64 - 1, got one of 65 bits; convert the"),
    "beyond floats": ((10**400, 1), "got one of 1329 bits"),
    "both ends": ((2**63, 2**63 + 1, -1), "integers from -2**63 to 2**63 - 1 as labels"),
    "NumPy's ends": (
        (np.uint64(2**63), np.int64(-1)),
        "or only from 0 to 2**64 - 1, got one of 64",
    ),
    "objects": ((Decimal(1), Decimal(2)), "booleans or strings as labels, got Decimal('1') (Dec"),
    "dates": ((pd.Timestamp(0), pd.Timestamp(1)), "(Timestamp) at position 0; convert the labels"),
}


@pytest.mark.parametrize("make", [list, tuple, as_objects], ids=["list", "tuple", "objects"])
@pytest.mark.parametrize(("labels", "problem"), BAD.values(), ids=BAD)
def test_errors_name_the_label(labels, problem, make):
    y = make(repeat(*labels))
    for fit in (
        lambda: classifier().fit(X, y),
        lambda: classifier().fit_blocks([(X, y)]),
        lambda: classifier(solver="sgd").partial_fit(X, repeat(0, 1), classes=make(labels)),
    ):
        with pytest.raises((ArgumentError, ArgumentTypeError)) as raised:
            fit()
        assert str(raised.value).startswith(("y must", "classes must"))
        assert problem in str(raised.value)


def test_arrays_of_strings_and_frames():
    for dtype in ("<U3", ">U3"):
        with pytest.raises(ArgumentError, match=r"got 'b\\ud800' with a lone surrogate"):
            classifier().fit(X, np.array(repeat("a", "b\ud800"), dtype))
    for labels in (pd.Categorical(repeat("a", None)), pd.array(repeat("a", "b", None))):
        with pytest.raises(ArgumentError, match="missing labels"):
            classifier().fit(X, pd.Series(labels))


@pytest.mark.parametrize(
    "labels",
    [
        ("a\0b", "a"),  # NumPy drops NUL at ends only
        ("ä", "\U0001f600"),
        (2**64 - 1, 2**64 - 2),
        (-(2**63), 2**63 - 1),
        (True, 2, 3),
        (np.str_("a"), np.str_("b")),
        (False, True),
        (0.0, 2.0),
    ],
)
@pytest.mark.parametrize("make", [list, np.array, as_objects])
def test_other_labels_are_predicted_saved_and_loaded(labels, make, tmp_path):
    fitted = classifier().fit(X, make(repeat(*labels)))
    assert fitted.classes_.tolist() == sorted(labels)
    assert isinstance(labels[0], str) or fitted.classes_.dtype.kind in "iubf"
    fitted.save(tmp_path / "a.kmill")
    loaded = load(tmp_path / "a.kmill")
    assert loaded.predict(X).tolist() == fitted.predict(X).tolist()


LARGE = np.array(repeat(2**64 - 1, 2**64 - 2), np.uint64)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (repeat(0, 1), repeat("a", "0")),
        (repeat("a", "0"), repeat(0, 1)),
        (repeat(False, True), repeat("True", "x")),
        (LARGE, repeat(-1, 1)),
        (repeat(2**53, 2**53 + 1), repeat(0.0, 2.0)),
    ],
)
def test_blocks_with_labels_of_other_types(first, second):
    with pytest.raises(ArgumentTypeError, match=r"y must have labels of one type in all blocks"):
        classifier().fit_blocks([(X, first), (X, second)])
    model = classifier(solver="sgd").partial_fit(X, first, classes=np.unique(first))
    with pytest.raises(ArgumentError, match=r"y has the label ('|-?\d|True|False)"):
        model.partial_fit(X, second)


def test_blocks_with_labels_of_similar_types():
    fitted = classifier().fit_blocks([(X, repeat(0, 1)), (X, repeat(1.0, 2.0))])
    assert fitted.classes_.tolist() == [0, 1, 2]
    fitted = classifier().fit_blocks([(X, repeat("a")), (X, as_objects(repeat("a", "bc")))])
    assert fitted.classes_.tolist() == ["a", "bc"]


def test_targets_of_regression_beyond_floats():
    model = KernelRegressor(Fastfood(n_components=16, length_scale=1.0))
    with pytest.raises(ArgumentError, match=r"y must hold numbers that float64 can represent"):
        model.fit(X, repeat(10**400, 1))
    assert model.fit(X, repeat(2**64, 2**65)).predict(X).dtype == np.float64
