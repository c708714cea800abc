"""Stated predictions: the statement, the builder, and the rows that `hedged` follows, in NumPy and in C."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oco
from oco.backends.registry import restored
from oco.compiler.lowering.predicted_round import predicted_of

T = 60
TEXT = """\
model dispatch

horizon T = 60

decision p[2] in box(0, 8)

context ahead in [-1, 5]
stream price in [-1, 5]
stream need in 0..6

let mix = 0.7 * ahead

predict price = mix + 0.3 * mean(price, 4)
predict need = 0.5 * season(need, 12) + 0.3 * last(need) + 0.2 * ewma(need, 0.25)

minimize price * sum(p) + 0.1 * sum_squares(p)

subject to
    serve: sum(p) >= need  each round, penalty 9
"""


@cache
def plan_of(text: str = TEXT) -> Any:
    return oco.compile(oco.parse(text), algorithm="hedged")


def rounds(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    price = rng.uniform(-1, 5, T)
    need = np.rint(3 + 2.5 * np.sin(np.arange(T) * np.pi / 6)).astype(np.int64)
    return {"price": price, "ahead": np.clip(price + rng.normal(0, 0.1, T), -1, 5), "need": need}


def expected(data: dict[str, Any]) -> list[dict[str, float]]:
    """Predictions of each round, worked out by hand."""
    results, average = [], 3.0
    for t in range(T):
        price, need = data["price"][:t], data["need"][:t]
        usual = price[-4:].mean() if t else 2.0
        last = need[-1] if t else 3.0
        season = need[t - 12] if t >= 12 else last
        own = {"price": 0.7 * data["ahead"][t] + 0.3 * usual, "need": 0.5 * season + 0.3 * last + 0.2 * average}
        results.append({"price": float(np.clip(own["price"], -1, 5)), "need": float(own["need"])})
        average += max(0.25, 1 / (t + 1)) * (data["need"][t] - average)
    return results


def test_text_and_builder_say_the_same() -> None:
    model = oco.parse(TEXT)
    assert model.to_oco() == TEXT
    assert oco.parse(model.to_oco()) == model
    m = oco.Model("dispatch", horizon=60)
    p = m.decision("p", 2, domain=oco.box(0, 8))
    ahead, price = m.context("ahead", bounds=(-1, 5)), m.stream("price", bounds=(-1, 5))
    need = m.stream("need", bounds=(0, 6), integer=True)
    mix = m.let("mix", 0.7 * ahead)
    m.predict(price, mix + 0.3 * oco.mean(price, 4))
    m.predict(need, 0.5 * oco.season(need, 12) + 0.3 * oco.last(need) + 0.2 * oco.ewma(need, 0.25))
    m.minimize(price * oco.sum(p) + 0.1 * oco.sum_squares(p))
    m.subject_to(oco.sum(p) >= need, name="serve", each_round=True, penalty=9)
    assert m.to_oco() == TEXT
    sized = TEXT.replace("predict price", "param k = 2\npredict price").replace("mix +", "k * mix +")
    assert oco.parse(sized, params={"k": 3}).to_oco() != oco.parse(sized).to_oco()


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("mix + 0.3 * mean(price, 4)", "price", "OCO220"),
        ("mix + 0.3 * mean(price, 4)", "sum(p)", "OCO220"),
        ("mix + 0.3 * mean(price, 4)", "mean(price, 2.5)", "OCO220"),
        ("mix + 0.3 * mean(price, 4)", "ewma(price, 3)", "OCO220"),
        ("mix + 0.3 * mean(price, 4)", "season(price, 10000001)", "OCO220"),
        ("mix + 0.3 * mean(price, 4)", "last(3)", "OCO220"),
        ("mix + 0.3 * mean(price, 4)", "[1, 2]", "OCO219"),
        ("predict price", "predict ahead", "OCO219"),
        ("predict price", "predict p", "OCO219"),
        ("predict price", "predict need", "OCO219"),
        ("let mix = 0.7 * ahead", "let mix = 0.7 * price", "OCO220"),
        ("minimize price", "minimize last(price)", "OCO202"),
    ],
)
def test_what_a_prediction_is_not_made_of(old: str, new: str, code: str) -> None:
    with pytest.raises(oco.OcoError) as caught:
        oco.parse(TEXT.replace(old, new))
    assert [d.code for d in caught.value.diagnostics] == [code]
    assert caught.value.diagnostics[0].span is not None


def test_a_season_is_as_long_as_its_values_fit_into_memory() -> None:
    text = TEXT.replace("season(need, 12)", "season(need, 20160)")  # two weeks of minutes
    assert oco.parse(text).to_oco() == text


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_learners_predict_as_stated(backend: str, tmp_path: Path) -> None:
    plan, data = plan_of(), rounds(1)
    learner, journaled = plan.learner(backend=backend), oco.open(plan, tmp_path / "j", backend=backend)
    streams = list(predicted_of(plan._spec.canonical).streams)
    for t, own in enumerate(expected(data)[:30]):
        x = learner.decide(ahead=data["ahead"][t])
        np.testing.assert_allclose(learner.values["predicted"][-1], [own[n] for n in streams], atol=1e-12)
        np.testing.assert_array_equal(x, journaled.decide(ahead=data["ahead"][t]))
        learner = restored(learner.state(), learner.compiled, learner.contract)
        if t == 9:
            journaled.close()
            journaled = oco.open(plan, tmp_path / "j", backend=backend)
            journaled.decide(ahead=data["ahead"][t])
        for each in (learner, journaled):
            each.decide()
            each.observe(price=data["price"][t], need=data["need"][t])
    journaled.close()


def test_c_fleets_and_modules_decide_as_numpy_does() -> None:
    plan, data = plan_of(), rounds(2)
    in_c, in_numpy = (plan.run(data, backend=b) for b in ("c", "numpy"))
    np.testing.assert_allclose(in_c.decisions, in_numpy.decisions, atol=1e-9)
    space: dict[str, Any] = {"__name__": "dispatch"}
    exec(compile(plan.source("numpy"), "dispatch.py", "exec"), space)
    own, fleet = space["Learner"](), plan.fleet(2, backend="c")
    for t in range(4):
        now = {"price": data["price"][t], "need": data["need"][t]}
        np.testing.assert_allclose(own.decide(ahead=data["ahead"][t]), in_numpy.decisions[t], atol=1e-12)
        both = fleet.decide(ahead=np.full(2, data["ahead"][t]))
        np.testing.assert_allclose(both, [in_numpy.decisions[t]] * 2, atol=1e-9)
        own.observe(**now)
        fleet.observe(**{n: np.stack([v] * 2) for n, v in now.items()})


def test_a_good_prediction_helps_and_a_wrong_one_costs_little() -> None:
    data = rounds(3)

    def cost(text: str) -> float:
        trace = plan_of(text).run(data, backend="numpy")
        return float(trace.loss.sum() + 9 * np.maximum(trace.constraints, 0).sum())

    none = cost("".join(line + "\n" for line in TEXT.splitlines() if not line.startswith("predict")))
    good = cost(TEXT)
    wrong = cost(TEXT.replace("mix + 0.3 * mean(price, 4)", "5 - ahead"))
    assert good < none
    assert wrong < 1.1 * none
    bound = plan_of().guarantee.regret_bound
    assert bound is not None


def test_other_algorithms_say_that_they_do_not_predict() -> None:
    plan = oco.compile(oco.parse(TEXT), algorithm="nested")
    (found,) = [d for d in plan.warnings if d.code == "OCO717"]
    assert "`price`, `need`" in found.message and "using hedged" in found.hint
    assert not [d for d in plan_of().warnings if d.code == "OCO717"]
