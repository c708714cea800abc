"""Passes that make fewer or shorter calls: gathers before loops, reductions over a few rows, inner loops of all turns at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from ir_programs import FLOAT, INT, random_learner, same_bits
from test_ir_passes import learner, operations

from oco.backends.python.executed import executed
from oco.backends.python.module import rule_text
from oco.compiler.ir.dead_code import remove_dead_code
from oco.compiler.ir.inner_loops import inner_loops_at_once
from oco.compiler.ir.interpret import interpret
from oco.compiler.ir.mapping import rows_at_once
from oco.compiler.ir.passes import shorten
from oco.compiler.ir.program import Block, Equation, Program, Type
from oco.compiler.ir.rewrite import equations_of
from oco.compiler.ir.short_calls import gather_before_loops, reduce_by_rows
from oco.compiler.ir.verifier import check

TABLE = np.array([[0, 2], [1, 1], [2, 0], [0, 1]])
STREAMS = [("a", Type(FLOAT, (3,))), ("rows", Type(FLOAT, (5, 3))), ("table", Type(INT, (4, 2)))]
PASSES: dict[str, Callable[[Program], Program]] = {
    "gathers": gather_before_loops,
    "few rows": reduce_by_rows,
    "inner loops": lambda program: rows_at_once(inner_loops_at_once(program)),
}


def given(seed: int) -> list[np.ndarray]:
    """Arguments of `update`: the round, x (3,) and the streams."""
    rng = np.random.default_rng(seed)
    return [np.array(1), rng.normal(size=3), rng.normal(size=3), rng.normal(size=(5, 3)), TABLE]


def walked(t, x, seen, carried=False):
    """x plus the sum over the rows r of exp(-|v|), where v gets an entry after the other from those that each row of the table names."""

    def turn(r, total):
        c = seen["a"] + t.gather(seen["rows"], r) + (total if carried else 0.0)

        def relax(k, v):
            picked = t.gather(seen["table"], k)
            both = t.stack(t.gather(c, picked) + t.gather(v, picked), t.gather(v, picked))
            return t.put(v, t.sum(t.min(both, axis=0)), k % 3)

        (v,) = t.for_(4, relax, (t.zeros((3,)),))
        return total + t.exp(-t.abs(v))

    return t.for_(5, turn, (x,))[0]


def walked_by_numbers(x, a, rows, table, carried=False):
    """`walked` entry by entry."""
    total = x.copy()
    for row in rows:
        c, v = a + row + (total if carried else 0.0), np.zeros(3)
        for k, (i, j) in enumerate(table):
            v[k % 3] = min(c[i] + v[i], v[i]) + min(c[j] + v[j], v[j])
        total = total + np.exp(-np.abs(v))
    return total


def loops(block: Block) -> list[Equation]:
    return [e for e in equations_of(block) if e.op == "for"]


@pytest.mark.parametrize("name", PASSES)
def test_passes_keep_every_bit(name):
    for seed in range(60):
        program, args = random_learner(9000 + seed)
        found = interpret(check(PASSES[name](program)), "measure", args)
        for a, b in zip(found, interpret(program, "measure", args), strict=True):
            assert same_bits(a, b), f"seed {seed}"


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("carried", [False, True])
def test_loops_in_loops_are_those_by_numbers(name, carried):
    raw = learner(lambda t, x, seen: walked(t, x, seen, carried), feedback=STREAMS)
    program = check(remove_dead_code(PASSES[name](raw)))
    for seed in range(5):
        args = given(seed)
        found = interpret(program, "update", args)[1]
        assert same_bits(found, interpret(raw, "update", args)[1])
        assert np.allclose(found, walked_by_numbers(*args[1:], carried), rtol=1e-13)


def test_inner_loops_go_in_front_where_no_turn_needs_those_before():
    raw = learner(walked, feedback=STREAMS)
    split = check(remove_dead_code(inner_loops_at_once(raw)))
    assert operations(split).count("map") == 1 and len(loops(split.update.body)) == 2
    (outer,) = [e for e in split.update.body.equations if e.op == "for"]
    assert "for" not in [e.op for e in equations_of(outer.blocks[0])]
    dependent = learner(lambda t, x, seen: walked(t, x, seen, True), feedback=STREAMS)
    assert "map" not in operations(inner_loops_at_once(dependent))


def test_gathers_of_all_rows_go_in_front():
    def update(t, x, seen):
        both = lambda k, total: total + t.sum(t.gather(x, t.gather(seen["table"], k)))  # noqa: E731
        first = t.for_(4, both, (0.0,))[0]
        some = t.for_(3, both, (0.0,))[0]  # not all rows of the table: stays
        return x * first + some

    raw = learner(update, feedback=STREAMS)
    program = check(remove_dead_code(gather_before_loops(raw)))
    inside = [[e.op for e in equations_of(loop.blocks[0])].count("gather") for loop in loops(program.update.body)]
    assert inside == [1, 2] and operations(raw).count("gather") == operations(program).count("gather") == 4
    args = given(1)
    x = args[1]
    expected = x * x[TABLE].sum() + x[TABLE[:3]].sum()
    assert np.allclose(interpret(program, "update", args)[1], expected, rtol=1e-13)


@pytest.mark.parametrize("reduction", ["sum", "max", "min", "prod"])
def test_few_rows_are_reduced_by_operations(reduction):
    def update(t, x, seen):
        few, many = t.slice(seen["rows"], (0, 0), (3, 3)), t.slice(seen["rows"], (0, 0), (4, 3))
        return getattr(t, reduction)(few, axis=0) + getattr(t, reduction)(many, axis=0)

    raw = learner(update, feedback=STREAMS)
    program = check(remove_dead_code(reduce_by_rows(raw)))
    assert operations(program).count(reduction) == 1 and operations(program).count("gather") == 3
    args = given(2)
    args[3][1, 1] = np.nan
    rows = args[3]
    expected = getattr(rows[:3], reduction)(axis=0) + getattr(rows[:4], reduction)(axis=0)
    assert same_bits(interpret(program, "update", args)[1], expected)


@pytest.mark.parametrize("carried", [False, True])
def test_numpy_of_loops_in_loops(carried):
    program = shorten(learner(lambda t, x, seen: walked(t, x, seen, carried), feedback=STREAMS))
    update = executed(program, rule_text(program, [program.update]), [program.update])["update"]
    for seed in range(3):
        args = given(seed)
        found = update(*args)[1]
        assert np.allclose(found, walked_by_numbers(*args[1:], carried), rtol=1e-13)
