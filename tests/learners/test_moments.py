"""The native sums of rows: layouts, instruction sets, threads, arguments that do not fit."""

import numpy as np
import pytest

from kernelmill import _native


def operands(n=300, dim=50, n_targets=3, dtype=np.float32, product=np.float64):
    rng = np.random.default_rng(0)
    return {
        "x": rng.standard_normal((n, dim)).astype(dtype),
        "center": rng.standard_normal(dim),
        "factors": rng.uniform(0.5, 2.0, n),
        "last": rng.standard_normal(dim),
        "targets": rng.standard_normal((n + 1, n_targets)),
        "scratch": np.empty((n + 1) * (dim + n_targets + 128) + 16, product),
        "moments": np.zeros((dim, dim)),
        "cross": np.zeros((n_targets, dim)),
    }


def add(given, n_threads=1):
    _native.add_moments(**given, n_threads=n_threads)
    return given["moments"], given["cross"]


@pytest.mark.parametrize(
    ("dtype", "product"),
    [(np.float32, np.float32), (np.float32, np.float64), (np.float64, np.float64)],
)
def test_moments_are_products_of_columns(isa, dtype, product):
    moments, cross = add(operands(dtype=dtype, product=product), n_threads=2)
    given = operands(dtype=dtype)
    rows = np.vstack([(given["x"] - given["center"]) * given["factors"][:, None], given["last"]])
    # A sum of m rounded products of rounded factors is off by m + 3 roundings of each at most.
    eps = 304 * float(np.finfo(product).eps)
    magnitude = np.abs(rows).T @ np.abs(rows)
    assert (np.abs(moments - np.tril(rows.T @ rows)) <= eps * magnitude).all()
    assert not np.triu(moments, 1).any()
    magnitude = np.abs(given["targets"]).T @ np.abs(rows)
    assert (np.abs(cross - given["targets"].T @ rows) <= eps * magnitude).all()


def test_rows_and_results_may_be_parts_of_arrays(isa):
    expected = add(operands())
    given = operands()
    for name in ("x", "moments", "cross"):
        wide = np.zeros((len(given[name]), 77), given[name].dtype)
        wide[:, 5 : 5 + given[name].shape[1]] = given[name]
        given[name] = wide[:, 5 : 5 + given[name].shape[1]]
    for found, same in zip(add(given, n_threads=3), expected, strict=True):
        np.testing.assert_array_equal(found, same)


@pytest.mark.parametrize(
    "changes",
    [
        {"x": np.zeros((300, 51), np.float32)},
        {"x": np.zeros((300, 50), np.int32)},
        {"x": np.zeros(300, np.float32)},
        {"x": np.zeros((50, 300), np.float32).T},
        {"x": np.zeros((300, 50)), "scratch": np.empty(10**5, np.float32)},
        {"center": np.zeros(49)},
        {"center": None},
        {"factors": np.zeros(301)},
        {"factors": np.zeros(300, np.float32)},
        {"last": np.zeros((50, 1))},
        {"last": np.zeros(100)[::2]},
        {"targets": np.zeros((300, 3))},
        {"targets": np.zeros((301, 3), np.float32)},
        {"targets": np.zeros((3, 301)).T},
        {"scratch": np.empty(301 * 181 + 15)},
        {"scratch": np.empty(2 * 10**5)[::2]},
        {"moments": np.zeros((50, 51))},
        {"moments": np.zeros((50, 50), np.float32)},
        {"moments": np.zeros((1, 50)).repeat(50, 0)[:, ::-1]},
        {"cross": np.zeros((50, 3)).T},
        {"cross": np.zeros((4, 50))},
    ],
    ids="-".join,
)
def test_other_operands_are_rejected(changes):
    given = operands() | changes
    before = {name: given[name].copy() for name in ("moments", "cross")}
    with pytest.raises((TypeError, BufferError)):
        add(given)
    for name, same in before.items():
        np.testing.assert_array_equal(given[name], same)


def test_sizes_that_overflow_are_rejected():
    n = -(-(2**64) // 144) - 1  # (n + 1) * 144 is a small number modulo 2 ** 64
    given = operands(n=1, dim=16, n_targets=0)
    given["x"] = np.broadcast_to(np.zeros((1, 16), np.float32), (n, 16))
    given["targets"] = np.zeros((n + 1, 0))
    with pytest.raises(TypeError, match="scratch"):
        add(given | {"factors": None})


def test_results_must_not_overlap_operands():
    for first, second in (("moments", "x"), ("cross", "targets"), ("scratch", "x")):
        given = operands(n=50, dtype=np.float64)
        memory = np.zeros(10**5)
        for name in (first, second):
            given[name] = memory[: given[name].size].reshape(given[name].shape)
        with pytest.raises(TypeError, match="overlap"):
            add(given)


def test_sums_of_columns(isa):
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        x, factors = rng.standard_normal((40, 600)).astype(dtype), rng.standard_normal(40)
        sums = np.full(600, np.nan)
        _native.sum_columns(x, factors, sums, 2)
        exact = (x.astype(np.longdouble) * factors[:, None]).sum(axis=0)
        magnitude = np.abs(x.astype(float) * factors[:, None]).sum(axis=0)
        assert (np.abs(sums - exact) <= 42 * np.finfo(float).eps * magnitude).all()
    constant = np.full((2047, 3), np.float32(0.1))
    _native.sum_columns(constant, None, sums[:3], 1)
    assert (sums[:3] == 2047 * float(np.float32(0.1))).all()
    for wrong in (np.zeros(2), np.zeros(3, np.float32), np.zeros(6)[::2]):
        with pytest.raises(TypeError):
            _native.sum_columns(constant, None, wrong, 1)
