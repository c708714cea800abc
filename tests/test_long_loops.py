"""Long arrays in C: functions written where they are called, totals along all entries, arrays that lie where others lay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ir_programs import random_learner, same_bits
from test_c99 import build, needs_compiler

from oco.backends.python.intake import NotFinite, finite
from oco.compiler.ir.build import trace_program
from oco.compiler.ir.flat_totals import flatten_totals
from oco.compiler.ir.inlining import inline_single_calls
from oco.compiler.ir.interpret import interpret
from oco.compiler.ir.loop_groups import LONG
from oco.compiler.ir.program import DType, Field, Program, Type
from oco.compiler.ir.rewrite import equations_of
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.verifier import check

N = 3 * LONG + 5
ROWS = (7, LONG - 1)


def stepping(t: Tracer, update: Callable[..., Any], shape: tuple[int, ...] = (N,)) -> Program:
    """A program with one decision x whose update is a function of x and a stream `a` of its shape."""
    made = Type(DType.FLOAT, shape)
    return trace_program(
        t,
        decision=[Field("x", made)],
        feedback=[Field("a", made)],
        init=lambda start: {"x": start["x"]},
        decide=lambda state, drawn: {"x": state["x"]},
        update=lambda state, seen, drawn: {"x": update(state["x"], seen["a"])},
    )


def test_functions_in_the_place_of_their_calls_keep_every_bit() -> None:
    for seed in range(60):
        program, args = random_learner(5000 + seed)
        found = interpret(check(inline_single_calls(program)), "measure", args)
        assert all(map(same_bits, found, interpret(program, "measure", args))), f"seed {seed}"


@pytest.mark.parametrize(("size", "calls", "left"), [(N, 1, 0), (N, 2, 1), (LONG - 1, 1, 1)])
def test_functions_over_long_arrays_are_written_at_their_only_call(size: int, calls: int, left: int) -> None:
    t = Tracer("helped")

    def helper(v: Any) -> Any:
        (halved,) = t.while_(lambda w: t.max(w) > 1.0, lambda w: (w * 0.5,), (v + 0.25,))
        return halved - t.sum(halved), v

    def update(x: Any, a: Any) -> Any:
        for _ in range(calls):
            x, kept = t.call("helper", helper, x * a)
            x = x + kept
        return x

    program = stepping(t, update, (size,))
    short = check(inline_single_calls(program))
    assert len(short.functions) == left
    args = [1, np.linspace(0, 3, size), np.linspace(1, 2, size)]
    assert all(map(same_bits, interpret(short, "update", args), interpret(program, "update", args)))


def test_functions_that_are_called_in_loops_stay() -> None:
    t = Tracer("looped")

    def update(x: Any, a: Any) -> Any:
        return t.while_(lambda v: t.max(v) > 1.0, lambda v: (t.call("half", lambda w: w * 0.5, v),), (x * a,))[0]

    program = stepping(t, update)
    assert inline_single_calls(program) == program


def test_totals_of_short_rows_are_taken_along_all_entries() -> None:
    """Whole numbers add up exactly in any order."""
    t = Tracer("totals")

    def update(x: Any, a: Any) -> Any:
        moved = x - a
        return x + t.sum(moved * moved + 1.0) + t.max(moved) + t.min(t.abs(a)) + t.sum(t.sum(a, axis=0))

    program = stepping(t, update, ROWS)
    flat = check(flatten_totals(program))
    totals = [e for e in equations_of(flat.update.body) if e.op in ("sum", "max", "min") and not e.outs[0].type.shape]
    assert len(totals) == 4 and all(len(e.args[0].type.shape) == 1 for e in totals)
    rng = np.random.default_rng(0)
    args = [1, *rng.integers(-9, 9, (2, *ROWS)).astype(float)]
    assert all(map(same_bits, interpret(flat, "update", args), interpret(program, "update", args)))


def test_totals_stay_where_their_entries_lie_otherwise() -> None:
    """Transposed rows would have to be copied."""
    t = Tracer("turned")
    program = stepping(t, lambda x, a: x + t.sum(t.transpose(x) * t.transpose(a)), ROWS)
    assert flatten_totals(program) == program


def chains(t: Tracer) -> dict[str, Callable[[Any, Any], Any]]:
    """Updates that make arrays of arrays, of which some are read once more than it seems."""

    def along(x: Any, a: Any) -> Any:
        low = x * a + 1.0
        mid = t.exp(t.min(low) - low)
        return mid / t.sum(mid)

    def read_again(x: Any, a: Any) -> Any:
        low = x * a + 1.0
        mid = low * t.sum(low)
        return mid * t.max(mid) + low

    def at_other_places(x: Any, a: Any) -> Any:
        low = x * a + 1.0
        mid = low * t.sum(low) + t.gather(low, (N - 1) - t.iota(N))
        return mid / t.sum(mid)

    def two_of_one(x: Any, a: Any) -> Any:
        low = x * a + 1.0
        total = t.sum(low)
        first, second = low * total, low + total
        return first * t.sum(second) + second * t.sum(first)

    def after_a_loop(x: Any, a: Any) -> Any:
        (halved,) = t.while_(lambda w: t.max(w) > 1.0, lambda w: (w * 0.5,), (x * a,))
        mid = halved * t.sum(halved)
        return t.gather(mid, (N - 1) - t.iota(N)) + t.sum(mid)

    return {f.__name__: f for f in (along, read_again, at_other_places, two_of_one, after_a_loop)}


@needs_compiler
def test_arrays_that_lie_where_others_lay_keep_their_values(tmp_path: Any) -> None:
    programs = []
    for name in chains(Tracer("names")):
        t = Tracer(name)
        programs.append(stepping(t, chains(t)[name]))
    natives = build(programs, tmp_path)
    assert "*const" in natives[0].source.code  # the first of them shares memory
    rng = np.random.default_rng(0)
    for program, native in zip(programs, natives):
        args = [1, *rng.uniform(0.5, 1.5, (2, N))]
        expected, found = interpret(program, "update", args)[1], native.update(*args)[1]
        np.testing.assert_allclose(found, expected, rtol=1e-13, err_msg=program.name)


@pytest.mark.parametrize("size", [3, 10_000, 20_001])
def test_states_of_any_length_are_looked_at(size: int) -> None:
    values = np.full(size, 1e308)  # whose sum and squares overflow
    with np.errstate(all="ignore"):
        assert finite(["x"], (values,))[0] is values
        for wrong in (np.nan, np.inf, -np.inf):
            values[size // 2] = wrong
            with pytest.raises(NotFinite):
                finite(["x"], (values,))
