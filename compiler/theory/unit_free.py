"""The problem without units: decisions of radius one, a loss of slope one, constraints of size one.

With x = c + R u, f = F f', g_n = G_n g_n' every quantity of a theorem becomes a number without a unit, so settings chosen for the
problem in u are the same after dollars become cents and megawatts kilowatts. The transformation is one for all algorithms: `unit_free`
gives the problem in u with its facts, for theorems; `units.Units` applies the same scales while a rule is traced; `in_user_units` brings
a guarantee back.

Scaling by powers of two is exact in floating point, and all scales are products of facts, so such a change of units changes no bit of u.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache, reduce
from typing import Any

import numpy as np

from oco.compiler.domains import in_units
from oco.compiler.domains.norms import vector_norm
from oco.compiler.problem.canonical import Canonical, Equality, Inequality, entry_labels
from oco.compiler.prover.context import ProofContext
from oco.compiler.prover.domain import domain_facts, downward, upward
from oco.compiler.prover.fact import Fact
from oco.compiler.prover.facts import Facts
from oco.compiler.prover.feasibility.feasible import Feasibility
from oco.compiler.prover.move_costs import KEYS as MOVES
from oco.compiler.prover.move_costs import PREFIX
from oco.compiler.prover.search_budget import SearchBudget, size
from oco.compiler.prover.types import ProofRule, Status, Step
from oco.compiler.theory.scales import Scales
from oco.compiler.theory.theorems import Bound, Guarantee, Situation
from oco.dsl import algebra
from oco.dsl.expressions import Expr, Kind, Name, constant, rewrite

Floats = np.ndarray[Any, Any]


def scales_of(s: Situation, norm: str = "l2") -> Scales:
    """The units of a problem, from its facts; 1 where a fact is not known or says nothing.

    norm  of the theorem: "l2", or "l1" for decisions in a simplex with the entropy, which has its origin at 0
    """
    origins = tuple(np.asarray(0.0 if norm == "l1" else d.origin, dtype=np.float64) for d in s.domains)
    about = [d.radius_about_centre if o.any() else d.radius for d, o in zip(s.domains, origins)]
    radius = _positive(vector_norm(np.asarray(about)))
    slope = s.number(f"loss.lipschitz.{norm}")
    loss = _positive(slope * radius if slope else s.number("loss.bound"))
    return Scales(origins, radius, loss, _sizes(s, s.canonical.inequalities), _sizes(s, s.canonical.equalities))


def _positive(value: float | None) -> float:
    return value if value is not None and 0 < value < math.inf else 1.0


def _sizes(s: Situation, constraints: tuple[Inequality | Equality, ...]) -> Floats:
    """The largest |g_n| of each entry."""
    results = [s.entries(c.label, c.shape, "bound") for c in constraints]
    sizes = [np.ones(c.size) if v is None else v for c, v in zip(constraints, results)]
    flat = np.concatenate([np.zeros(0), *sizes])
    return np.where((flat > 0) & np.isfinite(flat), flat, 1.0)


@lru_cache(maxsize=32)
def without_units(s: Situation, norm: str) -> tuple[Situation, Scales]:
    """Situation of the problem in u for theorems in that norm, and its scales; kept for a choice and its pilot runs.

    Units have no horizon: one Slater point in them does for all.
    """
    if s.source is None:
        scales = scales_of(s, norm)
        return unit_free(s, scales), scales
    inner, scales = without_units(s.source, norm)
    canonical = replace(inner.canonical, model=s.canonical.model, horizon=s.canonical.horizon, unscaled=s.canonical)
    facts = replace(inner.facts, model=s.facts.model)
    return replace(s, canonical=canonical, facts=facts, margin_unit=inner.margin_unit, source=None), scales


def unit_free(s: Situation, scales: Scales) -> Situation:
    """The situation of the problem in u."""
    canonical = _scaled_problem(s.canonical, scales)
    unit = float(scales.inequalities.max(initial=0.0)) or 1.0
    with np.errstate(over="ignore"):  # what overflows is unknown: see `_times`
        facts = _Scaling(s, canonical, scales).facts()
    return replace(s, canonical=canonical, facts=facts, margin_unit=s.margin_unit * unit)


def _scaled_problem(c: Canonical, scales: Scales) -> Canonical:
    """f(c + R u) / F and g_n(c + R u) / G_n over the blocks ({x - c} / R)."""
    origins = dict(zip((b.name for b in c.blocks), scales.origins))

    def moved(node: Expr) -> Expr:
        if not isinstance(node, Name) or node.kind is not Kind.DECISION:
            return node
        grown = algebra.mul(constant(np.asarray(scales.radius)), node)
        origin = origins[node.name]
        return algebra.add(constant(origin), grown) if origin.any() else grown

    def divided(expr: Expr, by: Floats) -> Expr:
        return algebra.call("div", rewrite(expr, moved), constant(by))

    def parts(constraints: tuple[Any, ...], sizes: Floats) -> tuple[Any, ...]:
        ends = np.cumsum([0, *(g.size for g in constraints)])
        return tuple(
            replace(
                g,
                expr=divided(g.expr, sizes[a:b].reshape(g.shape)),
                penalties=tuple((np.array(g.penalties) * sizes[a:b] / scales.loss).tolist()) if g.penalties else (),
            )
            for g, a, b in zip(constraints, ends, ends[1:])
        )

    blocks = tuple(
        replace(b, domain=in_units(b.domain, o, scales.radius)) for b, o in zip(c.blocks, scales.origins, strict=True)
    )
    return replace(
        c,
        blocks=blocks,
        objective=divided(c.objective, np.asarray(scales.loss)),
        inequalities=parts(c.inequalities, scales.inequalities),
        equalities=parts(c.equalities, scales.equalities),
        unscaled=c.unscaled or c,
    )


MOST_SOUGHT, MOST_PARTS = 50, 500
"""Entries of inequalities, and their parts for every 500 numbers of the decision, for which a Slater point is sought again; of more
the margin is divided."""
LENGTHS: Mapping[str, int] = {
    "bound": 0,
    "upper": 0,
    "lower": 0,
    "lipschitz.l2": 1,
    "lipschitz.l1": 1,
    "smoothness.l2": 2,
    "strong_convexity.l2": 2,
    "standing.l2": 1,
}
"""Power of the decision's unit in 1 / unit of each constant of a function; it is linear in the function's own unit."""

LEAST = ("lower", "strong_convexity.l2", "exp_concavity")
"""Constants that bound from below."""


class _Scaling:
    """The facts of a problem as facts of the problem in u."""

    def __init__(self, s: Situation, canonical: Canonical, scales: Scales) -> None:
        self.s, self.canonical, self.scales = s, canonical, scales

    def facts(self) -> Facts:
        known = dict(self.s.facts.items_by_key)
        known |= {f.key: f for f in domain_facts(self.canonical)}
        known |= {f.key: f for f in self._of_loss()}
        sizes = np.concatenate([self.scales.inequalities, self.scales.equalities])
        ends = np.cumsum([0, *(c.size for c in self.s.canonical.constraints)])
        for c, a, b in zip(self.s.canonical.constraints, ends, ends[1:]):
            known |= {f.key: f for f in self._of_constraint(c, sizes[a:b])}
        known |= {f.key: f for f in self._of_time()}
        known |= {f.key: f for f in self._margin()}
        return Facts(self.s.facts.model, known, effort=self.s.facts.effort)

    def _of_loss(self) -> Iterator[Fact]:
        for what in LENGTHS:
            yield from self._scaled(f"loss.{what}", what, self.scales.loss)
        yield _times(self.s.facts["loss.exp_concavity"], self.scales.loss)
        for key in MOVES:
            yield from self._scaled(key, key.removeprefix(f"{PREFIX}."), self.scales.loss)

    def _of_constraint(self, c: Inequality | Equality, sizes: Floats) -> Iterator[Fact]:
        """The facts of the entries in their own units, and those of the worst entry."""
        labels = entry_labels(c.label, c.shape)
        for what in LENGTHS:
            own = [f for name, G in zip(labels, sizes) for f in self._scaled(f"constraints.{name}.{what}", what, G)]
            if c.shape:
                yield from own
                yield from self._of_worst(c.label, what, own, sizes)
            else:
                yield from own

    def _of_worst(self, label: str, what: str, own: list[Fact], sizes: Floats) -> Iterator[Fact]:
        key = f"constraints.{label}.{what}"
        if len(own) < len(sizes) or not all(f.known for f in own):
            yield from self._scaled(key, what, float(sizes.max() if what in LEAST else sizes.min()))
            return
        value = (min if what in LEAST else max)(f.value for f in own)
        yield replace(self.s.facts[key], value=value)

    def _scaled(self, key: str, what: str, unit: float) -> Iterator[Fact]:
        """constant * R^k / unit, rounded outwards."""
        fact = self.s.facts.items_by_key.get(key)
        if fact is None:
            return
        length = float(np.float64(self.scales.radius) ** LENGTHS[what])
        yield _times(fact, length / unit, exact=length, by=unit)

    def _of_time(self) -> Iterator[Fact]:
        """Variation of a sequence of problems: |x*_t - x*_{t-1}|, |grad f_t - grad f_{t-1}|^2, |g_t - g_{t-1}|."""
        R, F, G = self.scales.radius, self.scales.loss, self.scales.inequalities
        units = {
            "path_length": (1 / R,),
            "variation.gradient": (R / F, R / F),
        }  # one by one: a square may be beyond all numbers
        units |= {"variation.constraint": (1 / float(G.min()),)} if G.size else {}
        for key, factors in units.items():
            yield reduce(_times, factors, self.s.facts[key])

    def _margin(self) -> Iterator[Fact]:
        """Slater margin, sought again since each constraint has a unit of its own. Other facts of feasibility have no unit."""
        given = self.s.facts["slater.margin"]
        if not given.known or not self.scales.inequalities.size:
            return
        rows = self.canonical.inequalities
        parts = sum(size(c.expr) for c in rows) * (1 + self.canonical.size // 500)
        small = sum(c.size for c in rows) <= MOST_SOUGHT and parts <= MOST_PARTS
        seek = given.status is Status.PROVED and small
        result = Feasibility(ProofContext(self.canonical, SearchBudget(self.s.facts.effort))).slater() if seek else {}
        if "slater.margin" in result and result["slater.margin"].known:
            yield from result.values()
        else:
            yield _times(given, 1 / float(self.scales.inequalities.max()))


def _times(fact: Fact, unit: float, exact: float | None = None, by: float = 1.0) -> Fact:
    """A fact in other units. The product with `exact` is divided `by` one number, so that a size in units of itself is 1."""
    value = fact.value
    if value is None or isinstance(value, bool | str) or np.ndim(value):
        return fact
    least = fact.key.endswith(LEAST) or fact.key == "slater.margin"
    scaled = float(value) * unit if exact is None else float(value) * exact / by
    if not math.isfinite(scaled):
        return Fact(fact.key, None, Status.UNKNOWN, fact.why, fact.cite)
    rounded = downward(scaled) if least == (scaled > 0) else upward(scaled)
    why = () if fact.why is None else (fact.why,)
    return replace(
        fact, value=rounded, why=Step(ProofRule.UNIT_FREE, f"{fact.key} in units of the problem", rounded, why)
    )


def in_user_units(guarantee: Guarantee, s: Situation, scales: Scales) -> Guarantee:
    """A guarantee of the problem in u, for the user's: regret times F; of violations V_n / G_n with sum V, each V_n <= G_n V.

    Hence their sum is at most max_n G_n V.
    """

    def violation(bound: Bound | None, sizes: Floats, labels: tuple[str, ...]) -> Bound | None:
        if bound is None:
            return None
        return replace(bound, unit=float(sizes.max()), label_units=dict(zip(labels, sizes.tolist())))

    equalities = tuple(name for c in s.canonical.equalities for name in entry_labels(c.label, c.shape))
    return replace(
        guarantee,
        regret_bound=replace(guarantee.regret_bound, unit=scales.loss),
        violation_bound=violation(guarantee.violation_bound, scales.inequalities, s.canonical.constraint_labels),
        equality_bound=violation(guarantee.equality_bound, scales.equalities, equalities),
    )
