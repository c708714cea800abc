"""Calls of learners by key, and those that are wrong, for tests of the service, the pipe and the store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from survival import data_of, plan_of

from oco.plan import Plan
from oco.serving.commits import GroupCommits
from oco.serving.metrics import Metrics
from oco.serving.states import KeyedStates, seed_of
from oco.serving.store import Store

CONTEXT = """\
model told
horizon T = 1000
context load in [0, 1]
decision x in box(0, 2)
stream price in [-1, 1]
minimize price * x
subject to
    serve: x >= load    each round
"""
DELAYED = """\
model late
horizon T = 100
decision x[2] in simplex
stream cost[2] in [0, 1]
minimize cost @ x
feedback full delayed 2
using ogd
"""


def store_of(text: str, path: Path, **options: Any) -> Store:
    """Open store of a model."""
    return Store(path, KeyedStates(plan_of(text), seed=3), **options)


def commits_of(store: Store) -> GroupCommits:
    """Group commits over a store, with metrics."""
    plan = store.states.plan
    return GroupCommits(store, Metrics((*plan.program.labels, *plan.contract.equalities)))


def plain_learner(store: Store, key: str) -> Any:
    """Learner without a store that decides as that of a key."""
    plan, states = store.states.plan, store.states
    return plan.learner(seed=seed_of(3, key) if plan.program.draws else 3, backend=states.backend)


def lists(values: dict[str, Any]) -> dict[str, Any]:
    """Values as those of JSON."""
    return {name: np.asarray(v).tolist() for name, v in values.items()}


def round_of(plan: Plan, round: int) -> dict[str, Any]:
    """Body of `observe` for a round."""
    return {"round": round, **lists(data_of(plan, round))}


def bits(decision: Any) -> bytes:
    """Bytes of a decision, as it came of JSON or of a learner."""
    return np.asarray(decision, dtype=np.float64).tobytes()


def decision_in(text: str) -> bytes:
    """Bytes of the decision in an answer."""
    return bits(json.loads(text)["decision"])
