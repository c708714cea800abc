"""Interpreter, NumPy and C give the same: every algorithm on models that it takes, and every atom with its derivatives.

`pytest tests/test_backends_agree.py --agreement 10000` plays so many rounds, and prints the worst difference of each algorithm and model.
"""

from __future__ import annotations

from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from atom_cases import CASES, FIXED_CASES, Case
from test_c99 import build, has_compiler, needs_compiler
from thorough import thorough

import oco
from oco.backends.registry import backend, make_learner
from oco.compiler.algorithms import ALGORITHMS
from oco.compiler.ir.build import trace_program
from oco.compiler.ir.interpret import interpret
from oco.compiler.ir.passes import optimize
from oco.compiler.ir.program import DType, Field, Program, Type
from oco.compiler.ir.trace import Tracer
from oco.compiler.lowering.expressions import Lowering
from oco.compiler.problem.calculus import vector_jacobian
from oco.compiler.selection.choice import Applicability, choose
from oco.compiler.selection.modes import Mode
from oco.compiler.selection.plan import analyzed, plan_of
from oco.compiler.selection.request import AlgorithmRequest, Policy
from oco.compiler.theory.theorems import Situation
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import constant
from oco.dsl.statements import Feedback
from oco.plan import Plan as RunnablePlan

EXAMPLES = Path(__file__).parent.parent / "examples"
SHORT = 40
HEAD = "model {name}\nhorizon T = 200\ndecision x[4] in {domain}\nstream a[4] in [-2, 2]\n"
UNCONSTRAINED = HEAD + "minimize sum_squares(x - a) + a @ x\n"
FIXED = HEAD + "minimize a @ x\nsubject to\n    cap: sum_squares(x) + x[0] <= 0.9 on average\n"
MODELS = {
    "in_a_ball": UNCONSTRAINED.format(name="in_a_ball", domain="ball(1)"),
    "two_points": UNCONSTRAINED.format(name="two_points", domain="ball(1)") + "feedback two_point\n",
    "blind": UNCONSTRAINED.format(name="blind", domain="ball(1)") + "feedback bandit\n",
    "arms": HEAD.format(name="arms", domain="simplex rounded") + "minimize a @ x\nfeedback bandit\n",
    "predicted": UNCONSTRAINED.format(name="predicted", domain="box(0, 1)") + "predict a = last(a)\n",
    "on_a_simplex": UNCONSTRAINED.format(name="on_a_simplex", domain="simplex"),
    "fixed_cap": FIXED.format(name="fixed_cap", domain="box(0, 1)"),
    "separable": "model separable\nhorizon T = 200\ndecision x[4] in box(0, 3)\nstream a[4] in [-2, 2]\nminimize a @ x\n"
    "subject to\n    supply: 2 - sum(log(1 + x)) <= 0 each round\n    use: sum(exp(x)) <= 20 each round\n",
    "bent": "model bent\nhorizon T = 200\ndecision x[4] in box(0, 3)\nstream a[4] in [-2, 2]\nminimize a @ x\n"
    "subject to\n    supply: 2 + 0.1 * a[0] - sum(log(1 + x)) <= 0 each round\n",
    "budget": "model budget\nhorizon T = 200\ndecision x[4] in box(0, 3)\ncontext a[4] in [-2, 2]\nstream b in [0, 3]\n"
    "minimize a @ x\nsubject to\n    spend: sum(x) <= 100  in total\n",
    "priced": "model priced\nhorizon T = 200\ndecision x[4] in box(0, 3)\nstream a[4] in [-2, 2]\nstream b in [0, 3]\n"
    "minimize a @ x\nsubject to\n    supply: b - sum(log(1 + x)) <= 0 each round, penalty 4\n",
}
NAMES = ["portfolio", "tracking", "online_qp", "blind_pricing", "datacenter", *MODELS]


@cache
def model_of(name: str) -> Any:
    return oco.parse(MODELS[name]) if name in MODELS else oco.load(EXAMPLES / f"{name}.oco")


@cache
def situation_of(name: str) -> Situation:
    """A model's problem and facts, which all algorithms share."""
    return analyzed(model_of(name))


@cache
def applicable(name: str) -> list[str]:
    """The algorithms that take a model."""
    return [v.name for v in choose(situation_of(name)).verdicts if v.applicability is not Applicability.REFUSED]


def models_of(algorithm: str, few: int) -> list[str]:
    """Some models that an algorithm takes, small ones first, on which it is played for a few rounds; small ones take turns."""
    small = [name for name in MODELS if algorithm in applicable(name)]
    first = [a.name for a in ALGORITHMS].index(algorithm) % max(1, len(small))
    examples = (name for name in NAMES if name not in MODELS and algorithm in applicable(name))
    return list(islice(chain(small[first:], small[:first], examples), few))


def plan_with(name: str, algorithm: str) -> RunnablePlan:
    """Plan of an algorithm with the paper's constants on the problem without units: decisions move, and nothing is searched for."""
    s = situation_of(name)
    choice = choose(s, AlgorithmRequest(algorithm, policy=Policy(Mode.UNIT_FREE)))
    return RunnablePlan.of(plan_of(choice, s.canonical, Mode.UNIT_FREE), "numpy")


