"""The maps that apply to a kernel, and the recommended one for a tolerance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from kernelmill.diagnostics.records import FeatureRequirement
from kernelmill.errors import ArgumentError, Remedy
from kernelmill.formatting import plain
from kernelmill.kernels import (
    DotProductKernel,
    Gaussian,
    Kernel,
    Polynomial,
    RadialKernel,
    resolve,
    resolve_dot_product,
)
from kernelmill.maps import (
    DotProductFastfood,
    Fastfood,
    GaussianTemplates,
    Nystroem,
    RandomFourier,
    RandomMaclaurin,
    TaylorSketch,
    TensorSketch,
)

__all__ = ["list_maps", "recommend_map"]


_MOMENT = 1e-3  # seconds
_MOST_DENSE_COLUMNS = 8192  # of matrices and landmarks: beyond, they take gigabytes


def list_maps(
    kernel: Any = "gaussian",
    n_columns: int = 1,
    *,
    length_scale: Any = None,
    n_threads: int | None = None,
) -> list[Any]:
    """Return the maps that apply to a kernel, unfitted.

    Parameters
    ----------
    kernel : str, Kernel or DotProductKernel, default="gaussian"
        By name, also with parameters, or as an object of :mod:`kernelmill.kernels`. The name
        "exponential" is that of the shift-invariant kernel.
    n_columns : int, default=1
        The number of columns of the data. Beyond 8192, maps with dense matrices or landmarks are
        left out if other maps apply.
    length_scale : optional
        The length scale of shift-invariant kernels, as for :class:`~kernelmill.Fastfood`.
    n_threads : int, optional

    Returns
    -------
    list of FeatureMap

    Examples
    --------
    >>> from kernelmill.diagnostics import list_maps
    >>> [type(each).__name__ for each in list_maps("polynomial:degree=3,coef0=1")]
    ['TensorSketch', 'RandomMaclaurin', 'DotProductFastfood']
    """
    found = resolve_kernel(kernel)
    if isinstance(found, Kernel):
        return _shift_invariant_maps(found, n_columns, length_scale, n_threads)
    if length_scale is not None:
        raise ArgumentError(
            f"cannot be set: {type(found).__name__} has no length scale",
            Remedy("leave it out", length_scale=None),
            parameter="length_scale",
        )
    maps: list[Any] = []
    if isinstance(found, Polynomial):
        maps.append(
            TensorSketch(found.degree, gamma=found.gamma, coef0=found.coef0, n_threads=n_threads)
        )
    has_low_degrees = bool(found.coefficients(2).any())
    maps.append(RandomMaclaurin(found, h01=has_low_degrees, n_threads=n_threads))
    maps.append(DotProductFastfood(found, n_threads=n_threads))
    return maps


def resolve_kernel(kernel: Any) -> Kernel | DotProductKernel:
    if isinstance(kernel, (Kernel, DotProductKernel)):
        return kernel
    if isinstance(kernel, str) and kernel.partition(":")[0] in ("polynomial", "poly"):
        return resolve_dot_product(kernel)
    return resolve(kernel)


def _shift_invariant_maps(
    kernel: Kernel, n_columns: int, length_scale: Any, n_threads: int | None
) -> list[Any]:
    common = {"length_scale": length_scale, "n_threads": n_threads}
    maps: list[Any] = []
    if isinstance(kernel, RadialKernel):
        maps.append(Fastfood(kernel, **common))
        if kernel.gaussian_mixture or n_columns >= 16:
            maps.append(Fastfood(kernel, structure="sorf", **common))
    is_wide = n_columns > _MOST_DENSE_COLUMNS
    if not is_wide or not maps:
        maps.append(RandomFourier(kernel, store_matrix=not is_wide, **common))
    if isinstance(kernel, RadialKernel) and not is_wide:
        maps.append(RandomFourier(kernel, sampling="orthogonal", **common))
    if isinstance(kernel, Gaussian):
        maps += [TaylorSketch(**common), GaussianTemplates(**common)]
    return maps if is_wide else [*maps, Nystroem(kernel, **common)]


def recommend_map(requirements: Sequence[FeatureRequirement]) -> tuple[int | None, str]:
    """Return the map whose features take the least time, and why, in a sentence.

    Times up to a millisecond are considered equal; then the map with the fewest features is best.

    Returns
    -------
    index : int or None
        The index of the recommended map; None if no map reaches the tolerance.
    sentence : str
    """
    usable = [
        (at, each)
        for at, each in enumerate(requirements)
        if each.n_components is not None and each.seconds is not None
    ]
    if not usable:
        return None, "No map reaches the tolerance. Use a larger tolerance or another kernel."
    # What landmarks leave out of the kernel is missing in every model, however small it is; so they
    # are mentioned, and recommended only where nothing else can be.
    random = [pair for pair in usable if pair[1].map_name != "nystroem"] or usable
    # A fifth is within the chance of a measurement, and a moment does not matter: then fewer
    # features are better.
    enough = max(1.2 * min(_seconds(each) for _, each in random), _MOMENT)
    near = [(at, each) for at, each in random if _seconds(each) <= enough]
    at, best = min(near, key=lambda pair: pair[1].n_components or 0)
    rows = plain.count(best.n_rows, "row")
    share = plain.percent(best.probability).replace(".0 ", " ")
    sentence = (
        f"Use {best.label} with {plain.count(best.n_components, 'feature')}: {share} of the "
        f"pairs are then within {plain.number(best.tolerance)}, and the features of {rows} take "
        f"{_duration(best)}"
    )
    _, fewest = min(usable, key=lambda pair: pair[1].n_components or 0)
    if (fewest.n_components or 0) * 2 <= (best.n_components or 0):
        sentence += (
            f"; {fewest.label} needs the fewest, {plain.count(fewest.n_components)}, "
            f"and takes {_duration(fewest)}"
        )
    if (fewest.n_components or 0) >= best.n_rows:
        sentence += (
            "; the exact kernel is the better choice, since there are at least as "
            "many features as rows"
        )
    return at, sentence + "."


def _duration(requirement: FeatureRequirement) -> str:
    if _seconds(requirement) <= _MOMENT:
        return "less than 1 ms"
    return plain.duration(requirement.seconds)


def _seconds(requirement: FeatureRequirement) -> float:
    return math.inf if requirement.seconds is None else requirement.seconds
