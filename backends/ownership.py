"""One owner at a time: threads may use a learner or a fleet in turns, and one that comes while another is at work is told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

from oco.dsl.diagnostics import fail


class Owned:
    """What one thread uses at a time; `kind` is its name in the error."""

    kind = "learner"

    def __init__(self) -> None:
        self._owner = RLock()

    @property
    def round(self) -> int:
        """The round that `decide` answers now, from 1."""
        raise NotImplementedError

    @contextmanager
    def _owned(self) -> Iterator[None]:
        """Held while something is done that other threads must not see half of. Raises OCO853."""
        if not self._owner.acquire(blocking=False):
            raise fail("OCO853", f"another thread is using this {self.kind}, in round {self.round}")
        try:
            yield
        finally:
            self._owner.release()
