"""Margins of shares of rounds that hang on the decision: values at risk of portfolios, and streams that matter only where they are used."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from thorough import corners

import oco
from oco.compiler.problem.canonical import canonical
from oco.compiler.problem.spread_margins import FORGETTING
from oco.dsl.evaluate import evaluate

T, LIMIT, BROKEN = 500, 0.02, 0.05
RISK = f"""\
model risk
horizon T = {T}
decision w[5] in simplex()
stream r[5] in [-0.2, 0.2]
minimize -(r @ w)
subject to
    risk: -(r @ w) <= {LIMIT}  in 95% of rounds
"""
SIZES = np.array([0.004, 0.008, 0.012, 0.02, 0.03])


@cache
def plan_of(text: str = RISK) -> Any:
    return oco.compile(oco.parse(text))


def returns(seed: int) -> np.ndarray[Any, Any]:
    """Daily returns with heavy tails and one factor, whose sizes double in some spells, for more the larger their risk."""
    rng = np.random.default_rng(seed)
    wild = np.cumsum(rng.random(T) < 0.02) % 2
    common, own = rng.standard_t(5, (T, 1)), rng.standard_t(5, (T, 5))
    sizes = SIZES * (1 + wild[:, None]) / np.sqrt(5 / 3)
    return np.clip(0.03 * SIZES + sizes * (np.sqrt(0.4) * common + np.sqrt(0.6) * own), -0.2, 0.2)


@pytest.mark.parametrize("seed", corners(range(4), [0, 2]))
def test_a_portfolio_loses_more_than_its_limit_in_the_stated_share(seed: int) -> None:
    """Of the single assets one is within the limit in both states; the last two alone break it in over 10% of the rounds."""
    r = returns(seed)
    assert (-r[:, 3:] > LIMIT).mean() > 2 * BROKEN
    decisions = plan_of().run({"r": r}, backend="c").decisions
    lost = -(r * decisions).sum(axis=1)
    assert (lost > LIMIT).mean() <= BROKEN + 1 / T
    assert lost[T // 5 :].std() >= 1.3 * r[T // 5 :, 0].std()  # it is no flight into the least asset


@pytest.mark.parametrize("backend", corners(["numpy", "c"], ["c"]))
def test_products_of_errors_are_averaged_over_the_rounds(backend: str) -> None:
    """With a stated prediction errors are known, and averages are those of NumPy, from the second round on."""
    learner = plan_of(RISK.replace("minimize", "predict r = 0.001\nminimize")).learner(backend=backend)
    square, together, r = 0.0, np.zeros(5), returns(7)
    for t in range(30):
        w = learner.decide()
        np.testing.assert_allclose(learner.value("kept_square_risk"), square, rtol=1e-9)
        np.testing.assert_allclose(learner.value("kept_together_0_risk"), together, rtol=1e-9, atol=1e-18)
        off, rate = r[t] - 0.001, max(FORGETTING, 1 / max(t, 1))
        e = -(off @ w)
        square, together = square + rate * (e**2 - square), together + rate * (e * off - together)
        learner.observe(r=r[t])


def test_wide_ranges_of_streams_make_no_wide_margins() -> None:
    """Machines that fail in 5% of their time: before data come half of them may, which is no error of the predictions after it."""
    text = """
model spot
horizon T = 400
decision sure in [0, 100]
decision spot in [0, 200]
stream lost in [0, 1]
stream load in [0, 200]
minimize sure + 0.4 * spot
subject to
    served: sure + (1 - lost) * spot >= load  in 95% of rounds
"""
    rng = np.random.default_rng(2)
    lost, load = rng.beta(2, 38, 400), 60 + 5 * rng.standard_normal(400)
    run = oco.compile(oco.parse(text)).run({"lost": lost, "load": load}, backend="c")
    best = np.quantile(load / (1 - lost), 0.95)  # of spot machines alone
    assert run.loss[20:50].mean() <= 1.5 * 0.4 * best  # 4.7 where the first errors count
    assert run.loss[50:].mean() <= 1.1 * 0.4 * best
    assert (run.constraints > 1e-9).mean() <= 0.06


def test_the_size_is_the_tangent_of_the_deviation() -> None:
    """u(w) = w' S x / sqrt(x' S x) where decisions were x: sqrt(w' S w) at x, and no more elsewhere, by Cauchy and Schwarz."""
    (margin,) = (c.margin for c in canonical(oco.parse(RISK)).inequalities if c.margin is not None)
    assert margin.spread is not None
    rng = np.random.default_rng(4)
    root = rng.standard_normal((5, 5)) * SIZES[:, None]
    S, x = root @ root.T, rng.dirichlet(np.ones(5))
    first = {s.name: s.first for s in margin.ranges}
    kept = {**first, "square_risk": x @ S @ x, "together_0_risk": -S @ x, "off_0_risk": np.trace(S) / 5}
    at = {
        float(w @ S @ w): evaluate(margin.spread.size, {**kept, "w": w}, t=400)
        for w in [x, *rng.dirichlet(np.ones(5), 20)]
    }
    np.testing.assert_allclose(next(iter(at.values())), np.sqrt(x @ S @ x), rtol=1e-9)
    assert all(u <= np.sqrt(v) * (1 + 1e-9) for v, u in at.items())
    assert min(u / np.sqrt(v) for v, u in at.items()) < 0.9


WIND = """\
model wind
horizon T = 300
decision gas in box(0, 150)
decision x[2] in box(0, 60)
stream w[2] in [0, 1]
minimize 5 * gas + sum(x)
subject to
    served: 80 - gas - w @ x <= 0  in 90% of rounds
"""


def test_still_rounds_are_not_broken_by_what_is_not_used() -> None:
    """In the calm half of the rounds no wind is bought: gas serves 80, which rounding does not break, and wind serves again after it."""
    rng = np.random.default_rng(2)
    blows = np.arange(300) // 50 % 2 == 0
    w = np.where(blows[:, None], 0.8, 0.05) + 0.05 * rng.uniform(-1, 1, (300, 2))
    trace = plan_of(WIND).run({"w": w}, backend="c")
    g = trace.constraints[:, 0]
    assert (g > 1e-6).mean() <= 0.1 + 1 / 300
    calm, windy = trace.loss[120:150].mean(), trace.loss[220:250].mean()
    assert calm <= 1.15 * 400  # gas alone
    assert windy <= 0.8 * 400


@pytest.mark.parametrize("turns", [2, 3, 50])
def test_the_share_is_kept_against_streams_that_lie(turns: int) -> None:
    """Streams that are full for some rounds and then empty, or empty whenever most is relied on them: never more than is allowed."""
    plan = plan_of(WIND)
    (margin,) = (c.margin for c in plan.canonical.inequalities if c.margin is not None)
    assert margin.spread is not None and margin.enough
    learner, broken, relied = plan.learner(backend="c"), 0, 0.0
    for t in range(300):
        x = learner.decide()["x"]
        empty = t % turns == turns - 1 or x.sum() > relied
        relied = max(0.98 * relied, x.sum())
        g = learner.observe(w=np.full(2, 0.0 if empty else 0.9)).constraints[0]
        broken += int(g > 0)
        assert broken <= margin.allowed(t + 1)
    assert broken >= 10
