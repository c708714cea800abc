"""From a rule and its problem to a Program: the rule is traced once, with state variables named by the paper's symbols."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from oco.compiler.algorithms.base import Algorithm
from oco.compiler.algorithms.penalties import MOST_SLOPES
from oco.compiler.certificates.keeper import CertificateKeeper
from oco.compiler.certificates.pending import SYMBOLS as WAITING
from oco.compiler.certificates.sums import SYMBOLS as SUMMED
from oco.compiler.certificates.watched_conditions import SYMBOLS as WATCHED
from oco.compiler.certificates.watched_conditions import ConditionKeeper, watched_constraints
from oco.compiler.ir.build import Measure, Named, trace_program, with_certificate, with_prepare
from oco.compiler.ir.program import CORRECTED, HANDED, NUMBER, OBSERVED, Program
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Liftable, Value
from oco.compiler.lowering.disclosed import disclosed, with_streams
from oco.compiler.lowering.learning_together import SYMBOLS as IN_TURN
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.restarts import EPOCH
from oco.compiler.lowering.round_problem import Problem, TraceSpec
from oco.compiler.lowering.rule import joined
from oco.compiler.proximal.expected_levels import in_common, late_states
from oco.compiler.proximal.fallback_margins import SYMBOLS as FITTED
from oco.compiler.proximal.known_step import SYMBOLS
from oco.compiler.selection.alert import TracedAlert
from oco.compiler.selection.played_rule import Layout, PlayedRule
from oco.compiler.selection.switching import SwitchingRule


def assemble(
    algorithm: Algorithm,
    spec: TraceSpec,
    doc: str,
    norm: str = "l2",
    *,
    discloses: bool = False,
    alert: TracedAlert | None = None,
) -> Program:
    """The learner as data: init, decide, update, measure and slopes over arrays. Slopes are in the dual of the theorem's norm.

    discloses  True for a learner whose rounds reveal their streams, and whose rule sees what the model's feedback discloses of them
    alert      of a learner that watches its streams, and goes over to another rule
    """
    t = Tracer(spec.canonical.name)
    learner = _TracedLearner(t, algorithm, spec, alert, discloses)
    layout, given = learner.rule.layout, with_streams(spec) if discloses else spec
    measure, slopes = _measures(t, given, layout, norm)
    program = trace_program(
        t,
        doc=doc,
        decision=layout.fields,
        factored=tuple(b.name for b, low_rank in layout.blocks if low_rank is not None),
        feedback=given.fields(),
        draws=learner.player.draws,
        init=learner.init,
        decide=learner.player.decide,
        update=learner.update,
        measure=measure,
        slopes=None if discloses else slopes,
        state_docs=learner.docs,
        labels=spec.canonical.whole.constraint_names,
    )
    program = replace(program, context=spec.canonical.context, previous=learner.rule.previous)
    program = with_prepare(t, program, learner.player.prepare)
    program = _in_turn(program, algorithm, spec) if spec.canonical.delay else program
    certificates = learner.certificates
    return with_certificate(t, program, certificates.certificate if certificates.names else None)


class _TracedLearner:
    """Rule of an algorithm with what is kept beside it, from fields to fields: sums of a certificate, and of watched conditions.

    rule    of the algorithm
    player  the same, or with an alert the rule that goes over from it to another
    """

    def __init__(
        self, t: Tracer, algorithm: Algorithm, spec: TraceSpec, alert: TracedAlert | None, discloses: bool
    ) -> None:
        self.t, self.spec, self.discloses = t, spec, discloses
        self.rule = PlayedRule(t, algorithm, spec)
        self.watcher = ConditionKeeper(t, watched_constraints(spec.canonical.standing) if spec.watch else None)
        self.player = self.rule if alert is None else SwitchingRule(t, self.rule, alert)
        gap = _gap(t, algorithm, spec) if alert is None else None
        self.certificates = CertificateKeeper(t, spec, algorithm.multipliers, self.player.scales, gap)
        self.rule.layout.beside = (*self.certificates.names, *self.watcher.names)

    def init(self, start: Named) -> Mapping[str, Liftable]:
        """Fields before the first round, from the first decisions."""
        return joined(self.player.init(start), self.certificates.start(), self.watcher.start())

    def update(self, state: Named, seen: Named, drawn: Named) -> Mapping[str, Liftable]:
        """Fields after a round."""
        if self.discloses:
            seen = self._disclosed(state, seen, drawn)
        p = self.player.problem(state, seen, drawn)
        following = self.player.update(p, state) | self.watcher.after(p, state)
        if self.certificates.names:
            x, u = self.player.decided(p, state), self.player.chosen(p, state)
            following |= self.certificates.after(p, state, self.player.own(state), x, u)
        return following

    @property
    def docs(self) -> dict[str, str]:
        """Words on each field of the state."""
        beside_rule = {EPOCH: "the number of rounds of this epoch", **SYMBOLS, **FITTED, **IN_TURN}
        return self.player.docs(beside_rule) | SUMMED | WAITING | WATCHED

    def _disclosed(self, state: Named, streams: Named, drawn: Named) -> Named:
        """Values that the feedback discloses of a round with these streams."""

        def point(draws: Named) -> Point:
            made = self.rule.decide(state, draws)
            return self.rule.layout.point({name: self.t.lift(v) for name, v in made.items()})

        second = partial(point, {name: -v for name, v in drawn.items()})
        return disclosed(self.t, self.spec, state["round"], streams, point(drawn), second)


def _gap(t: Tracer, algorithm: Algorithm, spec: TraceSpec) -> Callable[[Named], Value] | None:
    """Regret to the best expert, at most, in the user's units, from the fields of a state; None where no experts are weighed."""
    gap, unit = algorithm.gap_on(spec.canonical), 1.0 if spec.scales is None else float(spec.scales.loss)
    return None if gap is None else lambda fields: unit * gap(spec, t, fields)


