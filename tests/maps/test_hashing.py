"""Buckets and signs: which entries collide."""

import hashlib
import itertools
import math

import numpy as np
import pytest

from kernelmill.maps.hashing import draw_hashes, lattice_multipliers
from kernelmill.random import Stream

SHAPES = [(1, 1, 1), (2, 1, 1), (2, 5, 1), (3, 7, 2), (2, 16, 16), (3, 20, 21), (2, 100, 64)]


@pytest.mark.representative
@pytest.mark.parametrize("hashing", ["collision_free", "independent"])
@pytest.mark.parametrize(("degree", "dim", "length"), SHAPES)
def test_range(hashing, degree, dim, length):
    buckets, signs = draw_hashes(Stream.from_seed(1), hashing, degree, dim, length)
    assert buckets.shape == signs.shape == (degree, dim)
    assert buckets.dtype == np.int32
    assert buckets.min() >= 0
    assert buckets.max() < length
    assert set(np.unique(signs)) <= {-1, 1}


@pytest.mark.parametrize("degree", [1, 2, 3, 5])
def test_buckets_of_one_sketch_are_balanced(degree):
    for dim, length in itertools.product(
        (1, 2, 5, 16, 30, 64, 100, 129, 250), (16, 17, 20, 30, 31, 64, 100, 128, 1000)
    ):
        buckets, _ = draw_hashes(Stream.from_seed(2), "collision_free", degree, dim, length)
        for row in buckets:
            assert np.bincount(row).max() <= -(-dim // length), (dim, length)


def entries_per_bucket(buckets, length):
    """How many entries of the tensor product fall into each bucket, by counting them all."""
    counts = np.zeros(length, np.int64)
    for chosen in itertools.product(*buckets):
        counts[sum(chosen) % length] += 1
    return counts


@pytest.mark.parametrize(
    ("degree", "dim", "length"), [(2, 7, 49), (2, 7, 60), (3, 4, 64), (3, 5, 130), (4, 3, 81)]
)
def test_enough_buckets_hold_one_entry_of_the_product_each(degree, dim, length):
    buckets, _ = draw_hashes(Stream.from_seed(3), "collision_free", degree, dim, length)
    assert entries_per_bucket(buckets, length).max() == 1


@pytest.mark.parametrize(
    ("degree", "dim", "length"),
    [(2, 16, 32), (2, 16, 100), (2, 16, 200), (2, 40, 1000), (2, 54, 1024), (3, 9, 300)],
)
def test_products_collide_less_than_at_random(degree, dim, length):
    """Random buckets without collisions in one sketch have as many as below, up to 1 %.

    The ordered pairs of entries whose indices differ in m places number C(p, m) d^p (d - 1)^m and
    collide, at random, with probability 1 / (D - 1) for m = 2 and about 1 / D for more.
    """
    buckets, _ = draw_hashes(Stream.from_seed(4), "collision_free", degree, dim, length)
    counts = entries_per_bucket(buckets, length)
    pairs = int((counts * (counts - 1)).sum())
    at_random = sum(
        math.comb(degree, m) * dim**degree * (dim - 1) ** m / (length - (m == 2))
        for m in range(2, degree + 1)
    )
    assert pairs < 0.99 * at_random


def test_multipliers_are_the_best_of_what_was_tried():
    def collisions(g, dim, length):
        buckets = [np.arange(dim), g * np.arange(dim) % length]
        counts = entries_per_bucket(buckets, length)
        return int((counts * (counts - 1)).sum())

    for dim, length in [(12, 40), (12, 41), (15, 100), (20, 64)]:
        first, g = lattice_multipliers(dim, length, 2)
        assert first == 1
        assert math.gcd(g, length) == 1
        near = [k for k in range(dim - 15, dim + 16) if 1 < k < length and math.gcd(k, length) == 1]
        assert collisions(g, dim, length) <= min(collisions(k, dim, length) for k in near)


def test_few_buckets_and_large_numbers():
    assert lattice_multipliers(5, 1, 3) == (0, 0, 0)
    assert lattice_multipliers(5, 2, 3) == (1, 1, 1)
    assert lattice_multipliers(1, 1, 4) == (1, 1, 1, 1)
    large = lattice_multipliers(10**5, 2**31 - 1, 3)
    assert all(math.gcd(g, 2**31 - 1) == 1 for g in large)
    assert len(lattice_multipliers(3, 1000, 1200)) == 1200  # more than there are units


def test_sketches_are_independent_of_each_other():
    """Orders and signs of the factors: correlations of 1000 are below 4.9 / sqrt(1000)."""
    buckets, signs = draw_hashes(Stream.from_seed(5), "collision_free", 4, 1000, 1000)
    hashed, hashed_signs = draw_hashes(Stream.from_seed(5), "independent", 4, 1000, 1000)
    for a, b in itertools.combinations(range(4), 2):
        for rows in (signs, hashed_signs):
            assert abs(np.corrcoef(rows[a], rows[b])[0, 1]) < 0.155
        assert abs(np.corrcoef(hashed[a], hashed[b])[0, 1]) < 0.155
        order = np.argsort(buckets[a]), np.argsort(buckets[b])
        assert abs(np.corrcoef(*order)[0, 1]) < 0.155


GOLDEN = {
    ("collision_free", 2, 10, 16): "aaa4b3b60d53ffc5",
    ("collision_free", 3, 123, 1024): "225ba8c7c1982b0e",
    ("collision_free", 4, 5000, 5000): "9ae0911eb3a949f9",
    ("collision_free", 2, 300, 100): "c8871fcfe25bd194",
    ("independent", 2, 10, 16): "bab769b01ef3814c",
    ("independent", 3, 123, 1024): "a8896199063fc8f0",
    ("independent", 4, 5000, 5000): "f7c5bed9e49e6fb4",
    ("independent", 2, 300, 100): "bb4b53c996059f47",
}


def digest(hashing, degree, dim, length):
    buckets, signs = draw_hashes(Stream.from_seed(42), hashing, degree, dim, length)
    content = buckets.astype("<i4").tobytes() + signs.tobytes()
    return hashlib.sha256(content).hexdigest()[:16]


@pytest.mark.representative
@pytest.mark.parametrize("case", GOLDEN, ids=str)
def test_the_same_in_every_release(case):
    assert digest(*case) == GOLDEN[case]


if __name__ == "__main__":
    for hashing in ("collision_free", "independent"):
        for degree, dim, length in [(2, 10, 16), (3, 123, 1024), (4, 5000, 5000), (2, 300, 100)]:
            case = (hashing, degree, dim, length)
            print(f'    {case}: "{digest(*case)}",'.replace("'", '"'))  # noqa: T201
