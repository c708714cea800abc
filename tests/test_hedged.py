"""`hedged` against a listing with NumPy and CVXPY, AdaHedge's inequalities and the theorem on hostile sequences, and its prices."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import cvxpy as cp
import numpy as np
import pytest
from driving import Array, Round, Run, plan_of, situation, solve, trajectory
from hedged_listing import CASES, PRICES, Listing, T, drawn
from test_c99 import has_compiler
from thorough import corners, thorough

import oco
from oco.compiler.algorithms.experts import GRADIENTS, expert_count, solving
from oco.compiler.selection.plan import compile_plan, explain_choice
from oco.compiler.selection.verdicts import Applicability
from oco.dsl.load import parse

AFFINE = CASES[NAME := "affine, data times decisions"]


@pytest.mark.parametrize(("name", "season"), corners(product(CASES, (1, 3)), [*product(CASES, (1,)), (NAME, 3)]))
def test_decisions_equal_the_listing(name: str, season: int) -> None:
    case = CASES[name]
    price = case.price.tolist() if len(case.price) > 1 else case.price[0]
    plan = plan_of(case.text(f", penalty {price}"), "hedged", {"season": season} if season > 1 else None)
    assert plan.guarantee is not None and not plan.choice.warnings
    solved = solving(plan.choice.situation.canonical, season)
    listing = Listing(case, case.price, float(plan.settings["Q"].value or 0), solved, season)
    run = Run(plan)
    for d in drawn(case):
        (x,) = run.decisions
        assert np.linalg.norm(x - listing.decision()) <= 1e-5
        run.play(d)
        listing.play(d)
        np.testing.assert_allclose(run.value("x"), np.array(listing.x), atol=2e-5)
        np.testing.assert_allclose(run.value("L"), listing.L, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(run.value("margin"), listing.margin, atol=1e-4)
    assert run.value("gap") == pytest.approx(listing.gap, rel=1e-3)
    assert run.value("gap_of") == pytest.approx(listing.gap_of, rel=1e-3)


def hostile(kind: str, rng: np.random.Generator) -> Callable[[Array, int], Round]:
    """Rounds that see the decision: random, losses that push to where the constraint will be, or both turned against it."""

    def data(c: Array, b: Array) -> Round:
        return {"c": c, "A": rng.uniform(0, 1, (2, 3)) if kind == "random" else np.ones((2, 3)), "b": b}

    if kind == "random":
        return lambda x, t: data(rng.uniform(-1, 1, 3), rng.uniform(0.2, 1.5, 2))
    if kind == "turning":
        return lambda x, t: data(np.full(3, -1.0 if (t // 40) % 2 else 1.0), np.full(2, 1.5 if t % 2 else 0.2))
    return lambda x, t: data(np.where(x > 0.2, 1.0, -1.0), np.where(np.sum(x) > 0.6, 0.2, 1.5) * np.ones(2))


@pytest.mark.parametrize("kind", ["random", thorough("turning"), "against"])
def test_regret_on_the_penalised_loss_is_what_was_paid(kind: str) -> None:
    """Against the best fixed u of the whole domain: weighted losses <= min L + 2 Delta, twice, Delta <= its own bound, and the expert's
    bound."""
    rounds, D = 160, math.sqrt(3)
    plan = plan_of(AFFINE.text(", penalty [2, 5]", rounds), "hedged")
    run, respond = Run(plan), hostile(kind, np.random.default_rng(5))
    experts = expert_count(plan.choice.situation.canonical, 1)
    played, squares, total, seen = 0.0, 0.0, np.zeros(experts), list[Round]()
    for t in range(rounds):
        (x,), before, paid = run.decisions, run.value("L")[0], run.value("L_of")
        least = 1e-4 * math.sqrt(run.value("spread"))
        weights = [softmin(L, max(gap, least)) for L, gap in zip(run.value("L"), run.value("gap"))]
        among = softmin(paid, max(run.value("gap_of"), least))
        seen.append(d := respond(x, t))
        run.play(d)
        losses = run.value("L")[0] - before
        mine = d["c"] @ x + PRICES @ np.maximum(d["A"] @ x - d["b"], 0)
        np.testing.assert_allclose(run.value("L_of") - paid, [w @ losses for w in weights], atol=1e-9)
        assert mine <= among @ np.array(weights) @ losses + 1e-9
        played, total = played + mine, total + losses
        squares += np.ptp(losses) ** 2
    (gap, _), gap_of, S = run.value("gap"), float(run.value("gap_of")), run.value("S")
    assert run.value("L_of")[0] <= total.min() + 2 * gap + 1e-6
    assert 2 * gap <= math.sqrt((4 + math.log(experts)) * squares) + 1e-6
    assert 2 * gap_of <= math.sqrt((4 + math.log(2)) * squares) + 1e-6
    u, slopes = cp.Variable(3), np.sum([d["c"] for d in seen], axis=0)
    rows, right = np.concatenate([d["A"] for d in seen]), np.concatenate([d["b"] for d in seen])
    solve(slopes @ u + np.tile(PRICES, rounds) @ cp.pos(rows @ u - right), [u >= 0, u <= 1])
    best = float(slopes @ u.value + np.tile(PRICES, rounds) @ np.maximum(rows @ u.value - right, 0))
    expert = math.sqrt(2) * D * math.sqrt(S[GRADIENTS.index((1.0, 1.0))])
    assert total[GRADIENTS.index((1.0, 1.0))] - best <= expert + 1e-6
    assert played - best <= expert + 2 * gap + 2 * gap_of + 1e-6
    assert plan.guarantee is not None
    promised = plan.guarantee.regret(rounds)
    priced = sum(math.sqrt((4 + math.log(k)) * squares) for k in (experts, 2))
    assert promised is not None and expert + priced <= promised


def softmin(L: Array, gap: float) -> Array:
    """AdaHedge's weights."""
    w = np.exp(-math.log(len(L)) / max(gap, 1e-290) * (L - L.min()))
    return np.asarray(w / w.sum())


