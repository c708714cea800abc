"""Makers of objectives and constraints for models at random."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from fuzz.growth import CONCAVE, CONVEX, FLAT, UNKNOWN, Term, fixed
from fuzz.meaning import Evaluator
from fuzz.nodes import Apply, Array, Node, Number, before
from fuzz.typed import (
    Comparison,
    Constraint,
    Decision,
    Minimize,
    State,
)
from fuzz.writer import ATTEMPTS, Unlucky, Writer, both, drawn

from oco.dsl.atoms import ATOMS


def minimize(w: Writer) -> None:
    """A convex number, or in a model that may bend any number: one to three of them, with positive factors."""
    terms = [_number(w, convex=True) for _ in range(int(w.pick((1, 1, 2, 2, 3))))]
    total = terms[0]
    for other in terms[1:]:
        total = both("add", total, other)
    w.add(Minimize(_with_moves(w, total.node)))


def _with_moves(w: Writer, loss: Node) -> Node:
    """In some models what the move from the decision before costs."""
    if w.seed % 6 != 2:
        return loss
    x = w.tree.of(Decision)[0].ref()
    away = Apply("sub", (x, before(x)))
    moved = Apply(("norm1", "sum_squares")[w.seed // 6 % 2], (away,)) if x.of else Apply("abs", (away,))
    return Apply("add", (loss, Apply("mul", (Number(0.5), moved))))


REDUCTIONS = ("sum", "mean", "max", "norm1", "norm2", "norm_inf", "sum_squares", "log_sum_exp")


def _number(w: Writer, convex: bool) -> Term:
    """A number that depends on a decision, of known curvature where the model does not bend."""

    def fits(term: Term) -> bool:
        return term.varies and (term.curvature is not UNKNOWN or w.growth.bent > 0)

    for _ in range(ATTEMPTS):
        found = w.growth.choose(fits)
        if found is None:
            w.growth.grow(3)
            continue
        found = w.growth.convex(found) if convex else found
        if found.shape:
            reduced = w.growth.over(ATOMS[w.pick(REDUCTIONS)], [found])
            found = reduced if reduced is not None and fits(reduced) else None
        if found is None or (convex and found.curvature is CONCAVE):
            continue
        if w.chance(0.4):
            weighted = w.growth.over(ATOMS["mul"], [fixed(Number(w.pick((0.5, 2, 0.1, 3)))), found])
            found = weighted or found
        return found
    raise Unlucky("no convex number")


TIMINGS = ("each round", "on average", "")


def subject(w: Writer) -> None:
    """None to three constraints that a decision keeps, by a margin mostly, for most values of the streams."""
    at = {b.name: b.domain.sample(w.rng, 1)[0] for b in w.blocks}
    for k in range(int(w.pick((0, 1, 1, 2, 2, 3)))):
        found = _constraint(w, f"g{k}", at)
        if found is not None:
            w.add(found)


def _constraint(w: Writer, label: str, at: Mapping[str, Array]) -> Constraint | None:
    equal = w.chance(0.15)

    def fits(term: Term) -> bool:
        good = FLAT if equal else (*FLAT, CONVEX, CONCAVE)
        return term.varies and (term.curvature in good or (w.growth.bent > 0 and not equal))

    term = w.growth.choose(fits)
    if term is None:
        return None
    values = _values_at(w, term.node, at)
    if not np.isfinite(values).all():
        return None
    timing = w.pick(TIMINGS)
    if equal:
        return Constraint(label, Comparison(term.node, "==", Number(round(float(values.mean()), 3))), timing)
    up = term.curvature is not CONCAVE
    spare = float(w.pick((0.1, 0.5, 1.0, 1.0, 0.0, -0.2)))
    limit = Number(round(float(values.max()) + spare if up else float(values.min()) - spare, 3))
    left, right = (term.node, _level(w, limit)) if w.chance(0.8) else (limit, term.node)
    relation = "<=" if up == (left is term.node) else ">="
    return Constraint(label, Comparison(left, relation, right), timing)


def _level(w: Writer, limit: Number) -> Node:
    """The limit, or with a small term of fixed data or streams beside it."""
    small_terms = [t for t in w.leaves if not t.varies and t.shape == () and np.abs(t.range.hi) <= 10]
    if not small_terms or w.chance(0.7):
        return limit
    extra = Apply("mul", (Number(0.1), w.pick(small_terms).node))
    return Apply("add", (limit, extra))


def _values_at(w: Writer, node: Node, at: Mapping[str, Array]) -> Array:
    """The values of an expression at these decisions for a few values of the streams."""
    value, found = Evaluator(w.tree), []
    for t in (1.0, float(w.tree.horizon or 1000)):
        for _ in range(6):
            streams = {s.name: drawn(w.rng, s) for s in w.streams}
            streams |= {s.name: np.asarray(w.rng.uniform(-1, 1)) for s in w.tree.of(State)}
            found.append(np.asarray(value(node, {**at, **streams}, t), dtype=float))
    return np.stack(found)
