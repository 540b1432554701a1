"""Random Maclaurin as published, the yardstick of Pham & Pagh (2013)."""

from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray


def plain_maclaurin(
    X: Any, degree: int, coef0: float, n_columns: int, seed: int
) -> NDArray[np.float64]:
    """Return features of (<x, y> + coef0) ** degree as Kar & Karnick (2012) draw them.

    Every column draws its own degree n with the probability 2 ** -(n + 1), whether the kernel has
    a term of it or not: of <x, y>^4, 31 columns in 32 are zeros. `kernelmill.RandomMaclaurin`
    draws degrees that the kernel has, and spreads them evenly.
    """
    rng = np.random.default_rng(seed)
    degrees = rng.geometric(0.5, n_columns) - 1
    Z = np.zeros((X.shape[0], n_columns))
    for n in range(degree + 1):
        coefficient = comb(degree, n) * coef0 ** (degree - n)
        columns = np.flatnonzero(degrees == n)
        product = np.full((X.shape[0], columns.size), np.sqrt(coefficient * 2 ** (n + 1)))
        for _ in range(n):
            product *= X @ rng.choice([-1.0, 1.0], (X.shape[1], columns.size))
        Z[:, columns] = product / np.sqrt(n_columns)
    return Z
