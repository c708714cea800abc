"""Delayed feedback: d + 1 learners, or fleets of them, that take turns, each of which decides once the feedback of its last round is there.

Round t is that of learner (t - 1) mod (d + 1). Feedback of the open rounds comes in any order. Where each learns alone, none hears of
another's rounds, and the state after them is the same; those that learn together (`compiler.lowering.learning_together`) learn in the order
in which it comes.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Generic, Self, TypeVar

import numpy as np

from oco.backends.arguments import is_integer
from oco.backends.base import Compiled
from oco.backends.contract import Contract
from oco.backends.feedback import Feedback
from oco.backends.fleet import Fleet, FleetFeedback
from oco.backends.fleet_file import SavedFleet, in_turn, write_fleet
from oco.backends.learner import Learner
from oco.backends.monitor import Monitor
from oco.backends.notifying import Notifying, OnRound, OnWarning, each_once
from oco.backends.ownership import Owned
from oco.backends.portable import PUBLIC, write_whole
from oco.backends.python.open_rounds import OpenRounds, RoundError
from oco.backends.saved import UNREADABLE
from oco.compiler.certificates.certificate import Certificate
from oco.compiler.ir.program import OBSERVED
from oco.dsl.calls import checked_call
from oco.dsl.diagnostics import fail

One = TypeVar("One", Learner, Fleet)
"""Kind of what takes turns."""


class InTurns(Owned, Generic[One]):
    """Rounds of d + 1 learners, or fleets, in turn: each call of `decide` begins a round, `observe(..., round=t)` gives the data of an open
    one.

    members  one for each turn
    rounds   the rounds that are begun and not over
    """

    def __init__(
        self, members: Sequence[One], contract: Contract, rounds: OpenRounds, timeout: float | None = 0.0
    ) -> None:
        super().__init__(timeout)
        self.members: tuple[One, ...] = tuple(members)
        self.contract, self.rounds = contract, rounds
        for one in self.members:
            self._place(one)
        self._last: One = self.newest if self.learns_together else self.members[0]

    @property
    def learns_together(self) -> bool:
        """True where the members have what they learn in common."""
        return bool(self.compiled.program.shared)

    @property
    def newest(self) -> One:
        """Member that observed last, where they learn together."""
        return max(self.members, key=lambda one: int(np.max(one.value(OBSERVED))))

    @property
    def compiled(self) -> Compiled:
        """Program that all of them share."""
        return self.members[0].compiled

    @property
    def round(self) -> int:
        """Number of the round that the next `decide` begins, from 1."""
        return self.rounds.decided + 1

    @property
    def pending(self) -> tuple[int, ...]:
        """Rounds that were decided and whose feedback is still to come, the oldest first."""
        return self.rounds.pending

    @property
    def values(self) -> dict[str, Any]:
        """Copy of the state of the member that observed last, by the paper's symbols."""
        return self._last.values

    def _of(self, round: int) -> One:
        return self.members[self.rounds.turn(round)]

    @contextmanager
    def _owned(self, taken: bool = False) -> Iterator[None]:
        """Lock; rounds that are not open raise OCO869."""
        with super()._owned(taken):
            try:
                yield
            except RoundError as error:
                raise fail("OCO869", error.message, hint=error.way_out) from None

    @checked_call
    def decide(self, /, *, round: int | None = None, **context: Any) -> Any:
        """Decision of the next round; with `round` that of an open one again.

        Raises OCO869 where the feedback of the round d + 1 rounds before is missing.
        """
        with self._owned():
            if round is not None and round != self.round:
                return self._of(self.rounds.given(round)).decide(**context)
            one = self._of(self.rounds.next())
            if self.rounds.decided:
                one._follow(self._of(self.rounds.decided), self.newest if self.compiled.program.corrected else one)
            decision = one.decide(**context)
            self.rounds.begin()
            return decision

    def second_point(self, *, round: int | None = None) -> Any:
        """Second point of an open round, by default of the newest, as that of `Learner.second_point`."""
        with self._owned():
            newest = self.pending[-1] if self.pending else None
            return self._of(self.rounds.given(newest if round is None else round)).second_point()

    def skip(self, *, round: int | None = None) -> None:
        """Go on without the data of an open round, by default of the oldest: it is no part of regret and violation."""
        with self._owned():
            now = self.rounds.left_out(round)
            one = self._of(now)
            one.skip()
            self._place(one)
            self.rounds.end(now)

    def _place(self, one: One) -> None:
        """Give a member its place."""
        one._take_place(self.members.index(one), len(self.members))


