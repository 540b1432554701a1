"""64-bit hashes of the rows of a matrix, and orders of hashes that a seed determines.

Rows with equal values have equal hashes, in any dtype, dense or sparse, and in any position. The
hash of a row is a mixed sum over its columns, in which zeros do not count. Different rows have the
same hash with probability 2**-64 each, unless somebody constructs them to.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # scipy.sparse is loaded when it is first used
from numpy.typing import NDArray

from kernelmill.random.stream import Stream

__all__ = ["Keys", "hash_numbers", "hash_rows", "mix", "multipliers", "rank_keys"]

Keys = NDArray[np.uint64]

_STEP = 0x9E3779B97F4A7C15  # the increment and the factors of SplitMix64 (Steele et al., 2014)
_FACTORS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_NAN = np.float64(np.nan).view(np.uint64)
_BLOCK = 1 << 12  # rows whose columns are hashed together, in a cache


def mix(values: Keys) -> Keys:
    """Return a permutation of the 64-bit integers under which each bit depends on all bits.

    The finalizer of SplitMix64; 0 stays 0.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.random.row_hashes import mix
    >>> mix(np.arange(3, dtype=np.uint64))
    array([                   0,  6238072747940578789, 15839785061582574730],
          dtype=uint64)
    """
    mixed = values ^ (values >> np.uint64(30))
    mixed *= _FACTORS[0]
    mixed ^= mixed >> np.uint64(27)
    mixed *= _FACTORS[1]
    mixed ^= mixed >> np.uint64(31)
    return mixed


def multipliers(columns: NDArray[Any]) -> Keys:
    """Return the odd number by which the bits of each column, from 0, are multiplied."""
    steps = (columns.astype(np.uint64) + np.uint64(1)) * np.uint64(_STEP)
    return mix(steps) | np.uint64(1)


def hash_numbers(values: NDArray[Any], factors: Any) -> Keys:
    """Return the summands of numbers in the hashes of their rows: 0 for zeros, one for all NaN.

    `factors` are those of their columns, as `multipliers` returns them.
    """
    numbers = values + np.float64(0.0)  # not -0.0
    bits: Keys = numbers.view(np.uint64)
    with np.errstate(all="ignore"):
        if np.isnan(numbers.sum()):  # there is a NaN, or infinities of both signs
            bits[np.isnan(numbers)] = _NAN
    # The last bits of integers are zero, and products do not change that.
    bits ^= bits >> np.uint64(32)
    bits *= factors
    bits ^= bits >> np.uint64(29)
    bits *= _FACTORS[1]
    bits ^= bits >> np.uint64(32)
    return bits


def hash_rows(X: Any) -> Keys:
    """Return a hash of each row of a matrix of real numbers.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_columns)
        Columns at the end that contain only zeros do not matter.

    Returns
    -------
    ndarray of uint64 of shape (n_rows,)

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from kernelmill.random.row_hashes import hash_rows
    >>> X = np.array([[0.0, 2.0], [2.0, 0.0], [-0.0, 2.0]])
    >>> hashes = hash_rows(X)
    >>> [int((hashes == each).sum()) for each in hashes]
    [2, 1, 2]
    >>> bool((hash_rows(csr_array(X.astype(np.float32))) == hashes).all())
    True
    """
    if scipy.sparse.issparse(X):
        return _hash_sparse(X)
    n_rows, n_columns = X.shape
    factors = multipliers(np.arange(n_columns))
    found = np.zeros(n_rows, np.uint64)
    for begin in range(0, n_rows, _BLOCK):
        rows = slice(begin, begin + _BLOCK)
        for column, factor in zip(np.ascontiguousarray(X[rows].T), factors, strict=True):
            found[rows] += hash_numbers(column, factor)
    return mix(found)


def _hash_sparse(X: Any) -> Keys:
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    entries = hash_numbers(X.data, multipliers(X.indices))
    sums = np.append(np.uint64(0), np.cumsum(entries, dtype=np.uint64))  # modulo 2**64
    return mix(sums[X.indptr[1:]] - sums[X.indptr[:-1]])


def rank_keys(keys: Keys, stream: Stream) -> Keys:
    """Return a random number for each key, uniform among the 64-bit integers.

    It depends on the stream and the key alone, so that equal keys have equal numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.random import Stream
    >>> from kernelmill.random.row_hashes import rank_keys
    >>> ranks = rank_keys(np.array([7, 8, 7], np.uint64), Stream.from_seed(0))
    >>> bool(ranks[0] == ranks[2] != ranks[1])
    True
    """
    low, high = (np.uint64(stream.key >> shift & 2**64 - 1) for shift in (0, 64))
    return mix(mix(keys ^ low) + high)
