"""Rule of an algorithm over its problem, as functions of the fields of a program's state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from oco.compiler.algorithms.base import Algorithm
from oco.compiler.domains.combination import Combination
from oco.compiler.domains.spectral import some_direction
from oco.compiler.ir.build import Named
from oco.compiler.ir.program import DType, Field, Type
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Liftable, Value
from oco.compiler.lowering.learning_together import LearningAlone, LearningTogether
from oco.compiler.lowering.points import Point, Rows, Structured
from oco.compiler.lowering.restarts import Restarted
from oco.compiler.lowering.round_problem import Problem, TraceSpec
from oco.compiler.lowering.rounding import rounded
from oco.compiler.lowering.rule import Informed, Rule, State, joined
from oco.compiler.lowering.storage import StateLayout, decided, started
from oco.compiler.proximal.fallback_margins import WithFallbacks, has_fallbacks
from oco.compiler.proximal.handing_on import HandingOn
from oco.compiler.proximal.known_step import BEFORE, CarryingRule, WithinKnown, carried_field
from oco.compiler.theory.scales import Scales


class PlayedRule:
    """Rule of an algorithm as `spec` says, from fields to fields."""

    def __init__(self, t: Tracer, algorithm: Algorithm, spec: TraceSpec) -> None:
        self.t, self.spec, self.algorithm = t, spec, algorithm
        self.rule, self.informed = _rule(algorithm, spec)
        self.layout = Layout(t, spec, algorithm.frank_wolfe(spec))

    def init(self, start: Named) -> dict[str, Liftable]:
        """Fields before the first round, from the first decisions."""
        constants = self._open(start)
        p = Problem(self.t, self.spec, {}, constants=constants)
        begun = self.layout.flat(self.rule.init(p, p.units.inward(self.layout.point(start))))
        return joined(begun, self.layout.first_starts(), constants)

    def decide(self, state: Named, drawn: Named) -> dict[str, Liftable]:
        """Decisions of the round."""
        constants = self._open(state)
        p = Problem(self.t, self.spec, {}, state["round"], drawn, constants=constants)
        return self.layout.decision(self.decided(p, state)) | constants

    def decided(self, p: Problem, state: Named) -> Point:
        """Decision of the round of `p`, in the user's units."""
        return rounded(p, p.units.outward(self.chosen(p, state)))

    def chosen(self, p: Problem, state: Named) -> Point:
        """Decision of the rule in its own units, before it is rounded."""
        return self.rule.decide(p, self.layout.state(state))

    @property
    def scales(self) -> Scales | None:
        """Units of the rule, where what it chooses is played but for rounding; None where it is not."""
        canonical = self.spec.canonical
        return None if canonical.known or any(b.rounded for b in canonical.blocks) else self.spec.scales

    def problem(self, state: Named, seen: Named, drawn: Named) -> Problem:
        """Problem of a round with these streams."""
        return Problem(self.t, self.spec, seen, state["round"], drawn, self.layout.starts(state), self._open(state))

    def update(self, p: Problem, state: Named) -> dict[str, Liftable]:
        """Fields after the round of `p`."""
        following = self.layout.flat(self.rule.update(p, self.layout.state(state))) | self._open(state)
        return following | {name: p.domain.starts.vectors[k] for k, name in self.layout.warm.items()}

    def own(self, state: Named) -> State:
        """State of the rule."""
        return self.layout.state(state)

    def docs(self, words: Mapping[str, str]) -> dict[str, str]:
        """Words on each field, from those on the symbols."""
        return self.layout.docs({**words, **self.algorithm.symbols})

    @property
    def draws(self) -> tuple[Field, ...]:
        """Random arrays of a round."""
        return tuple(self.spec.drawn())

    @property
    def prepare(self) -> Callable[[Named, Named], Mapping[str, Liftable]] | None:
        """State once the context of a round is known; None where no decision hangs on it."""
        informed = self.informed
        if informed is None:
            return None

        def prepare(state: Named, known: Named) -> Mapping[str, Liftable]:
            kept = {n: state[n] for n in ("round", *self.spec.open, *self.layout.warm.values(), *self.layout.beside)}
            before = {field: state[own] for field, own in self.previous}
            constants = self._open(state)
            p = Problem(self.t, self.spec, {**known, **before}, state["round"], constants=constants)
            return self.layout.flat(informed.prepare(p, self.layout.state(state))) | kept

        return prepare

    @property
    def previous(self) -> tuple[tuple[str, str], ...]:
        """Streams that rounds leave to the next, each with the field of the state that has its value."""
        fields = dict(zip(self.spec.decisions, self.spec.names(BEFORE), strict=True))
        carried = self.spec.canonical.carried
        return tuple((s.name, fields.get(s.stream.previous, carried_field(s.name))) for s in carried)

    def _open(self, fields: Named) -> dict[str, Value]:
        """The open symbols of the settings, which the state carries along."""
        return {name: fields[name] for name in self.spec.open}


