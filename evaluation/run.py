"""Drive a plan's learner over data, round by round, and keep the trace."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event
from time import perf_counter
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np

from oco.backends.arguments import is_integer
from oco.backends.choose import BackendChoice
from oco.backends.learner import Learner
from oco.backends.notifying import OnRound, OnWarning
from oco.backends.opening import open_journal
from oco.backends.play import can_play, play
from oco.compiler.problem.canonical import Canonical
from oco.compiler.prover.facts import Facts
from oco.compiler.prover.ledger import plain
from oco.compiler.selection.explain import formula_text
from oco.compiler.theory.theorems import Guarantee, Situation
from oco.dsl.diagnostics import fail
from oco.dsl.logs import logger
from oco.dsl.statements import Feedback
from oco.dsl.telemetry import span
from oco.evaluation.comparators import ComparatorBudget
from oco.evaluation.concurrently import PlayedSoFar, Step, Stopped, cores, side_by_side
from oco.evaluation.data import Data, from_rounds, load_data
from oco.evaluation.gathering import can_gather, gathered, of_the_data, taken
from oco.evaluation.measured_run import Curves, MeasuredRun, Origin, Promise
from oco.evaluation.missing import RepairedRounds
from oco.evaluation.monitored import Refutation, monitor
from oco.evaluation.recorder import Keep, Recorder, data_of, feedback_of
from oco.evaluation.revealed import Revealed
from oco.evaluation.tables import readable

Array = np.ndarray[Any, Any]
log = logger(__name__)
Progress = Callable[[int, float, float], None]
TELL_EVERY = 1.0  # seconds after which progress is reported however slow the rounds are


class Calls(NamedTuple):
    """Functions that a run calls: see `run`."""

    progress: Progress | None
    on_round: OnRound | None
    on_warning: OnWarning | None

    def until(self, stop: Event, more: Callable[[], None]) -> Calls:
        """Calls of which the one for progress raises `Stopped` once an event is set, and else calls `more` too."""

        def report(round: int, loss: float, violation: float) -> None:
            if stop.is_set():
                raise Stopped
            more()
            if self.progress is not None:
                self.progress(round, loss, violation)

        return self._replace(progress=report)


class RunnablePlan(Protocol):
    """Interface of a plan that can run: the problem, the choices, the guarantee, and learners."""

    @property
    def canonical(self) -> Canonical:
        """Canonical problem of the model."""

    @property
    def facts(self) -> Facts:
        """Facts proved of the problem."""

    @property
    def algorithm(self) -> str:
        """Name of the algorithm."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings by name."""

    @property
    def guarantee(self) -> Guarantee | None:
        """Guarantee at the plan's horizon; None where there is none."""

    @property
    def withheld(self) -> str:
        """Reason why there is none although the hypotheses of a theorem hold; "" elsewhere."""

    @property
    def kept_equalities(self) -> tuple[int, ...]:
        """Indices of the equalities that have a multiplier."""

    @property
    def recipe(self) -> Mapping[str, Any]:
        """JSON values from which the same plan is made again."""

    def backend_for(self, rounds: int | None, backend: str | None = None) -> BackendChoice:
        """Backend for a run of so
        many rounds.
        """

    def learner(
        self,
        seed: int = 0,
        start: Any = None,
        draws: Mapping[str, Any] | None = None,
        backend: str | None = None,
    ) -> Learner:
        """Learner before its first round."""

    def player(self, rounds: int, backend: str, **options: Any) -> Learner | None:
        """Learner for whole runs of so many rounds that is given the streams of a model with less feedback; None where there is none."""


