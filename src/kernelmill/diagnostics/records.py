"""The results of diagnostics as records, without the code that measures them."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelmill.files.fields import Stored

__all__ = ["FeatureRequirement"]


@dataclass(frozen=True)
class FeatureRequirement(Stored):
    """The number of features that a map needs, and their cost.

    Attributes
    ----------
    map_name, construction : str
    tolerance, probability : float
    unit : float
        The unit of the tolerance: the mean of k(x, x), which is 1 for kernels of the distance.
    from_bound : int or None
        The number by a bound; None if no bound is known or the number is above 2**40, as for all
        numbers below.
    bound : str
        Its name.
    from_variance : int or None
        The number by the theoretical variance, as if errors were normal.
    variance_is_exact : bool
        Whether this is the variance of the map itself; otherwise it is that of a similar
        construction.
    measured, low, high : int or None
        The measured number and its 95 % interval; None if errors are not finite.
    is_extrapolated : bool
        Whether `measured` is beyond the largest number that was measured. Errors are then assumed
        to decrease with the square root of the number.
    n_components : int or None
        The number to use: `measured`, rounded up to a length with fast transforms.
    seconds : float or None
        The time to compute these features for `n_rows` rows, from a short measurement.
    map_bytes : int or None
        The memory of the coefficients of the map.
    stored_bytes : int or None
        The memory that the features of all rows would take in float32. The estimators of kernelmill
        compute features in blocks and never store them.
    n_rows : int
    sizes, errors, lows, highs : list
        The numbers of features that were measured, the error that the given share of the pairs
        did not exceed, in units of `unit`, and its 95 % interval.
    settings : dict
        Parameters of the map other than the defaults.
    """

    map_name: str
    construction: str
    tolerance: float
    probability: float
    unit: float
    from_bound: int | None
    bound: str
    from_variance: int | None
    variance_is_exact: bool
    measured: int | None
    low: int | None
    high: int | None
    is_extrapolated: bool
    n_components: int | None
    seconds: float | None
    map_bytes: int | None
    stored_bytes: int | None
    n_rows: int
    sizes: list[int] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    lows: list[float] = field(default_factory=list)
    highs: list[float] = field(default_factory=list)
    settings: dict[str, bool | int | float | str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The name of the map, with its variant if that is not the default."""
        variant = self.settings.get("structure") or self.settings.get("sampling")
        return f"{self.map_name} ({variant})" if variant else self.map_name
