"""Numbers beside arrays where every operation is a call: constants of the same bits, and single results are Python's numbers."""

from __future__ import annotations

import numpy as np
from ir_programs import same_bits
from test_c99_log_sums import FLOAT
from test_reciprocals import learner

from oco.backends.python.executed import executed
from oco.backends.python.module import rule_text
from oco.compiler.ir.build import trace_program
from oco.compiler.ir.interpret import interpret
from oco.compiler.ir.numbers_beside_arrays import keep_numbers_as_arrays
from oco.compiler.ir.program import Field, Literal, Program, Type
from oco.compiler.ir.rewrite import equations_of
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.verifier import check

ODD = (-4.0, 0.25, -0.0, 0.0, np.inf, -np.inf, np.nan, 1e-290, 1.0 + 2.0**-52)


def of_numbers(t: Tracer, x, a, s):
    """Each number of `ODD` beside an array in each kind of operation, and beside a number."""
    for number in ODD:
        x = t.where(a <= number, t.maximum(x * number, 0.5), number) + (number - t.minimum(number, a)) / (s * number)
    return x


def test_numbers_keep_their_bits():
    program = learner(of_numbers, 5)
    made = check(keep_numbers_as_arrays(program))
    rule = executed(made, rule_text(made, [made.update]), [made.update])["update"]
    rng = np.random.default_rng(0)
    for start in (np.ones(5), np.array([0.0, -0.0, np.inf, np.nan, -3.0])):
        given = [1, start, rng.normal(size=5), 0.7]
        expected = interpret(program, "update", [np.array(1), *given[1:3], np.array(0.7)])[1]
        with np.errstate(all="ignore"):
            assert same_bits(interpret(made, "update", [np.array(1), *given[1:3], np.array(0.7)])[1], expected)
            assert same_bits(rule(*given)[1], expected)


def test_each_number_is_kept_once_and_those_beside_numbers_stay():
    made = keep_numbers_as_arrays(learner(of_numbers, 5))
    numbers = [g.value for g in made.constants if g.beside_arrays]
    assert sorted(v.tobytes() for v in numbers) == sorted({np.array(n).tobytes() for n in (*ODD, 0.5)})
    for e in equations_of(made.update.body):
        apart = [a for a in e.args if isinstance(a, Literal) and a.type == Type(FLOAT)]
        assert not apart or not any(a.type.shape for a in e.args), e


def constants() -> Program:
    """A program with a constant that stands beside an array and beside a number."""
    t = Tracer("constants")
    eta = t.constant(np.array(0.3), "eta", "1/T")
    return trace_program(
        t,
        decision=[Field("x", Type(FLOAT, (4,)))],
        feedback=[Field("s", Type(FLOAT))],
        init=lambda start: {"x": start["x"]},
        decide=lambda state, drawn: {"x": state["x"]},
        update=lambda state, seen, drawn: {"x": state["x"] * eta + eta * seen["s"]},
    )


def test_a_constant_that_is_a_number_is_kept_in_both_forms():
    made = keep_numbers_as_arrays(constants())
    assert [(g.var.name, g.beside_arrays) for g in made.constants] == [("eta", False), ("n_eta", True)]
    text = rule_text(made, made.entries)
    assert "n_eta = np.array(0.3)" in text and "x * n_eta + eta * s" in text


def test_single_results_are_numbers_of_python():
    t = Tracer("results")
    program = trace_program(
        t,
        decision=[Field("x", Type(FLOAT, (4,)))],
        feedback=[Field("a", Type(FLOAT, (4,)))],
        init=lambda start: {"x": start["x"], "s": t.lift(0.0)},
        decide=lambda state, drawn: {"x": state["x"]},
        update=lambda state, seen, drawn: {"x": state["x"], "s": state["x"] @ seen["a"] + t.max(seen["a"])},
    )
    rule = executed(program, rule_text(program, [program.update]), [program.update])["update"]
    assert [type(v) for v in rule(1, np.ones(4), 0.0, np.ones(4))] == [int, np.ndarray, float]
