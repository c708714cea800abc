"""Laws of learners: decisions in the domain, the worth of a round, the same in NumPy and C, and states that go on bit for bit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from fuzz.case import Case, Refused, Violation, product
from fuzz.membership import outside
from fuzz.nodes import Array
from fuzz.typed import Decision

import oco
from oco.backends.c99.build import has_compiler
from oco.backends.learner import Learner
from oco.backends.registry import restored
from oco.compiler.algorithms import ALGORITHMS
from oco.compiler.selection import plan as core
from oco.compiler.selection.choice import choose
from oco.compiler.selection.modes import Mode
from oco.compiler.selection.request import AlgorithmRequest, Policy
from oco.compiler.selection.verdicts import Applicability
from oco.dsl.statements import Feedback
from oco.evaluation.revealed import Revealed
from oco.plan import Plan

INSIDE = 1e-9
"""Widths of its entries by which a decision may lie outside of its domain."""
ALIKE = 1e-8
"""Widths by which NumPy and C may differ."""
NUDGE = 1e-14
"""Widths by which the first decision is moved, to see whether a path is chaotic."""
ROUNDS, SECONDS = 50, 4.0
"""Rounds that are played at an effort of 1, and how long at most."""
Round = Mapping[str, Array]
Point = Mapping[str, Array]


@dataclass(frozen=True, eq=False)
class Life:
    """A run: a plan, the streams of its rounds, and the decision of each."""

    plan: Plan
    rounds: Sequence[Round]
    decisions: Sequence[Point]


def learners(case: Case) -> None:
    """Every learner that can be made of the model, or in `make test` the chosen one and another."""
    rng = case.rng(6)
    for plan in plans(case, rng):
        rounds = streams(case, rng, round(500 if case.effort > 1 else ROUNDS))
        with product():
            life = played(case, plan, rounds)
        if has_compiler() and (case.effort > 1 or rng.random() < 0.3):
            alike(case, life)


def plans(case: Case, rng: np.random.Generator) -> Iterator[Plan]:
    """Plans of the algorithms whose theorems hold, and of one that is asked for whatever its theorem says."""
    able = [v.name for v in case.choice.verdicts if v.applicability is not Applicability.REFUSED]
    asked = str(rng.choice([a.name for a in ALGORITHMS]))
    names = able if case.effort > 1 else [*able[:1], *rng.permutation(able[1:])[:1]]
    for name in dict.fromkeys([*map(str, names), *([asked] if rng.random() < 0.3 * case.effort or not able else [])]):
        mode = Mode(rng.choice((Mode.PAPER, Mode.LEAST)))
        try:
            yield plan_of(case, name, mode)
        except Refused:
            continue


def plan_of(case: Case, name: str, mode: Mode) -> Plan:
    """The plan of an algorithm, without proving everything again."""
    situation, model = case.choice.situation, case.model
    given = dict(model.using.settings) if model.using is not None and model.using.algorithm == name else {}
    with product():
        choice = choose(situation, AlgorithmRequest(name, given, None, Policy(mode)))
        plan = Plan.of(core.Plan(model, choice.played.canonical, situation.facts, choice, mode))
        assert plan.contract.text
        return plan


def streams(case: Case, rng: np.random.Generator, count: int) -> list[Round]:
    """Rounds of ends and of anything between, drawn anew each round, repeated for a while, or by turns."""
    first, second = case.streams(rng), case.streams(rng)
    match int(rng.integers(4)):
        case 0:
            return [first if k % 40 < 20 else second for k in range(count)]
        case 1:
            return [(first, second)[k % 2] for k in range(count)]
        case _:
            return [case.streams(rng) for _ in range(count)]


class Player:
    """A learner of a plan that is shown rounds."""

    def __init__(self, case: Case, learner: Learner) -> None:
        self.case, self.learner = case, learner
        self.names = [d.name for d in case.tree.of(Decision)]
        self.full = case.problem.feedback is Feedback.FULL
        self.revealed = None if self.full else Revealed(case.problem)

    def decide(self, streams: Round) -> Point:
        found = self.learner.decide(**{n: streams[n] for n in self.learner.contexts.names})
        parts = found if isinstance(found, dict) else {self.names[0]: found}
        return {n: np.array(v, dtype=float) for n, v in parts.items()}

    def observe(self, decision: Point, streams: Round) -> Any:
        """The feedback of the round of this decision."""
        if self.revealed is None:
            self.learner.decide()
            return self.learner.observe(**{n: v for n, v in streams.items() if n not in self.case.carried})
        second = self.learner.second_point() if self.case.problem.feedback is Feedback.TWO_POINT else None
        *_, seen = self.revealed(decision, streams, self.learner.round, second)
        self.learner.decide()
        return self.learner.observe(**seen)


def played(case: Case, plan: Plan, rounds: Sequence[Round]) -> Life:
    """A run in NumPy in which every decision is in the domain, every round is worth what the model says, and the state survives."""
    player = Player(case, plan.learner(seed=7, backend="numpy"))
    copy: Player | None = None
    decisions: list[Point] = []
    left: dict[str, Array] = dict(case.carried)
    began, middle = perf_counter(), len(rounds) // 2
    for k, revealed in enumerate(rounds):
        x = player.decide(revealed)
        within(case, plan, x, k + 1)
        if copy is not None and not _same(x, copy.decide(revealed)):
            raise Violation(
                "restored learner", f"{plan.algorithm}: other decisions from round {middle + 1} on: {k + 1}"
            )
        feedback = player.observe(x, revealed)
        if copy is not None:
            copy.observe(x, revealed)
        if k % 7 == 0:
            last = decisions[-1] if decisions else x
            before = {f"prev({n})": value for n, value in last.items()}
            worth(case, plan, x, {**revealed, **left, **before}, k + 1, feedback)
        left = case.following({**revealed, **left, **x}, k + 1)
        if k + 1 == middle:
            copy = Player(case, twin(case, plan, player.learner))
        decisions.append(x)
        if k > middle and perf_counter() - began > SECONDS * case.effort:
            break
    return Life(plan, rounds[: len(decisions)], decisions)


def twin(case: Case, plan: Plan, learner: Learner) -> Learner:
    """The learner as its saved state restores it; now and then by `oco.restore`, which compiles the model again."""
    state = json.loads(json.dumps(learner.state()))
    if case.rng(7).random() < 0.1 * case.effort:
        return oco.restore(state, backend="numpy")
    return restored(state, learner.compiled, learner.contract)


def _same(x: Point, y: Point) -> bool:
    return all(np.array_equal(x[n], y[n]) for n in x)


def within(case: Case, plan: Plan, x: Point, t: int) -> None:
    """The decision lies in its domain, by the independent description of it."""
    widths = {b.name: np.broadcast_to(b.domain.upper - b.domain.lower, b.shape) for b in case.problem.blocks}
    for decision in case.tree.of(Decision):
        value = x[decision.name]
        share = outside(case.evaluator, decision, value, widths[decision.name]) if np.isfinite(value).all() else np.inf
        if share > INSIDE:
            said = f"{plan.algorithm} ({plan.mode}), round {t}: {value} by {share:.3g} of its width"
            raise Violation("decision outside the domain", f"{said}: {decision.text}")


def worth(case: Case, plan: Plan, x: Point, streams: Round, t: int, feedback: Any) -> None:
    """The loss and the constraints of a round as the emitted program measures them."""
    found = {"loss": [feedback.loss]}
    g, h = list(feedback.constraints), list(feedback.equalities)
    labels = {c.label for c in case.problem.equalities}
    for f in case.functions:
        label = f.prefix.removeprefix("constraints.").partition("[")[0]
        value = feedback.loss if f.prefix == "loss" else (h if label in labels else g).pop(0)
        wanted = f({**x, **streams}, float(t))
        if np.isfinite(wanted) and not abs(value - wanted) <= 1e-9 * f.largest + 1e-300:
            raise Violation("worth of a round", f"{plan.algorithm}, round {t}: {f.prefix} is {value}, not {wanted}")
    assert found


def alike(case: Case, life: Life) -> None:
    """C decides as NumPy does, entry by entry, unless NumPy does not decide as itself from a start that is moved by next to nothing."""
    with product():
        apart, t, other = _apart(case, life, life.plan.learner(seed=7, backend="c"))
    if apart <= ALIKE or _chaotic(case, life, t):
        return
    said = f"{life.plan.algorithm} ({life.plan.mode}), round {t}: C decides {other}, NumPy {life.decisions[t - 1]}"
    raise Violation("NumPy and C", f"{said}: {apart:.3g} of a width apart")


def _apart(case: Case, life: Life, learner: Learner) -> tuple[float, int, Point]:
    """The first round in which a learner decides otherwise than the run did, and by how many widths."""
    player, other = Player(case, learner), {}
    widths = {b.name: np.broadcast_to(b.domain.upper - b.domain.lower, b.shape) for b in case.problem.blocks}
    for k, revealed in enumerate(life.rounds):
        other = player.decide(revealed)
        apart = 0.0
        for n, x in life.decisions[k].items():
            size = np.maximum(widths[n], 1e-6 * np.maximum(np.abs(x), 1e-9))
            apart = max(apart, float(np.max(np.abs(other[n] - x) / size, initial=0.0)))
        if not apart <= ALIKE:
            return apart, k + 1, other
        player.observe(other, revealed)
    return 0.0, len(life.rounds), other


def _chaotic(case: Case, life: Life, t: int) -> bool:
    """True where a start that is moved by next to nothing ends in other decisions by about round t."""
    rng = case.rng(8)
    for share in (NUDGE, 100 * NUDGE):
        start = {}
        for b in case.problem.blocks:
            x = np.array(b.domain.centre())
            start[b.name] = x + share * (b.domain.sample(rng, 1)[0] - x)
        with product():
            learner = life.plan.learner(seed=7, backend="numpy", start=start)
        apart, at, _ = _apart(case, life, learner)
        if apart > ALIKE and at <= 2 * t + 5:
            return True
    return False
