"""Divisions of arrays become products with a reciprocal where the divisor is known to have a finite one."""

from __future__ import annotations

import numpy as np
import pytest

from oco.compiler.ir.build import trace_program
from oco.compiler.ir.interpret import interpret
from oco.compiler.ir.lower_bounds import lower_bounds
from oco.compiler.ir.program import DType, Field, Program, Type
from oco.compiler.ir.reciprocals import FEWEST, multiply_by_reciprocals
from oco.compiler.ir.rewrite import all_functions, equations_of
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.verifier import check


def learner(update, n: int = FEWEST) -> Program:
    """A program whose state x (n,) goes to update(tracer, x, a, s) of an array (n,) and a number."""
    t, vector = Tracer("quotients"), Type(DType.FLOAT, (n,))
    return trace_program(
        t,
        decision=[Field("x", vector)],
        feedback=[Field("a", vector), Field("s", Type(DType.FLOAT))],
        init=lambda start: {"x": start["x"]},
        decide=lambda state, drawn: {"x": state["x"]},
        update=lambda state, seen, drawn: {"x": update(t, state["x"], seen["a"], seen["s"])},
    )


def divisions(program: Program) -> list[tuple[int, ...]]:
    """Shapes of the divisors, in the order of the program."""
    return [e.args[1].type.shape for f in all_functions(program) for e in equations_of(f.body) if e.op == "div"]


def by_number(t, x, a, s):
    return x / (s * s + 1.0)


def by_array(t, x, a, s):
    u = t.abs(a) + 1.0
    return t.abs(x) / u + t.abs(s) / u + t.abs(a) / (u * u)  # nothing cancels


def in_a_loop(t, x, a, s):
    """The divisor begins at 2 and is cut at 1 in each turn."""

    def turn(v, count):
        return t.maximum(a / v + x / v, 1.0), count + 1

    return t.while_(lambda v, count: count < 3, turn, (t.abs(x) + 2.0, t.lift(0)))[0]


@pytest.mark.parametrize(
    "update, left",
    [(by_number, [()]), (by_array, [(FEWEST,)]), (in_a_loop, [(FEWEST,)])],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_one_division_is_left_and_values_agree(update, left):
    program = learner(update)
    shorter = check(multiply_by_reciprocals(program))
    assert divisions(shorter) == left and len(divisions(program)) >= len(left)
    rng = np.random.default_rng(0)
    for size in (1e-300, 1.0, 1e150):
        args = [np.array(1), rng.normal(size=FEWEST), size * rng.normal(size=FEWEST), np.array(size)]
        found, expected = interpret(shorter, "update", args), interpret(program, "update", args)
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-15, atol=0)


@pytest.mark.parametrize(
    "update, n",
    [
        (lambda t, x, a, s: x / s, FEWEST),  # may be zero, or have an infinite reciprocal
        (lambda t, x, a, s: x / a + s / a, FEWEST),
        (lambda t, x, a, s: x / (t.abs(a) + 1.0), FEWEST),  # read once
        (by_number, FEWEST - 1),
    ],
)
def test_divisions_stay_where_no_product_is_as_good(update, n):
    program = learner(update, n)
    assert multiply_by_reciprocals(program) == program


def test_loops_are_bounded_by_start_and_turn():
    def update(t, x, a, s):
        kept = t.while_(lambda v, c: c < 3, lambda v, c: (t.maximum(v - 1.0, 0.5), c + 1), (t.abs(x) + 2.0, t.lift(0)))[
            0
        ]
        falls = t.while_(lambda v, c: c < 3, lambda v, c: (v - 1.0, c + 1), (t.abs(x) + 2.0, t.lift(0)))[0]
        return t.name("kept", kept * 1.5) + t.name("falls", falls * 1.5)

    bounds = lower_bounds(learner(update))["update"]
    assert bounds["kept"] == pytest.approx(0.75) and "falls" not in bounds
