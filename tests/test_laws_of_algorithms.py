"""Laws of every algorithm in the table: decisions in the domain, no look ahead, and no more regret and violation than promised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from law_worlds import (
    REGIONS,
    ROUNDS,
    Array,
    Life,
    Streams,
    World,
    centre,
    covering,
    draws_of,
    lives,
    plan_in,
    plan_where_it_holds,
    play,
    theorem_of,
)
from test_c99 import has_compiler
from thorough import thorough, turns

from oco.compiler.algorithms import ALGORITHMS, Algorithm
from oco.compiler.algorithms.lee2023 import ORACLES
from oco.compiler.ir import interpret
from oco.compiler.lowering.points import Geometry, Point
from oco.compiler.selection.plan import Plan
from oco.compiler.theory.theorems import Violation

pytestmark = pytest.mark.skipif(not has_compiler(), reason="no C compiler")
PROMISING = tuple(a for a in ALGORITHMS if a.promises)
each_algorithm = pytest.mark.parametrize("algorithm", PROMISING, ids=lambda a: a.name)
worlds = pytest.mark.parametrize("every", [False, thorough(True)], ids=["some", "every"])


def lives_of(algorithm: Algorithm, every: bool) -> list[tuple[Life, Plan]]:
    """Worlds of each method of an algorithm: all, or as few as have all its theorems, with a constraint and without."""
    found = lives(algorithm.name, ROUNDS, variants=True)
    assert found, f"no world here meets the hypotheses of {algorithm.name}"
    return found if every else covering(found)


@worlds
@each_algorithm
def test_decisions_lie_in_the_domain(algorithm: Algorithm, every: bool) -> None:
    for life, plan in lives_of(algorithm, every):
        for sequence in life.world.sequences:
            streams = life.world.draw(sequence, np.random.default_rng(1), ROUNDS)
            x = play(plan, streams, 2).decisions
            assert REGIONS[life.world.region].outside(x).max() <= 1e-9, (str(life), sequence)


@worlds
@each_algorithm
def test_the_past_does_not_depend_on_the_future(algorithm: Algorithm, every: bool) -> None:
    """Another future from round t on leaves the decisions of rounds 1..t as they are, bit for bit; somewhere they part later. A context
    of round t is known to its decision.
    """
    parted = False
    for life, plan in lives_of(algorithm, every):
        one, other = (life.world.draw("coins", np.random.default_rng(seed), ROUNDS) for seed in (3, 4))
        x = play(plan, one, 5).decisions
        for turn in (0, 1, ROUNDS // 2):
            mixed = {name: np.concatenate([one[name][:turn], other[name][turn:]]) for name in one}
            y = play(plan, mixed, 5).decisions
            same = turn if plan.program.context else turn + 1
            assert np.array_equal(x[:same], y[:same]), str(life)
            parted = parted or not np.array_equal(x, y)
    assert parted


def never_above(measured: Array, bound: Array | None) -> None:
    assert bound is None or (measured <= bound * (1 + 1e-9) + 1e-9).all()


def kept_promise(life: Life, plan: Plan, sequence: str, seeds: range) -> None:
    """The mean over seeds where the theorem is one about expectations, else every run; after a quarter of the rounds, a half and all."""
    assert plan.guarantee is not None
    streams = [life.world.draw(sequence, np.random.default_rng([6, s]), ROUNDS) for s in seeds]
    runs = [play(plan, s, seed) for s, seed in zip(streams, seeds)]
    bounds = plan.guarantee.regret_curve(ROUNDS), plan.guarantee.violation_curve(ROUNDS)
    over = np.mean if theorem_of(plan).expected else np.max
    for stop in (ROUNDS // 4, ROUNDS // 2, ROUNDS):
        cut = [({n: v[:stop] for n, v in s.items()}, r.first(stop)) for s, r in zip(streams, runs)]
        measured = (
            over([life.regret(plan, s, r) for s, r in cut]),
            over([life.violation(plan, r) for _, r in cut]),
        )
        for value, bound in zip(measured, bounds):
            assert bound is None or value <= bound[stop - 1] * (1 + 1e-9) + 1e-9, (str(life), sequence, stop)


@worlds
@each_algorithm
def test_no_more_regret_and_violation_than_promised(algorithm: Algorithm, every: bool) -> None:
    for life, plan in lives_of(algorithm, every):
        for sequence in life.world.sequences:
            kept_promise(life, plan, sequence, range(8 if theorem_of(plan).expected else 1 + every))


GAME = """
model game
horizon T = {rounds}
decision x in box(1, 4)
stream s in [0, 1]
minimize 0.25 * square(x) + 0 * s
subject to
    floor: 2 - x <= 0 {timing}
