"""Laws of settings without units: decisions do not change when losses, constraints and decisions are told in other units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from thorough import corners

from oco.compiler.algorithms import ALGORITHMS
from oco.compiler.problem.canonical import canonical
from oco.compiler.prover.check import check
from oco.compiler.selection.choice import choose
from oco.compiler.selection.modes import Mode
from oco.compiler.selection.plan import Plan as CorePlan
from oco.compiler.selection.plan import compile_plan
from oco.compiler.selection.request import AlgorithmRequest, Policy
from oco.compiler.theory.schedule import Rounds
from oco.compiler.theory.settings import along
from oco.compiler.theory.theorems import Situation
from oco.compiler.theory.unit_free import scales_of, unit_free
from oco.dsl.evaluate import evaluate
from oco.dsl.load import parse
from oco.dsl.model import Model
from oco.dsl.settings import WORD_SETTINGS
from oco.plan import Plan

Array = np.ndarray[Any, Any]
T = 16


@dataclass(frozen=True)
class Units:
    """x' = shift + length x, f' = loss f, g_n' = first g_1 or second g_2."""

    loss: float = 1.0
    first: float = 1.0
    second: float = 1.0
    length: float = 1.0
    shift: float = 0.0


def in_units(world: str, u: Units) -> str:
    """The model of a world in other units."""
    numbers = {n: repr(float(getattr(u, n))) for n in ("loss", "first", "second", "length", "shift")}
    lo, hi = u.shift - u.length, u.shift + 2 * u.length
    domain = {
        "box": f"box({lo!r}, {hi!r})",
        "ball": f"ball({2 * u.length!r})",
        "simplex": f"simplex({u.length!r})",
    }
    x = "((x - {shift}) / {length})" if u.shift else "(x / {length})"
    text = WORLDS[world].replace("X", x)
    for name, value in (domain | numbers).items():
        text = text.replace("{" + name + "}", value)
    return text


HEAD = f"model units\nhorizon T = {T}\n"
CURVED = "minimize {loss} * (price @ X + sum_squares(X))\n"
LINEAR = "minimize {loss} * (price @ X)\n"
TWO = (
    "subject to\n"
    "    one: {first} * (X[0] + X[1] - 0.75) <= 0                 each round\n"
    "    two: {second} * (X[0] - X[1] - need) <= 0        each round\n"
)
PRICED = TWO.replace("each round", "each round, penalty 3 * {loss} / {first}", 1).replace(
    "need) <= 0        each round", "need) <= 0  each round, penalty {loss} / {second}"
)
FIXED = "subject to\n    one: {first} * (X[0] + X[1] - 0.75) <= 0    MARK\n    two: {second} * (X[0] - X[1] - 0.5) <= 0    MARK\n"
MEAN = (
    "subject to\n"
    "    one: {first} * (X[0] + X[1] - 0.75) <= 0                 on average\n"
    "    two: {second} * (X[0] - X[1] - need) <= 0        on average\n"
)
BUDGET = "subject to\n    spend: {first} * need * (X[0] + 2 * X[1]) <= {first} * 5  in total\n"
EQUAL = MEAN.replace("(X[0] - X[1] - need) <= 0", "(X[0] - X[1] - need) == 0")
STREAMS = "stream price[3] in [-1, 1]\nstream need ~ uniform(0.25, 0.75)\n"


def _world(domain: str, loss: str, constraints: str = "", streams: str = STREAMS, more: str = "") -> str:
    return HEAD + "decision x[3] in {" + domain + "}\n" + streams + loss + constraints + more


