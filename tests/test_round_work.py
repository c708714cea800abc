"""Estimated work of a round: what an interpreter does, counted, and by hand where it is estimated; never a clock."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_ir_passes import learner

import oco
from oco.backends.capabilities import CompileTime, Speed
from oco.backends.choose import usual_seconds
from oco.backends.round_work import CACHED, TURNS, RoundWork, Workload, optimizing_pays, work_of
from oco.compiler.ir.interpret import Environment, _Machine
from oco.compiler.ir.program import Block, Equation, Program
from oco.compiler.ir.rewrite import all_functions, equations_of
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.compiler.proximal.separable_response import AT_KINKS

TEXT = """\
model quota
horizon T = 400
decision x[4] in box(0, 5) with sum(x) <= 12
stream gain[4] in [0, 20]
stream use[4] in [0, 6]
maximize gain @ x
subject to
    quota: use @ x <= 2.2  on average
"""
BENT = """\
model bent
horizon T = 400
decision x[3] in box(0, 2)
stream a[3] in [0, 1]
stream b in [0, 9]
minimize a @ x
subject to
    served: b <= sum(4 * log(1 + x) {more})  each round
"""


class Counting(_Machine):
    """Interpreter that counts operations, and those of loops and maps once a turn."""

    def __init__(self, program: Program) -> None:
        super().__init__(program.functions, program.constants)
        equations = [e for f in all_functions(program) for e in equations_of(f.body)]
        self.bodies = [e.blocks[-1] for e in equations if e.op in ("for", "while", "map")]
        self.done = 0

    def equation(self, e: Equation, env: Environment) -> tuple[Any, ...]:
        self.done += e.op not in ("call", "for", "while", "map")
        return super().equation(e, env)

    def block(self, block: Block, args: tuple[Any, ...], env: Environment) -> tuple[Any, ...]:
        self.done += any(block is body for body in self.bodies)
        return super().block(block, args, env)


def of(update: Any) -> RoundWork:
    """Work of an update of x, shape (3,), beside that of a learner which leaves x as it is."""
    work, bare = work_of(learner(update)), work_of(learner(lambda t, x, seen: x))
    return work + bare.times(-1)


def test_operations_are_those_that_an_interpreter_does() -> None:
    def update(t: Tracer, x: Value, seen: Any) -> Value:
        (x,) = t.for_(4, lambda i, a: (t.call("halved", lambda b: 0.5 * b, a) + t.exp(x),), (x,))
        (y,) = t.map_(lambda row: (t.sum(row * row) + 1.0,), t.outer(x, x))
        (x,) = t.if_(t.sum(x) > 0.0, lambda: (x + y,), lambda: (x - y,))
        return t.while_(lambda a, n: n < TURNS, lambda a, n: (a * 0.5, n + 1), (x, 0))[0]

    program = learner(update)
    machine = Counting(program)
    for f in (program.decide, program.update):
        machine.run(f, [np.int64(1), np.array([0.3, -0.2, 0.7])])
    assert work_of(program).operations == machine.done - 1  # the test that ends the loop


def test_of_two_branches_the_longer_is_work() -> None:
    def branches(t: Tracer, x: Value, seen: Any) -> Value:
        return t.if_(t.sum(x) > 0.0, lambda: (x * x + x,), lambda: (x,))[0]

    # a sum of three, a comparison and the branch; a product and a sum of three
    assert of(branches) == RoundWork(operations=5, numbers=1, entries=10, additions=10)


def test_loops_in_loops_begin_near_their_end_and_a_stated_number_of_turns_counts() -> None:
    def halved(t: Tracer, x: Value, turns: int | None) -> Value:
        return t.while_(lambda a: t.sum(a) > 1.0, lambda a: (a * 0.5,), (x,), turns=turns)[0]

    def nested(t: Tracer, x: Value, turns: int | None) -> Value:
        return t.while_(lambda a: t.sum(a) > 1.0, lambda a: (halved(t, a, turns),), (x,))[0]

    outer = RoundWork(operations=3, numbers=1, entries=4, additions=4)  # the turn, a sum of three, a comparison
    inner = outer + RoundWork(operations=1, entries=3, additions=3)
    for turns in (None, 30):
        assert of(lambda t, x, seen, turns=turns: halved(t, x, turns)) == inner.times(turns or TURNS)
        assert of(lambda t, x, seen, turns=turns: nested(t, x, turns)) == (outer + inner.times(turns or 1)).times(TURNS)


@pytest.mark.parametrize(
    "entries, additions, update",
    [
        (3, 3, lambda t, x: x + x),
        (3, 9, lambda t, x: x / 3.0),
        (3, 45, lambda t, x: t.exp(x)),
        (3 + 1 + 3, 3 + 3 + 3, lambda t, x: t.sum(x) / 2.0 + x),
        (9 + 9, 9 + 9, lambda t, x: t.outer(x, x) @ x),
        (9 + 27 + 9 + 3, 9 + 27 + 9 + 3, lambda t, x: t.sum(t.outer(x, x) @ t.eye(3)) * x),
        (27, 54, lambda t, x: t.solve(t.eye(3), x)),
        (27, 0, lambda t, x: t.svd(t.eye(3))[1]),
        (2, 20, lambda t, x: t.put(x, x[:2], t.iota(2))),
        (2 + 3, 20 + 3, lambda t, x: t.concat(t.gather(x, t.iota(2)), x[:1])),
        (0, 0, lambda t, x: t.reshape(t.transpose(t.reshape(x, (1, 3))), (3,))),
    ],
)
def test_entries_are_what_operations_make(entries: int, additions: int, update: Any) -> None:
    work = of(lambda t, x, seen: update(t, x))
    assert (work.entries, work.additions) == (entries, additions)


def test_large_arrays_come_from_memory() -> None:
    n = 2 * CACHED
    work = of(lambda t, x, seen: t.sum(t.broadcast(t.sum(x), (n,)) * 2.0) * x)
    assert work == RoundWork(operations=5, numbers=1, entries=2 * n + 6, additions=6, slow=2 * n)


def test_rows_together_are_operations_once_and_entries_each() -> None:
    def rows(t: Tracer, x: Value, seen: Any) -> Value:
        return t.map_(lambda row: (t.sum(row * row) + 1.0,), t.outer(x, x))[0]

    program = learner(rows)
    apart, together = work_of(program), work_of(program, together=True)
    assert apart + work_of(learner(lambda t, x, seen: x)).times(-1) == RoundWork(1 + 3 * 4, 3, 9 + 3 * 7, 9 + 3 * 7)
    assert together == RoundWork(apart.operations - 2 * 4, apart.numbers - 3, apart.entries, apart.additions)


def test_random_numbers_are_work() -> None:
    text = "model m\nhorizon T = 9\ndecision x[3] in ball(1)\nstream p[3] in [-1, 1]\nfeedback bandit\nminimize p @ x\n"
    program = oco.compile(oco.parse(text)).program
    assert work_of(program).draws == sum(np.prod(f.type.shape) for f in program.draws) > 0


def test_seconds_are_those_of_each_part() -> None:
    speed = Speed(a_round=1e-1, operation=1e-2, number=1e-3, addition=1e-4, slow=1e-5, draw=1e-6)
    assert RoundWork(7, 3, 99, 5, 6, 8).seconds(speed) == pytest.approx(0.1 + 0.04 + 0.003 + 5e-4 + 6e-5 + 8e-6)


def test_compilers_optimize_what_runs_longer_than_they_take() -> None:
    slow, quick = CompileTime(3.0, 0.1, 1.0), CompileTime(1.0, 0.05, 0.1)
    speed = Speed(compiling=slow, hastily=quick, a_round=1.0)
    program = learner(lambda t, x, seen: t.exp(t.broadcast(t.sum(x), (5,)))[:3] * x)
    load = Workload.of(program, 0)
    assert load.unrolled == 1 and load.to_compile(speed) == pytest.approx(1.0 + 0.05 * load.operations + 0.1)
    assert Workload.of(program, 10**3).to_compile(speed) == pytest.approx(3.0 + 0.1 * load.operations + 1.0)


@pytest.mark.parametrize(("more", "turns"), [("", []), ("+ minimum(x, 1)", [AT_KINKS])])
def test_slopes_that_jump_take_more_turns(more: str, turns: list[int]) -> None:
    program = oco.compile(oco.parse(BENT.format(more=more)), "coldq").program
    loops = [e for f in all_functions(program) for e in equations_of(f.body) if e.op == "while"]
    assert loops and [dict(e.attrs)["turns"] for e in loops if e.attrs] == turns


def test_runs_as_long_as_a_compiler_takes_are_compiled_hastily() -> None:
    program = oco.compile(oco.parse(TEXT), "hedged").program
    assert [optimizing_pays(program, rounds, "c") for rounds in (1, 10**8, None)] == [False, True, True]
    assert usual_seconds(program, 200) < 3.0


def test_experts_are_the_default_where_a_constraint_holds_on_average() -> None:
    rng = np.random.default_rng(1)
    data = {"gain": rng.uniform(0, 20, (400, 4)), "use": rng.uniform(0, 6, (400, 4))}
    plan = oco.compile(oco.parse(TEXT), data=data)
    assert plan.algorithm == "hedged" and plan.choice.pilots is None
