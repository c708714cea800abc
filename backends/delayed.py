"""Learner under delayed feedback: d + 1 learners that take turns, each of which decides once the feedback of its last round is there.

Round t is that of learner (t - 1) mod (d + 1). Feedback of the open rounds comes in any order, since no learner hears of another's rounds:
the state after it is the same.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from oco.backends.arguments import is_integer
from oco.backends.base import Compiled
from oco.backends.contract import Contract
from oco.backends.feedback import Feedback
from oco.backends.learner import Learner
from oco.backends.monitor import Monitor
from oco.backends.ownership import Owned
from oco.backends.portable import PUBLIC, write_whole
from oco.backends.saved import UNREADABLE
from oco.dsl.diagnostics import fail


def of_one(contract: Contract) -> Contract:
    """Contract of a learner that plays every (d + 1)th round."""
    horizon = None if contract.horizon is None else -(-contract.horizon // (contract.delay + 1))
    return replace(contract, horizon=horizon, delay=0)


class DelayedLearner(Owned):
    """Learner round by round: each call of `decide` begins a round, `observe(..., round=t)` gives the data of an open one.

    learners  one for each turn
    deciding  turns, from 0, of those that have decided and not observed
    """

    def __init__(self, learners: Sequence[Learner], contract: Contract, deciding: Collection[int] = ()) -> None:
        super().__init__()
        self.learners, self.contract = tuple(learners), contract
        self.delay = len(self.learners) - 1
        over = [one.round - 1 + one.skipped + (i in deciding) for i, one in enumerate(self.learners)]
        self._decided = sum(over)
        self._open = {i + 1 + (over[i] - 1) * len(over) for i in deciding}
        self._last = self.learners[0]

    @classmethod
    def of(cls, kind: type[Learner], compiled: Compiled, contract: Contract, **options: Any) -> Self:
        """Learner before its first round, with the options of `Learner`; draws are by round, and each learner has a seed of its own."""
        count, own = contract.delay + 1, of_one(contract)
        draws, seed = options.pop("draws", None), options.pop("seed", 0)
        learners = []
        for i in range(count):
            given = None if draws is None else {name: array[i::count] for name, array in draws.items()}
            learners.append(kind(compiled, own, draws=given, seed=own_seed(seed, i), **options))
        return cls(learners, contract)

    # Where it is.

    @property
    def compiled(self) -> Compiled:
        """Program that all learners share."""
        return self.learners[0].compiled

    @property
    def round(self) -> int:
        """Number of the round that the next `decide` begins, from 1."""
        return self._decided + 1

    @property
    def pending(self) -> tuple[int, ...]:
        """Rounds that were decided and whose feedback is still to come, the oldest first."""
        return tuple(sorted(self._open))

    @property
    def values(self) -> dict[str, Any]:
        """Copy of the state of the learner that observed last, by the paper's symbols."""
        return self._last.values

    def value(self, name: str) -> Any:
        """Single entry of `values`, not copied."""
        return self._last.value(name)

    @property
    def warnings(self) -> list[str]:
        """Warnings of all learners, each once."""
        return list(dict.fromkeys(w for one in self.learners for w in one.warnings))

    @property
    def contexts(self) -> Any:
        """Contexts of the learner whose turn is next."""
        return self._of(self.round).contexts

    @property
    def monitor(self) -> Monitor:
        """Monitor of the first learner."""
        return self.learners[0].monitor

    def glance(self, round: int, decisions: Sequence[Any], values: Sequence[Any]) -> None:
        """Record the size of the gradients of a round at its decisions."""
        self.learners[0].glance(round, decisions, values)

    def _of(self, round: int) -> Learner:
        return self.learners[(round - 1) % len(self.learners)]

    # A round.

    def decide(self, /, *, round: int | None = None, **context: Any) -> Any:
        """Decision of the next round; with `round` that of an open one again.

        Raises OCO869 where the feedback of the round d + 1 rounds before is missing.
        """
        with self._owned():
            now = self.round
            if round is not None and round != now:
                self._require_open(round)
                return self._of(round).decide()
            if (due := now - len(self.learners)) in self._open:
                message = f"round {now} needs the feedback of round {due}, which is {self.delay} rounds late at most"
                raise fail(
                    "OCO869", message, hint=f"observe(..., round={due}), or skip(round={due}) where it never comes"
                )
            decision = self._of(now).decide(**context)
            self._open.add(now)
            self._decided = now
            return decision

    def observe(self, row: Any = None, /, *, round: int | None = None, **streams: Any) -> Feedback:
        """Take the data of an open round, by default of the oldest. Wrong data raises an error, and the learner is unchanged."""
        with self._owned():
            now = self._open_round(round)
            one = self._of(now)
            feedback = type(one).observe(one, row, **streams)  # not its compiled shortcut, whose feedback has no data
            self._open.discard(now)
            self._last = one
            return Feedback(now, feedback.values, feedback.decisions, feedback.compiled)

    def second_point(self, *, round: int | None = None) -> Any:
        """Second point of an open round, by default of the newest, as that of `Learner.second_point`."""
        with self._owned():
            newest = self.pending[-1] if self._open else None
            now = self._open_round(newest if round is None else round)
            return self._of(now).second_point()

    def skip(self, *, round: int | None = None) -> None:
        """Go on without the data of an open round, by default of the oldest: it is no part of regret and violation."""
        with self._owned():
            now = self._open_round(round)
            self._of(now).skip()
            self._open.discard(now)

    def _open_round(self, round: int | None) -> int:
        pending = self.pending
        if round is None:
            if not pending:
                raise fail("OCO869", "no round is open", hint="decide() begins one")
            return pending[0]
        self._require_open(round)
        return round

    def _require_open(self, round: int) -> None:
        if not is_integer(round) or round not in self.pending:
            there = ", ".join(map(str, self.pending)) or "none"
            over = is_integer(round) and 1 <= round < self.round
            message = (
                f"round {round} is over"
                if over
                else f"round {round} is not decided yet"
                if is_integer(round)
                else f"a round is an integer from 1, not {round!r}"
            )
            raise fail("OCO869", f"{message}; open rounds: {there}", hint="`learner.pending` lists the open rounds")

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
        own, count = of_one(contract), contract.delay + 1
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
        result = cls(learners, contract, {(t - 1) % count for t in pending})
        if list(result.pending) != pending:
            raise fail("OCO850", f"the saved state is not whole: rounds {pending} cannot be open")
        return result

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file, completely or not at all. Raises OCO903 where it cannot be written."""
        write_whole(path, self.state())

    def schema(self) -> dict[str, Any]:
        """JSON schemas of `decide`, the decision and `observe`, as those of `Learner.schema`."""
        return self.learners[0].schema()

    def certificate(self) -> Any:
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


def own_seed(seed: Any, turn: int) -> Any:
    """Seed of one of the learners: the given one for the first."""
    if not turn:
        return seed
    return [seed, turn] if is_integer(seed) else [*seed, turn] if isinstance(seed, Sequence) else seed
