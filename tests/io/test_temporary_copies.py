"""A shuffled order of compressed files needs a copy; a full disk is reported."""

import gzip
import io
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from kernelmill.io import TableError, open_table


class FullDisk(io.BytesIO):
    def write(self, data):
        raise OSError(28, "No space left on device")


def write_text(path):
    path.write_bytes(gzip.compress(b"1,2\n" * 1000))


def write_npz(path):
    np.savez_compressed(path, X=np.ones((1000, 3)))


def write_parquet(path):
    pa.parquet.write_table(pa.table({"a": range(1000)}), path)


@pytest.mark.parametrize(
    ("name", "write"),
    [("rows.csv.gz", write_text), ("rows.npz", write_npz), ("rows.parquet", write_parquet)],
)
def test_full_disk(tmp_path, monkeypatch, name, write):
    write(tmp_path / name)
    table = open_table(tmp_path / name, block_bytes=1000)
    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "TemporaryFile", FullDisk)
        with pytest.raises(TableError, match=rf"{name} cannot be copied.*No space.*TMPDIR"):
            list(table.blocks(seed=0))
    n_rows = sum(block.n_rows for block in table.blocks(seed=0))  # there is space again
    assert n_rows == 1000


@pytest.mark.parametrize(
    ("name", "write"),
    [("rows.csv.gz", write_text), ("rows.npz", write_npz), ("rows.parquet", write_parquet)],
)
def test_copies_have_no_name(tmp_path, monkeypatch, name, write):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    write(tmp_path / name)
    table = open_table(tmp_path / name, block_bytes=1000)
    blocks = table.blocks(seed=0)
    next(blocks)
    assert list(folder.iterdir()) == []
