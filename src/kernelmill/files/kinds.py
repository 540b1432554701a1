"""Kinds of stored fields: the allowed values of a field, and how they are stored.

A value is stored as plain JSON, or as an array (a tensor of the file) with a name. Each kind checks
what it reads, so that only values of the kind leave it.
"""

from __future__ import annotations

import dataclasses
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kernelmill.arguments import check_choice, check_flag
from kernelmill.files.safetensors import ModelFileError, Tensor
from kernelmill.random import Stream

__all__ = [
    "ABSENT",
    "Array",
    "Choice",
    "Either",
    "Flag",
    "Float",
    "Integer",
    "Kind",
    "ListOf",
    "MappingOf",
    "Mismatch",
    "NamesKind",
    "Null",
    "Number",
    "Place",
    "PlainOrArray",
    "Record",
    "SeedKind",
    "StreamKind",
    "Tensors",
    "Text",
    "storable_random_state",
]

Tensors: TypeAlias = dict[str, Tensor]

Record: TypeAlias = dict[str, Any]
"""From the names of fields to plain JSON values."""

SMALLEST_INTEGER, LARGEST_INTEGER = -(2**63), 2**63 - 1
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class _Absent:
    """The JSON value of a field that is not in the record, because it is a tensor."""

    def __repr__(self) -> str:
        return "nothing"


ABSENT: Final = _Absent()


class Mismatch(Exception):
    """A value is not of the kind of its field; `Fields` turns it into a ModelFileError."""


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a field is in a file.

    Attributes
    ----------
    tensors : dict of ndarray
        All tensors of the file, by their full names.
    prefix : str
        The prefix of the tensor names of the record that contains the field.
    name : str
        The name of the field.
    path : str
        The field in messages, such as "map.parameters.kernel".
    sizes : dict of int
        The integers and array dimensions read so far that other shapes refer to.
    read : set of str
        The names of the tensors that fields have read.
    """

    tensors: Tensors
    prefix: str = ""
    name: str = ""
    path: str = ""
    sizes: dict[str, int] = dataclasses.field(default_factory=dict)
    read: set[str] = dataclasses.field(default_factory=set)

    @property
    def tensor(self) -> str:
        """The name of the field's tensor."""
        return f"{self.prefix}{self.name}"

    def at(self, name: str) -> Place:
        """Return the place of a field of the record at this place."""
        path = f"{self.path}.{name}" if self.path else name
        return dataclasses.replace(self, name=name, path=path)

    def inside(self, *, prefixed: bool = True) -> Place:
        """The place of the record that this field holds, with tensors under the field's name."""
        prefix = f"{self.tensor}/" if prefixed and self.tensor else self.prefix
        return dataclasses.replace(self, prefix=prefix, name="", sizes=dict(self.sizes))

    def reject_unread(self) -> None:
        """Raise ModelFileError if there is a tensor that no field has read."""
        unknown = sorted(self.tensors.keys() - self.read)
        if unknown:
            what = self.path or "the record"
            raise ModelFileError(f"{what} has no field for tensor {unknown[0]!r:.80}")


class Kind(ABC):
    """The values that a field can take, and how they are stored."""

    @property
    @abstractmethod
    def description(self) -> str:
        """A description of allowed values, to follow "must be"."""

    @abstractmethod
    def write(self, value: Any, place: Place) -> object:
        """Return the JSON value, or ABSENT; put arrays into ``place.tensors``.

        Raises Mismatch if the value is not of this kind.
        """

    @abstractmethod
    def read(self, stored: object, place: Place) -> object:
        """Return the value of what `write` returned, after checking it. Raises Mismatch."""

    def check(self, name: str, value: object) -> None:  # noqa: B027 # few kinds check arguments
        """Raise an error if `value` cannot be the argument called `name`."""

    def tensor_name(self, place: Place) -> str | None:
        """The full name of the tensor that an array of this kind is; None if there is none."""
        return None

    def __or__(self, other: Kind) -> Either:
        return Either(self, other)


