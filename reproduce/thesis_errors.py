"""The experiments of Sivertsen (2014), section 4.1, appendices C and D: errors of estimates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.diagnostics import KernelErrors
from kernelmill.kernels import Gaussian, Polynomial, convert, squared_norms
from kernelmill.maps import Fastfood, TensorSketch
from reproduce.claims import claim_ratio, claim_rows, claim_slope
from reproduce.declaration import Cell, Column, Experiment, Paper, Points, Scale
from reproduce.measuring import estimate_pairs, geometric, run_seeds

__all__ = ["PAPER", "THESIS_ERRORS"]

PAPER = Paper(
    "thesis",
    "Sivertsen (2014)",
    "Scalable learning through linearithmic time kernel approximation techniques",
    "Fastfood for the Gaussian kernel and Tensor Sketch for the polynomial kernel, side by side: "
    "how accurate the estimates are, how long they take, and what they are worth on MNIST.",
)

_DIM = 16
_MOST_POINTS = 500
_EXACT = 1e-9  # errors below are rounding

_RELATIVE = (
    "Relative errors are means over the pairs where they are at most 100 %, as in the thesis."
)


def _fastfood(n: int, sigma: float, seed: int, **settings: Any) -> Any:
    """D features of the thesis: as many cosines and as many sines."""
    settings = {"blocks": "independent", **settings}
    return Fastfood(n_components=2 * n, length_scale=sigma, random_state=seed, **settings)


def _tensor_sketch(n: int, seed: int, hashing: str = "independent") -> Any:
    return TensorSketch(2, n_components=n, hashing=hashing, random_state=seed)


def _gaussian(x: Any, y: Any, sigma: float) -> NDArray[np.float64]:
    values: NDArray[np.float64] = np.exp(-((x - y) ** 2).sum(axis=1) / (2 * sigma**2))
    return values


def _square(x: Any, y: Any) -> NDArray[np.float64]:
    values: NDArray[np.float64] = np.einsum("ij,ij->i", x, y) ** 2
    return values


def _round_points(panel: str, x: Any, y: Any) -> Points:
    """Points for a plot, which shows no more than four digits."""
    return Points(panel, *(tuple(float(f"{value:.4g}") for value in values) for values in (x, y)))


# Table 4.1 and Figure 4.3: errors against the number of features --------------------------------

_TABLE_4_1 = {
    16: ("0.083", "11.82", "8.39", "44.01"),
    32: ("0.057", "8.14", "5.56", "34.32"),
    64: ("0.047", "6.74", "4.99", "28.57"),
    128: ("0.033", "4.68", "3.63", "22.02"),
    256: ("0.022", "3.08", "2.19", "12.98"),
    512: ("0.015", "2.15", "1.32", "7.83"),
    1024: ("0.011", "1.56", "0.81", "4.95"),
    2048: ("0.0077", "1.08", "0.39", "2.74"),
    4096: ("0.0052", "0.73", "0.32", "2.04"),
    8192: ("0.0036", "0.51", "0.31", "1.73"),
}
_BLOCKS = "Blocks of V here have 64 rows or more, those of the thesis 16."
_COLLISIONS = "A few collisions of hash values decide: single maps vary much."
_TABLE_COLUMNS = ("Fastfood abs.", "Fastfood rel.", "TensorSketch abs.", "TensorSketch rel.")


def _measure_table_4_1(_: str, scale: Scale, seed: int) -> Iterator[Cell]:
    n_pairs = scale.choose(10_000, 2000, 500)
    seeds = run_seeds(seed, scale.choose(16, 16, 6))
    for n in scale.choose(list(_TABLE_4_1), list(geometric(16, 1024, 4)), [16, 256]):
        errors: dict[str, list[KernelErrors]] = {}
        for run in seeds:
            x, y = np.random.default_rng(run).uniform(size=(2, n_pairs, _DIM))
            exact = {"Fastfood": _gaussian(x, y, 2.0), "TensorSketch": _square(x, y)}
            maps = {
                "Fastfood": _fastfood(n, 2.0, run),
                "TensorSketch": _tensor_sketch(n, run),
                "Fastfood, stratified": _fastfood(n, 2.0, run, blocks="stratified"),
                "TensorSketch, collision-free": _tensor_sketch(n, run, "collision_free"),
            }
            for name, each in maps.items():
                values = exact[name.partition(",")[0]]
                measured = KernelErrors(values, estimate_pairs(each, x, y))
                errors.setdefault(name, []).append(measured)
        for name, runs in errors.items():
            absolute = tuple(each.absolute.value for each in runs)
            if max(absolute) < _EXACT:
                continue
            yield Cell(float(n), f"{name} abs.", absolute)
            relative = tuple(100 * each.capped_relative.value for each in runs)
            yield Cell(float(n), f"{name} rel.", relative)


def _table_4_1_columns() -> Iterator[Column]:
    for suffix, unit in (("abs.", ""), ("rel.", "%")):
        for method in ("Fastfood", "TensorSketch"):
            panel = f"{method}, {'absolute' if suffix == 'abs.' else 'relative'} error"
            for variant in {
                "Fastfood": ("", ", stratified"),
                "TensorSketch": ("", ", collision-free"),
            }[method]:
                label = variant[2:] or "as in the thesis"
                yield Column(f"{method}{variant} {suffix}", unit, panel=panel, label=label)


TABLE_4_1 = Experiment(
    name="thesis-table-4-1",
    paper=PAPER,
    place="Table 4.1, Figure 4.3",
    title="Errors against the number of features D",
    settings="10,000 pairs of points, uniform in [0, 1]^16, in each of 16 runs; Gaussian kernel "
    "with σ = 2, polynomial kernel ⟨x, y⟩². Fastfood with D features has D cosines and D sines. "
    "The constructions of the thesis (independent blocks, independent hashing) and those of "
    "kernelmill (stratified blocks, hashing without collisions, which is exact from D = 256 on "
    f"and then not shown). {_RELATIVE}",
    row="features D",
    columns=tuple(_table_4_1_columns()),
    parts={"uniform": ()},
    measure=_measure_table_4_1,
    value="mean error",
    log_y=True,
    published_runs=16,
    published={
        (float(n), column): text
        for n, texts in _TABLE_4_1.items()
        for column, text in zip(_TABLE_COLUMNS, texts, strict=True)
    },
    claims=(
        claim_slope("Errors of Fastfood fall as D^(-1/2).", "Fastfood abs.", -0.55, -0.45),
        claim_slope("Errors of Tensor Sketch fall likewise.", "TensorSketch abs.", -0.65, -0.35),
        claim_ratio(
            "Hash functions without collisions could improve the accuracy.",
            "TensorSketch, collision-free abs.",
            "TensorSketch abs.",
            at_most=1.0,
        ),
    ),
    reasons={
        "TensorSketch abs.": _COLLISIONS,
        "TensorSketch rel.": _COLLISIONS,
        "Fastfood abs.": _BLOCKS,
        "Fastfood rel.": _BLOCKS,
    },
)

# Figures 4.1, 4.2, 4.4, 4.5: estimates against exact values --------------------------------------


@dataclass(frozen=True)
class _Cloud:
    """100 points, a map of theirs, and the relative error printed in the thesis, if any."""

    make: Callable[[int], Any]
    exact: Callable[[Any, Any], NDArray[np.float64]]
    low: float = 0.0
    printed: str = ""


def _measure_clouds(
    clouds: dict[str, _Cloud], part: str, scale: Scale, seed: int
) -> Iterator[Cell | Points]:
    cloud = clouds[part]
    n_points = scale.choose(100, 100, 20)
    first, second = np.triu_indices(n_points, 1)
    runs = []
    for index, run in enumerate(run_seeds(seed, scale.choose(64, 16, 3))):
        X = np.random.default_rng(run).uniform(cloud.low, 1.0, size=(n_points, _DIM))
        Z = cloud.make(run).fit_transform(X)
        errors = KernelErrors(cloud.exact(X[first], X[second]), (Z @ Z.T)[first, second])
        runs.append(errors)
        if index == 0:
            x, y = errors.sample(_MOST_POINTS)
            yield _round_points(part, x, y)
    relative = tuple(100 * each.capped_relative.value for each in runs)
    share = tuple(100 * each.share_capped.value for each in runs)
    yield Cell(part, "relative error", relative)
    yield Cell(part, _SHARE, share)
    yield Cell(part, "absolute error", tuple(each.absolute.value for each in runs))


_SHARE = "pairs with at most 100 % error"  # E in the thesis
_CLOUD_COLUMNS = (
    Column("relative error", "%"),
    Column(_SHARE, "%", better=""),
    Column("absolute error", better=""),
)
_ONE_RUN = "The thesis shows a single map and set of points; single runs vary that much."


def _declare_clouds(
    name: str, place: str, title: str, settings: str, clouds: dict[str, _Cloud], **more: Any
) -> Experiment:
    return Experiment(
        name=name,
        paper=PAPER,
        place=place,
        title=title,
        settings=f"{settings} All pairs of 100 points in 64 runs; the plots show the first. "
        f"{_RELATIVE} The thesis calls the share of such pairs E.",
        row="map",
        columns=_CLOUD_COLUMNS,
        parts=dict.fromkeys(clouds, ()),
        measure=partial(_measure_clouds, clouds),
        value="error",
        published={
            (part, "relative error"): each.printed for part, each in clouds.items() if each.printed
        },
        reasons={"": _ONE_RUN},
        **more,
    )


def _fastfood_cloud(n: int, sigma: float, printed: str = "") -> _Cloud:
    return _Cloud(
        lambda seed: _fastfood(n, sigma, seed), partial(_gaussian, sigma=sigma), printed=printed
    )


FIGURE_4_1 = _declare_clouds(
    "thesis-figure-4-1",
    "Figure 4.1",
    "Estimates of Fastfood against exact values",
    "Fastfood with D = 512, σ = 1.5, points uniform in [0, 1]^16.",
    {"σ = 1.5, D = 512": _fastfood_cloud(512, 1.5, "3.5")},
)

_RANGES = {"[-1, 1]": -1.0, "[0, 1]": 0.0}
FIGURE_4_2 = _declare_clouds(
    "thesis-figure-4-2",
    "Figure 4.2",
    "Tensor Sketch of data around zero, and shifted",
    "Tensor Sketch with D = 128 of ⟨x, y⟩², points uniform in [-1, 1]^16, where most values are "
    "near 0, and in [0, 1]^16.",
    {
        f"uniform in {name}": _Cloud(lambda seed: _tensor_sketch(128, seed), _square, low=low)
        for name, low in _RANGES.items()
    },
    claims=(
        claim_rows(
            "Data around 0 have a much larger relative error (here: at least one and a half "
            "times as large).",
            "relative error",
            "uniform in [-1, 1]",
            "uniform in [0, 1]",
            at_least=1.5,
        ),
    ),
)

FIGURE_4_4 = _declare_clouds(
    "thesis-figure-4-4",
    "Figure 4.4",
    "Estimates of Fastfood improve with D",
    "Fastfood with σ = 3, points uniform in [0, 1]^16. The thesis does not give the D of its "
    "three plots.",
    {f"D = {n}": _fastfood_cloud(n, 3.0) for n in (16, 128, 1024)},
    claims=(
        claim_rows(
            "Estimates improve with D (here: errors fall about as D^(-1/2), 64 times as many "
            "features divide them by 6 to 10).",
            "relative error",
            "D = 16",
            "D = 1024",
            at_least=6.0,
            at_most=10.0,
        ),
    ),
)

FIGURE_4_5 = _declare_clouds(
    "thesis-figure-4-5",
    "Figure 4.5",
    "The range of the Gaussian kernel",
    "Fastfood with D = 128, points uniform in [0, 1]^16: small kernel values, at small σ, have "
    "large relative errors.",
    {
        "σ = 1.5": _fastfood_cloud(128, 1.5, "8.3"),
        "σ = 2": _fastfood_cloud(128, 2.0, "3.6"),
    },
)

# Figure 4.6: errors over the range of kernel values ----------------------------------------------


def _measure_figure_4_6(_: str, scale: Scale, seed: int) -> Iterator[Cell]:
    n_pairs = scale.choose(10_000, 4000, 400)
    exact, estimated = [], []
    for run in run_seeds(seed, scale.choose(16, 8, 3)):
        x, y = np.random.default_rng(run).uniform(size=(2, n_pairs, 8))
        exact.append(_gaussian(x, y, 0.6))
        estimated.append(estimate_pairs(_fastfood(128, 0.6, run), x, y))
    errors = KernelErrors(np.array(exact), np.array(estimated))
    yield Cell(0.0, "overall", _means(np.abs(errors.differences)))
    ends = np.linspace(0, 1, 11)
    for low, high in pairwise(ends):
        inside = (errors.exact >= low) & (errors.exact < high)
        middle = float(round((low + high) / 2, 3))
        if inside.sum(axis=1).min() > 0:
            yield Cell(middle, "absolute error", _means(np.abs(errors.differences), inside))
            yield Cell(middle, "relative error", _means(errors.relative_errors, inside))


def _means(values: NDArray[np.float64], inside: Any = None) -> tuple[float, ...]:
    """Return the mean of each run, over the chosen pairs."""
    chosen = np.ones(values.shape, bool) if inside is None else inside
    return tuple(float(v[c].mean()) for v, c in zip(values, chosen, strict=True))


FIGURE_4_6 = Experiment(
    name="thesis-figure-4-6",
    paper=PAPER,
    place="Figure 4.6",
    title="Errors over the range of the Gaussian kernel",
    settings="Fastfood with D = 128, σ = 0.6, pairs of points uniform in [0, 1]^8. Mean errors of "
    "the pairs in ten sections of the range; the value at 0 is the mean of all pairs, whose "
    "absolute error the thesis prints.",
    row="exact kernel value",
    columns=(
        Column("overall", panel="absolute error"),
        Column("absolute error", panel="absolute error"),
        Column("relative error", panel="relative error"),
    ),
    parts={"uniform": ()},
    measure=_measure_figure_4_6,
    value="mean error",
    published={(0.0, "overall"): "0.059"},
    claims=(
        claim_slope("The relative error drops for higher values.", "relative error", -3.0, -0.3),
    ),
    reasons={"": _ONE_RUN},
)

# Figure 4.7: sparse rows of Tensor Sketch --------------------------------------------------------


def _measure_figure_4_7(_: str, scale: Scale, seed: int) -> Iterator[Cell]:
    dim, n_points = 40, scale.choose(100, 100, 20)
    first, second = np.triu_indices(n_points, 1)
    for n_zeros in scale.choose(list(range(0, 39, 2)), [0, 10, 20, 30, 38], [0, 30]):
        for name, hashing in _HASHING.items():
            runs = []
            for run in run_seeds(seed, scale.choose(12 * 5, 12, 3)):
                X = np.random.default_rng(run).uniform(size=(n_points, dim))
                X[:, dim - n_zeros :] = 0
                X /= np.linalg.norm(X, axis=1, keepdims=True)
                Z = _tensor_sketch(128, run, hashing).fit_transform(X)
                values = _square(X[first], X[second])
                errors = KernelErrors(values, (Z @ Z.T)[first, second])
                runs.append(100 * errors.capped_relative.value)
            yield Cell(float(n_zeros), name, tuple(runs))


_HASHING = {"independent hashing": "independent", "collision-free hashing": "collision_free"}

FIGURE_4_7 = Experiment(
    name="thesis-figure-4-7",
    paper=PAPER,
    place="Figure 4.7",
    title="Relative error of Tensor Sketch against the sparsity of the rows",
    settings="Tensor Sketch of ⟨x, y⟩² with D = 128; 100 rows of 40 columns, of which the last "
    "ones are 0. The thesis gives all other entries one value, √k / (d - s), which does not keep "
    "the kernel constant; here they are uniform and each row has length 1, which does, about. 60 "
    f"runs (the thesis: 12). {_RELATIVE}",
    row="columns that are 0",
    columns=tuple(Column(name, "%") for name in _HASHING),
    parts={"sparse rows": ()},
    measure=_measure_figure_4_7,
    value="relative error",
    claims=(
        claim_rows(
            "The error generally drops as sparsity increases (here: it is smaller with 30 of 40 "
            "columns 0 than with none).",
            "independent hashing",
            30.0,
            0.0,
            at_most=1.0,
        ),
    ),
)

# Figures 4.8 and D.1: estimates of one kernel converted to those of the other --------------------


def _measure_conversion(part: str, scale: Scale, seed: int) -> Iterator[Cell | Points]:
    n_points, n = scale.choose(100, 100, 20), 1024
    first, second = np.triu_indices(n_points, 1)
    runs = []
    for index, run in enumerate(run_seeds(seed, scale.choose(16, 8, 3))):
        X = np.random.default_rng(run).uniform(size=(n_points, _DIM))
        estimated, exact = _CONVERSIONS[part](X, n, run)
        errors = KernelErrors(exact[first, second], estimated[first, second])
        runs.append(100 * errors.capped_relative.value)
        if index == 0:
            x, y = errors.sample(_MOST_POINTS)
            yield _round_points(part, x, y)
    yield Cell(part, "relative error", tuple(runs))


_Converted = tuple[NDArray[np.float64], NDArray[np.float64]]


def _sketch_to_gaussian(X: Any, n: int, seed: int) -> _Converted:
    Z, square = _tensor_sketch(n, seed).fit_transform(X), Polynomial(2)
    lengths = squared_norms((Z * Z).sum(axis=1), square)  # from the sketch alone
    found = convert(Z @ Z.T, square, Gaussian(), length_scale=2.0, squared_norms_X=lengths)
    return found, Gaussian()(X, length_scale=2.0)


def _fastfood_to_polynomial(X: Any, n: int, seed: int, known: bool) -> _Converted:
    Z = _fastfood(n, 2.0, seed).fit_transform(X)
    # Features of the Gaussian kernel have length 1, whatever that of the rows is.
    lengths = (X * X).sum(axis=1) if known else (Z * Z).sum(axis=1)
    square = Polynomial(2)
    found = convert(Z @ Z.T, Gaussian(), square, length_scale=2.0, squared_norms_X=lengths)
    return np.nan_to_num(found), square(X)


_CONVERSIONS: dict[str, Callable[[Any, int, int], _Converted]] = {
    "Tensor Sketch to Gaussian": _sketch_to_gaussian,
    "Fastfood to polynomial": partial(_fastfood_to_polynomial, known=False),
    "Fastfood to polynomial, lengths given": partial(_fastfood_to_polynomial, known=True),
}

FIGURE_4_8 = Experiment(
    name="thesis-figure-4-8",
    paper=PAPER,
    place="Figures 4.8 and D.1",
    title="Estimates of one kernel converted to those of the other",
    settings="100 points uniform in [0, 1]^16, D = 1,024, ⟨x, y⟩² and σ = 2, converted by "
    "‖x - y‖² = ‖x‖² + ‖y‖² - 2⟨x, y⟩. Tensor Sketch holds the lengths of the rows, Fastfood "
    f"does not; D.1 takes them from the rows. {_RELATIVE}",
    row="conversion",
    columns=(Column("relative error", "%"),),
    parts=dict.fromkeys(_CONVERSIONS, ()),
    measure=_measure_conversion,
    value="relative error",
    claims=(
        claim_rows(
            "Converted estimates are very inaccurate for Fastfood and very precise for Tensor "
            "Sketch (here: at least ten times the error).",
            "relative error",
            "Fastfood to polynomial",
            "Tensor Sketch to Gaussian",
            at_least=10.0,
        ),
        claim_rows(
            "With the original lengths, Fastfood provides an accurate conversion (here: at most a "
            "fifth of the error).",
            "relative error",
            "Fastfood to polynomial, lengths given",
            "Fastfood to polynomial",
            at_most=0.2,
        ),
    ),
)

# Figure C.4: z and z'' ----------------------------------------------------------------------------


def _measure_figure_c_4(_: str, scale: Scale, seed: int) -> Iterator[Cell]:
    n_pairs = scale.choose(10_000, 2000, 200)
    for n in scale.choose(list(_TABLE_4_1), list(geometric(16, 1024, 4)), [16, 64]):
        errors: dict[str, list[float]] = {}
        for run in run_seeds(seed, scale.choose(16, 16, 4)):
            x, y = np.random.default_rng(run).uniform(size=(2, n_pairs, _DIM))
            exact = _gaussian(x, y, 3.0)
            settings: dict[str, Any] = {"length_scale": 3.0, "random_state": run}
            settings["blocks"] = "independent"
            maps = {
                "z, D frequencies": Fastfood(n_components=2 * n, **settings),
                "z, D columns": Fastfood(n_components=n, **settings),
                "z''": Fastfood(n_components=n, features="cos_phase", **settings),
            }
            for name, each in maps.items():
                error = KernelErrors(exact, estimate_pairs(each, x, y))
                errors.setdefault(name, []).append(100 * error.capped_relative.value)
        for name, runs in errors.items():
            yield Cell(float(n), name, tuple(runs))


FIGURE_C_4 = Experiment(
    name="thesis-figure-c-4",
    paper=PAPER,
    place="Figure C.4",
    title="Errors of z (cosines and sines) and of z'' (cosines with a random phase)",
    settings="As Table 4.1, with σ = 3. z has D cosines and D sines, z'' has D cosines; z with D "
    f"columns has as many numbers as z''. {_RELATIVE}",
    row="features D",
    columns=(Column("z, D frequencies", "%"), Column("z, D columns", "%"), Column("z''", "%")),
    parts={"uniform": ()},
    measure=_measure_figure_c_4,
    value="relative error",
    log_y=True,
    claims=(
        claim_ratio(
            "z'' costs accuracy, also at the same number of columns.",
            "z''",
            "z, D columns",
            at_least=1.0,
        ),
        replace(
            claim_slope(
                "z'' seems to have a lower bound on its error (here: its exponent is above -0.4; "
                "if not, it falls as that of z does).",
                "z''",
                -0.4,
                0.0,
            ),
            reason="With a random phase for each frequency the estimate is unbiased, and its "
            "variance is proportional to 1 / D: there is no lower bound.",
        ),
    ),
)

THESIS_ERRORS = (
    FIGURE_4_1,
    FIGURE_4_2,
    TABLE_4_1,
    FIGURE_4_4,
    FIGURE_4_5,
    FIGURE_4_6,
    FIGURE_4_7,
    FIGURE_4_8,
    FIGURE_C_4,
)
