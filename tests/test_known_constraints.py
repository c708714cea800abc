"""Known constraints: each decision is the nearest point that satisfies them, in NumPy and in C, and the guarantee stands."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from thorough import corners

import oco
from oco.backends.registry import restored
from oco.compiler.problem.canonical import canonical
from oco.compiler.theory.theorems import Situation
from oco.evaluation.baselines.base import Played, play
from oco.evaluation.baselines.predictions import Mean, Stated
from oco.evaluation.baselines.resolve import NoMargin, Resolve
from oco.evaluation.cost import Trade
from oco.evaluation.data import load_data

Array = np.ndarray[Any, Any]
T = 40
DOMAINS = {
    "box": "box([0, -1, 0], [8, 5, 6])",
    "ball": "ball(4)",
    "simplex": "simplex(5)",
    "budget": "budget(0, 4, 6)",
    "l1_ball": "l1_ball(5)",
    "polytope": "polytope([[1, 1, 0], [-1, 0, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]], [6, 0, 0, 3, 1])",
    "cut": "box(0, 4) with sum(p) <= 5",
}
RULES = """\
subject to
    balance: p[0] + 2 * p[1] >= load  each round
    room: W @ p <= 4  each round
    tie: p[0] - p[2] == 0.1 * load  each round
"""


def model(domain: str, rules: str = RULES, more: str = "", loss: str = "price @ p") -> str:
    return f"""\
model dispatch
horizon T = {T}
decision p[3] in {domain}
context load in [0, 3]
context W[2, 3] in [-1, 2]
stream price[3] in [-1, 5]
minimize {loss}
{more}{rules}"""


@cache
def plan_of(text: str) -> Any:
    """Plan of gradient descent, whose decisions are the nearest points, where no constraint is learned."""
    model = oco.parse(text)
    return oco.compile(model, None if canonical(model).learned.inequalities else "ogd")


def rounds(seed: int, heavy: float = 1.0) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    return {
        "load": heavy * rng.uniform(0, 1, T),
        "W": rng.uniform(-1, 2, (T, 2, 3)),
        "price": rng.uniform(-1, 5, (T, 3)),
    }


def before(plan: Any, learner: Any) -> Array:
    """The rule's own decision of the round, in the user's units."""
    scales, x = plan._spec.scales, learner.values["x"]
    return np.asarray(x if scales is None else scales.origins[0] + scales.radius * x)


def broken(x: Array, now: dict[str, Array]) -> Array:
    """What each row is broken by, for rows of norm one."""
    rows = [max(now["load"] - x[0] - 2 * x[1], 0) / np.sqrt(5)]
    rows += list(np.maximum(now["W"] @ x - 4, 0) / np.linalg.norm(now["W"], axis=1))
    return np.array([*rows, (x[0] - x[2] - 0.1 * now["load"]) / np.sqrt(2)])


def of_cvxpy(plan: Any, now: dict[str, Array], y: Array) -> float | None:
    """Least squared distance from y within the constraints; None where there is no such point."""
    x = cp.Variable(3)
    rows = [x[0] + 2 * x[1] >= now["load"], now["W"] @ x <= 4, x[0] - x[2] == 0.1 * now["load"]]
    problem = cp.Problem(
        cp.Minimize(cp.sum_squares(x - y)), [*plan.canonical.blocks[0].domain.constraints(cp, x), *rows]
    )
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return float(problem.value) if problem.status.startswith("optimal") else None


@pytest.mark.parametrize("domain", corners(DOMAINS, ("simplex", "cut")))
def test_each_decision_is_the_nearest_point_within_the_constraints(domain: str) -> None:
    plan, data = plan_of(model(DOMAINS[domain])), rounds(1)
    learner, compared = plan.learner(backend="numpy"), 0
    for t in range(24):
        now = {name: value[t] for name, value in data.items()}
        y = before(plan, learner)
        x = learner.decide(load=now["load"], W=now["W"])
        feedback = learner.observe(price=now["price"])
        if t % 4 and np.abs(broken(y, now)).max() < 1e-9:
            np.testing.assert_allclose(x, y, atol=1e-9)
            continue
        best = of_cvxpy(plan, now, y)
        assert plan.canonical.blocks[0].domain.violation(x) <= 1e-9
        if best is not None:
            compared += 1
            assert feedback.violation.max() <= 1e-9
            assert np.sum((x - y) ** 2) <= best + 1e-7
    assert compared > 5


@pytest.mark.parametrize("domain", corners(DOMAINS, ("cut",)))
def test_c_decides_as_numpy_does(domain: str) -> None:
    plan, data = plan_of(model(DOMAINS[domain])), rounds(2, heavy=3.0)
    in_c, in_numpy = (plan.run(data, backend=b).decisions for b in ("c", "numpy"))
    np.testing.assert_allclose(in_c, in_numpy, atol=1e-9)
    learner = plan.learner(backend="c")
    for t in range(5):
        x = learner.decide(load=data["load"][t], W=data["W"][t])
        np.testing.assert_array_equal(x, in_c[t])
        learner.observe(price=data["price"][t])


def test_where_no_decision_is_left_the_least_violating_one_is_taken() -> None:
    plan, impossible = plan_of(model("box(0, 0.8)")), 0
    learner = plan.learner(backend="numpy")
    data = rounds(3)
    z, load, W, sizes = cp.Variable(3), cp.Parameter(), cp.Parameter(data["W"][0].shape), cp.Parameter(2, nonneg=True)
    low, most = cp.pos(load - z[0] - 2 * z[1]) / np.sqrt(5), cp.pos(W @ z - sizes)
    tie = (z[0] - z[2] - 0.1 * load) / np.sqrt(2)
    problem = cp.Problem(cp.Minimize(cp.square(low) + cp.sum_squares(most) + cp.square(tie)), [z >= 0, z <= 0.8])
    for t in range(T):
        now = {"load": np.array(2 + (t % 10) / 10), "W": data["W"][t], "price": data["price"][t]}
        x = learner.decide(load=now["load"], W=now["W"])
        feedback = learner.observe(price=now["price"])
        lengths = np.linalg.norm(now["W"], axis=1)
        load.value, W.value, sizes.value = now["load"], now["W"] / lengths[:, None], 4 / lengths
        problem.solve(solver="CLARABEL", tol_gap_abs=1e-12, tol_gap_rel=1e-12)
        assert np.sum(broken(x, now) ** 2) <= problem.value + 1e-8
        if problem.value > 1e-6:
            impossible += 1
            assert feedback.violation.max() > 1e-4
    assert impossible > 5


def known_of(text: str) -> list[str]:
    return [c.label for c in canonical(oco.parse(text)).learned.known]


def test_which_constraints_are_known() -> None:
    rules = """\
