"""The checker refuses programs that break a rule of the IR, and says which."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oco.compiler.ir.build import trace_program
from oco.compiler.ir.program import Block, DType, Equation, Field, Function, Global, Literal, Program, Type, Var
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.verifier import check
from oco.dsl.diagnostics import InternalError

FLOAT, INT, BOOL = DType.FLOAT, DType.INT, DType.BOOL
VECTOR, NUMBER, WHOLE = Type(FLOAT, (3,)), Type(FLOAT), Type(INT)
X, ROUND = Var("x", VECTOR), Var("round", WHOLE)


def program() -> Program:
    t = Tracer("small")
    return trace_program(
        t,
        decision=[Field("x", VECTOR)],
        feedback=[Field("price", VECTOR)],
        init=lambda start: {"x": start["x"]},
        decide=lambda state, drawn: {"x": state["x"]},
        update=lambda state, seen, drawn: {"x": t.call("step", lambda v: v - 0.1, state["x"] - seen["price"])},
        measure=lambda now, x, seen: (t.sum(x["x"]), t.zeros((0,)), t.zeros((0,))),
    )


def with_update(*equations: Equation, result: Var = X, constants: tuple[Global, ...] = ()) -> Program:
    """The program with these equations as its update, after round + 1."""
    base = program()
    following = Equation((Var("later", WHOLE),), "add", (ROUND, Literal(1, WHOLE)))
    params = base.update.body.params
    body = Block(params, (following, *equations), (Var("later", WHOLE), result))
    return replace(base, update=replace(base.update, body=body), constants=constants)


def test_a_traced_program_is_accepted():
    assert check(program()) == program() or check(program()).name == "small"
    check(with_update(Equation((Var("y", VECTOR),), "neg", (X,)), result=Var("y", VECTOR)))


Y = Var("y", VECTOR)
TRUE = Literal(True, Type(BOOL))
INNER = Block((), (), (X,))
BROKEN = {
    "bound twice": [Equation((Y,), "neg", (X,)), Equation((Y,), "exp", (X,))],
    "is not in scope": [Equation((Y,), "neg", (Var("z", VECTOR),))],
    "has types": [Equation((Var("y", NUMBER),), "neg", (X,))],
    "an unknown operation": [Equation((Y,), "arctan", (X,))],
    "arguments of": [Equation((Y,), "add", (X,))],
    "attributes of": [Equation((Var("y", NUMBER),), "sum", (X,))],
    "not alike": [Equation((Y,), "add", (X, Literal(1, WHOLE)))],
    "do not fit": [Equation((Y,), "add", (X, Var("w", Type(FLOAT, (2,)))))],
    "is not legal": [Equation((Var("import", VECTOR),), "neg", (X,))],
    "is no float64": [Equation((Y,), "add", (X, Literal(1, NUMBER)))],
    "not defined before": [Equation((Y,), "call", (X,), (("function", "missing"),))],
    "step takes": [Equation((Y,), "call", (Literal(1.0, NUMBER),), (("function", "step"),))],
    "branches of": [Equation((Y,), "if", (TRUE,), (), (INNER, Block((), (), (ROUND,))))],
    "form of y = if": [Equation((Y,), "if", (X,), (), (INNER, INNER))],
    "body of y = for": [Equation((Y,), "for", (Literal(3, WHOLE), X), (), (Block((Var("i", WHOLE),), (), (X,)),))],
    "condition of": [
        Equation((Y,), "while", (X,), (), (Block((Var("a", VECTOR),), (), (X,)), Block((Var("b", VECTOR),), (), (X,))))
    ],
}


@pytest.mark.parametrize("words", BROKEN)
def test_broken_equations_are_refused(words):
    constants = (Global(Var("w", Type(FLOAT, (2,))), np.ones(2)),) if words == "do not fit" else ()
    broken = with_update(*BROKEN[words], constants=constants)
    for before in (None, replace(broken, update=program().update)):  # what is added to a program is held as the rest is
        with pytest.raises(InternalError, match=words):
            check(broken, before)


def test_a_variable_of_an_inner_block_does_not_leave_it():
    inner = Block((), (Equation((Var("hidden", VECTOR),), "neg", (X,)),), (X,))
    branch = Equation((Y,), "if", (TRUE,), (), (inner, INNER))
    with pytest.raises(InternalError, match="hidden"):
        check(with_update(branch, result=Var("hidden", VECTOR)))


def test_the_entries_fit_the_fields():
    base = program()
    with pytest.raises(InternalError, match="update takes"):
        check(replace(base, feedback=()))
    with pytest.raises(InternalError, match="gives"):
        check(replace(base, decide=replace(base.decide, body=Block(base.decide.body.params, (), ()))))
    with pytest.raises(InternalError, match="the state begins with round"):
        spoiled = Field("turn", WHOLE)
        check(replace(base, state=(spoiled, *base.state[1:])))


def test_constants_hold_what_they_say():
    wrong = Global(Var("w", VECTOR), np.ones(2))
    with pytest.raises(InternalError, match="the constant w"):
        check(replace(program(), constants=(wrong,)))


def test_functions_and_constants_have_distinct_names():
    base = program()
    with pytest.raises(InternalError, match="not distinct"):
        check(replace(base, constants=(Global(Var("step", VECTOR), np.ones(3)),)))


def test_functions_do_not_call_themselves():
    v = Var("v", VECTOR)
    endless = Function("step", Block((v,), (Equation((Y,), "call", (v,), (("function", "step"),)),), (Y,)))
    with pytest.raises(InternalError, match="not defined before"):
        check(replace(program(), functions=(endless,)))
