"""Optimistic gradient descent: the rule beside a literal one, and its inequality on hostile sequences."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import oco
from oco.backends.registry import restored

Array = np.ndarray[Any, Any]
T = 60
TEXT = f"""\
model buy
horizon T = {T}
decision p[3] in ball(2)
context ahead[3] in [-1, 5]
stream price[3] in [-1, 5]
stream pull[3] in [-1, 1]
predict price = 0.8 * ahead + 0.2 * last(price)
minimize price @ p + 0.5 * sum_squares(p - pull)
"""
KNOWN = (
    TEXT.replace("ball(2)", "box(0, 8)").replace("context ahead", "context load in [3, 12]\ncontext ahead")
    + "subject to\n    balance: sum(p) >= load  each round\n"
)


@cache
def plan_of(text: str) -> Any:
    return oco.compile(oco.parse(text), "optimistic")


def rounds(seed: int) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    price = rng.uniform(-1, 5, (T, 3))
    return {
        "price": price,
        "ahead": np.clip(price + rng.normal(0, 0.3, (T, 3)), -1, 5),
        "pull": rng.uniform(-1, 1, (T, 3)),
        "load": rng.uniform(3, 12, T),
    }


def used(plan: Any, data: dict[str, Array]) -> dict[str, Array]:
    return {s.name: data[s.name] for s in plan.model.streams}


def literal(data: dict[str, Array]) -> tuple[Array, Array]:
    """The rule as its module writes it, over the ball of radius 2, and the errors of its predictions."""

    def onto(v: Array) -> Array:
        return v * min(1.0, 2 / max(float(np.linalg.norm(v)), 1e-300))

    y, S, M, D = np.zeros(3), 0.0, 0.0, 4.0
    played, errors = [], []
    for t in range(T):
        price, pull = data["price"][t - 1] if t else np.full(3, 2.0), data["pull"][t - 1] if t else np.zeros(3)
        m = 0.8 * data["ahead"][t] + 0.2 * price + y - pull if M > 0 else np.zeros(3)
        x = onto(y - D / np.sqrt(2 * (S + M * M)) * m) if M > 0 else y
        g = data["price"][t] + x - data["pull"][t]
        e = float(np.linalg.norm(g - m))
        S, M = S + min(e, M) ** 2, max(M, e)
        y = onto(y - D / np.sqrt(2 * (S + M * M)) * g)
        played.append(x)
        errors.append(e)
    return np.array(played), np.array(errors)


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_the_rule_is_that_of_its_module(backend: str) -> None:
    plan, data = plan_of(TEXT), rounds(1)
    assert plan.algorithm == "optimistic"
    decisions = plan.run(used(plan, data), backend=backend).decisions
    np.testing.assert_allclose(decisions, literal(data)[0], atol=1e-9)


def bound(errors: Array, D: float) -> float:
    """Right side of the theorem."""
    S = M = 0.0
    for e in errors:
        S, M = S + min(e, M) ** 2, max(M, e)
    return float(D * (np.sqrt(2 * (S + M * M)) + M))


@pytest.mark.parametrize("attack", ["random", "turning", "against", "jump", "exact"])
def test_the_regret_is_bounded_by_the_errors_of_the_predictions(attack: str) -> None:
    plan, data = plan_of(TEXT), rounds(2)
    learner, rng = plan.learner(backend="numpy"), np.random.default_rng(3)
    losses, errors = [], []
    for t in range(T):
        x = learner.decide(ahead=data["ahead"][t])
        if attack == "turning":
            data["price"][t] = 2 + 3 * (-1.0) ** (t // 4)
        elif attack == "against":
            data["price"][t] = np.where(learner.values["m"] > 0, -1.0, 5.0)
        elif attack == "jump":
            data["price"][t] = 5.0 if t == T // 2 else 1e-3 * rng.uniform()
        elif attack == "exact":
            last = data["price"][t - 1] if t else np.full(3, 2.0)
            data["price"][t] = np.clip(0.8 * data["ahead"][t] + 0.2 * last, -1, 5)
        g = data["price"][t] + x - data["pull"][t]
        errors.append(float(np.linalg.norm(g - _outward(plan, learner))))
        losses.append(learner.observe(price=data["price"][t], pull=data["pull"][t]).loss)
    v = (data["pull"] - data["price"]).mean(axis=0)
    best = v * min(1.0, 2 / float(np.linalg.norm(v)))
    least = sum(p @ best + 0.5 * np.sum((best - q) ** 2) for p, q in zip(data["price"], data["pull"]))
    assert sum(losses) - least <= bound(np.array(errors), 4.0) + 1e-9
    assert bound(np.array(errors), 4.0) <= plan.guarantee.regret_bound.number(T)


def _outward(plan: Any, learner: Any) -> Array:
    """Predicted gradient in the user's units."""
    scales = plan._spec.scales
    return np.asarray(learner.values["m"] * (1.0 if scales is None else scales.loss / scales.radius))


