"""Penalties of constraints: what the text says, and that choice, settings, scores and summaries weigh violation by it."""

from __future__ import annotations

import numpy as np
import pytest

import oco
from oco.compiler.theory.objective import violation_units
from oco.compiler.theory.theorems import Situation
from oco.dsl.diagnostics import OcoError
from oco.dsl.load import parse
from oco.dsl.model import Model
from oco.dsl.text.formatter import format_text
from oco.dsl.text.printer import print_model
from oco.evaluation.cost import Trade
from oco.evaluation.numbers import number
from oco.evaluation.report.verdict import verdict
from oco.evaluation.summary import summarize

TEXT = """\
model shop
horizon T = {horizon}
param cost = {cost}
decision x[3] in box(0, 10)
stream price[3] in [{unit}, 2 * {unit}] ~ uniform({unit}, 2 * {unit})
stream need in [0, 12] ~ uniform(0, 12)
minimize price @ x
subject to
    served: need - sum(x) <= 0  each round, penalty cost
    fair:   x <= 5              on average, penalty cost * [1, 2, 3]
"""


def shop(cost: float = 40.0, horizon: int = 200, unit: float = 1.0, text: str = TEXT) -> Model:
    return parse(text.format(cost=cost, horizon=horizon, unit=unit))


def test_text_builder_and_printer_agree() -> None:
    m = oco.Model("shop", horizon=200)
    cost = m.param("cost", value=40)
    x = m.decision("x", 3, domain=oco.box(0, 10))
    price = m.stream("price", 3, bounds=(1, 2), dist=oco.uniform(1, 2))
    need = m.stream("need", bounds=(0, 12), dist=oco.uniform(0, 12))
    m.minimize(price @ x)
    m.subject_to(need - oco.sum(x) <= 0, "served", each_round=True, penalty=cost)
    m.subject_to(x <= 5, "fair", penalty=cost * np.array([1.0, 2.0, 3.0]))
    printed = m.to_oco()
    assert "each round, penalty cost" in printed and "on average, penalty cost * [1.0, 2.0, 3.0]" in printed
    assert print_model(parse(printed)) == printed
    assert format_text(TEXT.format(cost=40, horizon=200, unit=1)) == TEXT.format(cost=40, horizon=200, unit=1)
    assert r"\text{, penalty }" in m.build()._repr_latex_()


@pytest.mark.parametrize(
    ("wrong", "code"),
    [("penalty 0", "OCO527"), ("penalty -cost", "OCO527"), ("penalty [1, 2]", "OCO527"), ("penalty need", "OCO320")],
)
def test_a_penalty_is_a_positive_number_known_before_the_first_round(wrong: str, code: str) -> None:
    with pytest.raises(OcoError) as caught:
        oco.compile(shop(text=TEXT.replace("round, penalty cost", f"round, {wrong}")))
    assert [d.code for d in caught.value.diagnostics] == [code]


def test_a_trade_values_each_violation_at_its_penalty() -> None:
    plan = oco.compile(shop(), "coldq")
    trace = plan.run(rounds=200, seed=3)
    for weight in (0.01, 1.0, 30.0):
        trade = Trade.of(plan.choice.situation, weight)
        served, fair = trace.constraints[:, 0], trace.constraints[:, 1:]
        penalties = 40 * np.maximum(served, 0).sum() + np.maximum(fair.sum(axis=0), 0) @ np.array([40, 80, 120])
        np.testing.assert_allclose(trade.prices, [40, 40, 80, 120])
        expected = (trace.loss.sum() + penalties) / (plan.choice.situation.loss_range * 200)
        np.testing.assert_allclose(trade.score(trace)[2], expected)
        run = summarize(trace, ())
        np.testing.assert_allclose(run.total_cost, trace.loss.sum() + penalties)
        assert run.own is not None and run.own.priced == pytest.approx(run.total_cost)
        first = " ".join(verdict(trace, run, "rounds", "an algorithm", []).split())
        assert first.startswith(f"shop lost {number(run.total_cost)} with penalties in 200 rounds")


def test_the_penalty_of_a_model_in_other_units_gives_the_settings_of_the_first() -> None:
    """Prices and penalties in cents instead of dollars."""
    dollars, cents = (oco.compile(shop(40 * u, 10**6, u), "coldq").settings for u in (1.0, 128.0))
    for name, setting in dollars.items():
        if setting.value is not None and name not in ("alpha", "gamma"):
            np.testing.assert_allclose(setting.value, cents[name].value)


def test_dearer_violations_promise_less_of_them() -> None:
    """Free constants at their best for each penalty: the promised violation falls, the promised regret grows."""
    bounds = []
    for cost in (0.3, 3.0, 30.0):
        guarantee = oco.compile(shop(cost, 10**7), "coldq", "optimal").guarantee
        assert guarantee is not None and guarantee.violation_bound is not None
        bounds.append((guarantee.regret_bound.number(10**7), guarantee.violation_bound.number(10**7)))
    (r1, v1), (r2, v2), (r3, v3) = bounds
    assert r1 <= r2 <= r3 and v1 >= v2 >= v3 and v1 > v3


def test_the_tradeoff_is_for_constraints_without_a_penalty() -> None:
    priced, partly = shop(), shop(text=TEXT.replace("average, penalty cost * [1, 2, 3]", "average"))
    warned = oco.compile(priced, "coldq", tradeoff=0.1).warnings
    assert "OCO716" in [d.code for d in warned]
    assert "OCO716" not in [d.code for d in oco.compile(partly, "coldq", tradeoff=0.1).warnings]
    for model, moves in ((priced, False), (partly, True)):
        canonical = oco.compile(model, "coldq").canonical
        s = Situation(canonical, oco.check(model), canonical.horizon)
        one, tenth = violation_units(s, 1.0), violation_units(s, 0.1)
        assert one is not None and tenth is not None
        np.testing.assert_allclose(one[0] / 1.0, tenth[0] / 0.1)  # worth as much at any weight
        assert (one[1] == tenth[1]) == moves
