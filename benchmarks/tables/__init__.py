"""Error and time of kernelmill's defaults compared with other learners, on many tables."""