def rounds_of(plan: Any, count: int) -> Any:
    """Made-up rounds within the bounds."""
    rng = np.random.default_rng(0)
    for _ in range(count):
        if plan.canonical.feedback is not Feedback.FULL:
            yield {f.name: rng.uniform(-1, 1, f.type.shape) for f in plan.program.feedback}
            continue
        yield {
            s.name: rng.integers(s.lower, s.upper + 1, s.shape) if s.integer else rng.uniform(s.lower, s.upper, s.shape)
            for s in plan.canonical.streams
        }


def worst_difference(plan: Any, count: int, interpreted: int) -> float:
    """Of the decisions, as a share of their size (at least one)."""
    program, given = plan.program, plan.contract
    targets = ["numpy", "c"] if has_compiler() else ["numpy"]
    learners = [make_learner(backend(b).compile(program, given), given, on_out_of_bounds="accept") for b in targets]
    state, worst = interpret(program, "init", [given.start[f.name] for f in program.decision]), 0.0
    for k, streams in enumerate(rounds_of(plan, count)):
        known = {n: streams.pop(n) for n in program.context}
        decisions = [np.asarray(a.decide(**known)) for a in learners]
        if not program.draws and program.prepare is None and k < interpreted:
            decisions.append(interpret(program, "decide", state)[0])
            state = interpret(program, "update", [*state, *(streams[f.name] for f in program.feedback)])
        scale = max(1.0, float(np.abs(decisions[0]).max()))
        worst = max(
            worst, *(float(np.abs(other - decisions[0]).max()) / scale for other in (*decisions[1:], decisions[0]))
        )
        losses = [a.observe(**streams).loss for a in learners]
        assert np.allclose(losses, losses[0], rtol=1e-9), f"round {k + 1}"
    return worst


@pytest.mark.filterwarnings("ignore:the horizon of")
@pytest.mark.parametrize("few", [1, thorough(3)])
@pytest.mark.parametrize("name", NAMES)
def test_backends_agree(name: str, few: int, request: pytest.FixtureRequest) -> None:
    count = request.config.getoption("--agreement")
    names = applicable(name) if count > SHORT else [a.name for a in ALGORITHMS if name in models_of(a.name, few)]
    for algorithm in names:
        plan = plan_with(name, algorithm)
        worst = worst_difference(plan, count, max(5, count // 100))
        if count > SHORT:
            print(f"| {algorithm} | {name} | {count} | {worst:.1e} |")
        assert worst <= 1e-9, f"{algorithm}: {worst}"


def test_every_algorithm_takes_one_of_the_models() -> None:
    assert not [a.name for a in ALGORITHMS if not models_of(a.name, 1)]


def atom_program(k: int, case: Case, weights: np.ndarray[Any, Any]) -> Program:
    """A program whose `measure` gives the value of an atom and what its derivative makes of the weights."""
    t, expr = Tracer(f"atom{k}"), case.call()
    slopes = vector_jacobian(expr, constant(weights), case.boxes)

    def measure(now: Any, x: Any, seen: Any) -> Any:
        env = {name: seen[name] for name in case.boxes}
        shapes = {name: shape for name, (shape, _) in case.boxes.items()}
        found = [t.to_float(Lowering(t, env)(expr))]
        found += [t.broadcast(t.to_float(Lowering(t, env)(slopes[n])), shapes[n]) for n in case.boxes]
        return t.lift(0.0), t.concat(*(t.reshape(v, (v.size,)) for v in found)), t.zeros((0,))

    return optimize(
        trace_program(
            t,
            decision=[Field("x", Type(DType.FLOAT, (2,)))],
            feedback=[Field(name, Type(DType.FLOAT, shape)) for name, (shape, _) in case.boxes.items()],
            init=lambda start: {"x": start["x"]},
            decide=lambda state, drawn: {"x": state["x"]},
            update=lambda state, seen, drawn: {"x": state["x"]},
            measure=measure,
        )
    )


@needs_compiler
def test_every_atom_and_derivative_is_the_same_in_c(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """On three draws: to 1e-12 of NumPy's value. One case an atom, all of them in a long run."""
    rng, cases = np.random.default_rng(0), [c for c in CASES + FIXED_CASES if c.boxes]
    if request.config.getoption("--agreement") <= SHORT:
        cases = list({c.atom: c for c in cases}.values())
    weights = [rng.normal(size=c.call().shape) for c in cases]
    programs = [atom_program(k, c, w) for k, (c, w) in enumerate(zip(cases, weights))]
    quiet = ("-Wno-error=unused-function", "-Wno-tautological-compare", "-Wno-type-limits")
    for native, case, w in zip(build(programs, tmp_path, *quiet), cases, weights):
        slopes = vector_jacobian(case.call(), constant(w), case.boxes)
        for _ in range(3):
            at = case.draw(rng)
            parts = [evaluate(case.call(), at)]
            parts += [np.broadcast_to(evaluate(slopes[n], at), shape) for n, (shape, _) in case.boxes.items()]
            expected = np.concatenate([np.ravel(p) for p in parts])
            found = native.measure(1, np.zeros(2), *at.values())[1]
            size = max(1.0, float(np.abs(expected).max()))
            assert np.abs(found - expected).max() <= 1e-12 * size, case.name
