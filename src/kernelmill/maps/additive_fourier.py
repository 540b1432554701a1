"""Random Fourier features, and step functions of single columns."""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy  # its modules are loaded on first use
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, NDArray

from kernelmill.arguments import LengthScale, check_integer
from kernelmill.errors import ArgumentError, Remedy
from kernelmill.files.kinds import Array, Float, Integer, PlainOrArray
from kernelmill.formatting import plain
from kernelmill.maps.base import fitted, parameter, with_parameters
from kernelmill.maps.fastfood import Fastfood
from kernelmill.maps.random_fourier import RandomFourier
from kernelmill.maps.scales import KernelMap
from kernelmill.runtime.arrays import Floats, Rows

__all__ = ["AdditiveFourier", "find_steps"]

_MAX_STEPS = 1 << 16
"""Steps of one column."""

_MAX_WEIGHT = 1e6
_MAX_ROWS = 1 << 16
"""Rows that determine the places of steps."""


_STEPS = PlainOrArray(Integer(1, _MAX_STEPS), Array(("float64",), (None, 2), tensor="steps"))


@with_parameters
class AdditiveFourier(KernelMap):
    r"""Random features of a kernel of all columns, and step functions of single columns.

    The kernel is the sum

    .. math:: k(x, y) + w \sum_j \big(1 - 2 |F_j(x_j) - F_j(y_j)|\big)

    of a shift-invariant kernel k and, for each column j, the kernel of decision stumps (Lin & Li,
    2008), where :math:`F_j(t)` is the share of the steps of column j that are below t. A linear
    model on the features is a kernel machine plus an arbitrary step function of each single column.
    This suits tables whose columns have thresholds, which a smooth kernel with one length scale per
    column blurs.

    Parameters
    ----------
    kernel : str or Kernel, default="gaussian"
        Any shift-invariant kernel. Radial kernels use the features of :class:`Fastfood`, other
        kernels those of :class:`RandomFourier`.
    n_components : int, default=100
        The number of output columns: random features, followed by steps. At most half of the
        columns are steps, unless `steps` is an array.
    length_scale : float, array_like of shape (n_features,) or {"scale", "median"}, default=None
        As in :class:`Fastfood`. Steps do not depend on it.
    gamma : float or "scale", default=None
        An alternative to `length_scale`, as in scikit-learn.
    weight : float, default=1.0
        The weight w of the steps of a column.
    steps : int or array_like of shape (n_steps, 2), default=256
        The maximum number of steps of a column. They are placed between the values of the rows that
        the map is fitted on: half of them at quantiles of the rows, the other half at quantiles of
        the distinct values. An array contains one row for each step: the index of a column, and the
        value above which the step is positive.
    random_state : int, RandomState, Generator or Stream, default=None
        The seed of the random features.
    n_threads : int, default=None
        By default :func:`kernelmill.get_num_threads`. Results do not depend on it.

    Attributes
    ----------
    kernel_ : Kernel
    length_scale_ : float or ndarray of shape (n_features_in_,)
    steps_ : ndarray of shape (n_steps, 2)
        Column and value of each step, in the order of the features.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If X had column names at `fit`.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill import AdditiveFourier
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> features = AdditiveFourier(n_components=4000, weight=2.0, steps=10, random_state=0)
    >>> Z = features.fit_transform(X)
    >>> Z.shape, len(features.steps_)
    ((100, 4000), 30)
    >>> bool(np.abs(Z @ Z.T - features.exact_kernel(X)).max() < 0.1)
    True
    """

    name = "additive_fourier"
    _is_dense = True  # unless the kernel is radial
    _construction = "random features, and steps of single columns"

    _: KW_ONLY
    weight: float = parameter(Float(above=0), default=1.0)
    steps: int | ArrayLike = parameter(_STEPS, default=256)

    steps_: NDArray[np.float64] = fitted(_STEPS)

    def _describe(self) -> str:
        steps = getattr(self, "steps_", None)
        if steps is None:
            return self._construction
        shown = f"{plain.count(len(steps), 'step')} of single columns"
        return f"random features, and {shown} with weight {plain.number(self.weight)}"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        weight = self.weight
        is_number = isinstance(weight, Real) and not isinstance(weight, bool)
        if not (is_number and 0 < float(weight) <= _MAX_WEIGHT):
            raise ArgumentError(
                f"must be a number above 0 and at most {_MAX_WEIGHT:g}, got {weight!r}",
                parameter="weight",
            )
        if np.ndim(self.steps) == 0:
            check_integer("steps", self.steps, 1, _MAX_STEPS)

    def _learn(self, X: Rows) -> None:
        super()._learn(X)
        if isinstance(self.steps, Integral):
            self.steps_ = find_steps(
                X, int(self.steps), int(self.n_components) // 2, self.length_scale_
            )
        else:
            try:
                if np.iscomplexobj(self.steps):
                    raise TypeError("complex numbers have no order")
                self.steps_ = np.array(self.steps, np.float64)
            except (TypeError, ValueError) as error:
                raise ArgumentError(
                    "must be an integer, or an array whose rows contain a column index and a value",
                    parameter="steps",
                ) from error

    def _build(self, dim: int, n_components: int) -> None:
        self.kernel_ = self._kernel()
        self._stumps = _Stumps(self.steps_, dim)
        if len(self.steps_) >= n_components:
            raise ArgumentError(
                f"must be greater than the number of steps, {len(self.steps_)}, got {n_components}",
                Remedy("use more features", n_components=2 * len(self.steps_)),
                Remedy("use fewer steps", steps=...),
                parameter="n_components",
            )
        self._n_features_out = n_components
        self._weight = float(self.weight)  # changes after `fit` have no effect
        common: dict[str, Any] = {
            "n_components": n_components - len(self.steps_),
            "length_scale": self.length_scale_,
        }
        self._smooth: Fastfood | RandomFourier
        if self.kernel_.radial:
            is_mixture = getattr(self.kernel_, "gaussian_mixture", False)
            structure = "sorf" if is_mixture else "hadamard"
            self._smooth = Fastfood.bare(kernel=self.kernel_, structure=structure, **common)
        else:
            self._smooth = RandomFourier.bare(kernel=self.kernel_, **common)
        self._smooth._restore(dim, self.stream_, {"length_scale_": self.length_scale_})

    def _prepare(self, X: Rows) -> None:
        self._smooth._prepare(X)

    def _write_features(self, X: Rows, out: Floats) -> bool:
        n_smooth = self._smooth._n_features_out
        self._smooth.n_threads = self.n_threads
        is_finite = self._smooth._write_features(X, out[:, :n_smooth])
        self._stumps.write(X, np.sqrt(self._weight), out[:, n_smooth:])
        return is_finite

    def _exact_kernel(self, X: Rows, Y: Rows | None) -> NDArray[np.float64]:
        smooth: NDArray[np.float64] = self._smooth._exact_kernel(X, Y)
        stumps = self._stumps.kernel(X, X if Y is None else Y)
        return np.asarray(smooth + self._weight * stumps)


