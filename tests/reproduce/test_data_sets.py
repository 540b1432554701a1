"""Data sets in their public formats; what is missing or damaged is named."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

from reproduce import data_sets
from reproduce.data_sets import DATA_SETS, MissingDataError, load_data


@pytest.mark.representative
@pytest.mark.parametrize("name", DATA_SETS)
def test_every_format_is_read(small_data, small_files, name):
    rows = load_data(name)
    shape = small_files[1][name]
    assert rows.X.shape == shape
    assert rows.y.shape == (shape[0],)
    assert 0 <= rows.n_test < shape[0]
    assert scipy.sparse.issparse(rows.X) == (name in ("adult", "gisette"))


def test_splits_are_those_of_the_sources(small_data):
    expected = {"mnist": 100, "adult": 100, "gisette": 30, "coil2000": 150, "cifar10": 20}
    assert {name: load_data(name).n_test for name in expected} == expected


def test_targets_are_the_right_columns(small_data):
    for name in ("wine_quality", "parkinsons", "cpu_act", "kegg", "ct_slices"):
        rows = load_data(name)
        explained = np.sin(rows.X[:, 0]) + 0.3 * rows.X[:, 1]
        assert np.std(rows.y - explained) < 0.2, name
    labels = load_data("mnist")
    middles = labels.X.reshape(-1, 28, 28)[:, :, 5:20].mean(axis=2)
    assert np.mean(np.argmax(middles[:, 2:20:2] > 0.4, axis=1) == labels.y - 1) > 0.8
    assert np.all(load_data("year").y > 1900)
    cifar = load_data("cifar10")
    np.testing.assert_array_equal(cifar.X.argmax(axis=1), cifar.y)


def test_other_formats_of_gisette_and_cifar(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    (tmp_path / "gisette").mkdir()
    for part, n in (("train", 6), ("valid", 4)):
        X = rng.integers(0, 999, (n, 5000))
        np.savetxt(tmp_path / "gisette" / f"gisette_{part}.data", X, fmt="%d")
        labels = rng.choice([-1, 1], n)
        np.savetxt(tmp_path / "gisette" / f"gisette_{part}.labels", labels, fmt="%d")
    (tmp_path / "cifar10").mkdir()
    images = rng.integers(0, 255, (9, 3, 32, 32)).astype(np.uint8)
    labels = np.arange(9)
    np.savez(
        tmp_path / "cifar10" / "cifar10.npz",
        X=images[:6],
        y=labels[:6],
        X_test=images[6:],
        y_test=labels[6:],
    )
    monkeypatch.setattr(data_sets, "data_folders", lambda: [tmp_path])
    monkeypatch.setitem(DATA_SETS, "gisette", replace(DATA_SETS["gisette"], shape=(10, 5000)))
    monkeypatch.setitem(DATA_SETS, "cifar10", replace(DATA_SETS["cifar10"], shape=(9, 3072)))
    load_data.cache_clear()
    gisette, cifar = load_data("gisette"), load_data("cifar10")
    load_data.cache_clear()
    assert gisette.n_test == 4
    assert 0.9 < gisette.X.max() <= 1
    np.testing.assert_allclose(cifar.X, images.reshape(9, -1) / 255, rtol=1e-6)
    assert cifar.n_test == 3


def test_missing_data_are_named_with_a_remedy(no_data):
    with pytest.raises(
        MissingDataError, match=r"Gisette were not found, and OpenML.*41026"
    ) as error:
        load_data("gisette")
    assert "KERNELMILL_DATA" in str(error.value)
    assert "gisette_scale.t" in str(error.value)
    with pytest.raises(MissingDataError, match="CT slices were not found; set KERNELMILL_DATA"):
        load_data("ct_slices")


def test_openml_is_used_where_there_are_no_files(no_data, monkeypatch):
    class Fetched:
        data = np.arange(12.0).reshape(4, 3)
        target = np.array(["1", "0", "1", "1"], dtype=object)

    asked = []

    def fetch(**settings):
        asked.append(settings["data_id"])
        return Fetched

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    monkeypatch.setitem(DATA_SETS, "covtype", replace(DATA_SETS["covtype"], shape=(4, 3)))
    rows = load_data("covtype")
    assert asked == [DATA_SETS["covtype"].openml]
    assert rows.y.tolist() == [1, 0, 1, 1]
    load_data.cache_clear()
    monkeypatch.setitem(DATA_SETS, "covtype", replace(DATA_SETS["covtype"], shape=(5, 3)))
    with pytest.raises(MissingDataError, match="has 4 rows of 3 columns, but Covertype has 5 of 3"):
        load_data("covtype")


def test_damaged_files_are_rejected(small_data, tmp_path, monkeypatch):
    (tmp_path / "cifar10").mkdir()
    for file in DATA_SETS["cifar10"].files:
        (tmp_path / "cifar10" / file).write_bytes(bytes(3000))
    monkeypatch.setattr(data_sets, "data_folders", lambda: [tmp_path])
    with pytest.raises(MissingDataError, match="3000 bytes are not a multiple of 3073"):
        load_data("cifar10")


def test_text_that_is_no_table_is_rejected(small_data, tmp_path, monkeypatch):
    (tmp_path / "year").mkdir()
    (tmp_path / "year" / "YearPredictionMSD.txt").write_text("<html>not here</html>\n")
    monkeypatch.setattr(data_sets, "data_folders", lambda: [tmp_path])
    with pytest.raises(MissingDataError, match="YearPredictionMSD"):
        load_data("year")


def test_pickles_are_never_read(small_data, tmp_path, monkeypatch):
    (tmp_path / "cifar10").mkdir()
    objects = np.array([{"a": 1}], dtype=object)
    np.savez(tmp_path / "cifar10" / "cifar10.npz", X=objects, y=objects, X_test=objects, y_test=[1])
    monkeypatch.setattr(data_sets, "data_folders", lambda: [tmp_path])
    with pytest.raises(MissingDataError, match="allow_pickle=False"):
        load_data("cifar10")