PRICE = "stream price[3] in [-1, 1]\n"
WORLDS: Mapping[str, str] = {
    "free": _world("box", LINEAR, streams=PRICE),
    "free curved": _world("box", CURVED, streams=PRICE),
    "predicted": _world("box", CURVED, streams=PRICE + "predict price = 0.5 * last(price)\n"),
    "free simplex": _world("simplex", LINEAR, streams=PRICE),
    "each round": _world("box", LINEAR, TWO),
    "each round, ball": _world("ball", LINEAR, TWO),
    "each round, dynamic": _world("box", LINEAR, TWO, more="measure dynamic regret\n"),
    "priced": _world("box", CURVED, PRICED),
    "priced, ball": _world("ball", LINEAR, PRICED),
    "curved": _world("box", CURVED, TWO),
    "budget, simplex": _world("simplex", LINEAR, BUDGET, "context price[3] in [-1, 1]\ncontext need in [0.25, 0.75]\n"),
    "in the mean": _world("box", LINEAR, MEAN),
    "in the mean, drawn": _world("box", LINEAR, MEAN, STREAMS.replace("[-1, 1]\n", "[-1, 1] iid\n")),
    "in the mean, simplex": _world("simplex", LINEAR, MEAN),
    "in the mean, equality": _world("box", LINEAR, EQUAL),
    "fixed": _world("box", CURVED, FIXED.replace("MARK", "each round"), PRICE),
    "fixed mean": _world("box", CURVED, FIXED.replace("MARK", "on average"), PRICE),
    "fixed mean, simplex": _world("simplex", CURVED, FIXED.replace("MARK", "on average"), PRICE),
    "free bandit": _world("box", CURVED, streams=PRICE, more="feedback bandit\n"),
    "free, two points": _world("box", CURVED, streams=PRICE, more="feedback two_point\n"),
    "free simplex, two points": _world("simplex", LINEAR, streams=PRICE, more="feedback two_point\n"),
    "free bandit, simplex": _world("simplex", LINEAR, streams=PRICE, more="feedback bandit\n"),
    "bandit": _world("box", LINEAR, TWO, more="feedback bandit\n"),
    "bandit curved": _world("box", CURVED, TWO, more="feedback bandit\n"),
}
HOMES: Mapping[str, tuple[str, ...]] = {
    "ogd": ("free", "free simplex"),
    "oeg": ("free simplex",),
    "ons": ("free curved",),
    "ofw": ("free",),
    "coldq": ("each round", "curved", "each round, ball"),
    "coldq-expert": ("each round",),
    "recoo": ("each round",),
    "sinha-vaze": ("each round", "curved"),
    "distance-penalty": ("each round, dynamic", "curved"),
    "clasp": ("each round", "curved"),
    "double-queues": ("each round", "curved", "each round, ball"),
    "ofw-tvc": ("each round",),
    "scofw-tvc": ("curved",),
    "bgd": ("free bandit", "free bandit, simplex"),
    "response-surface": ("free bandit", "free bandit, simplex"),
    "two-point": ("free, two points", "free simplex, two points"),
    "bfw-tvc": ("bandit",),
    "scbfw-tvc": ("bandit curved",),
    "mirror-descent": ("in the mean", "in the mean, simplex", "in the mean, equality"),
    "projection-free": ("in the mean",),
    "projection-free ocg": ("in the mean",),
    "projection-free ospf": ("in the mean",),
    "projection-free orgfw": ("in the mean, drawn",),
    "projection-free sftrl": ("in the mean",),
    "meta-frank-wolfe": ("in the mean",),
    "dpp": ("in the mean",),
    "mirror-prox": ("fixed mean", "fixed mean, simplex"),
    "yu-neely": ("fixed mean",),
    "mahdavi": ("fixed mean",),
    "jenatton": ("fixed mean",),
    "pfs": ("fixed",),
    "nested": ("each round", "curved", "each round, ball", "fixed"),
    "hedged": ("priced", "priced, ball"),
    "optimistic": ("predicted",),
    "pacing": ("budget, simplex",),
}
CASES = [(name, world) for name, worlds in HOMES.items() for world in worlds]


def test_every_algorithm_has_a_home() -> None:
    assert {name.split()[0] for name in HOMES} == {a.name for a in ALGORITHMS} - {
        "tsallis-inf"
    }  # arms are 0 and 1 in every unit
    oracles = {name.split()[1] for name in HOMES if name.startswith("projection-free ")}
    assert oracles == set(WORD_SETTINGS["oracle"])


@cache
def problem_of(world: str, u: Units) -> tuple[Model, Situation]:
    """Model of a world and its facts, which all algorithms share."""
    model = parse(in_units(world, u))
    problem = canonical(model)
    return model, Situation(problem.learned, check(model), problem.horizon)


@cache
def planned(world: str, name: str, u: Units, searched: bool = True) -> Plan:
    model, s = problem_of(world, u)
    algorithm, *oracle = name.split()
    mode = Mode.LEAST if searched else Mode.UNIT_FREE
    choice = choose(s, AlgorithmRequest(algorithm, {"oracle": oracle[0]} if oracle else {}, None, Policy(mode)))
    return Plan.of(CorePlan(model, s.canonical.standing, s.facts, choice, mode))


