"""Equalities that a mixture of decisions satisfies: between a decision above and one below lies one that is neither.

A function affine in the decisions takes on a segment every value between those at its ends; k of them are all zero at some mixture of
k + 1 decisions whose values surround the origin. The set is convex and holds the mixtures; so do inequalities that are convex and hold
at the decisions mixed. Where streams enter the equalities the weights differ from round to round.

What is proved is that such a decision exists, in real numbers: its nearest floating-point neighbour satisfies an equality up to
rounding. The decisions mixed are in the set up to rounding too, and then have to be far enough on their sides to make up for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from oco.compiler.problem.canonical import Equality, Inequality
from oco.compiler.prover.curvature.composition import CONVEX_KINDS, FLAT_KINDS
from oco.compiler.prover.feasibility.multipliers import EqualityRows, affine_rows
from oco.compiler.prover.feasibility.scenario import Scenario
from oco.compiler.prover.feasibility.solver import affords_program, decision_variables, into_domain, solve, values
from oco.compiler.prover.phrasing import coordinates, number
from oco.compiler.prover.types import ProofRule, Step
from oco.dsl.build import call
from oco.dsl.expressions import Kind, names
from oco.dsl.intervals import Interval, interval, point
from oco.dsl.magnitudes import HUGE, SMALLEST
from oco.dsl.records import dataclass

Floats = np.ndarray[Any, Any]
Decision = Mapping[str, Floats]
MOST_ROWS = 8  # rows whose mixtures are searched
MOST_NUMBERS = 1 << 20  # of the rows
ASIDE = 1e-6
"""Least distance from zero, relative to the terms, on a decision's side: a thousand times what membership forgives."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """The proof that some mixture satisfies all constraints; `common` where it is the same one in every round."""

    common: bool
    step: Step


def paired(inequalities: tuple[Inequality, ...]) -> list[Inequality]:
    """The first halves of equalities of each round, which stand as two inequalities with one origin: `expr` is zero where they hold."""
    return [first for first, second in pairwise(inequalities) if first.origin == second.origin]


def mixture(scenario: Scenario, may_be_met: Callable[[], bool] = lambda: True) -> Mixture | None:
    """The proof that the equalities can be met along with the inequalities; None where none is found.

    may_be_met  False where one decision is known not to meet all inequalities: those that are mixed would
    """
    setting, canonical = scenario.setting, scenario.setting.canonical
    halves = paired(canonical.inequalities)
    rows: list[Inequality | Equality] = [*halves, *canonical.equalities]
    origins = {c.origin for c in halves}
    others = [c for c in canonical.inequalities if c.origin not in origins]
    count = sum(c.size for c in rows)
    if not 0 < count <= MOST_ROWS or count * canonical.size > MOST_NUMBERS or not scenario.bounded:
        return None
    if any(setting.curvatures(setting.simplify(c.expr)) not in FLAT_KINDS for c in rows):
        return None
    if any(setting.curvatures(setting.simplify(c.expr)) not in CONVEX_KINDS for c in others):
        return None
    if not halves and not may_be_met():
        return None
    claim = _Claim(scenario, tuple(rows), tuple(others))
    return next((result for points in claim.proposals() if (result := claim.proved(points)) is not None), None)


