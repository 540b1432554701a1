"""The features of a row are the same bits in any batch and any format."""

import numpy as np
import pytest
import scipy.sparse as sp

from kernelmill import Fastfood, RandomFourier, runtime

DTYPES = [np.float64, np.float32]


# Widths below and above a vector, both of which leave a rest.
SIZES = [(5, 100), (37, 333)]


def test_alone_few_many_and_shuffled(isa, random_map, points, same_bits):
    for dtype in DTYPES:
        for dim, n_components in SIZES:
            X = points(43, dim, dtype)
            fitted = random_map.set_params(n_components=n_components).fit(X)
            Z = fitted.transform(X)
            for size in (*range(1, 18), 33):
                same_bits(fitted.transform(X[7 : 7 + size]), Z[7 : 7 + size])
            order = np.random.default_rng(0).permutation(43)
            same_bits(fitted.transform(X[order]), Z[order])


def test_threads(isa, random_map, points, same_bits):
    for (dim, n_components), dtype in zip(SIZES, DTYPES, strict=True):
        X = points(203, dim, dtype)
        fitted = random_map.set_params(n_components=n_components, n_threads=1).fit(X)
        Z = fitted.transform(X)
        for n_threads in (2, 3):
            fitted.set_params(n_threads=n_threads)
            same_bits(fitted.transform(X), Z)
            same_bits(fitted.transform(X[:1]), Z[:1])


def test_forms_of_the_array(random_map, points, same_bits, tmp_path):
    for dtype in DTYPES:
        X = points(40, 37, dtype)
        fitted = random_map.set_params(n_components=101).fit(X)
        Z = fitted.transform(X)
        wide = np.zeros((80, 3 * 37), dtype)
        wide[::2, ::3] = X
        readonly = X.copy()
        readonly.flags.writeable = False
        X.tofile(tmp_path / X.dtype.name)
        unaligned = np.frombuffer(b"x" + X.tobytes(), np.uint8)[1:].view(dtype).reshape(X.shape)
        forms = {
            "Fortran order": np.asfortranarray(X),
            "every other row": wide[:, ::3][::2],
            "reversed": X[::-1, ::-1].copy()[::-1, ::-1],
            "read-only": readonly,
            "memory-mapped": np.memmap(tmp_path / X.dtype.name, dtype, "r", shape=X.shape),
            "other byte order": X.astype(X.dtype.newbyteorder()),
            "unaligned": unaligned,
            "equal rows": np.broadcast_to(X[0], X.shape),
        }
        for name, form in forms.items():
            before = form.copy()
            expected = np.repeat(Z[:1], 40, axis=0) if name == "equal rows" else Z
            same_bits(fitted.transform(form), expected)
            same_bits(fitted.transform(form[:5]), expected[:5])
            np.testing.assert_array_equal(form, before)


def test_features_do_not_depend_on_the_fitted_batch(random_map, fix_scale, points, same_bits):
    for (dim, n_components), dtype in zip(SIZES, DTYPES, strict=True):
        X = points(40, dim, dtype)
        fix_scale(random_map.set_params(n_components=n_components), 1.5)
        Z = random_map.fit(X).transform(X)
        same_bits(random_map.fit_transform(X), Z)
        other = np.float32 if dtype is np.float64 else np.float64
        same_bits(random_map.fit(X[:1].astype(other)).transform(X), Z)


