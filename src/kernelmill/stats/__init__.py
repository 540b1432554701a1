"""Statistics on features that are never stored.

Contents
--------
two_sample_test
    Whether two samples come from one distribution: maximum mean discrepancy in linear time.
TwoSampleResult
    What it returns.
"""

from kernelmill.stats.result import TwoSampleResult
from kernelmill.stats.two_sample import two_sample_test

__all__ = ["TwoSampleResult", "two_sample_test"]
