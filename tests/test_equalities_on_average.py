"""Prices of equalities on average in `hedged`: against the formula, a linear program in CVXPY, and laws."""

from __future__ import annotations

import math

import cvxpy as cp
import numpy as np
import pytest
from driving import Array, Run, plan_of, trajectory
from test_c99 import has_compiler

import oco
from oco.compiler.algorithms.dual_prices import RESERVE, STEP
from oco.compiler.selection.explain import explain_text
from oco.compiler.selection.plan import explain_choice
from oco.dsl.load import parse

DRAWN = {"iid": "its own multiplier", "": "two inequalities"}
TEXT = """
model shares
horizon T = {rounds}
decision x[3] in box(0, 1)
stream c[3] in [0, 1]
stream a[3] in [0.2, 1.5] {drawn}
stream b in [0, 2] {drawn}
minimize c @ x
subject to
    share: {share} on average{penalty}
"""


def text(rounds: int = 30, drawn: str = "iid", share: str = "a @ x == b", penalty: str = "", more: str = "") -> str:
    return TEXT.format(rounds=rounds, drawn=drawn, share=share, penalty=penalty) + more


def rounds(count: int, seed: int = 3) -> list[dict[str, Array]]:
    rng = np.random.default_rng(seed)
    return [
        {"c": rng.uniform(0, 1, 3), "a": rng.uniform(0.2, 1.5, 3), "b": np.asarray(rng.uniform(0, 2))}
        for _ in range(count)
    ]


def step(g: float, used: float, squares: float, t: int, guess: float, reserve: float) -> float:
    """Change of a price before it is cut, at round t of 30."""
    left, size = 30 - t + 1, math.sqrt(squares / t)
    return STEP * guess * (g + (used + reserve * size) / left) / (size * math.sqrt(min(t, left)))


@pytest.mark.parametrize(("drawn", "penalty"), [("iid", 0.05), ("iid", 50.0), ("", 0.05)])
def test_prices_follow_the_formula(drawn: str, penalty: float) -> None:
    """The price of an equality is cut to both sides, without reserve, beside that of an inequality."""
    limit = "    limit: x[0] <= 0.3 on average, penalty 9\n"
    run = Run(plan_of(text(drawn=drawn, penalty=f", penalty {penalty}", more=limit), "hedged"))
    price, used, squares, G = (np.zeros(2) for _ in range(4))
    F, prices = 0.0, list[float]()
    for t, d in enumerate(rounds(30), 1):
        (x,) = run.decisions
        g = np.array([d["a"] @ x - d["b"], x[0] - 0.3])
        used, squares, F, G = used + g, squares + g * g, F + d["c"] @ d["c"], G + np.array([d["a"] @ d["a"], 1.0])
        guess = np.minimum(np.sqrt(F / G), [penalty, 9.0])
        moved = [step(g[i], used[i], squares[i], t, guess[i], (0.0, RESERVE)[i]) for i in (0, 1)]
        price = np.clip(price + moved, [-penalty, 0.0], [penalty, 9.0])
        run.play(d)
        mine = [price[1], price[0]] if drawn else [price[0], 0.0, price[1]]
        np.testing.assert_allclose(run.value("lambda"), mine, atol=1e-9)
        prices.append(price[0])
    assert min(prices) < 0 < max(prices)
    assert (max(map(abs, prices)) == penalty) == (penalty < 1)


@pytest.mark.parametrize("drawn", DRAWN, ids=DRAWN.values())
def test_an_equality_and_its_negative_decide_alike(drawn: str) -> None:
    own, other = (plan_of(text(40, drawn, share), "hedged") for share in ("a @ x == b", "b == a @ x"))
    data = rounds(40)
    mine, theirs = (np.array([x for (x,) in trajectory(plan, data)]) for plan in (own, other))
    np.testing.assert_allclose(mine, theirs, atol=1e-7)
    assert np.ptp(mine, axis=0).min() > 0.1


@pytest.mark.parametrize("drawn", DRAWN, ids=DRAWN.values())
def test_rounds_that_repeat_lead_to_the_linear_program(drawn: str) -> None:
    count, c, a, b = 500, np.array([0.3, 0.5, 0.9]), np.array([0.5, 1.4, 1.0]), 1.2
    x = cp.Variable(3)
    share = a @ x == b
    least = cp.Problem(cp.Minimize(c @ x), [x >= 0, x <= 1, share]).solve()
    data = {"c": np.tile(c, (count, 1)), "a": np.tile(a, (count, 1)), "b": np.full(count, b)}
    trace = oco.compile(oco.parse(text(count, drawn)), "hedged").run(data, backend="numpy")
    mean = trace.decisions.reshape(count, 3).mean(0)
    assert abs(mean @ a - b) < 4e-3
    assert mean @ c == pytest.approx(least, rel=0.02)


def test_what_rounds_owe_is_paid_back() -> None:
    """Demand jumps from 0.4 to 1.6 in the middle: the totals agree, although no round is known before its decision."""
    count = 400
    rng = np.random.default_rng(5)
    data = {
        "c": rng.uniform(0, 1, (count, 3)),
        "a": np.ones((count, 3)),
        "b": np.where(np.arange(count) < count // 2, 0.4, 1.6) + rng.uniform(-0.2, 0.2, count),
    }
    trace = oco.compile(oco.parse(text(count)), "hedged").run(data, backend="numpy")
    assert abs(trace.equalities.sum()) < 4.0  # rounds of the size 1
    assert trace.constraints.size == 0


@pytest.mark.skipif(not has_compiler(), reason="no C compiler")
def test_c_decides_as_numpy() -> None:
    plan = oco.compile(oco.parse(text(60, more="    limit: x[0] <= 0.3 on average\n")), "hedged")
    data = {n: np.array([d[n] for d in rounds(60)]) for n in "cab"}
    mine, theirs = (plan.run(data, backend=b).decisions for b in ("numpy", "c"))
    np.testing.assert_allclose(mine, theirs, atol=1e-9)


def test_nothing_is_promised_and_explain_says_why() -> None:
    choice = explain_choice(parse(text(more="using hedged\n")))
    assert next(v for v in choice.verdicts if v.name == "hedged").guarantee is None
    words = " ".join(explain_text(choice).split())
    assert "the price of `share`, which binds on average, follows what was decided" in words
