"""Problems on which every algorithm is held to its theorem: what the rounds reveal, and the best fixed decision in closed form.

A world is a domain, a loss and one constraint; an algorithm lives in it where its theorem's hypotheses hold there, so that a new
algorithm finds its worlds by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from unittest.mock import patch

import numpy as np
from driving import Array, plan_of

from oco.backends.base import Compiled
from oco.backends.c99 import build
from oco.compiler.selection.plan import Plan
from oco.compiler.theory.theorems import Theorem, Violation
from oco.dsl.diagnostics import OcoError
from oco.plan import Plan as RunnablePlan

Streams = Mapping[str, Array]
ROUNDS = 512
"""Horizon at which the worlds of an algorithm are looked for, so that tests share the plans."""
SLOPE, LIMIT = np.array([1.0, 0.5, -0.5]), 0.25


def project_simplex(v: Array) -> Array:
    """The point of the probability simplex nearest to v (Held, Wolfe & Crowder 1974)."""
    ordered = np.sort(v)[::-1]
    levels = (np.cumsum(ordered) - 1) / np.arange(1, len(v) + 1)
    return np.maximum(v - levels[np.flatnonzero(ordered > levels)[-1]], 0)


@dataclass(frozen=True)
class Region:
    """A domain in the language; the points in it nearest to v and lowest along c; how far a point lies outside; and its dimension."""

    text: str
    nearest: Callable[[Array], Array]
    lowest: Callable[[Array], Array]
    outside: Callable[[Array], Array]
    size: int = 3


BOX = Region(
    "box(-1, 1)",
    lambda v: np.clip(v, -1, 1),
    lambda c: -np.sign(c),
    lambda x: np.abs(x).max(axis=-1) - 1,
)
REGIONS = {
    "box": BOX,
    "segment": replace(BOX, size=1),
    "ball": Region(
        "ball(1)",
        lambda v: v / max(1.0, float(np.linalg.norm(v))),
        lambda c: -c / max(float(np.linalg.norm(c)), 1e-300),
        lambda x: np.linalg.norm(x, axis=-1) - 1,
    ),
    "simplex": Region(
        "simplex",
        project_simplex,
        lambda c: np.eye(len(c))[np.argmin(c)],
        lambda x: np.maximum(np.abs(x.sum(axis=-1) - 1), -x.min(axis=-1)),
    ),
}
ARMS = "arms"
REGIONS[ARMS] = replace(REGIONS["simplex"], text="simplex rounded")


@dataclass(frozen=True)
class Constraint:
    """Lines of a model, what its stream is in each round, and the limit of slope @ x for one x in all of them (in the mean, in each)."""

    streams: str
    text: str
    draw: Callable[[np.random.Generator, int], Streams]
    limits: Callable[[Streams], tuple[float, float]]
    variation: float
    """V_g: the exponent of the constraints' variation."""


def _none(rng: np.random.Generator, rounds: int) -> Streams:
    return {}


FIXED = "cap: {slope} @ x <= 0.25"
CONSTRAINTS = {
    "free": Constraint("", "", _none, lambda s: (math.inf, math.inf), 0),
    "fixed": Constraint("", f"{FIXED} each round", _none, lambda s: (LIMIT, LIMIT), 0),
    "fixed on average": Constraint("", f"{FIXED} on average", _none, lambda s: (LIMIT, LIMIT), 0),
    "moving": Constraint(
        "stream b in [0, 0.5]",
        "cap: {slope} @ x <= b each round",
        lambda rng, rounds: {"b": rng.uniform(0, 0.5, rounds)},
        lambda s: (float(s["b"].mean()), float(s["b"].min())),
        1,
    ),
    "random on average": Constraint(
        "stream s ~ uniform(0.5, 1.5)",
        "cap: s * ({slope} @ x) <= 0.25 on average",
        lambda rng, rounds: {"s": rng.uniform(0.5, 1.5, rounds)},
        lambda s: (LIMIT, LIMIT / float(s["s"].max())),
        1,
    ),
}
PREDICTED = "free, predicted"
CONSTRAINTS[PREDICTED] = replace(CONSTRAINTS["free"], streams="predict c = last(c)")
BUDGET = "known losses, in total"
CONSTRAINTS[BUDGET] = replace(CONSTRAINTS["fixed"], text="cap: {slope} @ x + {least} <= {total} in total")
LOSSES = {"linear": "c @ x", "quadratic": "sum_squares(x - c)"}