def run(
    plan: RunnablePlan,
    data: Any = None,
    rounds: int | None = None,
    seed: int = 0,
    start: Any = None,
    draws: Mapping[str, Any] | None = None,
    backend: str | None = None,
    keep: Keep = "all",
    progress: Progress | None = None,
    *,
    mapping: Mapping[str, str | Sequence[str]] | None = None,
    on_missing: str = "error",
    journal: str | Path | None = None,
    budget: ComparatorBudget | None = None,
    on_round: OnRound | None = None,
    on_warning: OnWarning | None = None,
    meanwhile: Sequence[Step] = (),
) -> MeasuredRun:
    """Run the plan's learner as it is: its settings are those of the plan's horizon, however many rounds there are.

    data      a path, a dict of arrays with the round first, a data frame, an iterator of rounds, or None to draw
    rounds    number of rounds to run; all by default
    seed      of the random draws: the streams without data, and the algorithm's own random numbers
    keep      decisions to keep: "all", "last", every n-th (a number), or names of decisions
    progress  called now and then with the round, the sum of the losses and the sum of the hard violations so far
    journal   a folder: rounds are recorded there before they count, and those already recorded must be the same
    budget    limits of seconds and bytes for the trace's comparators
    on_round  called with the feedback of each round; `on_warning` with the text of each warning
    meanwhile  steps that need the data, or follow the rounds: taken while those are played in C, where a core is free; else left out
    """
    loaded, given = _rounds_of(plan.canonical, data, rounds, seed, mapping, on_missing)
    feed = taken(iter(given), rounds) if loaded is None else iter(loaded)
    rounds = rounds if loaded is None else loaded.rounds
    notes = () if loaded is None else (*loaded.notes, *_planned_otherwise(plan.canonical.horizon, loaded.rounds))
    target = plan.backend_for(plan.canonical.horizon if rounds is None else rounds, backend)
    own: dict[str, Any] = {"seed": seed, "start": start, "draws": draws}
    made, turns = partial(plan.learner, **own), plan.canonical.delay + 1
    calls, full = Calls(progress, on_round, on_warning), plan.canonical.feedback is Feedback.FULL
    by_rounds = journal is not None or (on_round is not None and not full)
    player = None if loaded is None or by_rounds else plan.player(loaded.rounds, target.name, **own)
    learner = player or _opened(lambda recorded: made(backend=target.following(recorded).name), journal, turns)
    recorder = Recorder(plan.canonical, learner, rounds, keep, collect=loaded is None)
    log.info("%s: %s runs in %s", plan.canonical.name, plan.algorithm, learner.compiled.backend)
    streams, against = loaded if player or full else None, Refutation(learner.compiled.backend)
    beside = _beside(plan.canonical, streams, against, meanwhile)
    with span("oco.run", {"oco.model": plan.canonical.name, "oco.algorithm": plan.algorithm}), learner:
        _go_through(plan.canonical, learner, streams, feed, recorder, calls, beside)
    if loaded is None:
        loaded = Data(plan.canonical, recorder.count, MappingProxyType(recorder.streams()), seed=seed)
    loaded, record = loaded.joined(recorder.carried()), recorder.record()
    origin = Origin(
        seed, plan.recipe, *_given(plan.canonical, start, draws), learner.compiled.backend, KnownFacts(plan.facts)
    )
    monitor(learner, record, loaded, against)
    message = {"notes": (*notes, *given.notes, *target.notes, *recorder.notes), "warnings": tuple(learner.warnings)}
    proof = learner.certificate() if learner.contract.terms is not None else None
    parts: dict[str, Any] = {"origin": origin, "budget": budget, "certificate": proof, **message}
    return MeasuredRun(plan.canonical, loaded, record, promise_of(plan, recorder.count), **parts)


def _beside(
    problem: Canonical, streams: Data | None, against: Refutation, meanwhile: Sequence[Step]
) -> tuple[Step, ...]:
    """Steps to take beside the rounds; none where their data are not all known before."""
    return () if not meanwhile or streams is None or problem.carried else (lambda _: against.of(streams), *meanwhile)


def _rounds_of(
    problem: Canonical,
    data: Any,
    rounds: int | None,
    seed: int,
    mapping: Mapping[str, str | Sequence[str]] | None,
    on_missing: str,
) -> tuple[Data | None, RepairedRounds]:
    """Data as arrays, or those of an iterator as they come. Raises OCO826 for a number of rounds that is none."""
    if rounds is not None and not (is_integer(rounds) and rounds > 0):
        raise fail("OCO826", f"a number of rounds is an integer from 1, not {rounds!r}")
    if _is_iterator(data):
        return None, RepairedRounds(from_rounds(problem, data, seed, mapping), on_missing)
    loaded = load_data(problem, data, mapping=mapping, seed=seed, rounds=rounds, on_missing=on_missing)
    return loaded, RepairedRounds((), on_missing)


