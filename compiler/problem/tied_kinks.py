"""Kinks of a loss as rows of a penalized step: parts p [a(x)]_+ with a price p >= 0 and a function a that is affine in the decisions.

    f(x) = r(x) + sum_n p_n [a_n(x)]_+

A loss with kinks that tie entries together, as in 5 |sum(x) - demand| or in the value of a store that several entries fill, is not a sum
of functions of single entries. Its rest r may be one, and the penalized step takes rows a of any affine functions.
"""

from __future__ import annotations

from collections.abc import Callable

from oco.compiler.problem.calculus import gradient
from oco.compiler.problem.canonical import Inequality
from oco.compiler.problem.positive_parts import Slopes, multiple, positive_part, slopes_of, without_entrywise_sums
from oco.compiler.problem.structure import has_single_entries
from oco.dsl import algebra
from oco.dsl.dims import known
from oco.dsl.expressions import Expr, Kind, Name, constant, names, rewrite
from oco.dsl.records import dataclass
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
    """True for every kink."""
    return True


def with_kinks_apart(
    loss: Expr, decisions: tuple[str, ...], where: Callable[[Expr, tuple[str, ...]], bool]
) -> LossWithKinks | None:
    """Loss with those of its kinks apart for which `where` is true; None where there are none.

    The loss has to be convex by composition, so that prices are at least 0.
    """
    kinks = _Kinks(decisions, where)
    parts = rewrite(rewrite(loss, without_entrywise_sums), kinks.apart)
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
        part = positive_part(node, self.decisions)
        if part is None or not self.where(part.row, self.decisions):
            return node
        kink = self._part(part.row)
        return algebra.add(part.rest, kink) if part.adds else algebra.sub(part.rest, kink)

    def _part(self, above: Expr) -> Expr:
        """Expression of [a]_+ in the placeholder of a row v = a / k: k [v]_+, and |k| [v]_+ + k v for k < 0."""
        own = slopes_of(above)
        for k, (row, slopes) in enumerate(zip(self.rows, self._slopes, strict=True)):
            if row.shape == above.shape and (factor := multiple(own, slopes)):
                part = algebra.mul(algebra.number(abs(factor)), _placeholder(k, row))
                return part if factor > 0 else algebra.add(part, above)
        self.rows.append(above)
        self._slopes.append(own)
        return _placeholder(len(self.rows) - 1, above)


def _placeholder(k: int, of: Expr) -> Name:
    return Name(f"{KINK}{k}", Kind.DECISION, shape=of.shape)
