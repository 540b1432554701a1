"""MNIST, the handwritten digits, from the idx files of the original."""

import gzip
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FILES = {
    "X": "train-images-idx3-ubyte",
    "y": "train-labels-idx1-ubyte",
    "X_test": "t10k-images-idx3-ubyte",
    "y_test": "t10k-labels-idx1-ubyte",
}
NOT_FOUND = (
    "MNIST was not found: set KERNELMILL_DATA to a folder with mnist/train-images-idx3-ubyte.gz "
    "and its three companions, unpacked or not."
)


@dataclass(frozen=True)
class Mnist:
    """60000 and 10000 rows of 784 pixels in [0, 1], float32, and their digits."""

    X: NDArray[np.float32]
    y: NDArray[np.uint8]
    X_test: NDArray[np.float32]
    y_test: NDArray[np.uint8]


def find_mnist() -> Path | None:
    """Return the folder mnist in $KERNELMILL_DATA or in ../shared/data."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    for folder in (os.environ.get("KERNELMILL_DATA"), beside):
        if folder and all(_path(Path(folder) / "mnist", name) for name in FILES.values()):
            return Path(folder) / "mnist"
    return None


def load_mnist() -> Mnist | None:
    """Load the digits; None if the files are not available."""
    folder = find_mnist()
    if folder is None:
        return None
    raw = {key: read_idx(folder, name) for key, name in FILES.items()}
    pixels = {
        key: raw[key].reshape(len(raw[key]), -1).astype(np.float32) / np.float32(255)
        for key in ("X", "X_test")
    }
    return Mnist(pixels["X"], raw["y"], pixels["X_test"], raw["y_test"])


def read_idx(folder: Path, name: str) -> NDArray[np.uint8]:
    """Read an idx file of bytes: two zeros, the type 8, the number of axes, their lengths."""
    path = _path(folder, name)
    assert path is not None
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    if len(data) < 4 or data[:3] != b"\0\0\x08":
        raise SystemExit(f"{path} is not an idx file of bytes: it begins with {data[:4]!r}.")
    shape = np.frombuffer(data, ">u4", count=data[3], offset=4).astype(int)
    values = np.frombuffer(data, np.uint8, offset=4 + 4 * len(shape))
    if len(values) != shape.prod():
        raise SystemExit(f"{path} is cut short: {len(values)} bytes in place of {shape.prod()}.")
    return values.reshape(shape)


def _path(folder: Path, name: str) -> Path | None:
    """Return the file of this name, packed or not."""
    for path in (folder / f"{name}.gz", folder / name):
        if path.is_file():
            return path
    return None
