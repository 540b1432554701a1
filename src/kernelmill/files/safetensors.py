"""The header of a safetensors file: canonical JSON, and the dtypes and positions of the tensors.

Also `ModelFileError`, the error of this package.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

from kernelmill.errors import KernelmillError

__all__ = [
    "MAX_HEADER_BYTES",
    "NAME",
    "ModelFileError",
    "Tensor",
    "TensorPlace",
    "canonical_json",
    "errors_of_file",
    "header_of",
    "parse_json",
    "places_in",
    "places_of",
]

Tensor: TypeAlias = NDArray[Any]
"""An array of one of the dtypes that a file can hold."""

MAX_HEADER_BYTES = 1 << 24
MAX_DIMENSIONS = 8
_MAX_ELEMENTS = 1 << 48
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_./-]{0,199}")

_MAX_LEVELS = 32
_SMALLEST, _LARGEST = -(2**63), 2**64 - 1  # integers of NumPy
_CODES = {
    "BOOL": "bool",
    "U8": "uint8",
    "U16": "<u2",
    "I32": "<i4",
    "I64": "<i8",
    "F16": "<f2",
    "F32": "<f4",
    "F64": "<f8",
}
_CODE_OF = {np.dtype(name): code for code, name in _CODES.items()}


class ModelFileError(KernelmillError, ValueError):
    """A file cannot be loaded as a model, or a model cannot be stored in a file.

    The message names the file or the parameter, and a remedy.

    Examples
    --------
    >>> from kernelmill.files import ModelFileError
    >>> str(ModelFileError("its checksum is wrong", "copy it again"))
    'its checksum is wrong; copy it again.'
    """


@contextmanager
def errors_of_file(path: str | os.PathLike[str], remedy: str | None = None) -> Iterator[None]:
    """Add the name of the file to each ModelFileError that is raised inside.

    Parameters
    ----------
    path : str or path
    remedy : str, optional
        The remedy of errors that have none themselves.

    Examples
    --------
    >>> from kernelmill.files import ModelFileError, errors_of_file
    >>> with errors_of_file("a.kmill", "save the model again"):
    ...     raise ModelFileError("its kind is unknown")
    Traceback (most recent call last):
        ...
    kernelmill.files.safetensors.ModelFileError: 'a.kmill' cannot be loaded: its kind is unknown; \
