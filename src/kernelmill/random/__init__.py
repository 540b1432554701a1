"""Counter-based random streams: randomness as a value.

A `Stream` is only a key. Each draw is a pure function of the key, the distribution and the
position, computed with basic IEEE operations: it is the same on every machine, for every number of
threads and in every release.

Contents
--------
Stream
    Signs, uniforms, normals, gamma, chi, Cauchy, Student's t, spheres, balls, integers,
    permutations and hash functions of one key, and its independent named substreams.
HashFunction, SignHash
    k-wise independent hash functions of integers to buckets and to signs.
normal_quantile
    The inverse of the normal distribution function.
"""

from kernelmill.random.hashing import HashFunction, SignHash
from kernelmill.random.quantiles import normal_quantile
from kernelmill.random.stream import Stream

__all__ = ["HashFunction", "SignHash", "Stream", "normal_quantile"]
