"""The passes in their order. Each keeps what a program computes, bit for bit; some of those for one kind of target change its last bits.

The checker runs once, after the last of them; after each where `check_each` says so, as tests do.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType

from oco.compiler.ir.common_subexpressions import share_subexpressions
from oco.compiler.ir.constant_folding import fold_constants
from oco.compiler.ir.dead_code import remove_dead_code, with_one_entry
from oco.compiler.ir.dot_products import make_dot_products, sum_by_ones
from oco.compiler.ir.few_rows import combine_few_rows
from oco.compiler.ir.hoisting import hoist
from oco.compiler.ir.inlining import inline_single_calls
from oco.compiler.ir.inner_loops import inner_loops_at_once
from oco.compiler.ir.lifting import lift, lift_arrays
from oco.compiler.ir.mapping import rows_at_once
from oco.compiler.ir.masked_sums import sum_under_masks
from oco.compiler.ir.numbers_beside_arrays import keep_numbers_as_arrays
from oco.compiler.ir.program import Function, Program
from oco.compiler.ir.quotients import cancel_quotients
from oco.compiler.ir.reciprocals import multiply_by_reciprocals
from oco.compiler.ir.rewrite import LeftAlone
from oco.compiler.ir.scalar_factors import join_factors
from oco.compiler.ir.short_calls import gather_before_loops, reduce_by_rows
from oco.compiler.ir.simplify import simplify
from oco.compiler.ir.small_arrays import unroll_small_arrays
from oco.compiler.ir.small_solves import expand_small_solves
from oco.compiler.ir.thin_products import flatten_thin_products
from oco.compiler.ir.verifier import check, check_rules

Pass = Callable[..., Program]
"""From a program to a program; those of `LOCAL` may be given what they left alone."""

PASSES: dict[str, Pass] = {
    "constant-folding": fold_constants,
    "simplify": simplify,
    "lifting": lift,
    "hoisting": hoist,
    "common-subexpressions": share_subexpressions,
    "dead-code": remove_dead_code,
}
LOCAL = tuple(name for name in PASSES if name != "lifting")
"""Passes that change a function for what stands in it alone: what moves between functions hangs on their callers."""
MOST_ROUNDS = 5
"""Rounds of all passes; of random programs none takes more than three, and the last finds nothing to do."""

DIVISIONS: dict[str, Pass] = {
    "quotients": cancel_quotients,
    "reciprocals": multiply_by_reciprocals,
}
"""Passes that round otherwise, for all targets with explicit loops: first, so that fleets and their learners have the same bits."""

LOOPS: dict[str, Pass] = {
    **DIVISIONS,
    "inlining": inline_single_calls,
    "few-rows": combine_few_rows,
    "thin-products": flatten_thin_products,
    "simplify": simplify,
    "small-solves": expand_small_solves,
    "dead-code": remove_dead_code,
}
"""Passes for targets with explicit loops, after the others."""

CALLS: dict[str, Pass] = {
    "quotients": cancel_quotients,
    "thin-products": flatten_thin_products,
    "simplify": simplify,
    "dot-products": make_dot_products,
    "small-solves": expand_small_solves,
    "small-arrays": unroll_small_arrays,
    "scalar-factors": join_factors,
    "masked-sums": sum_under_masks,
    "sums": sum_by_ones,
    "gathers": gather_before_loops,
    "few-rows": reduce_by_rows,
    "lifting": lift_arrays,
    "common-subexpressions": share_subexpressions,
    "numbers-beside-arrays": keep_numbers_as_arrays,
    "dead-code": remove_dead_code,
}
"""Passes for targets where every operation is a call, after the others."""

FUSED: dict[str, Pass] = {
    "small-solves": expand_small_solves,
    "dead-code": remove_dead_code,
}
"""Passes for targets whose compiler fuses operations on arrays, after the others."""


def lower(program: Program, skip: Collection[str] = (), *, check_each: bool = False) -> Program:
    """The program for a target with explicit loops, after every pass that `skip` does not name."""
    return _after(LOOPS, program, skip, check_each)


def divide_less(program: Program, skip: Collection[str] = (), *, check_each: bool = False) -> Program:
    """The program with fewer divisions, rounded as `lower` rounds it, after every pass of `DIVISIONS` that `skip` does not name."""
    return _after(DIVISIONS, program, skip, check_each)


def shorten(program: Program, skip: Collection[str] = (), *, check_each: bool = False) -> Program:
    """The program for a target where every operation is a call: rows of maps together, then every pass that `skip` does not name."""
    return _after(CALLS, rows_at_once(inner_loops_at_once(program)), skip, check_each)


def shorten_entry(program: Program, entry: Function) -> Program:
    """Program of one entry, with what that calls and reads, as it is after `shorten`."""
    alone = with_one_entry(program, entry)
    return check_rules(_run(CALLS, rows_at_once(inner_loops_at_once(alone)), (), False))


def fuse(program: Program, skip: Collection[str] = (), *, check_each: bool = False) -> Program:
    """The program for a target whose compiler fuses operations on arrays, after every pass that `skip` does not name."""
    return _after(FUSED, program, skip, check_each)


def optimize(program: Program, skip: Collection[str] = (), *, check_each: bool = False) -> Program:
    """The program after every pass that `skip` does not name, again and again until none changes it.

    What hoisting moves out of a loop may be lifted out of a function, and what is lifted may be simplified.
    """
    left_alone = {name: LeftAlone() for name in LOCAL}
    for _ in range(MOST_ROUNDS):
        before, program = program, _run(PASSES, program, skip, check_each, left_alone)
        if program == before:
            break
    return check(program)


def _after(passes: Mapping[str, Pass], program: Program, skip: Collection[str], check_each: bool) -> Program:
    return check(_run(passes, program, skip, check_each))


def _run(
    passes: Mapping[str, Pass],
    program: Program,
    skip: Collection[str],
    check_each: bool,
    left_alone: Mapping[str, LeftAlone] = MappingProxyType({}),
) -> Program:
    for name, run in passes.items():
        if name not in skip:
            program = run(program, left_alone[name]) if name in left_alone else run(program)
            if check_each:
                check(program)
    return program