def test_comparators_that_move_pay_for_their_path() -> None:
    """Regret of the expert against u_t that jumps, D^2 + 2 D V in the place of D^2, and of the whole with the price of the weights."""
    rounds, D, rng = 120, math.sqrt(3), np.random.default_rng(2)
    plan = plan_of(AFFINE.text(", penalty [2, 5]", rounds), "hedged")
    run, k = Run(plan), GRADIENTS.index((1.0, 1.0))
    theirs, ours, path, u = 0.0, 0.0, 0.0, np.zeros(3)
    for t in range(rounds):
        d = {
            "c": np.where(rng.uniform(size=3) < 0.5, -1.0, 1.0),
            "A": rng.uniform(0, 1, (2, 3)),
            "b": np.array([0.9, 1.2]),
        }
        if t % 20 == 0:
            moved = rng.uniform(0, 0.4, 3)
            path, u = path + (np.linalg.norm(moved - u) if t else 0.0), moved
        theirs += d["c"] @ u + PRICES @ np.maximum(d["A"] @ u - d["b"], 0)
        (x,) = run.decisions
        ours += d["c"] @ x + PRICES @ np.maximum(d["A"] @ x - d["b"], 0)
        run.play(d)
    bound = (D + (D**2 + 2 * D * path) / D) / 2 * math.sqrt(2 * run.value("S")[k])
    assert run.value("L")[0][k] - theirs <= bound + 1e-6
    assert ours - theirs <= bound + 2 * run.value("gap")[0] + 2 * run.value("gap_of") + 1e-6


def test_prices_come_from_the_model_or_from_the_setting() -> None:
    """A stated penalty is the price, whatever the tradeoff; a given setting goes before it; else the tradeoff has it."""
    stated = AFFINE.text(", penalty [2, 5]")
    rounds = drawn(AFFINE)
    by_model = trajectory(plan_of(stated, "hedged"), rounds)
    assert plan_of(stated, "hedged").settings["penalty"].value == 5
    given = trajectory(plan_of(stated, "hedged", {"penalty": 3}), rounds)
    alike = trajectory(plan_of(AFFINE.text(", penalty [3, 3]"), "hedged"), rounds)
    alone = trajectory(plan_of(AFFINE.text(), "hedged", {"penalty": 3}), rounds)
    assert max(np.abs(a[0] - b[0]).max() for a, b in zip(by_model, given)) > 1e-3
    for a, b, c in zip(given, alike, alone):
        np.testing.assert_allclose(a[0], b[0], atol=1e-9)
        np.testing.assert_allclose(a[0], c[0], atol=1e-9)
    for tradeoff in (0.1, 10.0):
        made = compile_plan(parse(AFFINE.text()), "hedged", "unit-free", tradeoff=tradeoff)
        loss_range = made.choice.situation.loss_range
        assert loss_range is not None and made.choice.winner is not None and made.choice.winner.scales is not None
        assert made.settings["penalty"].value == pytest.approx(tradeoff * loss_range / made.choice.winner.scales.loss)


