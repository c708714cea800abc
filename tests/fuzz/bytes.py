"""`python tests/fuzz/bytes.py [libFuzzer options] tests/fuzz/corpus`: raw bytes with coverage guidance (the extra `fuzz`)."""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parent))

with atheris.instrument_imports(include=["oco.dsl", "oco.grammar"]):
    import oco

from target import run


def one(data: bytes) -> None:
    """Bytes that are no text are refused by whoever reads the file; the rest goes the whole way."""
    run(data.decode("utf-8", errors="replace"), compile=False)


if __name__ == "__main__":
    assert oco.__version__
    atheris.Setup(sys.argv, one)
    atheris.Fuzz()
