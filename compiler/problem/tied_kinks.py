"""Kinks of a loss as rows of a penalized step: parts p [a(x)]_+ with a price p >= 0 and a function a that is affine in the decisions.

    f(x) = r(x) + sum_n p_n [a_n(x)]_+

A loss with kinks that tie entries together, as in 5 |sum(x) - demand| or in the value of a store that several entries fill, is not a sum
of functions of single entries. Its rest r may be one, and the penalized step takes rows a of any affine functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from oco.compiler.problem.affine_entries import SAME
from oco.compiler.problem.calculus import gradient
from oco.compiler.problem.canonical import Inequality
from oco.compiler.problem.jacobians import jacobian
from oco.compiler.problem.structure import has_single_entries, is_affine
from oco.dsl import algebra
from oco.dsl.atoms import form_of, forms
from oco.dsl.build import call
from oco.dsl.dims import known
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Call, Expr, Kind, Name, constant, names, rewrite, walk
from oco.dsl.records import dataclass
from oco.dsl.statements import Timing

KINK, ROW = "_kink", "kink"
Slopes = Mapping[str, np.ndarray[Any, Any]]
"""Slopes of an affine expression by name; under "" its value at 0."""


@dataclass(frozen=True, eq=False)
class LossWithKinks:
    """Loss as the sum of a `rest` and of `prices` times the positive parts of `rows`, each price of the shape of its row."""

    rest: Expr
    rows: tuple[Inequality, ...]
    prices: tuple[Expr, ...]


def tied(expr: Expr, decisions: tuple[str, ...]) -> bool:
    """True where an entry of the expression depends on several entries of the decisions."""
    return not has_single_entries(expr, decisions)


def any_kink(expr: Expr, decisions: tuple[str, ...]) -> bool:
    """True for every kink."""
    return True


def with_kinks_apart(
    loss: Expr, decisions: tuple[str, ...], where: Callable[[Expr, tuple[str, ...]], bool]
) -> LossWithKinks | None:
    """Loss with those of its kinks apart for which `where` is true; None where there are none.

    The loss has to be convex by composition, so that prices are at least 0.
    """
    kinks = _Kinks(decisions, where)
    parts = rewrite(rewrite(loss, _without_entrywise_sums), kinks.apart)
    if not kinks.rows:
        return None
    own = [_placeholder(k, a) for k, a in enumerate(kinks.rows)]
    slopes = gradient(parts, [n.name for n in own])
    if any(names(s, Kind.DECISION) for s in slopes.values()):
        return None
    placed = {n.name for n in own}

    def without(node: Expr) -> Expr:
        return algebra.broadcast(constant(0.0), node.shape) if isinstance(node, Name) and node.name in placed else node

    labels = (f"{ROW}{k}" for k, _ in enumerate(kinks.rows))
    charged = tuple(
        Inequality(n, known(a.shape), a, Timing.EACH_ROUND, n) for n, a in zip(labels, kinks.rows, strict=True)
    )
    prices = tuple(algebra.broadcast(slopes[n.name], known(n.shape)) for n in own)
    return LossWithKinks(rewrite(parts, without), charged, prices)


class _Kinks:
    """Rows a of the positive parts that were taken apart so far; none is a multiple of another."""

    def __init__(self, decisions: tuple[str, ...], where: Callable[[Expr, tuple[str, ...]], bool]) -> None:
        self.decisions, self.where = decisions, where
        self.rows: list[Expr] = []
        self._slopes: list[Slopes | None] = []

    def apart(self, node: Expr) -> Expr:
        """Expression of max(a, b) as b + [a - b]_+, or of min(a, b) as a - [a - b]_+, with a placeholder for [.]_+; any other as it is."""
        form = form_of(node)
        if not isinstance(node, Call) or not isinstance(form, forms.Extreme) or form.over:
            return node
        pieces = form.pieces(algebra, *node.args)
        own = set(names(node, Kind.DECISION))
        is_nested = not own <= set(self.decisions)  # placeholders of kinks within
        if len(pieces) != 2 or not own or is_nested:
            return node
        more, less = pieces
        above = algebra.broadcast(algebra.sub(more, less), node.shape)
        if not is_affine(above, self.decisions) or not self.where(above, self.decisions):
            return node
        part = self._part(above)
        return algebra.add(less, part) if form.largest else algebra.sub(more, part)

    def _part(self, above: Expr) -> Expr:
        """Expression of [a]_+ in the placeholder of a row v = a / k: k [v]_+, and |k| [v]_+ + k v for k < 0."""
        own = _slopes(above)
        for k, (row, slopes) in enumerate(zip(self.rows, self._slopes, strict=True)):
            if row.shape == above.shape and (factor := _factor(own, slopes)):
                part = algebra.mul(algebra.number(abs(factor)), _placeholder(k, row))
                return part if factor > 0 else algebra.add(part, above)
        self.rows.append(above)
        self._slopes.append(own)
        return _placeholder(len(self.rows) - 1, above)


def _slopes(expr: Expr) -> Slopes | None:
    """Value at 0 and slopes with respect to all names of an expression; None where it is not affine in them."""
    variables = {n.name: n.shape for n in walk(expr) if isinstance(n, Name)}
    free = rewrite(expr, lambda n: replace(n, kind=Kind.DECISION) if isinstance(n, Name) else n)
    if not is_affine(free, tuple(variables)):
        return None
    zero = evaluate(free, {n: np.zeros(known(shape)) for n, shape in variables.items()})
    slopes = jacobian(free, tuple(variables))
    return {"": np.asarray(zero), **{n: np.asarray(evaluate(e, {})) for n, e in slopes.items()}}


def _factor(one: Slopes | None, other: Slopes | None) -> float:
    """Factor k where one expression is k times the other; else 0."""
    if one is None or other is None or one.keys() != other.keys():
        return 0.0
    a, b = (np.concatenate([np.broadcast_to(s[n], one[n].shape).ravel() for n in one]) for s in (one, other))
    at = int(np.argmax(abs(b)))
    k = float(a[at] / b[at]) if b[at] else 0.0
    return k if np.allclose(a, k * b, rtol=SAME, atol=SAME * abs(k)) else 0.0


def _without_entrywise_sums(node: Expr) -> Expr:
    """Expression with the total of an entrywise atom as a sum: norm1(v) as sum(abs(v))."""
    form = form_of(node)
    if not isinstance(node, Call) or not isinstance(form, forms.Total) or not form.entrywise or node.options:
        return node
    part = call(form.of, node.args[0])
    return call("sum", part) if node.args[0].shape else part


def _placeholder(k: int, of: Expr) -> Name:
    return Name(f"{KINK}{k}", Kind.DECISION, shape=of.shape)
