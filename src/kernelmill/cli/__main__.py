"""`python -m kernelmill.cli` is `kernelmill` where the script is not on the path."""

import sys

from kernelmill.cli import main

if __name__ == "__main__":
    sys.exit(main())
