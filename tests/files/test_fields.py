"""Stored fields: what is written is read again, and nothing else is."""

import math
import runpy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
import pytest

from kernelmill.files import ModelFileError
from kernelmill.files.fields import ADDED, Fields, RecordOf, Stored, Tagged
from kernelmill.files.kinds import (
    Array,
    Choice,
    Flag,
    Float,
    Integer,
    ListOf,
    MappingOf,
    Null,
    Number,
    Text,
)

MATRIX = Array(("float32", "float64"), ("rows", "columns"))

# Of each kind: values that are stored, and JSON values that must not be read.
KINDS = [
    (Null(), [None], [0, False, "", []]),
    (Flag(), [True, False], [0, 1, None, "true"]),
    (Integer(), [0, 7, 2**63 - 1], [-1, 2**63, 1.0, True, "1", None]),
    (Integer(2, 5), [2, 5], [1, 6]),
    (Number(), [0, -3, 1.5], [True, None, "1", [], {}, math.nan, math.inf]),
    (Float(), [0.0, -2.5], [0, 1, True, None, "nan", math.inf, math.nan]),
    (Float(above=0), [1e-300], [0.0, -1.0]),
    (Float(low=0), [0.0, 3.0], [-1e-300]),
    (Float(other="names"), [1.0, math.inf, -math.inf], ["Infinity", None, 1, math.inf]),
    (Text(3), ["", "abc"], ["abcd", 1, None]),
    (Choice("a", "b"), ["a"], ["c", 1, None, ["a"]]),
    (ListOf(Integer(), shortest=1, longest=3), [[1], [1, 2, 3]], [[], [1] * 4, [1.5], {}, "1"]),
    (MappingOf(Float()), [{}, {"a": 1.0}], [{"a": 1}, [], None]),
    (Number() | Choice("scale") | Null(), [2, 1.5, "scale", None], ["other", True, []]),
    (RecordOf(Fields(a=Flag())), [{"a": True}], [{}, {"a": 1}, {"a": True, "b": 1}, [], None]),
]
CASES = [(kind, value) for kind, values, _ in KINDS for value in values]
BAD = [(kind, value) for kind, _, values in KINDS for value in values]


@pytest.mark.parametrize(("kind", "value"), CASES)
def test_values_come_back(kind, value):
    record = Fields(x=kind).write({"x": value})
    assert Fields(x=kind).read(record) == {"x": value}


@pytest.mark.parametrize(("kind", "stored"), BAD)
def test_other_json_is_rejected(kind, stored):
    with pytest.raises(ModelFileError, match=r"x( |\.)"):
        Fields(x=kind).read({"x": stored})


def test_unknown_and_missing_fields():
    fields = Fields(a=Integer(), b=Integer(), defaults={"b": 3})
    assert fields.read({"a": 1}) == {"a": 1, "b": 3}
    with pytest.raises(ModelFileError, match="a must be an integer of at least 0, got nothing"):
        fields.read({"b": 1})
    with pytest.raises(ModelFileError, match="unknown field 'c'"):
        fields.read({"a": 1, "c": 1})


def test_numpy_scalars_are_stored():
    fields = Fields(a=Integer(), b=Number(), c=Flag(), d=Float())
    values = {"a": np.int32(1), "b": np.float32(0.5), "c": np.bool_(True), "d": np.float64(2)}
    record = fields.write(values)
    assert record == {"a": 1, "b": 0.5, "c": True, "d": 2.0}
    assert [type(each) for each in record.values()] == [int, float, bool, float]


def test_what_cannot_be_stored_names_the_parameter():
    with pytest.raises(ModelFileError, match=r"^a must be .*to be saved, got <function.*pickle"):
        Fields(a=Number()).write({"a": lambda: 0})


