"""Learner: a running program, fed round by round."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from oco.backends.arguments import (
    by_decision,
    decision_within,
    generator,
    is_integer,
    stream_of,
    wrong_input,
)
from oco.backends.base import Compiled, Recorded
from oco.backends.certified import certificate_of, conditions_of
from oco.backends.contract import Contract
from oco.backends.factors import decisions_of, fields_of, names_of, part_names, points_of
from oco.backends.feedback import Feedback
from oco.backends.known import Contexts
from oco.backends.monitor import Monitor, is_watched
from oco.backends.named import by_position, named
from oco.backends.notifying import Notifying
from oco.backends.out_of_bounds import CHOICES, NOTES, repaired
from oco.backends.past_horizon import Continuing
from oco.backends.portable import Portable, row_of
from oco.backends.python.intake import Intake, NotFinite, StreamError
from oco.backends.random_arrays import Drawing
from oco.backends.turns import Turns
from oco.backends.watching import Watching
from oco.compiler.certificates.certificate import Certificate
from oco.compiler.theory.conditions import ConditionLine
from oco.dsl.calls import checked_call
from oco.dsl.diagnostics import InternalError, fail
from oco.dsl.logs import logger

if TYPE_CHECKING:
    from oco.backends.journal import Journal

Array = np.ndarray[Any, Any]
log = logger(__name__)
MOST_WARNINGS = 100  # warnings that a learner keeps: it may run for months
MOST_OUTSIDE = 50
"""Most listed rounds with data outside the bounds."""


class Learner(Drawing, Continuing, Turns, Watching, Portable, Notifying):
    """Learner that decides round by round: `decide(...)` with the model's contexts by name, then `observe(...)` with the rest.

    Threads may use it in turns; one that comes while another is at work waits `timeout` seconds for its turn, then gets
    OCO853, and the learner is unchanged.

    draws        the algorithm's random arrays by name, rounds first, instead of those from `seed`
    on_out_of_bounds  treatment of data outside the model's bounds: "error", "clip" or "accept"
    warnings     messages for the user: bounds that were broken, rounds beyond the horizon
    """

    def __init__(
        self,
        compiled: Compiled,
        contract: Contract,
        *,
        seed: int = 0,
        start: Any = None,
        draws: Mapping[str, Any] | None = None,
        on_out_of_bounds: str = "error",
        timeout: float | None = 0.0,
    ) -> None:
        if on_out_of_bounds not in CHOICES:
            raise fail("OCO848", f'on_out_of_bounds is "error", "clip" or "accept", not {on_out_of_bounds!r}')
        super().__init__(timeout)
        program = compiled.program
        self.compiled = compiled
        self.contract = contract
        self.on_out_of_bounds = on_out_of_bounds
        self.warnings: list[str] = []
        self.journal: Journal | None = None
        self.monitor = Monitor(contract.constants, self.warn)
        self._names = tuple(f.name for f in program.decision)
        self._number_place = program.number_place
        self._places = {f.name: i for i, f in enumerate(program.state)}
        streams = {f.name: stream_of(f.type.shape, f.type.dtype, contract.ranges.get(f.name)) for f in program.feedback}
        self._take = Intake(streams)
        self.contexts = Contexts(program.context, program.prepare is not None)
        self._wanted = {f.name: f.type.shape for f in program.revealed if f.name not in program.context}
        self._take_context = Intake({n: streams[n] for n in program.context})
        self._random = generator(seed)
        self._draws = None if draws is None else {n: np.asarray(a, dtype=np.float64) for n, a in draws.items()}
        self._state = self._started(start)
        self._decided = self._drawn = None
        self.skipped = 0

    # Where it is.

    @property
    def round(self) -> int:
        """Number of the round that `decide` answers now, from 1."""
        return int(self._state[0])

    @property
    def values(self) -> dict[str, Any]:
        """Copy of the algorithm's state: arrays by the paper's symbols, in the units of the rule."""
        with self._owned():
            return {f.name: np.array(v) for f, v in zip(self.compiled.program.state, self._state)}

    def value(self, name: str) -> Any:
        """Entry of `values` by its symbol, not copied. Raises KeyError for another name."""
        return self._state[self._places[name]]

    def _started(self, start: Any) -> tuple[Any, ...]:
        """First state, from the given first decisions or the plan's."""
        given, names = dict(self.contract.start), names_of(self.compiled.program)
        if isinstance(start, Mapping):
            given |= fields_of(self.compiled.program, start)
        elif start is not None:
            given |= fields_of(self.compiled.program, {names[0]: start})
        if set(given) != set(self._names) or (len(names) > 1 and start is not None and not isinstance(start, Mapping)):
            raise fail("OCO846", f"a start gives an array for each of {', '.join(names)}")
        for name in self.compiled.program.factored:
            parts: list[Any] = [given[f] for f in part_names(name) if f in given]
            if self.contract.domains[name].violation_of_factors(*parts) > 1e-9:
                raise fail("OCO846", f"the start of {name} lies outside {self.contract.domains[name]}")
        within = self.contract.domains.get
        first = [
            decision_within(f.name, given[f.name], f.type.shape, within(f.name)) for f in self.compiled.program.decision
        ]
        if message := self.contract.about_start(dict(zip(self._names, first))):
            self.warn(message)
        self.monitor.start = points_of(self.compiled.program, first)
        with np.errstate(all="ignore"):
            return tuple(self.compiled.init(*first))

    def certificate(self) -> Certificate:
        """Upper bound of the static regret so far, with what proves it. Raises OCO735 where the plan keeps no sums for it."""
        with self._owned():
            return certificate_of(self.compiled, self.contract.terms, self._state)

    @property
    def conditions(self) -> tuple[ConditionLine, ...]:
        """Conditions of the guarantee in the rounds so far: held, failed from some round on, or cannot be told."""
        with self._owned():
            return conditions_of(self.compiled, self.contract.watched, self._state)

    # A round.

    @checked_call
    def decide(self, /, **context: Any) -> Array | Any:  # `Any` stands for the dict: the model says which of the two
        """Decision of this round, an array of its shape; a dict of arrays by name where the model has several.

        context  values of the model's contexts by name; once they are given, a call without them gives the same decision
        """
        with self._owned():
            self.pass_horizon()
            self.learn_context(context)
            result = self.decisions()
            if self.journal is not None:
                self.journal.decide(self.round, result, self.contexts.needed(self.round))
            self._answered = self.round
        return self._named(result)

    def _named(self, result: tuple[Any, ...]) -> Any:
        """Decisions as they are given out: an array, or a dict of them by name."""
        decided = decisions_of(self.compiled.program, result)
        if self.contract.axes:
            decided = named(decided, self.contract.axes)
        return next(iter(decided.values())) if len(decided) == 1 else decided

    def decisions(self) -> tuple[Any, ...]:
        """Decisions of this round in the model's order, computed once. Raises OCO860 where the context is not given."""
        self.learn_context({})
        self.contexts.needed(self.round)
        if self._decided is None or self._decided[0] != self.round:
            with self._naming_overflow("the decision"):
                self._decided = self.round, self._decision()
        return self._decided[1]

    def second_point(self) -> Any:
        """Second point of a round of `feedback two_point`, the decision of the opposite draw, whose loss `observe` takes as `second_loss`.
        Raises OCO841 where the model's feedback has none.
        """
        if "second_loss" not in self._wanted:
            raise fail("OCO841", "this model's feedback has no second point", hint="write `feedback two_point`")
        with self._owned(), self._naming_overflow("the second point"):
            self.decisions()
            result = self.compiled.decide(*self._state, *(-a for a in self._random_arrays()))
        return self._named(result)

    def learn_context(self, given: Mapping[str, Any]) -> None:
        """Take the contexts of this round, checked, and decide with them; nothing where some are still to be given."""
        if not given and (self.contexts.names or not self.contexts.awaited):
            return
        values = self._checked(self._take_context, given) if given else {}
        if self.contexts.is_new(self.round, values):
            before = self._state
            try:
                with self._naming_overflow("the decision"):
                    self._prepare(tuple(values.values()))
                self.contexts.take(self.round, values, before)
                self.decisions()
            except BaseException:
                self._state = before
                self.contexts.drop()
                raise

    def _prepare(self, context: tuple[Any, ...]) -> None:
        if self.compiled.prepare is not None:
            self._state = self.compiled.prepare(*self._state, *context)

    def _decision(self) -> tuple[Any, ...]:
        return self.compiled.decide(*self._state, *self._random_arrays())

    @contextmanager
    def _naming_overflow(self, what: str) -> Iterator[None]:
        """Context in which numbers that are not finite raise an error that names the round; the learner is unchanged."""
        try:
            yield
        except NotFinite as error:
            message = (
                f"in round {self.round} {what} would not be finite: {error.name} overflows; the learner is as before"
            )
            hint = "give settings of another size where they are given by hand, or the streams in other units"
            raise fail("OCO859", message, hint=hint) from None

    @checked_call
    def observe(self, row: Any = None, /, *, round: int | None = None, **streams: Any) -> Feedback:
        """Take the data that the round revealed and go on to the next. Wrong data raises an error, and the learner is
        unchanged.

        row    streams by name in place of arguments: a dict, a Series of pandas, a row of polars as a dict
        round  that these streams belong to: an error where it is not the current one. With a journal, an earlier one
               may be given again with the same streams, and changes nothing.
        """
        with self._owned():
            if round is not None and (not is_integer(round) or round != self.round):
                return self._other_round(round, {**({} if row is None else row_of(row, self._wanted)), **streams})
            feedback = self._given(row, streams)
            self.update(feedback)
        return self._observed(feedback)

    def _given(self, row: Any, streams: Mapping[str, Any]) -> Feedback:
        """Checked data of a round that `decide` has answered, as `observe` takes them."""
        feedback = self.feedback(streams if row is None else {**row_of(row, self._wanted), **streams})
        self._check_decided()
        return feedback

    def _other_round(self, round: int, streams: Mapping[str, Any]) -> Feedback:
        """Feedback of an earlier round, if it is known and its data is the same."""
        if not is_integer(round) or round < 1:
            raise fail("OCO847", f"a round is an integer from 1, not {round!r}")
        if round > self.round:
            missing = f"round {self.round} is" if round == self.round + 1 else f"rounds {self.round} to {round - 1} are"
            raise fail("OCO847", f"this is the feedback of round {round}, and {missing} missing before it")
        if self.journal is None:
            raise fail("OCO847", f"round {round} is over: the learner is in round {self.round}")
        return self.journal.again(self, round, streams)

    def feedback(self, given: Mapping[str, Any]) -> Feedback:
        """Checked data of the round, contexts included. Values of several decisions may come in dicts by decision. Raises OCO840 to
        OCO845."""
        with self._owned():
            self.pass_horizon()
            self.learn_context({name: given[name] for name in self.contexts.names if name in given})
            decisions = self.decisions()
            before = {name: self.value(own) for name, own in self.compiled.program.previous}
            values = self.checked({**given, **self.contexts.needed(self.round), **before})
            number = int(self._state[self._number_place])
            draws = dict(zip((f.name for f in self.compiled.program.draws), self._random_arrays()))
            return Feedback(self.round, values, decisions, self.compiled, number, draws)

    def checked(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Arrays of a round in the order of the program's fields, contexts included. Raises OCO840 to OCO845 for names, kinds,
        shapes and bounds that are wrong."""
        return self._checked(self._take, given)

    def _checked(self, take: Intake, given: Mapping[str, Any]) -> dict[str, Any]:
        if self.contract.axes:
            given = by_position(given, self.contract.axes)
        try:
            values = take(given)
        except StreamError as error:
            values = self._repaired(take, error, given)
        return dict(zip(take.streams, values))

    def update(self, feedback: Feedback) -> None:
        """Go on to the state after the round of this feedback. Raises OCO859 where that is not finite."""
        with self._owned():
            self.complete(feedback, self.following(feedback))

    def following(self, feedback: Feedback) -> tuple[Any, ...]:
        """Arrays of the state after the round of this feedback; the learner stays in the round."""
        self._expects(feedback)
        with np.errstate(all="ignore"), self._naming_overflow("the state after it"):
            return self.compiled.update(*self._state, *feedback.values.values(), *self._random_arrays())

    def _expects(self, feedback: Feedback) -> None:
        if feedback.round != self.round:
            message = f"this is the feedback of round {feedback.round}, and the learner is in round {self.round}"
            raise fail("OCO847", message)

    def complete(self, feedback: Feedback, after: tuple[Any, ...]) -> None:
        """Go on to a state that `following` gave for this feedback, and run the monitor."""
        with self._owned():
            if self.journal is not None:
                self.journal.reveal(feedback, self.warnings)
            self._keep_last(feedback)
            self._state = after
            self._passed(feedback)
            if self.journal is not None:
                self.journal.complete(self)

    def _passed(self, feedback: Feedback) -> None:
        """Give the warnings that are due after the round of this feedback."""
        self.say_alarm()
        if is_watched(feedback.round):
            self.watch_round(feedback, feedback.decisions, tuple(feedback.values.values()))

    def advance(self, inputs: Sequence[Any], rounds: int, keep: Collection[str]) -> Recorded:
        """Play so many rounds of inputs (rounds, *shape), those of `Program.revealed`, in one call of a compiled program, and record what
        `keep` names; at most as far as the horizon. For learners without a journal: `play` calls it.
        """
        with self._owned():
            self.pass_horizon()
            run = self.compiled.run
            if run is None or self.journal is not None:
                raise InternalError("a learner that runs round by round alone")
            count = self._until_horizon(rounds)
            given = [array[:count] for array in inputs]
            recorded = self._with_random_arrays(count, lambda draws: run(self._state, given, draws, count, keep))
            self._state = recorded.state
            self.say_alarm()
            return recorded

    def _go_on(self, compiled: Compiled, contract: Contract, state: tuple[Any, ...]) -> None:
        """Run another program from here, whose state this is."""
        self.compiled, self.contract = compiled, contract
        self._number_place = compiled.program.number_place
        self._places = {f.name: i for i, f in enumerate(compiled.program.state)}
        self._state = state

    def warn(self, message: str) -> None:
        """Keep a warning, once, up to `MOST_WARNINGS`."""
        if message not in self.warnings and len(self.warnings) < MOST_WARNINGS:
            last = len(self.warnings) == MOST_WARNINGS - 1
            self.warnings.append("there were more warnings than are kept" if last else message)
            log.warning("%s: %s", self.compiled.program.name, self.warnings[-1])
            if self._on_warning is not None:
                self._on_warning(self.warnings[-1])

    def _repaired(self, take: Intake, error: StreamError, given: Mapping[str, Any]) -> list[Any]:
        """Values that the intake refused, where the caller's settings or the form by decisions allow them."""
        if error.rule in ("name", "kind") and (flat := by_decision(given, self._names)) is not None:
            try:
                return take(flat)
            except StreamError as second:
                error, given = second, flat
        if error.rule != "bounds" or self.on_out_of_bounds == "error":
            raise wrong_input(error, given=given, wanted=take.streams) from None
        try:
            values = repaired(take, given, self.on_out_of_bounds)
        except StreamError as second:
            raise wrong_input(second) from None
        done = NOTES[self.on_out_of_bounds]
        times = sum(w.endswith(done) for w in self.warnings)
        if times < MOST_OUTSIDE:
            self.warn(f"in round {self.round} {error}: {done}")
        elif times == MOST_OUTSIDE:
            self.warn(f"from round {self.round} on data outside the bounds is not listed any more: {done}")
        return values

    # Its life beyond this process.

    def close(self) -> None:
        """Close the journal, if there is one."""
        if self.journal is not None:
            self.journal.close()

    def __repr__(self) -> str:
        return f"Learner({self.compiled.program.name}, backend={self.compiled.backend!r}, round={self.round})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