@cache
def decisions(world: str, name: str, u: Units, searched: bool) -> Array:
    """The decisions of rounds 1..T on data that does not hang on the units."""
    plan = planned(world, name, u, searched)
    rng = np.random.default_rng(7)
    learner = plan.learner(seed=3)
    found = []
    for _ in range(T - 1):
        given = {"price": rng.uniform(-1, 1, 3), "need": rng.uniform(0.25, 0.75)}
        known = {n: given.pop(n) for n in learner.compiled.program.context}
        x = learner.decide(**known)
        found.append(x)
        if "bandit" not in world and "two points" not in world:
            learner.observe(
                **{k: v for k, v in given.items() if k in {f.name for f in learner.compiled.program.feedback}}
            )
            continue
        env = {"x": x, **given}
        problem = plan.canonical
        g = [float(evaluate(c.expr, env)) for c in problem.inequalities]
        limits = {"constraints": np.array(g)} if g else {}
        if "two points" in world:
            limits["second_loss"] = float(evaluate(problem.objective, {**env, "x": learner.second_point()}))
        learner.observe(loss=float(evaluate(problem.objective, env)), **limits)
    return np.array([*found, learner.decide(**known)])


LAST = {(name, worlds[-1]) for name, worlds in HOMES.items()}
FEW = sorted(LAST)[::5]
SEARCHED = {(*case, case in FEW) for case in LAST}
"""Free constants of a fifth are searched for; the others have the paper's."""
each_case = pytest.mark.parametrize(
    ("name", "world", "searched"),
    corners([(*case, searched) for case in CASES for searched in (True, False)], SEARCHED),
)
POWERS_OF_TWO = Units(2.0**20, 2.0**-20, 2.0**13, 2.0**-20), Units(2.0**-20, 2.0**20, 2.0**-13, 2.0**20)


def powers_of_two(name: str, world: str) -> Units:
    """Every other case goes to the opposite corner."""
    return POWERS_OF_TWO[CASES.index((name, world)) % 2]


@each_case
def test_powers_of_two_change_no_bit(name: str, world: str, searched: bool) -> None:
    as_it_is, u = decisions(world, name, Units(), searched), powers_of_two(name, world)
    assert np.isfinite(as_it_is).all()
    np.testing.assert_array_equal(decisions(world, name, u, searched) / u.length, as_it_is)


BY_MINIMISATION = {
    "ofw",
    "ofw-tvc",
    "scofw-tvc",
    "bfw-tvc",
    "scbfw-tvc",
    "projection-free",
    "meta-frank-wolfe",
    "pacing",
}
"""A tie of a linear minimisation may turn on the last bit: one step each from the same state."""


@pytest.mark.parametrize(("name", "world"), corners(CASES, FEW))
def test_powers_of_ten_change_little(name: str, world: str) -> None:
    as_it_is = decisions(world, name, Units(), True)
    shift = 1e3 if "simplex" not in world and "ball" not in world else 0.0
    u = Units(1e6, 1e-3, 1e2, 1e3, shift)
    found = (decisions(world, name, u, True) - u.shift) / u.length
    rounds = 2 if name.split()[0] in BY_MINIMISATION else len(found)
    np.testing.assert_allclose(found[:rounds], as_it_is[:rounds], rtol=0, atol=1e-6)


@each_case
def test_guarantees_come_back_in_the_users_units(name: str, world: str, searched: bool) -> None:
    u = powers_of_two(name, world)
    ours, theirs = (planned(world, name, units, searched).guarantee for units in (Units(), u))
    if name == "response-surface":  # nothing is promised of it
        assert ours is None and theirs is None
        return
    assert ours is not None and theirs is not None
    regret = ours.regret()
    assert theirs.regret() == (None if regret is None else u.loss * regret)
    if ours.violation_bound is not None and theirs.violation_bound is not None:
        each = ours.violation_bound.label_numbers(T)
        expected = {label: x * {"one": u.first, "two": u.second}[label] for label, x in each.items()}
        assert theirs.violation_bound.label_numbers(T) == expected


@pytest.mark.parametrize("world", ["each round", "in the mean, simplex", "curved"])
def test_the_problem_without_units_is_the_problem(world: str) -> None:
    """Its functions at u are those at c + R u over the scales, and its facts bound them."""
    plan = planned(world, "coldq" if world != "in the mean, simplex" else "mirror-descent", Units(), False)
    s = plan.choice.situation
    scales = scales_of(s)
    inner = unit_free(s, scales)
    rng = np.random.default_rng(0)
    block = inner.canonical.blocks[0]
    for u in block.domain.sample(rng, 20):
        x = scales.origins[0] + scales.radius * u
        assert s.canonical.blocks[0].domain.contains(x)
        env = {"price": rng.uniform(-1, 1, 3), "need": 0.5}
        f, f_u = (float(evaluate(c.objective, {"x": v, **env})) for c, v in ((s.canonical, x), (inner.canonical, u)))
        assert f_u == pytest.approx(f / scales.loss, rel=1e-9, abs=1e-12)
        assert abs(f_u) <= inner.facts["loss.bound"].value * (1 + 1e-12)
        for c, c_u, size in zip(s.canonical.inequalities, inner.canonical.inequalities, scales.inequalities):
            g, g_u = (float(evaluate(e, {"x": v, **env})) for e, v in ((c.expr, x), (c_u.expr, u)))
            assert g_u == pytest.approx(g / size, rel=1e-9, abs=1e-12)
            assert abs(g_u) <= 1 + 1e-12
    assert inner.facts["loss.lipschitz.l2"].value == pytest.approx(1)
    assert block.domain.radius <= 1 + 1e-12


