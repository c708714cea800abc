"""Points for the replay: what a decision is claimed to satisfy, and that there is none.

Part of the replay (`verify.py`), and like it without the prover's code.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oco.compiler.prover.audit.falsify import TOLERANCE, Attack, AuditOutcome, Place, Verdict
from oco.compiler.prover.types import ProofRule, Step
from oco.dsl.expressions import Expr

REPLAYED: Verdict = (AuditOutcome.REPLAYED, "")


class Points(Attack):
    """The claims of feasibility."""

    def _at_a_point(self, step: Step) -> Verdict:
        """Stream values in the range that was assumed, those among them that climb, stay below the bound."""
        expr, x, streams = step.subject
        worst = -np.inf
        best: Place = dict(self.places[0])
        for k in range(len(self.places) + 60):
            place = dict(self.places[k % len(self.places)])
            if k >= len(self.places):
                name = str(self.rng.choice(list(streams))) if streams else ""
                place = {**best, name: place[name]} if name else place
            values = float(np.max(self._value(expr, self._within(place, x, streams))))
            if values > worst:
                worst, best = values, place
        holds = worst <= step.value + TOLERANCE * max(1.0, abs(step.value))
        return (
            (AuditOutcome.TESTED, "")
            if holds
            else (AuditOutcome.FAILED, "stream values were found at which it is larger")
        )

    def _within(self, p: Place, x: Place, streams: Any) -> Place:
        return {**p, **{n: np.clip(p[n], r.lo, r.hi) for n, r in streams.items()}, **x}

    def _slater(self, step: Step) -> Verdict:
        """In the domain, with a premise for each inequality, and none of them above minus the margin."""
        left_out = [c.label for c in self.problem.inequalities if not self._spoken_of(c.expr, step)]
        if left_out:
            return AuditOutcome.FAILED, f"nothing is said of {left_out[0]}"
        inside = self._in_the_domain(step.subject)
        worst = max((float(p.value) for p in step.premises), default=-np.inf)
        holds = inside and step.value <= -worst + TOLERANCE * max(1.0, abs(worst))
        words = "the point is outside, or a constraint is larger there"
        return REPLAYED if holds else (AuditOutcome.FAILED, words)

    def _in_the_domain(self, x: Place) -> bool:
        """Asked once of a decision that several facts are about: it may cost a decomposition."""
        if id(x) not in self._known_inside:
            inside = all(b.domain.contains(x[b.name], 1e-7) for b in self.problem.blocks)
            self._known_inside[id(x)] = x, inside
        return self._known_inside[id(x)][1]

    def _spoken_of(self, expr: Expr, step: Step) -> bool:
        """True if a premise is about a function of the same values, at the same decision."""
        return any(
            all(np.array_equal(p.subject[1][n], x) for n, x in step.subject.items())
            and all(np.allclose(self._value(p.subject[0], at), self._value(expr, at)) for at in self.places[:8])
            for p in step.premises
            if p.rule == ProofRule.AT_A_POINT
        )

    def _mixture(self, step: Step) -> Verdict:
        """One mixture of the decisions is in the set and meets all constraints, whatever stream values are tried."""
        return self._mixed(step, None)

    def _mixture_of_each_round(self, step: Step) -> Verdict:
        """For all stream values that are tried some mixture of the decisions is in the set and meets all constraints."""
        for p in self.places:
            result = self._mixed(step, p)
            if result[0] is AuditOutcome.FAILED:
                return result
        return AuditOutcome.TESTED, ""

    def _mixed(self, step: Step, only: Place | None) -> Verdict:
        """The mixture for the values of `only`, tried there; without it one for the first place, tried at all of them."""
        points, streams, exprs = step.subject
        places = [self._within(p, {}, streams) for p in (self.places if only is None else [only])]
        values = np.stack(
            [np.concatenate([np.ravel(self._value(e, {**places[0], **x})) for e in exprs]) for x in points], 1
        )
        system = np.vstack([values, np.ones(len(points))])
        weights = np.linalg.lstsq(system, np.eye(len(system))[-1], rcond=None)[0]
        x = {n: sum(w * point[n] for w, point in zip(weights, points)) for n in points[0]}
        inside = all(b.domain.contains(x[b.name], 1e-7) for b in self.problem.blocks)
        if not inside or weights.min() < -TOLERANCE:
            return AuditOutcome.FAILED, "the mixture is not in the set"
        for place in places:
            for c in self.problem.constraints:
                at_points = [np.abs(self._value(c.expr, {**place, **point})).max() for point in points]
                value = np.max(self._value(c.expr, {**place, **x}))
                least = np.min(self._value(c.expr, {**place, **x})) if c in self.problem.equalities else 0.0
                if max(value, -least) > 1e-7 * max(at_points):
                    return AuditOutcome.FAILED, f"{c.label} does not hold at the mixture"
        return AuditOutcome.TESTED, ""

    def _interior(self, step: Step) -> Verdict:
        """The point is in the relative interior, the equalities hold there in the mean, and the inequalities with the margin."""
        x = step.subject
        if not isinstance(x, dict):
            inner = [p for p in step.premises if p.rule == ProofRule.INTERIOR_POINT]
            holds = step.value is True and any(p.value > 0 for p in inner)
            return REPLAYED if holds else (AuditOutcome.FAILED, "no interior point is given")
        means = {s.name: np.asarray(s.mean) for s in self.problem.streams if s.mean is not None}
        if not all(b.domain.in_relative_interior(x[b.name]) for b in self.problem.blocks):
            return AuditOutcome.FAILED, "the point is not inside the domain"
        for c in self.problem.equalities:
            value = np.abs(self._value(c.expr, {**self.places[0], **means, **x}))
            scale = max(float(np.abs(self._value(c.expr, {**p, **means})).max()) for p in self.places[:20])
            if np.any(value > 1e-6 * max(scale, 1e-300)):
                return AuditOutcome.FAILED, "an equality does not hold there in the mean"
        for g in self.problem.inequalities:
            most = max(float(np.max(self._value(g.expr, {**p, **means, **x}))) for p in self.places)
            if not step.value <= -most + 1e-7 * max(1.0, abs(most)):
                return AuditOutcome.FAILED, f"{g.label} is larger there"
        return AuditOutcome.TESTED, ""

    def _corner_policy(self, step: Step) -> Verdict:
        """Every corner that is named is one of the streams' box, and all of them are."""
        corners = step.subject
        used = sorted({n for corner in corners for n in corner})
        streams = [s for s in self.problem.streams if s.name in used]
        free = sum(int(np.sum(np.broadcast_to(s.upper > s.lower, s.shape))) for s in streams)
        seen = {tuple(np.concatenate([np.ravel(c[n]) for n in used])) if used else () for c in corners}
        at_ends = all(np.all((c[s.name] == s.lower) | (c[s.name] == s.upper)) for c in corners for s in streams)
        holds = at_ends and len(seen) == 2**free and step.value >= 0
        return (AuditOutcome.TESTED, "") if holds else (AuditOutcome.FAILED, "a corner of the streams is left out")

    def _nowhere(self, step: Step) -> Verdict:
        """The weighted sum of the constraints is positive at every decision tried."""
        rows, weights, _, streams = step.subject
        for p in self.places:
            total = 0.0
            for row, weight, values in zip(rows, weights, streams):
                total += float(weight) * float(self._value(row.expr, {**p, **values}))
            if total < 0:
                return AuditOutcome.FAILED, "a decision was found at which the combination is negative"
        return AuditOutcome.TESTED, ""
