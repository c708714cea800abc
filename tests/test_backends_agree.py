"""Interpreter, NumPy and C give the same decisions, for every algorithm that takes a model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test_c99 import has_compiler

import oco
from oco.backends.base import backend
from oco.backends.learner import make_learner
from oco.compiler.ir.interpret import interpret
from oco.compiler.plan import explain_choice
from oco.compiler.verdicts import Standing
from oco.dsl.model import Feedback

EXAMPLES = Path(__file__).parent.parent / "examples"
ROUNDS = 40


def applicable(name: str) -> list[str]:
    """The algorithms that take a model."""
    verdicts = explain_choice(oco.load(EXAMPLES / f"{name}.oco")).verdicts
    return [v.name for v in verdicts if v.standing is not Standing.REFUSED]


def rounds_of(plan, count):
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


@pytest.mark.parametrize("name", ["portfolio", "tracking", "online_qp", "blind_pricing", "datacenter"])
def test_backends_agree(name):
    names = applicable(name)
    assert names
    for algorithm in names:
        plan = oco.compile(oco.load(EXAMPLES / f"{name}.oco"), algorithm=algorithm)
        program, given = plan.program, plan.contract
        targets = ["numpy", "c"] if has_compiler() else ["numpy"]
        learners = [make_learner(backend(b).compile(program, given), given, on_out_of_bounds="accept") for b in targets]
        state = interpret(program, "init", [given.start[f.name] for f in program.decision])
        for k, streams in enumerate(rounds_of(plan, ROUNDS)):
            decisions = [np.asarray(a.decide()) for a in learners]
            if not program.draws and k < 5:
                decisions.append(interpret(program, "decide", state)[0])
                state = interpret(program, "update", [*state, *(streams[f.name] for f in program.feedback)])
            scale = max(1.0, float(np.abs(decisions[0]).max()))
            for other in decisions[1:]:
                assert np.abs(other - decisions[0]).max() <= 1e-9 * scale, f"{algorithm}, round {k + 1}"
            losses = [a.observe(**streams).loss for a in learners]
            assert np.allclose(losses, losses[0], rtol=1e-9)
