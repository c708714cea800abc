"""Commands that take words and defaults as they are. Typer would load Pydantic for them, a sixth of the time of a short
command.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args, get_origin

from typer.core import TyperArgument, TyperCommand, TyperGroup

from oco.dsl.records import dataclass

READ: dict[Any, Callable[[str], Any]] = {str: str, Path: Path}
"""Types of parameters that any word is of, and what makes them of it."""


@dataclass(frozen=True)
class Invocation:
    """Command line: its words, and the effort given before the command. `show_help` prints the help of a command and
    ends the process; it returns where there is no command of that name.
    """

    words: tuple[str, ...] = ()
    effort: float = 1.0
    show_help: Callable[[str], None] = lambda name: None


class AsGiven:
    """Type of a parameter that takes values as they are where they need no check, and otherwise as Typer does."""

    def __init__(self, annotation: Any) -> None:
        self.several = get_origin(annotation) is list
        self.kind = get_args(annotation)[0] if self.several else annotation

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Value of a word, of several, of none, or of a default."""
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


def _as_given(params: list[Any]) -> list[Any]:
    """The parameters, each read as it is given where their Typer reads with Pydantic and has not begun to; arguments without a type."""
    for param in params:
        if isinstance(param, TyperArgument):
            param.display_type_rich = _no_words  # type: ignore[method-assign]
        if getattr(param, "_runtime_param", params) is None:
            param._runtime_param = AsGiven(param.type_descriptor.annotation)
    return params


def _without_type(option: Any) -> Any:
    """The option of help, which takes no value and shows no type of one."""
    if option is not None:
        option.metavar = ""
    return option


def _no_words(ctx: Any) -> None:
    """No text for the type of an argument, which its name and its help make clear."""


class Command(TyperCommand):
    """Command whose parameters are read without Pydantic."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Parameters of the command, read as given where possible."""
        return _as_given(super().get_params(ctx))

    def get_help_option(self, ctx: Any) -> Any:
        """Option `--help`, shown without a type."""
        return _without_type(super().get_help_option(ctx))


class CommandGroup(TyperGroup):
    """Group of commands whose parameters are read without Pydantic."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Parameters of the group, read as given where possible."""
        return _as_given(super().get_params(ctx))

    def get_help_option(self, ctx: Any) -> Any:
        """Option `--help`, shown without a type."""
        return _without_type(super().get_help_option(ctx))
