"""`map` over rows: one by one, all at once, and some at a time in vectors of C it gives the same, to the rounding of sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from test_c99 import needs_compiler

from oco.backends.c99.backend import CBackend
from oco.backends.c99.module import emit
from oco.backends.contract import Contract
from oco.backends.registry import backend
from oco.compiler.ir.batching import batch
from oco.compiler.ir.build import trace_program
from oco.compiler.ir.interpret import as_numpy, interpret
from oco.compiler.ir.mapping import rows_at_once, rows_in_lanes
from oco.compiler.ir.passes import optimize
from oco.compiler.ir.program import DType, Field, Program, Type
from oco.compiler.ir.rewrite import all_functions, equations_of
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.compiler.ir.verifier import check
from oco.dsl.diagnostics import InternalError

D = 3
Step = Callable[[str, Sequence[object]], Sequence[object]]
Body = Callable[[Tracer, Value, Value, Value], Sequence[Value]]


def halves(t: Tracer, x: Value, size: Value, u: Value) -> Sequence[Value]:
    """A loop that each row leaves in its own time, with a function in it."""

    def half(v: Value, u: Value) -> Value:
        return t.where(v > u, 0.5 * v, v)

    y, _ = t.while_(
        lambda v, k: t.and_(t.sum(abs(v)) > 0.1 * size, k < 40),
        lambda v, k: (t.call("half", half, v, u), k + 1),
        (x, t.lift(0)),
    )
    return y + t.outer(u, u) @ x, t.sum(x * u) + size


def ordered(t: Tracer, x: Value, size: Value, u: Value) -> Sequence[Value]:
    """Rows that are sorted one by one."""
    return t.sort(x) * u, size - t.max(x)


def systems(t: Tracer, x: Value, size: Value, u: Value) -> Sequence[Value]:
    """Small systems of equations."""
    return t.concat(t.solve(t.outer(x[:2], x[:2]) + t.eye(2), u[:2]), x[:1]), size * size


def picked(t: Tracer, x: Value, size: Value, u: Value) -> Sequence[Value]:
    """Places that differ from row to row: an entry taken, and one put."""
    place = t.argmax(x)
    return t.put(u, t.gather(x, place) + size, place), t.gather(u, place)


BODIES: dict[str, Body] = {"halves": halves, "ordered": ordered, "systems": systems, "picked": picked}


def program(body: Body, rows: int) -> Program:
    """Decisions u; the state keeps rows x, which a round maps with sizes to rows again."""
    t = Tracer("mapped")
    sizes = np.linspace(0.5, 2.0, rows)

    def update(state: dict[str, Value], seen: dict[str, Value], drawn: dict[str, Value]) -> dict[str, Value]:
        size, pick = t.constant(sizes, "sizes"), t.constant(np.arange(rows) // 2, "pick")
        picked = t.concat(seen["u"], state["x"])[pick]
        x, total = t.map_(lambda a, b, c: body(t, a, b, seen["u"][0] + 0.1 * c), state["x"], size, picked)
        return {"x": 0.9 * x + 0.05, "total": total}

    return trace_program(
        t,
        decision=[Field("w", Type(DType.FLOAT, (D,)))],
        feedback=[Field("u", Type(DType.FLOAT, (1, D)))],
        init=lambda start: {"x": t.broadcast(start["w"], (rows, D)), "total": t.zeros((rows,))},
        decide=lambda state, drawn: {"w": t.sum(state["x"], axis=0)},
        update=update,  # type: ignore[arg-type]
        measure=lambda now, w, seen: (t.lift(0.0), t.zeros((1,)), t.zeros((0,))),
    )


def stepping(compiled: Any) -> Step:
    return lambda function, args: getattr(compiled, function)(*args)


def rounds(step: Step) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    state = step("init", [np.array([3.0, -1.0, 2.0])])
    found = []
    for _ in range(4):
        state = step("update", [*state, rng.uniform(-1, 2, (1, D))])
        found += [np.array(v, dtype=float).ravel() for v in state]
    return found


@needs_compiler
@pytest.mark.parametrize("rows", [1, 8, 11])
@pytest.mark.parametrize("name", BODIES)
def test_backends_agree(name: str, rows: int) -> None:
    traced = program(BODIES[name], rows)
    expected = rounds(lambda f, args: interpret(traced, f, args))
    short = optimize(traced, check_each=True)
    assert any(e.op == "map" for e in equations_of(short.update.body))
    for compiled in (backend("numpy").compile(short), CBackend().compile(short)):
        for a, b in zip(expected, rounds(stepping(compiled))):
            np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-14)
    together = rows_at_once(short)
    assert not any(e.op == "map" for f in all_functions(together) for e in equations_of(f.body))
    for a, b in zip(expected, rounds(lambda f, args: interpret(together, f, args))):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-14)


def test_vectors_are_for_this_machine_and_bodies_that_have_them() -> None:
    """Written C has no vectors; compiled C has them where rows go together."""
    empty = Contract("", "", None, {"w": np.zeros(D)})
    for name, wide in (("halves", True), ("ordered", False), ("systems", True)):
        short = optimize(program(BODIES[name], 11))
        assert "vector_size" not in emit(short, empty).code
        assert ("vector_size" in emit(short, empty, vectors=True).code) == wide


@pytest.mark.parametrize(("body", "together"), [(ordered, False), (halves, True)])
def test_rows_one_by_one_call_the_functions_that_the_program_has(body: Body, together: bool) -> None:
    """Functions over all rows are new ones; those that no row calls any more are left out."""

    def calling(t: Tracer, x: Value, size: Value, u: Value) -> Sequence[Value]:
        y, total = body(t, x, size, u)
        return t.call("shifted", lambda v: v * v - 0.5, y), total

    short = optimize(program(calling, 4))
    mapped = rows_at_once(short)
    assert set(short.functions).isdisjoint(mapped.functions) if together else mapped.functions == short.functions
    found, expected = (rounds(lambda f, args, p=p: interpret(p, f, args)) for p in (mapped, short))  # type: ignore[misc]
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-14)


def test_functions_over_rows_take_no_name_of_another_function() -> None:
    """A function calls `half` in rows, and after it another body of that name is called outside: `half_2` is the second's."""
    t = Tracer("named")

    def learned(x: Value) -> Value:
        (rows,) = t.map_(lambda v: (t.call("half", lambda w: 0.5 * w + t.sum(w), v),), x)
        return rows

    def update(state: dict[str, Value], seen: dict[str, Value], drawn: dict[str, Value]) -> dict[str, Value]:
        return {"x": t.call("half", lambda w: 0.25 * w, t.call("learned", learned, state["x"]) + seen["u"])}

    made = trace_program(
        t,
        decision=[Field("w", Type(DType.FLOAT, (D,)))],
        feedback=[Field("u", Type(DType.FLOAT, (1, D)))],
        init=lambda start: {"x": t.broadcast(start["w"], (8, D))},
        decide=lambda state, drawn: {"w": t.sum(state["x"], axis=0)},
        update=update,  # type: ignore[arg-type]
        measure=lambda now, w, seen: (t.lift(0.0), t.zeros((1,)), t.zeros((0,))),
    )
    assert {"half", "half_2"} <= {f.name for f in made.functions}
    x, u = np.arange(8.0 * D).reshape(8, D), np.ones((1, D))
    expected = 0.25 * (0.5 * x + x.sum(axis=1, keepdims=True) + u)
    for program in (made, rows_at_once(made), rows_in_lanes(made, 4)):
        names = [f.name for f in check(program).functions]
        assert len(names) == len(set(names))
        np.testing.assert_allclose(interpret(program, "update", [1, x, u])[1], expected, rtol=1e-14)


