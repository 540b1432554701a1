"""Files with random damage: always a ModelFileError, never other content."""

import numpy as np
import pytest

from kernelmill import Fastfood, KernelRegressor
from kernelmill.files import ModelFileError, read_model_file
from kernelmill.learners import load_learner


@pytest.fixture(scope="module")
def valid(tmp_path_factory):
    """The bytes of a small model, and of which the header is."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 3))
    model = KernelRegressor(Fastfood(n_components=6, random_state=0)).fit(X, X[:, 0])
    path = tmp_path_factory.mktemp("fuzz") / "model.kmill"
    model.save(path)
    return path.read_bytes()


def damaged(content, rng):
    """One of several kinds of damage at a random place; most of the file is header."""
    at = int(rng.integers(len(content)))
    kind = rng.integers(6)
    if kind == 0:  # a bit
        flipped = content[at] ^ (1 << int(rng.integers(8)))
        return content[:at] + bytes([flipped]) + content[at + 1 :]
    if kind == 1:  # a byte
        return content[:at] + rng.bytes(1) + content[at + 1 :]
    if kind == 2:
        return content[:at]
    if kind == 3:
        return content[:at] + rng.bytes(int(rng.integers(1, 9))) + content[at:]
    if kind == 4:  # some bytes are missing
        return content[:at] + content[at + int(rng.integers(1, 9)) :]
    other = int(rng.integers(len(content)))  # a part from elsewhere
    length = int(rng.integers(1, 65))
    part = content[other : other + length]
    return content[:at] + part + content[at + len(part) :]


@pytest.mark.parametrize("seed", range(2))
def test_random_damage(valid, tmp_path, seed):
    rng = np.random.default_rng(seed)
    path = tmp_path / "damaged.kmill"
    n_damaged = 0
    for _ in range(1000):
        content = damaged(valid, rng)
        if content == valid:
            continue
        n_damaged += 1
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match=r"damaged\.kmill' cannot be loaded"):
            read_model_file(path)
    assert n_damaged > 900


def test_every_byte_of_the_first_and_last(valid, tmp_path):
    path = tmp_path / "damaged.kmill"
    for at in [*range(40), *range(len(valid) - 40, len(valid))]:
        for change in (1, 128, 255):
            path.write_bytes(valid[:at] + bytes([valid[at] ^ change]) + valid[at + 1 :])
            with pytest.raises(ModelFileError):
                load_learner(path)


def test_every_length(valid, tmp_path):
    path = tmp_path / "damaged.kmill"
    for length in range(0, len(valid), 3):
        path.write_bytes(valid[:length])
        with pytest.raises(ModelFileError):
            load_learner(path)


def test_the_file_itself_is_valid(valid, tmp_path):
    path = tmp_path / "valid.kmill"
    path.write_bytes(valid)
    assert load_learner(path).n_features_in_ == 3