@pytest.mark.parametrize("name", corners(CASES, [NAME]))
def test_prices_that_nothing_states_follow_the_slopes_that_come(name: str) -> None:
    """The listing with prices worked out anew each round; declared ranges do not enter."""
    case = CASES[name]
    plan = plan_of(case.text(), "hedged", {"units": "user"})
    weight, count = float(plan.settings["weight"].value or 0), len(case.price)
    solved = solving(plan.choice.situation.canonical, 1)
    listing = Listing(case, np.zeros(count), float(plan.settings["Q"].value or 0), solved)
    run, F, G = Run(plan), 0.0, np.zeros(count)
    for d in drawn(case):
        x = listing.decision()
        slope, rows = case.slope(x, d), case.jacobian(x, d)
        F, G = F + float(slope @ slope), G + (rows**2).sum(axis=1)
        listing.price = weight * np.sqrt(F / G)
        run.play(d)
        listing.play(d)
        np.testing.assert_allclose(run.value("L"), listing.L, rtol=1e-4, atol=1e-3)


def test_declared_ranges_change_no_decision() -> None:
    """Ranges ten times wider, with prices and steps in scales that come."""
    text, rounds = AFFINE.text(rounds=40), drawn(AFFINE, 40)
    wider = text.replace("c[3] in [-1, 1]", "c[3] in [-10, 10]").replace("b[2] in [0.2, 1.5]", "b[2] in [-6, 8]")
    data = {n: np.array([d[n] for d in rounds]) for n in rounds[0]}
    ours, theirs = (oco.compile(parse(t), "hedged").run(data) for t in (text, wider))
    np.testing.assert_allclose(theirs.decisions, ours.decisions, atol=1e-6)


@pytest.mark.parametrize("rounds", [60, thorough(120)])
def test_dearer_violations_are_fewer(rounds: int) -> None:
    """The same rounds at penalties that grow: less violation, no less loss."""
    rng = np.random.default_rng(4)
    data = {
        "c": rng.uniform(-1, 0.2, (rounds, 3)),
        "A": rng.uniform(0, 1, (rounds, 2, 3)),
        "b": rng.uniform(0.2, 1.5, (rounds, 2)),
    }
    found = []
    for price in (0.1, 1.0, 10.0):
        trace = oco.compile(parse(AFFINE.text(f", penalty {price}", rounds)), "hedged", backend="numpy").run(data)
        found.append((trace.loss.sum(), np.maximum(trace.constraints, 0).sum()))
    (l1, v1), (l2, v2), (l3, v3) = found
    assert v1 > 1.5 * v2 > 2 * v3 and l1 < l2 < l3


def test_it_is_the_default_where_no_guarantee_says_anything() -> None:
    """Prices in slopes that come stand for those that the model does not state; no data are needed."""
    text = """
model bakery
horizon T = 1000
decision x[3] in box(0, 4)
stream price[3] in [1, 3]
stream demand ~ uniform(3, 6)
minimize price @ x + 0.1 * sum_squares(x)
subject to
    served: demand - sum(x) <= 0    on average
"""
    verdict = next(v for v in explain_choice(parse(text)).verdicts if v.name == "hedged")
    assert verdict.applicability is not Applicability.REFUSED
    plan = oco.compile(parse(text))
    assert (plan.algorithm, plan.choice.vacuous) == ("hedged", True) and "in slopes that come" in plan.choice.verdicts[
        0
    ].reason
    assert oco.compile(parse(text), "coldq").algorithm == "coldq"
    longer = plan.with_horizon(2000)
    assert (longer.algorithm, longer.choice.verdicts[0].reason) == ("hedged", plan.choice.verdicts[0].reason)
    assert plan_of(AFFINE.text(), "hedged").guarantee is not None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("each round", "on average"), "binds on average"),
        (("penalty [2, 5]\n", "penalty [2, 5]\nfeedback gradient\n"), "does not give the loss as a function"),
    ],
)
def test_what_it_cannot_play_is_refused_with_its_reason(change: tuple[str, str], said: str) -> None:
    text = AFFINE.text(", penalty [2, 5]").replace("minimize", "stream j in 0..2\nminimize").replace(*change)
    verdict = next(v for v in explain_choice(parse(text)).verdicts if v.name == "hedged")
    assert any(said in r for r in verdict.reasons), verdict.reasons


def test_no_horizon_is_needed() -> None:
    text = AFFINE.text(", penalty [2, 5]")
    rounds = drawn(AFFINE)
    known, unknown = (trajectory(plan_of(t, "hedged"), rounds) for t in (text, text.replace(f"= {T}", "unknown")))
    assert all(np.array_equal(a[0], b[0]) for a, b in zip(known, unknown))


