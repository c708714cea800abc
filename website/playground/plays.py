"""Examples that the page plays, each with its text, facts, plan, rounds of data and results."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

import oco
from website.examples import DEAR, ROOT, data_of, mapping_of
from website.playground.live import played, shown

ROUNDS = 500
"""Rounds that the page plays of an example, at most."""
ENTRIES = 200
"""Numbers of a round's data beyond which an example is left out: its rounds would be megabytes."""


def playable(chosen: Iterable[str]) -> dict[str, oco.Plan]:
    """Plans by the name of their example, of those among the chosen that the page can play: rounds are small, and no rule draws numbers."""
    plans = {name: oco.compile(oco.load(ROOT / "examples" / f"{name}.oco")) for name in chosen if name not in DEAR}
    alone = {name: plan for name, plan in plans.items() if not plan.program.draws}
    return {name: plan for name, plan in alone.items() if entries(plan) <= ENTRIES}


def entries(plan: oco.Plan) -> int:
    """Numbers that a round of a plan's model reveals."""
    return sum(int(np.prod(s.shape)) for s in plan.canonical.revealed)


def play_of(name: str, plan: oco.Plan) -> dict[str, Any]:
    """JSON values of an example: what the page shows of it, its rounds, and what the learner decides on them."""
    rounds = min(plan.horizon or ROUNDS, ROUNDS)
    trace = plan.run(data_of(plan, name, rounds), rounds=rounds, seed=0, mapping=mapping_of(name))
    text = (ROOT / "examples" / f"{name}.oco").read_text(encoding="utf-8")
    return {"name": name, "text": text, **shown(plan), **played(trace)}
