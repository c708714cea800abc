"""Steps under smooth constraints with given multipliers, beside closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from oco.compiler.ir.interpret import as_numpy
from oco.compiler.ir.program import DType, Type
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.trace_spec import TraceSpec
from oco.compiler.problem.canonical import canonical
from oco.compiler.problem.structure import Structure
from oco.compiler.proximal.penalty import weighted_step
from oco.dsl.load import parse

MODEL = """
model steep
horizon T = 10
decision x[3] in ball(2)
stream s[3] in [-1, 1]
minimize s @ x
subject to
    g: square(x[0]) <= 3 each round
"""


@pytest.mark.parametrize("weight", [1.0, 1e8, 1e16, 1e17, 1e18])
def test_one_steep_direction_leaves_the_newton_system_regular(weight: float) -> None:
    """Along x[0] the curvature is up to 1e18 times that of the flat directions, of which 2 alpha / L then is nothing beside 1."""
    problem = canonical(parse(MODEL))
    spec = TraceSpec(problem, {}, Structure.OTHER, 10)
    vector = Type(DType.FLOAT, (3,))

    def step(t: Tracer, y: Value, c: Value, weights: Value) -> Value:
        return weighted_step(Problem(t, spec, {}, t.lift(1)), Point((y,)), Point((c,)), t.lift(1.0), weights).blocks[0]

    y, c = np.array([1.0, 0.5, -0.25]), np.array([0.3, -0.2, 0.1])
    (x,) = as_numpy("step", step, vector, vector, Type(DType.FLOAT, (1,)))(y, c, np.array([weight]))
    expected = (y - c / 2.0) / np.array([1.0 + weight, 1.0, 1.0])
    np.testing.assert_allclose(x, expected, atol=1e-11)
