"""States of learners of one plan as rows of a table: the bytes of emitted C, and JSON where they differ from a fresh learner's."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from oco.backends.learner import Learner
from oco.backends.registry import restored
from oco.backends.saved import rest_of_state, restore_rest
from oco.dsl.diagnostics import fail
from oco.plan import Plan
from oco.serving.calls import plain_json

LONG = 10**6
"""Rounds of all learners of a service together, at least: compiling C repays."""
Row = tuple[bytes | None, str]
"""Values of the algorithm as emitted C saves them, or None; and the other values, or all, as a JSON object."""


def seed_of(seed: int, key: str) -> int:
    """Seed of the learner of a key: learners of one seed draw independently of each other."""
    return int.from_bytes(hashlib.sha256(f"{seed} {key}".encode()).digest()[:8], "big")


class KeyedStates:
    """Fresh learners of a plan by key, and learners as rows and back.

    seed              of all learners together: that of each comes of its key
    on_out_of_bounds  as for `Plan.learner`
    """

    def __init__(self, plan: Plan, backend: str | None = None, seed: int = 0, on_out_of_bounds: str = "error") -> None:
        self.plan, self.seed, self.on_out_of_bounds = plan, seed, on_out_of_bounds
        self.backend = plan.backend_for(plan.horizon or LONG, backend).name
        self._compiled = plan.compiled(self.backend)
        first = self.fresh("").state()
        self.first: Mapping[str, Any] = json.loads(plain_json(first))

    def fresh(self, key: str) -> Learner:
        """Learner of a key before its first round."""
        seed = seed_of(self.seed, key) if self._compiled.program.draws else self.seed
        return self.plan.learner(seed=seed, backend=self.backend, on_out_of_bounds=self.on_out_of_bounds)

    def row(self, learner: Learner) -> Row:
        """State of a learner."""
        own = (
            isinstance(learner, Learner) and learner.compiled is self._compiled
        )  # not in turns, not beyond its horizon
        saved = learner.value_bytes() if own else None
        state = learner.state() if saved is None else rest_of_state(learner)
        return saved, plain_json({k: v for k, v in state.items() if self.first.get(k, learner) != v})

    def moved(self, state: Mapping[str, Any]) -> Learner:
        """Learner of a whole state (`Learner.state`). Raises OCO850, OCO851."""
        return restored(state, self._compiled, self.plan.contract)

    def learner(self, key: str, row: Row) -> Learner:
        """Learner of a row, which continues bit for bit. Raises OCO850, OCO851, OCO854."""
        saved, rest = row
        state = {**self.first, **json.loads(rest)}
        if saved is None:
            return self.moved(state)
        learner = self.fresh(key)
        if not learner.load_bytes(saved):
            raise fail("OCO854", f"the state of {key!r} is damaged, or of another plan")
        restore_rest(learner, state)
        return learner