class _Plain(Kind):
    """A kind whose values are JSON values themselves."""

    @abstractmethod
    def fits(self, stored: object) -> bool:
        """Return whether a JSON value is of this kind."""

    def write(self, value: object, place: Place) -> object:
        if isinstance(value, (np.generic, np.ndarray)) and value.size == 1:
            value = value.item()
        return self.read(value, place)

    def read(self, stored: object, place: Place) -> object:
        if not self.fits(stored):
            raise Mismatch
        return stored


class Null(_Plain):
    """None."""

    description = "null"

    def fits(self, stored: object) -> bool:
        return stored is None


class Flag(_Plain):
    """True or False."""

    description = "true or false"

    def fits(self, stored: object) -> bool:
        return type(stored) is bool

    def check(self, name: str, value: object) -> None:
        check_flag(name, value)


@dataclasses.dataclass(frozen=True)
class Integer(_Plain):
    """An integer from `low` to `high`."""

    low: int = 0
    high: int = LARGEST_INTEGER

    @property
    def description(self) -> str:
        if (self.low, self.high) == (SMALLEST_INTEGER, LARGEST_INTEGER):
            return "an integer"
        if self.high == LARGEST_INTEGER:
            return f"an integer of at least {self.low}"
        return f"an integer from {self.low} to {self.high}"

    def fits(self, stored: object) -> bool:
        return type(stored) is int and self.low <= stored <= self.high


@dataclasses.dataclass(frozen=True)
class Number(_Plain):
    """A finite integer or float, kept as given: a parameter whose class checks its range."""

    description = "a finite number"

    def fits(self, stored: object) -> bool:
        return type(stored) is int or (type(stored) is float and math.isfinite(stored))


@dataclasses.dataclass(frozen=True)
class Float(Kind):
    """A float, optionally of at least `low` or greater than `above`.

    With ``other="names"``, values that are not finite are stored as "nan", "inf" and "-inf"; with
    ``other="null"`` they are stored as null and read as NaN. Otherwise they are errors.
    """

    low: float = -math.inf
    above: float = -math.inf
    other: str | None = None

    @property
    def description(self) -> str:
        text = "a number"
        if self.above > -math.inf:
            text += f" above {self.above:g}"
        elif self.low > -math.inf:
            text += f" of at least {self.low:g}"
        others = {None: "", "null": " or null", "names": ', "nan", "inf" or "-inf"'}
        return text + others[self.other]

    def write(self, value: Any, place: Place) -> object:
        if isinstance(value, (bool, np.bool_, str)):
            raise Mismatch
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            raise Mismatch from None
        if not math.isfinite(number) and self.other is not None:
            return None if self.other == "null" else str(number)
        return self.read(number, place)

    def read(self, stored: object, place: Place) -> float:
        if stored is None and self.other == "null":
            return math.nan
        if self.other == "names" and type(stored) is str and stored in _NOT_FINITE:
            return _NOT_FINITE[stored]
        if self.other == "null" and type(stored) is int:
            stored = float(stored)
        if type(stored) is not float or not math.isfinite(stored):
            raise Mismatch
        if stored < self.low or (stored <= self.above):
            raise Mismatch
        return stored


@dataclasses.dataclass(frozen=True)
class Text(_Plain):
    """A string of at most `longest` characters."""

    longest: int | None = None

    @property
    def description(self) -> str:
        return "a string" + (f" of at most {self.longest} characters" if self.longest else "")

    def fits(self, stored: object) -> bool:
        return type(stored) is str and (self.longest is None or len(stored) <= self.longest)


class Choice(_Plain):
    """One of a few strings."""

    def __init__(self, *choices: str) -> None:
        self.choices = choices

    @property
    def description(self) -> str:
        return " or ".join(f'"{choice}"' for choice in self.choices)

    def fits(self, stored: object) -> bool:
        return type(stored) is str and stored in self.choices

    def check(self, name: str, value: object) -> None:
        check_choice(name, value, self.choices)