def sparse_points(n_rows, dim, dtype):
    """Dense rows with mostly zero entries; some rows are all zero."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((n_rows, dim)).astype(dtype)
    X[rng.uniform(size=X.shape) < 0.7] = 0
    X[::7] = 0
    return X


def in_reverse(X):
    """The same CSR matrix with the entries of each row in reverse order."""
    data, indices = X.data.copy(), X.indices.copy()
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        data[start:stop] = data[start:stop][::-1]
        indices[start:stop] = indices[start:stop][::-1]
    return sp.csr_array((data, indices, X.indptr), X.shape)


def with_explicit_zeros(X):
    """The same matrix with every entry stored."""
    n_rows, dim = X.shape
    indices = np.tile(np.arange(dim, dtype=np.int32), n_rows)
    indptr = np.arange(n_rows + 1, dtype=np.int32) * dim
    return sp.csr_array((X.ravel(), indices, indptr), X.shape)


def with_wide_indices(X):
    """The same CSR matrix with 64-bit indices."""
    wide = sp.csr_array(X.shape, dtype=X.dtype)
    wide.data, wide.indices, wide.indptr = X.data, X.indices.astype("i8"), X.indptr.astype("i8")
    return wide


class TestSparse:
    def test_forms(self, isa, random_map, fix_scale, same_bits):
        for dtype in DTYPES:
            X = sparse_points(41, 37, dtype)
            csr = sp.csr_array(X)
            forms = [
                csr,
                sp.csr_matrix(X),
                with_wide_indices(csr),
                with_explicit_zeros(X),
                in_reverse(csr),
                sp.csc_matrix(X),
                sp.csc_array(X),
                sp.coo_matrix(X),
                sp.coo_array(X),
                sp.lil_array(X),
            ]
            fitted = fix_scale(random_map.set_params(n_components=101), 2.0).fit(X)
            Z = fitted.transform(X)
            for form in forms:
                same_bits(fitted.transform(form), Z)
                row = form.tocsr()[2:3]
                same_bits(fitted.transform(row), Z[2:3])
            same_bits(random_map.fit(csr).transform(csr), Z)

    def test_arguments_are_left_alone(self, one_map_per_class):
        X = in_reverse(sp.csr_array(sparse_points(20, 9, np.float64)))
        before = [a.copy() for a in (X.data, X.indices, X.indptr)]
        for feature_map in one_map_per_class:
            feature_map.fit(X).transform(X)
            for array, copy in zip((X.data, X.indices, X.indptr), before, strict=True):
                np.testing.assert_array_equal(array, copy)

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_duplicates_are_added(self, one_map_per_class, fix_scale, same_bits, dtype):
        data = np.array([1.5, 2.25, -0.5, 4.0, 1.0], dtype)  # sums are exact
        duplicated = sp.csr_array((data, [3, 3, 0, 3, 8], [0, 2, 2, 5]), (3, 9))
        dense = np.zeros((3, 9), dtype)
        dense[0, 3], dense[2, 0], dense[2, 3], dense[2, 8] = 3.75, -0.5, 4.0, 1.0
        for feature_map in one_map_per_class:
            fitted = fix_scale(feature_map, 1.0).fit(dense)
            same_bits(fitted.transform(duplicated), fitted.transform(dense))
            assert duplicated.nnz == 5

    def test_empty_matrix(self, feature_map, same_bits):
        fitted = feature_map.fit(np.zeros((3, 6)))
        same_bits(fitted.transform(sp.csr_array((3, 6))), fitted.transform(np.zeros((3, 6))))


@pytest.mark.representative
@pytest.mark.skipif(len(runtime.available_isas()) < 2, reason="only one instruction set here")
@pytest.mark.parametrize("dtype", DTYPES)
def test_instruction_sets_agree(feature_map, points, dtype):
    X = points(50, 37, dtype)
    feature_map.set_params(n_components=200).fit(X)
    before, results = runtime.get_isa(), []
    try:
        for isa in runtime.available_isas():
            runtime.set_isa(isa)
            results.append(feature_map.transform(X))
    finally:
        runtime.set_isa(before)
    # Projections are of size 10 at most (Matern: heavier tails), in some hundred roundings.
    bound = 1e4 * np.finfo(dtype).eps * max(np.sqrt(2 / 200), np.abs(results[0]).max() / 10)
    for result in results[1:]:
        np.testing.assert_allclose(result, results[0], rtol=0, atol=bound)


@pytest.mark.parametrize(
    ("given", "real", "complex_"),
    [
        (np.float32, np.float32, np.complex64),
        (np.float64, np.float64, np.complex128),
        (np.float16, np.float64, np.complex128),
        (np.longdouble, np.float64, np.complex128),
        (np.int64, np.float64, np.complex128),
        (np.uint8, np.float64, np.complex128),
        (bool, np.float64, np.complex128),
        (object, np.float64, np.complex128),
    ],
)
@pytest.mark.parametrize("make", [RandomFourier, Fastfood])
def test_dtypes(make, given, real, complex_, same_bits):
    X = (np.arange(120).reshape(30, 4) % 3 > 0).astype(given)
    for rows in (X, X[:2]):
        Z = make(random_state=0).fit(rows).transform(rows)
        assert Z.dtype == real
        same_bits(Z, make(random_state=0).fit_transform(rows.astype(real)))
        assert make(features="complex", random_state=0).fit_transform(rows).dtype == complex_
    assert make(random_state=0).fit(X).transform(X[:1].tolist()).dtype == np.float64