@pytest.mark.skipif(not has_compiler(), reason="no C compiler")
@pytest.mark.parametrize("size", [3, thorough(9)])
def test_c_and_fleets_decide_as_numpy_does(size: int) -> None:
    case = CASES["separable, integers"]
    plan = oco.compile(parse(case.text(", penalty 3")), "hedged")
    fleet = plan.fleet(size, backend="c")
    alone = [plan.learner(seed=k, backend=b) for k in range(size) for b in ("numpy", "c")]
    rng = np.random.default_rng(1)
    for _ in range(T):
        decided, single = np.asarray(fleet.decide()), [np.asarray(a.decide()) for a in alone]
        for k in range(size):
            np.testing.assert_allclose(single[2 * k], single[2 * k + 1], atol=1e-9)
            np.testing.assert_allclose(decided[k], single[2 * k + 1], atol=1e-9)
        rounds = [case.draw(rng) for _ in range(size)]
        fleet.observe(**{n: np.stack([d[n] for d in rounds]) for n in rounds[0]})
        for k, a in enumerate(alone):
            a.decide()
            a.observe(**rounds[k // 2])


def test_the_guarantee_counts_its_own_prices() -> None:
    """R grows with the prices; the violations are at most (R + F T) over the least of them."""
    s = situation(AFFINE.text(", penalty [2, 5]"))
    guarantee = plan_of(AFFINE.text(", penalty [2, 5]"), "hedged").guarantee
    dearer = plan_of(AFFINE.text(", penalty [4, 10]"), "hedged").guarantee
    assert guarantee is not None and dearer is not None and s.loss_range is not None
    regret, violation = guarantee.regret(100), guarantee.violation(100)
    slopes, sizes = s.inequality_bounds("lipschitz.l2"), s.inequality_bounds("upper")
    assert regret is not None and violation is not None and slopes is not None and sizes is not None
    G, M = math.sqrt(3) + PRICES @ slopes, s.loss_range + PRICES @ sizes
    experts = expert_count(s.canonical, 1)
    prices = sum(math.sqrt((4 + math.log(k)) * 100) for k in (experts, 2))
    assert regret == pytest.approx(math.sqrt(600) * G + M * prices, rel=1e-6)
    assert violation == pytest.approx((regret + s.loss_range * 100) / 2)
    assert (dearer.regret(100) or 0) > regret


def test_where_the_model_states_penalties_it_is_the_default() -> None:
    """On data, where the tradeoff has the price that no penalty states, and tuning takes a line that compiles again."""
    rng, rounds = np.random.default_rng(6), 60
    data = {"c": rng.uniform(-1, 1, (60, 3)), "A": rng.uniform(0, 1, (60, 2, 3)), "b": rng.uniform(0.2, 1.5, (60, 2))}
    stated, silent = parse(AFFINE.text(", penalty [2, 5]", rounds)), parse(AFFINE.text("", rounds))
    plan = oco.compile(stated, data=data)
    assert plan.algorithm == "hedged" and plan.choice.pilots is None
    assert "by the penalties that the model states" in str(plan.explain())
    unpriced = oco.compile(silent, data=data)
    assert unpriced.algorithm == "hedged" and "by the tradeoff, in slopes that come" in str(unpriced.explain())
    assert oco.compile(silent).algorithm != "hedged"
    tuned = oco.tune(stated, data, "hedged", seconds=0.1)
    assert oco.parse(f"{AFFINE.text(', penalty [2, 5]', rounds)}{tuned.line}\n").using is not None


@pytest.mark.parametrize("rounds", [60, thorough(120)])
def test_bounds_that_are_too_wide_change_little(rounds: int) -> None:
    """Losses and right sides may be ten times as large as those that come: what is paid differs by less than a thousandth."""
    rng = np.random.default_rng(8)
    data = {
        "c": rng.uniform(-1, 0.2, (rounds, 3)),
        "A": rng.uniform(0, 1, (rounds, 2, 3)),
        "b": rng.uniform(0.2, 1.5, (rounds, 2)),
    }
    text, paid = AFFINE.text(", penalty [2, 5]", rounds), []
    for wide in (
        text,
        text.replace("c[3] in [-1, 1]", "c[3] in [-10, 10]").replace("b[2] in [0.2, 1.5]", "b[2] in [-9, 15]"),
    ):
        trace = oco.compile(parse(wide), "hedged", backend="numpy").run(data)
        paid.append(trace.loss.sum() + (np.maximum(trace.constraints, 0) @ PRICES).sum())
    assert paid[1] == pytest.approx(paid[0], rel=1e-3)


def test_predicted_data_stay_within_their_ranges() -> None:
    text = (
        "model m\nhorizon T = 60\ndecision x[2] in box(0, 1)\nstream s[2] in [0, 20]\nminimize -sum(s * log(1 + 4 * x))\n"
        "subject to\n    used: sum(x) <= 1  each round, penalty 5\n"
    )
    learner = oco.compile(oco.parse(text), "hedged", settings={"season": 4}).learner()
    for t in range(60):
        learner.decide()
        learner.observe(s=np.full(2, 6.0 * (t % 4) if t < 30 else 0.1))
        assert learner.values["predicted"].min() >= 0 and learner.values["predicted"].max() <= 20
