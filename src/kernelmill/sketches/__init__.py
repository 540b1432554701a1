"""Sketches: short random summaries of long vectors that keep inner products.

Contents
--------
PolynomialSketch
    Sketches of tensor powers: convolutions of count sketches.
MaclaurinSketch
    Products of projections to random signs.
draw_hashes, HASHINGS
    The buckets and signs of count sketches.
"""

from kernelmill.sketches.hashing import HASHINGS, draw_hashes
from kernelmill.sketches.maclaurin import MaclaurinSketch
from kernelmill.sketches.tensor_sketch import PolynomialSketch

__all__ = ["HASHINGS", "MaclaurinSketch", "PolynomialSketch", "draw_hashes"]
