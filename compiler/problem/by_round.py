"""Numbers that the round alone decides: over a cycle of rounds, as in `reset[t % 24]`, or over all rounds of the horizon.

A table of them has a row for each round of the cycle, (P, ...): that of round t is (t - 1) % P. One row alone is for all rounds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from oco.compiler.problem.canonical import Canonical
from oco.compiler.problem.kept_values import NOW
from oco.dsl import algebra, build
from oco.dsl.atoms import form_of, forms
from oco.dsl.dims import known
from oco.dsl.evaluate import Evaluation, evaluate
from oco.dsl.expressions import Constant, Expr, Kind, Name, constant, names, rewrite

Floats = np.ndarray[Any, Any]


def season_of(number: Expr, divisor: Expr) -> int:
    """Rounds after which the remainder of a number repeats itself, where the number is that of the round or so much more, else 1."""
    own = set(names(number))
    if own != set(names(number, Kind.ROUND)) or not own or not isinstance(divisor, Constant) or divisor.shape:
        return 1
    grows = evaluate(number, {}, 2) - evaluate(number, {}, 1)
    return int(divisor.value.array) if (grows == 1).all() else 1


def cycle_of(horizon: int | None, *exprs: Expr) -> int | None:
    """Rounds after which all that hangs on the round in these expressions repeats itself, 1 where nothing does; those of the horizon where
    it does not within them, and None where there is no horizon.
    """
    lengths = {1}

    def without_season(node: Expr) -> Expr:
        length = season_of(*node.children) if form_of(node) is forms.REMAINDER else 1
        lengths.add(length)
        return node if length == 1 else constant(0)

    rest = [rewrite(e, without_season) for e in exprs if names(e, Kind.ROUND)]
    if any(names(e, Kind.ROUND) for e in rest):
        return horizon
    cycle = math.lcm(*lengths)
    return cycle if horizon is None else min(cycle, horizon)


def by_round(expr: Expr, cycle: int, env: Mapping[str, Floats] | None = None) -> Floats:
    """Table of an expression in which nothing but the round changes, (P, *shape) for a cycle of P rounds, with values `env` of all other
    names; one row where all are the same.
    """
    value, last = Evaluation(expr), cycle if names(expr, Kind.ROUND) else 1
    table = np.stack([np.broadcast_to(value(env or {}, t), known(expr.shape)) for t in range(1, last + 1)])
    return shortened(table)


def shortened(table: Floats) -> Floats:
    """Table with one row where all are the same."""
    return table[:1] if np.array_equal(table, np.broadcast_to(table[:1], table.shape), equal_nan=True) else table


def over_like_rounds(tables: Sequence[Floats]) -> list[Floats]:
    """Tables over the same rounds: as many as it takes until all of them begin anew together."""
    rounds = math.lcm(*(len(table) for table in tables))
    return [np.tile(a, (rounds // len(a), *(1 for _ in a.shape[1:]))) for a in tables]


def row_of_round(table: Floats) -> Expr:
    """Row of a table for the round that an expression is in."""
    if len(table) == 1:
        return constant(table[0])
    place = build.call("mod", algebra.sub(NOW, constant(1)), constant(len(table)))
    return build.index(constant(table), (place,))


def a_round_later(canonical: Canonical, expr: Expr) -> Expr:
    """Expression as it is in the next round; in the last one as it is in that."""
    later = algebra.add(NOW, constant(1))
    if canonical.horizon is not None:
        later = build.call("minimum", later, constant(canonical.horizon))
    return rewrite(expr, lambda n: later if isinstance(n, Name) and n.kind is Kind.ROUND else n)
