"""Speed of kernelmill compared with its peers and with physical limits, timed in one run."""
