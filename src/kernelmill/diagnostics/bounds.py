r"""Bounds of the errors of kernel estimates, as functions.

Each bound is tested by simulation in ``tests/diagnostics/test_bounds.py``, which also measures how
far it is above the errors; the table is in ``docs/diagnostics.md``. Probabilities are for one pair
of rows fixed in advance; with `n_pairs`, they hold for many pairs simultaneously.

References
----------
Rahimi & Recht, "Random features for large-scale kernel machines" (2007).
Sivertsen, "Fastfood and Tensor Sketch" (thesis, 2014).
Pham & Pagh, "Fast and scalable polynomial kernels via explicit feature maps" (2013).
Le, Sarlós & Smola, "Fastfood: approximating kernel expansions in loglinear time" (2013).
Musco, "Random features for kernel learning" (lecture notes, 2017).
Tropp, "An introduction to matrix concentration inequalities" (2015).
Yu, Suresh, Choromanski, Holtmann-Rice & Kumar, "Orthogonal random features" (2016).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelmill.arguments import check_choice, check_integer, check_positive
from kernelmill.errors import ArgumentError

if TYPE_CHECKING:
    from kernelmill.diagnostics.approximation import Rows

__all__ = [
    "NormCondition",
    "fastfood_deviation",
    "fastfood_variance",
    "fourier_features",
    "fourier_tail",
    "gram_deviation",
    "norm_condition",
    "ridge_deviation",
    "sketch_largest_value",
    "sketch_mean_tail",
    "sketch_relative_tail",
    "sketch_variance",
    "sorf_bias",
]


def _fourier_exponent(features: str, group_size: int) -> float:
    """Return the c of the tail 2 exp(-c D tolerance^2), for D features."""
    check_choice("features", features, ("cos_sin", "complex", "cos_phase"))
    g = check_integer("group_size", group_size, 1)
    return {"cos_sin": 1 / (4 * g), "complex": 1 / (2 * g), "cos_phase": 1 / (2 * g + 1)}[features]


def fourier_tail(
    tolerance: float, n_components: int, *, features: str = "cos_sin", group_size: int = 1
) -> float:
    r"""Return the probability that an estimate of random frequencies is off by the tolerance.

    For D features of cosines and sines it is at most :math:`2 \exp(-D \epsilon^2 / 4)` (Sivertsen,
    2014, eq. 2.18), by Hoeffding's inequality for D / 2 numbers in [-1, 1]. For D complex features
    the exponent is twice as large. Rahimi & Recht state the same bound for D features
    :math:`\cos(z + b)`, where Hoeffding's inequality, for numbers in [-2, 2], would only give
    :math:`D \epsilon^2 / 8`. It holds: a product is :math:`\cos(z - z') + \cos(z + z' + 2b)`;
    given the frequency, the second part is a cosine of a uniform phase, whose moment generating
    function is at most :math:`e^{t^2/4}`, and the sum has :math:`2 \exp(-D \epsilon^2 / 3)`.

    Frequencies may depend on each other within groups of g if the groups are independent and each
    frequency has the distribution of the kernel. Examples are the rows of an orthogonal matrix and
    the blocks of Fastfood. The same argument then holds for the means of the groups: the exponents
    are :math:`D \epsilon^2 / (4 g)`, :math:`D \epsilon^2 / (2 g)` for complex features and
    :math:`D \epsilon^2 / (2 g + 1)` for phases. This is the bound for equal frequencies within each
    group, and far too large.

    Examples
    --------
    >>> from kernelmill.diagnostics.bounds import fourier_tail
    >>> round(fourier_tail(0.1, 1000), 3)
    0.164
    """
    tolerance = check_positive("tolerance", tolerance)
    exponent = _fourier_exponent(features, group_size)
    size = check_integer("n_components", n_components, 1)
    return min(1.0, 2 * math.exp(-exponent * size * tolerance**2))


def fourier_features(
    tolerance: float,
    probability: float,
    *,
    n_pairs: int = 1,
    features: str = "cos_sin",
    group_size: int = 1,
) -> int:
    """Return the number of features that `fourier_tail` requires, in whole groups.

    With this probability, the errors of all `n_pairs` pairs are within the tolerance (a union
    bound). There are n (n - 1) / 2 pairs of n rows.

    Examples
    --------
    >>> from kernelmill.diagnostics.bounds import fourier_features
    >>> fourier_features(0.01, 0.95)
    147556
    """
    tolerance = check_positive("tolerance", tolerance)
    failure = (1 - check_probability(probability)) / check_integer("n_pairs", n_pairs, 1)
    exponent = _fourier_exponent(features, group_size)
    needed = math.ceil(math.log(2 / failure) / (exponent * tolerance**2))
    if group_size == 1:
        return needed
    columns = group_size * (2 if features == "cos_sin" else 1)
    return -(-needed // columns) * columns


def sketch_variance(
    x: ArrayLike, y: ArrayLike, degree: int, n_components: int
) -> NDArray[np.float64] | float:
    r"""Return the variance of a tensor sketch's estimate of :math:`\langle x, y \rangle^p`.

    Pham & Pagh (2013, lemma 6; Sivertsen, 2014, eq. 2.60) bound it by
    :math:`(\langle x, y \rangle^{2p} + \|x\|^{2p} \|y\|^{2p}) / D`, which is too small for p > 1:
    entries of the tensor power that share indices share their signs. The variance is

    .. math::

        \frac 1D \sum_{m=1}^p \binom pm a^{p-m} (b^m + g^m) + \frac{r}{D^2}
        \bigl[(a+b+g)^p - (a+b)^p - (a+g)^p + a^p\bigr]

    with :math:`a = \langle x, y \rangle^2`, :math:`s = \sum_i x_i^2 y_i^2`,
    :math:`b = \|x\|^2 \|y\|^2 - s`, :math:`g = a - s`, and r = 2 for even D, 1 for odd. It is exact
    for ``hashing="independent"``.

    Parameters
    ----------
    x, y : array_like of shape (n_columns,) or (n_pairs, n_columns)
        For :math:`(\gamma \langle x, y \rangle + c)^p`, multiplied by :math:`\sqrt\gamma` and with
        a column of :math:`\sqrt c` appended.
    degree : int
        p.
    n_components : int
        D.

    Returns
    -------
    float or ndarray of shape (n_pairs,)
    """
    p = check_integer("degree", degree, 1)
    D = check_integer("n_components", n_components, 1)
    X, Y = (np.atleast_2d(np.asarray(each, np.float64)) for each in (x, y))
    variances = independent_variance(sketch_moments(X, Y), p, D)
    return variances if np.ndim(x) > 1 else float(variances[0])


class SketchMoments(NamedTuple):
    r"""The moments that determine the variance of sketches of two rows, for each pair.

    Attributes
    ----------
    a, b, g : ndarray of shape (n_pairs,)
        :math:`\langle x, y \rangle^2`, and the sums of :math:`x_i^2 y_j^2` and of
        :math:`x_i y_i x_j y_j` over different i and j.
    """

    a: NDArray[np.float64]
    b: NDArray[np.float64]
    g: NDArray[np.float64]


def independent_variance(moments: SketchMoments, p: int, D: int) -> NDArray[np.float64]:
    """Return `sketch_variance` from the moments of the rows."""
    a, b, g = moments
    large = (a + b) ** p + (a + g) ** p - 2 * a**p
    small = (a + b + g) ** p - (a + b) ** p - (a + g) ** p + a**p
    return np.maximum(large / D + (1 if D % 2 else 2) / D**2 * small, 0.0)


def sketch_moments(X: Rows, Y: Rows, *, gamma: float = 1.0, coef0: float = 0.0) -> SketchMoments:
    r"""Return the moments of pairs of rows for :math:`\gamma \langle x, y \rangle + c`.

    The constant c counts as one more column, :math:`\sqrt c`.
    """
    both = _products(X, Y)
    a = np.square(gamma * inner_products(X, Y) + coef0)
    s = gamma**2 * inner_products(both, both) + coef0**2
    norms = [gamma * inner_products(each, each) + coef0 for each in (X, Y)]
    return SketchMoments(a, np.maximum(norms[0] * norms[1] - s, 0.0), a - s)


def inner_products(X: Rows, Y: Rows) -> NDArray[np.float64]:
    """Return the inner product of each row of X and the same row of Y, dense or CSR."""
    return np.asarray(_products(X, Y).sum(axis=1), np.float64).ravel()


def _products(X: Rows, Y: Rows) -> Rows:
    return X * Y if isinstance(X, np.ndarray) else X.multiply(Y)


def sketch_relative_tail(tolerance: float, cosine: float, degree: int, n_components: int) -> float:
    r"""Return the probability that :math:`\langle x, y \rangle^p` is off by a relative tolerance.

    Pham & Pagh (2013, lemma 7) apply Chebyshev's inequality to the variance of their lemma 6; with
    the variance that the sketch has (`sketch_variance`), and :math:`b^m + g^m \le N^m + a^m`,
    :math:`N = \|x\|^2 \|y\|^2`, it is at most

    .. math:: \frac{(1 + c)^p + 2^p - 2}{D \epsilon^2}
        + \frac{2 \bigl[(1 + 2c)^p - 2 (1 + c)^p + 1\bigr]}{D^2 \epsilon^2},
        \quad c = 1 / \cos^2 \theta.

    Examples
    --------
    >>> from kernelmill.diagnostics.bounds import sketch_relative_tail
    >>> round(sketch_relative_tail(0.5, 0.9, 2, 1000), 4)
    0.028
    """
    tolerance = check_positive("tolerance", tolerance)
    p = check_integer("degree", degree, 1)
    D = check_integer("n_components", n_components, 1)
    if not 0 < abs(cosine) <= 1:
        raise ArgumentError(
            f"must be a cosine other than 0, from -1 to 1, got {cosine!r}", parameter="cosine"
        )
    c = 1 / cosine**2
    large = (1 + c) ** p + 2**p - 2
    small = (1 + 2 * c) ** p - 2 * (1 + c) ** p + 1
    return float(min(1.0, (large / D + 2 * small / D**2) / tolerance**2))


def sketch_largest_value(
    x: ArrayLike, y: ArrayLike, degree: int
) -> NDArray[np.float64] | np.float64:
    r"""Return the largest absolute value of an estimate: :math:`\|x\|_1^p \|y\|_1^p`.

    Pham & Pagh (2013, lemma 8). It always holds: each of the p count sketches of x has an
    :math:`\ell_1` norm of at most that of x, and so have their convolutions.
    """
    p = check_integer("degree", degree, 1)
    norms = [np.abs(np.asarray(each, np.float64)).sum(axis=-1) for each in (x, y)]
    largest: NDArray[np.float64] | np.float64 = (norms[0] * norms[1]) ** p
    return largest


def sketch_mean_tail(tolerance: float, n_sketches: int, radius: float, degree: int) -> float:
    r"""Return the probability that the mean of t independent sketches is off by the tolerance.

    At most :math:`2 \exp(-t \epsilon^2 / (2 R^{4p}))` for rows with :math:`\|x\|_1 \le R` (Pham &
    Pagh, 2013, lemma 9, by Hoeffding's inequality). The concatenated features of t maps, divided by
    :math:`\sqrt t`, have that mean as their inner product (``docs/which-map.md`` has the lines).
    One sketch with t times as many features has at most about the same variance, and is faster.

    Examples
    --------
    >>> from kernelmill.diagnostics.bounds import sketch_mean_tail
    >>> round(sketch_mean_tail(0.5, 40, 1.0, 2), 4)
    0.0135
    """
    tolerance = check_positive("tolerance", tolerance)
    largest = check_positive("radius", radius) ** (4 * check_integer("degree", degree, 1))
    t = check_integer("n_sketches", n_sketches, 1)
    return min(1.0, 2 * math.exp(-t * tolerance**2 / (2 * largest)))


class NormCondition(NamedTuple):
    """The conditions of `norm_condition`.

    Attributes
    ----------
    n_components : int
        The smallest sufficient number of features.
    largest_entry : float
        The upper limit of the entries of the tensor power of the row.
    """

    n_components: int
    largest_entry: float


def norm_condition(tolerance: float, probability: float) -> NormCondition:
    r"""Return when the squared length of a sketch of a unit vector is within the tolerance of 1.

    Pham & Pagh (2013, lemma 10, after Weinberger et al., 2009): if :math:`D \ge 72 \log(1 / \delta)
    / \epsilon^2` and :math:`\|x\|_\infty^p \le \epsilon / (18 \sqrt{\log(1 / \delta) \log(D /
    \delta)})`, with probability :math:`1 - 2 \delta`. The proof is for a count sketch. Applied
    to the sketch of a tensor power, whose entries share signs and buckets, it holds in simulations
    for degrees up to 4, and does not for degree 8.

    Examples
    --------
    >>> from kernelmill.diagnostics.bounds import norm_condition
    >>> norm_condition(0.5, 0.9).n_components
    863
    """
    tolerance = check_positive("tolerance", tolerance)
    delta = (1 - check_probability(probability)) / 2
    D = math.ceil(72 * math.log(1 / delta) / tolerance**2)
    root = math.sqrt(math.log(1 / delta) * math.log(D / delta))
    return NormCondition(D, tolerance / (18 * root))


def fastfood_variance(distance: ArrayLike, n_frequencies: int) -> NDArray[np.float64]:
    r"""Return the largest variance of a Gaussian kernel estimate by independent Fastfood blocks.

    .. math:: \frac 1n \Bigl[\frac 12 \bigl(1 - e^{-r^2}\bigr)^2
        + 6 r^4 \bigl(e^{-r^2} + r^2 / 3\bigr)\Bigr]

    for n frequencies in whole blocks of d, at distance r in length scales (Le, Sarlós & Smola,
    2013, Theorem 9). Their Corollary 10 has 2 instead of 1/2, which is larger. The first part is
    the variance of independent frequencies. The second grows as :math:`r^6`; measured variances
    are at most 2 times the first part.
    """
    r2 = np.square(np.asarray(distance, np.float64))
    n = check_integer("n_frequencies", n_frequencies, 1)
    return np.asarray(
        (np.square(1 - np.exp(-r2)) / 2 + 6 * r2**2 * (np.exp(-r2) + r2 / 3)) / n, np.float64
    )


def fastfood_deviation(
    distance: ArrayLike, n_frequencies: int, probability: float
) -> NDArray[np.float64]:
    r"""Return the largest error of the Gaussian kernel by Fastfood blocks, with this probability.

    .. math:: \frac{2 r}{\sqrt n} \sqrt{\log(2 / \delta) \log(2 n / \delta)}, \quad
        \delta = (1 - P) / 2

    at distance r in length scales (Le, Sarlós & Smola, 2013, Theorem 11, for one block of n = d).
    For independent blocks the same argument applies to all normals together: the mean has a
    Lipschitz constant smaller by the square root of the number of blocks, and the signs of all of
    them are good with probability :math:`1 - \delta`. The bound is for :math:`V = H G \Pi H B`,
    without the lengths S.
    """
    n = check_integer("n_frequencies", n_frequencies, 1)
    delta = (1 - check_probability(probability)) / 2
    root = math.sqrt(math.log(2 / delta) * math.log(2 * n / delta) / n)
    return np.asarray(2 * np.asarray(distance, np.float64) * root, np.float64)


def sorf_bias(
    distance: ArrayLike, n_columns: int, *, random_lengths: bool = False
) -> NDArray[np.float64]:
    r"""Return the largest difference of the mean of an estimate by SORF and the Gaussian kernel.

    :math:`6 r / \sqrt d` at distance r in length scales (Yu et al., 2016, Theorem 3), for
    frequencies :math:`\sqrt d \, (H D)^3` in d columns, padded with zeros to a power of two. They
    all have the length :math:`\sqrt d`. With the random lengths of normal vectors, as in
    ``Fastfood(structure="sorf")`` for d = 64, 128, 256, ..., the bound is :math:`7 r / \sqrt d`: a
    cosine changes by at most :math:`r \, |s - 1| \, |u|`, where :math:`s = \chi_d / \sqrt d` has
    :math:`E (s - 1)^2 \le 1 / d`, and u has mean square 1.

    The variance of SORF has no known bound. The bias is far below its bound: without random lengths
    it decreases as 1 / d; with them, none was found with 16 columns or more.

    Examples
    --------
    >>> from kernelmill.diagnostics.bounds import sorf_bias
    >>> float(sorf_bias(1.0, 3600))
    0.09375
    """
    d = 1 << (check_integer("n_columns", n_columns, 1) - 1).bit_length()
    factor = (7 if random_lengths else 6) / math.sqrt(d)
    return np.asarray(factor * np.asarray(distance, np.float64), np.float64)


def gram_deviation(
    n_rows: int, kernel_norm: float, n_frequencies: int, probability: float
) -> float:
    r"""Return the largest spectral-norm error of a Gram matrix, with this probability.

    By the matrix Bernstein inequality (Tropp, 2015) for m independent frequencies of a kernel with
    k(x, x) = 1, the t with

    .. math:: 2 n \exp\Bigl(\frac{-m t^2 / 2}{n \|K\| + n t / 3}\Bigr) = 1 - P.

    Musco (2017, section 4.3) states that about :math:`\sqrt n` frequencies give an error of
    :math:`\sqrt n`. By this bound, about :math:`2 (\|K\| + \sqrt n / 3) \log(2n)` do. This agrees,
    up to the logarithm, for matrices whose norm is about :math:`\sqrt n`, but not for those of
    smooth kernels, whose norm is nearly n.

    Parameters
    ----------
    n_rows : int
    kernel_norm : float
        The spectral norm of the Gram matrix K, at most `n_rows`.
    n_frequencies : int
        m: half the number of features of cosines and sines.
    probability : float
    """
    n = check_integer("n_rows", n_rows, 1)
    norm = check_positive("kernel_norm", kernel_norm)
    m = check_integer("n_frequencies", n_frequencies, 1)
    log = math.log(2 * n / (1 - check_probability(probability)))
    # The positive root of m t^2 / 2 = log (n |K| + n t / 3).
    linear = n * log / (3 * m)
    return linear + math.sqrt(linear**2 + 2 * n * norm * log / m)


def ridge_deviation(spectral_error: float, alpha: float) -> float:
    r"""Return the largest change of fitted values in ridge regression, relative to the targets.

    :math:`|\hat f - f| \le \|\hat K - K\| \, |y| / \alpha`, since :math:`\hat f - f = \alpha (K +
    \alpha)^{-1} (\hat K - K) (\hat K + \alpha)^{-1} y`.
    """
    return check_positive("spectral_error", spectral_error) / check_positive("alpha", alpha)


def check_probability(probability: float) -> float:
    """Return the probability as a float between 0 and 1."""
    value = check_positive("probability", probability)
    if value >= 1:
        raise ArgumentError(
            f"must be above 0 and below 1, got {probability!r}", parameter="probability"
        )
    return value
