"""Types of matrices; arrays for native code: checks, contiguous rows, rounded coefficients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol, Self, TypeAlias, TypeVar, overload

import numpy as np
import scipy  # Imports scipy.sparse on first use.
from numpy.typing import ArrayLike, DTypeLike, NDArray

from kernelmill import _native
from kernelmill.arguments import LengthScale
from kernelmill.errors import ArgumentError, Remedy

__all__ = [
    "Floats",
    "PerDtype",
    "Rows",
    "SparseRows",
    "Transformer",
    "as_real",
    "blocks_of_rows",
    "check_axis",
    "check_out",
    "divide_by_length_scale",
    "native_rows",
    "round_coefficients",
    "row_products",
    "rows_in_cache",
    "split_length_scale",
    "weigh_columns",
]

Floats: TypeAlias = NDArray[np.floating]
"""An array of float32 or float64."""


class SparseRows(Protocol):
    """The interface of SciPy's CSR matrices that kernelmill uses; SciPy has no types."""

    data: Floats
    indices: NDArray[np.integer]
    indptr: NDArray[np.integer]

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def dtype(self) -> np.dtype[np.floating]: ...
    @property
    def has_canonical_format(self) -> bool: ...

    def __getitem__(self, rows: slice | NDArray[np.integer], /) -> SparseRows: ...
    def __matmul__(self, other: Floats, /) -> Floats: ...
    def astype(self, dtype: DTypeLike, copy: bool = True) -> SparseRows: ...
    def copy(self) -> SparseRows: ...
    def sum_duplicates(self) -> None: ...
    def toarray(self) -> Floats: ...


Rows: TypeAlias = Floats | SparseRows
"""A matrix of float32 or float64, dense or CSR."""

T = TypeVar("T")


class PerDtype(dict[str, T]):
    """Coefficients for rows of each dtype, computed on first use and not pickled.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.runtime.arrays import PerDtype
    >>> ones = PerDtype()
    >>> ones.of(np.float32, lambda dtype: np.ones(2, dtype))
    array([1., 1.], dtype=float32)
    >>> ones.of("float32", np.zeros) is ones.of(np.float32, np.zeros)
    True
    """

    def of(self, dtype: DTypeLike, make: Callable[[np.dtype[np.floating]], T]) -> T:
        """Return the coefficients for a dtype, float64 or float32."""
        kind = np.dtype(dtype)
        if kind.char not in self:
            self[kind.char] = make(_FLOAT32 if kind == _FLOAT32 else _FLOAT64)
        return self[kind.char]

    def __reduce__(self) -> tuple[type[PerDtype[T]], tuple[()]]:
        return type(self), ()


class Transformer(Protocol):
    """A map of kernelmill, or another transformer such as scikit-learn's `RBFSampler`."""

    def fit(self, X: Rows, /) -> Self: ...
    def transform(self, X: Rows, /) -> Floats: ...
    def get_params(self, deep: bool = True) -> Mapping[str, object]: ...
    def set_params(self, **parameters: object) -> Self: ...


_BLOCK_BYTES = 1 << 21
_CACHED_ELEMENTS = 1 << 17
_FLOAT32: np.dtype[np.floating] = np.dtype(np.float32)
_FLOAT64: np.dtype[np.floating] = np.dtype(np.float64)


def as_real(x: ArrayLike, name: str, if_complex: str) -> Floats:
    """Return x as an array of float32 or float64 in native byte order, without a copy if it is one.

    float16 becomes float32; booleans and integers become float64. `if_complex` is the remedy
    suggested for complex numbers.
    """
    if type(x) is np.ndarray and (x.dtype is _FLOAT32 or x.dtype is _FLOAT64):
        return x
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array, whose mask would be lost; fill it first.")
    if hasattr(x, "toarray"):
        raise TypeError(
            f"{name} is sparse ({type(x).__name__}); convert it to a dense array with .toarray()."
        )
    array = np.asarray(x)
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind == "f" and size <= 8:
        return array.astype(_FLOAT64 if size == 8 else _FLOAT32, copy=False)
    if kind in "biu":
        return array.astype(_FLOAT64)
    if kind == "c":
        raise TypeError(f"{name} must be real, got dtype {array.dtype}; {if_complex}.")
    if kind == "f":
        raise TypeError(
            f"{name} must have dtype float32 or float64, got {array.dtype}; convert it with "
            ".astype(numpy.float64), which loses precision."
        )
    what = f"an array of dtype {array.dtype}" if isinstance(x, np.ndarray) else type(x).__name__
    raise TypeError(f"{name} must hold real numbers, got {what} (dtype {array.dtype}).")


def check_axis(axis: object, ndim: int) -> int:
    """Return the axis as an int, if an array of `ndim` dimensions has it."""
    if isinstance(axis, (bool, np.bool_)) or not hasattr(axis, "__index__"):
        raise TypeError(f"axis must be an integer, got {axis!r}.")
    index = int(axis.__index__())
    if not -ndim <= index < ndim:
        raise np.exceptions.AxisError(index, ndim)
    return index


