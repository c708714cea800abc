"""One program for all numbers of the free constants decides as the programs that are made for each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_unit_free import CASES, WORLDS, Units, planned
from thorough import corners

T = 24


def rounds_of(world: str) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    given = {"price": rng.uniform(-1, 1, (T, 3)), "need": rng.uniform(0.25, 0.75, T)}
    return {
        name: values
        for name, values in given.items()
        if any(f"{word} {name}" in WORLDS[world] for word in ("stream", "context"))
    }


@pytest.mark.parametrize(
    ("name", "world"),
    corners(dict(CASES).items(), [case for case in sorted(dict(CASES).items())[::4] if case[0] != "hedged"]),
)
def test_an_opened_plan_runs_as_the_closed_ones(name: str, world: str) -> None:
    plan = planned(world, name, Units(), False).with_constants({}, T)
    moved = [{f.name: min(max(k, f.low), f.high) for f in plan.free} for k in (0.5, 0.25, 2.0)]
    numbers = next(m for m in moved if plan.allows(m))
    closed = plan.with_constants(numbers, T).run(rounds_of(world), seed=3)
    opened = plan.trial(T, 1)(numbers, closed.data, 3)
    np.testing.assert_allclose(opened.loss, closed.loss, rtol=0, atol=1e-9)
    np.testing.assert_allclose(opened.decisions[-1], closed.decisions[-1], rtol=0, atol=1e-9)
