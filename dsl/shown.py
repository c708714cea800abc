"""Display of a value in an IPython shell as text, where a notebook shows HTML."""

from __future__ import annotations

from typing import Any


def shown_as_text(value: Any, printer: Any, cycle: bool) -> None:
    """Method `_repr_pretty_` for a class whose `str` is meant to be read."""
    printer.text(str(value).rstrip("\n"))
