# The functions of the extension module: they write into given arrays and check little. The public
# functions of kernelmill check their arguments, allocate, and call these.

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

def built_isas() -> list[str]: ...
def available_isas() -> list[str]: ...
def get_isa() -> str: ...
def set_isa(name: str) -> None: ...
def get_num_threads() -> int: ...
def set_num_threads(count: int) -> None: ...

# These return False, with nothing written, if an output overlaps an input and would spoil it.
def fwht(
    x: NDArray[Any], out: NDArray[Any], axis: int, normalize: bool, n_threads: int
) -> bool: ...
def sincos(
    x: NDArray[Any], sine: NDArray[Any], cosine: NDArray[Any], separate: bool, n_threads: int
) -> bool: ...
def circular_convolve(
    operands: tuple[NDArray[Any], ...], out: NDArray[Any], n_threads: int
) -> bool: ...

# Features of rows: a dense matrix, or (data, indices, indptr, columns) of a CSR matrix. `kind` is
# one of `feature_kinds`: "projection", "cos_sin", "complex" (as pairs of reals) or "cos_phase"; for
# `dense` also "times", which multiplies what is there by the projection. These functions, `zonal`
# and `tensor_sketch` return whether all results are finite.
feature_kinds: dict[str, int]
Rows = NDArray[Any] | tuple[NDArray[Any], NDArray[Any], NDArray[Any], int]

def fastfood(
    x: Rows,
    out: NDArray[Any],
    signs: NDArray[Any],
    permutation: NDArray[Any] | None,
    inner: NDArray[Any],
    outer: NDArray[Any],
    blocks_per_group: int,
    first_turn: int,
    kind: int,
    scale: float,
    phases: NDArray[Any] | None,
    weights: NDArray[Any] | None,
    scores: NDArray[Any] | None,
    n_threads: int,
) -> bool: ...
def features(
    z: NDArray[Any],
    outer: NDArray[Any] | None,
    first: int,
    out: NDArray[Any],
    kind: int,
    scale: float,
    phases: NDArray[Any] | None,
    n_threads: int,
) -> bool: ...

# In place: exp((z + columns) + rows), finite in any case; `rows` is float64.
def exponentials(
    z: NDArray[Any], columns: NDArray[Any], rows: NDArray[Any], n_threads: int
) -> None: ...

# In place: columns starts[g] to starts[g + 1] become weights[g] r^powers[g] p(z / r), where r^2 is
# in `squares` and p has degrees[g] in p_{j+1} = alpha_j u p_j - beta_j p_{j-1}.
def zonal(
    z: NDArray[Any],
    squares: NDArray[Any],
    starts: NDArray[Any],
    degrees: NDArray[Any],
    powers: NDArray[Any],
    weights: NDArray[Any],
    alpha: NDArray[Any],
    beta: NDArray[Any],
    n_threads: int,
) -> bool: ...

# Products of columns over the rows (x - center) * factors and a last row: those with each other are
# added to the lower triangle of moments, those with targets to cross.
def add_moments(
    x: NDArray[Any],
    center: NDArray[np.float64],
    factors: NDArray[np.float64] | None,
    last: NDArray[np.float64],
    targets: NDArray[np.float64],
    scratch: NDArray[Any],
    moments: NDArray[np.float64],
    cross: NDArray[np.float64],
    n_threads: int,
) -> None: ...
def sum_columns(
    x: NDArray[Any],
    factors: NDArray[np.float64] | None,
    sums: NDArray[np.float64],
    n_threads: int,
) -> None: ...

# Products with few outputs: out = x weightsᵀ; sums += factorsᵀ x.
def score_rows(
    x: NDArray[Any], weights: NDArray[Any], out: NDArray[Any], n_threads: int
) -> None: ...
def add_weighted_rows(
    x: NDArray[Any], factors: NDArray[Any], sums: NDArray[Any], n_threads: int
) -> None: ...
def descend(
    x: NDArray[Any],
    factors: NDArray[Any],
    directions: NDArray[Any],
    damping: NDArray[Any],
    last: NDArray[Any],
    average: NDArray[Any],
    move: NDArray[Any],
    step: float,
    alpha: float,
    constant: float,
    curvature: float,
    averaging: float,
    n_threads: int,
) -> float: ...

