"""Passes about loops: hoisting, lifting, small systems, and which operations share a loop."""

from __future__ import annotations

import numpy as np
from test_ir_passes import learner, operations

from oco.compiler.ir.few_rows import combine_few_rows
from oco.compiler.ir.fusion import given_up, stored
from oco.compiler.ir.hoisting import hoist
from oco.compiler.ir.interpret import interpret
from oco.compiler.ir.lifting import lift, lift_arrays
from oco.compiler.ir.loop_groups import groups
from oco.compiler.ir.program import DType, Type
from oco.compiler.ir.rewrite import equations_of
from oco.compiler.ir.small_solves import expand_small_solves
from oco.compiler.ir.thin_products import flatten_thin_products
from oco.compiler.ir.verifier import check


def test_what_a_loop_does_not_change_moves_before_it():
    def update(t, x, seen):
        (total,) = t.for_(3, lambda i, a: (a * t.exp(x) + t.to_float(i),), (x,))
        return total

    before = learner(update)
    after = check(hoist(before))
    (loop,) = [e for e in after.update.body.equations if e.op == "for"]
    assert "exp" in [e.op for e in after.update.body.equations] and "exp" not in [
        e.op for e in equations_of(loop.blocks[0])
    ]
    x = np.array([0.1, 0.2, 0.3])
    assert np.array_equal(interpret(after, "update", [1, x])[1], interpret(before, "update", [1, x])[1])


def test_what_every_call_computes_is_passed():
    def update(t, x, seen):
        norm = lambda a, b: a * t.sqrt(t.sum(b * b))  # noqa: E731
        first = t.call("scaled", norm, x + 1.0, x)
        return t.call("scaled", norm, first, x)

    before = learner(update)
    after = check(lift(before))
    assert "sqrt" in operations(after) and "sqrt" not in [e.op for e in equations_of(after.functions[0].body)]
    x = np.array([0.1, 0.2, 0.3])
    assert np.array_equal(interpret(after, "update", [1, x])[1], interpret(before, "update", [1, x])[1])


def test_arrays_pass_through_callers_that_call_once():
    """`inner` makes -x of what `outer` hands on and gets from a loop; a product with what the loop changes stays."""

    def update(t, x, seen):
        inner = lambda a, b: a * (b - 2.0 * b * b)  # noqa: E731
        outer = lambda a, b: t.call("inner", inner, a + b, b)  # noqa: E731
        (result,) = t.while_(lambda a: t.sum(a) < 0.0, lambda a: (t.call("outer", outer, a, x),), (x,))
        return result

    before = learner(update)
    after = check(lift_arrays(before))
    left = {f.name: [e.op for e in equations_of(f.body)] for f in after.functions}
    assert left == {"inner": ["mul"], "outer": ["add", "call"]}
    assert operations(after).count("mul") == 2 and operations(after).count("sub") == 1
    for start in ([-0.1, 0.2, -0.3], [3.0, 4.0, 5.0]):  # the loop takes turns, and none
        same = [interpret(program, "update", [1, np.array(start)])[1] for program in (before, after)]
        assert np.array_equal(*same)


def test_small_systems_are_arithmetic():
    rng = np.random.default_rng(0)
    program = learner(lambda t, x, seen: t.solve(seen["a"], x), feedback=[("a", Type(DType.FLOAT, (3, 3)))])
    after = check(expand_small_solves(program))
    assert "solve" not in operations(after)
    for _ in range(50):
        a, x = rng.normal(size=(3, 3)), rng.normal(size=3)
        a[0, 0] *= rng.integers(0, 2)  # rows are exchanged
        assert np.allclose(interpret(after, "update", [1, x, a])[1], np.linalg.solve(a, x), rtol=1e-9)


def test_operations_share_loops_where_each_reads_its_own_entry():
    def update(t, x, seen):
        low = t.name("low", x < 0.0)
        high = t.name("high", x > 1.0)
        return t.where(t.or_(low, high), t.sum(x) - x[::1], x) + t.to_float(t.and_(low, high))

    body = learner(update).update.body
    made_by = {v.name: e for e in equations_of(body) for v in e.outs}
    found = groups(body, stored(body), made_by, mixed=True)
    shapes = [g.shape for g in found if g.shape is not None]
    assert len(shapes) == len(set(shapes)) or shapes.count((3,)) <= 2  # the sum must be whole before it is read
    assert sum(len(g.equations) for g in found) >= len([e for e in body.equations if e.outs[0].name in stored(body)])


def test_products_with_axes_of_one_entry_are_inner_products_and_multiples():
    """Matrix products of every kind of axes, before and after; one that is larger than both of its sides stays."""

    def update(t, x, seen):
        row, column, one = t.reshape(x, (1, 3)), t.reshape(x, (3, 1)), t.reshape(t.sum(x), (1, 1))
        thin = [
            row @ x,
            row @ column,
            one @ row,
            column @ one,
            t.reshape(one, (1,)) @ row,
            column @ t.reshape(one, (1,)),
        ]
        return x + sum((t.sum(product * 0.5) for product in thin), t.sum(column @ row))

    before = learner(update)
    after = check(flatten_thin_products(before))
    assert sum(op == "matmul" for op in operations(after)) == 3
    assert [e.args[0].type.shape for e in after.update.body.equations if e.op == "matmul"] == [(3,), (3,), (3, 1)]
    x = np.array([0.1, -0.2, 0.7])
    assert np.allclose(interpret(after, "update", [1, x])[1], interpret(before, "update", [1, x])[1], rtol=1e-15)


def test_a_few_rows_are_combined_entry_by_entry():
    """Weights times rows, and transposed rows times weights, are no products of matrices; rows that are made entry by entry keep theirs."""

    def update(t, x, seen):
        A = t.constant(np.arange(6.0).reshape(2, 3) - 2.0, "A", "")
        weights = t.stack(x[0], x[1])
        return x + weights @ A + A.T @ weights + weights @ (A * 2.0)

    before = learner(update)
    after = check(combine_few_rows(before))
    assert sum(op == "matmul" for op in operations(before)) == 3
    assert sum(op == "matmul" for op in operations(after)) == 1
    x = np.array([0.1, -0.2, 0.7])
    assert np.allclose(interpret(after, "update", [1, x])[1], interpret(before, "update", [1, x])[1], rtol=1e-15)


def test_numbers_that_are_known_at_once_keep_no_loops_apart():
    """A sum shares the loop that makes its entries, though a number between them is read in it."""

    def update(t, x, seen):
        wide = t.constant(np.linspace(1.0, 2.0, 96), "wide", "")
        squares = t.name("squares", wide * x[0])
        share = t.name("share", x[1] * 3.0)
        return x + t.sum(squares * share) + t.sum(squares)

    body = learner(update).update.body
    made_by = {v.name: e for e in equations_of(body) for v in e.outs}
    loops = [g for g in groups(body, stored(body), made_by) if g.shape == (96,)]
    assert [len(g.equations) for g in loops] == [3]


def test_a_loop_begins_in_the_memory_of_what_nothing_reads_again():
    """An array that is read before the loop alone, directly or through what has no place; not where it is read behind the loop."""

    def body_of(read_again):
        def update(t, x, seen):
            first = t.name("first", t.sort(x))
            before = t.sum(first * 2.0)
            (last,) = t.for_(3, lambda i, v: (v * 0.5,), [first])
            return last + before + (first if read_again else 0.0)

        return learner(update).update.body

    for read_again in (False, True):
        body = body_of(read_again)
        assert ("first" in given_up(body, stored(body))) is not read_again
