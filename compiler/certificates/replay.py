"""Program that sums a certificate from what a trace holds: the decisions and the data of each round, and nothing of a learner."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from oco.compiler.certificates.form import certificate_form
from oco.compiler.certificates.keeper import CertificateKeeper
from oco.compiler.certificates.pending import SYMBOLS as WAITING
from oco.compiler.certificates.sums import SYMBOLS
from oco.compiler.ir.build import Named, trace_program, with_certificate
from oco.compiler.ir.passes import optimize
from oco.compiler.ir.program import DType, Field, Program, Type
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Liftable
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.trace_spec import TraceSpec
from oco.compiler.problem.canonical import Canonical
from oco.dsl.diagnostics import fail

PLAYED = "_played"
"""Ending of the fields in which the decision of a round comes in."""


def replay_program(problem: Canonical) -> Program:
    """Program whose state is the sums alone: its rounds reveal the streams and, as `NAME_played`, the decisions.

    problem  the standing form. Raises OCO735 where there is no certificate of it
    """
    if isinstance(form := certificate_form(problem), str):
        raise fail("OCO735", f"there is no certificate of this model: {form}")
    t, spec = Tracer(problem.name), TraceSpec(problem, {}, problem.structure[0], problem.horizon, certify="static")
    keeper = CertificateKeeper(t, spec, ())
    blocks = [Field(b.name, Type(DType.FLOAT, b.shape)) for b in problem.blocks]
    played = [Field(f.name + PLAYED, f.type, "the decision of the round") for f in blocks]

    def init(start: Named) -> Mapping[str, Liftable]:
        return keeper.start()

    def decide(state: Named, drawn: Named) -> Mapping[str, Liftable]:
        why = "the middle of the domain"
        return {b.name: t.constant(np.asarray(b.domain.centre()), "centre", why) for b in problem.blocks}

    def update(state: Named, seen: Named, drawn: Named) -> Mapping[str, Liftable]:
        p = Problem(t, spec, seen, state["round"])
        return keeper.after(p, state, {}, Point(tuple(seen[f.name] for f in played)))

    program = trace_program(
        t,
        doc=f"The sums of a certificate for the model {problem.name}",
        decision=blocks,
        feedback=(*spec.fields(), *played),
        init=init,
        decide=decide,
        update=update,
        state_docs=SYMBOLS | WAITING,
    )
    return optimize(with_certificate(t, program, keeper.certificate))
