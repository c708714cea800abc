"""Pass: combinations of a few rows of an array in memory, as sums of multiples of them.

For targets with explicit loops, where such a sum shares its loop with what makes the entries and with what reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from oco.compiler.ir.ops import POINTWISE
from oco.compiler.ir.program import Block, DType, Equation, Literal, Operand, Program, Type, Var
from oco.compiler.ir.rewrite import free_names, map_functions
from oco.dsl.records import dataclass

FEW_ROWS = 4
"""Rows whose combination is one expression an entry, which is as quick to write and read as the rows are."""


def combine_few_rows(program: Program) -> Program:
    """Put sums of multiples in the place of products of a vector with the rows of a matrix, where these are few."""

    return map_functions(program, lambda f: f.having(_Combinations(free_names(f, program)).block(f.body, {})))


@dataclass(frozen=True)
class _Combinations:
    """Rewriting of one function, with names that are free in it."""

    free: Iterator[str]

    def block(self, block: Block, outer: Mapping[str, Equation]) -> Block:
        """The block; `outer`: equations around it, by what they make."""
        results, made_by = list[Equation](), {**outer, **{v.name: e for e in block.equations for v in e.outs}}
        for e in block.equations:
            if e.blocks:
                e = e.having(e.args, tuple(self.block(b, made_by) for b in e.blocks))
            results += self.combined(e, made_by) if e.op == "matmul" else [e]
        return block.having(tuple(results))

    def combined(self, e: Equation, made_by: Mapping[str, Equation]) -> list[Equation]:
        """Equations that add up the rows, each times its weight; the product itself where it is of another kind."""
        (a, b), (out,) = e.args, e.outs
        transposed = made_by.get(a.name) if isinstance(a, Var) else None
        weights, rows = (b, transposed.args[0]) if transposed and transposed.op == "transpose" else (a, b)
        made = made_by.get(rows.name) if isinstance(rows, Var) else None
        if len(weights.type.shape) != 1 or len(rows.type.shape) != 2 or not 1 < rows.type.shape[0] <= FEW_ROWS:
            return [e]
        if not isinstance(rows, Var) or (made is not None and made.op in POINTWISE):
            return [e]
        results, total = list[Equation](), None
        for k in range(rows.type.shape[0]):
            weight, row = (self.entry(results, x, k) for x in (weights, rows))
            term = self.bound(results, "mul", (weight, row), row.type)
            total = term if total is None else self.bound(results, "add", (total, term), term.type)
        return [*results[:-1], replace(results[-1], outs=(out,), note=e.note)]

    def entry(self, results: list[Equation], x: Operand, k: int) -> Var:
        """Entry k along the first axis."""
        return self.bound(results, "gather", (x, Literal(k, Type(DType.INT))), replace(x.type, shape=x.type.shape[1:]))

    def bound(self, results: list[Equation], op: str, args: tuple[Operand, ...], made: Type) -> Var:
        """Variable bound to an operation."""
        out = Var(next(self.free), made)
        results.append(Equation((out,), op, args))
        return out
