"""The passes in their order. Each keeps what a program computes, bit for bit; the checker runs after each."""

from __future__ import annotations

from collections.abc import Callable, Collection

from oco.compiler.ir.check import check
from oco.compiler.ir.common_subexpressions import share_subexpressions
from oco.compiler.ir.constant_folding import fold_constants
from oco.compiler.ir.dead_code import remove_dead_code
from oco.compiler.ir.hoisting import hoist
from oco.compiler.ir.lifting import lift
from oco.compiler.ir.program import Program
from oco.compiler.ir.simplify import simplify

Pass = Callable[[Program], Program]

PASSES: dict[str, Pass] = {
    "constant-folding": fold_constants,
    "simplify": simplify,
    "lifting": lift,
    "hoisting": hoist,
    "common-subexpressions": share_subexpressions,
    "dead-code": remove_dead_code,
}


def optimize(program: Program, skip: Collection[str] = ()) -> Program:
    """The program after every pass that `skip` does not name."""
    for name, run in PASSES.items():
        if name not in skip:
            program = check(run(program))
    return program
