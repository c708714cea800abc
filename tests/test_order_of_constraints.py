"""Where not all constraints of a round can hold: the domain first, then those of each round, then those of shares of the rounds."""

from __future__ import annotations

from functools import cache
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from thorough import corners

import oco

Array = np.ndarray[Any, Any]
AFFINE, CURVED = "abs(p - prev(p)) <= ramp", "norm2(p - prev(p)) <= ramp"
TEXT = """\
model plants
horizon T = 60
decision p[3] in box(0, [8, 6, 4])
context ramp in [0, 3]
context most in [0, 20]
stream price[3] in [0, 9]
stream demand in [0, 14]
minimize price @ p
subject to
    served: sum(p) >= demand  in 90% of rounds
    slow: {slow}  each round
    network: sum(p) <= most  each round
{rule}
"""
HIGH = np.array([8.0, 6.0, 4.0])
OGD, HEDGED = "using ogd", "using hedged"


@cache
def plan_of(slow: str, rule: str) -> Any:
    return oco.compile(oco.parse(TEXT.format(slow=slow, rule=rule)))


class InOrder:
    """The two problems in their order, by CVXPY: what the constraints of each round are broken by, then what `served` lacks."""

    def __init__(self, curved: bool) -> None:
        p = cp.Variable(3)
        self.before, self.ramp, self.most, self.served = (cp.Parameter(n) for n in (3, (), (), ()))
        moved = p - self.before
        moves = [cp.norm2(moved) - self.ramp] if curved else [moved - self.ramp, -moved - self.ramp]
        firm = [*moves, (cp.sum(p) - self.most) / np.sqrt(3)]
        self.met = [cp.Parameter(g.shape, nonneg=True) for g in firm]
        box, kept = [p >= 0, p <= HIGH], [g <= m for g, m in zip(firm, self.met, strict=True)]
        self.firm, self.broken = firm, cp.Problem(cp.Minimize(sum(cp.sum_squares(cp.pos(g)) for g in firm)), box)
        self.short = cp.Problem(cp.Minimize(cp.pos(self.served - cp.sum(p))), [*box, *kept])

    def least(self, before: Array, ramp: float, most: float, served: float) -> tuple[float, float]:
        """Least sum of squares of what rows of norm one are broken by, and beside it what `served` lacks."""
        self.before.value, self.ramp.value, self.most.value, self.served.value = before, ramp, most, served
        broken = max(float(self.broken.solve(solver="CLARABEL")), 0.0)
        for m, g in zip(self.met, self.firm, strict=True):
            m.value = np.maximum(g.value, 0.0) + 1e-9 if broken > 1e-9 else np.zeros(g.shape)
        return broken, float(self.short.solve(solver="CLARABEL"))


def what_is_known(t: int, before: Array, rng: np.random.Generator) -> tuple[float, float]:
    """Ramp and limit of the network; in every seventh round no decision satisfies both."""
    ramp = float(rng.uniform(0.1, 1.0))
    if t % 7 == 6 and before.sum() > 4 * ramp:
        return ramp, float(before.sum() - 3.5 * ramp)
    return ramp, float(rng.uniform(before.sum(), 20))


CASES = [(slow, rule, b) for slow, rule in ((AFFINE, OGD), (CURVED, OGD), (AFFINE, HEDGED)) for b in ("numpy", "c")]


@pytest.mark.parametrize(("slow", "rule", "backend"), corners(CASES, CASES[3::2]))
def test_shares_give_way_to_what_holds_in_each_round(slow: str, rule: str, backend: str) -> None:
    learner, rng = plan_of(slow, rule).learner(backend=backend), np.random.default_rng(7)
    before, gave_way, curved, reference = HIGH / 2, 0, slow == CURVED, InOrder(slow == CURVED)
    for t in range(20):
        ramp, most = what_is_known(t, before, rng)
        if curved and most < before.sum():
            most = float(before.sum())  # rows that no decision satisfies are weighed at the point of the rule's own
        p = np.asarray(learner.decide(ramp=ramp, most=most))
        served, fallback = (7.0 + float(learner.value(f"kept_{n}_served")) for n in ("margin", "fallback"))
        least, short = reference.least(before, ramp, most, served)
        if short > 1e-4:
            served = fallback
            least, short = reference.least(before, ramp, most, served)
        moved = [np.linalg.norm(p - before) - ramp] if curved else np.abs(p - before) - ramp
        broken = np.append(moved, (p.sum() - most) / np.sqrt(3))
        assert (p >= 0).all() and (p <= HIGH).all()
        assert np.square(np.maximum(broken, 0)).sum() == pytest.approx(least, abs=2e-6)
        if least < 1e-9:
            assert np.max(broken) <= 1e-7
        assert max(served - p.sum(), 0) == pytest.approx(short, abs=1e-5)
        gave_way += short > 1e-3
        learner.observe(price=rng.uniform(1, 9, 3), demand=14.0 if t % 5 else 2.0)
        before = p
    assert gave_way > 5


HEATING = """\
model heating
horizon T = 40
decision heat[3] in box(0, [35, 90, 40])
context forecast in [-25, 30]
context gas_price in [0, 120]
stream power in [-100, 500]
stream demand in [0, 160]
minimize 8 * heat[0] + gas_price * heat[1] / 0.92 + power * heat[2] / 3 + 0.02 * sum_squares(heat)
subject to
    warm: sum(heat) >= demand                  in 98% of rounds
    up:   heat - prev(heat) <= [4, 30, 20]     each round
    down: prev(heat) - heat <= [4, 30, 20]     each round
using hedged
"""


def test_backends_agree_where_ramps_keep_experts_together() -> None:
    """In the first rounds experts decide and lose alike, so that rounding must not choose between them."""
    rng, hours = np.random.default_rng(3), np.arange(16)
    outside = 4 - 6 * np.cos(2 * np.pi * hours / 24) + rng.normal(0, 1, 16)
    data = {
        "forecast": outside,
        "gas_price": np.repeat(rng.uniform(30, 60, 2), 8),
        "power": np.clip(60 + 40 * np.sin(2 * np.pi * hours / 24) + rng.normal(0, 15, 16), -100, 500),
        "demand": np.clip(3.2 * (17 - outside) + rng.normal(0, 3, 16), 0, 160),
    }
    plan = oco.compile(oco.parse(HEATING))
    numpy, c = (plan.run(data, backend=b).decisions for b in ("numpy", "c"))
    assert (np.abs(np.diff(c, axis=0)) <= np.array([4, 30, 20]) + 1e-7).all()
    np.testing.assert_allclose(c, numpy, rtol=0, atol=1e-9 * np.abs(c).max())
