"""Figure that shows itself in a notebook, whatever the setup there."""

from __future__ import annotations

from io import BytesIO

from matplotlib.figure import Figure

SCREEN = 80  # dots an inch


class OffscreenFigure(Figure):
    """A figure without a window."""

    def _repr_png_(self) -> bytes:
        out = BytesIO()
        self.savefig(out, format="png", dpi=SCREEN)
        return out.getvalue()
