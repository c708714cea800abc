"""Derivatives and curvature for the replay: difference quotients, and values halfway between two decisions.

Part of the replay (`verify.py`), and like it without the prover's code.
"""

from __future__ import annotations

import math

import numpy as np

from oco.compiler.prover.audit.falsify import LARGEST_BY_DIFFERENCES, Attack, AuditOutcome, Place, Verdict
from oco.compiler.prover.types import ProofRule, Step
from oco.dsl.expressions import Array, Call, Expr, Index

CURVATURE_SIGNS = {"convex": (1,), "concave": (-1,), "affine": (1, -1)}
SEARCH = 25  # exchanges that are tried to find the largest and the least second difference
EIGENVALUES = (ProofRule.SECOND_DERIVATIVE_BY_TERMS, ProofRule.SECOND_DERIVATIVE_WRITTEN_OUT)


class Calculus(Attack):
    """The claims that rewrite a function, differentiate it, or say how it bends."""

    def _rewrite(self, step: Step) -> Verdict:
        before, after = step.subject
        for p in self.places[:40]:
            a, b = self._value(before, p), self._value(after, p)
            scale = max(1.0, float(np.max(np.abs(a[np.isfinite(a)]), initial=0.0)))
            if not np.allclose(a, b, rtol=1e-8, atol=1e-8 * scale, equal_nan=True):
                return AuditOutcome.FAILED, "the two differ at a decision and stream values that were tried"
        return AuditOutcome.TESTED, ""

    def _pieces(self, step: Step) -> Verdict:
        """Wherever it is tried, the function has the value of one of the pieces."""
        function, pieces = step.subject
        for p in self.places:
            whole = float(self._value(function, p))
            each = [abs(float(self._value(piece, p)) - whole) for piece in pieces]
            if np.isfinite(whole) and not min(each) <= 1e-8 * max(1.0, abs(whole)):
                return AuditOutcome.FAILED, "no piece has the value of the function at a decision that was tried"
        return AuditOutcome.TESTED, ""

    def _gradient(self, step: Step) -> Verdict:
        """Directional derivatives by differences, where those of both sides agree."""
        function, slopes = step.subject
        for p in self.places[:16]:
            centre = {b.name: (p[b.name] + b.domain.centre()) / 2 for b in self.problem.blocks}
            move = {n: self.rng.normal(size=np.shape(v)) for n, v in centre.items()}
            size = 1e-6 * max(1.0, *(float(np.abs(v).max()) for v in centre.values()))
            values = [
                float(self._value(function, {**p, **{n: v + s * size * move[n] for n, v in centre.items()}}))
                for s in (-1, 0, 1)
            ]
            along = sum(
                float(np.sum(np.broadcast_to(self._value(slopes[n], {**p, **centre}), np.shape(move[n])) * move[n]))
                for n in move
            )
            slack = 1e-3 * max(1.0, abs(along)) + 1e-9 * max(map(abs, values)) / size
            left, right = (values[1] - values[0]) / size, (values[2] - values[1]) / size
            if abs(left - right) <= slack and abs((left + right) / 2 - along) > 2 * slack:
                return AuditOutcome.FAILED, "a difference quotient disagrees"
        return AuditOutcome.TESTED, ""

    # ---- how a function bends

    def _composed(self, step: Step) -> Verdict:
        """A claim about an operation, from claims about its parts."""
        if not isinstance(step.subject, (Call, Index, Array)):
            return AuditOutcome.FAILED, "nothing is composed there"
        return self._curvature(step)

    def _by_eigenvalues(self, step: Step) -> Verdict:
        """The signs of the eigenvalues decide."""
        ends = [p.value for p in step.premises if p.rule in EIGENVALUES]
        sign = {"convex": lambda low, high: low >= 0, "concave": lambda low, high: high <= 0}.get(str(step.value))
        if sign is None or not any(sign(*e) for e in ends):
            return AuditOutcome.FAILED, "the eigenvalues do not say so"
        return self._curvature(step)

    def _curvature(self, step: Step) -> Verdict:
        """Values halfway between two decisions against the mean of the two."""
        if step.value not in CURVATURE_SIGNS or not isinstance(step.subject, Expr):
            return AuditOutcome.FAILED, "it is no claim of curvature"
        for p, q in zip(self.places[:60], self.places[1:]):
            x, y = ({n: v[n] for n in self.decisions} for v in (p, q))
            ends = [self._value(step.subject, {**p, **v}) for v in (x, y)]
            middle = self._value(step.subject, {**p, **{n: x[n] / 2 + y[n] / 2 for n in x}})
            bulge = middle - (ends[0] / 2 + ends[1] / 2)
            slack = 1e-9 * np.maximum(1.0, np.maximum(np.abs(ends[0]), np.abs(ends[1])))
            if any(np.any(s * bulge > slack) for s in CURVATURE_SIGNS[step.value]):
                return AuditOutcome.FAILED, "two decisions were found between which it bends the other way"
        return AuditOutcome.TESTED, ""

    def _nonlinear(self, step: Step) -> Verdict:
        """Second differences lie between the eigenvalues: those of many pairs, and of pairs that were searched for."""
        if not isinstance(step.value, tuple) or not isinstance(step.subject, Expr):
            return AuditOutcome.FAILED, "it is no pair of eigenvalues"
        least, most = step.value
        for sign, claimed in ((1, most), (-1, -least)):
            rate, slack = self._steepest_second_derivative(step.subject, sign)
            if rate > claimed + slack:
                return AuditOutcome.FAILED, f"a second difference of {sign * rate:g} was found"
        return AuditOutcome.TESTED, ""

    def _steepest_second_derivative(self, expr: Expr, sign: int) -> tuple[float, float]:
        """The largest second difference (`sign` 1) or minus the least that is found, with what rounding may have added."""
        pairs = [(p, q) for p, q in zip(self.places[:24], self.places[1:])]
        best, pair = max(
            ((self._second_derivative(expr, p, q, sign), (p, q)) for p, q in pairs), key=lambda result: result[0]
        )
        for _ in range(math.ceil(SEARCH * self.effort)):
            p, q = pair
            other = self.places[int(self.rng.integers(self.count))]
            name = str(self.rng.choice(list(p)))
            trials = [({**p, name: other[name]}, q)]
            if name in self.decisions:
                trials += [(p, {**q, name: other[name]}), (p, {**q, name: p[name] + 0.1 * (q[name] - p[name])})]
            if name in self.boxes:
                one = np.arange(np.size(p[name])).reshape(np.shape(p[name])) == self.rng.integers(np.size(p[name]))
                trials.append((p, {**p, name: np.where(one, q[name], p[name])}))
            for trial in trials:
                result = self._second_derivative(expr, *trial, sign)
                if result > best:
                    best, pair = result, trial
        return best, 1e-6 * max(1.0, abs(best))

    def _second_derivative(self, expr: Expr, p: Place, q: Place, sign: int) -> float:
        """The second difference between two decisions with the streams of the first place, less what rounding may add."""
        x, y = ({n: v[n] for n in self.decisions} for v in (p, q))
        gap = sum(float(np.sum((x[n] - y[n]) ** 2)) for n in x)
        if gap < 1e-12:
            return -np.inf
        ends = [float(self._value(expr, {**p, **v})) for v in (x, y)]
        middle = float(self._value(expr, {**p, **{n: x[n] / 2 + y[n] / 2 for n in x}}))
        rate = sign * 4 * (ends[0] + ends[1] - 2 * middle) / gap - 1e-13 * max(map(abs, (*ends, middle))) / gap
        return rate if np.isfinite(rate) else -np.inf

    def _change_of_gradient(self, step: Step) -> Verdict:
        """Differences of gradients, by differences of values, over the distance: |grad f(x) - grad f(y)| <= rate |x - y|."""
        if not isinstance(step.value, tuple) or not isinstance(step.subject, Expr) or step.subject.shape != ():
            return AuditOutcome.FAILED, "it is no rate of change of a gradient"
        rate = step.value[1]
        size = sum(b.domain.size for b in self.problem.blocks)
        if size > LARGEST_BY_DIFFERENCES or not math.isfinite(rate):
            return AuditOutcome.STATED, ""
        for p, q in zip(self.places[:12], self.places[1:]):
            centre = {b.name: b.domain.centre() for b in self.problem.blocks}
            x, y = ({n: 0.999 * v[n] + 0.001 * centre[n] for n in self.decisions} for v in (p, q))
            gap = math.sqrt(sum(float(np.sum((x[n] - y[n]) ** 2)) for n in x))
            ends = [self._differences(step.subject, {**p, **v}) for v in (x, y)]
            moved = float(np.linalg.norm(ends[0] - ends[1]))
            if gap > 1e-3 and moved > rate * gap + 1e-3 * max(1.0, moved):
                return AuditOutcome.FAILED, f"a rate of {moved / gap:g} was found"
        return AuditOutcome.TESTED, ""

    def _differences(self, expr: Expr, place: Place) -> np.ndarray:
        """The gradient by central differences, flattened."""
        results = []
        for b in self.problem.blocks:
            for unit in np.eye(b.domain.size):
                move = 1e-6 * unit.reshape(b.shape)
                ends = [float(self._value(expr, {**place, b.name: place[b.name] + s * move})) for s in (1, -1)]
                results.append((ends[0] - ends[1]) / 2e-6)
        return np.array(results)

    def _smoothness(self, step: Step) -> Verdict:
        if step.premises[0].rule == ProofRule.CHANGE_OF_GRADIENT:
            holds = step.value >= step.premises[0].value[1] * (1 - 1e-9)
            return (AuditOutcome.REPLAYED, "") if holds else (AuditOutcome.FAILED, "the gradient changes faster")
        least, most = step.premises[0].value
        holds = step.value >= max(abs(least), abs(most)) * (1 - 1e-9)
        return (AuditOutcome.REPLAYED, "") if holds else (AuditOutcome.FAILED, "an eigenvalue is larger")

    def _strong_convexity(self, step: Step) -> Verdict:
        holds = step.value <= max(0.0, step.premises[0].value[0]) * (1 + 1e-9)
        return (AuditOutcome.REPLAYED, "") if holds else (AuditOutcome.FAILED, "the least eigenvalue is smaller")

    def _exp_concavity(self, step: Step) -> Verdict:
        """exp(-theta f) halfway between two decisions against the mean of the two, over its value there."""
        if not isinstance(step.subject, Expr) or not step.value > 0:
            return AuditOutcome.FAILED, "it is no claim of exp-concavity"
        for p, q in zip(self.places, self.places[1:]):
            x, y = ({n: v[n] for n in self.decisions} for v in (p, q))
            middle = float(self._value(step.subject, {**p, **{n: x[n] / 2 + y[n] / 2 for n in x}}))
            below = [step.value * (middle - float(self._value(step.subject, {**p, **v}))) for v in (x, y)]
            slack = 1e-9 * max(1.0, step.value * abs(middle))
            if sum(math.exp(min(v, 700.0)) for v in below) > 2 + slack:
                return AuditOutcome.FAILED, "two decisions were found between which exp(-theta f) is not concave"
        return AuditOutcome.TESTED, ""
