"""Speed of kernelmill beside its peers and the physical limits, all timed in one run."""
