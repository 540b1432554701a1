"""Stored classes: a class declares its fields once; writing, reading and checking follow from it.

A class is stored as a record, a dict of plain JSON values, and as tensors, arrays with names. Each
field has a kind (`kernelmill.files.kinds`). A record that is read must have exactly the declared
fields, and each value must be of its kind, before anything is done with it.

There are two ways to declare fields: a `Fields` object with one kind for each name, or a dataclass,
whose kinds follow from its annotations (`Stored`) or are given with its fields (`parameter`,
`fitted`). An array ``name`` in a record ``outer`` becomes the tensor ``outer/name``.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from kernelmill.files.kinds import (
    ABSENT,
    SMALLEST_INTEGER,
    Choice,
    Either,
    Flag,
    Float,
    Integer,
    Kind,
    ListOf,
    MappingOf,
    Mismatch,
    Null,
    Place,
    Record,
    Tensors,
    Text,
)
from kernelmill.files.safetensors import ModelFileError, Tensor

__all__ = [
    "ADDED",
    "Fields",
    "Nested",
    "RecordOf",
    "Stored",
    "Tagged",
    "declared_fields",
    "fitted",
    "parameter",
    "under_prefix",
    "without_prefix",
]

ADDED = {"added": True}
"""Metadata of a field of a dataclass that files of earlier releases do not have."""

_INSTEAD = "change it, or save the model with the pickle module or skops"


def parameter(
    kind: Kind, *, default: Any, added: bool = False, kw_only: Any = dataclasses.MISSING
) -> Any:
    """Declare a parameter of a dataclass, as `dataclasses.field` does.

    Parameters
    ----------
    kind : Kind
        How it is stored; kinds such as `Choice` and `Flag` also check it as an argument.
    default : value
    added : bool, default=False
        Whether files of earlier releases do not have it; it is written if it is not the default.
    kw_only : bool, optional
        Whether it can be passed only by keyword; by default if it follows ``_: KW_ONLY``.
    """
    metadata = {"kind": kind, "added": added}
    return dataclasses.field(default=default, kw_only=kw_only, metadata=metadata)


def fitted(kind: Kind | None = None, *, init: Literal[False] = False) -> Any:
    """Declare an attribute of a dataclass that fitting sets; it is stored if it has a kind."""
    return dataclasses.field(init=init, repr=False, metadata={} if kind is None else {"kind": kind})


@dataclasses.dataclass(frozen=True)
class RecordOf(Kind):
    """A record inside a record; `prefixed` puts its tensors under the name of the field."""

    fields: Fields
    prefixed: bool = True

    @property
    def description(self) -> str:
        return f"an object with the fields {', '.join(self.fields)}"

    def write(self, value: object, place: Place) -> Record:
        return self.fields.write_at(value, place.inside(prefixed=self.prefixed))

    def read(self, stored: object, place: Place) -> Record:
        if type(stored) is not dict:
            raise Mismatch
        return self.fields.read_at(stored, place.inside(prefixed=self.prefixed))


class Fields(Mapping[str, Kind]):
    """The fields of a stored class: a kind for each name, in the order in which they are read.

    Parameters
    ----------
    kinds : mapping of str to Kind, optional
    defaults : mapping of str to value, optional
        Values of fields that are missing in files of earlier releases.
    added : mapping of str to value, optional
        Default values of newer fields. A field is not written if it has its default value, so
        models that do not use a new field are written as before.
    **more : Kind
        Fields as keyword arguments.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.files.fields import Fields
    >>> from kernelmill.files.kinds import Array, Float, Integer
    >>> fields = Fields(n_columns=Integer(1), scale=Float(above=0), mean=Array(("float64",),
    ...                 ("n_columns",)))
    >>> tensors = {}
    >>> record = fields.write({"n_columns": 2, "scale": 0.5, "mean": np.zeros(2)}, tensors)
    >>> record, tensors
    ({'n_columns': 2, 'scale': 0.5}, {'mean': array([0., 0.])})
    >>> fields.read(record, tensors)
    {'n_columns': 2, 'scale': 0.5, 'mean': array([0., 0.])}
    >>> fields.read({"n_columns": 2, "scale": -1.0}, tensors)
    Traceback (most recent call last):
        ...
    kernelmill.files.safetensors.ModelFileError: scale must be a number above 0, got -1.0.
    """

    def __init__(
        self,
        kinds: Mapping[str, Kind] | None = None,
        *,
        defaults: Mapping[str, object] | None = None,
        added: Mapping[str, object] | None = None,
        **more: Kind,
    ) -> None:
        self._kinds = {**(kinds or {}), **more}
        self.defaults = {**(defaults or {}), **(added or {})}
        self.added = frozenset(added or ())

    def __getitem__(self, name: str) -> Kind:
        return self._kinds[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)

    def __or__(self, other: Mapping[str, Kind]) -> Fields:
        """These fields and others, which replace those of the same name."""
        union = Fields({**self._kinds, **other}, defaults=self.defaults)
        union.added = self.added
        if isinstance(other, Fields):
            union.defaults |= other.defaults
            union.added |= other.added
        return union

    def write(self, values: object, tensors: Tensors | None = None, path: str = "") -> Record:
        """Return the record of `values`, a mapping or an object with these attributes.

        Parameters
        ----------
        values : mapping or object
        tensors : dict of ndarray, optional
            Arrays are added to it. Required if there are any.
        path : str, default=""
            The name of the record in messages.

        Raises
        ------
        ModelFileError
            A value cannot be stored; the message names the field.
        """
        new: Tensors = {}
        record = self.write_at(values, Place(new, path=path))
        if tensors is not None:
            tensors.update(new)
        elif new:
            raise ValueError(f"tensors must be a dict for the arrays {', '.join(new)}, got None.")
        return record

    def read(
        self, record: object, tensors: Mapping[str, Tensor] | None = None, path: str = ""
    ) -> Record:
        """Return the values of a record that `write` returned, after checking all of them.

        Raises
        ------
        ModelFileError
            The record has unknown fields, a value is not of its kind, or a tensor belongs to no
            field.
        """
        place = Place(dict(tensors or {}), path=path)
        values = self.read_at(record, place)
        place.reject_unread()
        return values

    def write_at(self, values: object, place: Place) -> Record:
        """Write a record inside another, as `write`."""
        record: Record = {}
        for name, kind in self._kinds.items():
            value = values[name] if isinstance(values, Mapping) else getattr(values, name)
            if name in self.added and _is_same(value, self.defaults[name]):
                continue
            try:
                stored = kind.write(value, place.at(name))
            except Mismatch:
                raise ModelFileError(
                    f"must be {kind.description} to be saved, got {value!r:.200}",
                    _INSTEAD,
                    parameter=name,
                ) from None
            if stored is not ABSENT:
                record[name] = stored
            if type(stored) is int:
                place.sizes[name] = stored
        return record

    def read_at(self, record: object, place: Place) -> Record:
        """Read a record inside another, as `read`."""
        what = place.path or "the record"
        if type(record) is not dict:
            raise ModelFileError(f"{what} must be an object, got {record!r:.80}")
        unknown = sorted(set(record) - set(self._kinds))
        if unknown:
            raise ModelFileError(f"{what} has an unknown field {unknown[0]!r:.80}")
        values: Record = {}
        for name, kind in self._kinds.items():
            stored = record.get(name, ABSENT)
            if stored is ABSENT and name in self.defaults:
                values[name] = copy.copy(self.defaults[name])
                continue
            here = place.at(name)
            try:
                values[name] = kind.read(stored, here)
            except Mismatch:
                got = _describe_stored(stored, kind, here)
                raise ModelFileError(f"{here.path} must be {kind.description}, got {got}") from None
            if type(stored) is int:
                place.sizes[name] = stored
        return values


def _is_same(value: object, default: object) -> bool:
    return type(value) is type(default) and bool(value == default)


def _describe_stored(stored: object, kind: Kind, place: Place) -> str:
    """Return a description of the value of a field in a file, for a message."""
    name = kind.tensor_name(place)
    if name is None or stored is not ABSENT:
        return f"{stored!r:.80}"
    array = place.tensors.get(name)
    if array is None:
        return f"no tensor {name!r:.80}"
    is_finite = array.dtype.kind != "f" or bool(np.isfinite(array).all())
    what = "" if is_finite else ", with NaN or infinity"
    return f"an array of {array.dtype.name} of shape {array.shape}{what}"


class Stored:
    """A dataclass that declares its stored fields by its annotations.

    An annotation is one of the types below, or ``Annotated[type, kind]`` to be more precise. Fields
    with a default may be missing in a file; one whose metadata is `ADDED` is left out if it has
    its default, as `added` of `Fields`.

    =================  ===========================================================
    annotation         kind
    =================  ===========================================================
    str, bool          ``Text()``, ``Flag()``
    int                ``Integer(-2**63)``
    float              ``Float(other="null")``: what is not finite is read as NaN
    list[T]            ``ListOf(T)``
    dict[str, T]       ``MappingOf(T)``
    T | None           ``T | Null()``
    a Stored class     ``Nested(class)``
    =================  ===========================================================

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from typing import Annotated
    >>> from kernelmill.files.fields import Stored
    >>> from kernelmill.files.kinds import Float
    >>> @dataclass(frozen=True)
    ... class Scaling(Stored):
    ...     column: str
    ...     scale: Annotated[float, Float(above=0)] = 1.0
    >>> Scaling("age", 2.0).to_record()
    {'column': 'age', 'scale': 2.0}
    >>> Scaling.from_record({"column": "age"})
    Scaling(column='age', scale=1.0)
    """

    @classmethod
    def stored_fields(cls) -> Fields:
        """Return the fields that the annotations declare."""
        family: Any = cls
        return _annotated_fields(family)

    def to_record(self, tensors: Tensors | None = None) -> Record:
        """Return the record of this object; arrays are added to `tensors`."""
        return self.stored_fields().write(self, tensors)

    @classmethod
    def from_record(
        cls, record: object, tensors: Mapping[str, Tensor] | None = None, path: str = ""
    ) -> Self:
        """Return the object of a record; reject one that `to_record` cannot have returned."""
        return _build(cls, cls.stored_fields().read(record, tensors, path), path)


@dataclasses.dataclass(frozen=True)
class Nested(Kind):
    """An object of a `Stored` class."""

    family: type[Stored]

    @property
    def description(self) -> str:
        return f"an object with the fields {', '.join(self.family.stored_fields())}"

    def write(self, value: object, place: Place) -> Record:
        if type(value) is not self.family:
            raise Mismatch
        return self.family.stored_fields().write_at(value, place.inside())

    def read(self, stored: object, place: Place) -> Stored:
        if type(stored) is not dict:
            raise Mismatch
        values = self.family.stored_fields().read_at(stored, place.inside())
        return _build(self.family, values, place.path)


class Tagged(Kind):
    """An object of one of several `Stored` classes, distinguished by a field of the record.

    Parameters
    ----------
    tag : str
        The name of that field.
    families : mapping of str to type
        The classes, by its value.
    """

    def __init__(self, tag: str, families: Mapping[str, type[Stored]]) -> None:
        self.tag = tag
        self.families = dict(families)

    @property
    def description(self) -> str:
        return f"an object whose {self.tag} is {Choice(*self.families).description}"

    def write(self, value: object, place: Place) -> Record:
        for name, family in self.families.items():
            if type(value) is family:
                return {self.tag: name, **Nested(family).write(value, place)}
        raise Mismatch

    def read(self, stored: object, place: Place) -> Stored:
        name = stored.get(self.tag) if isinstance(stored, dict) else None
        if not isinstance(stored, dict) or type(name) is not str or name not in self.families:
            raise Mismatch
        rest = {key: value for key, value in stored.items() if key != self.tag}
        return Nested(self.families[name]).read(rest, place)


_Built = TypeVar("_Built", bound=Stored)


def _build(family: type[_Built], values: Mapping[str, Any], path: str) -> _Built:
    try:
        return family(**values)
    except (TypeError, ValueError, ArithmeticError) as error:
        raise ModelFileError(f"{path or 'the record'} is inconsistent: {error}") from error


@cache
def declared_fields(family: type, *, are_fitted: bool = False) -> Fields:
    """Return the fields that a dataclass declares by `parameter`, or those by `fitted`."""
    declared = [
        each
        for each in dataclasses.fields(family)
        if each.init is not are_fitted and "kind" in each.metadata
    ]
    return Fields(
        {each.name: each.metadata["kind"] for each in declared},
        added={each.name: each.default for each in declared if each.metadata.get("added")},
    )


@cache
def _annotated_fields(family: type) -> Fields:
    hints = get_type_hints(family, include_extras=True)
    kinds, defaults, added = {}, {}, {}
    for field in dataclasses.fields(family):
        kinds[field.name] = _kind_of(hints[field.name])
        if field.default is not dataclasses.MISSING:
            defaults[field.name] = field.default
        elif field.default_factory is not dataclasses.MISSING:
            defaults[field.name] = field.default_factory()
        if field.metadata == ADDED:
            added[field.name] = defaults[field.name]
    return Fields(kinds, defaults=defaults, added=added)


_KINDS: dict[Any, Kind] = {
    str: Text(),
    bool: Flag(),
    int: Integer(SMALLEST_INTEGER),
    float: Float(other="null"),
    NoneType: Null(),
}


def _kind_of(hint: Any) -> Kind:
    """Return the kind for which an annotation stands."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return next(each for each in arguments[1:] if isinstance(each, Kind))
    if hint in _KINDS:
        return _KINDS[hint]
    if origin in (Union, UnionType):
        # Values that are not finite become null, even where null is allowed.
        ordered = sorted(arguments, key=lambda each: each is not NoneType)
        return Either(*map(_kind_of, ordered))
    if origin is list:
        return ListOf(_kind_of(arguments[0]))
    if origin is dict and arguments[0] is str:
        return MappingOf(_kind_of(arguments[1]))
    if isinstance(hint, type) and issubclass(hint, Stored):
        return Nested(hint)
    raise TypeError(f"A stored field must be of a type with a kind, got {hint!r}.")


def under_prefix(prefix: str, tensors: Mapping[str, Tensor]) -> Tensors:
    """Return the tensors with the prefix and a slash before their names.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.files import under_prefix, without_prefix
    >>> under_prefix("map", {"center": np.zeros(2)})
    {'map/center': array([0., 0.])}
    >>> without_prefix("map", {"map/center": np.zeros(2), "coef": np.ones(3)})
    {'center': array([0., 0.])}
    """
    return {f"{prefix}/{name}": tensor for name, tensor in tensors.items()}


def without_prefix(prefix: str, tensors: Mapping[str, Tensor]) -> Tensors:
    """Return the tensors whose names begin with the prefix and a slash, with both removed."""
    start = f"{prefix}/"
    return {n[len(start) :]: tensor for n, tensor in tensors.items() if n.startswith(start)}
