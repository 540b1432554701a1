"""The names of kernels that parameters accept."""

from __future__ import annotations

from difflib import get_close_matches

from kernelmill.kernels.ball_convolution import BallConvolution
from kernelmill.kernels.base import Kernel
from kernelmill.kernels.gaussian import Gaussian
from kernelmill.kernels.laplacian import Laplacian
from kernelmill.kernels.matern import Exponential, Matern
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
        close = get_close_matches(kernel.lower(), _NAMED, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else "."
        raise ValueError(f"kernel must be one of {names} or a Kernel, got {kernel!r}{hint}")
    if isinstance(kernel, type) and issubclass(kernel, Kernel):
        raise TypeError(
            f"kernel must be an instance, got the class {kernel.__name__}; "
            f"write {kernel.__name__}()."
        )
    raise TypeError(
        f"kernel must be one of {names} or a Kernel such as Matern(nu=2.5), got {kernel!r} "
        f"({type(kernel).__name__})."
    )