subject to
    a: sum(p) >= load  each round
    b: sum(p) >= load  on average
    c: sum(p) >= load  each round, penalty 3
    d: sum(p) >= load + price[0]  each round
    e: sum(p) <= 20  each round
    f: sum_squares(p) <= 3 + load  each round
    g: p[0] == 0.1 * load  each round
"""
    assert known_of(model("box(0, 8)", rules)) == ["a", "e", "f", "g.above", "g.below"]
    assert known_of(model("box(0, 8)", rules + "feedback gradient\n")) == []
    whole = canonical(oco.parse(model("box(0, 8)", rules)))
    assert whole.learned.whole.constraint_labels == whole.constraint_labels


BALANCE = "subject to\n    balance: sum(p) >= load  each round\n    room: W[0] @ p <= 9  each round\n"


def best_fixed(data: dict[str, Array], quadratic: float) -> float:
    x = cp.Variable(3)
    loss = data["price"].sum(axis=0) @ x + T * quadratic * cp.sum_squares(x)
    rows = [x >= 0, x <= 8, cp.sum(x) >= data["load"].max(), data["W"][:, 0] @ x <= 9]
    problem = cp.Problem(cp.Minimize(loss), rows)
    problem.solve(solver="CLARABEL")
    return float(problem.value)


@pytest.mark.parametrize("quadratic", [0.0, 0.2])
@pytest.mark.parametrize("attack", ["random", "turning", "greedy"])
def test_the_guarantee_holds_against_decisions_within_all_rounds(quadratic: float, attack: str) -> None:
    loss = "price @ p" if quadratic == 0 else f"price @ p + {quadratic} * sum_squares(p)"
    plan, data = plan_of(model("box(0, 8)", BALANCE, loss=loss)), rounds(5, heavy=3.0)
    assert plan.algorithm == "ogd" and plan.guarantee is not None
    learner, total = plan.learner(backend="numpy"), 0.0
    for t in range(T):
        x = learner.decide(load=data["load"][t], W=data["W"][t])
        if attack == "turning":
            data["price"][t] = (-1.0) ** (t // 5) * 2 + 2
        elif attack == "greedy":
            data["price"][t] = np.where(x > 2, 5.0, -1.0)
        total += learner.observe(price=data["price"][t]).loss
    bound = plan.guarantee.regret_bound.number(T)
    assert total - best_fixed(data, quadratic) <= bound


def test_the_condition_of_the_guarantee_names_the_known_constraints() -> None:
    (condition,) = plan_of(model(DOMAINS["box"])).guarantee.conditions
    assert condition.key == "feasible.common" and "`balance`, `room` and `tie`" in condition.words
    assert not plan_of(model("box(0, 8)", BALANCE)).guarantee.conditions  # proved: (3, 0, 0) serves every round


def test_comparators_obey_the_known_constraints() -> None:
    plan, data = plan_of(model("box(0, 8)", BALANCE)), rounds(6, heavy=3.0)
    trace = plan.run(data)
    assert trace.comparator("static").value == pytest.approx(best_fixed(data, 0.0), abs=1e-4)
    fixed = trace.comparator("static").decision["p"]
    assert fixed.sum() >= data["load"].max() - 1e-6 and (data["W"][:, 0] @ fixed).max() <= 9 + 1e-6


def test_what_has_no_proof_for_moved_decisions_promises_nothing_and_runs() -> None:
    rules = BALANCE + "    spent: price[0] * p[0] <= 10  each round\n"
    plan, data = plan_of(model("box(0, 8)", rules)), rounds(7, heavy=3.0)
    for name in ("coldq", "nested", "recoo", "sinha-vaze"):
        own = plan.only(name)
        trace = own.run(data, backend="numpy")
        assert (own.guarantee is None) == (name != "sinha-vaze")
        known = trace.constraints[:, [own.canonical.constraint_labels.index(n) for n in ("balance", "room")]]
        assert known.max() <= 1e-9
    assert any(d.code == "OCO704" for d in plan.only("coldq").warnings)
    with pytest.raises(oco.OcoError, match="known before them: `balance`, `room`"):
        oco.compile(oco.parse(model("box(0, 8)", rules)), algorithm="coldq-expert")


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_states_and_journals_continue_bit_for_bit(backend: str, tmp_path: Path) -> None:
    plan, data = plan_of(model("ball(4)")), rounds(8, heavy=2.0)
    learner = plan.learner(backend=backend)
    journaled = oco.open(plan, tmp_path / "j", backend=backend)
    for t in range(7):
        known = {"load": data["load"][t], "W": data["W"][t]}
        x = learner.decide(**known)
        np.testing.assert_array_equal(x, journaled.decide(**known))
        learner = restored(learner.state(), learner.compiled, learner.contract)
        np.testing.assert_array_equal(learner.decide(), x)
        if t == 5:
            journaled.close()
            journaled = oco.open(plan, tmp_path / "j", backend=backend)
            np.testing.assert_array_equal(journaled.decide(), x)
        learner.observe(price=data["price"][t])
        journaled.observe(price=data["price"][t])
    journaled.close()


def test_decisions_of_several_blocks_move_together() -> None:
    text = f"""\
