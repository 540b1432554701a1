"""`python -m kernelmill.cli` runs `kernelmill` if the script is not on the path."""

import sys

from kernelmill.cli import main

if __name__ == "__main__":
    sys.exit(main())
