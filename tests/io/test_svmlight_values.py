"""Svmlight files are read as scikit-learn reads them, and values are rounded once."""

import gzip
import io
import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from kernelmill.io import read_svmlight
from kernelmill.io.svmlight.parser import SvmlightText, parse_rows

FLOATS = st.floats(-1e308, 1e308)  # what is written with fewer digits stays finite
FLOATS_IN_SINGLE_RANGE = st.floats(-3e38, 3e38)


def a9a():
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    folders = [Path(folder) for folder in (os.environ.get("KERNELMILL_DATA"), beside) if folder]
    found = [path for folder in folders if (path := folder / "adult" / "a9a").is_file()]
    if not found:
        pytest.skip("adult/a9a is not in the folder that KERNELMILL_DATA names")
    return found[0]


def assert_same(ours, theirs):
    X, labels = ours
    expected, expected_labels = theirs
    assert X.shape == expected.shape
    np.testing.assert_array_equal(X.indptr, expected.indptr)
    np.testing.assert_array_equal(X.indices, expected.indices)
    assert X.data.tobytes() == expected.data.tobytes()
    assert labels.tobytes() == expected_labels.tobytes()


def rows_of(values):
    entries = st.dictionaries(st.integers(0, 40), values, max_size=8)
    return st.lists(st.tuples(FLOATS, entries), min_size=1, max_size=12)


@st.composite
def texts(draw, values):
    """Lines with all that the format allows, and the values in them as they are written."""
    lines, written = [], []
    number = st.sampled_from(["{!r}", "{:+}", "{:.17g}", "{:.9e}"])
    for label, entries in draw(rows_of(values)):
        blank = draw(st.sampled_from([" ", "  ", "\t"]))
        pairs = []
        for index, value in sorted(entries.items()):
            written.append(draw(number).format(value))
            pairs.append(f"{index}:{written[-1]}")
        group = draw(st.sampled_from([[], ["qid:3"]]))
        line = blank.join([repr(label), *group, *pairs])
        lines.append(draw(st.sampled_from(["", "# all comment\n", "\n"])) + line)
        lines[-1] += draw(st.sampled_from(["", " ", " # 1:1 comment", "\r"])) + "\n"
    return "".join(lines).encode(), written


def test_a9a_is_read_as_by_scikit_learn():
    path = a9a()
    assert_same(read_svmlight(path, dtype=np.float64), load_svmlight_file(path))
    single = load_svmlight_file(path, dtype=np.float32)
    assert_same(read_svmlight(path), (single[0], single[1].astype(np.float64)))


def test_a_file_of_many_pieces_is_joined(tmp_path, monkeypatch):
    monkeypatch.setattr("kernelmill.io.svmlight.svmlight_file._PIECE_BYTES", 100)
    text = b"".join(b"%d 1:%d.5 %d:1\n" % (i, i, i + 2) for i in range(300))
    path = tmp_path / "rows.svm.gz"
    path.write_bytes(gzip.compress(text))
    assert_same(read_svmlight(path, dtype=np.float64), load_svmlight_file(io.BytesIO(text)))


@settings(deadline=None, max_examples=100)
@given(texts(FLOATS))
def test_any_file_is_read_as_by_scikit_learn(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "random.svm"
    path.write_bytes(text[0])
    assert_same(
        read_svmlight(path, n_features=41, dtype=np.float64),
        load_svmlight_file(io.BytesIO(text[0]), n_features=41),
    )


def nearest_single(text):
    """The float32 nearest to a decimal, ties to even, by exact arithmetic."""
    exact = Fraction(text)
    near = np.float32(float(text))
    candidates = [
        near,
        np.nextafter(near, np.float32(-np.inf)),
        np.nextafter(near, np.float32(np.inf)),
    ]
    candidates = [value for value in candidates if np.isfinite(value)]
    best = min(
        candidates,
        key=lambda v: (abs(Fraction(float(v)) - exact), int(v.view(np.uint32)) & 1),
    )
    return np.copysign(best, np.float32(-1 if text.startswith("-") else 1))


@settings(deadline=None, max_examples=100)
@given(texts(FLOATS_IN_SINGLE_RANGE))
def test_single_precision_is_rounded_once(text):
    text, written = text
    rows = parse_rows(SvmlightText(text, Path("rows.svm")), np.float32)
    expected = np.array([nearest_single(each) for each in written], np.float32)
    assert rows.data.tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Half-way between two floats, and a little more: through a double both would be even.
        ("1.000000059604644775390625", 1.0),
        ("1.00000005960464477539062500001", 1.0000001192092896),
        ("0.00000000000000000000000000000000000001", 1e-38),
        ("7.1e-46", 1.401298464324817e-45),
        ("7e-46", 0.0),
        ("1e-9999999", 0.0),
    ],
)
def test_hard_singles(text, expected):
    rows = parse_rows(SvmlightText(f"1 1:{text}\n".encode(), Path("rows.svm")), np.float32)
    assert rows.data[0] == np.float32(expected)
