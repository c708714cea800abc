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
    rule = PlayedRule(t, algorithm, spec)
    layout = rule.layout
    watcher = ConditionKeeper(t, watched_constraints(spec.canonical.standing) if spec.watch else None)
    player = rule if alert is None else SwitchingRule(t, rule, alert)
    gap = _gap(t, algorithm, spec) if alert is None else None
    certificates = CertificateKeeper(t, spec, algorithm.multipliers, player.scales, gap)
    layout.beside = (*certificates.names, *watcher.names)

    def init(start: Named) -> Mapping[str, Liftable]:
        return player.init(start) | certificates.start() | watcher.start()

    def update(state: Named, seen: Named, drawn: Named) -> Mapping[str, Liftable]:
        seen = _disclosed(t, spec, layout, rule.decide, state, seen, drawn) if discloses else seen
        p = player.problem(state, seen, drawn)
        following = player.update(p, state) | watcher.after(p, state)
        if certificates.names:
            x, u = player.decided(p, state), player.chosen(p, state)
            following |= certificates.after(p, state, player.own(state), x, u)
        return following

    given = with_streams(spec) if discloses else spec
    measure, slopes = _measures(t, given, layout, norm)
    program = trace_program(
        t,
        doc=doc,
        decision=layout.fields,
        factored=tuple(b.name for b, room in layout.blocks if room is not None),
        feedback=given.fields(),
        draws=player.draws,
        init=init,
        decide=player.decide,
        update=update,
        measure=measure,
        slopes=None if discloses else slopes,
        state_docs=player.docs({EPOCH: "the number of rounds of this epoch", **SYMBOLS, **FITTED, **IN_TURN})
        | SUMMED
        | WAITING
        | WATCHED,
        labels=spec.canonical.whole.constraint_names,
    )
    program = replace(program, context=spec.canonical.context, previous=rule.previous)
    program = with_prepare(t, program, player.prepare)
    program = _in_turn(program, algorithm, spec) if spec.canonical.delay else program
    return with_certificate(t, program, certificates.certificate if certificates.names else None)


def _gap(t: Tracer, algorithm: Algorithm, spec: TraceSpec) -> Callable[[Named], Value] | None:
    """Regret to the best expert, at most, in the user's units, from the fields of a state; None where no experts are weighed."""
    gap, unit = algorithm.gap_on(spec.canonical), 1.0 if spec.scales is None else float(spec.scales.loss)
    return None if gap is None else lambda fields: unit * gap(t, fields)


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


def _disclosed(
    t: Tracer,
    spec: TraceSpec,
    layout: Layout,
    decide: Callable[[Named, Named], Mapping[str, Liftable]],
    state: Named,
    streams: Named,
    drawn: Named,
) -> Named:
    """Values that the feedback discloses of a round with these streams."""

    def point(draws: Named) -> Point:
        return layout.point({name: t.lift(v) for name, v in decide(state, draws).items()})

    second = partial(point, {name: -v for name, v in drawn.items()})
    return disclosed(t, spec, state["round"], streams, point(drawn), second)


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