# Inner products of rows with a vector of float64, or with themselves; `like` has the dtype of x.
def row_products(
    x: Rows, like: NDArray[Any], vector: NDArray[Any] | None, out: NDArray[Any], n_threads: int
) -> None: ...

# Frequencies w of shape (m, d), packed for `dense` in panels, which are multiplied in tiles. The
# numbers of columns are those of float32, a multiple of those of float64.
panel_columns: int
tile_columns: int
tile_rows: int

def dense_packed_size(count: int, dim: int, itemsize: int) -> int: ...
def dense_pack(w: NDArray[Any], out: NDArray[Any]) -> None: ...
def dense(
    x: Rows,
    packed: NDArray[Any],
    m: int,
    first: int,
    out: NDArray[Any],
    kind: int,
    scale: float,
    phases: NDArray[Any] | None,
    n_threads: int,
) -> bool: ...

# Sketches of rows; buckets and weights of shape (degree, columns of x), offsets (degree, columns of
# out).
def tensor_sketch(
    x: Rows,
    buckets: NDArray[np.int32],
    weights: NDArray[Any],
    offsets: NDArray[Any] | None,
    row_scales: NDArray[Any] | None,
    ring_roots: NDArray[Any] | None,
    out: NDArray[Any],
    n_threads: int,
) -> bool: ...
def ring_roots_size(length: int) -> int: ...
def ring_roots(out: NDArray[Any], length: int) -> None: ...

# Random draws; a key is two words, the low one first.
Key = tuple[int, int]

def random_signs(key: Key, start: int, out: NDArray[Any], n_threads: int) -> None: ...
def random_uniforms(key: Key, start: int, out: NDArray[Any], n_threads: int) -> None: ...
def random_normals(key: Key, start: int, out: NDArray[Any], n_threads: int) -> None: ...
def random_cauchys(key: Key, start: int, out: NDArray[Any], n_threads: int) -> None: ...
def random_gammas(
    key: Key, start: int, shape: float, out: NDArray[Any], n_threads: int
) -> None: ...
def random_chis(key: Key, start: int, df: float, out: NDArray[Any], n_threads: int) -> None: ...
def random_students(key: Key, start: int, df: float, out: NDArray[Any], n_threads: int) -> None: ...
def random_sphere(key: Key, start: int, dim: int, out: NDArray[Any], n_threads: int) -> None: ...
def random_ball(key: Key, start: int, dim: int, out: NDArray[Any], n_threads: int) -> None: ...
def random_integers(key: Key, start: int, high: int, out: NDArray[Any], n_threads: int) -> None: ...
def random_permutation(key: Key, index: int, out: NDArray[Any]) -> None: ...
def random_orthogonal(key: Key, index: int, out: NDArray[Any], n_threads: int) -> None: ...

hash_prime: int

def hash_coefficients(key: Key, use: int, index: int, count: int) -> list[int]: ...
def hash_buckets(
    coefficients: Sequence[int], n_buckets: int, x: NDArray[Any], out: NDArray[Any], n_threads: int
) -> int: ...
def hash_signs(
    coefficients: Sequence[int], x: NDArray[Any], out: NDArray[Any], n_threads: int
) -> int: ...
def elementary(name: str, x: NDArray[Any], out: NDArray[Any], n_threads: int) -> None: ...
def philox(key: Key, counter: tuple[int, int, int, int]) -> list[int]: ...

# The svmlight text format. At most so many rows and entries are in a text that ends with \n:
def svmlight_bounds(text: bytes | bytearray | memoryview) -> tuple[int, int]: ...

# Returns rows, entries, lines, smallest and largest index, and the name of the problem that stopped
# the reading ("none" if nothing did) with its position in the text and in its line, from 0.
def svmlight_parse(
    text: bytes | bytearray | memoryview,
    largest_index: int,
    labels: NDArray[Any],
    starts: NDArray[Any],
    indices: NDArray[Any],
    values: NDArray[Any],
) -> tuple[int, int, int, int, int, str, int, int]: ...
