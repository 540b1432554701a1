"""Sketches: short random summaries of long vectors that keep inner products.

Contents
--------
PolynomialSketch
    Of tensor powers: convolutions of count sketches.
MaclaurinSketch
    Products of projections to random signs.
draw_hashes, HASHINGS, MOST_BUCKETS
    The buckets and signs that count sketches are made of.
"""

from kernelmill.sketches.hashing import HASHINGS, MOST_BUCKETS, draw_hashes
from kernelmill.sketches.maclaurin import MaclaurinSketch
from kernelmill.sketches.tensor_sketch import PolynomialSketch

__all__ = ["HASHINGS", "MOST_BUCKETS", "MaclaurinSketch", "PolynomialSketch", "draw_hashes"]