class _Stumps:
    """Steps of some columns, those of one column together and increasing."""

    def __init__(self, steps: NDArray[np.float64], dim: int) -> None:
        is_table = steps.ndim == 2 and steps.shape[1] == 2 and np.isfinite(steps).all()
        columns = steps[:, 0].astype(np.int64) if is_table else np.empty(0, np.int64)
        if not is_table or not np.array_equal(columns, steps[:, 0]):
            raise ArgumentError(
                "must be an array whose rows contain a column index and a value, got an array "
                f"of shape {steps.shape}",
                parameter="steps",
            )
        if len(columns) and not (columns.min() >= 0 and columns.max() < dim):
            raise ArgumentError(
                f"must have column indices from 0 to {dim - 1}, got {columns.min()} to "
                f"{columns.max()}",
                parameter="steps",
            )
        order = np.lexsort((steps[:, 1], columns))
        if not np.array_equal(order, np.arange(len(order))):
            raise ArgumentError(
                "must be sorted by column, and by value within each column",
                "sort the rows of the array",
                parameter="steps",
            )
        self._used, begins, counts = np.unique(columns, return_index=True, return_counts=True)
        several = counts > 1
        # Columns with one step, such as encoded categories, are compared all at once.
        self._single = np.flatnonzero(~several)
        self._single_places = begins[~several]
        self._single_values = steps[begins[~several], 1]
        self._several = [
            (place, slice(begin, begin + count), steps[begin : begin + count, 1])
            for place, begin, count in zip(
                np.flatnonzero(several), begins[several], counts[several], strict=True
            )
        ]

    def write(self, X: Rows, scale: float, out: Floats) -> None:
        """Write the steps of rows; those of a column have the length `scale`."""
        if not len(self._used):
            return
        columns = self._columns(X)
        above = columns[:, self._single] > self._single_values
        out[:, self._single_places] = np.where(above, scale, -scale)
        for place, features, values in self._several:
            n = len(values)
            height = scale / np.sqrt(n)
            # Of n steps, as many are positive as values are below: one of n + 1 windows.
            windows = sliding_window_view(np.repeat([height, -height], n).astype(out.dtype), n)
            out[:, features] = windows[n - np.searchsorted(values, columns[:, place])]

    def kernel(self, X: Rows, Y: Rows) -> NDArray[np.float64]:
        """Return the sum over columns of the inner products of steps, of length 1."""
        distances = scipy.spatial.distance.cdist(self._shares(X), self._shares(Y), "cityblock")
        return np.asarray(len(self._used) - 2 * distances)

    def _shares(self, X: Rows) -> NDArray[np.float64]:
        """Return the share of the steps of each column that are below a row's value."""
        columns = self._columns(X)
        shares = np.zeros(columns.shape)
        shares[:, self._single] = columns[:, self._single] > self._single_values
        for place, _, values in self._several:
            shares[:, place] = np.searchsorted(values, columns[:, place]) / len(values)
        return shares

    def _columns(self, X: Any) -> Floats:
        chosen = X[:, self._used]
        return chosen if isinstance(chosen, np.ndarray) else chosen.toarray()