class Either(Kind):
    """A value of one of several kinds, distinguished by their JSON types."""

    def __init__(self, *kinds: Kind) -> None:
        self.kinds = kinds

    def __or__(self, other: Kind) -> Either:
        return Either(*self.kinds, other)

    @property
    def description(self) -> str:
        return " or ".join(kind.description for kind in self.kinds)

    def write(self, value: object, place: Place) -> object:
        for kind in self.kinds:
            try:
                return kind.write(value, place)
            except Mismatch:
                continue
        raise Mismatch

    def read(self, stored: object, place: Place) -> object:
        for kind in self.kinds:
            try:
                return kind.read(stored, place)
            except Mismatch:
                continue
        raise Mismatch


@dataclasses.dataclass(frozen=True)
class ListOf(Kind):
    """A list of values of one kind; `array` makes a float64 array of what is read."""

    kind: Kind
    shortest: int = 0
    longest: int | None = None
    array: bool = False

    @property
    def description(self) -> str:
        limits = f" of at least {self.shortest}" if self.shortest else ""
        return f"a list{limits} (each element {self.kind.description})"

    def write(self, value: object, place: Place) -> object:
        if isinstance(value, np.ndarray):
            value = value.tolist()
        if not isinstance(value, (list, tuple)) or not self._fits(len(value)):
            raise Mismatch
        return [self.kind.write(each, place) for each in value]

    def read(self, stored: object, place: Place) -> object:
        if not isinstance(stored, list) or not self._fits(len(stored)):
            raise Mismatch
        values = [self.kind.read(each, place) for each in stored]
        return np.array(values, dtype=np.float64) if self.array else values

    def _fits(self, length: int) -> bool:
        return self.shortest <= length <= (length if self.longest is None else self.longest)


@dataclasses.dataclass(frozen=True)
class MappingOf(Kind):
    """A dict from strings to values of one kind."""

    kind: Kind

    @property
    def description(self) -> str:
        return f"an object (each value {self.kind.description})"

    def write(self, value: object, place: Place) -> object:
        if not isinstance(value, Mapping):
            raise Mismatch
        return {str(key): self.kind.write(each, place) for key, each in value.items()}

    def read(self, stored: object, place: Place) -> object:
        if not isinstance(stored, dict):
            raise Mismatch
        return {key: self.kind.read(each, place) for key, each in stored.items()}


@dataclasses.dataclass(frozen=True)
class Array(Kind):
    """An array, stored as a tensor. Floats must be finite unless `infinite` is set.

    Parameters
    ----------
    dtypes : tuple of str
        The dtypes allowed.
    shape : tuple
        One element for each dimension: an integer; a name, of an integer field that is read before
        or of a dimension, which is equal wherever the name occurs; or None for any length.
    above : float, optional
        All elements are greater.
    infinite : bool, default=False
        Whether elements may be infinite.
    optional : bool, default=False
        Whether None is allowed, without a tensor.
    tensor : str, optional
        The name of the tensor, by default that of the field.
    longest : int, optional
        The largest number of elements.
    copy : bool, default=True
        Whether a copy is read. A view keeps the bytes of the whole file in memory.
    """

    dtypes: tuple[str, ...]
    shape: tuple[int | str | None, ...]
    above: float | None = None
    infinite: bool = False
    optional: bool = False
    tensor: str | None = None
    longest: int | None = None
    copy: bool = True

    @property
    def description(self) -> str:
        sizes = ", ".join("any" if size is None else str(size) for size in self.shape)
        comma = "," if len(self.shape) == 1 else ""
        has_floats = any(np.dtype(each).kind == "f" for each in self.dtypes)
        what = "a finite array" if has_floats and not self.infinite else "an array"
        text = f"{what} of {' or '.join(self.dtypes)} of shape ({sizes}{comma})"
        return text + (f" above {self.above:g}" if self.above is not None else "")

    def tensor_name(self, place: Place) -> str:
        """Return the full name of the tensor."""
        return place.tensor if self.tensor is None else f"{place.prefix}{self.tensor}"

    def write(self, value: Any, place: Place) -> object:
        if value is None and self.optional:
            return ABSENT
        self._check(value, dict(place.sizes))
        place.tensors[self.tensor_name(place)] = value
        return ABSENT

    def read(self, stored: object, place: Place) -> Tensor | None:
        array = place.tensors.get(self.tensor_name(place))
        if stored is not ABSENT or (array is None and not self.optional):
            raise Mismatch
        if array is None:
            return None
        self._check(array, place.sizes)
        place.read.add(self.tensor_name(place))
        return array.copy() if self.copy else array

    def _check(self, array: object, sizes: dict[str, int]) -> None:
        if not isinstance(array, np.ndarray) or array.ndim != len(self.shape):
            raise Mismatch
        if self.longest is not None and array.size > self.longest:
            raise Mismatch
        if array.dtype.name not in self.dtypes:
            raise Mismatch
        for size, length in zip(self.shape, array.shape, strict=True):
            wanted = sizes.setdefault(size, length) if isinstance(size, str) else size
            if wanted is not None and wanted != length:
                raise Mismatch
        if array.dtype.kind == "f":
            wrong = np.isnan(array) if self.infinite else ~np.isfinite(array)
            if wrong.any():
                raise Mismatch
        if self.above is not None and not (array > self.above).all():
            raise Mismatch


