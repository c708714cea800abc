"""Rounds after the horizon: how learners and fleets go over to the program of the next epochs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from oco.backends.base import Compiled
from oco.backends.contract import Contract
from oco.backends.feedback import Feedback
from oco.compiler.ir.program import Program
from oco.compiler.lowering.restarts import EPOCH
from oco.dsl.records import dataclass

ENDED = "settings stay those of its last, the guarantee has ended"
ALONE = f"{ENDED}; with `horizon T unknown` it goes on"
"""Meaning of those rounds in a learner that was written to a file."""
ANYTIME = "the method needs no horizon, and its bound goes on with the rounds"


@dataclass(frozen=True, eq=False)
class LastRound:
    """Last round of a horizon: the state before it and its inputs and draws, in the order of the program's fields."""

    state: Sequence[Any]
    inputs: Sequence[Any]
    draws: Sequence[Any] = ()


def epochs_after(compiled: Compiled, contract: Contract) -> tuple[Compiled, Contract] | None:
    """Program and contract of the epochs after the horizon, where the state carries over field by field; else None."""
    if contract.continued is None or contract.horizon is None:
        return None
    after, promised = contract.continued(compiled.backend)
    return (after, promised) if _is_longer(compiled.program, after.program) else None


def _is_longer(before: Program, after: Program) -> bool:
    """True where the state after is that before, and the length of the epoch."""
    kinds = {f.name: f.type for f in before.state}
    return {f.name: f.type for f in after.state if f.name != EPOCH} == kinds and EPOCH not in kinds


def state_before(
    last: LastRound, before: Program, after: Program, length: Any, update: Callable[..., tuple[Any, ...]]
) -> tuple[Any, ...]:
    """State in the first round of the next epoch: the last round of the horizon, whose length is `length`, played by `update`."""
    known = {f.name: v for f, v in zip(before.state, last.state, strict=True)} | {EPOCH: length}
    with np.errstate(all="ignore"):
        return update(*(known[f.name] for f in after.state), *last.inputs, *last.draws)


def message(contract: Contract, promised: Contract | None) -> str:
    """Meaning of the rounds after the horizon, for the user."""
    T = contract.horizon or 0
    meaning = ANYTIME if contract.anytime else ENDED
    if promised is not None:
        bound = f"; {promised.guarantee[0].removesuffix(':')}" if promised.guarantee else ""
        meaning = f"the method is begun anew, for {2 * T}, then {4 * T}, ... rounds{bound}"
    return f"the horizon of {T} rounds is over: {meaning}"


def is_continued(recipe: Any) -> bool:
    """True where a recipe is of a learner that went on after its horizon."""
    return isinstance(recipe, Mapping) and recipe.get("after") is not None


class Continuing:
    """Part of a learner that goes over to the next epochs once its horizon is over."""

    compiled: Compiled
    contract: Contract
    _state: tuple[Any, ...]
    _last: LastRound | None = None

    @property
    def round(self) -> int:
        """Number of the round that `decide` answers now, from 1."""
        raise NotImplementedError

    def warn(self, message: str) -> None:
        """Keep a warning, once."""
        raise NotImplementedError

    def _random_arrays(self) -> tuple[Any, ...]:
        raise NotImplementedError

    def _go_on(self, compiled: Compiled, contract: Contract, state: tuple[Any, ...]) -> None:
        raise NotImplementedError

    def pass_horizon(self) -> None:
        """Go over to the epochs after the horizon where the learner is in the round behind it, and say what holds there."""
        horizon = self.contract.horizon
        if horizon is None or self.round != horizon + 1:
            return
        last, self._last = self._last, None
        after = None if last is None else epochs_after(self.compiled, self.contract)
        self.warn(message(self.contract, None if after is None else after[1]))
        if last is not None and after is not None:
            compiled, contract = after
            own = self.compiled.program, compiled.program
            self._go_on(compiled, contract, state_before(last, *own, np.float64(horizon), compiled.update))

    def _keep_last(self, feedback: Feedback) -> None:
        """Keep what the next epoch begins from, in the last round of the horizon."""
        if self.contract.continued is not None and feedback.round == self.contract.horizon:
            self._last = LastRound(self._state, tuple(feedback.values.values()), self._random_arrays())

    def _until_horizon(self, rounds: int) -> int:
        """Rounds that may be played in one call: those of the horizon, but for the last where an epoch begins behind it."""
        horizon = self.contract.horizon
        if horizon is None or self.round > horizon:
            return rounds
        return min(rounds, horizon - self.round + (self.contract.continued is None))
