"""Rule that goes over to another once bets have refuted what the model states of its streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from oco.compiler.evidence.watched_streams import ALARM, SYMBOLS, EvidenceKeeper
from oco.compiler.ir.build import Named
from oco.compiler.ir.program import Field
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Liftable, Value
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, joined
from oco.compiler.selection.alert import OTHER, TracedAlert
from oco.compiler.selection.played_rule import PlayedRule


class SwitchingRule:
    """Two rules as one, from fields to fields as `PlayedRule`: `first` until an alarm, then the other, from the decision reached.

    The other counts its rounds from the alarm. Its fields, which begin with `OTHER`, stand still before, those of the first rule after it.
    """

    def __init__(self, t: Tracer, first: PlayedRule, alert: TracedAlert) -> None:
        self.t, self.first = t, first
        self.evidence = EvidenceKeeper(t, alert.problem, alert.alpha)
        self.centred, self.other = alert.centred, None
        if alert.algorithm is not None and alert.spec is not None:
            self.other = PlayedRule(t, alert.algorithm, alert.spec)

    @property
    def draws(self) -> tuple[Field, ...]:
        """Random arrays of a round, of both rules."""
        others = () if self.other is None else self.other.draws
        return (*self.first.draws, *(replace(f, name=OTHER + f.name) for f in others))

    def docs(self, words: Mapping[str, str]) -> dict[str, str]:
        """Words on each field, from those on the symbols."""
        others = {} if self.other is None else self.other.docs(words)
        return self.first.docs(words) | SYMBOLS | {OTHER + name: text for name, text in others.items()}

    def init(self, start: Named) -> dict[str, Liftable]:
        """Fields before the first round."""
        others = {} if self.other is None else self.other.init(start)
        after_alarm = {OTHER + name: value for name, value in others.items()}
        return joined(self.first.init(start), self.evidence.start(), after_alarm)

    def decide(self, state: Named, drawn: Named) -> dict[str, Liftable]:
        """Decisions of the round."""
        other = self.other
        if other is None:
            return self.first.decide(_firsts(state), drawn)
        own = _others(state)
        made = self._either(
            state, lambda: self.first.decide(_firsts(state), drawn), lambda: other.decide(own, _drawn(drawn))
        )
        return dict(made)

    def problem(self, state: Named, seen: Named, drawn: Named) -> Problem:
        """Problem of a round with these streams, for what is kept beside both rules."""
        return self.first.problem(_firsts(state), seen, drawn)

    def own(self, state: Named) -> State:
        """State of the first rule."""
        return self.first.own(_firsts(state))

    scales = None
    """Units of what is chosen: none that both rules share."""

    def chosen(self, p: Problem, state: Named) -> Point:
        """Decision of the round of `p`, in the user's units."""
        return self.decided(p, state)

    def decided(self, p: Problem, state: Named) -> Point:
        """Decision of the round of `p`, in the user's units."""
        made = self.decide(state, p.drawn)
        return self.first.layout.point({name: self.t.lift(value) for name, value in made.items()})

    def update(self, p: Problem, state: Named) -> dict[str, Liftable]:
        """Fields after the round of `p`."""
        other, seen, drawn = self.other, p.seen, p.drawn
        if other is None:
            kept = {name: state[name] for name in self.evidence.names}
            evidence = self._either(state, lambda: self.evidence.after(seen, state), lambda: kept)
            return self.first.update(p, _firsts(state)) | dict(evidence)
        following, own = state["round"] + 1, _others(state)
        return dict(
            self._either(
                state,
                lambda: self._watching(other, state, following, seen, drawn),
                lambda: self._after_alarm(other, state, own, seen, drawn),
            )
        )

    def _watching(
        self, other: PlayedRule, state: Named, following: Value, seen: Named, drawn: Named
    ) -> Mapping[str, Liftable]:
        """Fields after a round before an alarm, in which there may be one: then the other rule begins."""
        t, own = self.t, _firsts(state)
        after = {n: t.lift(v) for n, v in self.first.update(self.first.problem(own, seen, drawn), own).items()}
        evidence = self.evidence.after(seen, state)
        names = [name for name in state if name.startswith(OTHER)]
        carried = [name for _, name in self.first.previous]

        def anew() -> list[Value]:
            reached = self._start(other, {**after, "round": following}, own, drawn)
            made = other.init(reached) | {name: after[name] for name in carried}
            return [t.lift(made[name.removeprefix(OTHER)]) for name in names]

        t.note("on an alarm the other rule begins, from the decision reached")
        others = t.if_(evidence[ALARM] > 0, anew, lambda: [state[name] for name in names])
        return {**after, **evidence, **dict(zip(names, others))}

    def _start(self, other: PlayedRule, following: Named, before: Named, drawn: Named) -> dict[str, Value]:
        """First decisions of the other rule: those that the first one would take next, or took last where it waits for contexts."""
        t = self.t
        if self.centred:
            return {b.name: t.constant(b.domain.centre(), b.name) for b in other.spec.canonical.blocks}
        made = self.first.decide(following if self.first.prepare is None else before, drawn)
        return {name: t.lift(value) for name, value in made.items()}

    def _after_alarm(
        self, other: PlayedRule, state: Named, own: Named, seen: Named, drawn: Named
    ) -> Mapping[str, Liftable]:
        """Fields after a round of the other rule; what it leaves to the next round stands where the first one has it, too."""
        carried = [name for _, name in self.first.previous]
        after = other.update(other.problem(own, seen, _drawn(drawn)), own)
        still = {name: value for name, value in state.items() if name != "round" and not name.startswith(OTHER)}
        return {
            **{name: value for name, value in still.items() if name not in self.first.layout.beside},
            **{name: after[name] for name in carried},
            **{OTHER + name: value for name, value in after.items()},
        }

    @property
    def prepare(self) -> Callable[[Named, Named], Mapping[str, Liftable]] | None:
        """State once the context of a round is known; None where no decision hangs on it."""
        first, other = self.first.prepare, None if self.other is None else self.other.prepare
        if first is None and other is None:
            return None

        def prepared(state: Named, known: Named) -> Mapping[str, Liftable]:
            own = {} if self.other is None else _others(state)

            def as_first() -> Mapping[str, Liftable]:
                return state if first is None else {**state, **first(_firsts(state), known)}

            def as_other() -> Mapping[str, Liftable]:
                if other is None:
                    return state
                made = other(own, known)
                return {**state, **{OTHER + name: v for name, v in made.items() if name != "round"}}

            if self.other is None:
                return as_first()
            return dict(self._either(state, as_first, as_other))

        return prepared

    def _either(
        self, state: Named, before: Callable[[], Mapping[str, Liftable]], after: Callable[[], Mapping[str, Liftable]]
    ) -> Mapping[str, Liftable]:
        """Values by name of the rule that is in charge: `before` an alarm or `after` it."""
        t, names = self.t, list[str]()

        def watching() -> list[Value]:
            made = before()
            names[:] = made
            return [t.lift(made[name]) for name in names]

        def alarmed() -> list[Value]:
            made = after()
            return [t.lift(made[name]) for name in names]

        watched = t.eq(state[ALARM], 0)
        values = t.if_(watched, watching, alarmed)
        return dict(zip(names, values))


def _firsts(state: Named) -> dict[str, Value]:
    """Fields of the first rule."""
    return {name: value for name, value in state.items() if name not in SYMBOLS and not name.startswith(OTHER)}


def _others(state: Named) -> dict[str, Value]:
    """Fields of the rule after an alarm, which counts its rounds from there."""
    own = {name.removeprefix(OTHER): value for name, value in state.items() if name.startswith(OTHER)}
    return {"round": state["round"] - state[ALARM], **own}


def _drawn(drawn: Named) -> dict[str, Value]:
    """Random arrays of the rule after an alarm."""
    return {name.removeprefix(OTHER): value for name, value in drawn.items() if name.startswith(OTHER)}
