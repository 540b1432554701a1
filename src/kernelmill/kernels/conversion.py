"""Values of one kernel from those of another: Gaussian, polynomial, exponential."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelmill.arguments import check_positive
from kernelmill.kernels.dot_product import DotProductKernel, ExponentialDotProduct, Polynomial
from kernelmill.kernels.shift_invariant import Gaussian
from kernelmill.runtime.arrays import as_real

_IF_COMPLEX = "take the real part"
_SOURCES = "Gaussian(), Polynomial(...) or ExponentialDotProduct(...)"


def convert(
    values: ArrayLike,
    source: Gaussian | Polynomial | ExponentialDotProduct,
    target: Gaussian | DotProductKernel,
    *,
    length_scale: float | None = None,
    squared_norms_X: ArrayLike | None = None,
    squared_norms_Y: ArrayLike | None = None,
) -> NDArray[np.float64]:
    r"""Return values of the kernel `target` from values, or estimates, of the kernel `source`.

    Inner products determine distances and the other way around, given the lengths of the points:

    .. math:: \lVert x - y \rVert^2 = \lVert x \rVert^2 + \lVert y \rVert^2 - 2 \langle x, y \rangle

    So values are converted to the inner product or distance behind them, and from there to the
    other kernel. Exact values give exact values, with the exceptions below.

    Parameters
    ----------
    values : array_like of shape (n_X, n_Y)
        ``source(X, Y)``, or inner products of features that estimate it.
    source : Gaussian, Polynomial or ExponentialDotProduct
        The kernel whose values are given.
    target : Gaussian or DotProductKernel
        The kernel whose values are wanted.
    length_scale : float, default=None
        The length scale of the Gaussian kernel, source or target:
        ``exp(-r²/(2 length_scale²))``; None is 1.
    squared_norms_X, squared_norms_Y : array_like of shapes (n_X,) and (n_Y,), or float
        Squared lengths of the points, or a number if all are equal. Required if one of the kernels
        is Gaussian. Without the second, Y is X. Where they are unknown, :func:`squared_norms`
        estimates them from features of a dot-product kernel; features of the Gaussian kernel do not
        contain them, since k(x, x) = 1.

    Returns
    -------
    ndarray of shape (n_X, n_Y)
        float64. Unbiased estimates become biased: roots and logarithms are not linear.

    See Also
    --------
    squared_norms : Lengths of points from values k(x, x).

    Notes
    -----
    Conversions that are not exact, or not possible:

    * Polynomials of even degree hide the sign of :math:`\gamma \langle x, y \rangle + c`. The root
      that is not negative is used: correct wherever the inner product is at least
      :math:`-c / \gamma`, as for data without negative entries. Negative estimates become root 0.
    * Estimates of the Gaussian kernel above 1 count as 1, distance 0.
    * Values of the Gaussian kernel that are 0 or negative have no distance, and such values of the
      exponential kernel have no inner product: they become nan, and nan stays nan.
    * Inner products larger than the lengths allow give distance 0, and 1 for the Gaussian kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.kernels import Gaussian, Polynomial, convert
    >>> X = np.array([[1.0, 0.0], [1.0, 2.0]])
    >>> Gaussian()(X, length_scale=2.0).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    >>> polynomial = Polynomial(2)
    >>> norms = (X**2).sum(axis=1)
    >>> convert(
    ...     polynomial(X), polynomial, Gaussian(), length_scale=2.0, squared_norms_X=norms
    ... ).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """
    _check_kernels(source, target)
    given = as_real(values, "values", _IF_COMPLEX).astype(np.float64, copy=False)
    if given.ndim != 2:
        raise ValueError(
            f"values must have two dimensions, as kernel matrices have, got shape {given.shape}; "
            "a single value is [[value]]."
        )
    if isinstance(source, Gaussian):
        if isinstance(target, Gaussian):
            raise ValueError(
                "source and target must be different kernels, got Gaussian() twice; to change "
                "the length scale from s to t, compute values ** (s / t) ** 2."
            )
        scale = _check_scale(length_scale)
        sums = _sums_of_norms(squared_norms_X, squared_norms_Y, given.shape)
        with np.errstate(over="ignore", invalid="ignore"):
            return target.value(sums / 2 + _logarithms(np.minimum(given, 1)) * scale * scale)
    if isinstance(target, Gaussian):
        scale = _check_scale(length_scale)
        sums = _sums_of_norms(squared_norms_X, squared_norms_Y, given.shape)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            squares = np.maximum(sums - 2 * _inner_products(given, source), 0)
            return np.asarray(np.exp(-0.5 * (squares / scale / scale)))
    if length_scale is not None:
        raise ValueError(
            f"length_scale must be left out, got {length_scale!r}: it belongs to the Gaussian "
            f"kernel, and neither {source!r} nor {target!r} is one."
        )
    return target.value(_inner_products(given, source))


def squared_norms(
    diagonal: ArrayLike, kernel: Polynomial | ExponentialDotProduct
) -> NDArray[np.float64]:
    """Return squared lengths of points x from values, or estimates, of k(x, x).

    Parameters
    ----------
    diagonal : array_like
        ``k(x, x)`` for each point: for features Z, ``(Z * Z).sum(axis=1)``.
    kernel : Polynomial or ExponentialDotProduct
        k. Values of kernels with k(x, x) = 1, such as the Gaussian one, contain no lengths.

    Returns
    -------
    ndarray of the same shape
        float64. Estimates below k(0, 0) become 0; those of the exponential kernel that are not
        positive become nan.

    Examples
    --------
    >>> from kernelmill.kernels import Polynomial, squared_norms
    >>> squared_norms([9.0, 25.0], Polynomial(2))
    array([3., 5.])
    """
    if isinstance(kernel, Gaussian):
        raise TypeError(
            "kernel must be Polynomial(...) or ExponentialDotProduct(...), got Gaussian(), for "
            "which k(x, x) is 1 for every x; compute squared norms from the data."
        )
    if not isinstance(kernel, (Polynomial, ExponentialDotProduct)):
        raise TypeError(
            f"kernel must be Polynomial(...) or ExponentialDotProduct(...), got {kernel!r}."
        )
    given = as_real(diagonal, "diagonal", _IF_COMPLEX).astype(np.float64, copy=False)
    return np.asarray(np.maximum(_inner_products(given, kernel), 0))


def _check_kernels(source: object, target: object) -> None:
    if not isinstance(source, (Gaussian, Polynomial, ExponentialDotProduct)):
        raise TypeError(f"source must be {_SOURCES}, got {source!r}.")
    if not isinstance(target, (Gaussian, DotProductKernel)):
        raise TypeError(f"target must be Gaussian() or a dot-product kernel, got {target!r}.")


def _check_scale(length_scale: float | None) -> float:
    return check_positive("length_scale", 1.0 if length_scale is None else length_scale)


def _inner_products(
    values: NDArray[np.float64], kernel: Polynomial | ExponentialDotProduct
) -> NDArray[np.float64]:
    """Return the inner products that belong to the values of a kernel."""
    if isinstance(kernel, ExponentialDotProduct):
        return np.asarray(_logarithms(values) * kernel.length_scale * kernel.length_scale)
    roots = np.abs(values) ** (1 / kernel.degree)
    roots = np.copysign(roots, values) if kernel.degree % 2 else np.where(values < 0, 0.0, roots)
    return np.asarray((roots - kernel.coef0) / kernel.gamma)


def _logarithms(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Natural logarithms, nan for numbers that are not positive."""
    return np.asarray(np.log(np.where(values > 0, values, np.nan)))


