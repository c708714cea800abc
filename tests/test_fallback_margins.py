"""Constraints in shares of the rounds whose margins asked for fit together with no decision: their fallbacks."""

from __future__ import annotations

from functools import cache
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from thorough import corners

import oco
from oco.compiler.problem.canonical import canonical

Array = np.ndarray[Any, Any]
T, SHARE, CAP, HIGH, REACH = 500, 0.1, 30.0, 20.0, 4.0
RATE = np.array([2.0, 1.0, 4.0])
TEXT = f"""\
model replicas
horizon T = {T}
param rate[3] = [2, 1, 4]
decision p[3] in box(0, {HIGH}) with sum(p) <= {CAP}
stream price in [0, 3]
stream calls[3] in [0, [36, 18, {{most}}]]
minimize price * sum(p)
subject to
    up: p - prev(p) <= {REACH}  each round
    served: calls <= rate * p  in 90% of rounds
using ogd
"""
JOINTLY, NEVER, MOST = 72, 200, np.array([36.0, 18.0, 72.0])
"""Greatest values of the third stream: of the first each margin M fits alone, the second is more than all that the third entry serves."""
BACKENDS = ("numpy", "c")
MET = 1e-4  # what a least sum of squares at a solver's tolerance leaves of rows that can be met


@cache
def plan_of(most: int) -> Any:
    return oco.compile(oco.parse(TEXT.format(most=most)))


def data_of(seed: int, rounds: int = T) -> dict[str, Array]:
    """Exchangeable calls, far below what the model allows but in a few rounds."""
    rng = np.random.default_rng(seed)
    calls = np.array([10.0, 4.0, 14.0]) * np.exp(rng.normal(0, 0.2, (rounds, 3)))
    return {"price": rng.uniform(1, 3, rounds), "calls": np.minimum(calls, MOST)}


class ByCvxpy:
    """Decisions of a round: whether margins fit, and what the rows of norm one are broken by at the least sum of squares."""

    def __init__(self) -> None:
        p = cp.Variable(3)
        self.before, self.asked = cp.Parameter(3), cp.Parameter(3)
        allowed = [p >= 0, p <= HIGH, cp.sum(p) <= CAP, p - self.before <= REACH]
        self.over = self.asked - p
        self.problem = cp.Problem(cp.Minimize(cp.sum_squares(cp.pos(self.over))), allowed)

    def broken(self, before: Array, replicas: Array) -> Array:
        """What each row lacks of the `replicas` that are asked for, (3,)."""
        self.before.value, self.asked.value = before, replicas
        self.problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10)
        return np.maximum(np.asarray(self.over.value), 0)


@pytest.mark.parametrize(
    ("most", "backend"), corners([(m, b) for m in (JOINTLY, NEVER) for b in BACKENDS], [(72, "c")])
)
def test_margins_are_those_asked_for_where_they_fit_and_fallbacks_else(most: int, backend: str) -> None:
    learner, data, reference = plan_of(most).learner(backend=backend), data_of(0), ByCvxpy()
    usual, kinds, (block,) = np.array([18.0, 9.0, most / 2]), set(), plan_of(most).canonical.blocks
    before = block.domain.centre()
    for t in range(90):
        p = np.asarray(learner.decide())
        asked, fallback = (
            (usual + np.asarray(learner.value(f"kept_{n}_served"))) / RATE for n in ("margin", "fallback")
        )
        short = reference.broken(before, asked)
        fits, kept = short < MET, asked
        if not fits.all():
            kept = np.where(fits, asked, fallback)
            short = reference.broken(before, kept)
        if short.max() > MET:
            fits, kept = np.zeros(3, dtype=bool), fallback
            short = reference.broken(before, kept)
        np.testing.assert_array_equal(np.asarray(learner.value("margin_fits")) > 0.5, fits)
        assert np.square(np.maximum(kept - p, 0)).sum() == pytest.approx(np.square(short).sum(), abs=1e-5)
        assert (p >= -1e-9).all() and p.sum() <= CAP + 1e-7 and (p - before <= REACH + 1e-7).all()
        kinds.add((bool(fits.all()), bool(short.max() < MET)))
        calls = RATE * p + 0.1 if 30 <= t < 60 else data["calls"][t]  # barely broken: the share is used up
        learner.observe(price=data["price"][t], calls=np.minimum(calls, MOST))
        before = p
    assert {(True, True), (False, True), (False, False)} <= kinds


@pytest.mark.parametrize(
    ("most", "seed"), corners([(m, s) for m in (JOINTLY, NEVER) for s in range(4)], [(72, 0), (200, 1)])
)
def test_of_exchangeable_rounds_a_share_near_the_stated_one_is_broken(most: int, seed: int) -> None:
    run = plan_of(most).run(data_of(seed), backend="c")
    broken = (run.constraints[:, 3:] > 1e-9).mean(axis=0)
    assert (broken <= 2 * SHARE).all() and broken.max() > 0.2 * SHARE
    assert run.decisions.sum(axis=1).mean() < 0.8 * CAP
    assert (run.constraints[:, :3] <= 1e-7).all()


def test_a_margin_that_no_decision_holds_is_left_out_of_its_entry_alone() -> None:
    """M of the first two entries is what serves every value of their streams; the third serves at most 80 of 200."""
    (margin,) = (c.margin for c in canonical(oco.parse(TEXT.format(most=NEVER))).inequalities if c.margin is not None)
    assert margin.cut == (0.0, 0.0, 1.0) and not margin.enough
    learner = plan_of(NEVER).learner(backend="c")
    for _ in range(60):
        p = np.asarray(learner.decide())
        learner.observe(price=1.0, calls=np.minimum(RATE * p + 0.1, [36, 18, 79]))
    asked, credit = (np.asarray(learner.value(f"kept_{n}_served")) for n in ("margin", "credit"))
    assert (credit + margin.margins.lent(61) < 0).all()
    np.testing.assert_allclose(asked[:2], [18, 9], rtol=1e-6)
    assert margin.most[2] == 0 and asked[2] < -10
