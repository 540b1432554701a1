"""Samples of rows: the same for any blocks, uniform, and with data and labels kept together."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.sparse import csr_array
from scipy.stats import chisquare

from kernelmill.io.row_sample import RowSample
from kernelmill.io.table import TableBlock
from kernelmill.random import Stream


def blocks_of(X, labels, size):
    for begin in range(0, len(labels), size):
        part = slice(begin, begin + size)
        yield TableBlock(X[part], labels[part], Path("t"), begin)


def sampled(X, labels, size, n=50):
    sample = RowSample(n, Stream.from_seed(1))
    for block in blocks_of(X, labels, size):
        sample.update(block)
    return sample.rows()


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_does_not_depend_on_the_blocks(size):
    X, labels = np.arange(2000.0).reshape(1000, 2), np.arange(1000)
    block, positions = sampled(X, labels, size)
    whole, expected = sampled(X, labels, 1000)
    np.testing.assert_array_equal(positions, expected)
    np.testing.assert_array_equal(block.data, whole.data)
    np.testing.assert_array_equal(block.labels, positions)
    np.testing.assert_array_equal(block.data[:, 0], 2.0 * positions)


def test_sparse_rows_and_record_batches():
    labels = np.arange(300)
    dense = np.eye(3)[labels % 3]
    sparse, positions = sampled(csr_array(dense), labels, 17)
    np.testing.assert_array_equal(sparse.data.toarray(), dense[positions])
    texts = [f"t{i}" for i in range(300)]
    sample = RowSample(50, Stream.from_seed(1))
    for begin in range(0, 300, 17):
        column = pa.array(texts[begin : begin + 17]).dictionary_encode()
        sample.update(TableBlock(pa.record_batch({"a": column}), None, Path("t"), begin))
    block, others = sample.rows()
    np.testing.assert_array_equal(others, positions)
    assert block.data.column("a").to_pylist() == [texts[i] for i in positions]


def test_few_rows_are_all_there():
    block, positions = sampled(np.arange(6.0).reshape(3, 2), np.arange(3), 2)
    assert sorted(positions) == [0, 1, 2]
    assert len(block.data) == 3


def test_is_uniform():
    """Counts of 20 parts over 200 seeds; false alarm 1e-6."""
    counts = np.zeros(20)
    for seed in range(200):
        sample = RowSample(100, Stream.from_seed(seed))
        for block in blocks_of(np.zeros((1000, 1)), np.arange(1000), 128):
            sample.update(block)
        counts += np.bincount(sample.rows()[1] // 50, minlength=20)
    assert chisquare(counts).pvalue > 1e-6