class TestArrays:
    FIELDS = Fields(
        columns=Integer(1),
        matrix=MATRIX,
        offset=Array(("float64",), ("rows",)),
        scale=Array(("float64",), ("columns",), above=0, optional=True),
    )
    GOOD: ClassVar = {"matrix": np.ones((2, 3)), "offset": np.ones(2), "scale": np.ones(3)}

    def test_round_trip(self):
        tensors = {}
        record = self.FIELDS.write({"columns": 3, **self.GOOD}, tensors)
        assert record == {"columns": 3}
        assert set(tensors) == set(self.GOOD)
        with pytest.raises(ModelFileError, match="no field for tensor 'another'"):
            self.FIELDS.read(record, tensors | {"another": np.zeros(1)})
        values = self.FIELDS.read(record, tensors)
        for name, array in self.GOOD.items():
            np.testing.assert_array_equal(values[name], array)
            assert not np.shares_memory(values[name], tensors[name])

    @pytest.mark.parametrize(
        "wrong",
        [
            {"matrix": np.ones((2, 4))},
            {"matrix": np.ones(3)},
            {"matrix": np.ones((2, 3), np.float16)},
            {"matrix": np.full((2, 3), np.nan)},
            {"offset": np.ones(3)},
            {"offset": np.array([0, np.inf])},
            {"scale": np.array([1.0, 0.0, 1.0])},
        ],
    )
    def test_wrong_arrays(self, wrong):
        name = next(iter(wrong))
        with pytest.raises(ModelFileError, match=rf"^{name} must be .*array.*got an array of"):
            self.FIELDS.read({"columns": 3}, {**self.GOOD, **wrong})

    def test_missing_arrays(self):
        tensors = {k: v for k, v in self.GOOD.items() if k != "scale"}
        assert self.FIELDS.read({"columns": 3}, tensors)["scale"] is None
        del tensors["offset"]
        with pytest.raises(ModelFileError, match=r"offset must be .* got no tensor"):
            self.FIELDS.read({"columns": 3}, tensors)

    def test_an_array_in_the_record(self):
        with pytest.raises(ModelFileError, match="matrix must be"):
            self.FIELDS.read({"columns": 3, "matrix": [[1.0]]}, self.GOOD)

    def test_prefixes(self):
        inner = Fields(a=Array(("float64",), (None,)))
        fields = Fields(left=RecordOf(inner), right=RecordOf(inner, prefixed=False))
        tensors = {}
        values = {"left": {"a": np.zeros(1)}, "right": {"a": np.ones(2)}}
        assert fields.write(values, tensors) == {"left": {}, "right": {}}
        assert set(tensors) == {"left/a", "a"}
        assert fields.read({"left": {}, "right": {}}, tensors)["right"]["a"].tolist() == [1.0, 1.0]


@dataclass(frozen=True)
class Circle(Stored):
    radius: Annotated[float, Float(above=0)]


@dataclass(frozen=True)
class Square(Stored):
    side: float
    name: str = "square"

    def __post_init__(self):
        if self.side < 0:
            raise ValueError("side must not be negative")


@dataclass(frozen=True)
class Drawing(Stored):
    shape: Annotated[Circle | Square, Tagged("kind", {"circle": Circle, "square": Square})]
    points: list[float]
    best: float | None = None
    first: Circle | None = None
    counts: dict[str, int] = field(default_factory=dict)
    frame: str = field(default="", metadata=ADDED)
    ring: Circle | None = field(default=None, metadata=ADDED)


class TestDataclasses:
    def test_round_trip(self):
        drawing = Drawing(Square(2.0), [1.0, 2.0], 0.5, Circle(1.0), {"a": 1})
        record = drawing.to_record()
        assert record["shape"] == {"kind": "square", "side": 2.0, "name": "square"}
        assert Drawing.from_record(record) == drawing

    def test_defaults_and_numbers_that_are_not_finite(self):
        record = {"shape": {"kind": "circle", "radius": 1.0}, "points": [1, None]}
        drawing = Drawing.from_record(record)
        assert (drawing.best, drawing.first, drawing.counts) == (None, None, {})
        assert drawing.points[0] == 1.0
        assert math.isnan(drawing.points[1])
        assert Drawing(Circle(1.0), [math.inf], math.nan).to_record()["points"] == [None]
        assert Drawing.from_record(record).counts is not drawing.counts

    def test_an_added_field_is_written_if_it_is_used(self):
        plain, framed = Drawing(Circle(1.0), []), Drawing(Circle(1.0), [], frame="oak")
        assert framed.to_record() == {**plain.to_record(), "frame": "oak"}
        assert Drawing.from_record(plain.to_record()) == plain
        assert Drawing.from_record(framed.to_record()) == framed
        ringed = Drawing(Circle(1.0), [], ring=Circle(2.0))
        assert ringed.to_record() == {**plain.to_record(), "ring": {"radius": 2.0}}
        assert Drawing.from_record(ringed.to_record()) == ringed
        both = Fields(a=Integer(), added={"a": 1}) | Fields(b=Integer(), added={"b": 2})
        assert both.write({"a": 1, "b": 3}) == {"b": 3}
        assert both.read({"b": 3}) == {"a": 1, "b": 3}

    @pytest.mark.parametrize(
        ("change", "match"),
        [
            ({"shape": {"kind": "line"}}, r'shape must be an object whose kind is "circle" or'),
            ({"shape": {"kind": "circle", "radius": 0.0}}, r"shape\.radius must be a number above"),
            ({"shape": {"kind": "square", "side": -1.0}}, "shape is inconsistent: side must not"),
            ({"shape": {"kind": "circle", "side": 1.0}}, "shape has an unknown field 'side'"),
            ({"first": {"radius": "1"}}, r"first\.radius must be"),
            ({"best": "1"}, "best must be"),
            ({"counts": {"a": 1.5}}, "counts must be"),
            ({"points": None}, "points must be"),
        ],
    )
    def test_wrong_records(self, change, match):
        record = Drawing(Circle(1.0), []).to_record()
        with pytest.raises(ModelFileError, match=match):
            Drawing.from_record({**record, **change})


def test_documentation_is_up_to_date():
    root = Path(__file__).parents[2]
    tool = runpy.run_path(str(root / "tools" / "document_fields.py"))
    page = (root / "docs" / "model-files.md").read_text()
    assert page[page.index(tool["HEADING"]) :] == tool["tables"]()
