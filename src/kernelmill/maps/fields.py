"""The kinds of fields that only maps have: kernels, seeds, streams and factors of Fastfood."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from kernelmill.files.fields import Fields
from kernelmill.files.kinds import (
    ABSENT,
    LARGEST_INTEGER,
    Array,
    Choice,
    Float,
    Integer,
    Kind,
    Mismatch,
    Null,
    Number,
    Place,
    PlainOrArray,
)
from kernelmill.files.safetensors import ModelFileError
from kernelmill.kernels import (
    ArcCosine,
    BallConvolution,
    Cauchy,
    Exponential,
    ExponentialDotProduct,
    Gaussian,
    Laplacian,
    Maclaurin,
    Matern,
    Polynomial,
    Radial,
    RationalQuadratic,
    Spectrum,
    SpherePower,
)
from kernelmill.kernels.gegenbauer import MOST_DEGREES
from kernelmill.projections import GivenFactors
from kernelmill.random import Stream

__all__ = [
    "CENTER",
    "FITTED_LENGTH_SCALE",
    "GAMMA",
    "KERNELS",
    "LENGTH_SCALE",
    "MOST_DEGREES",
    "POSITIVE",
    "RADIUS",
    "FactorsKind",
    "KernelKind",
    "SeedKind",
    "StreamKind",
]


# Parameters and fitted attributes of several maps.
_OF_COLUMNS = Array(("float64",), ("n_features_in",), above=0, infinite=True, tensor="length_scale")
LENGTH_SCALE = PlainOrArray(Number() | Choice("scale", "median") | Null(), _OF_COLUMNS)
FITTED_LENGTH_SCALE = PlainOrArray(Float(above=0), _OF_COLUMNS)
GAMMA = Number() | Choice("scale") | Null()
RADIUS = Number() | Choice("scale")
CENTER = Array(("float64",), ("n_features_in",), optional=True, tensor="center")
POSITIVE = Float(above=0)

_DEGREE = Integer(0, MOST_DEGREES)
_NUMBER = Float(other="names")  # the kernels check the rest

# Kernels that are given by numbers, with their parameters,
KERNELS: dict[type, Fields] = {
    ArcCosine: Fields(order=_DEGREE),
    BallConvolution: Fields(t=_DEGREE),
    Cauchy: Fields(),
    Exponential: Fields(),
    ExponentialDotProduct: Fields(length_scale=_NUMBER),
    Gaussian: Fields(),
    Laplacian: Fields(),
    Matern: Fields(nu=_NUMBER),
    Polynomial: Fields(degree=_DEGREE, gamma=_NUMBER, coef0=_NUMBER),
    RationalQuadratic: Fields(alpha=_NUMBER),
}
# and those that are given by an array: the attribute that holds it, and its shape.
_ARRAYS: dict[type, tuple[str, Array]] = {
    Maclaurin: ("given", Array(("float64",), (None,))),
    Radial: ("given", Array(("float64",), (None,))),
    Spectrum: ("given", Array(("float64",), (None, None))),
    SpherePower: ("coefficients", Array(("float64",), (None,))),
}
_FAMILIES = {family.__name__: family for family in (*KERNELS, *_ARRAYS)}
_SERIES = "coefficients"  # of a Maclaurin series, given to the map as an array


class KernelKind(Kind):
    """The parameter `kernel`: a name, a kernel made of numbers, or an array of coefficients."""

    description = (
        f"made of numbers (a kernel without functions and of a degree up to {MOST_DEGREES}, or "
        "coefficients) or a kernel's name"
    )

    def write(self, value: Any, place: Place) -> Any:
        if isinstance(value, str):
            return value
        if isinstance(value, np.ndarray):
            _ARRAYS[Maclaurin][1].write(value, place)
            return {"kernel": _SERIES}
        family = type(value)
        if family in KERNELS:
            try:
                return {"kernel": family.__name__, **KERNELS[family].write_at(value, place)}
            except ModelFileError:  # about the kernel as a whole
                raise Mismatch from None
        if family not in _ARRAYS or getattr(value, "profile", None) is not None:
            raise Mismatch
        attribute, kind = _ARRAYS[family]
        kind.write(getattr(value, attribute), place)
        return {"kernel": family.__name__}

    def read(self, stored: Any, place: Place) -> Any:
        if type(stored) is str:
            return stored
        name = stored.get("kernel") if type(stored) is dict else None
        if type(name) is not str or (name not in _FAMILIES and name != _SERIES):
            raise Mismatch
        family = _FAMILIES.get(name, Maclaurin)
        if family in KERNELS:
            numbers = {key: value for key, value in stored.items() if key != "kernel"}
            return family(**KERNELS[family].read_at(numbers, place))
        if len(stored) != 1:
            raise Mismatch
        array = _ARRAYS[family][1].read(ABSENT, place)
        if family in (Maclaurin, SpherePower) and array.size > MOST_DEGREES + 1:
            raise Mismatch
        return array if name == _SERIES else family(array)


class FactorsKind(Kind):
    """The parameter `factors` of Fastfood."""

    description = '"given", with arrays B, permutation, G and S, or null'
    _fields = Fields(
        B=Array(("float64",), ("blocks", "size")),
        permutation=Array(("int32",), ("blocks", "size")),
        G=Array(("float64",), ("blocks", "size")),
        S=Array(("float64",), ("blocks", "size")),
    )

    def write(self, value: Any, place: Place) -> Any:
        if value is None:
            return None
        self._fields.write_at(value, place.inside())
        return "given"

    def read(self, stored: Any, place: Place) -> Any:
        if stored is None:
            return None
        if stored != "given":
            raise Mismatch
        return GivenFactors.from_arrays(**self._fields.read_at({}, place.inside()))


class StreamKind(Kind):
    """A random stream: the 32 hexadecimal digits of its key."""

    description = "32 hexadecimal digits"

    def write(self, value: Any, place: Place) -> str:
        return f"{value.key:032x}"

    def read(self, stored: Any, place: Place) -> Stream:
        if type(stored) is not str or not re.fullmatch("[0-9a-f]{32}", stored):
            raise Mismatch
        return Stream(int(stored, 16))


class SeedKind(Kind):
    """The parameter `random_state`: null, an integer, or the key of a stream.

    Objects that change when they are used, such as a NumPy generator, have to be replaced by the
    stream that was drawn from them: see `stored_random_state`.
    """

    description = "null, an integer of at least 0, or an object with the key of a stream"
    _of_stream = Fields(key=StreamKind())

    def write(self, value: Any, place: Place) -> Any:
        if value is None or type(value) is int:
            return value
        return self._of_stream.write_at({"key": value}, place)

    def read(self, stored: Any, place: Place) -> Any:
        if stored is None or (type(stored) is int and 0 <= stored <= LARGEST_INTEGER):
            return stored
        if type(stored) is not dict:
            raise Mismatch
        return self._of_stream.read_at(stored, place)["key"]


def stored_random_state(random_state: Any, stream: Stream) -> Any:
    """Return the stored form of a random state that `stream` came from: None, int or Stream.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.maps.fields import stored_random_state
    >>> from kernelmill.random import Stream
    >>> stored_random_state(7, Stream.from_seed(7))
    7
    >>> stored_random_state(np.random.default_rng(0), Stream.from_seed(0)) == Stream.from_seed(0)
    True
    """
    if random_state is None or isinstance(random_state, Stream):
        return random_state
    if isinstance(random_state, (int, np.integer)) and 0 <= random_state <= LARGEST_INTEGER:
        return int(random_state)
    return stream
