"""From a rule and its problem to a Program: the rule is traced once, with state variables named by the paper's symbols."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import cast

from oco.compiler.algorithms.base import Algorithm
from oco.compiler.algorithms.penalties import MOST_SLOPES
from oco.compiler.certificates.keeper import CertificateKeeper
from oco.compiler.certificates.pending import SYMBOLS as WAITING
from oco.compiler.certificates.sums import SYMBOLS as SUMMED
from oco.compiler.certificates.watched_conditions import SYMBOLS as WATCHED
from oco.compiler.certificates.watched_conditions import ConditionKeeper, watched_constraints
from oco.compiler.domains.combination import Combination
from oco.compiler.domains.spectral import some_direction
from oco.compiler.ir.build import Measure, Named, trace_program, with_certificate, with_prepare
from oco.compiler.ir.program import OBSERVED, DType, Field, Program, Type
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Liftable, Value
from oco.compiler.lowering.disclosed import disclosed, with_streams
from oco.compiler.lowering.learning_together import SYMBOLS as IN_TURN
from oco.compiler.lowering.learning_together import LearningTogether
from oco.compiler.lowering.points import Point, Rows, Structured
from oco.compiler.lowering.restarts import EPOCH, Restarted
from oco.compiler.lowering.round_problem import Problem, TraceSpec
from oco.compiler.lowering.rounding import rounded
from oco.compiler.lowering.rule import Informed, Rule, State
from oco.compiler.lowering.storage import StateLayout, decided, started
from oco.compiler.proximal.known_step import BEFORE, SYMBOLS, CarryingRule, WithinKnown, carried_field


def assemble(algorithm: Algorithm, spec: TraceSpec, doc: str, norm: str = "l2", *, discloses: bool = False) -> Program:
    """The learner as data: init, decide, update, measure and slopes over arrays. Slopes are in the dual of the theorem's norm.

    discloses  True for a learner whose rounds reveal their streams, and whose rule sees what the model's feedback discloses of them
    """
    t = Tracer(spec.canonical.name)
    rule, informed = _rule(algorithm, spec)
    layout = _Layout(t, spec, algorithm.frank_wolfe(spec))
    certificates = CertificateKeeper(t, spec, algorithm.multipliers)
    watcher = ConditionKeeper(t, watched_constraints(spec.canonical.standing) if spec.watch else None)
    layout.beside = (*certificates.names, *watcher.names)

    def init(start: Named) -> Mapping[str, Liftable]:
        constants = _open(spec, start)
        p = Problem(t, spec, {}, constants=constants)
        begun = layout.flat(rule.init(p, p.units.inward(layout.point(start))))
        return begun | layout.first_starts() | constants | certificates.start() | watcher.start()

    def decide(state: Named, drawn: Named) -> Mapping[str, Liftable]:
        constants = _open(spec, state)
        p = Problem(t, spec, {}, state["round"], drawn, constants=constants)
        return layout.decision(rounded(p, p.units.outward(rule.decide(p, layout.state(state))))) | constants

    def update(state: Named, seen: Named, drawn: Named) -> Mapping[str, Liftable]:
        constants = _open(spec, state)
        seen = _disclosed(t, spec, layout, decide, state, seen, drawn) if discloses else seen
        p = Problem(t, spec, seen, state["round"], drawn, layout.starts(state), constants)
        own = layout.state(state)
        following = layout.flat(rule.update(p, own)) | constants | watcher.after(p, state)
        if certificates.names:
            following |= certificates.after(p, state, own, rounded(p, p.units.outward(rule.decide(p, own))))
        return following | {name: p.domain.starts.vectors[k] for k, name in layout.warm.items()}

    given = with_streams(spec) if discloses else spec
    measure, slopes = _measures(t, given, layout, norm)
    program = trace_program(
        t,
        doc=doc,
        decision=[f for fields in layout.decided for f in fields] + [Field(n, Type(DType.FLOAT)) for n in spec.open],
        factored=tuple(b.name for b, room in layout.blocks if room is not None),
        feedback=given.fields(),
        draws=tuple(spec.drawn()),
        init=init,
        decide=decide,
        update=update,
        measure=measure,
        slopes=None if discloses else slopes,
        state_docs=layout.docs({EPOCH: "the number of rounds of this epoch", **SYMBOLS, **IN_TURN, **algorithm.symbols})
        | SUMMED
        | WAITING
        | WATCHED,
        labels=spec.canonical.whole.constraint_names,
    )
    program = replace(program, context=spec.canonical.context, previous=_previous(spec))
    program = with_prepare(t, program, _prepare(t, spec, layout, informed))
    if spec.canonical.delay and algorithm.shared:
        kept = (OBSERVED, *algorithm.shared)
        shared = (f.name for f in program.state if any(f.name == s or f.name.startswith(f"{s}_") for s in kept))
        program = replace(program, shared=tuple(shared))
    return with_certificate(t, program, certificates.certificate if certificates.names else None)


def _disclosed(
    t: Tracer,
    spec: TraceSpec,
    layout: _Layout,
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


def _measures(t: Tracer, spec: TraceSpec, layout: _Layout, norm: str) -> tuple[Measure, Measure | None]:
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


def _rule(algorithm: Algorithm, spec: TraceSpec) -> tuple[Rule, Informed | None]:
    """Rule of an algorithm, and it again where its decision waits for what is known before it."""
    rule: Rule = algorithm.rule()
    if spec.restarts is not None:
        rule = Restarted(rule, *spec.restarts)
    informed = algorithm.prepares(spec.canonical)
    if spec.canonical.delay and algorithm.shared:
        rule = LearningTogether(cast(Informed, rule), spec.canonical.delay + 1)
    if informed:
        return rule, cast(Informed, rule)
    if spec.canonical.known:
        within = WithinKnown(rule, algorithm.plays)
        return within, within
    return CarryingRule(rule) if spec.canonical.carried else rule, None


def _prepare(
    t: Tracer, spec: TraceSpec, layout: _Layout, informed: Informed | None
) -> Callable[[Named, Named], Mapping[str, Liftable]] | None:
    """State once the context of a round is known; None where no decision hangs on it."""
    if informed is None:
        return None

    def prepare(state: Named, known: Named) -> Mapping[str, Liftable]:
        kept = {n: state[n] for n in ("round", *spec.open, *layout.warm.values(), *layout.beside)}
        before = {field: state[own] for field, own in _previous(spec)}
        p = Problem(t, spec, {**known, **before}, state["round"], constants=_open(spec, state))
        return layout.flat(informed.prepare(p, layout.state(state))) | kept

    return prepare


def _previous(spec: TraceSpec) -> tuple[tuple[str, str], ...]:
    """Streams that rounds leave to the next, each with the field of the state that has its value."""
    fields = dict(zip(spec.decisions, spec.names(BEFORE), strict=True))
    return tuple((s.name, fields.get(s.stream.previous, carried_field(s.name))) for s in spec.canonical.carried)


def _open(spec: TraceSpec, fields: Named) -> dict[str, Value]:
    """The open symbols of the settings, which the state carries along."""
    return {name: fields[name] for name in spec.open}


class _Layout:
    """Points as fields: one array a decision, under the symbol itself where there is one decision; several for one kept as factors."""

    def __init__(self, t: Tracer, spec: TraceSpec, frank_wolfe: bool) -> None:
        self.t = t
        self.symbols = spec.names
        self.blocks = list(
            zip(spec.canonical.blocks, spec.low_rank_layouts or (None,) * len(spec.canonical.blocks), strict=True)
        )
        self.decided = [
            (Field(b.name, Type(DType.FLOAT, b.shape), f"in {b.domain}"),) if room is None else room.fields(b)
            for b, room in self.blocks
        ]
        warm = [k for k, (b, room) in enumerate(self.blocks) if room is not None or b.domain.lmo_start is not None]
        self.warm = {k: f"last_{self.blocks[k][0].name}" for k in warm if frank_wolfe}
        self.open = spec.open
        self.beside: tuple[str, ...] = ()
        self.kinds: dict[str, type[Point] | type[Rows]] = {}
        self.state_layout = StateLayout(t)

    # Decisions.

    def point(self, fields: Named) -> Point:
        """The decisions from their fields."""
        return Point(
            tuple(fields[b.name] if room is None else started(self.t, b, room, fields) for b, room in self.blocks)
        )

    def decision(self, x: Point) -> dict[str, Liftable]:
        """Their fields."""
        results: dict[str, Liftable] = {}
        for (b, room), value in zip(self.blocks, x.blocks, strict=True):
            results |= {b.name: value} if room is None else decided(self.t, b, room, value)
        return results

    # Starts of linear minimisations.

    def first_starts(self) -> dict[str, Liftable]:
        return {name: some_direction(self.t, self.blocks[k][0].shape[1]) for k, name in self.warm.items()}

    def starts(self, state: Named) -> dict[int, Value]:
        return {k: state[name] for k, name in self.warm.items()}

    # The rule's state.

    def flat(self, state: State) -> dict[str, Liftable]:
        results: dict[str, Liftable] = {}
        for symbol, value in state.items():
            if isinstance(value, Point | Rows):
                self.kinds[symbol] = type(value)
                for name, block in zip(self.symbols(symbol), value.blocks, strict=True):
                    kept = self.state_layout.fields(name, block) if isinstance(block, Combination) else {name: block}
                    results |= kept
            else:
                results[symbol] = value
        return results

    def state(self, fields: Named) -> State:
        """The rule's state from its fields; `init` was traced before, so it is known which symbols are points."""
        results: dict[str, Structured] = {
            s: k(tuple(self.state_layout.block(f, fields) for f in self.symbols(s))) for s, k in self.kinds.items()
        }
        used = {name for s in self.kinds for f in self.symbols(s) for name in self.state_layout.names(f)}
        used |= {"round", *self.warm.values(), *self.open, *self.beside}
        return results | {name: v for name, v in fields.items() if name not in used}

    def docs(self, symbols: Mapping[str, str]) -> dict[str, str]:
        return (
            dict(symbols)
            | {f: words for s, words in symbols.items() for f in self.symbols(s)}
            | dict.fromkeys(self.warm.values(), "right singular vector of the last linear minimisation")
        )
