"""Small products have one thread of BLAS: others would spin."""

import numpy as np
import pytest
import scipy.linalg
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_info, threadpool_limits

import kernelmill
from kernelmill import KernelClassifier, KernelRegressor, Nystroem
from kernelmill.learners.solvers import spectrum


@pytest.fixture
def two_threads(monkeypatch):
    """The numbers of BLAS threads that factorizations and eigendecompositions see."""
    seen = []

    def recording(function):
        def call(*args, **kwargs):
            pools = [each for each in threadpool_info() if each["user_api"] == "blas"]
            seen.append(max(each["num_threads"] for each in pools))
            return function(*args, **kwargs)

        return call

    for name in ("eigh", "cholesky"):
        monkeypatch.setattr(scipy.linalg, name, recording(getattr(scipy.linalg, name)))
    with threadpool_limits(2, user_api="blas"):
        if max(each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas") < 2:
            pytest.skip("this BLAS has one thread")
        yield seen


def make_rows(n_rows):
    X = np.random.default_rng(0).normal(size=(n_rows, 3))
    return X, X[:, 0] * X[:, 1] > 0


@pytest.mark.parametrize("solver", ["lbfgs", "sgd"])
def test_a_classifier_of_few_rows(two_threads, solver):
    X, y = make_rows(300)
    KernelClassifier(Nystroem(n_components=64), solver=solver, random_state=0).fit(X, y)
    assert set(two_threads) == {1}


def test_a_regressor_of_few_rows(two_threads):
    X, y = make_rows(300)
    KernelRegressor(Nystroem(n_components=64), random_state=0).fit(X, y.astype(float))
    assert set(two_threads) == {1}


def test_the_spectrum_and_the_steps_of_many_rows(two_threads, monkeypatch):
    """The landmarks' matrix may have several threads, short products have one."""
    X, y = make_rows(2500)
    inside = []
    of_sample = spectrum.TopSpectrum.of_sample.__func__

    def record(cls, *args, **kwargs):
        before = len(two_threads)
        found = of_sample(cls, *args, **kwargs)
        inside.extend(two_threads[before:])
        return found

    monkeypatch.setattr(spectrum.TopSpectrum, "of_sample", classmethod(record))
    landmarks = Nystroem(n_components=1500)
    with pytest.warns(ConvergenceWarning):
        KernelClassifier(landmarks, solver="lbfgs", epochs=1, random_state=0).fit(X, y)
    assert set(inside) == {1}
    assert 2 in two_threads


def test_tuning_of_a_table(two_threads, shorten_tuning, monkeypatch):
    shorten_tuning(monkeypatch)
    X, y = make_rows(300)
    kernelmill.fit_table((X, np.where(y, "a", "b")), kernel="gaussian")
    assert len(two_threads) > 10
    assert set(two_threads) == {1}


def test_landmark_features_do_not_depend_on_threads(monkeypatch):
    monkeypatch.setattr("kernelmill.maps.nystroem._BLOCK_ENTRIES", 1 << 10)
    X, _ = make_rows(300)
    features = [
        Nystroem(n_components=64, random_state=0, n_threads=n).fit_transform(X) for n in (1, 2)
    ]
    np.testing.assert_array_equal(*features)