def test_known_constraints_are_kept_and_predictions_pay() -> None:
    plan, data = plan_of(KNOWN), rounds(4)
    assert plan.guarantee is not None
    own = [plan.run(used(plan, data), backend=b) for b in ("numpy", "c")]
    np.testing.assert_allclose(own[0].decisions, own[1].decisions, atol=1e-9)
    assert own[0].constraints.max() <= 1e-9
    other = oco.compile(oco.parse(KNOWN), algorithm="ogd")
    assert own[0].loss.sum() < other.run(used(other, data), backend="numpy").loss.sum()
    assert [d.code for d in other.warnings] == ["OCO717"]


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_states_modules_and_fleets_go_on(backend: str) -> None:
    plan, data = plan_of(KNOWN), rounds(5)
    learner, fleet = plan.learner(backend=backend), plan.fleet(2, backend=backend)
    space: dict[str, Any] = {"__name__": "buy"}
    exec(compile(plan.source("numpy"), "buy.py", "exec"), space)
    own = space["Learner"]()
    for t in range(6):
        known = {n: data[n][t] for n in ("load", "ahead")}
        later = {n: data[n][t] for n in ("price", "pull")}
        x = learner.decide(**known)
        np.testing.assert_allclose(own.decide(**known), x, atol=1e-9)
        both = fleet.decide(**{n: np.stack([v] * 2) for n, v in known.items()})
        np.testing.assert_allclose(both, [x, x], atol=1e-9)
        learner = restored(learner.state(), learner.compiled, learner.contract)
        np.testing.assert_array_equal(learner.decide(), x)
        for each in (learner, own):
            each.decide()
            each.observe(**later)
        fleet.observe(**{n: np.stack([v] * 2) for n, v in later.items()})


def test_without_anything_known_of_the_loss_it_does_not_apply() -> None:
    text = TEXT.replace("predict price = 0.8 * ahead + 0.2 * last(price)\n", "").replace(
        "context ahead[3] in [-1, 5]\n", ""
    )
    with pytest.raises(oco.OcoError, match="nothing is known of the loss"):
        oco.compile(oco.parse(text), algorithm="optimistic")


def test_steps_that_leave_the_box_are_projected_onto_what_it_and_the_known_constraints_leave() -> None:
    """Beside the rule with the projection by bisection: cut to the box first, a step would end elsewhere."""
    data = rounds(4)

    def onto(v: Array, load: float) -> Array:
        low, high = 0.0, 200.0
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if np.clip(v + middle, 0, 8).sum() < load else (low, middle)
        return np.clip(v if np.clip(v, 0, 8).sum() >= load else v + high, 0, 8)

    y, S, M, D, played, differ = np.full(3, 4.0), 0.0, 0.0, 8 * np.sqrt(3), [], 0
    for t in range(T):
        price, pull = data["price"][t - 1] if t else np.full(3, 2.0), data["pull"][t - 1] if t else np.zeros(3)
        m = 0.8 * data["ahead"][t] + 0.2 * price + y - pull if M > 0 else np.zeros(3)
        v, load = y - (D / np.sqrt(2 * (S + M * M)) * m if M > 0 else 0.0), data["load"][t]
        x = onto(v, load)
        differ += not np.allclose(x, onto(np.clip(v, 0, 8), load))
        g = data["price"][t] + x - data["pull"][t]
        e = float(np.linalg.norm(g - m))
        S, M = S + min(e, M) ** 2, max(M, e)
        y = onto(y - D / np.sqrt(2 * (S + M * M)) * g, load)
        played.append(x)
    decisions = plan_of(KNOWN).run(used(plan_of(KNOWN), data), backend="numpy").decisions
    np.testing.assert_allclose(decisions, played, atol=1e-6)
    assert differ > 0
