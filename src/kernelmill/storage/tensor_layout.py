"""The header of a safetensors file: dtypes, shapes and positions of its tensors."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.storage.errors import ModelFileError
from kernelmill.storage.plain_values import canonical_json

__all__ = ["MOST_HEADER_BYTES", "NAME", "TensorPlace", "header_of", "places_in", "places_of"]

MOST_HEADER_BYTES = 1 << 24
MOST_DIMENSIONS = 8
_MOST_ELEMENTS = 1 << 48
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_./-]{0,199}")

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


@dataclass(frozen=True)
class TensorPlace:
    """A tensor's dtype and shape, and its bytes, counted from the end of the header."""

    code: str
    shape: tuple[int, ...]
    begin: int
    end: int

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype in the byte order of the file, which is little-endian."""
        return np.dtype(_CODES[self.code])


def places_of(tensors: Mapping[str, NDArray[Any]]) -> dict[str, TensorPlace]:
    """Return where each tensor is written."""
    codes = {name: _check_code(name, tensor) for name, tensor in tensors.items()}
    return _arrange({name: (codes[name], tensors[name].shape) for name in tensors})


def _arrange(kinds: Mapping[str, tuple[str, tuple[int, ...]]]) -> dict[str, TensorPlace]:
    """Places for tensors of these codes and shapes: wide numbers first, so that all are aligned."""
    sizes = {name: np.dtype(_CODES[code]).itemsize for name, (code, _) in kinds.items()}
    places = {}
    begin = 0
    for name in sorted(kinds, key=lambda name: (-sizes[name], name)):
        code, shape = kinds[name]
        end = begin + math.prod(shape) * sizes[name]
        places[name] = TensorPlace(code, shape, begin, end)
        begin = end
    return places


def _check_code(name: str, tensor: NDArray[Any]) -> str:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ModelFileError(
            "the name of a tensor must be a letter followed by letters, digits and _./- , got "
            f"{name!r:.80}"
        )
    if not isinstance(tensor, np.ndarray):
        raise ModelFileError(f"tensor {name!r} must be an array, got {type(tensor).__name__}")
    code = _CODE_OF.get(tensor.dtype.newbyteorder("<"))
    if code is None or tensor.ndim > MOST_DIMENSIONS:
        raise ModelFileError(
            f"tensor {name!r} must have one of the dtypes bool, uint8, uint16, int32, int64, "
            f"float16, float32 and float64 and at most {MOST_DIMENSIONS} dimensions, got "
            f"{tensor.dtype} and {tensor.ndim}"
        )
    return code


def header_of(metadata: Mapping[str, str], places: Mapping[str, TensorPlace]) -> bytes:
    """Return the header as it is written, after the eight bytes of its length."""
    entries: dict[str, Any] = {
        name: {
            "dtype": place.code,
            "shape": list(place.shape),
            "data_offsets": [place.begin, place.end],
        }
        for name, place in places.items()
    }
    text = canonical_json({**entries, "__metadata__": dict(metadata)}, "header").encode("ascii")
    text += b" " * (-len(text) % 8)
    if len(text) > MOST_HEADER_BYTES:
        raise ModelFileError(
            f"the record of a model must be at most {MOST_HEADER_BYTES >> 20} MiB, got "
            f"{len(text) >> 20} MiB",
            "remove columns or rare categories",
        )
    return len(text).to_bytes(8, "little") + text


def places_in(header: Mapping[str, Any], n_bytes: int) -> dict[str, TensorPlace]:
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


def _place(name: str, entry: Any) -> TensorPlace:
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
        and len(shape) <= MOST_DIMENSIONS
        and math.prod(size or 1 for size in shape) < _MOST_ELEMENTS
    ):
        raise ModelFileError(f"tensor {name!r} has an invalid shape")
    if not (_are_sizes(offsets) and len(offsets) == 2 and offsets[0] <= offsets[1]):
        raise ModelFileError(f"tensor {name!r} has invalid data_offsets")
    place = TensorPlace(code, tuple(shape), *offsets)
    if place.end - place.begin != math.prod(shape) * place.dtype.itemsize:
        raise ModelFileError(f"the number of bytes of tensor {name!r} does not match its shape")
    return place


def _are_sizes(values: Any) -> bool:
    return isinstance(values, list) and all(type(v) is int and 0 <= v < 2**62 for v in values)
