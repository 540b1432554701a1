"""The number of columns is exactly the one asked for, for inputs of any width."""

import numpy as np
import pytest

from kernelmill import Fastfood, RandomFourier


@pytest.mark.parametrize("dim", [1, 17, 64])
def test_n_components_is_exact(random_map, points, dim):
    X = points(3, dim)
    prefix = type(random_map).__name__.lower()
    for n_components in (1, 2, 3, 5, 16, 17, 100, 1001):
        if getattr(random_map, "h01", False) and n_components < dim + 2:
            continue  # rejected: no room for the exact terms
        if n_components <= len(getattr(random_map, "steps", [])):
            continue  # rejected: no room for random features
        Z = random_map.set_params(n_components=n_components).fit_transform(X)
        assert Z.shape == (3, n_components)
        assert np.isfinite(Z).all()
        names = random_map.get_feature_names_out()
        assert names.tolist() == [f"{prefix}{i}" for i in range(n_components)]


WIDTHS = [*range(1, 18), 31, 33, 63, 65, 127, 129, 257, 1000, 5000]


@pytest.mark.parametrize("structure", ["hadamard", "sorf", "dct", "fft"])
def test_widths_of_fastfood(isa, points, structure):
    for dim in WIDTHS:
        X = points(4, dim)
        fitted = Fastfood(structure=structure, n_components=64, random_state=0).fit(X)
        Z = fitted.transform(X)
        assert Z.shape == (4, 64)
        # cos^2 + sin^2 = 1 at every frequency
        np.testing.assert_allclose((Z * Z).sum(axis=1), 1, rtol=1e-13)


@pytest.mark.parametrize("sampling", ["iid", "qmc"])
@pytest.mark.parametrize("store_matrix", [True, False])
def test_widths_of_dense_maps(points, sampling, store_matrix):
    for dim in WIDTHS:
        X = points(4, dim)
        options = {"sampling": sampling, "store_matrix": store_matrix}
        Z = RandomFourier(n_components=64, random_state=0, **options).fit_transform(X)
        assert Z.shape == (4, 64)
        np.testing.assert_allclose((Z * Z).sum(axis=1), 1, rtol=1e-13)


@pytest.mark.parametrize("dim", [1, 2, 3, 17, 64, 300])
def test_widths_of_orthogonal_maps(points, dim):
    fitted = RandomFourier(sampling="orthogonal", n_components=512, random_state=0)
    fitted.fit(points(4, dim))
    W = fitted.projection_.frequencies()
    for start in range(0, 256, dim):
        block = W[start : start + dim]
        block = block / np.linalg.norm(block, axis=1, keepdims=True)
        np.testing.assert_allclose(block @ block.T, np.eye(len(block)), atol=1e-12)


@pytest.mark.parametrize("structure", ["hadamard", "sorf"])
def test_very_wide_input(points, structure, same_bits):
    X = points(3, 100_000)
    fitted = Fastfood(structure=structure, n_components=50, random_state=0).fit(X)
    Z = fitted.transform(X)
    assert Z.shape == (3, 50)
    np.testing.assert_allclose((Z * Z).sum(axis=1), 1, rtol=1e-13)
    same_bits(fitted.transform(X[1:2]), Z[1:2])


def test_stored_or_drawn_again_is_the_same(points, same_bits):
    X = points(20, 700)
    for sampling in ("iid", "orthogonal", "qmc"):
        options = {"sampling": sampling, "n_components": 3001, "random_state": 3}
        stored, drawn = (RandomFourier(store_matrix=s, **options) for s in (True, False))
        same_bits(drawn.fit_transform(X), stored.fit_transform(X))


def test_feature_names_in_and_out():
    import pandas as pd

    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [0.0, 1.0]})
    fitted = Fastfood(n_components=3, random_state=0).fit(frame)
    assert fitted.feature_names_in_.tolist() == ["a", "b"]
    assert fitted.get_feature_names_out().tolist() == ["fastfood0", "fastfood1", "fastfood2"]
    assert fitted.n_features_in_ == 2
    assert fitted.n_frequencies_ == 2
