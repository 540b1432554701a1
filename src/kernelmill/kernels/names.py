"""Kernels as parameters: their names, such as "matern" or "matern:nu=2.5", and model files."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from kernelmill.errors import ArgumentError, ArgumentTypeError, Remedy
from kernelmill.files.fields import Fields
from kernelmill.files.kinds import Kind, Mismatch, Place
from kernelmill.files.safetensors import ModelFileError
from kernelmill.kernels.angles import ArcCosine, SpherePower
from kernelmill.kernels.base import MAX_DEGREES, GivenKernel, Kernel, RotationInvariantKernel
from kernelmill.kernels.custom import Radial, Spectrum
from kernelmill.kernels.dot_product import (
    DotProductKernel,
    ExponentialDotProduct,
    Maclaurin,
    Polynomial,
)
from kernelmill.kernels.shift_invariant import (
    BallConvolution,
    Cauchy,
    Exponential,
    Gaussian,
    Laplacian,
    Matern,
    RationalQuadratic,
)

__all__ = [
    "STORABLE",
    "DotProductArgument",
    "KernelKind",
    "resolve",
    "resolve_dot_product",
    "stored_fields",
]

_NAMED: dict[str, type[Kernel]] = {
    "ball_convolution": BallConvolution,
    "cauchy": Cauchy,
    "exponential": Exponential,
    "gaussian": Gaussian,
    "laplacian": Laplacian,
    "matern": Matern,
    "rational_quadratic": RationalQuadratic,
    "rbf": Gaussian,
}

_NAMED_DOT_PRODUCTS: dict[str, type[DotProductKernel]] = {
    "exponential": ExponentialDotProduct,
    "poly": Polynomial,
    "polynomial": Polynomial,
}

STORABLE: dict[str, type[Kernel | RotationInvariantKernel]] = {
    family.__name__: family
    for family in (
        *(ArcCosine, BallConvolution, Cauchy, Exponential, ExponentialDotProduct, Gaussian),
        *(Laplacian, Matern, Polynomial, RationalQuadratic),
        *(Maclaurin, Radial, Spectrum, SpherePower),
    )
}
"""The kernels that model files can hold, by the names of their classes."""

_SERIES = "coefficients"
"""In place of the class: a Maclaurin series that is given as an array."""

_FOR_SHIFT_INVARIANT = "that is a shift-invariant kernel, for the maps random_fourier and fastfood"

Named = TypeVar("Named", Kernel, DotProductKernel)


def resolve(kernel: str | Kernel) -> Kernel:
    """Return the kernel that a name stands for; a kernel is itself.

    Parameters follow the name, as in ``"matern:nu=2.5"``; others have their default values.

    Examples
    --------
    >>> from kernelmill.kernels import resolve
    >>> resolve("rbf")
    Gaussian()
    >>> resolve("matern")
    Matern(nu=1.5)
    >>> resolve("rational_quadratic:alpha=0.5")
    RationalQuadratic(alpha=0.5)
    """
    if isinstance(kernel, Kernel):
        return kernel
    names = ", ".join(map(repr, _NAMED))
    if isinstance(kernel, str):
        if _name_of(kernel) in _NAMED:
            return _make_named(kernel, _NAMED)
        raise ArgumentError(
            f"must be one of {names} (or, in Python, a Kernel object), got {kernel!r}",
            *_suggest_name(kernel, _NAMED),
            parameter="kernel",
        )
    _reject_class(kernel, Kernel)
    hint = ""
    if isinstance(kernel, RotationInvariantKernel):
        hint = "; that is a kernel of inner products, for TensorSketch or DotProductFastfood"
    raise TypeError(
        f"kernel must be one of {names} or a Kernel such as Matern(nu=2.5), got {kernel!r} "
        f"({type(kernel).__name__}){hint}."
    )


DotProductArgument: TypeAlias = (
    str | DotProductKernel | Sequence[float] | NDArray[np.number] | Callable[[int], float]
)
"""The parameter `kernel` of maps of dot-product kernels."""


def resolve_dot_product(
    kernel: DotProductArgument,
    *,
    also: str = "",
) -> DotProductKernel:
    """Return the dot-product kernel that a name or Maclaurin coefficients stand for.

    Parameters
    ----------
    kernel : str, DotProductKernel, array_like or callable
        "polynomial" (or "poly") and "exponential", with their default parameters or others
        (``"polynomial:degree=3,coef0=1"``); a kernel is itself; an array of coefficients, or a
        function of the degree, is made a `Maclaurin`.
    also : str, default=""
        Other kernels that the caller accepts, for messages.

    Examples
    --------
    >>> from kernelmill.kernels import resolve_dot_product
    >>> resolve_dot_product("poly")
    Polynomial(degree=2, gamma=1.0, coef0=0.0)
    >>> resolve_dot_product([1.0, 0.0, 0.5])
    Maclaurin([1.0, 0.0, 0.5], value=None)
    """
    if isinstance(kernel, DotProductKernel):
        return kernel
    names = ", ".join([*map(repr, _NAMED_DOT_PRODUCTS), *([also] if also else [])])
    if isinstance(kernel, str):
        if _name_of(kernel) in _NAMED_DOT_PRODUCTS:
            return _make_named(kernel, _NAMED_DOT_PRODUCTS)
        why = f" ({_FOR_SHIFT_INVARIANT})" if _name_of(kernel) in _NAMED else ""
        raise ArgumentError(
            f"must be one of {names}, a DotProductKernel or Maclaurin coefficients, got "
            f"{kernel!r}{why}",
            *_suggest_name(kernel, _NAMED_DOT_PRODUCTS),
            parameter="kernel",
        )
    _reject_class(kernel, DotProductKernel)
    other = isinstance(kernel, (Kernel, RotationInvariantKernel, type))
    if not other and (callable(kernel) or isinstance(kernel, (Sequence, np.ndarray))):
        return Maclaurin(kernel)
    hint = ""
    if isinstance(kernel, Kernel):
        hint = f"; {_FOR_SHIFT_INVARIANT}"
    elif isinstance(kernel, RotationInvariantKernel):
        hint = (
            "; that is not a function of the inner product alone, but DotProductFastfood takes it"
        )
    raise TypeError(
        f"kernel must be one of {names}, a DotProductKernel such as Polynomial(3, coef0=1.0) or "
        f"Maclaurin coefficients, got {kernel!r} ({type(kernel).__name__}){hint}."
    )


def _reject_class(kernel: object, base: type) -> None:
    if isinstance(kernel, type) and issubclass(kernel, base):
        raise TypeError(
            f"kernel must be an instance, got the class {kernel.__name__}; "
            f"write {kernel.__name__}()."
        )


def _name_of(kernel: str) -> str:
    return kernel.partition(":")[0]


def _make_named(kernel: str, named: Mapping[str, type[Named]]) -> Named:
    """Return the kernel of "name" or "name:parameter=value,...", whose name is known."""
    family = named[_name_of(kernel)]
    try:
        return family(**_parse_parameters(kernel, family))
    except (ArgumentError, ArgumentTypeError) as error:
        if error.message.parameter == "kernel":
            raise
        raise ArgumentError(
            f"{kernel!r} is invalid: {error}".rstrip("."), parameter="kernel"
        ) from None


def _parse_parameters(kernel: str, family: type) -> dict[str, int | float]:
    name, colon, text = kernel.partition(":")
    known = [each.name for each in dataclasses.fields(family)]
    if colon and not known:
        raise ArgumentError(
            f"{name!r} has no parameters, got {kernel!r}",
            Remedy("leave them out", kernel=name),
            parameter="kernel",
        )
    values: dict[str, int | float] = {}
    for part in text.split(",") if colon else []:
        parameter, equals, number = (each.strip() for each in part.partition("="))
        if parameter not in known or not equals or parameter in values:
            allowed = ",".join(f"{each}=NUMBER" for each in known)
            some = " (or some of these)" if len(known) > 1 else ""
            raise ArgumentError(
                f"must be {name}:{allowed}{some}, got {kernel!r}", parameter="kernel"
            )
        values[parameter] = _parse_number(kernel, parameter, number)
    return values


def _parse_number(kernel: str, parameter: str, text: str) -> int | float:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise ArgumentError(
        f"{kernel!r} must have a number as {parameter}, got {text!r}", parameter="kernel"
    )


def _suggest_name(given: str, names: Iterable[str]) -> list[Remedy]:
    name, colon, parameters = given.partition(":")
    similar = get_close_matches(name.lower(), names, n=1)
    return [
        Remedy("use the kernel with a similar name", kernel=f"{each}{colon}{parameters}")
        for each in similar
    ]


class KernelKind(Kind):
    """The parameter `kernel`: a name, a kernel made of numbers, or an array of coefficients."""

    description = (
        f"made of numbers (a kernel without functions and of a degree up to {MAX_DEGREES}, or "
        "coefficients) or a kernel's name"
    )

    def write(self, value: object, place: Place) -> object:
        if isinstance(value, str):
            return value
        if isinstance(value, np.ndarray):
            stored_fields(Maclaurin).write_at({"given": value}, place)
            return {"kernel": _SERIES}
        name = type(value).__name__
        family = STORABLE.get(name)
        is_function = isinstance(value, GivenKernel) and value.profile is not None
        if family is None or type(value) is not family or is_function:
            raise Mismatch
        try:
            return {"kernel": name, **stored_fields(family).write_at(value, place)}
        except ModelFileError:  # the error should name the kernel as a whole
            raise Mismatch from None

    def read(self, stored: object, place: Place) -> object:
        if isinstance(stored, str):
            return stored
        name = stored.get("kernel") if isinstance(stored, dict) else None
        if not isinstance(stored, dict) or type(name) is not str:
            raise Mismatch
        family = Maclaurin if name == _SERIES else STORABLE.get(name)
        if family is None:
            raise Mismatch
        numbers = {key: value for key, value in stored.items() if key != "kernel"}
        values = stored_fields(family).read_at(numbers, place)
        if name == _SERIES:
            return values["given"]
        make: Callable[..., object] = family
        return make(values["given"]) if issubclass(family, GivenKernel) else make(**values)


def stored_fields(family: type[Kernel | RotationInvariantKernel]) -> Fields:
    """Return the fields of a kernel that can be stored."""
    assert family._stored_fields is not None
    return family._stored_fields
