"""Functions of each entry."""

from __future__ import annotations

from oco.dsl.atoms.base import Atom
from oco.dsl.atoms.operators import whole
from oco.dsl.atoms.shapes import entrywise

ELEMENTWISE: tuple[Atom, ...] = (
    Atom("abs", "the absolute value", (1, 1), entrywise, integer=whole),
    Atom("pos", "max(x, 0)", (1, 1), entrywise, integer=whole),
    Atom("neg", "max(-x, 0)", (1, 1), entrywise, integer=whole),
    Atom("square", "x squared", (1, 1), entrywise),
    Atom("sqrt", "the square root", (1, 1), entrywise),
    Atom("exp", "e to the power x", (1, 1), entrywise),
    Atom("log", "the natural logarithm", (1, 1), entrywise),
    Atom("log1p", "log(1 + x)", (1, 1), entrywise),
    Atom("logistic", "log(1 + exp(x))", (1, 1), entrywise),
    Atom("huber", "x**2 where |x| <= M, else 2 * M * |x| - M**2; M is 1 unless given", (1, 2), entrywise),
    Atom("entr", "-x * log(x)", (1, 1), entrywise),
    Atom("kl_div", "x * log(x / y) - x + y", (2, 2), entrywise),
    Atom("rel_entr", "x * log(x / y)", (2, 2), entrywise),
    Atom("inv_pos", "1 / x for positive x", (1, 1), entrywise),
    Atom("power", "x to the power p", (2, 2), entrywise),
    Atom("hinge", "max(1 - x, 0)", (1, 1), entrywise),
    Atom("maximum", "the largest of several arguments, entry by entry", (2, None), entrywise, integer=whole),
    Atom("minimum", "the smallest of several arguments, entry by entry", (2, None), entrywise, integer=whole),
)
