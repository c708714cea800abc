"""Functions with kinks as the largest or smallest of smooth pieces: where one is differentiable its gradient is that of a piece.

So a Lipschitz constant of every piece is one of the whole (Clarke 1983, 2.3): max(f, g) needs no better bound than f and g.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from oco.compiler.prover.search_budget import size
from oco.compiler.prover.terms.entry import entry
from oco.compiler.prover.terms.matching import options_of
from oco.compiler.prover.terms.summands import Terms, summands, total
from oco.dsl import algebra
from oco.dsl.atoms import form_of, forms
from oco.dsl.build import call
from oco.dsl.dims import known
from oco.dsl.expressions import Expr, rewrite
from oco.dsl.intervals import Interval

MOST_PIECES = 64  # pieces of a maximum: each becomes a function of its own
MOST_NODES = 20_000  # of all pieces together


def pieces(expr: Expr, depends: Callable[[Expr], bool]) -> list[Expr]:
    """Scalar expressions such that at each point `expr` has the value and the slopes of one of them; itself where there are too many."""
    result = _pieces(expr, depends)
    if len(result) == 1 or len(result) > MOST_PIECES or len(result) * size(expr) > MOST_NODES:
        return [expr]
    return result


def dominant(expr: Expr, ranges: Callable[[Expr], Interval]) -> Expr:
    """Expression of equal value wherever `ranges` hold: each extreme one piece of which lies beyond all others is that piece.

    Slopes may differ where pieces meet.
    """

    def chosen(node: Expr) -> Expr:
        form = form_of(node)
        if not isinstance(form, forms.Extreme) or form.over:
            return node
        parts = form.pieces(algebra, *node.children)
        bounds = [ranges(p) if form.largest else -ranges(p) for p in parts]
        for part, own in zip(parts, bounds):
            if part.shape == node.shape and all(own is b or bool(np.all(own.lo >= b.hi)) for b in bounds):
                return part
        return node

    return rewrite(expr, chosen)


def _pieces(expr: Expr, depends: Callable[[Expr], bool]) -> list[Expr]:
    if not depends(expr):
        return [expr]
    match form_of(expr), expr.children:
        case forms.Extreme(pieces=pieces, over=True), (base,) if not options_of(expr) and _few(base):
            return [p for u in _entries(base) for v in pieces(algebra, u) for p in _pieces(v, depends)]
        case forms.Extreme(pieces=pieces, over=False), args if expr.shape == ():
            return [p for u in pieces(algebra, *args) for p in _pieces(u, depends)]
        case forms.Signed(), _ if expr.shape == ():
            return _of_sum(expr, depends)
        case forms.TIMES, (left, right) if left.shape == right.shape == () and not depends(left):
            return _mapped(expr, right, depends, lambda p: call("mul", left, p))
        case forms.QUOTIENT, (left, right) if left.shape == right.shape == () and not depends(right):
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