def _in_turn(program: Program, algorithm: Algorithm, spec: TraceSpec) -> Program:
    """Program of one of the learners that take turns."""
    fields = [f.name for f in program.state]
    late = in_common(spec.canonical)
    corrected = tuple(name for name in fields if name.startswith(CORRECTED) or name in late)
    kept = (OBSERVED, *algorithm.shared) if algorithm.shared or corrected else ()
    shared = (n for n in fields if n in corrected or any(n == s or n.startswith(f"{s}_") for s in kept))
    handed = tuple((name.removeprefix(HANDED), name) for name in fields if name.startswith(HANDED))
    by = NUMBER if spec.canonical.timed else program.numbered_by
    return replace(
        program,
        shared=tuple(shared),
        handed=handed,
        corrected=corrected,
        in_order=bool(late_states(spec.canonical)),
        numbered_by=by,
    )


def _measures(t: Tracer, spec: TraceSpec, layout: Layout, norm: str) -> tuple[Measure, Measure | None]:
    """Loss and constraints of a round, and norms of their gradients where these are looked at."""
    whole = replace(spec, scales=None, canonical=spec.canonical.whole)
    still = replace(whole, canonical=replace(whole.canonical, objective=spec.canonical.objective))

    def measure(now: Value, decisions: Named, seen: Named) -> tuple[Liftable, Liftable, Liftable]:
        p = Problem(t, whole, seen, now)
        x = layout.point(decisions)
        empty = t.zeros((0,))
        g = p.constraints(x) if p.constraint_count else empty
        return p.loss(x), g, p.all_equalities(x) if spec.canonical.equalities else empty

    def slopes(now: Value, decisions: Named, seen: Named) -> tuple[Liftable, Liftable]:
        p = Problem(t, still, seen, now)
        x, g = layout.point(decisions), t.zeros((0,))
        if 0 < p.constraint_count * spec.canonical.size <= MOST_SLOPES:
            g = p.constraint_gradients(x).dual_norms(norm)
        return p.gradient(x).dual_norm(norm), g

    return measure, None if any(spec.low_rank_layouts) or spec.canonical.feedback.gives_values_alone else slopes
