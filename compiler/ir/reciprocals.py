"""Pass: divisions of an array by a number, and of several arrays by one, as products with the reciprocal.

For targets with explicit loops, where a division takes as long as several products; it changes the last bits. What is divided by is known
to be at least `TINY`, so that its reciprocal is finite.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace

from oco.compiler.ir.dead_code import remove_dead_code
from oco.compiler.ir.lower_bounds import Bounds, lower_bounds
from oco.compiler.ir.names import identifier
from oco.compiler.ir.program import Block, DType, Equation, Function, Literal, Operand, Program, Type, Var
from oco.compiler.ir.rewrite import all_functions, bound_names, map_functions
from oco.dsl.magnitudes import TINY
from oco.dsl.records import dataclass

FEWEST = 4
"""Entries of an array whose divisions become products: a vector of numbers, which is divided in no less time than the reciprocal."""
ONE = Literal(1.0, Type(DType.FLOAT))


def multiply_by_reciprocals(program: Program) -> Program:
    """Put products with a reciprocal in the place of divisions that share it."""
    constants = {g.var.name: float(g.value.min()) for g in program.constants if g.value.size}
    bounds = lower_bounds(program)
    read = {f.name: set(bound_names(f.body)) for f in all_functions(remove_dead_code(program))}

    def changed(f: Function) -> Function:
        taken = {g.var.name for g in program.constants} | set(bound_names(f.body))
        rewriting = _Reciprocals({**constants, **bounds[f.name]}, taken, read.get(f.name, set()))
        return replace(f, body=rewriting.block(f.body, {}, {}))

    return map_functions(program, changed)


@dataclass(frozen=True)
class _Reciprocals:
    """Rewriting of one function, with lower bounds of its values, the names that are taken in it, and those of what is read in the end."""

    least: Bounds
    taken: set[str]
    read: Collection[str]

    def block(self, block: Block, known: Mapping[str, Var], outer: Mapping[str, Equation]) -> Block:
        """The block, with reciprocals of those outside it by the name of what they are of."""
        known, results = dict(known), list[Equation]()
        made_by = {**outer, **{v.name: e for e in block.equations for v in e.outs}}
        quotients = (e for e in block.equations if e.op == "div" and e.outs[0].name in self.read)
        divisors = [e.args[1].name for e in quotients if isinstance(e.args[1], Var)]
        times = Counter(_root(made_by.get(name)) or name for name in divisors)
        for e in block.equations:
            if e.blocks:
                e = replace(e, blocks=tuple(self.block(b, known, made_by) for b in e.blocks))
            elif e.op == "div" and isinstance(b := e.args[1], Var) and math.prod(e.outs[0].type.shape) >= FEWEST:
                if (root := _root(made_by.get(b.name))) in known and b.name not in known:
                    known[b.name] = self.bound(results, b, "mul", known[root], known[root])
                elif b.name not in known and self.is_shared(e, b, times):
                    known[b.name] = self.bound(results, b, "div", ONE, b)
                if b.name in known:
                    e = replace(e, op="mul", args=(e.args[0], known[b.name]))
            results.append(e)
        return replace(block, equations=tuple(results))

    def is_shared(self, e: Equation, divisor: Var, times: Mapping[str, int]) -> bool:
        """True if a reciprocal takes the place of several divisions, of entries or of arrays, and is finite."""
        repeated = not divisor.type.shape or (divisor.type.shape == e.outs[0].type.shape and times[divisor.name] > 1)
        return repeated and divisor.type.dtype is DType.FLOAT and self.least.get(divisor.name, 0.0) >= TINY

    def bound(self, results: list[Equation], divisor: Var, op: str, a: Operand, b: Var) -> Var:
        """Variable of the reciprocal of a divisor, bound to an operation on two values."""
        out = Var(identifier(f"v_per_{divisor.name.removeprefix('v_')}", self.taken), b.type)
        self.taken.add(out.name)
        results.append(Equation((out,), op, (a, b)))
        return out


def _root(e: Equation | None) -> str:
    """Name of what a value is the square of; "" where it is none."""
    square = e is not None and e.op == "mul" and e.args[0] == e.args[1] and isinstance(e.args[0], Var)
    return e.args[0].name if square else ""  # type: ignore[union-attr]
