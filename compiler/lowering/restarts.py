"""Unknown horizons: a method that needs T, begun anew in epochs of T_0, 2 T_0, 4 T_0, ... rounds, with the settings of each epoch's T.

An epoch of T rounds begins after T - T_0 rounds, so that the state carries T alone. Regret against one comparator, soft violation (a
positive part of a sum) and hard violation are at most the sums of what they are in the epochs, so each bound is the sum of the theorem's
bounds; a last epoch that is not over counts as far as it goes. Rates T^a log^b T with a > 0 stay, those with a = 0 gain a logarithm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from oco.compiler.lowering.points import Point, Structured, if_over
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import Rule, State, array, joined
from oco.compiler.theory.guarantees import Bound, Floats, Guarantee, Quantity, exponent_of
from oco.compiler.theory.schedule import Rounds
from oco.compiler.theory.settings import Setting
from oco.compiler.theory.theorems import Objection, Restart, Situation, Theorem
from oco.dsl.diagnostics import OcoError, fail

EPOCH = "T"
"""The state variable with the length of this epoch."""
VERY_LONG = 2**40
LONGEST_FIRST = 2**12
"""A first epoch of more rounds than this is no answer to an unknown horizon."""


class Restarted:
    """Any rule, from the decision reached (or the domain's centre) with the settings of a horizon twice as long, epoch by epoch."""

    def __init__(self, rule: Rule, first: int, restart: Restart) -> None:
        self.rule, self.first, self.restart = rule, first, restart

    def init(self, p: Problem, start: Point) -> State:
        """State of the first epoch, with its horizon."""
        T = p.tracer.lift(float(self.first))
        return joined({EPOCH: T}, self.rule.init(p.in_epoch(T, self.first), start))

    def decide(self, p: Problem, state: State) -> Point:
        """Decision of the rule in its epoch."""
        return self.rule.decide(p.in_epoch(array(state, EPOCH), self.first), _without(state))

    def update(self, p: Problem, state: State) -> State:
        """State after the round; behind the last round of an epoch, that of a new one twice as long."""
        t, T = p.tracer, array(state, EPOCH)
        epoch = p.in_epoch(T, self.first)
        p.note("after the last round of an epoch the method begins anew, for twice as many rounds")
        ends = t.name("ends", epoch.t >= T)
        after = self.rule.update(epoch, _without(state))
        longer = p.in_epoch(2.0 * T, self.first)

        def anew() -> tuple[Structured, ...]:
            start = p.centre() if self.restart is Restart.FROM_CENTRE else self.rule.decide(epoch, after)
            begun = self.rule.init(longer, start)
            return tuple(begun[name] for name in after)

        result = if_over(t, ends, anew, lambda: tuple(after.values()))
        return {EPOCH: t.where(ends, 2.0 * T, T), **dict(zip(after, result))}


def _without(state: State) -> State:
    return {name: value for name, value in state.items() if name != EPOCH}


# Theorems.


def needs_horizon(theorem: Theorem) -> bool:
    """True where a hypothesis of the theorem asks for the number of rounds."""
    return any(h.of_horizon for h in theorem.hypotheses)


def restarted(theorem: Theorem) -> Theorem:
    """The theorem of the restarted method: the same but for the horizon, which it need not know."""
    return theorem if theorem.restart is Restart.NEVER or not needs_horizon(theorem) else in_epochs(theorem)


def in_epochs(theorem: Theorem, first: int | None = None) -> Theorem:
    """Theorem of the method begun anew in epochs of T_0, 2 T_0, ... rounds; `first` is T_0 where it is given."""
    return replace(
        theorem,
        name=f"{theorem.name}, restarted",
        hypotheses=tuple(h for h in theorem.hypotheses if not h.of_horizon),
        guarantee=lambda s, settings: restarted_guarantee(theorem, s, settings, first),
        rates={measure: restarted_rate(rate) for measure, rate in theorem.rates.items()},
        checks=lambda s, settings: _checks(theorem, s, settings, first or LONGEST_FIRST),
        free=(),
        step_length=None,
        restarts=theorem,
        first_epoch=first,
    )


def first_epoch(theorem: Theorem, s: Situation, settings: Mapping[str, Setting]) -> int:
    """T_0: the least power of two from which on the theorem's hypotheses and what it asks of its settings hold.

    Raises OcoError where they ask for more rounds than a first epoch should have.
    """
    T = LONGEST_FIRST
    for objection in _objections_of_length(theorem, replace(s, horizon=T)):
        raise fail("OCO706", f"with a first epoch of {T} rounds {objection.reason}", None, objection.fix)
    while T > 1 and _holds(theorem, replace(s, horizon=T // 2), settings):
        T //= 2
    return T


def _holds(theorem: Theorem, s: Situation, settings: Mapping[str, Setting]) -> bool:
    try:
        return not _objections_of_length(theorem, s) and not theorem.checks(s, settings)
    except (OcoError, ZeroDivisionError, OverflowError):
        return False


def _objections_of_length(theorem: Theorem, s: Situation) -> list[Objection]:
    """Objections to a horizon of this length that a very long one does not meet."""
    results = [(h, o) for h in theorem.hypotheses if not h.of_horizon and isinstance(o := h.test(s), Objection)]
    return [o for h, o in results if not isinstance(h.test(replace(s, horizon=VERY_LONG)), Objection)]


def _checks(theorem: Theorem, s: Situation, settings: Mapping[str, Setting], length: int) -> list[str]:
    return theorem.checks(replace(s, horizon=length), settings)


def restarted_guarantee(
    theorem: Theorem, s: Situation, settings: Mapping[str, Setting], given: int | None = None
) -> Guarantee:
    """The sum over the epochs of the theorem's bounds; `given` is the length of the first where it is known."""
    first = first_epoch(theorem, s, settings) if given is None else given
    epochs: dict[int, Guarantee] = {}

    def epoch(T: int) -> Guarantee:
        if T not in epochs:
            epochs[T] = theorem.guarantee(replace(s, horizon=T), settings)
        return epochs[T]

    one = epoch(LONGEST_FIRST if given is None else given)

    def summed(which: int) -> Bound:
        bound = one.bounds[which]

        def total(rounds: Rounds, horizon: int) -> Floats:
            return _summed(lambda T: epoch(T).bounds[which], bound.trivial, first, rounds)

        known = Quantity("epochs", r"\sum_m B(2^m T_0)", "the bounds of the epochs, summed", total)
        return replace(
            bound,
            rate=restarted_rate(bound.rate),
            formula="epochs" if bound.formula else "",
            quantities=(known,) if bound.formula else (),
        )

    bounds = [summed(k) for k in range(len(one.bounds))]
    by_measure = iter(bounds)
    return Guarantee(
        f"{one.theorem}, {schedule_words(first)}",
        None,
        next(by_measure),
        None if one.violation_bound is None else next(by_measure),
        None if one.equality_bound is None else next(by_measure),
        one.remarks,
        one.from_centre,
    )


def schedule_words(first: int) -> str:
    """Sequence of horizons as text: "restarted with T = 1, 2, 4, ..."."""
    return f"restarted with T = {first}, {2 * first}, {4 * first}, ..."


def _summed(bound: Callable[[int], Bound], trivial: float | None, first: int, rounds: Rounds) -> Floats:
    """The bounds of all epochs up to each of these rounds; in each epoch the trivial one where that is smaller."""
    parts: list[Floats] = []
    T, done, before = first, 0, 0.0
    while done < rounds.n:
        length = min(T, rounds.n - done)
        own = rounds.within(done, length)
        result = bound(T).after(own, T)
        least = np.full(len(own.last), np.inf) if trivial is None else trivial * own.last
        least = least if result is None else np.fmin(result, least)
        parts.append(before + least[np.isin(own.last + done, rounds.last)])
        before, done, T = before + float(least[-1]), done + length, 2 * T
    return np.concatenate(parts)


def restarted_rate(rate: str) -> str:
    """The sum of a rate over T = 1, 2, 4, ...: itself, times log(T) where it grows like no power of T."""
    if exponent_of(rate) > 0:
        return rate
    return "log(T)" if rate == "1" else f"({rate}) * log(T)"