@dataclass(frozen=True)
class World:
    """Decisions x (d,) of a region, losses by the stream c in [-1, 1]^d, and one constraint on slope @ x.

    independent  whether the model says that the c are independent draws of one law: then only such sequences are drawn
    endless      whether the model leaves the number of rounds open
    """

    region: str
    loss: str
    constraint: str
    independent: bool = False
    endless: bool = False

    def __str__(self) -> str:
        words = f"{'independent ' if self.independent else ''}{self.loss} losses, {self.region}, {self.constraint}"
        return f"{words}, horizon unknown" if self.endless else words

    @property
    def sequences(self) -> tuple[str, ...]:
        return INDEPENDENT if self.independent else tuple(SEQUENCES)

    def text(self, rounds: int) -> str:
        c, d = CONSTRAINTS[self.constraint], self.size
        least = -float(self.slope @ REGIONS[self.region].lowest(self.slope))
        parts = {"slope": self.slope.tolist(), "least": least, "total": rounds * (LIMIT + least)}
        data = "context" if self.constraint == BUDGET else "stream"
        horizon = "unknown" if self.endless else f"= {rounds}"
        lines = [
            f"model world\nhorizon T {horizon}\ndecision x[{d}] in {REGIONS[self.region].text}\n{data} c[{d}] in [-1, 1]"
            f"{' iid' if self.independent else ''}",
            c.streams,
            f"minimize {LOSSES[self.loss]}",
            f"subject to\n    {c.text.format(**parts)}" if c.text else "",
        ]
        return "\n".join(line for line in lines if line) + "\n"

    def draw(self, sequence: str, rng: np.random.Generator, rounds: int) -> Streams:
        return {"c": SEQUENCES[sequence](rng, rounds)[:, : self.size], **CONSTRAINTS[self.constraint].draw(rng, rounds)}

    def best(self, streams: Streams, each_round: bool) -> float:
        """The least sum of losses of a fixed x in the region with slope @ x <= limit: the value of the Lagrangian dual.

        max over lambda >= 0 of min over the region of sum_t f_t(x) + lambda (slope @ x - limit), by bisection on lambda; the minimum is
        a linear minimisation or a projection. It is never more than the least sum, so that a regret is never measured too small.
        """
        total, rounds = streams["c"].sum(axis=0), len(streams["c"])
        squares = float((streams["c"] ** 2).sum())
        limit = CONSTRAINTS[self.constraint].limits(streams)[each_round]
        region, slope = REGIONS[self.region], self.slope

        def inner(weight: float) -> tuple[float, Array]:
            if self.loss == "linear":
                cost = total + weight * slope
                x = region.lowest(cost)
                return float(cost @ x), x
            x = region.nearest((total - weight / 2 * slope) / rounds)
            return float(rounds * x @ x - 2 * total @ x + squares + weight * slope @ x), x

        value, x = inner(0.0)
        if slope @ x <= limit:
            return value
        low, high = 0.0, 10.0 * rounds
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (middle, high) if slope @ inner(middle)[1] > limit else (low, middle)
        return max(inner(w)[0] - w * limit for w in (low, high))

    @property
    def size(self) -> int:
        return REGIONS[self.region].size

    @property
    def slope(self) -> Array:
        return SLOPE[: self.size]

    @property
    def variation(self) -> float:
        return CONSTRAINTS[self.constraint].variation


def _drift(rng: np.random.Generator, rounds: int) -> Array:
    return np.cos(np.linspace(0, 6 * math.pi, rounds)[:, None] + np.arange(3) + rng.uniform(0, 2 * math.pi))


