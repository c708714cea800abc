"""What a shell of IPython shows of a value: its text, where a notebook shows HTML."""

from __future__ import annotations

from typing import Any


def shown_as_text(value: Any, printer: Any, cycle: bool) -> None:
    """The method `_repr_pretty_` of a class whose `str` is meant to be read."""
    printer.text(str(value).rstrip("\n"))
