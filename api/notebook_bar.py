"""Progress bar of a run in a notebook: shown after a second, gone when the run ends."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

AFTER = 1.0
"""Seconds after which a bar is shown."""
EVERY = 0.2
"""Seconds between two changes of it."""


def notebook_bar(title: str, total: int | None) -> NotebookBar | None:
    """Bar for a run of `total` rounds (None: unknown); None outside of a notebook."""
    package = sys.modules.get("IPython")  # a notebook has loaded it
    shell = package.get_ipython() if package is not None else None
    if not hasattr(shell, "kernel"):
        return None
    from IPython.display import HTML, display

    return NotebookBar(title, total, lambda text: display(HTML(text), display_id=True), HTML)


class NotebookBar:
    """Callback of `plan.run`: rounds played, the sum of the losses, the sum of the violations.

    show  displays HTML and gives a handle with `update`; `wrapped` makes what `update` takes of HTML
    """

    def __init__(
        self, title: str, total: int | None, show: Callable[[str], Any], wrapped: Callable[[str], Any] = str
    ) -> None:
        self.title, self.total = title, total
        self._show, self._wrapped = show, wrapped
        self._began, self._changed = perf_counter(), 0.0
        self._handle: Any = None

    def __call__(self, rounds: int, loss: float, violation: float) -> None:
        now = perf_counter()
        if now - self._began < AFTER or now - self._changed < EVERY:
            return
        self._changed = now
        text = self._text(rounds, loss, violation)
        if self._handle is None:
            self._handle = self._show(text)
        else:
            self._handle.update(self._wrapped(text))

    def close(self) -> None:
        """Take the bar away."""
        if self._handle is not None:
            self._handle.update(self._wrapped(""))

    def _text(self, rounds: int, loss: float, violation: float) -> str:
        """HTML of the bar, with the rate and the time to go."""
        seconds = perf_counter() - self._began
        ends = "" if self.total is None else f' value="{rounds}" max="{self.total}"'
        of = "" if self.total is None else f" of {self.total:,}"
        left = (
            ""
            if self.total is None
            else f", about {max(self.total - rounds, 0) * seconds / max(rounds, 1):.0f} s to go"
        )
        words = f"{self.title}: round {rounds:,}{of}{left}; loss {loss:,.6g}, violation {violation:,.6g}"
        return f'<progress{ends} style="width: 24em"></progress> {words}'
