"""The choice of a feature map by a name and options, or by a map itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sklearn.base import clone

from kernelmill.arguments import check_integer
from kernelmill.errors import ArgumentError, Remedy
from kernelmill.maps.base import FeatureMap
from kernelmill.maps.registry import MAPS, map_name, map_parameters

__all__ = ["MapChoice"]

_DEFAULT_COMPONENTS = {"classification": 4096, "regression": 2048}
# Less error than the default structure at the same speed (README, "Which to take").
_DEFAULT_OPTIONS = {"fastfood": {"structure": "sorf"}}


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
        if not isinstance(self.feature_map, str) or self.feature_map not in MAPS:
            known = ", ".join(MAPS)
            raise ArgumentError(
                f"must be one of {known}, or one of kernelmill's maps, got {self.feature_map!r}",
                parameter="feature_map",
            )
        known_options = map_parameters(self.feature_map)
        for name in ({"kernel"} if self.kernel is not None else set()) | set(self.options):
            if name not in known_options:
                raise ArgumentError(
                    f"{self.feature_map} has no parameter {name!r}",
                    "leave it out",
                    Remedy("choose another map", feature_map=...),
                )

    @property
    def name(self) -> str:
        """The map's name."""
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
        return (
            "length_scale" in map_parameters(self.feature_map)
            and "length_scale" not in self.options
        )

    def n_components(self, given: int | None, task: str) -> int:
        """The number of features: as given, that of the map, or the default of the task."""
        if given is not None:
            return check_integer("n_components", given, 1)
        if isinstance(self.feature_map, FeatureMap):
            return int(self.feature_map.n_components)
        return _DEFAULT_COMPONENTS[task]

    def make(
        self, length_scale: float | None, n_components: int, seed: int, n_threads: int | None
    ) -> Any:
        """An unfitted map."""
        if isinstance(self.feature_map, FeatureMap):
            made = clone(self.feature_map).set_params(n_components=n_components)
            if made.random_state is None:
                made.set_params(random_state=seed)
        else:
            options: dict[str, Any] = {**_DEFAULT_OPTIONS.get(self.feature_map, {}), **self.options}
            if self.kernel is not None:
                options["kernel"] = self.kernel
            made = MAPS[self.feature_map](
                n_components=n_components, random_state=seed, n_threads=n_threads, **options
            )
        if length_scale is not None and "length_scale" in made.get_params(deep=False):
            made.set_params(length_scale=length_scale)
        return made