save the model again.
    """
    try:
        yield
    except ModelFileError as error:
        problem, remedies = error.message.problem, error.message.remedies
        if not remedies and remedy is not None:
            raise ModelFileError(
                f"{os.fspath(path)!r} cannot be loaded: {problem}", remedy
            ) from error
        raise ModelFileError(
            f"{os.fspath(path)!r} cannot be loaded: {problem}", *remedies
        ) from error


def canonical_json(value: object, what: str = "record") -> str:
    r"""Return the canonical JSON of dicts, lists, strings, numbers, booleans and None.

    Keys are sorted, floats have the fewest digits that identify them, and all is ASCII.

    Parameters
    ----------
    value : object
    what : str, default="record"
        The name of the value in messages.

    Examples
    --------
    >>> from kernelmill.files.safetensors import canonical_json
    >>> canonical_json({"b": [1, 0.1, None], "a": "é"})
    '{"a":"\\u00e9","b":[1,0.1,null]}'
    """
    _check_value(value, what, 0)
    return json.dumps(value, sort_keys=True, allow_nan=False, separators=(",", ":"))


def parse_json(text: str | bytes) -> object:
    """Return the value of a JSON text.

    NaN and infinities, integers beyond 64 bits, duplicate keys, and more than 32 levels raise a
    ModelFileError.

    Examples
    --------
    >>> from kernelmill.files.safetensors import parse_json
    >>> parse_json('{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    """
    try:
        value = json.loads(
            text, object_pairs_hook=_reject_duplicates, parse_constant=_reject_constant
        )
    except ModelFileError:
        raise
    except RecursionError:
        raise ModelFileError("its JSON is nested too deeply") from None
    except ValueError as error:
        raise ModelFileError(f"its JSON cannot be read ({str(error)[:120]})") from None
    _check_value(value, "its JSON", 0)
    return value


def _reject_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ModelFileError("its JSON has a duplicate key")
    return values


def _reject_constant(name: str) -> NoReturn:
    raise ModelFileError(f"its JSON contains {name}, which is not allowed")


def _check_value(value: object, what: str, depth: int) -> None:
    """Raise an error if `value`, which `what` names, is not a plain value."""
    if depth > _MAX_LEVELS:
        raise ModelFileError(f"{what} must have at most {_MAX_LEVELS} nested levels")
    if type(value) is dict:
        for name, each in value.items():
            if type(name) is not str:
                raise ModelFileError(f"{what} must have strings as keys, got {name!r:.80}")
            _check_text(name, what)
            _check_value(each, f"{what}[{name!r:.80}]" if depth < 4 else what, depth + 1)
    elif type(value) is list:
        for each in value:
            _check_value(each, what, depth + 1)
    elif type(value) is str:
        _check_text(value, what)
    elif type(value) is float:
        if not math.isfinite(value):
            raise ModelFileError(f"{what} must hold finite numbers, got {value}")
    elif type(value) is int:
        if not _SMALLEST <= value <= _LARGEST:
            raise ModelFileError(f"{what} must hold integers of at most 64 bits, got a larger one")
    elif value is not None and type(value) is not bool:
        raise ModelFileError(
            f"{what} must be made of dicts, lists, strings, numbers, booleans and None, got "
            f"{type(value).__name__}"
        )


def _check_text(text: str, what: str) -> None:
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise ModelFileError(f"{what} must be valid Unicode, got {ascii(text)[:80]}") from None


@dataclass(frozen=True)
class TensorPlace:
    """The dtype and shape of a tensor, and the position of its bytes after the header."""

    code: str
    shape: tuple[int, ...]
    begin: int
    end: int

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The dtype in the byte order of the file, which is little-endian."""
        return np.dtype(_CODES[self.code])


def places_of(tensors: Mapping[str, Tensor]) -> dict[str, TensorPlace]:
    """Return where each tensor is written."""
    codes = {name: _check_code(name, tensor) for name, tensor in tensors.items()}
    return _arrange({name: (codes[name], tensors[name].shape) for name in tensors})


def _arrange(kinds: Mapping[str, tuple[str, tuple[int, ...]]]) -> dict[str, TensorPlace]:
    """Return places for tensors of these codes and shapes: wide numbers first, all aligned."""
    sizes = {name: np.dtype(_CODES[code]).itemsize for name, (code, _) in kinds.items()}
    places = {}
    begin = 0
    for name in sorted(kinds, key=lambda name: (-sizes[name], name)):
        code, shape = kinds[name]
        end = begin + math.prod(shape) * sizes[name]
        places[name] = TensorPlace(code, shape, begin, end)
        begin = end
    return places


def _check_code(name: str, tensor: Tensor) -> str:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ModelFileError(
            "the name of a tensor must be a letter followed by letters, digits and _./- , got "
            f"{name!r:.80}"
        )
    if not isinstance(tensor, np.ndarray):
        raise ModelFileError(f"tensor {name!r} must be an array, got {type(tensor).__name__}")
    code = _CODE_OF.get(tensor.dtype.newbyteorder("<"))
    if code is None or tensor.ndim > MAX_DIMENSIONS:
        raise ModelFileError(
            f"tensor {name!r} must have one of the dtypes bool, uint8, uint16, int32, int64, "
            f"float16, float32 and float64 and at most {MAX_DIMENSIONS} dimensions, got "
            f"{tensor.dtype} and {tensor.ndim}"
        )
    return code


def header_of(metadata: Mapping[str, str], places: Mapping[str, TensorPlace]) -> bytes:
    """Return the header as it is written, after the eight bytes of its length."""
    entries: dict[str, object] = {
        name: {
            "dtype": place.code,
            "shape": list(place.shape),
            "data_offsets": [place.begin, place.end],
        }
        for name, place in places.items()
    }
    text = canonical_json({**entries, "__metadata__": dict(metadata)}, "header").encode("ascii")
    text += b" " * (-len(text) % 8)
    if len(text) > MAX_HEADER_BYTES:
        raise ModelFileError(
            f"the record of a model must be at most {MAX_HEADER_BYTES >> 20} MiB, got "
            f"{len(text) >> 20} MiB",
            "remove columns or rare categories",
        )
    return len(text).to_bytes(8, "little") + text


def places_in(header: Mapping[str, object], n_bytes: int) -> dict[str, TensorPlace]:
    """Return the places of a parsed header, which must fill the `n_bytes` after it exactly."""
    places = {name: _place(name, each) for name, each in header.items() if name != "__metadata__"}
    end = max((place.end for place in places.values()), default=0)
    if end < n_bytes:
        raise ModelFileError(f"it has {n_bytes - end} extra bytes at its end")
    if end > n_bytes:
        raise ModelFileError(f"{end - n_bytes} bytes are missing at its end")
    expected = _arrange({name: (place.code, place.shape) for name, place in places.items()})
    if expected != places:
        raise ModelFileError("its tensors are not in the order in which kernelmill writes them")
    return expected


def _place(name: str, entry: object) -> TensorPlace:
    if not NAME.fullmatch(name):
        raise ModelFileError(f"a tensor has the name {name!r:.80}, which is not allowed")
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise ModelFileError(f"tensor {name!r} must have dtype, shape and data_offsets")
    code, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if type(code) is not str or code not in _CODES:
        raise ModelFileError(f"tensor {name!r} has the dtype {code!r:.80}, which is not allowed")
    # NumPy limits the product of all dimensions, also where one of them is zero.
    if not (
        _are_sizes(shape)
        and len(shape) <= MAX_DIMENSIONS
        and math.prod(size or 1 for size in shape) < _MAX_ELEMENTS
    ):
        raise ModelFileError(f"tensor {name!r} has an invalid shape")
    if not (_are_sizes(offsets) and len(offsets) == 2 and offsets[0] <= offsets[1]):
        raise ModelFileError(f"tensor {name!r} has invalid data_offsets")
    place = TensorPlace(code, tuple(shape), *offsets)
    if place.end - place.begin != math.prod(shape) * place.dtype.itemsize:
        raise ModelFileError(f"the number of bytes of tensor {name!r} does not match its shape")
    return place


def _are_sizes(values: object) -> TypeGuard[list[int]]:
    return isinstance(values, list) and all(type(v) is int and 0 <= v < 2**62 for v in values)
