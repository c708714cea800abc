"""Listing of `hedged` with NumPy and CVXPY, expert by expert, over two models in words and in NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
from driving import Array, Round, solved

from oco.compiler.algorithms.experts import GRADIENTS, Solved
from oco.compiler.algorithms.learned_margins import MARGIN_RATE
from oco.compiler.algorithms.predictions import FORGETTING, OVERALL
from oco.compiler.algorithms.profiles import LEVEL_RATES, ROWS
from oco.compiler.algorithms.weighting import KEPT

T = 10
PRICES = np.array([2.0, 5.0])


@dataclass(frozen=True)
class Case:
    """A model in words and in NumPy: loss, its slope, constraints (for CVXPY too) and their Jacobian at (x, data)."""

    head: str
    constraint: str
    price: Array
    draw: Callable[[np.random.Generator], Round]
    loss: Callable[[Any, Round], Any]
    slope: Callable[[Array, Round], Array]
    limits: Callable[[Any, Round, Any], Any]
    jacobian: Callable[[Array, Round], Array]
    domain: Callable[[Any], list[Any]]
    project: Callable[[Array], Array]
    diameter: float
    start: float
    convex_loss: Callable[[Any, Round], Any] | None = None
    """Loss for CVXPY where the rounds are solved with it as it is, not with its slope."""
    ranges: Sequence[tuple[float, float, int]] = ()
    """Least and greatest value of each stream, and the number of its entries."""

    def text(self, penalty: str = "", rounds: int = T) -> str:
        return f"model m\nhorizon T = {rounds}\n{self.head}\nsubject to\n    limit: {self.constraint} each round{penalty}\n"


CASES = {
    "affine, data times decisions": Case(
        "decision x[3] in box(0, 1)\nstream c[3] in [-1, 1]\nstream A[2, 3] in [0, 1]\nstream b[2] in [0.2, 1.5]\nminimize c @ x",
        "A @ x <= b",
        PRICES,
        lambda rng: {"c": rng.uniform(-1, 1, 3), "A": rng.uniform(0, 1, (2, 3)), "b": rng.uniform(0.2, 1.5, 2)},
        lambda x, d: float(d["c"] @ x),
        lambda x, d: d["c"],
        lambda v, d, np_: d["A"] @ v - d["b"],
        lambda x, d: d["A"],
        lambda v: [v >= 0, v <= 1],
        lambda v: np.clip(v, 0, 1),
        math.sqrt(3),
        0.5,
        ranges=((-1, 1, 3), (0, 1, 6), (0.2, 1.5, 2)),
    ),
    "separable, integers": Case(
        "decision x[3] in box(0, 1)\nstream a[3] in [-1, 1]\nstream k in 1..4\nminimize sum_squares(x - a)",
        "0.8 * k - 2 * sum(log(1 + 4 * x)) <= 0",
        np.array([3.0]),
        lambda rng: {"a": rng.uniform(-1, 1, 3), "k": rng.integers(1, 5)},
        lambda x, d: float(np.sum((x - d["a"]) ** 2)),
        lambda x, d: 2 * (x - d["a"]),
        lambda v, d, lib: lib.reshape(0.8 * d["k"] - 2 * lib.sum(lib.log(1 + 4 * v)), (1,), order="C"),
        lambda x, d: (-8 / (1 + 4 * x))[None],
        lambda v: [v >= 0, v <= 1],
        lambda v: np.clip(v, 0, 1),
        math.sqrt(3),
        0.5,
        lambda v, d: cp.sum_squares(v - d["a"]),
        ranges=((-1, 1, 3), (1, 4, 1)),
    ),
}


def drawn(case: Case, rounds: int = T, seed: int = 3) -> list[Round]:
    rng = np.random.default_rng(seed)
    return [case.draw(rng) for _ in range(rounds)]


class Step:
    """The nearest decision for predicted data, as problems of CVXPY with parameters."""

    def __init__(self, case: Case, Q: float) -> None:
        like = case.draw(np.random.default_rng(0))
        self.data = {name: cp.Parameter(np.shape(value)) for name, value in like.items()}
        self.v, self.slope, self.near = cp.Variable(3), cp.Parameter(3), cp.Parameter(3)
        self.root, self.margin = cp.Parameter(nonneg=True), cp.Parameter(len(case.price))
        broken = case.limits(self.v, self.data, cp) + self.margin
        loss = self.slope @ self.v if case.convex_loss is None else case.convex_loss(self.v, self.data)
        nearest = loss + cp.sum_squares(self.root * self.v - self.near)
        within = case.domain(self.v)
        self.kept = cp.Problem(cp.Minimize(nearest), [*within, broken <= 0])
        self.broken = cp.Problem(cp.Minimize(nearest / Q + cp.sum(cp.pos(broken))), within)

    def solved(self, data: Round, slope: Array, root: float, x: Array, margin: Array) -> Array:
        """argmin loss + root^2 |v - x|^2 where the constraints with margin hold, or with their violations where none does."""
        for name, value in data.items():
            self.data[name].value = value
        self.slope.value, self.root.value, self.near.value, self.margin.value = slope, root, root * x, margin
        try:
            solved(self.kept)
        except cp.SolverError:
            self.v.value = None
        if self.v.value is None:  # nothing satisfies them as predicted
            solved(self.broken)
        return np.asarray(self.v.value)


class Listing:
    """Experts one after the other, each step by CVXPY; `Q` is the cap of the plan, `experts` those that solve rounds."""

    def __init__(self, case: Case, price: Array, Q: float, experts: Solved, season: int = 1) -> None:
        self.case, self.price, self.Q, self.solved, self.season, self.t = case, price, Q, experts, season, 0
        self.count = len(GRADIENTS) + len(experts)
        self.x = [np.full(3, case.start) for _ in range(self.count)]
        self.L, self.S, self.gap = np.zeros((2, self.count)), np.zeros(self.count), np.zeros(2)
        self.L_of, self.gap_of, self.spread = np.zeros(2), 0.0, 0.0
        self.margin, self.error = (np.zeros((len(experts), len(price))) for _ in range(2))
        self.rows: list[Array] = []
        self.profile: dict[int, Array] = {}
        self.level: list[Array | float] = [0.0] * ROWS
        self.step = Step(case, Q)

    def weights(self, L: Array, gap: float) -> Array:
        if gap == 0:
            w = (L.min() == L).astype(float)
        else:
            w = np.exp(-math.log(len(L)) / gap * (L - L.min()))
        return np.asarray(w / w.sum())

    def all_weights(self) -> tuple[list[Array], Array]:
        least = 1e-4 * math.sqrt(self.spread)
        return [self.weights(L, max(g, least)) for L, g in zip(self.L, self.gap)], self.weights(
            self.L_of, max(self.gap_of, least)
        )

    def decision(self) -> Array:
        each, among = self.all_weights()
        return np.asarray(sum(w * x for w, x in zip(among @ np.array(each), self.x)))

    def play(self, d: Round) -> None:
        self.t += 1
        D = self.case.diameter
        values = [self.case.limits(x, d, np) for x in self.x]
        losses = np.array([self.case.loss(x, d) + self.price @ np.maximum(g, 0) for x, g in zip(self.x, values)])
        for k, (c, r) in enumerate(GRADIENTS):
            x, g = self.x[k], values[k]
            slope = self.case.slope(x, d) + r * (self.price * (g > 0)) @ self.case.jacobian(x, d)
            self.S[k] += slope @ slope
            self.x[k] = self.case.project(x - c * D / math.sqrt(2 * self.S[k]) * slope)
        was = self.rows or [flat(d)] * (len(FORGETTING) + ROWS)
        self.rows = self.predictions(flat(d), was)
        for k, (place, c, q) in enumerate(self.solved):
            self.solve_again(k, c, q, shaped(was[place], d), shaped(self.rows[place], d), values, place)
        self.follow(losses)

    def predictions(self, now: Array, was: list[Array]) -> list[Array]:
        rates = [max(rate, 1 / self.t) for rate in FORGETTING]
        rows = [s + rate * (now - s) for rate, s in zip(rates, was)]
        if self.season == 1:
            return rows
        phase, following = (self.t - 1) % self.season, self.t % self.season
        base = self.profile.get(phase, was[OVERALL])
        for i, follows in enumerate((0.0, *LEVEL_RATES)):
            if phase in self.profile:
                self.level[i] = self.level[i] + follows * (now - base - self.level[i])
        self.profile[phase] = base + (now - base) / ((self.t - 1) // self.season + 1)
        for level in self.level:
            seasonal = self.profile.get(following, rows[OVERALL]) + level
            least, greatest = (
                np.repeat([r[k] for r in self.case.ranges], [r[2] for r in self.case.ranges]) for k in (0, 1)
            )
            rows.append(np.clip(seasonal, least, greatest))
        return rows

    def solve_again(
        self, k: int, c: float, q: float, was: Round, now: Round, values: Sequence[Array], place: int
    ) -> None:
        j, D = k + len(GRADIENTS), self.case.diameter
        x, e = self.x[j], values[j] - self.case.limits(self.x[j], was, np)
        if place < len(FORGETTING) or self.t > self.season:
            self.error[k] = np.maximum(self.error[k], abs(e))
            quick = max(MARGIN_RATE, 1 / math.sqrt(self.t))
            self.margin[k] += quick * self.error[k] * ((e > self.margin[k]) - (1 - q))
        slope = self.case.slope(x, now)
        self.S[j] += slope @ slope
        root = math.sqrt(math.sqrt(2 * self.S[j]) / (2 * c * D))
        self.x[j] = self.step.solved(now, slope, root, x, self.margin[k])

    def follow(self, losses: Array) -> None:
        each, among = self.all_weights()
        paid = np.array([w @ losses for w in each])
        least = 1e-4 * math.sqrt(self.spread)
        gaps = [self.lost(losses, w, max(g, least)) for w, g in zip(each, self.gap)]
        self.gap_of += self.lost(paid, among, max(self.gap_of, least))
        self.spread += (np.ptp(losses) + 1e-2 * abs(losses).max()) ** 2
        self.L_of += paid
        self.gap = np.array(KEPT) * self.gap + gaps
        self.L = np.array(KEPT)[:, None] * self.L + losses

    def lost(self, losses: Array, w: Array, gap: float) -> float:
        if gap == 0:
            mixed = losses[w > 0].min()
        else:
            eta = math.log(len(losses)) / gap
            mixed = losses.min() - math.log(w @ np.exp(-eta * (losses - losses.min()))) / eta
        return max(float(w @ losses - mixed), 0.0)


def flat(d: Round) -> Array:
    return np.concatenate([np.ravel(v).astype(float) for v in d.values()])


def shaped(v: Array, like: Round) -> Round:
    ends = np.cumsum([np.size(x) for x in like.values()])
    parts = np.split(v, ends[:-1])
    return {n: part.reshape(np.shape(x)) for (n, x), part in zip(like.items(), parts)}
