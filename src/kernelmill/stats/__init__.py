"""Statistical tests on features that are never stored.

Contents
--------
two_sample_test
    Test whether two samples have the same distribution: maximum mean discrepancy in linear time.
TwoSampleResult
    The result of the test.
"""

from kernelmill.stats.two_sample import TwoSampleResult, two_sample_test

__all__ = ["TwoSampleResult", "two_sample_test"]