@dataclasses.dataclass(frozen=True)
class PlainOrArray(Kind):
    """A plain value, or an array.

    Where a parameter is an array, the fitted attribute is equal to it, and both are one tensor.
    """

    plain: Kind
    array: Array

    @property
    def description(self) -> str:
        return f"{self.plain.description} or {self.array.description} (tensor {self.array.tensor})"

    def tensor_name(self, place: Place) -> str:
        return self.array.tensor_name(place)

    def write(self, value: Any, place: Place) -> object:
        if np.ndim(value) == 0:
            return self.plain.write(value, place)
        return self.array.write(np.asarray(value, np.float64), place)

    def read(self, stored: object, place: Place) -> object:
        kind = self.array if stored is ABSENT else self.plain
        return kind.read(stored, place)


class NamesKind(Kind):
    """The names of the input columns, as many as ``n_features_in``, or None."""

    description = "a list with a string for each input column, or null"

    def write(self, value: Any, place: Place) -> object:
        return None if value is None else [str(each) for each in value]

    def read(self, stored: object, place: Place) -> NDArray[np.object_] | None:
        if stored is None:
            return None
        if not isinstance(stored, list) or len(stored) != place.sizes["n_features_in"]:
            raise Mismatch
        if not all(type(name) is str for name in stored):
            raise Mismatch
        return np.asarray(stored, dtype=object)


class StreamKind(Kind):
    """A random stream: the 32 hexadecimal digits of its key."""

    description = "32 hexadecimal digits"

    def write(self, value: Any, place: Place) -> str:
        return f"{value.key:032x}"

    def read(self, stored: object, place: Place) -> Stream:
        if not isinstance(stored, str) or not re.fullmatch("[0-9a-f]{32}", stored):
            raise Mismatch
        return Stream(int(stored, 16))


class SeedKind(Kind):
    """The parameter `random_state`: null, an integer, or the key of a stream.

    Objects that change when they are used, such as a NumPy generator, are replaced by the stream
    that was drawn from them before they are written: see `storable_random_state`.
    """

    description = "null, an integer of at least 0, or an object with the key of a stream"

    def write(self, value: object, place: Place) -> object:
        if value is None or type(value) is int:
            return value
        return {"key": StreamKind().write(value, place.at("key"))}

    def read(self, stored: object, place: Place) -> int | Stream | None:
        if stored is None:
            return None
        if type(stored) is int and 0 <= stored <= LARGEST_INTEGER:
            return stored
        if not isinstance(stored, dict) or set(stored) != {"key"}:
            raise Mismatch
        return StreamKind().read(stored["key"], place.at("key"))


def storable_random_state(random_state: object, stream: Stream) -> int | Stream | None:
    """Return the stored form of a random state from which `stream` was drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.files.kinds import storable_random_state
    >>> from kernelmill.random import Stream
    >>> storable_random_state(7, Stream.from_seed(7))
    7
    >>> drawn = Stream.from_seed(0)
    >>> storable_random_state(np.random.default_rng(0), drawn) is drawn
    True
    """
    if random_state is None or isinstance(random_state, Stream):
        return random_state
    if isinstance(random_state, (int, np.integer)) and 0 <= random_state <= LARGEST_INTEGER:
        return int(random_state)
    return stream
