"""Entry point of `python -m oco`, the same command line as `oco`."""

import sys

from oco.cli import main

if __name__ == "__main__":
    sys.exit(main())