def _sums_of_norms(
    first: ArrayLike | None, second: ArrayLike | None, shape: tuple[int, ...]
) -> NDArray[np.float64]:
    """Return the sums ‖x‖² + ‖y‖² for all pairs, or what can be broadcast to them."""
    if first is None:
        raise ValueError(
            "squared_norms_X must be given, since inner products and distances determine each "
            "other only together with lengths; pass (X**2).sum(axis=1), 1.0 for points on the "
            "unit sphere, or what kernelmill.kernels.squared_norms estimates."
        )
    x = _check_norms("squared_norms_X", first, shape[0])
    if second is None and x.ndim == 1 and shape[0] != shape[1]:
        raise ValueError(
            f"squared_norms_Y must be given, since values of shape {shape} cannot be those of X "
            "and X."
        )
    y = x if second is None else _check_norms("squared_norms_Y", second, shape[1])
    return np.asarray(x[..., np.newaxis] + y)


def _check_norms(name: str, given: ArrayLike, count: int) -> NDArray[np.float64]:
    norms = as_real(given, name, _IF_COMPLEX).astype(np.float64, copy=False)
    if norms.ndim and norms.shape != (count,):
        raise ValueError(f"{name} must be a number or have shape ({count},), got {norms.shape}.")
    if (norms < 0).any():
        raise ValueError(f"{name} must not be negative, got {norms.min():g}; pass squared lengths.")
    return norms
