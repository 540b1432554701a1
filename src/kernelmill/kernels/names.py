"""The names of kernels that parameters accept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.errors import ArgumentError, Remedy
from kernelmill.kernels.ball_convolution import BallConvolution
from kernelmill.kernels.base import Kernel, RotationInvariantKernel
from kernelmill.kernels.dot_product import DotProductKernel
from kernelmill.kernels.exponential_dot_product import ExponentialDotProduct
from kernelmill.kernels.gaussian import Gaussian
from kernelmill.kernels.laplacian import Laplacian
from kernelmill.kernels.maclaurin import Maclaurin
from kernelmill.kernels.matern import Exponential, Matern
from kernelmill.kernels.polynomial import Polynomial
from kernelmill.kernels.rational_quadratic import Cauchy, RationalQuadratic

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


def resolve(kernel: str | Kernel) -> Kernel:
    """The kernel that a name stands for, with its default parameters; a kernel is itself.

    Examples
    --------
    >>> from kernelmill.kernels import resolve
    >>> resolve("rbf")
    Gaussian()
    >>> resolve("matern")
    Matern(nu=1.5)
    """
    if isinstance(kernel, Kernel):
        return kernel
    names = ", ".join(map(repr, _NAMED))
    if isinstance(kernel, str):
        if kernel in _NAMED:
            return _NAMED[kernel]()
        raise ArgumentError(
            f"must be one of {names} or a Kernel, got {kernel!r}",
            *_suggest_name(kernel, _NAMED),
            parameter="kernel",
        )
    if isinstance(kernel, type) and issubclass(kernel, Kernel):
        raise TypeError(
            f"kernel must be an instance, got the class {kernel.__name__}; "
            f"write {kernel.__name__}()."
        )
    hint = ""
    if isinstance(kernel, RotationInvariantKernel):
        hint = "; that is a kernel of inner products, for TensorSketch or DotProductFastfood"
    raise TypeError(
        f"kernel must be one of {names} or a Kernel such as Matern(nu=2.5), got {kernel!r} "
        f"({type(kernel).__name__}){hint}."
    )


_FOR_SHIFT_INVARIANT = "that is a shift-invariant kernel, for RandomFourier or Fastfood"


def resolve_dot_product(
    kernel: str | DotProductKernel | Sequence[float] | NDArray[Any] | Callable[[int], float],
    *,
    also: str = "",
) -> DotProductKernel:
    """The dot-product kernel that a name or Maclaurin coefficients stand for.

    Parameters
    ----------
    kernel : str, DotProductKernel, array_like or callable
        "polynomial" (or "poly") and "exponential" have their default parameters; a kernel is
        itself; an array of coefficients, or a function of the degree, is made a `Maclaurin`.
    also : str, default=""
        What else the caller takes, for messages.

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
        if kernel in _NAMED_DOT_PRODUCTS:
            return _NAMED_DOT_PRODUCTS[kernel]()
        why = f" ({_FOR_SHIFT_INVARIANT})" if kernel in _NAMED else ""
        raise ArgumentError(
            f"must be one of {names}, a DotProductKernel or Maclaurin coefficients, got "
            f"{kernel!r}{why}",
            *_suggest_name(kernel, _NAMED_DOT_PRODUCTS),
            parameter="kernel",
        )
    if isinstance(kernel, type) and issubclass(kernel, DotProductKernel):
        raise TypeError(
            f"kernel must be an instance, got the class {kernel.__name__}; "
            f"write {kernel.__name__}()."
        )
    other = isinstance(kernel, (Kernel, RotationInvariantKernel, type))
    if not other and (callable(kernel) or isinstance(kernel, (Sequence, np.ndarray))):
        return Maclaurin(kernel)  # type: ignore[arg-type] # mypy takes strings for sequences
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


def _suggest_name(given: str, names: Iterable[str]) -> list[Remedy]:
    similar = get_close_matches(given.lower(), names, n=1)
    return [Remedy("use the kernel with a similar name", kernel=name) for name in similar]
