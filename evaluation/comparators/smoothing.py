"""Smoothed kinks: smooth functions that lie below, or above, those of the model by at most a known amount.

|u| is sqrt(u^2 + eps^2) - eps from below and sqrt(u^2 + eps^2) from above; a maximum is a scaled log-sum-exp, less eps
log n from below (Nesterov, Smooth minimization of non-smooth functions, 2005). By the rules of disciplined convex
programming a convex atom stands where the function rises with it and a concave one where it falls, so that the whole
function errs to one side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import log

import numpy as np

from oco.compiler.problem.calculus import dependence
from oco.compiler.problem.canonical import Canonical
from oco.dsl import algebra as e
from oco.dsl.atoms import Regularity, form_of, forms, regularity_of
from oco.dsl.dims import known
from oco.dsl.enclose import enclosures
from oco.dsl.expressions import Call, Expr, walk
from oco.dsl.intervals import Interval

Ranges = Mapping[str, Interval]


@dataclass(frozen=True)
class _Round:
    """Atoms smoothed with radius `eps`, from below or from above."""

    eps: float
    above: bool

    def absolute(self, u: Expr) -> Expr:
        root = e.call("sqrt", e.add(e.mul(u, u), e.number(self.eps**2)))
        return root if self.above else e.sub(root, e.number(self.eps))

    def positive(self, u: Expr) -> Expr:
        return e.mul(e.number(0.5), e.add(u, self.absolute(u)))

    def length(self, u: Expr, axis: int | None) -> Expr:
        squares = e.call("sum_squares", u) if axis is None else e.call("sum", e.call("square", u), axis=axis)
        root = e.call("sqrt", e.add(squares, e.number(self.eps**2)))
        return root if self.above else e.sub(root, e.number(self.eps))

    def largest(self, u: Expr, entries: int, axis: int | None) -> Expr:
        scaled = _along("log_sum_exp", e.div(u, e.number(self.eps)), axis)
        whole = e.mul(e.number(self.eps), scaled)
        return whole if self.above else e.sub(whole, e.number(self.eps * log(max(entries, 1))))

    def larger(self, *us: Expr) -> Expr:
        result = us[0]
        for u in us[1:]:
            result = self.positive(result) if e.value_of(u) == 0 else e.add(u, self.positive(e.sub(result, u)))
        return result


def _along(atom: str, u: Expr, axis: int | None) -> Expr:
    return e.call(atom, u) if axis is None else e.call(atom, u, axis=axis)


def _entries(node: Call, axis: int | None) -> int:
    shape = known(node.args[0].shape)
    return int(np.prod(shape, dtype=np.int64)) if axis is None else shape[axis]


def _rounded(node: Call, args: tuple[Expr, ...], at: _Round) -> Expr | None:
    """Smoothed atom over smooth arguments; None for the spectral ones, which have no such form here."""
    option, u = dict(node.options).get("axis"), args[0]
    axis = None if option is None else int(option)
    entries = _entries(node, axis)
    match form_of(node):
        case forms.SIZE:
            return at.absolute(u)
        case forms.SUM_OF_SIZES:
            return _along("sum", at.absolute(u), axis)
        case forms.LENGTH:
            return at.length(u, axis)
        case forms.LARGEST_SIZE:
            return at.largest(at.absolute(u), entries, axis)
        case forms.Extreme(largest, pieces, over):
            parts = pieces(e, *args) if largest else tuple(map(e.minus, pieces(e, *args)))
            whole = at.largest(parts[0], entries, axis) if over else at.larger(*parts)
            return whole if largest else e.minus(whole)
    return None


def _smooth(root: Expr, variables: tuple[str, ...], ranges: Ranges, share: float, above: bool) -> Expr | None:
    nodes = list(walk(root))
    depends, values = dependence(nodes, variables), enclosures(root, ranges)
    done: dict[int, Expr] = {}
    for node in nodes:
        children = tuple(done[id(c)] for c in node.children)
        new = node.with_children(children) if children else node
        if isinstance(node, Call) and id(node) in depends and regularity_of(node) is not Regularity.SMOOTH:
            width = max(float(np.max(values[id(a)].hi - values[id(a)].lo)) for a in node.args)
            rounded = _rounded(node, new.children, _Round(share * width, above)) if np.isfinite(width) else None
            if rounded is None:
                return None
            new = rounded
        done[id(node)] = new
    return done[id(root)]


def smoothed(problem: Canonical, ranges: Ranges, share: float) -> tuple[Canonical, Canonical] | None:
    """Two problems whose kinks are smoothed within `share` of the range of their functions; None where one cannot be.

    The first is a relaxation of the model: its minimum is a lower bound. Points that satisfy the constraints of the
    second satisfy those of the model.
    """
    variables = tuple(b.name for b in problem.blocks)
    loss = _smooth(problem.objective, variables, ranges, share, above=False)
    results = []
    for above in (False, True):
        limits = [_smooth(c.expr, variables, ranges, share, above) for c in problem.inequalities]
        if loss is None or any(x is None for x in limits):
            return None
        inequalities = tuple(replace(c, expr=x) for c, x in zip(problem.inequalities, limits) if x is not None)
        results.append(replace(problem, objective=loss, inequalities=inequalities))
    return results[0], results[1]
