"""A command that takes words and defaults as they are. Typer would load Pydantic for them, a sixth of a short command's time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args, get_origin

from typer.core import TyperCommand

READ: dict[Any, Callable[[str], Any]] = {str: str, Path: Path}
"""Types of parameters that any word is of, and what makes them of it."""


class AsGiven:
    """How a parameter is read: what needs no check as it is, the rest as Typer does."""

    def __init__(self, annotation: Any) -> None:
        self.several = get_origin(annotation) is list
        self.kind = get_args(annotation)[0] if self.several else annotation

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value of a word, of several, of none, or of a default."""
        if value is None:
            return () if self.several else None
        words = value if self.several else (value,)
        if self.kind in READ and all(isinstance(word, str) for word in words):
            read = [READ[self.kind](word) for word in words]
            return read if self.several else read[0]
        if not self.several and type(value) is self.kind:
            return value
        param._runtime_param = None
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


class Command(TyperCommand):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for param in self.params:
            if getattr(param, "_runtime_param", self) is None:  # a Typer that reads with Pydantic, once it has to
                param._runtime_param = AsGiven(param.type_descriptor.annotation)