def test_feedback_may_have_the_name_of_a_function_over_rows() -> None:
    """The variables of functions without maps are renamed too: `half` is a function that is traced again, and a value elsewhere."""
    t = Tracer("named")

    def halved(v: Value) -> Value:
        return t.call("half", lambda w: 0.5 * w, v)

    def update(state: dict[str, Value], seen: dict[str, Value], drawn: dict[str, Value]) -> dict[str, Value]:
        (rows,) = t.map_(lambda v: (halved(v) + seen["half"],), state["x"])
        return {"x": rows}

    made = trace_program(
        t,
        decision=[Field("w", Type(DType.FLOAT, (D,)))],
        feedback=[Field("half", Type(DType.FLOAT, (D,)))],
        init=lambda start: {"x": t.broadcast(start["w"], (8, D))},
        decide=lambda state, drawn: {"w": t.sum(state["x"], axis=0)},
        update=update,  # type: ignore[arg-type]
        measure=lambda now, x, seen: (t.sum(halved(x["w"]) * seen["half"]), t.zeros((1,)), t.zeros((0,))),
    )
    x, u = np.arange(8.0 * D).reshape(8, D), np.arange(1.0, D + 1)
    check(rows_in_lanes(made, 4))
    for program in (made, rows_at_once(made)):
        np.testing.assert_allclose(interpret(check(program), "update", [1, x, u])[1], 0.5 * x + u, rtol=1e-14)
        assert interpret(program, "measure", [1, u, u])[0] == 0.5 * (u @ u)


def test_lanes_of_learners_take_rows_in_turn() -> None:
    """The program of several learners: each as alone."""
    short = optimize(program(halves, 5))
    many, rng = batch(short, 3), np.random.default_rng(0)
    starts, seen = rng.uniform(-2, 3, (D, 3)), rng.uniform(-1, 2, (1, D, 3))
    together = interpret(many, "update", [*interpret(many, "init", [starts]), seen])
    for k in range(3):
        alone = interpret(short, "update", [*interpret(short, "init", [starts[:, k]]), seen[..., k]])
        for a, b in zip(alone[1:], together[1:]):
            np.testing.assert_allclose(a, b[..., k], rtol=1e-13, atol=1e-14)


def test_bodies_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InternalError, match="form of"):
        as_numpy(
            "wrong",
            lambda t, x, y: t.map_(lambda a, b: (a + b,), x, y),
            Type(DType.FLOAT, (3,)),
            Type(DType.FLOAT, (4,)),
        )
