"""Tracing: what is written in Python is what the program computes."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import sympy

import oco
from oco.compiler.ir.build import trace_program
from oco.compiler.ir.formulas import trace_formula
from oco.compiler.ir.interpret import as_numpy, interpret, run_function
from oco.compiler.ir.names import RESERVED, identifier, is_legal
from oco.compiler.ir.program import DType, Field, Literal, Type
from oco.compiler.ir.rewrite import equations_of
from oco.compiler.ir.symbolic import Formula
from oco.compiler.ir.trace import Tracer
from oco.compiler.theory.settings import parse_formula, schedule_symbols
from oco.dsl.diagnostics import InternalError

EXAMPLES = Path(__file__).parent.parent / "examples"
FLOAT, INT, BOOL = DType.FLOAT, DType.INT, DType.BOOL
VECTOR, NUMBER = Type(FLOAT, (3,)), Type(FLOAT)
x0, A0 = np.array([0.5, -2.0, 3.0]), np.arange(9.0).reshape(3, 3)


def run(fn, *arrays):
    """The results of traced code on arrays of float64 or int64."""
    arrays = [np.asarray(a) for a in arrays]
    types = [Type(INT if a.dtype.kind == "i" else FLOAT, a.shape) for a in arrays]
    return as_numpy("f", fn, *types)(*arrays)


EXPRESSIONS = [
    lambda x, A: 2 * x + x / 4 - 1,
    lambda x, A: A @ x,
    lambda x, A: x @ A,
    lambda x, A: A.T @ (A @ x),
    lambda x, A: (x - 1.0) ** 2,
    lambda x, A: 2.0**x,
    lambda x, A: 1 / x,
    lambda x, A: -x,
    lambda x, A: abs(x),
    lambda x, A: x % 2.0,
    lambda x, A: (x > 0) & (x <= 3) | (x < -1),
    lambda x, A: ~(x >= 0),
    lambda x, A: x[1],
    lambda x, A: x[-1],
    lambda x, A: x[1:],
    lambda x, A: A[1],
    lambda x, A: A[:, 1],
    lambda x, A: A[0:2, 1:],
    lambda x, A: A[2, 0],
    lambda x, A: A[:2, -1],
    lambda x, A: np.array([1.0, 2.0, 3.0]) * x,
    lambda x, A: x == x,
    lambda x, A: x != 0.5,
]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_operators_mean_what_they_mean_in_numpy(expression):
    (found,) = run(lambda t, x, A: expression(x, A), x0, A0)
    assert np.array_equal(found, expression(x0, A0))


def test_integer_arrays_index_in_pairs():
    (found,) = run(lambda t, A: A[np.array([0, 2]), np.array([1, 1])], A0)
    assert np.array_equal(found, [1.0, 7.0])


def test_control_flow():
    def collatz(t, n):
        def body(n, steps):
            (following,) = t.if_(t.eq(t.mod(n, 2), 0), lambda: (t.to_int(n / 2),), lambda: (3 * n + 1,))
            return following, steps + 1

        return t.while_(lambda n, steps: n > 1, body, (n, 0))[1]

    def steps(n):
        count = 0
        while n > 1:
            n, count = (n // 2 if n % 2 == 0 else 3 * n + 1), count + 1
        return count

    for n in (1, 2, 7, 27):
        assert run(collatz, np.int64(n))[0] == steps(n)
    (total,) = run(lambda t, x: t.for_(3, lambda i, s: (s + x[i] * t.to_float(i),), (0.0,))[0], x0)
    assert total == -2.0 + 2 * 3.0


def test_loops_keep_their_types():
    with pytest.raises(InternalError, match="while_"):
        run(lambda t, x: t.while_(lambda a: t.sum(x) > 0, lambda a: (a + 0.5,), (0,)), x0)
    with pytest.raises(InternalError, match="if_"):
        run(lambda t, x: t.if_(t.sum(x) > 0, lambda: (x,), lambda: (x[0],)), x0)


def test_equal_functions_are_one_and_others_get_names_of_their_own():
    t = Tracer("calls")

    def body(x, y):
        first = t.call("clip", lambda v: t.maximum(v, 0.0), x)
        again = t.call("clip", lambda v: t.maximum(v, 0.0), y)
        other = t.call("clip", lambda v: t.maximum(v, 1.0), y)
        shorter = t.call("clip", lambda v: t.maximum(v, 0.0), y[:2])
        return first, again, other, shorter

    function = t.function("f", body, [("x", VECTOR), ("y", VECTOR)])
    called = [e.attr("function") for e in equations_of(function.body) if e.op == "call"]
    assert called == ["clip", "clip", "clip_2", "clip_3"]
    assert [f.name for f in t.functions] == ["clip", "clip_2", "clip_3"]
    found = run_function(function, (x0, -x0), t.functions, t.constants)
    assert np.array_equal(found[2], np.maximum(-x0, 1.0))


def test_a_function_sees_its_parameters_alone():
    with pytest.raises(InternalError, match="not in scope"):
        as_numpy("closure", lambda t, x: t.call("g", lambda y: y + x, x), VECTOR)


def test_values_do_not_leave_their_block():
    kept = []

    def body(t, x):
        def then():
            kept.append(t.sum(t.iota(3)))
            return (kept[0],)

        t.if_(True, then, lambda: (t.lift(1),))
        return x + kept[0]

    with pytest.raises(InternalError, match="not in scope"):
        as_numpy("leak", body, VECTOR)


def test_a_traced_value_has_no_truth():
    with pytest.raises(InternalError, match="no truth"):
        run(lambda t, x: x if t.sum(x) > 0 else -x, x0)


def test_constants_of_one_name_and_value_are_one():
    t = Tracer("constants")
    a = t.constant(np.ones(3), "A", "the model")
    assert t.constant(np.ones(3), "A").operand == a.operand
    assert t.constant(np.ones(3)).operand == a.operand
    assert t.constant(2 * np.ones(3), "A").operand != a.operand
    assert [g.var.name for g in t.constants] == ["A", "A_2"]


HOSTILE = [
    "import",
    "np",
    "class",
    "x y",
    "λ",
    "Δ",
    "1x",
    "__init__",
    "a-b",
    "",
    "_",
    "é",
    "x" * 500,
    "'''",
    'a";b',
    "int",
    "NULL",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_become_legal(name):
    found = identifier(name)
    assert is_legal(found) and found.isidentifier() and found.isascii() and found not in RESERVED
    assert identifier(name, {found}) != found


class Counting(set):
    """Names, and how often it was asked for one."""

    asked = 0

    def __contains__(self, name):
        self.asked += 1
        return super().__contains__(name)


@pytest.mark.parametrize("name", ["x", "import", "M", "v_"])
def test_many_names_alike_cost_little_and_count_on(name):
    taken = Counting()
    for _ in range(2000):
        taken.add(identifier(name, taken))
    assert taken.asked <= 2000 * 24  # 2 log2(2000) + 2
    assert len(taken) == 2000 and sorted(int(n.rsplit("_", 1)[1]) for n in taken if n[-1].isdigit()) == [
        *range(2, 2001)
    ]


def test_names_stay_apart():
    t = Tracer("names")
    fields = [("x", VECTOR), ("x ", VECTOR), ("import", VECTOR), ("import_", VECTOR), ("A", VECTOR)]
    function = t.function("f", lambda *vs: (t.name("x", vs[0] + vs[1]), t.constant(np.ones(3), "A") * vs[4]), fields)
    names = [p.name for p in function.body.params] + [v.name for e in equations_of(function.body) for v in e.outs]
    assert len(set(names)) == len(names) and all(map(is_legal, names))
    assert t.constants[0].var.name not in names


def test_programs_hold_notes_names_and_fields():
    t = Tracer("tiny")

    def update(state, seen, drawn):
        t.note("equation (1)")
        return {"x": t.name("y", state["x"] - seen["price"]), "Q": state["Q"] + 1.0}

    program = trace_program(
        t,
        decision=[Field("x", VECTOR)],
        feedback=[Field("price", VECTOR)],
        init=lambda start: {"x": start["x"], "Q": 0.0},
        decide=lambda state, drawn: {"x": state["x"]},
        update=update,
        state_docs={"Q": "queue"},
    )
    assert [(f.name, str(f.type), f.doc) for f in program.state][1:] == [
        ("x", "float64[3]", ""),
        ("Q", "float64", "queue"),
    ]
    noted = [e for e in program.update.body.equations if e.note]
    assert [(e.outs[0].name, e.note) for e in noted] == [("y", "equation (1)")]
    state = interpret(program, "init", [x0])
    state = interpret(program, "update", [*state, np.ones(3)])
    assert (int(state[0]), float(state[2])) == (2, 1.0) and np.array_equal(state[1], x0 - 1)


FORMULAS = [
    "sqrt(t)",
    "2 * T**(3/4) / log(1 + t)",
    "t**2 - t / 3 / T",
    "max(1, ceiling(t / 7))",
    "min(t, 20, T) * 3",
    "1 / t",
    "-1 / sqrt(t)",
    "exp(-t / T)",
    "2**t",
    "floor(sqrt(t))",
    "t**(-3/2)",
    "abs(10 - t) * 3.14159265358979",
    "1 / T",
    "sqrt(T) - t",
    "-5 * (t + 1) / (6 * T * sqrt(t))",
]
FUNCTIONS = {"max": sympy.Max, "min": sympy.Min, "abs": sympy.Abs}


def formula(text: str) -> Formula:
    return parse_formula(text, schedule_symbols())


@pytest.mark.parametrize("text", FORMULAS)
def test_formulas(text):
    traced = as_numpy("f", lambda tracer, now: trace_formula(tracer, formula(text), {"t": now, "T": 5000.0}), NUMBER)
    for now in (1, 8, 123):
        expected = float(sympy.sympify(text, FUNCTIONS).subs({"t": now, "T": 5000}).evalf(30))
        assert math.isclose(float(traced(now)[0]), expected, rel_tol=4e-15)


def test_formulas_without_the_round_are_constants_with_their_origin():
    tracer = Tracer("settings")
    value = trace_formula(tracer, formula("1 / T"), {"T": 5000.0}, "eta", "1/T (Theorem 1)")
    assert (value.operand.name, float(tracer.constants[0].value), tracer.constants[0].why) == (
        "eta",
        1 / 5000,
        "1/T (Theorem 1)",
    )


def test_parts_of_formulas_fold_into_literals():
    tracer = Tracer("settings")
    function = tracer.function(
        "f", lambda now: trace_formula(tracer, formula("sqrt(T) * t"), {"t": now, "T": 16.0}), [("t", NUMBER)]
    )
    (e,) = function.body.equations
    assert e.op == "mul" and Literal(4.0, NUMBER) in e.args


def test_formulas_with_unknown_symbols_are_refused():
    with pytest.raises(InternalError, match="uses T"):
        trace_formula(Tracer("settings"), formula("1 / T"), {"t": 1.0})


def test_a_program_prints_an_equation_a_line(golden):
    program = oco.compile(oco.load(EXAMPLES / "tracking.oco"), algorithm="mirror-descent", settings="paper").program
    golden(str(program) + "\n")


def test_calls_under_one_key_are_traced_once_and_make_the_same_program():
    def program(key):
        t, traced = Tracer("keys"), []

        def clip(v):
            traced.append(v)
            return t.maximum(v, 0.0)

        def body(x, y):
            return (
                t.call("clip", clip, x, key=key),
                t.call("clip", clip, t.name("x", y), key=key),
                t.call("clip", clip, y[:2], key=key),
            )

        return t.function("f", body, [("x", VECTOR), ("y", VECTOR)]), t.functions, len(traced)

    once, functions, few = program("clip")
    again, same, many = program(None)
    assert (once, functions) == (again, same) and (few, many) == (2, 3)  # another shape is another function
