"""`nested` against its listing written out with CVXPY over all past constraints, its bounds on hostile sequences, and its memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from driving import Array, Round, Run, plan_of, situation, solve, solved, trajectory
from test_c99 import has_compiler
from thorough import corners, turns

from oco.compiler.algorithms.memory import MemoryForm, kept_of, memory_of, violation_bounds
from oco.compiler.problem.canonical import canonical
from oco.compiler.selection.judging import judge
from oco.compiler.selection.plan import Plan as CompiledPlan
from oco.compiler.selection.plan import compile_plan
from oco.dsl.load import parse
from oco.plan import Plan

T = 24


@cache
def nested_plan(text: str) -> CompiledPlan:
    return compile_plan(parse(text), "nested")


@dataclass(frozen=True)
class Case:
    """A model with linear losses c @ x; `limits` are the constraints of a round as CVXPY expressions that are at most 0."""

    domain: str
    streams: str
    constraints: str
    draw: Callable[[np.random.Generator], Round]
    limits: Callable[[Round, Any], list[Any]]
    convex: Callable[[Any], list[Any]]
    diameter: float
    most: float
    """What no value of a constraint in the domain exceeds."""
    form: MemoryForm
    start: float = 0.0

    def text(self, rest: str = "") -> str:
        streams = "\n".join(f"stream {s}" for s in ("c[3] in [-1, 1]", *self.streams.split("; ")) if s)
        head = f"model m\nhorizon T = {T}\ndecision x[3] in {self.domain}\n{streams}\nminimize c @ x\n"
        return f"{head}subject to\n    limit: {self.constraints} each round\n{rest}"


def _box(x: Any) -> list[Any]:
    return [x >= 0, x <= 1]


def _ball(x: Any) -> list[Any]:
    return [cp.norm2(x) <= 1]


CASES = {
    "additive, affine": Case(
        "box(0, 1)",
        "b[2] in [0.4, 2]",
        "[[1, 2, 0.5], [0.3, 0, 1]] @ x <= b",
        lambda rng: {"b": rng.uniform(0.4, 2, 2)},
        lambda d, x: [np.array([[1, 2, 0.5], [0.3, 0, 1]]) @ x - d["b"]],
        _box,
        math.sqrt(3),
        3.1,
        MemoryForm.ADDITIVE,
        0.5,
    ),
    "additive, separable": Case(
        "box(0, 1)",
        "b in [0, 2]",
        "b - 2 * sum(log(1 + 4 * x)) <= 0",
        lambda rng: {"b": rng.uniform(0, 2)},
        lambda d, x: [d["b"] - 2 * cp.sum(cp.log(1 + 4 * x))],
        _box,
        math.sqrt(3),
        2.0,
        MemoryForm.ADDITIVE,
        0.5,
    ),
    "additive in a ball, smooth": Case(
        "ball(1)",
        "r in [0.2, 1]",
        "sum_squares(x - 0.2) <= r + 0.1 * exp(r)",
        lambda rng: {"r": rng.uniform(0.2, 1)},
        lambda d, x: [cp.sum_squares(x - 0.2) - d["r"] - 0.1 * np.exp(d["r"])],
        _ball,
        2.0,
        1.6,
        MemoryForm.ADDITIVE,
    ),
    "additive in a ball, kinks": Case(
        "ball(1)",
        "r in [0.2, 1]",
        "max(x) + 0.5 * x[0] <= r",
        lambda rng: {"r": rng.uniform(0.2, 1)},
        lambda d, x: [cp.max(x) + 0.5 * x[0] - d["r"]],
        _ball,
        2.0,
        1.3,
        MemoryForm.ADDITIVE,
    ),
    "monotone, entry by entry": Case(
        "box(0, 1)",
        "load[3] in [0.5, 3]",
        "load * x <= 0.8",
        lambda rng: {"load": rng.uniform(0.5, 3, 3)},
        lambda d, x: [cp.multiply(d["load"], x) - 0.8],
        _box,
        math.sqrt(3),
        2.2,
        MemoryForm.MONOTONE,
        0.5,
    ),
    "finite": Case(
        "box(0, 1)",
        "k in 0..2",
        "x[k] - 0.3 * sum(x) <= 0.1",
        lambda rng: {"k": rng.integers(0, 3)},
        lambda d, x: [x[int(d["k"])] - 0.3 * cp.sum(x) - 0.1],
        _box,
        math.sqrt(3),
        0.6,
        MemoryForm.FINITE,
        0.5,
    ),
    "finite, of many values": Case(
        "box(0, 1)",
        "k in 0..40",
        "(k - 20) * (x[0] - 0.5) + x[1] <= 2",
        lambda rng: {"k": rng.integers(0, 41)},
        lambda d, x: [(int(d["k"]) - 20) * (x[0] - 0.5) + x[1] - 2],
        _box,
        math.sqrt(3),
        9.0,
        MemoryForm.FINITE,
        0.5,
    ),
    "fixed": Case(
        "ball(1)",
        "",
        "sum(x) <= 0.2",
        lambda rng: {},
        lambda d, x: [cp.sum(x) - 0.2],
        _ball,
        2.0,
        1.6,
        MemoryForm.FIXED,
    ),
}


def drawn(case: Case, seed: int = 3) -> list[Round]:
    rng = np.random.default_rng(seed)
    return [{"c": rng.uniform(-1, 1, 3), **case.draw(rng)} for _ in range(T)]


def listing(case: Case, rounds: Sequence[Round], window: int = T) -> list[Array]:
    """x_{t+1} = the projection of x_t - eta_t c_t onto the domain under the constraints of the last rounds, all of them written out: those
    of the other rounds are loosened so far that no decision of the domain breaks them.
    """
    x, squares = np.full(3, case.start), 0.0
    found, v, y, loose = [x], cp.Variable(3), cp.Parameter(3), cp.Parameter(len(rounds), nonneg=True)
    every = [g <= loose[k] for k, d in enumerate(rounds) for g in case.limits(d, v)]
    problem = cp.Problem(cp.Minimize(cp.sum_squares(v - y)), [*case.convex(v), *every])
    for t, d in enumerate(rounds):
        squares += float(d["c"] @ d["c"])
        y.value = x - math.sqrt(2) * case.diameter / (2 * math.sqrt(squares)) * d["c"]
        loose.value = [0.0 if t - window < k <= t else case.most for k in range(len(rounds))]
        solved(problem)
        x = np.asarray(v.value)
        found.append(x)
    return found


@pytest.mark.parametrize("name", corners(CASES, [name for name in CASES if name != "additive in a ball, smooth"]))
def test_decisions_equal_the_listing(name: str) -> None:
    case = CASES[name]
    rounds = drawn(case)
    ours = trajectory(nested_plan(case.text()), rounds)
    worst = max(float(np.linalg.norm(a[0] - b)) for a, b in zip(ours, listing(case, rounds), strict=True))
    assert worst <= 2e-6 * case.diameter


@pytest.mark.parametrize("name", ["additive, affine", "monotone, entry by entry", "finite"])
def test_a_window_keeps_the_last_rounds(name: str) -> None:
    case = CASES[name]
    rounds = drawn(case)
    ours = trajectory(compile_plan(parse(case.text()), algorithm="nested", settings={"window": 4}), rounds)
    worst = max(float(np.linalg.norm(a[0] - b)) for a, b in zip(ours, listing(case, rounds, 4), strict=True))
    assert worst <= 2e-6 * case.diameter


@pytest.mark.parametrize("name", CASES)
def test_constraints_are_recognised(name: str) -> None:
    (kept,) = kept_of(situation(CASES[name].text()).canonical)
    assert kept.form is CASES[name].form and not kept.inner


@pytest.mark.parametrize(
    ("constraint", "form", "inner"),
    [
        ("a @ x <= b", MemoryForm.MONOTONE, True),
        ("a * x <= b", MemoryForm.MONOTONE, True),
        ("x / (1 + a) <= 0.5", MemoryForm.MONOTONE, False),
        ("x[0] + t * 0.01 <= b", MemoryForm.ADDITIVE, False),
        ("t * x[0] <= 1", None, False),
        ("(a - 0.5) * x <= 0.5", MemoryForm.MONOTONE, False),
        ("a * (x - 0.5) <= 0.5", None, False),
        ("exp(a) * x <= 1", MemoryForm.MONOTONE, False),
        ("max(x) - b <= 0", MemoryForm.ADDITIVE, False),
        ("x <= max(a)", MemoryForm.ADDITIVE, False),
        ("x[k] * a[0] <= 1", None, False),
    ],
)
def test_forms(constraint: str, form: MemoryForm | None, inner: bool) -> None:
    text = (
        "model m\nhorizon T = 9\ndecision x[3] in box(0, 1)\nstream a[3] in [0, 1]\nstream b in [0, 1]\nstream k in 0..2\n"
        f"minimize a @ x\nsubject to\n    limit: {constraint} each round\n"
    )
    problem = canonical(parse(text))
    (kept,) = kept_of(problem)
    assert (kept.form, kept.inner) == (form, inner), kept.why
    assert (memory_of(problem) is None) == (form is None)


def test_what_cannot_be_kept_is_refused_with_its_reason() -> None:
    text = CASES["fixed"].text().replace("sum(x) <= 0.2", "c @ x <= 0.2")
    verdict = judge(
        next(v.algorithm for v in compile_plan(parse(text)).verdicts if v.name == "nested"), situation(text)
    )
    assert any("is not monotone in `c` over the domain" in r for r in verdict.reasons)
    mean = CASES["additive, affine"].text().replace("each round", "on average")
    verdict = judge(verdict.algorithm, situation(mean))
    assert any("binds on average" in r for r in verdict.reasons)


def test_many_values_are_for_those_who_ask() -> None:
    """A flag for each of 41 values takes long, and memory for each of a million is not there."""
    text = CASES["finite, of many values"].text()
    found = next(v for v in compile_plan(parse(text)).verdicts if v.name == "nested")
    assert any("has 41 values of `k`: a flag each" in r for r in found.reasons)
    asked = next(v for v in compile_plan(parse(text), algorithm="nested").verdicts if v.name == "nested")
    assert asked.reasons == ("the model or the caller asks for it",)
    (kept,) = kept_of(situation(text.replace("0..40", "0..1000000")).canonical)
    assert kept.form is None and "too many values to keep a flag for each" in kept.why


def hostile(kind: str, rng: np.random.Generator, rounds: int) -> list[Callable[[Array], Round]]:
    """Rounds that see the decision: random, one step worse each time, or losses that push into what is not seen yet."""
    if kind == "random":
        return [lambda x: {"c": rng.uniform(-1, 1, 3), "b": rng.uniform(0.4, 2, 2)}] * rounds
    if kind == "creeping":
        return [lambda x, t=t: {"c": -np.ones(3), "b": np.full(2, 2 - 1.6 * t / rounds)} for t in range(rounds)]  # type: ignore[misc]
    return [lambda x: {"c": np.where(x > 0.25, 1.0, -1.0), "b": np.full(2, rng.choice([0.4, 2]))}] * rounds


@pytest.mark.parametrize("kind", ["random", "creeping", "against"])
def test_bounds_hold_and_violations_telescope(kind: str) -> None:
    """Regret against the best decision in S_T <= sqrt(2) D sqrt(sum |c|^2); violation <= max(phi(x_1), b_1) - min b, entry by entry, and
    equal where the decision rests on the constraint."""
    A, rng, rounds = np.array([[1, 2, 0.5], [0.3, 0, 1]]), np.random.default_rng(5), 60
    run, D = Run(plan_of(CASES["additive, affine"].text(), "nested")), math.sqrt(3)
    losses, squares, excess, slopes, seen = 0.0, 0.0, np.zeros(2), np.zeros(3), list[Array]()
    first = run.decisions[0]
    for respond in hostile(kind, rng, rounds):
        (x,) = run.decisions
        data = respond(x)
        losses, squares, slopes = losses + data["c"] @ x, squares + data["c"] @ data["c"], slopes + data["c"]
        excess += np.maximum(A @ x - data["b"], 0)
        seen.append(data["b"])
        run.play(data)
    u = cp.Variable(3)
    solve(slopes @ u, [*_box(u), A @ u <= np.min(seen, axis=0)])
    assert losses - slopes @ u.value <= math.sqrt(2) * D * math.sqrt(squares)
    telescoped = np.maximum(A @ first, seen[0]) - np.min(seen, axis=0)
    assert (excess <= telescoped + 1e-9).all()
    if kind == "creeping":  # losses push the decision against the first constraint, which is all that stops it
        assert excess[0] == pytest.approx(telescoped[0], rel=1e-6) and excess[0] > 1
    assert (
        telescoped.sum()
        <= violation_bounds(situation(CASES["additive, affine"].text()).canonical, (math.inf,) * 2).sum()
    )


@pytest.mark.parametrize(("name", "sign"), turns([*CASES], [1.0, -1.0]))
def test_violation_stays_below_the_guarantee(name: str, sign: float) -> None:
    """From the corner of the domain where losses push, on draws that get worse: the number of the plan bounds what happens."""
    case = CASES[name]
    plan = nested_plan(case.text())
    assert plan.guarantee is not None
    bound = plan.guarantee.violation(T)
    assert bound is not None and math.isfinite(bound)
    rng = np.random.default_rng(11)
    rounds = [{"c": np.full(3, sign), **case.draw(rng)} for _ in range(T)]
    total = 0.0
    for (x,), d in zip(trajectory(plan, rounds), rounds):
        v = cp.Variable(3, value=x)
        total += sum(float(np.maximum(g.value, 0).sum()) for g in case.limits(d, v))
    assert total <= bound + 1e-9


def test_where_nothing_satisfies_the_memory_it_is_broken_least_and_begins_anew() -> None:
    """x0 >= a0 and x0 + x1 <= a1 with a0 > a1 leave nothing. The decision has the least sum of violations, and of these is nearest; what is
    kept then is that round alone.
    """
    text = (
        "model m\nhorizon T = 9\ndecision x[2] in box(0, 1)\nstream c[2] in [-1, 1]\nstream a[2] in [0, 1]\nminimize c @ x\n"
        "subject to\n    low: a[0] - x[0] <= 0 each round\n    high: x[0] + x[1] - a[1] <= 0 each round\n"
    )
    run = Run(plan_of(text, "nested"))
    rng = np.random.default_rng(1)
    low, high, squares = 0.0, 1.0, 0.0
    for a in ([0.3, 0.9], [0.8, 0.9], [0.8, 0.5], [0.2, 0.2], [1.0, 0.0]):
        (x,), c = run.decisions, rng.uniform(-1, 1, 2)
        squares += c @ c
        y = x - math.sqrt(2) / math.sqrt(2 * squares) * c
        run.play({"c": c, "a": a})
        low, high = max(low, a[0]), min(high, a[1])
        v = cp.Variable(2)
        broken = cp.pos(low - v[0]) + cp.pos(v[0] + v[1] - high)
        solve(broken, [v >= 0, v <= 1])
        solve(cp.sum_squares(v - y), [v >= 0, v <= 1, broken <= float(broken.value) + 1e-10])
        assert np.linalg.norm(run.decisions[0] - v.value) <= 1e-5
        if low > high:
            low, high = a


def test_one_impossible_round_is_not_obeyed_for_ever() -> None:
    """A round that contradicts what is kept empties the memory, and the round after it once more; then decisions satisfy what comes."""
    text = (
        "model m\nhorizon T = 40\ndecision x in box(0, 1)\nstream c in [-1, 1]\nstream a[2] in [0, 1]\nminimize c * x\n"
        "subject to\n    low: a[0] - x <= 0 each round\n    high: x - a[1] <= 0 each round\n"
    )
    run, rng, broken = Run(plan_of(text, "nested")), np.random.default_rng(2), list[bool]()
    for t in range(40):
        (x,), a = run.decisions, (0.9, 1.0) if t == 10 else (0.2, 0.6)
        broken.append(not a[0] - 1e-6 <= float(x) <= a[1] + 1e-6)
        run.play({"c": rng.uniform(-1, 1), "a": np.array(a)})
    assert broken[10] and not any(broken[13:])


@pytest.mark.skipif(not has_compiler(), reason="no C compiler")
def test_memories_that_are_emptied_are_the_same_in_c_and_in_fleets() -> None:
    """Rounds that contradict each other now and then: learners in NumPy and C, and two of a fleet, agree."""
    text = CASES["additive, affine"].text().replace("b[2] in [0.4, 2]", "b[2] in [-2, 2]")
    plan, rng = nested_plan(text), np.random.default_rng(4)
    learners, fleet = [Plan.of(plan, backend).learner() for backend in ("numpy", "c")], Plan.of(plan, "c").fleet(2)
    emptied = 0
    for _ in range(T):
        c, b = rng.uniform(-1, 1, 3), rng.choice([-2.0, 1.0, 2.0], size=2, p=[0.2, 0.4, 0.4])
        first, second = (learner.decide() for learner in learners)
        np.testing.assert_allclose(first, second, atol=1e-9)
        np.testing.assert_allclose(fleet.decide(), [second, second], atol=1e-12)
        emptied += bool((b < 0).any())
        for learner in learners:
            learner.observe(c=c, b=b)
        fleet.observe(c=np.stack([c, c]), b=np.stack([b, b]))
    assert emptied > 2


@pytest.mark.parametrize("narrow", [1e-3, 1e-5, 0.0])
def test_a_memory_that_something_satisfies_is_never_begun_anew(narrow: float) -> None:
    """One point, or little more, is left: later rounds that allow all are not what is kept."""
    text = (
        "model m\nhorizon T = 60\ndecision x[2] in box(0, 1)\nstream c[2] in [-100, 100]\nstream a[2] in [0, 2]\nminimize c @ x\n"
        "subject to\n    low: a[0] - sum(x) <= 0 each round\n    high: sum(x) - a[1] <= 0 each round\n"
    )
    run, rng = Run(plan_of(text, "nested")), np.random.default_rng(3)
    for t in range(60):
        if t > 5:
            assert abs(float(np.sum(run.decisions[0])) - 0.7) <= narrow + 1e-6
        run.play({"c": rng.uniform(-100, 100, 2), "a": np.array((0.7, 0.7 + narrow) if t == 5 else (0.0, 2.0))})


def test_strongly_convex_losses_take_their_own_steps() -> None:
    text = CASES["additive, affine"].text().replace("minimize c @ x", "minimize c @ x + sum_squares(x)")
    plan = nested_plan(text)
    assert plan.guarantee is not None and plan.guarantee.regret_bound.rate == "log(T)"
    rounds = drawn(CASES["additive, affine"])
    A, x, least = np.array([[1, 2, 0.5], [0.3, 0, 1]]), np.full(3, 0.5), np.full(2, math.inf)
    for t, (d, ours) in enumerate(zip(rounds, trajectory(plan, rounds)[1:]), start=1):
        least, v = np.minimum(least, d["b"]), cp.Variable(3)
        solve(cp.sum_squares(v - x + (d["c"] + 2 * x) / (2 * t)), [*_box(v), A @ v <= least])
        x = np.asarray(v.value)
        assert np.linalg.norm(ours[0] - x) <= 1e-6


def test_no_horizon_is_needed() -> None:
    text = CASES["additive, affine"].text().replace(f"horizon T = {T}", "horizon T unknown")
    plan = nested_plan(text)
    rounds = drawn(CASES["additive, affine"])
    known = trajectory(nested_plan(CASES["additive, affine"].text()), rounds)
    assert all(np.array_equal(a, b) for a, b in zip(trajectory(plan, rounds), known))
    assert plan.guarantee is not None and plan.guarantee.violation(10**6) == plan.guarantee.violation(10)


@pytest.mark.parametrize("name", ["job_scheduling", "online_qp", "tracking"])
def test_the_guarantee_says_something_on_every_example_that_it_fits(name: str) -> None:
    text = (Path(__file__).parent.parent / "examples" / f"{name}.oco").read_text()
    plan = nested_plan(text.replace("dynamic regret", "static regret"))
    guarantee = plan.guarantee
    assert guarantee is not None and guarantee.horizon is not None
    for bound in guarantee.bounds:
        share = bound.share(guarantee.horizon)
        assert share is not None and share < 0.1
