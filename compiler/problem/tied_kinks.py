"""Kinks of a loss as rows of a penalized step: parts p [a(x)]_+ with a price p >= 0 and a function a that is affine in the decisions.

    f(x) = r(x) + sum_n p_n [a_n(x)]_+

where the `rest` r has no such part. A loss with kinks that tie entries together, 5 |sum(x) - demand| or the value of a store that several
entries fill, is no sum of functions of single entries, while its rest may be one, and the step takes rows of any affine functions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from oco.compiler.problem.calculus import gradient
from oco.compiler.problem.canonical import Inequality
from oco.compiler.problem.structure import has_single_entries, is_affine
from oco.dsl import algebra
from oco.dsl.atoms import form_of, forms
from oco.dsl.build import call
from oco.dsl.dims import known
from oco.dsl.expressions import Call, Expr, Kind, Name, constant, names, rewrite
from oco.dsl.statements import Timing

KINK, ROW = "_kink", "kink"


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
    """True: of every kink."""
    return True


def with_kinks_apart(
    loss: Expr, decisions: tuple[str, ...], where: Callable[[Expr, tuple[str, ...]], bool]
) -> LossWithKinks | None:
    """Loss with the kinks apart of which `where` is true; None where there are none. The loss is convex by composition, so that their
    prices are at least 0.
    """
    rows = list[Expr]()
    loss = rewrite(loss, _without_entrywise_sums)
    parts = rewrite(loss, partial(_apart, decisions, where, rows))
    if not rows:
        return None
    own = tuple(_placeholder(k, a) for k, a in enumerate(rows))
    slopes = gradient(parts, [n.name for n in own])
    if any(names(s, Kind.DECISION) for s in slopes.values()):
        return None
    none = {n.name: constant(0.0) for n in own}

    def without(node: Expr) -> Expr:
        return algebra.broadcast(none[node.name], node.shape) if isinstance(node, Name) and node.name in none else node

    labels = (f"{ROW}{k}" for k, _ in enumerate(rows))
    charged = tuple(Inequality(n, (), a, Timing.EACH_ROUND, n) for n, a in zip(labels, rows, strict=True))
    prices = tuple(algebra.broadcast(slopes[n.name], known(n.shape)) for n in own)
    return LossWithKinks(rewrite(parts, without), charged, prices)


def _apart(
    decisions: tuple[str, ...], where: Callable[[Expr, tuple[str, ...]], bool], rows: list[Expr], node: Expr
) -> Expr:
    """max(a, b) as b + [a - b]_+ and min(a, b) as a - [a - b]_+, with a placeholder for the positive part; `rows` gets a - b."""
    form = form_of(node)
    if not isinstance(node, Call) or not isinstance(form, forms.Extreme) or form.over:
        return node
    if not set(names(node, Kind.DECISION)) & set(decisions):
        return node
    pieces = form.pieces(algebra, *node.args)
    if len(pieces) != 2:
        return node
    more, less = pieces
    above = algebra.broadcast(algebra.sub(more, less), node.shape)
    if not is_affine(above, decisions) or not where(above, decisions):
        return node
    rows.append(above)
    part = _placeholder(len(rows) - 1, above)
    return algebra.add(less, part) if form.largest else algebra.sub(more, part)


def _without_entrywise_sums(node: Expr) -> Expr:
    """Sums of an entrywise atom as such sums: norm1(v) as sum(abs(v))."""
    form = form_of(node)
    if not isinstance(node, Call) or not isinstance(form, forms.Total) or not form.entrywise or node.options:
        return node
    part = call(form.of, node.args[0])
    return call("sum", part) if node.args[0].shape else part


def _placeholder(k: int, of: Expr) -> Name:
    return Name(f"{KINK}{k}", Kind.DECISION, shape=of.shape)
