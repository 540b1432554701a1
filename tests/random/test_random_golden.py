"""Golden vectors: the same bits on every machine and in every release.

golden.json holds them. It may grow, but no entry may ever change: a saved model stores its seed,
and its coefficients are drawn again wherever it is loaded. A failure means that the library or the
compiler changed the arithmetic (contraction of a * b + c, -ffast-math, flushed subnormals).
"""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from kernelmill.random import Stream, normal_quantile

pytestmark = pytest.mark.representative

GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text())
# Elements under a digest; more than one piece of work.
DIGEST_SIZE = 20_011
ORTHOGONAL_DIGEST_DIM = 203


def name_of(entry):
    arguments = ", ".join(map(str, entry["arguments"]))
    return f"{entry['method']}({arguments})-seed {entry['seed']}-start {entry.get('start', 0)}"


def plain(values):
    """Floats as hexadecimal strings, integers as they are."""
    values = np.asarray(values)
    if values.dtype.kind == "f":
        return [float(v).hex() for v in values.reshape(-1)]
    return values.reshape(-1).tolist()


def digest(values):
    little = np.asarray(values).astype(values.dtype.newbyteorder("<"))
    return hashlib.sha256(little.tobytes()).hexdigest()[:32]


def drawn(entry, size):
    method = getattr(Stream.from_seed(entry["seed"]), entry["method"])
    return method(size, *entry["arguments"], start=entry["start"], dtype=entry["dtype"])


@pytest.mark.parametrize("entry", GOLDEN["draws"], ids=name_of)
def test_draws(entry):
    assert plain(drawn(entry, entry["size"])) == entry["values"]
    assert digest(drawn(entry, DIGEST_SIZE)) == entry["digest"]


@pytest.mark.parametrize("entry", GOLDEN["permutations"], ids=name_of)
def test_permutations(entry):
    stream, index = Stream.from_seed(entry["seed"]), entry["index"]
    assert stream.permutation(*entry["arguments"], index=index).tolist() == entry["values"]
    assert digest(stream.permutation(DIGEST_SIZE, index=index)) == entry["digest"]


@pytest.mark.parametrize("entry", GOLDEN["orthogonal matrices"], ids=name_of)
def test_orthogonal_matrices(isa, entry):
    stream, index = Stream.from_seed(entry["seed"]), entry["index"]
    assert plain(stream.orthogonal(*entry["arguments"], index=index)) == entry["values"]
    assert digest(stream.orthogonal(ORTHOGONAL_DIGEST_DIM, index=index)) == entry["digest"]


@pytest.mark.parametrize("entry", GOLDEN["hashes"], ids=name_of)
def test_hashes(entry):
    make = getattr(Stream.from_seed(entry["seed"]), entry["method"])
    options = {"independence": entry["independence"], "index": entry["index"]}
    hashed = make(*entry["arguments"], **options)
    assert list(hashed.coefficients) == entry["coefficients"]
    assert hashed(np.arange(len(entry["values"]))).tolist() == entry["values"]


def test_quantiles():
    p = np.array([float.fromhex(v) for v in GOLDEN["quantiles"]["p"]])
    assert plain(normal_quantile(p)) == GOLDEN["quantiles"]["values"]
    assert digest(normal_quantile(np.arange(1, 2**14) / 2**14)) == GOLDEN["quantiles"]["digest"]


@pytest.mark.parametrize("entry", GOLDEN["keys"], ids=lambda entry: str(entry["path"]))
def test_keys(entry):
    stream = Stream.from_seed(int(entry["seed"]))
    if entry["path"]:
        stream = stream.substream(*entry["path"])
    assert f"{stream.key:032x}" == entry["key"]


def test_the_key_of_a_random_state():
    # RandomState is frozen by NumPy; a Generator may change, so it has no golden key.
    stream = Stream.from_random_state(np.random.RandomState(0))
    assert f"{stream.key:032x}" == GOLDEN["key of RandomState(0)"]
