"""Fast transforms of arrays: Walsh-Hadamard, circular convolution, sine and cosine."""

from kernelmill.transforms.convolution import circular_convolve
from kernelmill.transforms.fwht import fwht
from kernelmill.transforms.trigonometry import sincos

__all__ = ["circular_convolve", "fwht", "sincos"]