def find_steps(
    X: Rows, most: int, most_in_all: int, length_scale: LengthScale = 1.0
) -> NDArray[np.float64]:
    """Place steps between the values of rows: columns and values, of shape (n_steps, 2).

    A column has at most `most` steps, and none if its length scale is infinite. If there are more
    than `most_in_all`, columns with the most steps get fewer; with more columns than steps, only
    the first columns get a step.
    """
    rows: Any = X[:: -(-X.shape[0] // _MAX_ROWS)]
    if not isinstance(rows, np.ndarray):
        rows = rows.tocsc(copy=True)
        rows.sum_duplicates()
    gaps = []  # for each column: the middle between neighbouring values, and the rows below it
    is_used = np.broadcast_to(np.isfinite(length_scale), X.shape[1])
    for column in range(X.shape[1]):
        if not is_used[column]:
            gaps.append((np.empty(0), np.empty(0, np.intp)))
            continue
        found, counts = _count_values(rows, column)
        middle = found[:-1] / 2 + found[1:] / 2
        middle = np.where(middle < found[1:], middle, found[:-1])  # there may be none in between
        gaps.append((middle, counts.cumsum()[:-1]))
    lengths = np.array([len(middle) for middle, _ in gaps])
    limit = most
    while limit > 1 and np.minimum(lengths, limit).sum() > most_in_all:
        limit -= 1
    parts, n_steps = [np.empty((0, 2))], 0
    for column, (middle, below) in enumerate(gaps):
        if n_steps >= most_in_all:
            break
        chosen = _choose_gaps(middle, below, limit)
        parts.append(np.column_stack([np.full(len(chosen), float(column)), chosen]))
        n_steps += len(chosen)
    return np.concatenate(parts)[: max(most_in_all, 0)]


def _count_values(rows: Any, column: int) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return the different values of a column of an array or CSC matrix, and their numbers."""
    if isinstance(rows, np.ndarray):
        return np.unique(rows[:, column].astype(np.float64), return_counts=True)
    stored = rows.data[rows.indptr[column] : rows.indptr[column + 1]]
    n_zeros = rows.shape[0] - len(stored)
    found, counts = np.unique(np.append(stored.astype(np.float64), 0.0), return_counts=True)
    counts[found == 0] += n_zeros - 1
    return found[counts > 0], counts[counts > 0]


def _choose_gaps(
    middle: NDArray[np.float64], below: NDArray[np.intp], most: int
) -> NDArray[np.float64]:
    """Return some of the gaps, half of them at quantiles of rows, the others of values."""
    if len(middle) <= most:
        return middle
    n_quantiles = (most + 1) // 2
    total = below[-1] + 1
    at = np.searchsorted(below, total * (np.arange(n_quantiles) + 0.5) / n_quantiles)
    chosen = np.unique(at.clip(0, len(middle) - 1))
    others = np.setdiff1d(np.arange(len(middle)), chosen)
    n_more = most - len(chosen)
    if n_more > 0:
        even = others[((np.arange(n_more) + 0.5) * len(others) / n_more).astype(np.int64)]
        chosen = np.union1d(chosen, even)
    found: NDArray[np.float64] = middle[chosen]
    return found
