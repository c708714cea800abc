"""Verification of certificates in exact arithmetic: the data are added up again as fractions, and nothing that a learner or a search
computed is trusted.

For any point y and any multipliers mu >= 0 (of any sign for equalities), with F the sum of the losses, every fixed decision u of the domain
that satisfied the constraints has

    F(u) >= F(y) + sum_n mu_n G_n(y) + min over u in X of <grad F(y) + sum_n mu_n grad G_n(y), u - y>,

where G_n is the constraint in one round of the verifier's choosing, the one that y violates most, or its mean over all rounds where it
binds on average. Polynomials are evaluated as fractions, other functions between doubles that are rounded outwards (`prover.ranges`), and
the minimum is exact over boxes and simplices. Losses must be affine or quadratic, and each constraint one whose worst data say it all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from oco.compiler.algorithms.memory import Memory, MemoryForm
from oco.compiler.certificates.certificate import terms_of
from oco.compiler.certificates.form import CertificateForm, affine_in_streams, certificate_form
from oco.compiler.certificates.rational import Fractions, NotRational, exact_value, fractions
from oco.compiler.domains import Domain
from oco.compiler.problem.calculus import gradient
from oco.compiler.problem.canonical import Equality, Inequality
from oco.compiler.problem.jacobians import jacobian
from oco.compiler.prover.ranges.enclosure import Enclosure
from oco.dsl import algebra
from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Expr
from oco.dsl.intervals import interval
from oco.dsl.records import dataclass
from oco.dsl.statements import Timing
from oco.dsl.text.printer import print_model
from oco.evaluation.certificate_file import checked, data_digest
from oco.evaluation.measured_run import MeasuredRun

Env = Mapping[str, Fractions]


@dataclass(frozen=True)
class ExactBound:
    """Sum of the losses, and a lower bound of that of every fixed decision that satisfied the constraints."""

    loss: Fraction
    least: Fraction

    @property
    def regret(self) -> Fraction:
        """Upper bound of the static regret."""
        return self.loss - self.least


@dataclass(frozen=True, eq=False)
class Enclosed:
    """Arrays of fractions with a value between them, entry by entry."""

    low: Fractions
    high: Fractions


def verify_certificate(content: Any, run: MeasuredRun) -> ExactBound:
    """Exact bound that a certificate's point and multipliers prove for a run. Raises OCO737 where the certificate claims more.

    content  JSON values of `certificate_data`
    """
    parts = checked(content)
    if parts["model"] != print_model(run.problem.model) or parts["data"] != data_digest(run):
        raise _refused("it is of another model, or of other data and decisions")
    form = certificate_form(run.problem)
    if isinstance(form, str) or not _is_exact(form):
        raise fail(
            "OCO738",
            "losses or constraints of this model are not summed as they are: exact arithmetic cannot add them up",
        )
    if parts["rounds"] != run.rounds:
        raise _refused(f"it is of {parts['rounds']} rounds, and the run has {run.rounds}")
    terms, weights = terms_of(form), parts["multipliers"]
    if [label for label, _ in weights] != list(terms.labels) or len(parts["point"]) != form.problem.size:
        raise _refused("its point or its multipliers are not those of this model")
    multipliers = [Fraction(value) for _, value in weights]
    free = sum(c.size for c in form.means if isinstance(c, Equality))
    if any(mu < 0 for mu in multipliers[: len(multipliers) - free]):
        raise _refused("a multiplier of an inequality is negative")
    try:
        bound = _ExactSums(run, form, fractions(parts["point"])).bound(multipliers)
    except NotRational as operation:
        raise fail("OCO738", f"exact arithmetic has no `{operation}`") from None
    _compare(parts, bound, run)
    return bound


def _compare(parts: Mapping[str, Any], bound: ExactBound, run: MeasuredRun) -> None:
    """Refuse what the certificate says beyond the exact sums."""
    loss, least, rounding, claimed = (Fraction(parts[name]) for name in ("loss", "least", "rounding", "bound"))
    if abs(loss - bound.loss) > rounding:
        raise _refused(f"the losses sum to {float(bound.loss):.17g}, not to {float(loss):.17g}")
    if least > bound.least:
        raise _refused(
            f"its point and multipliers prove a loss of {float(bound.least):.17g} at least, not of {float(least):.17g}"
        )
    if claimed < bound.regret or claimed < loss - least:
        raise _refused(
            f"the regret is at most {float(bound.regret):.17g} by its proof, and it says {float(claimed):.17g}"
        )
    counts = (run.constraints[:, : len(run.problem.learned.constraint_labels)] > 0).sum(axis=0)
    if list(parts.get("broken", {}).values()) != [int(n) for n in counts]:
        raise _refused("its numbers of broken rounds are not those of the run")


def _refused(why: str) -> OcoError:
    return fail("OCO737", f"the certificate is refused: {why}")


def _is_exact(form: CertificateForm) -> bool:
    """True where exact arithmetic can add up all that a form keeps."""
    memories = [m for m in (form.worst, form.mean) if m is not None]
    several = any(k.form is MemoryForm.FINITE and len(k.values) > 1 for m in memories for k in m.kept)
    averages = (*(form.mean.kept if form.mean else ()),)
    named = {c.label: c for c in form.problem.inequalities}
    return (
        form.exact
        and not form.each
        and not form.rows
        and not several
        and all(affine_in_streams(named[k.label].expr) for k in averages)
        and all(d.domain.is_box or d.domain.is_simplex for d in form.problem.blocks)
    )


class _ExactSums:
    """Sums of a run as fractions, at the point y."""

    def __init__(self, run: MeasuredRun, form: CertificateForm, y: Fractions) -> None:
        self.run, self.form, self.y = run, form, y
        self.names = tuple(b.name for b in form.problem.blocks)
        self.streams = {n: run.data.array(n) for n in run.data.names}
        self.point = _parts(form, y)

    def bound(self, multipliers: Sequence[Fraction]) -> ExactBound:
        """Loss of the run, and the lower bound with these multipliers, in the order of the terms' labels."""
        loss, value = Fraction(0), Fraction(0)
        slope = fractions(np.zeros(len(self.y), dtype=np.int64))
        objective, derivatives = self.form.problem.objective, gradient(self.form.problem.objective, self.names)
        for t in range(self.run.rounds):
            data = self._round(t)
            played = {n: fractions(self.run.record.decisions[n][t]) for n in self.names}
            loss += exact_value(objective, {**data, **played}, t + 1).item()
            value += exact_value(objective, {**data, **self.point}, t + 1).item()
            slope = slope + self._flat(derivatives, {**data, **self.point}, t + 1)
        low, high = slope, slope
        for mu, (g, rows) in zip(multipliers, self._constraints(multipliers), strict=True):
            if mu:
                value += mu * (g.low if mu > 0 else g.high).item()
                low = low + mu * (rows.low if mu > 0 else rows.high)
                high = high + mu * (rows.high if mu > 0 else rows.low)
        return ExactBound(loss, value + self._least(low, high))

    def _round(self, t: int) -> Env:
        return {n: fractions(a[t]) for n, a in self.streams.items()}

    def _flat(self, slopes: Mapping[str, Expr], env: Env, t: int) -> Fractions:
        blocks = self.form.problem.blocks
        parts = [exact_value(algebra.broadcast(slopes[b.name], b.shape), env, t).ravel() for b in blocks]
        return np.concatenate(parts)

    def _constraints(self, multipliers: Sequence[Fraction]) -> Iterator[tuple[Enclosed, Enclosed]]:
        """Value and slopes (d,) at y of each constraint, in the order of the terms' labels."""
        left = iter(multipliers)
        if self.form.worst is not None:
            yield from self._remembered(self.form.worst, left)
        if self.form.mean is not None:
            yield from self._remembered(self.form.mean, left)
        for kind in (Inequality, Equality):
            for c in self.form.means:
                if isinstance(c, kind):
                    for entry in range(c.size):
                        yield self._entry(c, entry, next(left))

    def _remembered(self, memory: Memory, left: Iterator[Fraction]) -> Iterator[tuple[Enclosed, Enclosed]]:
        """Entries of the constraints that a memory stands for, in its order."""
        labels = {k.label for k in memory.kept}
        own = [(c, k) for c in self.form.problem.inequalities if c.label in labels for k in range(c.size)]
        for place in memory.owner:
            yield self._entry(*own[int(place)], next(left))

    def _entry(self, c: Inequality | Equality, entry: int, mu: Fraction) -> tuple[Enclosed, Enclosed]:
        """Value and slopes of an entry: of the mean over all rounds, or of the round that y violates most."""
        if not mu:
            none = fractions(np.zeros(1, dtype=np.int64))
            return Enclosed(none, none), Enclosed(none, none)
        if isinstance(c, Equality) or c.timing is Timing.ON_AVERAGE:
            data, t = self._means(), 1
        else:
            t = self._worst(c, entry)
            data = self._round(t - 1)
        env = {**data, **self.point}
        g, slopes = _enclosed(c.expr, env, t), jacobian(c.expr, self.names)
        low, high = list[Fractions](), list[Fractions]()
        for b in self.form.problem.blocks:
            rows = _enclosed(algebra.broadcast(slopes[b.name], (*c.shape, *b.shape)), env, t)
            low.append(rows.low.reshape(c.size, -1)[entry])
            high.append(rows.high.reshape(c.size, -1)[entry])
        value = Enclosed(g.low.reshape(-1)[entry : entry + 1], g.high.reshape(-1)[entry : entry + 1])
        return value, Enclosed(np.concatenate(low), np.concatenate(high))

    def _means(self) -> Env:
        """Means of the streams over all rounds."""
        results = dict[str, Fractions]()
        for name, array in self.streams.items():
            total = fractions(np.zeros(array.shape[1:], dtype=np.int64))
            for row in array:
                total = total + fractions(row)
            results[name] = fractions(total / Fraction(len(array)))
        return results

    def _worst(self, c: Inequality, entry: int) -> int:
        """Round, from 1, in which y violates an entry most, as doubles have it: any round would do."""
        point = {n: v.astype(np.float64) for n, v in self.point.items()}
        values = [
            float(np.ravel(evaluate(c.expr, {**{n: a[t] for n, a in self.streams.items()}, **point}, t + 1.0))[entry])
            for t in range(self.run.rounds)
        ]
        return int(np.argmax(np.where(np.isnan(values), -np.inf, values))) + 1

    def _least(self, low: Fractions, high: Fractions) -> Fraction:
        """Lower bound of the minimum over the domain of <w, u - y> for all w between `low` and `high`."""
        total, start = Fraction(0), 0
        for b in self.form.problem.blocks:
            part = slice(start, start + b.domain.size)
            total += _least_over(b.domain, self.y[part], low[part], high[part])
            start += b.domain.size
        return total


