"""Functions and types that emitted sources share, and the linking of references to them.

A text refers to one of them as `@name`. In a source it has the source's prefix, so that several sources make one program.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files

from oco.backends.c99 import vectors
from oco.backends.c99.templates import HELPERS
from oco.dsl.records import dataclass

KERNELS = (
    "sort",
    "sort_int",
    "argsort",
    "weighted_quantile",
    "row_products",
    "solve",
    "reflections",
    "rotations",
    "svd",
    "eigh",
)
"""Files of functions, in the order of a source."""
_REFERENCE = re.compile(r"@(\w+)")
_DEFINITION = re.compile(r"^(?:\w[^(@]*|#define )@(\w+)\b", re.MULTILINE)
"""Head of a function or a macro in a file: it begins its line."""


@dataclass(frozen=True)
class Piece:
    """Text of the library with the names that it defines."""

    text: str
    defines: frozenset[str]

    @property
    def lines(self) -> list[str]:
        """Lines in a source; functions of several lines end a paragraph."""
        lines = self.text.rstrip("\n").split("\n")
        return [*lines, ""] if len(lines) > 1 else lines


@cache
def pieces() -> tuple[Piece, ...]:
    """Pieces in the order of a source: types, small functions, kernels."""
    kernels = [files("oco.backends.c99").joinpath("kernels", f"{name}.c").read_text("utf-8") for name in KERNELS]
    return (
        *(Piece(text, frozenset({name})) for name, text in vectors.DECLARED.items()),
        *(Piece(f"static inline {text}", frozenset({name})) for name, text in (HELPERS | vectors.HELPERS).items()),
        *(Piece(text, frozenset(_DEFINITION.findall(text))) for text in kernels),
    )


@cache
def _defined() -> Mapping[str, Piece]:
    return {name: piece for piece in pieces() for name in piece.defines}


def names() -> frozenset[str]:
    """Names of the library, which other global names of a source must not have."""
    return frozenset(_defined())


def linked(lines: Sequence[str], prefix: str, own: Mapping[str, str] | None = None) -> list[str]:
    """Lines after the pieces that they refer to, directly or through others; references have the prefix of the source.

    own  texts of functions in place of the library's (`Arithmetic.pieces`)
    """
    used = _used(lines)
    text = [line for piece in pieces() if piece in used for line in _replaced(piece, own or {}).lines]
    return [_REFERENCE.sub(lambda m: f"{prefix}_{m[1]}", line) for line in (*text, *lines)]


def _replaced(piece: Piece, own: Mapping[str, str]) -> Piece:
    """Piece with the text that stands in its place."""
    names = [name for name in piece.defines if name in own]
    return Piece(f"static inline {own[names[0]]}", piece.defines) if names else piece


def _used(lines: Iterable[str]) -> set[Piece]:
    """Pieces that lines refer to, and those that these need."""
    used: set[Piece] = set()
    left = [name for line in lines for name in _REFERENCE.findall(line)]
    while left:
        piece = _defined().get(left.pop())  # a name that the lines define themselves is not of the library
        if piece is not None and piece not in used:
            used.add(piece)
            left += _REFERENCE.findall(piece.text)
    return used