def test_paper_settings_carry_the_users_units() -> None:
    """They are literal: another currency gives other decisions."""
    model = "model m\nhorizon T = 24\ndecision x[2] in box(0, 1)\nstream p[2] in [-1, 1]\nminimize {c} * p @ x\n" + (
        "subject to\n    g: x[0] + x[1] - 1 <= 0    each round\n"
    )
    cheap, expensive = (compile_plan(parse(model.replace("{c}", c)), "coldq", "paper") for c in ("1", "1000"))
    assert str(cheap.settings["alpha"].formula) == str(expensive.settings["alpha"].formula) == "sqrt(t)"
    rng = np.random.default_rng(0)
    data = {"p": rng.uniform(-1, 1, (24, 2))}
    a, b = (Plan.of(plan).run(data).decisions for plan in (cheap, expensive))
    assert np.abs(a - b).max() > 0.1


WEIGHS = {"coldq", "coldq-expert", "double-queues", "projection-free", "meta-frank-wolfe", "mahdavi", "jenatton"}
"""Queues that are multipliers: loss per unit of their constraint. The others add up values of constraints."""
WORST = {"jenatton", "sinha-vaze", "ofw-tvc", "scofw-tvc", "bfw-tvc", "scbfw-tvc"}
"""One queue for the worst constraint, whose scales differ here: its sums have no unit."""


@each_case
def test_queues_come_back_in_the_users_units(name: str, world: str, searched: bool) -> None:
    rng = np.random.default_rng(7)
    given = {"price": rng.uniform(-1, 1, (T, 3)), "need": rng.uniform(0.25, 0.75, T)}
    data = {
        n: values
        for n, values in given.items()
        if any(f"{word} {n}" in WORLDS[world] for word in ("stream", "context"))
    }
    u = powers_of_two(name, world)
    ours, theirs = (planned(world, name, units, searched).run(data, seed=3).duals for units in (Units(), u))
    if not ours.shape[1]:
        assert name in (
            "ogd",
            "oeg",
            "ons",
            "ofw",
            "pfs",
            "bgd",
            "response-surface",
            "two-point",
            "nested",
            "sinha-vaze",
            "distance-penalty",
            "clasp",
            "hedged",
            "optimistic",
            "pacing",
        )
        return
    own = np.array([1.0, 1.0] if name in WORST else [u.first, u.second])
    unit = u.loss / own if name.split()[0] in WEIGHS else own
    columns = ours.shape[1] if name not in WORST else 1
    assert ours.shape[1] == columns
    assert ours.any() or (name, world) == ("mirror-descent", "in the mean, simplex")  # nothing is broken there
    np.testing.assert_array_equal(theirs, ours * np.resize(unit, columns))


def test_a_queue_is_the_weight_of_the_constraint_in_the_users_step() -> None:
    """coldq: x_{t+1} minimizes <grad f_t, x> + alpha_t |x - x_t|^2 + Q_t [g_t(x)]_+, all in the user's units, for the trace's Q_t."""
    text = "model m\nhorizon T = 12\ndecision x in box(2, 10)\nstream p in [-3, 3]\nminimize 50 * p * x\n"
    plan = Plan.of(
        compile_plan(parse(text + "subject to\n    cap: 7 * x - 30 <= 0    each round\n"), "coldq", "optimal")
    )
    prices = np.random.default_rng(1).uniform(-3, 3, 12)
    trace, winner = plan.run({"p": prices}), plan.choice.winner
    assert winner is not None and winner.scales is not None
    grid, steps = np.linspace(2, 10, 800_001), along(plan.settings["alpha"].formula, Rounds.every(12), 12).last
    for t in range(1, 12):
        alpha = steps[t - 1] * winner.scales.loss / winner.scales.radius**2
        x, Q = trace.decisions[t - 1], trace.duals[t - 1, 0]
        worth = 50 * prices[t - 1] * grid + alpha * (grid - x) ** 2 + Q * np.maximum(7 * grid - 30, 0)
        assert trace.decisions[t] == pytest.approx(grid[worth.argmin()], abs=1e-4)