def _parts(form: CertificateForm, y: Fractions) -> dict[str, Fractions]:
    """Decisions from a vector of all their entries."""
    results, start = dict[str, Fractions](), 0
    for b in form.problem.blocks:
        size = prod(b.shape)
        results[b.name] = y[start : start + size].reshape(b.shape)
        start += size
    return results


def _enclosed(expr: Expr, env: Env, t: int) -> Enclosed:
    """Value of an expression as a fraction where it is one, else between doubles that are rounded outwards."""
    try:
        value = exact_value(expr, env, t)
        return Enclosed(value, value)
    except NotRational:
        ends = {n: (v.astype(np.float64), fractions(v.astype(np.float64))) for n, v in env.items()}
        box = {
            n: interval(
                np.where(exact > env[n], np.nextafter(near, -np.inf), near).astype(np.float64),
                np.where(exact < env[n], np.nextafter(near, np.inf), near).astype(np.float64),
            )
            for n, (near, exact) in ends.items()
        }
        result = Enclosure(box | {"t": interval(float(t), float(t))})(expr)
        shape = result.shape
        low, high = (np.broadcast_to(np.asarray(side, dtype=np.float64), shape) for side in (result.lo, result.hi))
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            raise NotRational("a function that is not finite at the point") from None
        return Enclosed(fractions(low), fractions(high))


def _least_over(domain: Domain, y: Fractions, low: Fractions, high: Fractions) -> Fraction:
    """Lower bound of the minimum of <w, u - y> over a box or a simplex and all w between `low` and `high`."""
    sides = [fractions(np.broadcast_to(side, domain.shape)).ravel() for side in (domain.lower, domain.upper)]
    if domain.is_box:
        corners = [
            [w * (u - v) for w in (a, b) for u in ends] for a, b, v, *ends in zip(low, high, y, *sides, strict=True)
        ]
        return sum((min(values) for values in corners), Fraction(0))
    total, ends = max(sides[1]), zip(*sides, y, strict=True)
    moves = [max(upper - v, v - lower) for lower, upper, v in ends]
    spread = sum(((b - a) * move for a, b, move in zip(low, high, moves, strict=True)), Fraction(0))
    least: Fraction = total * min(low) - sum((a * v for a, v in zip(low, y, strict=True)), Fraction(0)) - spread
    return least
