"""Fleet: many independent learners of one plan, stepped together. Arrays have the learner first."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from oco.backends.arguments import first_decision, wrong_input
from oco.backends.base import Compiled
from oco.backends.certified import certificate_of, conditions_of
from oco.backends.contract import Contract
from oco.backends.fleet_file import SavedFleet, write_fleet
from oco.backends.identity import model_hash, plan_hash
from oco.backends.learner import Learner
from oco.backends.named import learners_first, named
from oco.backends.ownership import Owned
from oco.backends.past_horizon import epochs_after, is_continued
from oco.backends.python.intake import Intake, StreamError
from oco.backends.python.streams import Stream
from oco.backends.random_arrays import set_states, states_of
from oco.backends.saved import check_identity
from oco.compiler.certificates.certificate import Certificate
from oco.compiler.evidence.watched_streams import ALARM, REFUTED
from oco.compiler.evidence.wealth import Alarm
from oco.compiler.ir.program import DType, Type
from oco.compiler.ir.verifier import KINDS
from oco.compiler.theory.conditions import ConditionLine
from oco.dsl.calls import checked_call
from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.labels import Axes
from oco.dsl.records import dataclass

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class FleetFeedback:
    """Results of a round with the learner first: losses (n,), values of g (n, N) and of h (n, M)."""

    round: int
    loss: Array
    constraints: Array
    equalities: Array

    @property
    def violation(self) -> Array:
        """Violation [g]_+, then |h|, shape (n, N + M)."""
        return np.concatenate([np.maximum(self.constraints, 0), np.abs(self.equalities)], axis=1)


class Fleet(Owned):
    """Fleet of `size` learners. `decide()` gives their decisions, `observe(...)` takes their data; wrong data of one
    changes none.

    Threads may use it in turns, as a learner. Interruptions leave all learners in one round.

    start  the first decision: one for all, or one for each (with the learner first)
    seeds  of the algorithm's own random numbers, one for each learner; by default 0, 1, 2, ...
    workers  threads that share the learners where they are compiled; here, one thread takes them in turn
    """

    _known_as = "a fleet"
    kind = "fleet"
    writes_all = False
    """True where a round writes all of the state anew, and not what changes of it."""

    def __init__(
        self,
        compiled: Compiled,
        contract: Contract,
        size: int,
        *,
        start: Any = None,
        seeds: Sequence[int] | None = None,
        workers: int = 1,
        timeout: float | None = 0.0,
    ) -> None:
        super().__init__(timeout)
        self.size = int(size)
        self.compiled = compiled
        self.contract = contract
        self._inputs = {f.name: f.type for f in compiled.program.revealed}
        self._context = compiled.program.context
        self._make(self._starts(start), range(size) if seeds is None else list(seeds))

    def __repr__(self) -> str:
        program, name = self.compiled.program, self.compiled.backend
        return f"Fleet({program.name}, {self.size} learners, backend={name!r}, round={self.round})"

    def _starts(self, start: Any) -> dict[str, Array]:
        """First decisions that are given, by name, the learner first: one for all, or one for each."""
        given = {} if start is None else dict(start) if isinstance(start, Mapping) else {self._names[0]: start}
        if unknown := [name for name in given if name not in self._names]:
            raise fail("OCO846", f"{unknown[0]!r} is no decision of the model: there are {', '.join(self._names)}")
        results: dict[str, Array] = {}
        for field in self.compiled.program.decision:
            if field.name not in given:
                continue
            value = first_decision(field.name, given[field.name])
            if value.shape not in (field.type.shape, (self.size, *field.type.shape)):
                wanted = f"{field.type.shape}, or {(self.size, *field.type.shape)} with the learner first"
                raise fail("OCO852", f"the start of {field.name} has the shape {value.shape}, not {wanted}")
            results[field.name] = value[None] if value.shape == field.type.shape else value
        return results

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.compiled.program.decision)

    def _make(self, starts: Mapping[str, Array], seeds: Sequence[Any]) -> None:
        firsts = self._first_of(starts, self.size)
        self._learners = [
            Learner(self.compiled, self.contract, seed=seed, start=start or None) for seed, start in zip(seeds, firsts)
        ]

    def _first_of(self, starts: Mapping[str, Array], count: int) -> Iterator[dict[str, Array]]:
        """First decisions of so many learners, from those of one or of each."""
        return ({name: rows[min(k, len(rows) - 1)] for name, rows in starts.items()} for k in range(count))

    @property
    def round(self) -> int:
        """Number of the round that `decide` answers now, from 1."""
        return self._learners[0].round

    @property
    def values(self) -> dict[str, Array]:
        """State of all learners, by the paper's symbols."""
        with self._owned():
            return self._kept()

    @property
    def conditions(self) -> list[tuple[ConditionLine, ...]]:
        """Conditions of the guarantee for each learner, as those of `Learner.conditions`."""
        return [conditions_of(self.compiled, self.contract.watched, state) for state in self._states()]

    def certificates(self) -> list[Certificate]:
        """Certificate of each learner. Raises OCO735 where the plan keeps no sums for it."""
        return [certificate_of(self.compiled, self.contract.terms, state) for state in self._states()]

    def alarms(self) -> list[Alarm | None]:
        """Alarm of each learner, as `Learner.alarm`."""
        terms = self.contract.alert
        if terms is None:
            return [None] * self.size
        since, refuted = self.value(ALARM), self.value(REFUTED)
        return [terms.alarm({ALARM: since[k], REFUTED: refuted[k]}) for k in range(self.size)]

    def _states(self) -> Iterator[tuple[Any, ...]]:
        """State of each learner, in the program's order."""
        values = self.values
        fields = [f.name for f in self.compiled.program.state]
        return (tuple(values[name][k] for name in fields) for k in range(self.size))

    @checked_call
    def decide(self, /, **context: Any) -> Any:
        """Decisions of this round, (n, *shape); a dict of them if the model has several.

        context  values of the model's contexts, arrays with the learner first
        """
        with self._owned():
            self._pass_horizon()
            self._learn_context(context)
            decided = self._decisions()
            self._answered = self.round
        return self._given_out(decided)

    def _given_out(self, decided: Sequence[Array]) -> Any:
        """Decisions of all learners as they are given out: an array, or a dict of them by name."""
        results = named(dict(zip(self._names, decided)), self._axes)
        return results[self._names[0]] if len(decided) == 1 else results

    def second_point(self) -> Any:
        """Second points of a round of `feedback two_point`, (n, *shape), as that of `Learner.second_point`. Raises OCO841."""
        if "second_loss" not in self._inputs:
            raise fail("OCO841", "this model's feedback has no second point", hint="write `feedback two_point`")
        with self._owned():
            return self._given_out(self._second_points())

    def skip(self) -> None:
        """Leave this round out, as its data never come: the next decisions are made from the same states."""
        with self._owned():
            self._leave_out()

    # Its life beyond this process.

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all learners to a file, completely or not at all: `oco.restore_fleet` goes on from there bit for bit. Contexts that were
        given for this round are to be given again. Raises OCO903 where it cannot be written; the old file is then unchanged.
        """
        with self._owned():
            write_fleet(self._saved(), path)

    def _saved(self) -> SavedFleet:
        """State of all learners."""
        self._pass_horizon()
        program, contract = self.compiled.program, self.contract
        drawn = self._drawn_now()
        arrays = {f"state.{k}": values for k, values in enumerate(self._unprepared())}
        arrays |= {f"drawn.{k}": values for k, values in enumerate(drawn or ())}
        arrays |= {"random": states_of(self._random_generators())} if program.draws else {}
        about = {
            "size": self.size,
            "model": program.name,
            "backend": self.compiled.backend,
            "model_hash": model_hash(contract),
            "plan_hash": plan_hash(program, contract),
            "recipe": dict(contract.recipe),
            "decided": self._answered == self.round and not self._context,
            "drawn": drawn is not None,
            "skipped": self._left_out,
        }
        return SavedFleet(about, arrays)

    def _restore(self, saved: SavedFleet) -> None:
        """Go on from a saved state. Raises OCO850 where it is not whole, OCO851 where it is of another plan."""
        after = epochs_after(self.compiled, self.contract) if is_continued(saved.about["recipe"]) else None
        if after is not None:
            self._begin_with(*after)
        program = self.compiled.program
        check_identity(saved.about, program, self.contract)
        self._fill(saved.states(program.state))
        if program.draws:
            set_states(self._random_generators(), saved.generators)
        self._set_drawn([*saved.fields("drawn", program.draws).values()] if saved.about["drawn"] else None)
        self._left_out = max(0, int(saved.about["skipped"]))
        self._answered = self.round if saved.about["decided"] is True else 0

    def _begin_with(self, compiled: Compiled, contract: Contract) -> None:
        """Begin anew with another program."""
        self.compiled, self.contract = compiled, contract
        self._make({}, range(self.size))

    def _fill(self, values: Mapping[str, Array]) -> None:
        """Set the states: values by field with the learner first, one for all or one for each."""
        rows = [values[f.name] for f in self.compiled.program.state]
        for k, learner in enumerate(self._learners):
            learner._state = tuple(v[min(k, len(v) - 1)] for v in rows)

    def _unprepared(self) -> list[Array]:
        """States before they were prepared with the contexts of the round, by field, the learner first."""
        return [np.stack(same) for same in zip(*(learner.unprepared for learner in self._learners))]

    def _random_generators(self) -> list[np.random.Generator]:
        return [learner._random for learner in self._learners]

    def _drawn_now(self) -> list[Array] | None:
        """Random arrays of this round, the learner first; None where they are still to be drawn."""
        drawn = [learner.drawn for learner in self._learners]
        return None if any(d is None for d in drawn) else [np.stack(same) for same in zip(*drawn)]

    def _set_drawn(self, drawn: list[Array] | None) -> None:
        for k, learner in enumerate(self._learners):
            learner._drawn = None if drawn is None else (learner.round, tuple(d[k] for d in drawn))

    @property
    def _left_out(self) -> int:
        """Number of rounds that were left out."""
        return self._learners[0].skipped

    @_left_out.setter
    def _left_out(self, rounds: int) -> None:
        for learner in self._learners:
            learner.skipped = rounds

    def value(self, name: str) -> Array:
        """Field of the states of all learners, the learner first."""
        return self._kept()[name]

    def _take_place(self, place: int, count: int) -> None:
        """Take a place, from 0, among `count` fleets in turn, as `Learner._take_place`."""
        for learner in self._learners:
            learner._take_place(place, count)

    def _learn_from(self, other: Fleet) -> None:
        """Take what fleets in turn have in common from the one that observed last, learner by learner."""
        for mine, its in zip(self._learners, other._learners):
            mine._learn_from(its)

    def _follow(self, other: Fleet, newest: Fleet) -> None:
        """Take what a round leaves to the next from the fleet that decided the round before, as `Learner._follow`, learner by learner."""
        for mine, its, last in zip(self._learners, other._learners, newest._learners):
            mine._follow(its, last)

    def _leave_out(self) -> None:
        for learner in self._learners:
            learner.skip()

    @cached_property
    def _axes(self) -> dict[str, Axes]:
        """Names of the entries of decisions and inputs, after the learner."""
        return {name: (None, *axes) for name, axes in self.contract.axes.items() if axes}

    @checked_call
    def observe(self, /, **streams: Any) -> FleetFeedback:
        """Take the data that the round revealed to each learner, arrays with the learner first, and go on.

        Where an index names the entries of a stream, it may come as a dict of names, each with an array with the learner first.
        """
        with self._owned():
            self._pass_horizon()
            given = all(name in streams for name in self._context)
            wanted = {n: made for n, made in self._inputs.items() if given or n not in self._context}
            arrays = self._arrays(streams, wanted)
            self._check_decided()
            return self._stepped(arrays)

    def _pass_horizon(self) -> None:
        """Go over to the epochs after the horizon."""
        for learner in self._learners:
            learner.pass_horizon()
        self.compiled, self.contract = self._learners[0].compiled, self._learners[0].contract

    def _learn_context(self, context: Mapping[str, Any]) -> None:
        """Give each learner its contexts; nothing where none are given."""
        if context:
            arrays = self._arrays(context, {name: self._inputs[name] for name in self._context})
            for k, learner in enumerate(self._learners):
                self._of(k, partial(learner.learn_context, {name: v[k] for name, v in arrays.items()}))

    def _kept(self) -> dict[str, Array]:
        states = [a.values for a in self._learners]
        return {name: np.stack([s[name] for s in states]) for name in states[0]}

    def _decisions(self) -> list[Array]:
        """Decisions of all learners, in the model's order."""
        return self._stacked([self._of(k, a.decide) for k, a in enumerate(self._learners)])

    def _second_points(self) -> list[Array]:
        return self._stacked([self._of(k, a.second_point) for k, a in enumerate(self._learners)])

    def _stacked(self, decided: Sequence[Any]) -> list[Array]:
        """Decisions of all learners, in the model's order, from those of each."""
        each = [decided] if len(self._names) == 1 else [[d[name] for d in decided] for name in self._names]
        return [np.stack(same) for same in each]

    def _arrays(self, streams: Mapping[str, Any], wanted: Mapping[str, Type]) -> dict[str, Array]:
        """Data by stream; names, kinds and shapes are checked here, values where they are used."""
        if set(streams) != set(wanted):
            wrong = sorted(set(streams) ^ set(wanted))
            raise fail("OCO840", f"a fleet takes {', '.join(wanted)}; {', '.join(wrong)} is missing or too many")
        own = self._axes
        return {
            name: self._array(name, learners_first(name, streams[name], own.get(name, ())), made)
            for name, made in wanted.items()
        }

    def _array(self, name: str, given: Any, made: Type) -> Array:
        """Data of a stream, (n, *shape): unchanged where it is an array of the right kind, else converted."""
        shape = (self.size, *made.shape)
        if type(given) is np.ndarray and given.dtype == KINDS[made.dtype] and given.shape == shape:
            return given
        try:
            value: Array = Intake({name: Stream(shape, integer=made.dtype is DType.INT)}).arrays({name: given})[0]
        except StreamError as error:
            raise wrong_input(error, "; the learner comes first") from None
        return value

    def _stepped(self, arrays: Mapping[str, Array]) -> FleetFeedback:
        rows = [{name: v[k] for name, v in arrays.items()} for k in range(self.size)]
        feedbacks = [self._checked(k, a, row) for k, (a, row) in enumerate(zip(self._learners, rows))]
        after = [self._of(k, partial(a.following, f)) for k, (a, f) in enumerate(zip(self._learners, feedbacks))]
        self._complete(feedbacks, after)
        values = [(f.loss, f.constraints, f.equalities) for f in feedbacks]
        loss, g, h = (np.array([w[k] for w in values]) for k in range(3))
        return FleetFeedback(self.round - 1, loss, g, h)

    def _complete(self, feedbacks: Sequence[Any], after: Sequence[tuple[Any, ...]]) -> None:
        """Move all learners to the next round, or none where an interruption comes between them."""
        before = [a._state for a in self._learners]
        try:
            for a, f, state in zip(self._learners, feedbacks, after):
                a.complete(f, state)
        except BaseException:
            for a, state in zip(self._learners, before):
                a._state = state
            raise

    def _checked(self, k: int, learner: Learner, row: Mapping[str, Array]) -> Any:
        return self._of(k, partial(learner.feedback, row))

    def _of(self, k: int, work: Callable[[], Any]) -> Any:
        """Result of one learner's work; its errors name the learner."""
        try:
            return work()
        except OcoError as error:
            raise fail(error.code, f"learner {k}: {error.message}", hint=error.hint) from None
