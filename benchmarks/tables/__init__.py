"""Error and time of kernelmill's defaults beside boosted trees and others, on many tables."""
