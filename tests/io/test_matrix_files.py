"""Matrices in NPY, NPZ and IDX files: all layouts come back, and wrong headers are rejected."""

import gzip
import io
import pickle
import struct
import zipfile

import numpy as np
import pytest
import scipy.sparse

from kernelmill.io import TableError, open_table


def rows(table, seed=None):
    blocks = sorted(table.blocks(seed), key=lambda block: block.first_row)
    assert [block.first_row for block in blocks] == list(
        np.cumsum([0, *(block.n_rows for block in blocks)])[:-1]
    )
    labels = [block.labels for block in blocks]
    return (
        np.concatenate([block.data for block in blocks]),
        None if labels[0] is None else np.concatenate(labels),
    )


def matrix(dtype=np.float64, shape=(23, 7)):
    values = np.random.RandomState(0).randint(0, 100, size=shape)
    return (values % 2 if dtype == np.bool_ else values).astype(dtype)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["f8", ">f8", "f4", "f2", "i8", ">i4", "u1", np.bool_])
@pytest.mark.parametrize("block_bytes", [1, 100, 1 << 20])
def test_npy(tmp_path, order, dtype, block_bytes):
    expected = np.asarray(matrix(np.dtype(dtype)), order=order)
    path = tmp_path / "rows.npy"
    np.save(path, expected)
    table = open_table(path, block_bytes=block_bytes)
    assert table.columns is None
    assert (table.n_rows, table.n_features, table.carries_labels) == (23, 7, False)
    for seed in (None, 0):
        found, labels = rows(table, seed)
        assert np.array_equal(found, expected)
        assert found.dtype == expected.dtype.newbyteorder("=")
        assert labels is None


@pytest.mark.representative
def test_blocks_have_the_wanted_size(tmp_path):
    np.save(tmp_path / "rows.npy", np.zeros((100, 10)))
    blocks = list(open_table(tmp_path / "rows.npy", block_bytes=1000).blocks())
    assert [block.n_rows for block in blocks] == [12] * 8 + [4]


@pytest.mark.parametrize(
    ("array", "match"),
    [
        (np.array([[1, "x"]], dtype=object), "Python objects"),
        (np.ones(3), "two dimensions"),
        (np.ones((2, 2), complex), "real numbers"),
        (np.array([["a"]]), "real numbers"),
        (np.ones((2, 0)), "at least one column"),
        (np.ones((2, 2), np.longdouble), "real numbers"),
    ],
)
def test_rejected_npy(tmp_path, array, match):
    np.save(tmp_path / "rows.npy", array, allow_pickle=True)
    with pytest.raises(TableError, match=match):
        open_table(tmp_path / "rows.npy")


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was loaded",))


def test_pickles_are_not_loaded(tmp_path):
    path = tmp_path / "rows.npy"
    path.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(TableError, match="not a valid NPY file"):
        open_table(path)
    bomb = np.array([[Bomb()]], dtype=object)
    np.savez(tmp_path / "rows.npz", X=np.ones((1, 1)), y=bomb[0])
    with pytest.raises(TableError, match="numbers or strings"):
        open_table(tmp_path / "rows.npz")
    np.savez(tmp_path / "rows.npz", X=bomb)
    with pytest.raises(TableError, match="Python objects"):
        open_table(tmp_path / "rows.npz")


