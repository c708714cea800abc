"""Shards of a fleet: the learners of some keys side by side, and the process that has some shards."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from oco.backends.contract import Contract
from oco.backends.fleet_file import read_fleet_from, write_fleet_to
from oco.dsl.diagnostics import OcoError, fail
from oco.evaluation.comparators.compare import compare
from oco.evaluation.data import load_data
from oco.fleets.parquet import ShardRounds
from oco.fleets.places import FilePlace
from oco.fleets.tables import Arrays
from oco.plan import Plan

Answer = tuple[Any, tuple[str, str, str] | None]
"""Result of a call, or code, message and hint of its error."""


class Shard:
    """Fleet of the learners of a shard. Calls name their round: one that comes again gets the same answer."""

    def __init__(self, plan: Plan, size: int, seeds: Sequence[int] | None, backend: str | None) -> None:
        self.problem, self.fleet = plan.canonical, plan.fleet(size, seeds=seeds, backend=backend)
        self._observed: tuple[int, Arrays] = 0, {}
        self._decided = 0
        self._totals: Arrays = {}

    def begun(self) -> int:
        """Round that the learners are in."""
        return self.fleet.round

    def rounds_of(self, rounds: ShardRounds) -> int:
        """Number of the last round in a file."""
        return rounds.last()

    def decide(self, round: int, contexts: Arrays) -> Arrays:
        """Decisions of a round by name, the learner first. Raises OCO879 where the shard is in another round."""
        self._expects(round)
        decided = self.fleet.decide(**contexts)
        self._decided = round
        names = [f.name for f in self.fleet.compiled.program.decision]
        return {names[0]: decided} if not isinstance(decided, dict) else {n: np.asarray(decided[n]) for n in names}

    def observe(self, round: int, streams: Arrays, contexts: Arrays) -> Arrays:
        """Loss and violations of a round by name, after which the learners are in the next one. Raises OCO879, and what `Fleet` raises.

        A shard that was taken over since the decision decides again, which gives the same.
        """
        if self._observed[0] == round:
            return self._observed[1]
        if self._decided != round:
            self.decide(round, contexts)
        result = results_of(
            self.fleet.observe(**streams, **contexts), self.fleet.compiled.program.labels, self.fleet.contract
        )
        self._observed = round, result
        return result

    def save(self, place: str, name: str) -> int:
        """Write the learners to a place; returns their round."""
        with FilePlace(place).writing(name) as file:
            write_fleet_to(self.fleet._saved(), file)
        return self.fleet.round

    def load(self, place: str, name: str) -> int:
        """Go on from what `save` wrote; returns the round. Raises OCO850, OCO851, OCO880."""
        with FilePlace(place).reading(name) as file:
            self.fleet._restore(read_fleet_from(file, FilePlace(place).path(name)))
        self._decided, self._observed = 0, (0, {})
        return self.fleet.round

    def play(self, rounds: ShardRounds, first: int, count: int, out: str, name: str) -> Arrays:
        """Play rounds of a file from one on, and write decisions and losses to a place; the sums of losses and violations.

        Where the learners are beyond them, as after a call that comes again, nothing is played.
        """
        if self._observed[0] == first + count - 1:
            return self._totals
        sums: dict[str, float] = {}
        with rounds.writing(FilePlace(out), name) as write:
            for round, streams, contexts in rounds.read(first, count):
                decided, seen = self.decide(round, contexts), self.observe(round, streams, contexts)
                write(round, decided | seen)
                sums = {n: sums.get(n, 0.0) + float(v.sum()) for n, v in seen.items()}
        self._totals = {n: np.array([v]) for n, v in sums.items()}
        return self._totals

    def comparators(self, rounds: ShardRounds, count: int) -> Arrays:
        """Value, bound and status of the best fixed decision of each learner over the first rounds of a file."""
        read = [{**streams, **contexts} for _, streams, contexts in rounds.read(1, count)]
        data = {name: np.stack([values[name] for values in read], axis=1) for name in read[0]}
        best = [
            compare(self.problem, load_data(self.problem, {name: rows[k] for name, rows in data.items()}), "static")
            for k in range(self.fleet.size)
        ]
        status = np.array([str(b.status) for b in best])
        return {
            "value": np.array([b.value for b in best]),
            "bound": np.array([b.bound for b in best]),
            "status": status,
        }

    def _expects(self, round: int) -> None:
        if self.fleet.round != round:
            message = f"the batch is of round {round}, and the fleet is in round {self.fleet.round}"
            raise fail("OCO879", message, hint="rounds come in order, each once")


def results(answers: Mapping[int, Answer]) -> dict[int, Any]:
    """Results of answers by shard. Raises the error of the first shard that has one."""
    for shard, (_, error) in answers.items():
        if error is not None:
            code, message, hint = error
            raise fail(code, f"shard {shard}: {message}", hint=hint)
    return {shard: result for shard, (result, _) in answers.items()}


def results_of(feedback: Any, labels: Sequence[str], contract: Contract) -> Arrays:
    """Losses, and the violation of each constraint by `violation.LABEL`."""
    violation = feedback.violation
    names = (*labels, *contract.equalities)
    return {"loss": feedback.loss} | {f"violation.{n}": violation[:, k] for k, n in enumerate(names)}


class Holder:
    """Process that has some shards of a fleet; errors of data are values, so that they come back as they are."""

    def __init__(self, recipe: Mapping[str, Any], backend: str | None) -> None:
        self.plan, self.backend = Plan.from_recipe(recipe), backend
        self.shards: dict[int, Shard] = {}

    def begin(self, number: int, size: int, seeds: Sequence[int] | None) -> Answer:
        """Take a shard, whose learners are before their first round."""
        self.shards[number] = Shard(self.plan, size, seeds, self.backend)
        return None, None

    def drop(self, number: int) -> Answer:
        """Forget a shard, which another process has."""
        del self.shards[number]
        return None, None

    def processor_seconds(self) -> float:
        """Processor time that this process has used."""
        return time.process_time()

    def call(self, number: int, method: str, *args: Any) -> Answer:
        """Answer of a method of a shard."""
        try:
            return getattr(self.shards[number], method)(*args), None
        except OcoError as error:
            return None, (error.code, error.message, error.hint or "")