"""


@pytest.mark.parametrize(
    ("algorithm", "timing"),
    turns(ALGORITHMS, ("each round", "on average")),
    ids=lambda value: getattr(value, "name", value),
)
def test_a_start_that_violates(algorithm: Algorithm, timing: str) -> None:
    """X = [1, 4], f = x^2 / 4, g = 2 - x from x_1 = 1.5: methods with a small weight on g violate every round; the best is x = 2."""
    plan = plan_where_it_holds(GAME.format(rounds=ROUNDS, timing=timing), algorithm.name)
    if plan is None:
        pytest.skip(f"no theorem of {algorithm.name} speaks of this game")
    assert plan.guarantee is not None
    streams, start = {"s": np.zeros(ROUNDS)}, centre(plan) if plan.guarantee.from_centre else [np.array(1.5)]
    hard = theorem_of(plan).violation is Violation.HARD
    runs = [play(plan, streams, seed, start) for seed in range(8 if theorem_of(plan).expected else 1)]
    x = np.stack([r.decisions[:, 0] for r in runs])
    below = np.cumsum(np.maximum(2 - x, 0), axis=1) if hard else np.maximum(np.cumsum(2 - x, axis=1), 0)
    assert np.abs(x - 2.5).max() <= 1.5 + 1e-9
    never_above(np.cumsum(x**2 / 4 - 1, axis=1).mean(axis=0), plan.guarantee.regret_curve(ROUNDS))
    never_above(below.mean(axis=0), plan.guarantee.violation_curve(ROUNDS))


COSTS: dict[str, tuple[str, int | str]] = {
    "one linear minimisation": ("lmo", 1),
    "one linear minimisation, in the mean over a block": ("lmo", 1),
    "T^(1/2) linear minimisations and gradients": ("lmo", "K"),
    "a few passes over the arms": ("mirror", 0),
    "one projection": ("mirror", 1),
    "two projections": ("mirror", 2),
    "one mirror step": ("mirror", 1),
    "one step in the norm of a matrix: some systems of the size of the decision": ("norm_step", 1),
    "two mirror steps": ("mirror", 2),
    "one projection onto the domain under the round's constraints": ("penalized_step", 1),
    "one projection, and one onto the domain under the round's constraints": ("penalized_step", 1),
    "one projection onto the domain under the memory's constraints": ("penalized_step", 1),
    "log2(T)/2 projections onto the domain under the round's constraints": ("penalized_step", "M"),
    "a projection onto the domain under predicted constraints for each of some 20 to 50 experts": (
        "penalized_step",
        "margin",
    ),
}
"""What an algorithm says that a round costs, as calls of the domain's oracles, so many, as many as a setting says, or as many as
a field of the state has rows; a projection is a Euclidean mirror step."""
GRADIENT_EXPERTS = 2
"""Experts of `hedged` that take gradient steps, beside those that solve a round."""


def _number(plan: Plan, name: str) -> int:
    """Value of a setting, or the rows of a field of the state; experts have no margins where all constraints are known before a round."""
    rows = {f.name: f.type.shape[0] for f in plan.program.state if f.type.shape}
    if name == "margin" and name not in rows:
        return rows["S"] - GRADIENT_EXPERTS
    return rows[name] if name in rows else round(float(plan.settings[name].value or 0))


@each_algorithm
def test_oracle_calls_are_what_the_table_says(algorithm: Algorithm, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreted program's calls, with every oracle made a function of its own; nothing else of the domain is asked."""
    cost = COSTS[algorithm.cost]
    counting(monkeypatch)
    found = lives(algorithm.name, 64)
    assert found
    for life, plan in covering(found):
        bare = cost[0] == "penalized_step" and not plan.canonical.constraints  # of gradient experts too
        oracle, how_often = ("mirror", "S") if bare else cost
        often = how_often if isinstance(how_often, int) else _number(plan, how_often)
        rounds = round(plan.settings["K"].value or 0) if "block" in algorithm.cost else 8
        calls = calls_of(plan, life, rounds, monkeypatch)
        if "block" in algorithm.cost or "oracle" in plan.settings:  # in the mean over some rounds
            assert 1 <= calls[oracle] <= often * rounds, str(life)
        else:
            # A row that bounds the one entry of a segment is a bound of it: the step is in closed form.
            closed = oracle == "penalized_step" and life.world.region == "segment" and not calls[oracle]
            assert closed or calls[oracle] + calls["implicit_step"] == often * rounds, str(life)
        inside = {"penalized_step": "mirror", "norm_step": "mirror"}.get(
            oracle, oracle
        )  # a step makes projections of its own
        assert sum(calls[k] for k in ("lmo", "mirror")) == calls[inside], str(life)


