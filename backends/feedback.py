"""Feedback of a round: the revealed data, and the loss and constraints of the decision."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from oco.backends.base import Compiled

Array = np.ndarray[Any, Any]


class Feedback:
    """Data that a round revealed, as arrays in the order of the program's fields, with the loss and constraints of the
    decision.

    Loss and constraints are computed on first use. `number`: that of the round among those of all learners in turn, 0 for `round`.
    `draws` are the rule's own random arrays of the round by name: of rules for bandit feedback the exploration, from which propensities
    follow by their distributions.
    """

    def __init__(
        self,
        round: int,
        values: Mapping[str, Any],
        decisions: tuple[Any, ...],
        compiled: Compiled,
        number: int = 0,
        draws: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.round = round
        self.number = number or round
        self.values = values
        self.decisions = decisions
        self.compiled = compiled
        self.draws = draws

    def __reduce__(self) -> tuple[Any, ...]:
        """Data, decisions and what was measured of them: another process needs no program for these."""
        return carried, (self.round, dict(self.values), self.decisions, self._measured, dict(self.draws))

    def __repr__(self) -> str:
        return f"Feedback(round={self.round}, loss={self.loss:.6g}, violation={self.violation})"

    @cached_property
    def _measured(self) -> tuple[Any, ...]:
        if self.compiled.measure is None:
            loss = self.values.get("loss", np.nan)
            return loss, self.values.get("constraints", np.empty(0)), self.values.get("equalities", np.empty(0))
        with np.errstate(all="ignore"):
            return self.compiled.measure(self.number, *self.decisions, *self.values.values())

    @property
    def loss(self) -> float:
        """Loss f_t(x_t)."""
        return float(self._measured[0])

    @property
    def constraints(self) -> Array:
        """Values g_t(x_t), shape (N,): a constraint holds where it is not positive."""
        return np.asarray(self._measured[1])

    @property
    def equalities(self) -> Array:
        """Values h_t(x_t), shape (M,)."""
        return np.asarray(self._measured[2])

    @property
    def violation(self) -> Array:
        """Violation [g_t(x_t)]_+, then |h_t(x_t)|, shape (N + M,)."""
        return np.concatenate([np.maximum(self.constraints, 0), np.abs(self.equalities)])


def carried(
    round: int,
    values: Mapping[str, Any],
    decisions: tuple[Any, ...],
    measured: tuple[Any, ...],
    draws: Mapping[str, Any] = MappingProxyType({}),
) -> Feedback:
    """Feedback whose loss and constraints are known."""
    result = Feedback(round, values, decisions, Compiled.__new__(Compiled), draws=draws)
    result.__dict__["_measured"] = measured
    return result
