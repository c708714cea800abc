"""Facts of what moving costs: how the loss changes with the previous decision, from where a decision stands.

With f(x, p) the loss of a decision x after p, f(x, p) - f(x, x) <= min(M |p - x|, M_0 |p - x| + L |p - x|^2 / 2). M bounds the slope in p.
Of the summands of f some have a slope with a Lipschitz constant, L together, and M_0 is their slope at p = x with the largest slope of the
others: 0 for `sum_squares(x - prev(x))`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import reduce

from oco.compiler.problem.calculus import gradient
from oco.compiler.problem.canonical import Canonical, DecisionBlock
from oco.compiler.problem.stream_ranges import StreamRange
from oco.compiler.prover.context import ProofContext
from oco.compiler.prover.fact import Fact
from oco.compiler.prover.function import ScalarFunction, bounded
from oco.compiler.prover.phrasing import number
from oco.compiler.prover.search_budget import SearchBudget
from oco.compiler.prover.suprema.bounds import UpperBound
from oco.compiler.prover.types import ProofRule, Step
from oco.dsl.atoms import form_of, forms
from oco.dsl.build import call
from oco.dsl.expressions import Expr, Kind, Name, rewrite
from oco.dsl.statements import Stream

PREFIX = "loss.moves"
STANDING = f"{PREFIX}.standing.l2"
SMOOTHNESS = f"{PREFIX}.smoothness.l2"
KEYS = (f"{PREFIX}.lipschitz.l2", f"{PREFIX}.lipschitz.l1", SMOOTHNESS, STANDING)


def move_facts(problem: Canonical, budget: SearchBudget) -> Iterator[Fact]:
    """Facts of the loss as a function of the previous decisions; none where it has none."""
    if problem.moving is None:
        return
    swapped = _as_decisions(problem, problem.moving)
    f = ScalarFunction(ProofContext(swapped, budget), swapped.objective, PREFIX, "what moving costs")
    yield from (fact for fact in f.facts() if fact.key.startswith(f"{PREFIX}.lipschitz"))
    yield from _near(ProofContext(problem, budget), ProofContext(swapped, budget))


def _as_decisions(problem: Canonical, moving: Expr) -> Canonical:
    """Problem whose decisions are the previous ones; those of the round are streams within the hull of their domains."""
    before = [s for s in problem.previous if s.stream.previous]
    kinds = {b.name: Kind.STREAM for b in problem.blocks} | {s.name: Kind.DECISION for s in before}
    blocks = {b.name: b for b in problem.blocks}

    def swapped(node: Expr) -> Expr:
        return replace(node, kind=kinds[node.name]) if isinstance(node, Name) and node.name in kinds else node

    played = tuple(
        StreamRange(b.name, b.shape, b.domain.lower, b.domain.upper, False, Stream(b.name, (), b.shape, None))
        for b in problem.blocks
    )
    own = tuple(DecisionBlock(s.name, s.shape, blocks[s.stream.previous].domain) for s in before)
    streams = (*problem.streams, *played)
    return replace(
        problem,
        blocks=own,
        streams=streams,
        objective=rewrite(moving, swapped),
        inequalities=(),
        equalities=(),
        previous=(),
        moving=None,
    )


def _near(setting: ProofContext, swapped: ProofContext) -> Iterator[Fact]:
    """M_0 and L."""
    smooth, kinked = list[Expr](), list[Expr]()
    for part in _summands(swapped.canonical.objective):
        (smooth if swapped.hessians.differentiable(part) else kinked).append(part)
    at_rest, steps = 0.0, list[Step]()
    smoothness = 0.0
    if smooth:
        whole = ScalarFunction(swapped, reduce(_plus, smooth), PREFIX, "the smooth part of what moving costs")
        own = {f.key: f for f in whole.facts()}[SMOOTHNESS]
        slope = _slope_at_rest(setting, whole.original, [b.name for b in swapped.canonical.blocks])
        at_rest, smoothness, steps = slope.value, math.inf if own.value is None else float(own.value), [slope.step]
        steps += [] if own.why is None else [own.why]
    if kinked:
        rest = ScalarFunction(swapped, reduce(_plus, kinked), PREFIX, "what moving costs with kinks")
        steep = next(f for f in rest.facts() if f.key == f"{PREFIX}.lipschitz.l2")
        at_rest += math.inf if steep.value is None else float(steep.value)
        steps += [] if steep.why is None else [steep.why]
    words = (
        f"a short move costs at most {number(at_rest)} times its length, and {number(smoothness)} times half its square"
    )
    yield bounded(STANDING, at_rest, Step(ProofRule.LARGEST, words, at_rest, tuple(steps)), tight=True)
    yield bounded(SMOOTHNESS, smoothness, Step(ProofRule.LARGEST, words, smoothness, tuple(steps)), tight=True)


def _summands(expr: Expr) -> Iterator[Expr]:
    """Summands of a scalar expression."""
    waiting = [expr]
    while waiting:
        node = waiting.pop()
        if form_of(node) is forms.SUM and all(c.shape == () for c in node.children):
            waiting += node.children
        else:
            yield node


def _plus(a: Expr, b: Expr) -> Expr:
    return call("add", a, b)


def _slope_at_rest(setting: ProofContext, expr: Expr, before: list[str]) -> UpperBound:
    """Largest slope of an expression in the previous decisions where these are the decisions themselves."""
    decided = {s.name: s.stream.previous for s in setting.canonical.previous}
    names = setting.decisions | decided.keys()

    def still(node: Expr) -> Expr:
        if isinstance(node, Name) and node.name in names:
            return Name(decided.get(node.name, node.name), Kind.DECISION, shape=node.shape, span=node.span)
        return node

    squares: list[Expr] = [call("sum_squares", rewrite(s, still)) for s in gradient(expr, before).values()]
    total = setting.simplify(reduce(_plus, squares))
    return setting.bounds.square_root(setting.bounds.upper(total))