def check_out(
    out: object, shape: tuple[int, ...], dtype: np.dtype[np.floating], name: str = "out"
) -> Floats:
    """Return ``out``; raise an error unless a result of this shape and dtype can be written."""
    if not isinstance(out, np.ndarray):
        raise TypeError(f"{name} must be a numpy array, got {type(out).__name__}.")
    if out.shape != shape:
        raise ValueError(f"{name} must have the shape of the result, {shape}, got {out.shape}.")
    if out.dtype != dtype:
        raise TypeError(f"{name} must have the dtype of the result, {dtype}, got {out.dtype}.")
    if not out.dtype.isnative:
        raise TypeError(f"{name} must be in native byte order, got {out.dtype!r}.")
    if not out.flags.writeable:
        raise ValueError(f"{name} is read-only; pass a writeable array.")
    return out


def native_rows(X: Rows) -> _native.Rows:
    """Return a dense matrix, or the data, indices, indptr and number of columns of a CSR matrix."""
    if isinstance(X, np.ndarray):
        return X
    return (X.data, X.indices, X.indptr, X.shape[1])


def blocks_of_rows(X: Rows, out: Floats, *, max_rows: int = 0) -> Iterator[tuple[Rows, Floats]]:
    """Yield rows of X in a layout that native code can read, with their part of the output.

    Contiguous rows are yielded as one block, others as copies of bounded size. `max_rows` limits
    the size of a block if the caller needs memory for each row.
    """
    n_rows = X.shape[0]
    readable = not isinstance(X, np.ndarray) or (
        (X.strides[1] == X.itemsize or X.shape[1] <= 1)
        and X.strides[0] % X.itemsize == 0
        and X.flags.aligned
    )
    step = n_rows
    if not readable:
        step = max(1, _BLOCK_BYTES // max(1, X.shape[1] * X.dtype.itemsize))
    if max_rows:
        step = min(step, max_rows)
    if step >= n_rows and readable:
        yield X, out
        return
    for begin in range(0, n_rows, step):
        block = X[begin : begin + step]
        yield block if readable else block.copy(), out[begin : begin + step]


def row_products(
    X: Rows, vector: NDArray[np.float64] | None = None, *, n_threads: int = 0
) -> NDArray[np.float64]:
    """Return the inner product of each row with a vector, by default with itself.

    Results are float64, and bit-identical for dense and sparse rows on every machine.
    """
    out = np.empty(X.shape[0])
    like = np.empty(0, X.dtype)
    for rows, part in blocks_of_rows(X, out):
        _native.row_products(native_rows(rows), like, vector, part, n_threads)
    return out


def rows_in_cache(n_columns: int) -> int:
    """Return the number of rows of `n_columns` columns that fit in the cache between operations."""
    return max(32, _CACHED_ELEMENTS // n_columns)


def divide_by_length_scale(
    frequencies: NDArray[np.float64], length_scale: LengthScale
) -> NDArray[np.float64]:
    """Return frequencies of length scale 1, divided by a length scale or by one per column."""
    with np.errstate(over="ignore"):
        return np.asarray(frequencies / length_scale)


def split_length_scale(length_scale: LengthScale) -> tuple[float, NDArray[np.float64] | None]:
    """Return the smallest length scale c, and a weight c / length_scale for each column.

    Weights are at most 1, so that nothing overflows, and 1 if all length scales are equal. They
    are None for a single length scale.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.runtime.arrays import split_length_scale
    >>> split_length_scale(np.array([4.0, 2.0, np.inf]))
    (2.0, array([0.5, 1. , 0. ]))
    """
    if not isinstance(length_scale, np.ndarray):
        return length_scale, None
    smallest = float(length_scale.min())
    if smallest == np.inf:  # All columns are ignored.
        return 1.0, np.zeros_like(length_scale)
    return smallest, smallest / length_scale


@overload
def weigh_columns(X: Floats, weights: NDArray[np.float64] | None) -> Floats: ...
@overload
def weigh_columns(X: Rows, weights: NDArray[np.float64] | None) -> Rows: ...
def weigh_columns(X: Rows, weights: NDArray[np.float64] | None) -> Rows:
    """Return a matrix with columns multiplied by weights, in the dtype of the matrix."""
    if weights is None:
        return X
    if isinstance(X, np.ndarray):
        return (X * weights).astype(X.dtype, copy=False)
    data = (X.data * weights[X.indices]).astype(X.dtype, copy=False)
    weighed: SparseRows = scipy.sparse.csr_array((data, X.indices, X.indptr), X.shape)
    return weighed


def round_coefficients(coefficients: NDArray[Any], dtype: np.dtype[np.floating]) -> Floats:
    """Return a read-only copy in a dtype; raise an error if it cannot hold the coefficients."""
    with np.errstate(over="ignore"):
        out = coefficients.astype(dtype)
    if not np.isfinite(out).all():
        raise ArgumentError(
            f"the coefficients of the map are too large for {dtype.name}",
            Remedy("use a larger length scale if the map has one", length_scale=...),
            "scale the data",
            "pass the data in float64",
        )
    out.flags.writeable = False
    return out
