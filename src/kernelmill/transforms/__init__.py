"""Fast transforms of arrays: Walsh-Hadamard, circular convolution, sine and cosine."""

from kernelmill.transforms.convolution import circular_convolve
from kernelmill.transforms.trigonometry import sincos
from kernelmill.transforms.walsh_hadamard import fwht

__all__ = ["circular_convolve", "fwht", "sincos"]
