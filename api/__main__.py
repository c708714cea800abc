"""`python -m oco` is the command `oco`."""

import sys

from oco.cli import main

if __name__ == "__main__":
    sys.exit(main())