def _rule(algorithm: Algorithm, spec: TraceSpec) -> tuple[Rule, Informed | None]:
    """Rule of an algorithm, and it again where its decision waits for what is known before it."""
    rule: Rule = algorithm.rule()
    if spec.restarts is not None:
        rule = Restarted(rule, *spec.restarts)
    canonical, informed = spec.canonical, algorithm.prepares(spec.canonical)
    if canonical.known and not informed:
        rule, informed = WithinKnown(rule, algorithm.plays), True
    elif canonical.carried and not informed:
        rule = CarryingRule(rule)
    if has_fallbacks(canonical):
        rule = WithFallbacks(cast(Informed, rule))
    if canonical.delay and canonical.carried:
        rule, informed = HandingOn(rule, informed, algorithm.hands, bool(algorithm.shared)), True
    if canonical.delay and algorithm.shared:
        rule = LearningTogether(cast(Informed, rule), canonical.delay + 1)
    elif canonical.delay and canonical.timed:
        rule = LearningAlone(rule, canonical.delay + 1)
    return rule, cast(Informed, rule) if informed else None


class Layout:
    """Layout of points as fields of a state: an array for each decision, or several for one that is kept as factors.

    A model with one decision has its fields under the symbols themselves.
    """

    def __init__(self, t: Tracer, spec: TraceSpec, frank_wolfe: bool) -> None:
        self.t = t
        self.symbols = spec.names
        self.blocks = list(
            zip(spec.canonical.blocks, spec.low_rank_layouts or (None,) * len(spec.canonical.blocks), strict=True)
        )
        self.decided = [
            (Field(b.name, Type(DType.FLOAT, b.shape), f"in {b.domain}"),) if low_rank is None else low_rank.fields(b)
            for b, low_rank in self.blocks
        ]
        warm = [
            k for k, (b, low_rank) in enumerate(self.blocks) if low_rank is not None or b.domain.lmo_start is not None
        ]
        self.warm = {k: f"last_{self.blocks[k][0].name}" for k in warm if frank_wolfe}
        self.open = spec.open
        self.beside: tuple[str, ...] = ()
        self.kinds: dict[str, type[Point] | type[Rows]] = {}
        self.state_layout = StateLayout(t)

    # Decisions.

    @property
    def fields(self) -> list[Field]:
        """Fields of the decisions, and of the open symbols that go with them."""
        return [f for fields in self.decided for f in fields] + [Field(n, Type(DType.FLOAT)) for n in self.open]

    def point(self, fields: Named) -> Point:
        """The decisions from their fields."""
        return Point(
            tuple(
                fields[b.name] if low_rank is None else started(self.t, b, low_rank, fields)
                for b, low_rank in self.blocks
            )
        )

    def decision(self, x: Point) -> dict[str, Liftable]:
        """Their fields."""
        results: dict[str, Liftable] = {}
        for (b, low_rank), value in zip(self.blocks, x.blocks, strict=True):
            results |= {b.name: value} if low_rank is None else decided(self.t, b, low_rank, value)
        return results

    # Starts of linear minimisations.

    def first_starts(self) -> dict[str, Liftable]:
        """Fields before the first round."""
        return {name: some_direction(self.t, self.blocks[k][0].shape[1]) for k, name in self.warm.items()}

    def starts(self, state: Named) -> dict[int, Value]:
        """Starts of a round by the place of the decision."""
        return {k: state[name] for k, name in self.warm.items()}

    # The rule's state.

    def flat(self, state: State) -> dict[str, Liftable]:
        """Fields of a rule's state."""
        results: list[Mapping[str, Liftable]] = []
        for symbol, value in state.items():
            if isinstance(value, Point | Rows):
                self.kinds[symbol] = type(value)
                for name, block in zip(self.symbols(symbol), value.blocks, strict=True):
                    kept = self.state_layout.fields(name, block) if isinstance(block, Combination) else {name: block}
                    results.append(kept)
            else:
                results.append({symbol: value})
        return joined(*results)

    def state(self, fields: Named) -> State:
        """The rule's state from its fields; `init` was traced before, so it is known which symbols are points."""
        results: dict[str, Structured] = {
            s: k(tuple(self.state_layout.block(f, fields) for f in self.symbols(s))) for s, k in self.kinds.items()
        }
        used = {name for s in self.kinds for f in self.symbols(s) for name in self.state_layout.names(f)}
        used |= {"round", *self.warm.values(), *self.open, *self.beside}
        return results | {name: v for name, v in fields.items() if name not in used}

    def docs(self, symbols: Mapping[str, str]) -> dict[str, str]:
        """Words on each field, from those on the symbols."""
        return (
            dict(symbols)
            | {f: words for s, words in symbols.items() for f in self.symbols(s)}
            | dict.fromkeys(self.warm.values(), "right singular vector of the last linear minimisation")
        )
