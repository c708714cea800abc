"""Sums of a certificate within a learner: fields of its state that no rule reads, carried along and updated with each round."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oco.compiler.certificates.form import certificate_form
from oco.compiler.certificates.least_loss import least_loss
from oco.compiler.certificates.pending import PENDING, pending_rounds
from oco.compiler.certificates.summed import AllRounds, OneRound
from oco.compiler.certificates.sums import BROKEN, DYNAMIC, IMPOSSIBLE, LOSS, CertificateSums
from oco.compiler.ir.build import BEST_EXPERT, CERTIFIED, OF_EACH_ROUND, Named
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Liftable, Value
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, joined
from oco.compiler.lowering.trace_spec import TraceSpec
from oco.compiler.theory.scales import Scales
from oco.dsl.diagnostics import fail

STEPS, IDLE = 40, 6
"""Steps of the search for the least loss of one round, and those in a row without gain that end it."""


class CertificateKeeper:
    """Sums beside a rule's state, of a trace that is to have a certificate; nothing at all for another.

    multipliers  names of the rule's multipliers, one of which may have an entry for each inequality that it learns
    scales       units of the rule, where its decisions are those that are played, but for rounding
    gap          regret to the best expert, at most, in the user's units, from the fields of a state; None where no experts are weighed
    """

    def __init__(
        self,
        t: Tracer,
        spec: TraceSpec,
        multipliers: tuple[str, ...],
        scales: Scales | None = None,
        gap: Callable[[Named], Value] | None = None,
    ) -> None:
        self.t, self.multipliers, self.gap = t, multipliers, gap
        self.sums = _sums(t, spec) if spec.certify else None
        self.pending = None
        if self.sums is not None and spec.pending:
            self.pending = pending_rounds(self.sums, spec.fields(), bool(multipliers))
        if self.sums is not None and self.pending is None:
            self.sums = self.sums.counted_from(scales)
        self.dynamic = (DYNAMIC, IMPOSSIBLE) if spec.certify == "dynamic" else ()
        waiting = (PENDING,) if self.pending else ()
        self.names = () if self.sums is None else (*self.sums.shapes, *waiting, *self.dynamic)

    def start(self) -> dict[str, Liftable]:
        """Fields before the first round."""
        if self.sums is None:
            return {}
        waiting = {PENDING: self.t.zeros(self.pending.shape)} if self.pending else {}
        return joined(self.sums.start(), waiting, dict.fromkeys(self.dynamic, 0.0))

    def after(self, p: Problem, fields: Named, state: State, x: Point, u: Point | None = None) -> dict[str, Liftable]:
        """Fields after the round of `p` with the decision x, in the user's units, from those before it and the rule's state.

        u  the decision in the rule's units, where there are `scales`
        """
        if self.sums is None:
            return {}
        own, after = self._own(p, state), dict[str, Value]()
        if self.pending is None:
            user = Problem(self.t, self.sums.spec, p.seen, fields["round"])
            self.t.note("sums of the certificate")
            after = self.sums.after(fields, self.sums.of_round(user, x, own, u))
        else:
            after = self.pending.after(fields, self.pending.row(x, p.seen, own))
        return {**after, **(self._dynamic(fields, x, p.seen) if self.dynamic else {})}

    def _dynamic(self, fields: Named, x: Point, seen: Named) -> dict[str, Liftable]:
        """Regret of the round to the best decision of it, at most, added up, and the number of rounds that no decision satisfies."""
        assert self.sums is not None
        t = self.t
        p = Problem(t, self.sums.spec, seen, fields["round"])
        t.note("what every decision of the round loses at least")
        best = least_loss(OneRound(self.sums, p), t.lift(1.0), x.flat(), STEPS, IDLE)
        least = best.bound - best.slack
        impossible = least > best.most + best.slack
        regret = t.where(impossible, 0.0, p.loss(x) - least)
        counted = fields[IMPOSSIBLE] + t.where(impossible, 1.0, 0.0)
        return {DYNAMIC: fields[DYNAMIC] + regret, IMPOSSIBLE: counted}

    def kept(self, fields: Named) -> dict[str, Liftable]:
        """Fields as they are."""
        return {name: fields[name] for name in self.names}

    def certificate(self, fields: Named) -> dict[str, Liftable]:
        """Results of the program's entry by name: `CERTIFIED`, and what else is bounded."""
        assert self.sums is not None
        t = self.t
        rounds = t.maximum(t.to_float(fields["round"] - 1), 1.0)
        domain = self.sums.form.domain
        centre = t.constant(np.ravel(domain.centre()), "centre", "the middle of the domain")
        sums = self.sums.unpacked(fields if self.pending is None else self.pending.all_of(fields), rounds)
        result = least_loss(AllRounds(self.sums, sums, rounds), rounds, centre)
        broken = t.reshape(sums[BROKEN], (sums[BROKEN].size,)) if BROKEN in sums else t.zeros((0,))
        proof = result.bound, result.most, result.slack, result.y, result.multipliers, sums[LOSS], broken
        named: dict[str, Liftable] = dict(zip(CERTIFIED, proof, strict=True))
        if self.dynamic:
            named[OF_EACH_ROUND] = t.where(fields[IMPOSSIBLE] > 0.0, -np.inf, fields[DYNAMIC])
        if self.gap is not None:
            named[BEST_EXPERT] = (1 + 2.0**-32) * self.gap(fields)
        return named

    def _own(self, p: Problem, state: State) -> Value | None:
        """Multipliers of the rule, in the user's units, for the constraints that may have one in each round; None where it has none."""
        assert self.sums is not None
        form = self.sums.form
        values = [v for name in self.multipliers if isinstance(v := state.get(name), Value)]
        fitting = [v for v in values if v.shape == (p.constraint_count,)]
        if not fitting or not form.each:
            return None
        own = p.units.of_weights(fitting[0], 0)
        places = np.array([k if 0 <= k < p.constraint_count else -1 for k in form.places])
        learned = self.t.constant((places >= 0).astype(np.float64), "learned", "rows that the rule has a multiplier of")
        return own[np.maximum(places, 0)] * learned


def _sums(t: Tracer, spec: TraceSpec) -> CertificateSums:
    form = certificate_form(spec.canonical.standing)
    if isinstance(form, str):
        raise fail("OCO735", f"there is no certificate of this model: {form}")
    if any(spec.low_rank_layouts):
        raise fail("OCO735", "there is no certificate of this model: a decision is kept as factors")
    return CertificateSums.of(t, form, spec)