class DelayedLearner(InTurns[Learner], Notifying):
    """Learner round by round, of learners in turn."""

    @classmethod
    def of(cls, kind: type[Learner], compiled: Compiled, contract: Contract, **options: Any) -> Self:
        """Learner before its first round, with the options of `Learner`; draws are by round, and each learner has a seed of its own."""
        count, own = contract.delay + 1, contract.of_one_turn
        draws, seed = options.pop("draws", None), options.pop("seed", 0)
        learners = []
        for i in range(count):
            given = None if draws is None else {name: array[i::count] for name, array in draws.items()}
            learners.append(kind(compiled, own, draws=given, seed=own_seed(seed, i), **options))
        return cls(learners, contract, OpenRounds(count, in_order=compiled.program.in_order), learners[0].timeout)

    @classmethod
    def deciding(cls, learners: Sequence[Learner], contract: Contract, turns: Collection[int] = ()) -> Self:
        """Learner of learners on their way: `turns`, from 0, of those that have decided and not observed. Raises OCO850."""
        over = [one.round - 1 + one.skipped + (i in turns) for i, one in enumerate(learners)]
        pending = [i + 1 + (over[i] - 1) * len(over) for i in turns]
        try:
            rounds = OpenRounds(len(over), sum(over), pending, learners[0].compiled.program.in_order)
        except ValueError as error:
            raise fail("OCO850", f"the learners that take turns do not fit together: {error}") from None
        return cls(learners, contract, rounds, learners[0].timeout)

    @property
    def learners(self) -> tuple[Learner, ...]:
        """Learners by turn."""
        return self.members

    def value(self, name: str) -> Any:
        """Single entry of `values`, not copied."""
        return self._last.value(name)

    @property
    def warnings(self) -> list[str]:
        """Warnings of all learners, each once."""
        return list(dict.fromkeys(w for one in self.learners for w in one.warnings))

    def warn(self, message: str) -> None:
        """Keep a warning, once, as `Learner.warn`."""
        self.learners[0].warn(message)

    def notify(self, on_round: OnRound | None = None, on_warning: OnWarning | None = None) -> None:
        """Call functions after each round that is observed, in the order of the feedback, and with each warning of the learners once."""
        super().notify(on_round)
        call = None if on_warning is None else each_once(on_warning)
        for one in self.learners:
            one.notify(on_warning=call)

    @property
    def contexts(self) -> Any:
        """Contexts of the learner whose turn is next."""
        return self._of(self.round).contexts

    @property
    def monitor(self) -> Monitor:
        """Monitor of the first learner."""
        return self.learners[0].monitor

    def record_slopes(self, round: int, decisions: Sequence[Any], values: Sequence[Any]) -> None:
        """Record the size of the gradients of a round at its decisions."""
        self.learners[0].record_slopes(round, decisions, values)

    def passed(self, rounds: int) -> None:
        """Count rounds that the learners decided and observed by themselves, each in its turns."""
        self.rounds = OpenRounds(len(self.members), self.rounds.decided + rounds, in_order=self.rounds.in_order)
        self._last = self.newest if self.learns_together else self._last

    @checked_call
    def observe(self, row: Any = None, /, *, round: int | None = None, **streams: Any) -> Feedback:
        """Take the data of an open round, by default of the oldest. Wrong data raises an error, and the learner is unchanged."""
        with self._owned():
            now = self.rounds.observed(round)
            one = self._of(now)
            if self.learns_together:
                before = one._state
                one._learn_from(self.newest)  # it has states that this round is about
                try:
                    feedback = one._given(row, streams)
                except BaseException:
                    one._state = before
                    raise
                one.update(feedback)
            else:
                feedback = type(one).observe(
                    one, row, **streams
                )  # not its compiled shortcut, whose feedback has no data
            self.rounds.end(now)
            self._last = one
        return self._observed(
            Feedback(now, feedback.values, feedback.decisions, feedback.compiled, draws=feedback.draws)
        )

    # Its life beyond this process.

    def state(self) -> dict[str, Any]:
        """JSON values from which it continues bit for bit: the states of all learners and the open rounds."""
        with self._owned():
            own = [one.state() for one in self.learners]
            first = own[0]
            about = {key: first[key] for key in ("model", "backend", "model_hash", "recipe")}
            return {**about, "learners": own, "pending": list(self.pending)}

    @classmethod
    def from_state(cls, kind: type[Learner], state: Mapping[str, Any], compiled: Compiled, contract: Contract) -> Self:
        """Learner from its `state`. Raises OCO850 where that is damaged, OCO851 where it is of another model or plan."""
        own, count = contract.of_one_turn, contract.delay + 1
        try:
            states, pending = list(state["learners"]), [int(t) for t in state["pending"]]
            if (
                len(states) != count
                or len({(t - 1) % count for t in pending}) < len(pending)
                or min(pending, default=1) < 1
            ):
                raise ValueError(f"{len(states)} learners, rounds {pending} open")
        except UNREADABLE as error:
            raise fail("OCO850", f"the saved state is not whole: {type(error).__name__}: {error}") from None
        learners = [kind.from_state(one, compiled, own) for one in states]
        result = cls.deciding(learners, contract, {(t - 1) % count for t in pending})
        if list(result.pending) != pending:
            raise fail("OCO850", f"the saved state is not whole: rounds {pending} cannot be open")
        return result

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file, completely or not at all. Raises OCO903 where it cannot be written."""
        write_whole(path, self.state())

    def schema(self) -> dict[str, Any]:
        """JSON schemas of `decide`, the decision and `observe`, as those of `Learner.schema`."""
        return self.learners[0].schema()

    def certificate(self) -> Certificate:
        """Raise OCO735: each learner sees a part of the rounds."""
        return self.learners[0].certificate()

    def close(self) -> None:
        """Close the journals, if there are some."""
        for one in self.learners:
            one.close()

    def __reduce__(self) -> tuple[Any, ...]:
        if self.contract.restored is None:
            raise TypeError("this learner does not know the function that makes its plan again: use `state()`")
        return self.contract.restored, (self.state(), self.compiled.backend)

    def __copy__(self) -> Self:
        return self.from_state(type(self.learners[0]), self.state(), self.compiled, self.contract)

    def __deepcopy__(self, memo: Any) -> Self:
        return self.__copy__()

    def __dir__(self) -> list[str]:
        return sorted(
            {*PUBLIC, "pending", "skip", "learners"} - {"conditions", "feedback", "update", "on_out_of_bounds"}
        )

    def __repr__(self) -> str:
        return f"DelayedLearner({self.compiled.program.name}, {len(self.learners)} in turn, round={self.round})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class DelayedFleet(InTurns[Fleet]):
    """Fleet round by round, of fleets in turn: arrays have the learner first."""

    _known_as = "a fleet"
    kind = "fleet"

    @classmethod
    def of(
        cls,
        kind: type[Fleet],
        compiled: Compiled,
        contract: Contract,
        size: int,
        *,
        seeds: Sequence[int] | None = None,
        timeout: float | None = 0.0,
        **options: Any,
    ) -> Self:
        """Fleet before its first round, with the options of `Fleet`; each learner has a seed of its own in each turn."""
        count, own = contract.delay + 1, contract.of_one_turn
        given = range(size) if seeds is None else seeds
        fleets = [
            kind(compiled, own, size, seeds=[own_seed(seed, i) for seed in given], **options) for i in range(count)
        ]
        return cls(fleets, contract, OpenRounds(count, in_order=compiled.program.in_order), timeout)

    @property
    def size(self) -> int:
        """Number of learners, each of which takes turns with itself."""
        return self.members[0].size

    @checked_call
    def observe(self, /, *, round: int | None = None, **streams: Any) -> FleetFeedback:
        """Take the data of an open round of all learners, by default of the oldest. Wrong data of one changes none."""
        with self._owned():
            now = self.rounds.observed(round)
            one = self._of(now)
            if self.learns_together:
                one._learn_from(self.newest)
            feedback = one.observe(**streams)
            self.rounds.end(now)
            self._last = one
            return FleetFeedback(now, feedback.loss, feedback.constraints, feedback.equalities)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all learners to a file, as `Fleet.save`, with the rounds that are open."""
        with self._owned():
            parts = [one._saved() for one in self.members]
            own = {key: parts[0].about[key] for key in ("size", "model", "backend", "recipe")}
            write_fleet(in_turn({**own, "decided": self.round - 1, "pending": list(self.pending)}, parts), path)

    def _restore(self, saved: SavedFleet) -> None:
        """Go on from a saved state. Raises OCO850, OCO851."""
        try:
            if len(saved.about["members"]) != len(self.members):
                raise ValueError(f"{len(saved.about['members'])} fleets in turn")
            pending = map(int, saved.about["pending"])
            rounds = OpenRounds(len(self.members), int(saved.about["decided"]), pending, self.rounds.in_order)
        except UNREADABLE as error:
            raise fail("OCO850", f"the saved fleet is not whole: {type(error).__name__}: {error}") from None
        for i, one in enumerate(self.members):
            one._restore(saved.part(i))
        self.rounds = rounds
        self._last = self.newest if self.learns_together else self.members[0]

    def certificates(self) -> list[Certificate]:
        """Raise OCO735: each learner sees a part of the rounds."""
        return self.members[0].certificates()

    def __repr__(self) -> str:
        program, name = self.compiled.program, self.compiled.backend
        return f"DelayedFleet({program.name}, {self.size} learners, {len(self.members)} in turn, backend={name!r}, round={self.round})"


def own_seed(seed: Any, turn: int) -> Any:
    """Seed of one of the learners: the given one for the first."""
    if not turn:
        return seed
    return [seed, turn] if is_integer(seed) else [*seed, turn] if isinstance(seed, Sequence) else seed
