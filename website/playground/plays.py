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
    """Plans by the name of their example, of those among the chosen that the page can play: the rule draws no numbers and takes none of its
    own state as data, and rounds are small.
    """
    plans = {name: oco.compile(oco.load(ROOT / "examples" / f"{name}.oco")) for name in chosen if name not in DEAR}
    alone = {name: plan for name, plan in plans.items() if not plan.program.draws and not plan.program.previous}
    return {name: plan for name, plan in alone.items() if entries(plan) <= ENTRIES}


def entries(plan: oco.Plan) -> int:
    """Numbers that a round of a plan's model reveals."""
    return sum(int(np.prod(s.shape)) for s in plan.canonical.streams)


def play_of(name: str, plan: oco.Plan) -> dict[str, Any]:
    """JSON values of an example: what the page shows of it, its rounds, and what the learner decides on them."""
    rounds = min(plan.horizon or ROUNDS, ROUNDS)
    trace = plan.run(data_of(plan, name, rounds), rounds=rounds, seed=0, mapping=mapping_of(name))
    text = (ROOT / "examples" / f"{name}.oco").read_text(encoding="utf-8")
    return {"name": name, "text": text, **shown(plan), **played(trace)}