model pair
horizon T = {T}
decision p[2] in box(0, 8)
decision q[2] in ball(2)
context load in [0, 9]
stream price[2] in [-1, 5]
minimize price @ p + sum(q)
subject to
    balance: sum(p) + q[0] >= load  each round
"""
    plan, rng = plan_of(text), np.random.default_rng(9)
    data = {"load": rng.uniform(0, 9, T), "price": rng.uniform(-1, 5, (T, 2))}
    traces = [plan.run(data, backend=b) for b in ("numpy", "c")]
    for name in ("p", "q"):
        np.testing.assert_allclose(traces[0].decisions[name], traces[1].decisions[name], atol=1e-9)
    x = traces[0].decisions
    assert (data["load"] - x["p"].sum(axis=1) - x["q"][:, 0]).max() <= 1e-9
    assert np.linalg.norm(x["q"], axis=1).max() <= 2 + 1e-9


def test_a_fleet_and_an_emitted_module_satisfy_known_constraints(tmp_path: Path) -> None:
    plan, data = plan_of(model("box(0, 8)", BALANCE)), rounds(10, heavy=3.0)
    learner, fleet = plan.learner(backend="c"), plan.fleet(2, backend="c")
    space: dict[str, Any] = {"__name__": "dispatch"}
    exec(compile(plan.source("numpy"), "dispatch.py", "exec"), space)
    own = space["Learner"]()
    for t in range(6):
        known, price = {"load": data["load"][t], "W": data["W"][t]}, data["price"][t]
        x = learner.decide(**known)
        np.testing.assert_allclose(own.decide(**known), x, atol=1e-9)
        both = fleet.decide(load=np.full(2, known["load"]), W=np.stack([known["W"]] * 2))
        np.testing.assert_array_equal(both, [x, x])
        learner.observe(price=price)
        own.observe(price=price)
        fleet.observe(price=np.stack([price] * 2))


def test_rules_of_practice_satisfy_what_they_know() -> None:
    problem = canonical(oco.parse(model("box(0, 8)", BALANCE)))
    data = load_data(problem, rounds(11, heavy=3.0))
    trade = Trade.of(Situation(problem, oco.check(problem.model), T), 1.0)
    played = play(Resolve(Mean(3), NoMargin()), problem, data, trade, 20.0)
    assert isinstance(played, Played)
    assert played.constraints.max() <= 1e-6
    fixed = play(Resolve(Stated(), NoMargin(), fixed=True), problem, data, trade, 20.0)
    assert isinstance(fixed, Played)
    assert fixed.constraints.max() <= 1e-6, "a fixed decision is moved where it may not stand"