def test_damaged_npy(tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, np.ones((100, 10)))
    whole = path.read_bytes()
    for size in (0, 5, 20, 127, 500, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(TableError, match=r"rows\.npy"):
            open_table(path)
    path.write_bytes(whole.replace(b"(100, 10)", b"(-10, 10)"))
    with pytest.raises(TableError, match="valid"):
        open_table(path)
    path.write_bytes(whole.replace(b"(100, 10), }    ", b"(1000000000000, 10"))
    with pytest.raises(TableError):
        open_table(path)


@pytest.mark.representative
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("names", [("X", "y"), ("data", "target")])
def test_npz(tmp_path, save, order, names):
    expected = np.asarray(matrix(), order=order)
    labels = np.array([f"class {i % 3}" for i in range(23)])
    save(tmp_path / "rows.npz", **{names[0]: expected, names[1]: labels}, other=np.ones(3))
    table = open_table(tmp_path / "rows.npz", block_bytes=200)
    assert table.carries_labels
    for seed in (0, None, 1):
        found, found_labels = rows(table, seed)
        assert np.array_equal(found, expected)
        assert np.array_equal(found_labels, labels)


def test_rejected_npz(tmp_path):
    path = tmp_path / "rows.npz"
    np.savez(path, A=np.ones((2, 2)))
    with pytest.raises(TableError, match="must have a member X or data, got A"):
        open_table(path)
    np.savez(path, X=np.ones((2, 2)), y=np.ones(3))
    with pytest.raises(TableError, match=r"2 rows.*labels of shape \(3,\)"):
        open_table(path)
    scipy.sparse.save_npz(path, scipy.sparse.eye_array(3, format="csr"))
    with pytest.raises(TableError, match="sparse"):
        open_table(path)
    path.write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(TableError, match="not a valid NPZ file"):
        open_table(path)


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_npz_whose_member_is_too_short(tmp_path, compression):
    member = io.BytesIO()
    np.save(member, np.ones((100, 10)))
    path = tmp_path / "rows.npz"
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("X.npy", member.getvalue()[:-8])
    with pytest.raises(TableError, match="truncated"):
        open_table(path)


def test_damaged_npz_member(tmp_path):
    path = tmp_path / "rows.npz"
    np.savez_compressed(path, X=np.random.RandomState(0).rand(100, 10))
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 0xFF
    path.write_bytes(damaged)
    table = open_table(path)
    with pytest.raises(TableError, match="valid NPZ"):
        list(table.blocks())


def idx(array, code=0x08):
    header = bytes([0, 0, code, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.tobytes()


@pytest.fixture
def digits(tmp_path):
    """Writes files like those of MNIST and gives the path of the images."""
    images = matrix(np.uint8, (20, 4, 3))
    labels = np.arange(20, dtype=np.uint8) % 10

    whole = idx(images), idx(labels)

    def write(images_bytes=whole[0], labels_bytes=whole[1], gz=(False, False)):
        paths = []
        for name, data, compress in zip(
            ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
            (images_bytes, labels_bytes),
            gz,
            strict=True,
        ):
            path = tmp_path / (name + ".gz" * compress)
            if data is not None:
                path.write_bytes(gzip.compress(data) if compress else data)
            paths.append(path)
        return paths[0]

    return write, images.reshape(20, 12), labels


@pytest.mark.representative
@pytest.mark.parametrize("gz", [(False, False), (True, True), (True, False), (False, True)])
def test_idx(digits, gz):
    write, images, labels = digits
    table = open_table(write(gz=gz), block_bytes=50)
    assert (table.format, table.n_rows, table.n_features) == ("idx", 20, 12)
    assert table.notes == [f"Labels are read from train-labels-idx1-ubyte{'.gz' * gz[1]}."]
    for seed in (None, 0, 1):
        found, found_labels = rows(table, seed)
        assert found.dtype == np.uint8
        assert np.array_equal(found, images)
        assert np.array_equal(found_labels, labels)


@pytest.mark.parametrize(
    ("code", "dtype"), [(0x09, "i1"), (0x0B, ">i2"), (0x0C, ">i4"), (0x0D, ">f4"), (0x0E, ">f8")]
)
def test_idx_types(tmp_path, code, dtype):
    expected = matrix(np.dtype(dtype))
    (tmp_path / "rows.idx").write_bytes(idx(expected, code))
    table = open_table(tmp_path / "rows.idx")
    assert not table.carries_labels
    found, _ = rows(table)
    assert np.array_equal(found, expected)
    assert found.dtype == expected.dtype.newbyteorder("=")


@pytest.mark.parametrize("gz", [False, True])
@pytest.mark.parametrize(
    "header",
    [
        struct.pack(">BBBBIII", 0, 0, 8, 3, 2**31, 2**31, 2**31),
        struct.pack(">BBBBIII", 0, 0, 8, 3, 2**32 - 1, 28, 28),
        struct.pack(">BBBBIII", 0, 0, 8, 3, 10, 0, 28),
        struct.pack(">BBBBI", 0, 0, 8, 3, 10),
        struct.pack(">BBBB", 0, 0, 8, 255) + bytes(2000),
        struct.pack(">BBBB", 0, 0, 7, 3),
        b"\0\0",
        b"",
    ],
)
def test_idx_headers_that_lie(digits, header, gz):
    write, _, _ = digits
    path = write(images_bytes=header, gz=(gz, False))
    with pytest.raises(TableError, match="images-idx3-ubyte"):
        open_table(path)


def test_idx_that_is_too_short(digits):
    write, images, _ = digits
    whole = idx(images.reshape(20, 4, 3))
    with pytest.raises(TableError, match="damaged"):
        open_table(write(images_bytes=whole[:-1]))
    table = open_table(write(images_bytes=whole[:-1], gz=(True, False)))
    for seed in (None, 0):
        with pytest.raises(TableError, match="truncated"):
            list(table.blocks(seed))


def test_idx_labels(digits, tmp_path):
    write, _, labels = digits
    table = open_table(write(labels_bytes=None))
    assert not table.carries_labels
    assert "no label file" in table.notes[0]
    path = write(labels_bytes=idx(labels[:-1]))
    with pytest.raises(TableError, match=r"20 rows, but .*labels.* of shape \(19,\)"):
        open_table(path)
    with pytest.raises(TableError, match="use the image file"):
        open_table(tmp_path / "train-labels-idx1-ubyte")


def test_options_of_columns_are_rejected(tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, np.ones((2, 2)))
    for option in ({"delimiter": ","}, {"header": True}, {"categorical": [0]}, {"skip_rows": 1}):
        with pytest.raises(TableError, match="is for tables with named columns"):
            open_table(path, **option)


def test_several_matrices(tmp_path):
    for i, width in enumerate([3, 3, 4]):
        np.save(tmp_path / f"rows{i}.npy", np.full((5, width), i))
    table = open_table([tmp_path / "rows0.npy", tmp_path / "rows1.npy"], block_bytes=48)
    assert rows(table)[0][:, 0].tolist() == [0] * 5 + [1] * 5
    assert rows(table, seed=1)[0][:, 0].tolist() == [0] * 5 + [1] * 5
    with pytest.raises(TableError, match=r"rows0\.npy has 3 columns, but .*rows2\.npy has 4"):
        open_table(tmp_path / "rows*.npy")


def test_no_rows(tmp_path):
    np.save(tmp_path / "rows.npy", np.ones((0, 3)))
    table = open_table(tmp_path / "rows.npy")
    assert list(table.blocks()) == list(table.blocks(seed=0)) == []
    assert table.n_rows == 0
