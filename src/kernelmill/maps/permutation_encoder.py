"""Encoding of permutations as vectors, for the maps of dot-product kernels."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy  # scipy.sparse is loaded on first use
from numpy.typing import DTypeLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from kernelmill.arguments import check_choice, check_dtype, check_flag, check_integer
from kernelmill.errors import ArgumentError, ArgumentTypeError, Remedy
from kernelmill.kernels.points import dense_blocks

__all__ = ["PermutationEncoder"]

_ENCODINGS = ("matrix", "pairs")


class PermutationEncoder(
    TransformerMixin,  # type: ignore[misc] # scikit-learn is untyped
    BaseEstimator,  # type: ignore[misc]
):
    r"""Encoder of permutations as vectors whose inner products compare them.

    A row of the input is an order of n items: entry j is the item at place j. Dot-product kernels
    of the encoded rows are kernels on the symmetric group (Le, Sarlós & Smola, 2013, Remark 8), and
    do not change if the items are renumbered.

    Parameters
    ----------
    encoding : {"matrix", "pairs"}, default="matrix"
        "matrix" is the permutation matrix, place after place: n² columns, of which n are not zero.
        Inner products are the share of places at which two permutations agree.
        "pairs" has a column for each of the n (n - 1) / 2 pairs of items, positive where the first
        stands before the second and negative otherwise. Inner products are Kendall's tau.
    first : int, default=0
        The number of the first item: the items are ``first``, ..., ``first + n - 1``.
    normalize : bool, default=True
        Whether rows have length 1. If not, nonzero entries are 1 or -1, and inner products count
        places of agreement, or pairs in the same order minus pairs in opposite order.
    sparse_output : bool, default=True
        Whether "matrix" gives a CSR array. "pairs" has no zeros and is always dense.
    dtype : {float64, float32}, default=float64
        The dtype of the encoded rows.

    Attributes
    ----------
    n_items_ : int
        The number of items, n.
    n_features_in_ : int
        The same.
    feature_names_in_ : ndarray of str
        The names of the places, if X had column names at `fit`.

    Notes
    -----
    If entry j is not the item at place j but the place (the rank) of item j, pass
    ``numpy.argsort(ranks, axis=1)``. For "matrix" this only reorders the columns; for "pairs" it
    makes the difference between pairs of items and pairs of places.

    Examples
    --------
    >>> from kernelmill import PermutationEncoder
    >>> orders = [[0, 1, 2, 3], [0, 1, 3, 2], [3, 2, 1, 0]]
    >>> z = PermutationEncoder().fit_transform(orders)
    >>> z.shape
    (3, 16)
    >>> (z @ z.T).toarray()  # the share of places at which they agree
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0. ],
           [0. , 0. , 1. ]])
    >>> z = PermutationEncoder("pairs").fit_transform(orders)
    >>> (z @ z.T).round(3)  # Kendall's tau
    array([[ 1.   ,  0.667, -1.   ],
           [ 0.667,  1.   , -0.667],
           [-1.   , -0.667,  1.   ]])
    """

    def __init__(
        self,
        encoding: str = "matrix",
        *,
        first: int = 0,
        normalize: bool = True,
        sparse_output: bool = True,
        dtype: DTypeLike = np.float64,
    ) -> None:
        self.encoding = encoding
        self.first = first
        self.normalize = normalize
        self.sparse_output = sparse_output
        self.dtype = dtype

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the number of items, and check that the rows are permutations of them.

        Parameters
        ----------
        X : array_like of shape (n_samples, n)
            Permutations, one per row: integers of any dtype.
        y : None
            Ignored.

        Returns
        -------
        self
            If an error is raised, the encoder is unchanged.
        """
        before = dict(vars(self))
        try:
            self._check_parameters()
            n = self._check_items(X, reset=True).shape[1]
            self._check_pairs(n)
            self.n_items_ = n
        except BaseException:
            self.__dict__ = before
            raise
        return self

    def transform(self, X: Any) -> Any:
        """Encode the rows of X.

        Parameters
        ----------
        X : array_like of shape (n_samples, n)
            Permutations, one per row.

        Returns
        -------
        csr_array or ndarray of shape (n_samples, n²), or ndarray of shape (n_samples, n (n-1) / 2)
        """
        check_is_fitted(self)
        self._check_parameters()
        self._check_pairs(self.n_items_)
        items = self._check_items(X, reset=False)
        if self.encoding == "pairs":
            return self._pairs(items)
        return self._sparse_matrix(items) if self.sparse_output else self._dense_matrix(items)

    def inverse_transform(self, X: Any) -> NDArray[np.int64]:
        """Return the permutations of encoded rows.

        Parameters
        ----------
        X : array_like or scipy sparse, of the shape that `transform` gives
            Encoded rows; entries may be off by a thousandth of the nonzero ones.

        Returns
        -------
        ndarray of shape (n_samples, n)
        """
        check_is_fitted(self)
        Z = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
        if Z.shape[1] != self._n_columns():
            raise ArgumentError(
                f"must have the {self._n_columns()} columns that transform returns, "
                f"got {Z.shape[1]}",
                parameter="X",
            )
        items = self._decode_sparse(Z)
        if items is not None:
            items += self.first
            return items
        items = np.empty((Z.shape[0], self.n_items_), np.int64)
        for rows, block in dense_blocks(Z):
            decoded = self._decode(block)
            again = (
                self._pairs(decoded) if self.encoding == "pairs" else self._dense_matrix(decoded)
            )
            wrong = (np.abs(again - block) > 1e-3 * self._entry()).any(axis=1)
            wrong |= ~_are_permutations(decoded)
            if wrong.any():
                raise ArgumentError(
                    "must contain encoded permutations, but row "
                    f"{rows.start + int(np.argmax(wrong))} is not an encoded permutation",
                    "pass rows that transform returned",
                    parameter="X",
                )
            items[rows] = decoded
        items += self.first
        return items

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the column names: "item2_at_place5" or "item2_before_item4".

        Items and places are numbered from `first`, as in the input. If places have names, features
        are called "item2_at_name".

        Parameters
        ----------
        input_features : array_like of str, default=None
            Names of the places; by default those that `fit` saw.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        n = self.n_items_
        numbers = range(self.first, self.first + n)
        names = self._names_of_places(input_features)
        if self.encoding == "pairs":
            labels = [f"item{a}_before_item{b}" for a in numbers for b in numbers if a < b]
        else:
            labels = [f"item{item}_at_{place}" for place in names for item in numbers]
        return np.asarray(labels, dtype=object)

    def _names_of_places(self, input_features: Any) -> list[str]:
        known = getattr(self, "feature_names_in_", None)
        if input_features is None:
            if known is not None:
                return list(known)
            return [f"place{j}" for j in range(self.first, self.first + self.n_items_)]
        given = list(input_features)
        if known is not None and given != list(known):
            raise ValueError("input_features is not equal to feature_names_in_")
        if len(given) != self.n_items_:
            raise ValueError(
                "input_features should have length equal to number of features "
                f"({self.n_items_}), got {len(given)}"
            )
        return given

    def _check_parameters(self) -> None:
        check_choice("encoding", self.encoding, _ENCODINGS)
        check_integer("first", self.first, 0, 2**31)
        check_dtype(self.dtype, ("float64", "float32"))
        check_flag("normalize", self.normalize)
        check_flag("sparse_output", self.sparse_output)

    def _check_pairs(self, n: int) -> None:
        if self.encoding == "pairs" and n < 2:
            raise ArgumentError(
                f"must have at least 2 columns to encode pairs of items, got n_features = {n}",
                "pass permutations of more items",
                Remedy("use permutation matrices", encoding="matrix"),
                parameter="X",
            )

    def _check_items(self, X: Any, *, reset: bool) -> NDArray[np.int64]:
        """Return the permutations of X, with items counted from 0."""
        numbers = self._check_numbers(X, reset=reset)
        first, n = self.first, numbers.shape[1]
        good = (numbers >= first) & (numbers < first + n)
        if numbers.dtype.kind == "f":
            good &= numbers == np.floor(numbers)
        if not good.all():
            row, place = np.argwhere(~good)[0]
            raise self._row_error(int(row), *_explain_entry(numbers[row], place, first))
        items: NDArray[np.int64] = numbers.astype(
            np.int64
        )  # a copy even of int64: it is changed below
        items -= first
        complete = _are_permutations(items)
        if not complete.all():
            row = np.argmin(complete)
            raise self._row_error(int(row), *_explain_repetition(items[row], first))
        return items

    def _check_numbers(self, X: Any, *, reset: bool) -> NDArray[Any]:
        """X as an array of integers or floats with the columns that `fit` saw."""
        if isinstance(X, np.ma.MaskedArray):
            raise ArgumentTypeError(
                "is a masked array, whose mask would be lost",
                "drop the masked rows first",
                parameter="X",
            )
        # Missing and infinite entries pass here: the check of permutations reports their row.
        numbers = np.asarray(
            validate_data(self, X, dtype="numeric", ensure_all_finite=False, reset=reset)
        )
        if numbers.dtype.kind not in "biuf":
            raise ArgumentTypeError(
                f"must contain integers, got dtype {numbers.dtype}",
                "pass the items as integers",
                parameter="X",
            )
        return numbers

    def _row_error(self, row: int, problem: str, *remedies: Remedy) -> ArgumentError:
        last = self.first + self.n_features_in_ - 1
        return ArgumentError(
            f"must contain a permutation of the integers from {self.first} to {last} in each "
            f"row, but row {row} {problem}",
            *remedies,
            parameter="X",
        )

    def _n_columns(self) -> int:
        n: int = self.n_items_
        return n * (n - 1) // 2 if self.encoding == "pairs" else n * n

    def _entry(self) -> float:
        """Return the absolute value of the entries that are not zero."""
        if not self.normalize:
            return 1.0
        count = self._n_columns() if self.encoding == "pairs" else self.n_items_
        return float(1 / np.sqrt(count))

    def _sparse_matrix(self, items: NDArray[np.int64]) -> Any:
        n_rows, n = items.shape
        # 32-bit indices wherever they suffice: some solvers take no others.
        small = max(items.size, n * n) < 2**31
        index = np.int32 if small else np.int64
        columns = (items + n * np.arange(n)).astype(index, copy=False).reshape(-1)
        starts = np.arange(0, items.size + 1, n, dtype=index)
        entries = np.full(items.size, self._entry(), self.dtype)
        return scipy.sparse.csr_array((entries, columns, starts), (n_rows, n * n))

    def _dense_matrix(self, items: NDArray[np.int64]) -> NDArray[Any]:
        n_rows, n = items.shape
        out = np.zeros((n_rows, n, n), self.dtype)
        np.put_along_axis(out, items[:, :, np.newaxis], self._entry(), axis=2)
        return out.reshape(n_rows, n * n)

    def _pairs(self, items: NDArray[np.int64]) -> NDArray[Any]:
        n = items.shape[1]
        places = np.argsort(items, axis=1)
        out = np.empty((len(items), n * (n - 1) // 2), self.dtype)
        end = 0
        for item in range(n - 1):
            begin, end = end, end + n - 1 - item
            before = places[:, item, np.newaxis] < places[:, item + 1 :]
            out[:, begin:end] = np.where(before, self._entry(), -self._entry())
        return out

    def _decode_sparse(self, Z: Any) -> NDArray[np.int64] | None:
        """Return the items of a CSR matrix as `transform` makes them; None for other matrices."""
        n = self.n_items_
        if isinstance(Z, np.ndarray) or self.encoding != "matrix" or Z.nnz != Z.shape[0] * n:
            return None
        columns = Z.indices.astype(np.int64).reshape(-1, n)
        items = columns - n * np.arange(n)
        as_made = (
            (np.diff(Z.indptr) == n).all()
            and (items >= 0).all()
            and (items < n).all()
            and (np.abs(Z.data - self._entry()) <= 1e-3 * self._entry()).all()
        )
        return items if as_made and _are_permutations(items).all() else None

    def _decode(self, block: NDArray[Any]) -> NDArray[np.int64]:
        """Return the items of encoded rows; arbitrary if they are not encoded permutations."""
        n = self.n_items_
        if self.encoding == "matrix":
            return np.asarray(np.argmax(block.reshape(-1, n, n), axis=2), np.int64)
        # An item's place is the number of items before it.
        places = np.zeros((len(block), n), np.int64)
        end = 0
        for item in range(n - 1):
            begin, end = end, end + n - 1 - item
            before = block[:, begin:end] > 0
            places[:, item + 1 :] += before
            places[:, item] += (~before).sum(axis=1)
        return np.argsort(places, axis=1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True  # the numbers of items are names, not quantities
        tags.transformer_tags.preserves_dtype = []  # `dtype` determines the output
        return tags


def _are_permutations(items: NDArray[np.int64]) -> NDArray[np.bool_]:
    """For each row of numbers from 0 to n - 1, whether each is there."""
    seen = np.zeros(items.shape, np.bool_)
    np.put_along_axis(seen, items, True, axis=1)
    return np.asarray(seen.all(axis=1))


def _explain_entry(row: NDArray[Any], place: int, first: int) -> tuple[str, *tuple[Remedy, ...]]:
    """The problem with the entry at a place, and remedies; `first` is the first item's number."""
    value = row[place]
    if np.isnan(value):
        return f"has NaN at column {place}", Remedy("drop or complete such rows")
    if np.isinf(value):
        return f"has infinity at column {place}", Remedy("drop or complete such rows")
    if value != np.floor(value):
        problem = f"has {value} at column {place}, which is not an integer"
        return problem, Remedy("drop or correct such rows")
    problem = f"has {value} at column {place}, which is out of range"
    for start in {0, 1} - {first}:
        if (np.sort(row) == start + np.arange(len(row))).all():
            return problem, Remedy(f"count items from {start}", first=start)
    return problem, Remedy("drop or correct such rows")


def _explain_repetition(items: NDArray[np.int64], first: int) -> tuple[str, Remedy]:
    item = int(np.argmax(np.bincount(items)))
    one, other = np.flatnonzero(items == item)[:2]
    problem = f"has {item + first} twice, at columns {one} and {other}"
    return problem, Remedy("drop or correct such rows")
