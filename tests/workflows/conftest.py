"""Small tables to learn from."""

import numpy as np
import pytest


def rings(n_rows, seed=0):
    """Points inside and outside a ring, which no line separates."""
    X = np.random.default_rng(seed).normal(size=(n_rows, 2))
    return X, np.where((X**2).sum(axis=1) < 1.4, "in", "out")


def write_rings(path, n_rows=1500, *, header=True, order=None, seed=0):
    X, y = rings(n_rows, seed)
    color = np.where(X[:, 0] > 0, "red", "blue")
    lines = [f"{a:.6f},{c},{b:.6f},{t}" for (a, b), c, t in zip(X, color, y, strict=True)]
    if order is not None:
        lines = [lines[i] for i in order(y)]
    path.write_text(("a,color,b,place\n" if header else "") + "\n".join(lines) + "\n")
    return path


def write_waves(path, n_rows=1200, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-3, 3, n_rows)
    y = np.sin(2 * x) + 0.1 * rng.standard_normal(n_rows)
    path.write_text("x,y\n" + "\n".join(f"{a:.6f},{b:.6f}" for a, b in zip(x, y, strict=True)))
    return path


@pytest.fixture(scope="module", autouse=True)
def short_tuning(shorten_tuning):
    """For all but fixtures of the session, which come first and show the defaults."""
    with pytest.MonkeyPatch.context() as patch:
        shorten_tuning(patch)
        yield patch


@pytest.fixture
def full_tuning(short_tuning, shorten_tuning):
    """Tune as by default, where that is the point."""
    short_tuning.undo()
    yield
    shorten_tuning(short_tuning)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tables")


@pytest.fixture(scope="session")
def rings_csv(folder):
    return write_rings(folder / "rings.csv")


@pytest.fixture(scope="session")
def waves_csv(folder):
    return write_waves(folder / "waves.csv")


@pytest.fixture(scope="session")
def classifier(rings_csv):
    """With given settings; `tuned_classifier` is without."""
    from kernelmill import fit_table

    return fit_table(rings_csv, "place", n_components=256, length_scale=1.0, alpha=1e-5, epochs=10)


@pytest.fixture(scope="session")
def tuned_classifier(folder):
    from kernelmill import fit_table

    return fit_table(write_rings(folder / "few_rings.csv", 300), "place", n_components=128)


@pytest.fixture(scope="session")
def regressor(folder):
    """With no settings but the number of features."""
    from kernelmill import fit_table

    return fit_table(write_waves(folder / "few_waves.csv", 300), "y", n_components=128)
