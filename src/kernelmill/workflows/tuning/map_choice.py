"""The choice of a feature map by a name and options, or by a map itself."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import clone

from kernelmill.arguments import check_integer
from kernelmill.errors import ArgumentError, Remedy
from kernelmill.kernels import Kernel, Polynomial, resolve
from kernelmill.maps.additive_fourier import find_steps
from kernelmill.maps.base import FeatureMap
from kernelmill.maps.registry import MAPS, map_name, map_parameters

__all__ = ["AUTO", "BRIEF_KERNELS", "DIRECTIONS", "LINE", "STEPS", "MapChoice"]

AUTO = "auto"
"""Fastfood for kernels of the Euclidean distance, random Fourier features for others."""
STEPS = "additive_fourier"
"""The map of random features and step functions of single columns."""
DIRECTIONS = "principal_fourier"
"""The map of random features of principal components."""
LINE = 1e4
"""The weight of a linear kernel beside which the other one is negligible."""
BRIEF_KERNELS = ("matern:nu=2.5", "rational_quadratic")
"""Kernels between others, whose length scales are nearly those of the Gaussian kernel."""

# To choose from. The length scales of the last two are searched for only briefly.
_KERNELS = ("gaussian", "matern", "exponential", "laplacian", *BRIEF_KERNELS)
_MOST_COMPONENTS = 1 << 22  # weights and scratch of training take some 100 bytes for each
_MOST_LAPLACIAN_COLUMNS = 128  # a dense projection costs O(d) operations for each feature

# A homogeneous polynomial of degree 2 has no linear terms (docs/decisions/017).
_DEFAULT_OPTIONS: dict[str, dict[str, Any]] = {
    "tensor_sketch": {"coef0": 1.0},
    "dot_product_fastfood": {"kernel": Polynomial(2, coef0=1.0)},
    "random_maclaurin": {"kernel": Polynomial(2, coef0=1.0)},
}
_POLYNOMIALS = ("tensor_sketch", "dot_product_fastfood", "random_maclaurin", "count_sketch")


@dataclass(frozen=True)
class MapChoice:
    """How to construct the map of a model.

    Attributes
    ----------
    feature_map : str or FeatureMap
        A name, or a map, whose parameters are used.
    kernel : str or Kernel or None
        None for the map's default.
    options : dict
        Further parameters of a named map.
    """

    feature_map: Any
    kernel: Any = None
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.feature_map, FeatureMap):
            if self.kernel is not None or self.options:
                raise ArgumentError(
                    f"kernel and map_options are for maps given by name, got {self.feature_map!r}",
                    "set the parameters of the map",
                )
            return
        if not isinstance(self.feature_map, str) or self.feature_map not in (AUTO, *MAPS):
            known = ", ".join((AUTO, *MAPS))
            raise ArgumentError(
                f"must be one of {known}, or a map of kernelmill, got {self.feature_map!r}",
                parameter="feature_map",
            )
        known_options = map_parameters(self.name)
        for name in ({"kernel"} if self.kernel is not None else set()) | set(self.options):
            if name not in known_options:
                raise ArgumentError(
                    f"{self.feature_map} has no parameter {name!r}",
                    "leave it out",
                    Remedy("choose another map", feature_map=...),
                )
        is_radial_only = self.feature_map in ("fastfood", DIRECTIONS)
        if is_radial_only and not self._shift_invariant_kernel().radial:
            raise ArgumentError(
                "must be radial (a function of the Euclidean distance) for the map "
                f"{self.feature_map}, got {type(self._shift_invariant_kernel()).__name__}",
                Remedy("use a map for all shift-invariant kernels", feature_map="random_fourier"),
                parameter="kernel",
            )

    def check(self) -> None:
        """Raise an error if an option of a named map has a value that is not allowed."""
        if self.options:
            self.make(None, 1, 0, None)._check_parameters()

    def _shift_invariant_kernel(self) -> Kernel:
        given = self.options.get("kernel", "gaussian")
        return resolve(given if self.kernel is None else self.kernel)

    def _default_options(self) -> dict[str, Any]:
        """Return default options of a named map that the user has not set.

        "sorf" has less error than the default structure at the same speed (docs/which-map.md), but
        with few columns it is restricted to scale mixtures of Gaussians.
        """
        if self.name != "fastfood":
            return _DEFAULT_OPTIONS.get(self.name, {})
        is_mixture = getattr(self._shift_invariant_kernel(), "gaussian_mixture", False)
        return {"structure": "sorf"} if is_mixture else {}

    @property
    def name(self) -> str:
        """The map's name."""
        if self.feature_map == AUTO:
            is_radial = self.kernel is None or resolve(self.kernel).radial
            return "fastfood" if is_radial else "random_fourier"
        if isinstance(self.feature_map, str):
            return self.feature_map
        return map_name(self.feature_map) or type(self.feature_map).__name__

    @property
    def has_length_scale(self) -> bool:
        """Whether the map has a length scale that is not set yet."""
        if isinstance(self.feature_map, FeatureMap):
            parameters = self.feature_map.get_params(deep=False)
            return (
                "length_scale" in parameters
                and parameters["length_scale"] is None
                and parameters.get("gamma") is None
            )
        return "length_scale" in map_parameters(self.name) and "length_scale" not in self.options

    @property
    def takes_column_scales(self) -> bool:
        """Whether each column may have a length scale of its own."""
        return self.name != DIRECTIONS

    @property
    def kernel_name(self) -> Any:
        """The kernel by its name or as an object; "gaussian" for maps that have no choice."""
        if isinstance(self.feature_map, FeatureMap):
            return getattr(self.feature_map, "kernel", "gaussian")
        return "gaussian" if self.kernel is None else self.kernel

    @property
    def is_linear(self) -> bool:
        """Whether the kernel is linear but for a negligible part."""
        return bool(self.options.get("linear", 0.0) >= LINE)

    @property
    def variant(self) -> str:
        """Return the changes of the map by tuning other than its kernel; "" if there are none."""
        if "linear" in self.options:
            weight = self.options["linear"]
            return "linear kernel" if self.is_linear else f"linear kernel, weight {weight:g}"
        if self.feature_map == STEPS and "weight" in self.options:
            return f"steps, weight {self.options['weight']:g}"
        if np.ndim(self.options.get("directions", 0)):
            return f"{len(self.options['directions'])} principal components"
        return ""

    def candidates(self, dim: int) -> list[MapChoice]:
        """Return the choices to compare for data of `dim` columns: one if the kernel is fixed."""
        if self.feature_map == AUTO and self.kernel is None:
            names = [
                name for name in _KERNELS if name != "laplacian" or dim <= _MOST_LAPLACIAN_COLUMNS
            ]
        elif self.feature_map in ("nystroem", STEPS) and self.kernel is None:
            names = list(_KERNELS)
        elif self.feature_map in ("fastfood", "random_fourier", DIRECTIONS) and self.kernel is None:
            names = [name for name in _KERNELS if resolve(name).radial]
        else:
            return [self]
        return [replace(self, kernel=name) for name in names]

    def with_steps_of(self, X: Any, n_components: int, length_scale: Any) -> MapChoice:
        """Return the choice with the steps of these rows, if it has any that are not given.

        A learner that reads blocks would place them by the first one.
        """
        if self.feature_map != STEPS or np.ndim(self.options.get("steps", 0)):
            return self
        most = self.options.get("steps", signature(MAPS[STEPS]).parameters["steps"].default)
        scales = 1.0 if length_scale is None else length_scale
        steps = find_steps(X, most, n_components // 2, scales)
        return replace(self, options={**self.options, "steps": steps})

    @property
    def scales_rows(self) -> bool:
        """Whether rows are scaled: for named maps of inner products, unless gamma is given."""
        return self.feature_map in _POLYNOMIALS and "gamma" not in self.options

    def n_components(self, given: int | None) -> int | None:
        """Return the number of features, given or that of the map; None if it is to be chosen."""
        if given is not None:
            return check_integer("n_components", given, 1, _MOST_COMPONENTS)
        if isinstance(self.feature_map, FeatureMap):
            return int(self.feature_map.n_components)
        return None

    def make(self, length_scale: Any, n_components: int, seed: int, n_threads: int | None) -> Any:
        """Return an unfitted map."""
        if isinstance(self.feature_map, FeatureMap):
            made = clone(self.feature_map).set_params(n_components=n_components)
            if made.random_state is None:
                made.set_params(random_state=seed)
        else:
            options = {**self._default_options(), **self.options}
            if self.kernel is not None:
                options["kernel"] = self.kernel
            made = MAPS[self.name](
                n_components=n_components, random_state=seed, n_threads=n_threads, **options
            )
        if length_scale is not None and "length_scale" in made.get_params(deep=False):
            made.set_params(length_scale=length_scale)
        return made