SEQUENCES: Mapping[str, Callable[[np.random.Generator, int], Array]] = {
    "coins": lambda rng, rounds: rng.choice([-1.0, 1.0], (rounds, 3)),  # the game of the lower bound
    "pushed": lambda rng, rounds: rng.choice([-1.0, 1.0], (rounds, 3), p=[0.7, 0.3]) * np.where(SLOPE < 0, -1.0, 1.0),
    "drifting": _drift,
    "alternating": lambda rng, rounds: np.where(np.arange(rounds) % 2, 1.0, -1.0)[:, None] * np.ones(3),
    "turning": lambda rng, rounds: np.where(np.arange(rounds) < rounds // 2, -1.0, 1.0)[:, None] * np.sign(SLOPE),
}
"""Streams c in [-1, 1]^3, shape (rounds, 3). `pushed` drives linear losses across the constraint."""
INDEPENDENT = ("coins", "pushed")

WORLDS = (
    *(
        World(region, loss, constraint)
        for constraint in CONSTRAINTS
        if constraint not in (PREDICTED, BUDGET)
        for region, loss in (("box", "linear"), ("ball", "quadratic"), ("simplex", "linear"), ("segment", "quadratic"))
    ),
    World("ball", "quadratic", PREDICTED),
    World("box", "linear", BUDGET),
    World("simplex", "linear", BUDGET),
    World(ARMS, "linear", "free"),
    World("box", "linear", "random on average", independent=True),
    World("ball", "quadratic", "random on average", independent=True),
)
ENDLESS = tuple(replace(w, endless=True) for w in WORLDS if w.constraint == "fixed")
"""Worlds of models that leave the number of rounds open."""


@cache
def plan_in(algorithm: str, world: World, rounds: int, settings: tuple[tuple[str, str], ...] = ()) -> Plan | None:
    """The algorithm's plan with the paper's settings, or with these in their place; None where no theorem speaks for it in this world."""
    return plan_where_it_holds(world.text(rounds), algorithm, dict(settings))


def plan_where_it_holds(text: str, algorithm: str, settings: Mapping[str, str] | None = None) -> Plan | None:
    """The algorithm's plan for a model; None where it cannot run or no theorem of it holds."""
    try:
        plan = plan_of(text, algorithm, settings)
    except OcoError:
        return None
    return None if plan.guarantee is None else plan


def theorem_of(plan: Plan) -> Theorem:
    """The theorem that speaks for the plan."""
    winner = plan.choice.winner
    assert winner is not None and winner.theorem is not None
    return winner.theorem


FULL = build.FLAGS
QUICK = tuple("-O0" if flag == "-O3" else flag for flag in FULL)
FEW_ROUNDS = 5000
"""Rounds of a plan that take less time than the optimization of its program does."""


@cache
def compiled(plan: Plan) -> Compiled:
    """Functions in C: the bits are those of users, who have more optimization; it takes most of a build."""
    with patch.object(build, "FLAGS", QUICK if (plan.horizon or 0) <= FEW_ROUNDS else FULL):
        return RunnablePlan.of(plan, "c").compiled()


@dataclass(frozen=True, eq=False)
class Played:
    """A run: decisions (T, 3), losses (T,) and values of g (T, N)."""

    decisions: Array
    loss: Array
    constraints: Array

    def first(self, rounds: int) -> Played:
        return Played(self.decisions[:rounds], self.loss[:rounds], self.constraints[:rounds])


def draws_of(plan: Plan, rounds: int, seed: int) -> list[Array]:
    """Draws of the algorithm in these rounds, with the round first."""
    rng = np.random.default_rng(seed)
    draw = {"normal": rng.standard_normal, "uniform": rng.random}
    return [draw[plan.distributions[f.name]]((rounds, *f.type.shape)) for f in plan.program.draws]


def centre(plan: Plan) -> list[Array]:
    return [b.domain.centre() for b in plan.canonical.blocks]


def play(plan: Plan, streams: Streams, seed: int, start: list[Array] | None = None) -> Played:
    """The whole run, in one call of compiled code unless rounds hang on decisions before; what the algorithm draws comes from the seed."""
    program, functions = plan.program, compiled(plan)
    rounds = len(next(iter(streams.values())))
    draws = draws_of(plan, rounds, seed)
    state = functions.init(*(start or centre(plan)))
    if program.context or not all(name.startswith("last_") for name, _ in program.previous):
        return _stepped(plan, streams, draws, state)
    inputs = [streams[f.name] for f in program.revealed]
    kept = functions.native.run(state, inputs, draws, rounds, ["decisions", "loss", "constraints"])
    assert kept.rounds == rounds
    return Played(kept.kept["decisions"], kept.kept["loss"], kept.kept["constraints"])


def _stepped(plan: Plan, streams: Streams, draws: list[Array], state: tuple[Array, ...]) -> Played:
    """A run round by round, where something is made of what is known before the decision; data of the model alone."""
    program, functions = plan.program, compiled(plan)
    places = {f.name: i for i, f in enumerate(program.state)}
    own, rounds = {name: places[field] for name, field in program.previous}, len(next(iter(streams.values())))
    assert functions.prepare is not None
    rows = []
    for t in range(rounds):
        drawn = [d[t] for d in draws]
        state = functions.prepare(*state, *(streams[name][t] for name in program.context))
        x = functions.decide(*state, *drawn)
        data = [state[own[f.name]] if f.name in own else streams[f.name][t] for f in program.feedback]
        worth = functions.measure(t + 1, *x, *data)
        rows.append((np.ravel(x[0]), worth[0], np.ravel(np.concatenate([np.zeros(0), *map(np.ravel, worth[1:])]))))
        state = functions.update(*state, *data, *drawn)
    x, loss, g = (np.array(column) for column in zip(*rows))
    return Played(x, loss, g)


@dataclass(frozen=True)
class Life:
    """An algorithm, with settings that make another method of it, in a world where a theorem speaks for it."""

    algorithm: str
    world: World
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def method(self) -> str:
        return " ".join([self.algorithm, *(value for _, value in self.settings), *["anytime"] * self.world.endless])

    def __str__(self) -> str:
        return f"{self.method} in {self.world}"

    def regret(self, plan: Plan, streams: Streams, played: Played) -> float:
        """Against the best fixed decision that the theorem speaks of: one that serves each round where violation is hard."""
        each_round = theorem_of(plan).violation is Violation.HARD
        return float(played.loss.sum()) - self.world.best(streams, each_round)

    def violation(self, plan: Plan, played: Played) -> float:
        """Violation as the theorem counts it: round by round, or of the sum."""
        hard = theorem_of(plan).violation is Violation.HARD
        g = played.constraints
        return float(np.maximum(g, 0).sum() if hard else np.maximum(g.sum(axis=0), 0).sum())


VARIANTS = {"projection-free": tuple((("oracle", oracle),) for oracle in ("ocg", "orgfw", "ospf", "sftrl"))}
"""Settings that make the methods of an algorithm, in place of its own choice."""


def lives(
    algorithm: str, rounds: int, variants: bool = False, worlds: tuple[World, ...] = WORLDS
) -> list[tuple[Life, Plan]]:
    """The worlds in which a theorem speaks for the algorithm, with its plans; with `variants` those of each of its methods.

    A world of independent losses, or without a number of rounds, counts where that makes another theorem apply, which is not one that
    begins another anew; one with a prediction, a budget or arms where there is no other.
    """
    found = []
    for settings in VARIANTS.get(algorithm, ((),)) if variants else ((),):
        for world in worlds:
            last = world.constraint in (PREDICTED, BUDGET) or world.region == ARMS
            if last and any(life.world.constraint != BUDGET for life, _ in found):
                continue
            plan = plan_in(algorithm, world, rounds, settings)
            plain = replace(world, independent=False, endless=False)
            same = None if plan is None or plain == world else plan_in(algorithm, plain, rounds, settings)
            if plan is not None and (
                same is None or (theorem_of(plan).restarts is None and theorem_of(same) != theorem_of(plan))
            ):
                found.append((Life(algorithm, world, settings), plan))
    return found


def covering(found: list[tuple[Life, Plan]]) -> list[tuple[Life, Plan]]:
    """Lives with each of a method's theorems, with a constraint and without; constraints and regions take turns."""
    kinds, first = list(CONSTRAINTS), len(found[0][0].algorithm)
    regions = {region: k for k, region in enumerate(r for r in REGIONS if r != ARMS)} | {ARMS: 0}

    def turn(k: int) -> tuple[int, int]:
        world = found[k][0].world
        kind = kinds.index(world.constraint)
        return (kind - first) % len(kinds), (regions[world.region] - kind - first) % (len(regions) - 1)

    seen, kept = set[tuple[str, ...]](), []
    for k in sorted(range(len(found)), key=turn):
        life, plan = found[k]
        free = CONSTRAINTS[life.world.constraint].text == ""
        new = {(life.method, theorem_of(plan).name), (life.method, "free" if free else "constrained")}
        if new - seen:
            kept.append((life, plan))
            seen |= new
    return kept
