"""Functions with kinks as the largest or smallest of smooth pieces: where one is differentiable its gradient is that of a piece.

So a Lipschitz constant of every piece is one of the whole (Clarke 1983, 2.3): max(f, g) needs no better bound than f and g.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from oco.compiler.facts.budget import size
from oco.compiler.facts.entry import entry
from oco.compiler.facts.sums import Terms, summands, total
from oco.dsl.build import call
from oco.dsl.dims import known
from oco.dsl.expressions import Call, Expr, constant

MOST_PIECES = 64
MOST_NODES = 20_000  # of all pieces together


def pieces(expr: Expr, depends: Callable[[Expr], bool]) -> list[Expr]:
    """Scalar expressions such that at each point `expr` has the value and the slopes of one of them; itself where there are too many."""
    found = _pieces(expr, depends)
    if len(found) == 1 or len(found) > MOST_PIECES or len(found) * size(expr) > MOST_NODES:
        return [expr]
    return found


def _pieces(expr: Expr, depends: Callable[[Expr], bool]) -> list[Expr]:
    zero = constant(0.0)
    match expr:
        case _ if not depends(expr):
            return [expr]
        case Call(atom="max" | "min", args=(base,)) if not expr.options and _few(base):
            return [p for u in _entries(base) for p in _pieces(u, depends)]
        case Call(atom="norm_inf", args=(base,)) if not expr.options and _few(base):
            return [p for u in _entries(base) for v in (u, call("minus", u)) for p in _pieces(v, depends)]
        case Call(atom="maximum" | "minimum", args=args) if expr.shape == ():
            return [p for u in args for p in _pieces(u, depends)]
        case Call(atom="abs", args=(base,)) if expr.shape == ():
            return [p for u in (base, call("minus", base)) for p in _pieces(u, depends)]
        case Call(atom="pos", args=(base,)) if expr.shape == ():
            return [*_pieces(base, depends), zero]
        case Call(atom="neg", args=(base,)) if expr.shape == ():
            return [*_pieces(call("minus", base), depends), zero]
        case Call(atom="hinge", args=(base,)) if expr.shape == ():
            return [*_pieces(call("sub", 1.0, base), depends), zero]
        case Call(atom="add" | "sub" | "minus") if expr.shape == ():
            return _of_sum(expr, depends)
        case Call(atom="mul", args=(left, right)) if left.shape == right.shape == () and not depends(left):
            return _mapped(expr, right, depends, lambda p: call("mul", left, p))
        case Call(atom="div", args=(left, right)) if left.shape == right.shape == () and not depends(right):
            return _mapped(expr, left, depends, lambda p: call("div", p, right))
    return [expr]


def _of_sum(expr: Expr, depends: Callable[[Expr], bool]) -> list[Expr]:
    """Every choice of a piece for each term; itself where these are too many."""
    smooth: Terms = []
    choices: list[Terms] = [[]]
    for sign, term in summands(expr):
        inner = [term] if term is expr else _pieces(term, depends)
        if len(inner) == 1:
            smooth.append((sign, term))
            continue
        if len(choices) * len(inner) > MOST_PIECES:
            return [expr]
        choices = [[*chosen, (sign, piece)] for chosen in choices for piece in inner]
    if len(choices) == 1:
        return [expr]
    rest = [(1, total(smooth))] if smooth else []
    return [total([*rest, *chosen]) for chosen in choices]


def _mapped(expr: Expr, base: Expr, depends: Callable[[Expr], bool], f: Callable[[Expr], Expr]) -> list[Expr]:
    inner = _pieces(base, depends)
    return [expr] if len(inner) == 1 else [f(p) for p in inner]


def _few(base: Expr) -> bool:
    return math.prod(known(base.shape)) <= MOST_PIECES


def _entries(base: Expr) -> list[Expr]:
    return [entry(base, at) for at in np.ndindex(*known(base.shape))]
