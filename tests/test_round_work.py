"""Estimated work of a round: what NumPy does with all rows of a map at once counts once."""

from __future__ import annotations

import numpy as np

import oco
from oco.backends.choose import usual_seconds
from oco.backends.round_work import work_of

TEXT = """\
model quota
horizon T = 400
decision x[4] in box(0, 5) with sum(x) <= 12
stream gain[4] in [0, 20]
stream use[4] in [0, 6]
maximize gain @ x
subject to
    quota: use @ x <= 2.2  on average
"""


def test_rows_of_experts_count_once_in_operations_and_each_in_entries() -> None:
    program = oco.compile(oco.parse(TEXT), "hedged").program
    apart, together = work_of(program), work_of(program, together=True)
    assert together.operations < apart.operations / 10 and together.entries == apart.entries
    assert usual_seconds(program, 200) < 3.0


def test_experts_are_the_default_where_a_constraint_holds_on_average() -> None:
    rng = np.random.default_rng(1)
    data = {"gain": rng.uniform(0, 20, (400, 4)), "use": rng.uniform(0, 6, (400, 4))}
    plan = oco.compile(oco.parse(TEXT), data=data)
    assert plan.algorithm == "hedged" and plan.choice.pilots is None
