"""Loops that replace entries of an array: written where it lies or not, their results are those of the interpreter, which copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ir_programs import FLOAT, as_python, same_bits
from test_c99 import build, needs_compiler

from oco.compiler.ir.build import trace_program
from oco.compiler.ir.in_place import replaced_in_place
from oco.compiler.ir.interpret import interpret, run_function
from oco.compiler.ir.passes import optimize
from oco.compiler.ir.program import Field, Program, Type
from oco.compiler.ir.rewrite import equations_of
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value

VECTOR, SQUARE = Type(FLOAT, (4,)), Type(FLOAT, (4, 4))
Body = Callable[[Tracer, Value, Value], Value]


def running(t: Tracer, x: Value, A: Value) -> Value:
    """Each entry from the one before it."""
    return t.for_(3, lambda i, v: (t.put(v, t.gather(v, i) * 0.5 + 1.0, i + 1),), (x,))[0]


def twice(t: Tracer, x: Value, A: Value) -> Value:
    """Two entries in turn, the second made of the first."""

    def step(i: Value, v: Value) -> Value:
        first = t.put(v, t.sum(v), i)
        return t.put(first, t.gather(first, i) + 1.0, i + 1)

    return t.for_(3, step, (x,))[0]


def rows(t: Tracer, x: Value, A: Value) -> Value:
    """A row from a sum over the rows."""
    return t.sum(t.for_(4, lambda i, M: (t.put(M, t.sum(M * 0.5, axis=0), i),), (A,))[0], axis=1)


def kept(t: Tracer, x: Value, A: Value) -> Value:
    """The array before is needed after an entry is replaced."""

    def step(i: Value, v: Value) -> Value:
        changed = t.put(v, 7.0, i)
        return changed + 0.0 * v

    return t.for_(4, step, (x,))[0] + t.for_(4, lambda i, v, w: (t.put(v, t.sum(w), i), v), (x, x + 1.0))[1]


def over_itself(t: Tracer, x: Value, A: Value) -> Value:
    """Arrays and numbers that are made of each other: one array may be written over itself, the others not before all have read it."""

    def step(i: Value, v: Value, w: Value, s: Value) -> tuple[Value, ...]:
        return v * 0.5 + s, w + v, t.gather(v, 1) + s

    def turned(i: Value, v: Value, w: Value) -> tuple[Value, ...]:
        return w * 2.0, v - t.gather(v, 0)

    v, w, s = t.for_(4, step, (x, x + 1.0, t.lift(0.25)))
    return v + w * s + t.for_(3, turned, (x, w))[0] + t.for_(3, lambda i, v: (v * v - t.gather(v, 3),), (x,))[0]


def shifted(t: Tracer, x: Value, A: Value) -> Value:
    """Entries are replaced by others of the same array."""
    places = t.constant(np.array([0, 1, 2]), "places")
    return t.for_(3, lambda i, v: (t.put(v, t.gather(v, places) + 1.0, places + 1),), (x,))[0]


def looked_at(t: Tracer, x: Value, A: Value) -> Value:
    """A part of the array, looked at before, is used after an entry is replaced."""

    def step(i: Value, M: Value, total: Value) -> tuple[Value, Value]:
        row = t.gather(M, i)
        changed = t.put(M, t.zeros((4,)), i)
        return changed, total + row

    M, total = t.for_(4, step, (A, t.zeros((4,))))
    return total + t.sum(M)


def from_the_same(t: Tracer, x: Value, A: Value) -> Value:
    """Two variables begin with one array, which is needed after the loop as well."""

    def step(i: Value, v: Value, w: Value) -> tuple[Value, Value]:
        return t.put(v, t.gather(w, i), 3 - i), t.put(w, 2.0, i)

    v, w = t.for_(4, step, (x, x))
    return v + 10.0 * w + 100.0 * x


def until(t: Tracer, x: Value, A: Value) -> Value:
    """A walk that ends where it has been."""

    def on(place: Value, v: Value) -> Value:
        return t.gather(v, place) < 50.0

    def step(place: Value, v: Value) -> tuple[Value, Value]:
        return (place + 3) % 4, t.put(v, 60.0, place)

    return t.while_(on, step, (t.lift(1), x))[1]


BODIES: dict[str, tuple[Body, int]] = {
    "running": (running, 1),
    "twice": (twice, 2),
    "rows": (rows, 1),
    "kept": (kept, 0),
    "over_itself": (over_itself, 0),
    "shifted": (shifted, 0),
    "looked_at": (looked_at, 0),
    "from_the_same": (from_the_same, 2),
    "until": (until, 1),
}
"""Bodies, and how many of the replacements of each are in place."""


def drawn() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    return rng.normal(size=4), rng.normal(size=(4, 4))


@pytest.mark.parametrize("name", BODIES)
def test_numpy_replaces_what_the_interpreter_copies(name: str) -> None:
    body, count = BODIES[name]
    t = Tracer(name)
    f = t.function("f", lambda x, A: body(t, x, A), [("x", VECTOR), ("A", SQUARE)])
    loops = [e for e in equations_of(f.body) if e.op in ("for", "while")]
    changed = [replaced_in_place(e.blocks[-1], e.blocks[-1].params[-len(e.outs) :]) for e in loops]
    assert sum(map(len, changed)) == count
    x, A = drawn()
    before = x.copy(), A.copy()
    expected = run_function(f, [x, A], t.functions, t.constants)
    assert same_bits(as_python(t, f)(x, A), expected[0])
    assert same_bits(x, before[0]) and same_bits(A, before[1]), "arguments stay as they were"


def program(name: str) -> Program:
    t = Tracer(f"loops_{name}")
    return optimize(
        trace_program(
            t,
            decision=[Field("x", VECTOR)],
            feedback=[Field("A", SQUARE)],
            init=lambda start: {"x": start["x"]},
            decide=lambda state, drawn: {"x": state["x"]},
            update=lambda state, seen, drawn: {"x": state["x"]},
            measure=lambda now, x, seen: (t.lift(0.0), BODIES[name][0](t, x["x"], seen["A"]), t.zeros((0,))),
        )
    )


@needs_compiler
def test_c_replaces_what_the_interpreter_copies(tmp_path) -> None:
    programs, (x, A) = [program(name) for name in BODIES], drawn()
    for native, p in zip(build(programs, tmp_path), programs):
        args = [np.array(1), x, A]
        for found, expected in zip(native.measure(*args), interpret(p, "measure", args)):
            np.testing.assert_allclose(found, expected, rtol=1e-12, err_msg=p.name)
