"""Products of two affine functions of one decision: equal values, curvature by the sign of the square, and revenue that is earned."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import oco
from oco.compiler.problem.canonical import canonical
from oco.compiler.problem.folding import Folding
from oco.dsl.atoms import form_of, forms
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Kind, names, walk

HEAD = """model m
horizon T = 60
decision p in [5, 15]
decision x[3] in [0, 4]
stream a in [40, 160]
stream b in [2, 9]
stream c[3] in [-1, 1]
"""
EXPANDED = [
    "-(p * (a - b * p))",
    "sum((x - c) * (2 * x + 1)) - p",
    "x[0] * (3 + b * x[0]) + x[1]",
    "-((2 * p + c[0]) * (a - b * p) / 4) + 15 * pos(a - b * p - x[2])",
]
KEPT = ["p * x[0]", "sum(c * x * x)", "x[0] * x[1]", "p * exp(p)"]


def products(model: oco.Model) -> int:
    """Products of two expressions that both hang on decisions."""
    nodes = walk(canonical(model).objective)
    return sum(form_of(n) is forms.TIMES and all(names(k, Kind.DECISION) for k in n.children) for n in nodes)


@pytest.mark.parametrize("loss", [*EXPANDED, *KEPT])
def test_values_are_those_that_were_written(loss: str) -> None:
    model = oco.parse(f"{HEAD}minimize {loss}\n")
    assert products(model) == (loss in KEPT)
    expanded, written, rng = canonical(model).objective, Folding(model).fold(model.objective), np.random.default_rng(1)
    for _ in range(30):
        data = {"a": rng.uniform(40, 160), "b": rng.uniform(2, 9), "c": rng.uniform(-1, 1, 3)}
        own = data | {"p": rng.uniform(5, 15), "x": rng.uniform(0, 4, 3)}
        assert_allclose(evaluate(expanded, own), evaluate(written, own), rtol=1e-12, atol=1e-9)


def test_a_square_whose_sign_hangs_on_data_is_named() -> None:
    with pytest.raises(oco.OcoError) as refused:
        oco.compile(oco.parse(f"{HEAD}stream d in [-1, 1]\nmaximize p * (a - d * p)\n"))
    assert refused.value.code == "OCO501" and "a square times `-d`" in refused.value.hint


def test_revenue_over_a_stock_is_planned_as_its_square_is() -> None:
    """Written as price times demand or as a square, what is decided is alike, and earns what a fixed price and base stock earn at best."""
    text = """model shop
horizon T = 300
decision price in [5, 15]
decision order in [0, 200]
stream a in [60, 140]
stream b in [2, 9]
state stock = stock + order - (a - b * price) in [0, 600] start 100
maximize REVENUE - 3 * order - 0.1 * stock - 15 * pos(a - b * price - stock - order)
"""
    rng, t = np.random.default_rng(2), np.arange(300)
    a, b = np.clip(100 + 15 * np.sin(2 * np.pi * t / 7) + rng.normal(0, 5, 300), 60, 140), rng.uniform(4, 6, 300)
    earned = []
    for revenue in ("price * (a - b * price)", "a * price - b * square(price)"):
        plan = oco.compile(oco.parse(text.replace("REVENUE", revenue)))
        earned.append(-float(plan.run({"a": a, "b": b}).loss.sum()))
    assert earned[0] == pytest.approx(earned[1], rel=1e-6)

    def kept(price: float, base: float) -> float:
        stock, total = 100.0, 0.0
        for high, slope in zip(a, b, strict=True):
            order, demand = min(max(base - stock, 0), 200), high - slope * price
            total += price * demand - 3 * order - 0.1 * stock - 15 * max(demand - stock - order, 0)
            stock = np.clip(stock + order - demand, 0, 600)
        return total

    assert earned[0] >= 0.97 * max(kept(p, s) for p in range(8, 15) for s in (20, 30, 40, 50, 60, 80))