@pytest.mark.parametrize("oracle", [o.name for o in ORACLES])
def test_oracles_within_blocks_cost_what_the_table_says(oracle: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One linear minimisation a round; of `sftrl` as many as it takes samples, of `ospf` k after every k rounds."""
    counting(monkeypatch)
    life = Life(
        "projection-free", World("ball", "quadratic", "random on average", independent=True), (("oracle", oracle),)
    )
    plan = plan_in(life.algorithm, life.world, 64, life.settings)
    assert plan is not None
    samples = round(float(plan.settings["k"].value or 1)) if "k" in plan.settings else 1
    calls = calls_of(plan, life, rounds := 4 * samples, monkeypatch)
    blocks = -(-rounds // round(float(plan.settings["K"].value or 1)))
    if oracle == "ospf":  # a block that k does not divide ends with rounds of no step
        assert rounds - blocks * samples <= calls["lmo"] <= rounds and calls["lmo"] % samples == 0
    else:
        assert calls["lmo"] == (samples if oracle == "sftrl" else 1) * rounds
    assert calls["mirror"] == 0


def counting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every oracle a function of its own."""
    for name, kind in (("lmo", "lmo"), ("project", "mirror"), ("bregman_step", "mirror")):
        monkeypatch.setattr(Geometry, name, counted(getattr(Geometry, name), kind))


def calls_of(found: Plan, life: Life, rounds: int, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """The functions that the update rule calls in some rounds, by name."""
    asked: list[str] = []
    call, plan = interpret._Machine.call, replace(found)  # with a program of its own
    streams = life.world.draw("coins", np.random.default_rng(0), rounds)
    state = interpret.interpret(plan.program, "init", centre(plan))
    with monkeypatch.context() as patch:
        patch.setattr(interpret._Machine, "call", lambda self, f, args: asked.append(f.name) or call(self, f, args))
        interpreted(plan, state, streams)
    return Counter(name.rstrip("0123456789_") for name in asked)


def counted(method: Callable[..., Point], kind: str) -> Callable[..., Point]:
    """An oracle of a `Geometry` with a call of a function named after its kind before it."""

    def oracle(self: Geometry, *points: Point) -> Point:
        first = points[0].blocks[0]
        seen = self.t.call(kind, lambda v: v + 0.0, first)
        return method(self, Point((seen, *points[0].blocks[1:])), *points[1:])

    return oracle


def interpreted(plan: Plan, state: Sequence[Array], streams: Streams) -> None:
    """Run the update rule in the interpreter for as many rounds as there are data."""
    program, rounds = plan.program, len(streams["c"])
    draws = draws_of(plan, rounds, 0)
    places = {f.name: i for i, f in enumerate(program.state)}
    own = {name: places[field] for name, field in program.previous}
    for t in range(rounds):
        if program.prepare is not None:
            state = interpret.interpret(program, "prepare", [*state, *(streams[n][t] for n in program.context)])
        data = (state[own[f.name]] if f.name in own else streams[f.name][t] for f in program.feedback)
        values = [*data, *(d[t] for d in draws)]
        state = interpret.interpret(program, "update", [*state, *values])