@dataclass(frozen=True, eq=False)
class _Claim:
    """Claim that the functions `rows` vanish at a mixture, where `others` hold."""

    scenario: Scenario
    rows: tuple[Inequality | Equality, ...]
    others: tuple[Inequality, ...]

    @cached_property
    def matrix(self) -> EqualityRows:
        return affine_rows(self.scenario, self.rows)

    @property
    def common(self) -> bool:
        """True if the equalities are the same in every round."""
        exprs = [self.scenario.setting.simplify(c.expr) for c in self.rows]
        revealed = {n for e in exprs for n in names(e, Kind.STREAM)} - self.scenario.averaged
        return not revealed and not any(names(e, Kind.ROUND) for e in exprs)

    # ---- decisions to mix

    def proposals(self) -> Iterator[list[Decision]]:
        """Decisions where a single function is least and greatest over the set, then those that a solver finds."""
        ends = self._ends() if len(self.matrix.right) == 1 else None
        if ends is not None:
            yield ends
        if ends is not None and not self.others:
            return
        surrounding = self._surrounding()
        if surrounding is not None:
            yield surrounding

    def _ends(self) -> list[Decision] | None:
        """By linear minimization of the function and of its negative."""
        setting = self.scenario.setting
        blocks = setting.canonical.blocks
        cost = sum(b.domain.extreme_cost for b in blocks)
        dear = any(not b.domain.is_cheap("lmo") or b.domain.decomposes for b in blocks)
        if dear or not self.scenario.search.take(2 * cost):
            return None
        parts = self._split(self.matrix.matrix[0])
        return [{b.name: b.domain.lmo_array(sign * parts[b.name]) for b in blocks} for sign in (1.0, -1.0)]

    def _sizes(self) -> Floats:
        """Largest size of the terms of each function."""
        blocks = self.scenario.setting.canonical.blocks
        sizes = [np.maximum(np.abs(b.domain.lower), np.abs(b.domain.upper)).ravel() for b in blocks]
        terms = np.abs(self.matrix.matrix) @ np.concatenate(sizes) + np.abs(self.matrix.right)
        return np.asarray(np.clip(terms, SMALLEST, HUGE))

    def _split(self, row: Floats) -> Decision:
        blocks = self.scenario.setting.canonical.blocks
        ends = np.cumsum([b.domain.size for b in blocks])
        return {b.name: row[e - b.domain.size : e].reshape(b.shape) for b, e in zip(blocks, ends)}

    def _surrounding(self) -> list[Decision] | None:
        """Decisions x_j with values m v_j for the greatest m, where v_j are the unit vectors and minus their sum."""
        blocks, rows = self.scenario.setting.canonical.blocks, self.matrix
        corners = np.vstack([np.eye(len(rows.right)), -np.ones(len(rows.right))])
        if not affords_program(blocks * len(corners), self.scenario.search):
            return None
        import cvxpy as cp

        scale = self._sizes()
        aside, program, decisions = cp.Variable(), [], []
        for corner in corners:
            variables, within = decision_variables(blocks)
            cvxpy_forms = [self.scenario.in_cvxpy(c.expr, variables) for c in self.others]
            if any(t is None for t in cvxpy_forms):
                return None
            flat = cp.hstack([cp.vec(variables[b.name], order="C") for b in blocks])
            program += [*within, (rows.matrix / scale[:, None]) @ flat - rows.right / scale == aside * corner]
            sizes = [float(self.scenario.setting.ranges(c.expr).magnitude.max()) for c in self.others]
            program += [g + ASIDE * size <= 0 for t, size in zip(cvxpy_forms, sizes) for g in t or ()]
            decisions.append(variables)
        most = solve(cp.Maximize(aside), program)
        if most is None or not ASIDE < most < np.inf:
            return None
        return [into_domain(blocks, values(variables)) for variables in decisions]

    # ---- what is proved of them

    def proved(self, points: list[Decision]) -> Mixture | None:
        """The step, where every decision is in the set, meets the inequalities, and their values surround zero."""
        blocks, search = self.scenario.setting.canonical.blocks, self.scenario.search
        if not all(b.domain.contains(x[b.name]) for x in points for b in blocks):
            return None
        if not search.take(len(points) * self.scenario.cost(c.expr for c in (*self.others, *self.rows, *self.rows))):
            return None
        premises = [self._at(c.label, c.expr, x, c.span) for x in points for c in self.others]
        if any(p.value > 0 for p in premises):
            return None
        spare = self._spare(self._values(points))
        exact = all(b.domain.contains(x[b.name], 0.0) for x in points for b in blocks)
        if not (spare >= 0 if exact and len(points) == 2 else spare > ASIDE):
            return None
        for c in self.rows:
            for x in points:
                premises += [
                    self._at(f"{c.label} ({side})", expr, x, c.span)
                    for side, expr in (("above", c.expr), ("below", call("minus", c.expr)))
                ]
        labels = " and ".join(written(c) for c in self.rows)
        where = " and ".join(", ".join(f"{n} = {coordinates(v)}" for n, v in x.items()) for x in points)
        serves = "the same in every round" if self.common else "another one in each round"
        claim = f"between {where} lies a decision that satisfies {labels} exactly, {serves}"
        rule = ProofRule.MIXTURE if self.common else ProofRule.MIXTURE_OF_EACH_ROUND
        subject = (tuple(points), self.scenario.streams, tuple(c.expr for c in self.rows))
        return Mixture(self.common, Step(rule, claim, True, tuple(premises), self.rows[0].span, subject))

    def _at(self, label: str, expr: Any, x: Decision, span: Any) -> Step:
        most = self.scenario.worst(expr, x).greatest
        claim = f"{label} is at most {number(most)} there, {self.scenario.words}"
        return Step(ProofRule.AT_A_POINT, claim, most, (), span, (expr, x, self.scenario.streams))

    def _values(self, points: list[Decision]) -> Interval:
        """A column for each decision, a row for each function, relative to the size of the function's terms."""
        columns = []
        for x in points:
            ends = [self.scenario.worst(c.expr, x).broadcast(c.shape).expanded() for c in self.rows]
            columns.append([np.concatenate([np.ravel(e[k]) for e in ends]) for k in (0, 1)])
        low, high = np.array([c[0] for c in columns]).T, np.array([c[1] for c in columns]).T
        # Powers of two divide without rounding.
        unit = 2.0 ** np.ceil(np.log2(self._sizes()))[:, None]
        return interval(low / unit, high / unit)

    def _spare(self, result: Interval) -> float:
        """Margin by which two values lie on their sides of zero; of more, the least weight
        in a mixture that is zero, by a verified solution.

        With C about the inverse of A the solution y of A y = b has |y - C b| <= r |C b| / (1 - r), where r = |I - C A| in the
        maximum norm (Rump 2010, "Verification methods", section 10.1).
        """
        low, high = result.expanded()
        count = low.shape[1]
        if count == 2:
            return float(max(min(-high[0, 0], low[0, 1]), min(-high[0, 1], low[0, 0])))
        ones = np.ones((1, count))
        system = interval(np.vstack([low, ones]), np.vstack([high, ones]))
        middle = system.lo / 2 + system.hi / 2
        if not np.isfinite(middle).all() or np.linalg.cond(middle) > 1e12:
            return -np.inf
        inverse = np.linalg.inv(middle)
        rest = (point(np.eye(count)) - point(inverse) @ system).abs().sum(axis=1).greatest
        weights = inverse[:, -1]
        return float(weights.min() - rest / (1 - rest) * np.abs(weights).max()) if rest < 1 else -np.inf


def written(c: Inequality | Equality) -> str:
    """Name of the constraint in the user's model."""
    return c.origin if isinstance(c, Inequality) else c.label
