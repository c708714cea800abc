"""Command of a child process with limits, which `oco.guarded` starts."""

from __future__ import annotations

from collections.abc import Sequence

from oco.cli import main
from oco.guarded import limit


def child(argv: Sequence[str]) -> int:
    """Set the limits of this process (seconds, bytes of memory), then run a command, given by its words."""
    limit(float(argv[0]), int(argv[1]))
    return main(argv[2:])
