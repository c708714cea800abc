"""Arrays from lengths."""

from __future__ import annotations

from oco.dsl.atoms import shapes
from oco.dsl.atoms.base import Atom

CONSTRUCTORS: tuple[Atom, ...] = (
    Atom("ones", "an array of ones; the arguments are its shape", (0, None), shapes.filled),
    Atom("zeros", "an array of zeros; the arguments are its shape", (0, None), shapes.filled),
    Atom("eye", "the identity matrix", (1, 1), shapes.identity),
    Atom("repeat", "each entry of v, k times", (2, 2), shapes.repeated, integer=lambda c: c.args[0].integer),
)
