"""Drives the program of a plan through rounds of data, for tests."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np

import oco
from oco.backends.base import Compiled
from oco.backends.registry import backend
from oco.compiler.problem.canonical import canonical
from oco.compiler.prover.check import check
from oco.compiler.selection.choice import choose
from oco.compiler.selection.plan import Plan
from oco.compiler.selection.request import AlgorithmRequest
from oco.compiler.theory.theorems import Situation
from oco.dsl.load import parse

Array = np.ndarray[Any, Any]
Round = Mapping[str, Any]


EXAMPLES = Path(__file__).parent.parent / "examples"


@cache
def example(name: str, algorithm: str | None = None, settings: str | None = None) -> Any:
    """Plan of a file of `examples`. A plan is a value, so that the tests of a process share it."""
    return oco.compile(oco.load(EXAMPLES / f"{name}.oco"), algorithm, settings)


@cache
def plan_for(text: str, algorithm: str | None = None, settings: str | None = None) -> Any:
    """Plan of a model's text. Tests that ask for the same one share it, as for `example`."""
    return oco.compile(oco.parse(text), algorithm, settings)


@cache
def situation(text: str) -> Situation:
    """The problem of a model and its facts, which all algorithms share."""
    problem = canonical(parse(text))
    return Situation(problem.learned, check(problem.model), problem.horizon)


def plan_of(text: str, name: str, settings: Mapping[str, str | float] | None = None) -> Plan:
    """Plan of `compile_plan` for an algorithm that is asked for."""
    return _planned(text, name, tuple((settings or {}).items()))


@lru_cache(maxsize=32)
def _planned(text: str, name: str, settings: tuple[tuple[str, str | float], ...]) -> Plan:
    s, given = situation(text), dict(settings)
    choice = choose(s, AlgorithmRequest(name, given))
    return Plan(s.canonical.model, choice.played.canonical.standing, s.facts, choice, given=given)


@lru_cache(maxsize=32)
def compiled(plan: Plan) -> Compiled:
    """Functions in NumPy of a plan's program, which the runs of a plan share."""
    return backend("numpy").compile(plan.program)


class Run:
    """A program with its state; `play` takes one round. `draws` gives its random arrays by name, rounds first."""

    def __init__(
        self, plan: Plan, start: Sequence[Array] | None = None, draws: Mapping[str, Array] | None = None
    ) -> None:
        self.compiled = compiled(plan)
        points = start or [b.domain.centre() for b in plan.canonical.blocks]
        self.state = self.compiled.init(*(np.array(p, dtype=np.float64) for p in points))
        self.names = [f.name for f in plan.program.state]
        self.draws = draws or {}
        self.prepared = False

    @property
    def drawn(self) -> list[Array]:
        """The random arrays of this round."""
        return [self.draws[f.name][int(self.state[0]) - 1] for f in self.compiled.program.draws]

    @property
    def decisions(self) -> tuple[Array, ...]:
        return self.decided({})

    def decided(self, known: Round) -> tuple[Array, ...]:
        """The decisions of this round with these values of its contexts."""
        self._prepare(known)
        found = self.compiled.decide(*self.state, *self.drawn)
        return found if isinstance(found, tuple) else (found,)

    def asked(self, known: Round) -> tuple[Array, ...]:
        """The decisions that this round would have with these values of its contexts."""
        state, prepared = self.state, self.prepared
        found = self.decided(known)
        self.state, self.prepared = state, prepared
        return found

    def _prepare(self, known: Round) -> None:
        if self.compiled.prepare is not None and not self.prepared:
            values = (np.asarray(known[name]) for name in self.compiled.program.context)
            self.state, self.prepared = self.compiled.prepare(*self.state, *values), True

    @property
    def second(self) -> tuple[Array, ...]:
        """The second point of a round: the decision of the negated draws."""
        return tuple(self.compiled.decide(*self.state, *(-a for a in self.drawn)))

    def value(self, name: str) -> Array:
        return np.asarray(self.state[self.names.index(name)])

    def play(self, data: Round) -> None:
        fields = self.compiled.program.feedback
        self._prepare(data)
        data = {**data, **{name: self.value(own) for name, own in self.compiled.program.previous}}
        self.prepared = False
        self.state = self.compiled.update(*self.state, *(np.asarray(data[f.name]) for f in fields), *self.drawn)


def trajectory(
    plan: Plan,
    rounds: Sequence[Round],
    start: Sequence[Array] | None = None,
    draws: Mapping[str, Array] | None = None,
) -> list[tuple[Array, ...]]:
    """The decisions of rounds 1..len(rounds) + 1."""
    run = Run(plan, start, draws)
    found = [run.decisions]
    for data in rounds:
        run.play(data)
        found.append(run.decisions)
    return found


def solve(cost: Any, constraints: list[Any]) -> None:
    """Minimize with CVXPY as exactly as Clarabel goes; it says so where rounding stops it before its tolerance, or fails."""
    solved(cp.Problem(cp.Minimize(cost), constraints))


def solved(problem: cp.Problem) -> None:
    """Solve a problem of CVXPY as `solve` does: one with parameters is put into standard form the first time alone."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solution may be inaccurate")
        try:
            problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
        except cp.SolverError:
            problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)


class MetricStep:
    """argmin of <slope, v - x> + |root (v - x)|^2 / 2 over a set of CVXPY, as `solve` finds it; put into standard form once."""

    def __init__(self, size: int, within: Callable[[cp.Variable], list[Any]]) -> None:
        self.v, moved = cp.Variable(size), cp.Variable(size)
        self.x, self.slope, self.root = cp.Parameter(size), cp.Parameter(size), cp.Parameter((size, size))
        cost = self.slope @ moved + cp.sum_squares(self.root @ moved) / 2
        self.problem = cp.Problem(cp.Minimize(cost), [*within(self.v), moved == self.v - self.x])

    def __call__(self, x: Array, slope: Array, root: Array) -> Array:
        self.x.value, self.slope.value, self.root.value = x, slope, root
        solved(self.problem)
        return np.asarray(self.v.value)