def _opened(made: Callable[[str | None], Learner], journal: str | Path | None, turns: int) -> Learner:
    """Fresh learner, or that of a journal at its first round; `made` takes the name of the journal's backend."""
    return made(None) if journal is None else open_journal(made, journal, rewind=True, turns=turns)


class KnownFacts(Mapping[str, Any]):
    """Value and status of every fact, as JSON values that are made when they are asked for."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def __getitem__(self, key: str) -> dict[str, Any]:
        fact = self._facts[key]
        return {"value": plain(fact.value), "status": str(fact.status)}

    def __iter__(self) -> Iterator[str]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)


def _given(
    problem: Canonical, start: Any, draws: Mapping[str, Any] | None
) -> tuple[dict[str, Array], dict[str, Array]]:
    """First decisions and draws that were given, by name."""
    parts = start if isinstance(start, Mapping) else {b.name: start for b in problem.blocks}
    first = {} if start is None else {b.name: np.asarray(parts[b.name]) for b in problem.blocks if b.name in parts}
    return first, {name: np.asarray(array) for name, array in (draws or {}).items()}


def _go_through(
    problem: Canonical,
    learner: Learner,
    streams: Data | None,
    feed: Iterable[Mapping[str, Any]],
    recorder: Recorder,
    calls: Calls,
    beside: Sequence[Step] = (),
) -> None:
    """Play all rounds: many at once where their streams are known to the learner, but for draws that `on_round` is to have; `beside`
    them, on a core that is free, what is no more than the data.
    """
    explored = calls.on_round is not None and bool(learner.compiled.program.draws)
    alone = streams is None and recorder.collects and calls.on_round is None and problem.feedback is Feedback.FULL
    if streams is not None and not explored and can_play(learner):
        learner.notify(on_warning=calls.on_warning)
        if beside and cores() > 1:
            played = PlayedSoFar(recorder)
            side_by_side(lambda stop: _play(learner, streams, recorder, calls.until(stop, played.more)), beside, played)
        else:
            _play(learner, streams, recorder, calls)
    elif alone and can_gather(problem, learner):
        learner.notify(on_warning=calls.on_warning)
        _play_as_they_come(problem, learner, feed, recorder, calls)
    else:
        learner.notify(calls.on_round, calls.on_warning)
        _drive(problem, learner, feed, recorder, calls.progress)


def _play(learner: Learner, data: Data, recorder: Recorder, calls: Calls) -> None:
    """Run many rounds in one call of the compiled program; `on_round` is called for each of them after the call."""
    began, before = perf_counter(), recorder.count
    wants = partial(recorder.wants, before) if calls.on_round is None else lambda start, stop: True
    left, first = [name for name, _ in learner.compiled.program.previous], learner.round
    for played in play(learner, data.read, data.rounds, recorder.duals, wants, left):
        recorder.add_block(played)
        if left and played.decisions:  # not all of what is left is in the trace, where gradients are looked at later
            learner.look_back(played.first, [*played.decisions.values()], data_of(played, data, first))
        if calls.on_round is not None:
            for feedback in feedback_of(played, data_of(played, data, first)):
                calls.on_round(feedback)
        if calls.progress is not None:
            calls.progress(recorder.count, recorder.loss_sum, recorder.violation_sum)
    recorder.seconds += perf_counter() - began


def _play_as_they_come(
    problem: Canonical, learner: Learner, feed: Iterable[Mapping[str, Any]], recorder: Recorder, calls: Calls
) -> None:
    """Run the rounds of an iterator, as many in a call as have come; those that are no arrays of their streams one by one."""
    for part in gathered(problem, learner, feed):
        if not isinstance(part, Data):
            _drive(problem, learner, part, recorder, calls.progress)
            continue
        recorder.collect(part.given)
        with of_the_data(learner):
            _play(learner, part, recorder, calls)
    if not recorder.count:
        raise fail("OCO826", "the data has no rounds")


def _drive(
    problem: Canonical,
    learner: Learner,
    feed: Iterable[Mapping[str, Any]],
    recorder: Recorder,
    progress: Progress | None,
) -> None:
    """Loop over the rounds: decide, reveal, observe, record; the feedback of a round comes after as many as the delay has."""
    reveal = None if problem.feedback is Feedback.FULL else Revealed(problem)
    open_ = deque[tuple[int, Any, Any, Mapping[str, Any]]]()

    def over() -> None:
        round, decision, second, values = open_.popleft()
        carried: Mapping[str, Array] = {}
        if reveal is None:
            feedback = _observed(learner, round, values)
            loss, constraints, equalities = feedback.loss, feedback.constraints, feedback.equalities
            carried = feedback.values if problem.carried else {}
        else:
            loss, constraints, equalities, seen = reveal(decision, values, round, second)
            learner.observe(**seen, round=round)
        recorder.add(decision, loss, constraints, equalities, values, carried)

    every = 1 if recorder.expected is None else max(1, recorder.expected // 200)
    began = shown = perf_counter()
    for values in feed:
        now = learner.round
        decision = learner.decide(**{name: values[name] for name in learner.contexts.names})
        second = learner.second_point() if problem.feedback is Feedback.TWO_POINT else None
        open_.append((now, decision, second, values))
        if len(open_) > problem.delay:
            over()
        if progress is not None and (recorder.count % every == 0 or perf_counter() > shown + TELL_EVERY):
            progress(recorder.count, recorder.loss_sum, recorder.violation_sum)
            shown = perf_counter()
    while open_:
        over()
    recorder.seconds += perf_counter() - began
    if not recorder.count:
        raise fail("OCO826", "the data has no rounds")


def _observed(learner: Learner, round: int, values: Mapping[str, Any]) -> Any:
    """Result of observing a round; where the learner refuses the data, the error names the round."""
    with of_the_data(learner, round):
        return learner.observe(**values, round=round)


def _is_iterator(data: Any) -> bool:
    return not isinstance(data, Data) and not readable(data) and isinstance(data, Iterable)


def _planned_otherwise(horizon: int | None, rounds: int) -> tuple[str, ...]:
    """Note where the plan is for another number of rounds."""
    if horizon is None or horizon == rounds:
        return ()
    there = "there is 1 round" if rounds == 1 else f"there are {rounds} rounds"
    return (f"{there} and the plan is for {horizon}; `oco.compile(model, data=...)` plans for those of the data",)


def promise_of(plan: RunnablePlan, rounds: int) -> Promise:
    """Guarantee of a plan for its first `rounds` rounds, as plain arrays and words."""
    guarantee = plan.guarantee
    settings = {name: formula_text(s.formula) for name, s in plan.settings.items()}
    values = {name: s.value for name, s in plan.settings.items() if s.value is not None}
    labels = plan.canonical.equality_names
    multiplied = (*plan.canonical.learned.constraint_names, *(labels[i] for i in plan.kept_equalities))
    scales = Situation(plan.canonical, plan.facts, plan.canonical.horizon).constraint_scales
    promise = Promise(plan.algorithm, settings, scales=scales, values=values, multiplied=multiplied)
    if guarantee is None:
        return replace(promise, withheld=plan.withheld)
    bounds = {
        "regret": guarantee.regret_bound,
        "violation": guarantee.violation_bound,
        "equality": guarantee.equality_bound,
    }
    present = {name: bound for name, bound in bounds.items() if bound is not None}
    horizon = guarantee.horizon or rounds
    curves = Curves({name: b for name, b in present.items() if b.formula}, rounds, horizon)
    vacuous = tuple(name for name, b in present.items() if b.vacuous(horizon))
    rates = {name: b.rate for name, b in present.items()}
    measures = {name: b.measure for name, b in present.items()}
    promise = replace(promise, theorem=guarantee.theorem, conditions=guarantee.conditions)
    trivial = {name: most for name, b in present.items() if (most := b.trivial_total(rounds)) is not None}
    return replace(promise, curves=curves, rates=rates, vacuous=vacuous, measures=measures, trivial=trivial)
