"""Systems of two or three equations as arithmetic on their entries, by elimination with row exchanges.

For targets where a call costs more than the arithmetic, and for fleets, before their values get lanes. The order of operations is that of
the C kernel `solve`, so the bits are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from oco.compiler.ir.program import Block, Equation, Operand, Program, Var
from oco.compiler.ir.rewrite import free_names, map_functions
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value

LARGEST = 3
"""Unknowns of the systems that are written out."""
Rows = list[list[Value]]


def expand_small_solves(program: Program) -> Program:
    """Pass: the same program with arithmetic in the place of small systems with one right side."""
    return map_functions(program, lambda f: f.having(_block(f.body, free_names(f, program))))


def _is_small(e: Equation) -> bool:
    return e.op == "solve" and len(e.args[1].type.shape) == 1 and 1 <= e.args[1].type.shape[0] <= LARGEST


def _block(block: Block, free: Iterator[str]) -> Block:
    results: list[Equation] = []
    for e in block.equations:
        e = e.having(e.args, tuple(_block(b, free) for b in e.blocks)) if e.blocks else e
        results += _expanded(e, free) if _is_small(e) else [e]
    return block.having(tuple(results))


def _expanded(e: Equation, free: Iterator[str]) -> list[Equation]:
    """The arithmetic of one system, the last equation of which binds what `solve` bound."""
    (a, b), n, t = e.args, e.args[1].type.shape[0], Tracer("solve")

    def solve(a: Value, b: Value) -> Value:
        x = eliminate(t, [[a[i, j] for j in range(n)] for i in range(n)], [[b[i]] for i in range(n)])
        return t.stack(*(row[0] for row in x))

    body = t.function("solve", solve, [("a", a.type), ("b", b.type)]).body
    values: dict[str, Operand] = dict(zip((p.name for p in body.params), (a, b)))
    made: list[Equation] = []
    for inner in body.equations:
        args = tuple(values[x.name] if isinstance(x, Var) else x for x in inner.args)
        outs = e.outs if inner is body.equations[-1] else tuple(Var(next(free), v.type) for v in inner.outs)
        values |= {v.name: o for v, o in zip(inner.outs, outs)}
        made.append(replace(inner, outs=outs, args=args, note="" if made else e.note))
    return made


def eliminate(t: Tracer, a: Rows, b: Rows) -> Rows:
    """x with a x = b by Gaussian elimination with partial pivoting; a has n rows of n entries, b and x have n rows."""
    n, a, b = len(a), [list(row) for row in a], [list(row) for row in b]
    for j in range(n):
        for i in range(j + 1, n):
            swap = abs(a[i][j]) > abs(a[j][j])
            for rows in (a, b):
                upper, lower = rows[j], rows[i]
                rows[j] = [t.where(swap, q, p) for p, q in zip(upper, lower)]
                rows[i] = [t.where(swap, p, q) for p, q in zip(upper, lower)]
        for i in range(j + 1, n):
            factor = a[i][j] / a[j][j]
            a[i] = [*a[i][: j + 1], *(p - factor * q for p, q in zip(a[i][j + 1 :], a[j][j + 1 :]))]
            b[i] = [p - factor * q for p, q in zip(b[i], b[j])]
    x: Rows = [[] for _ in range(n)]
    for i in reversed(range(n)):
        for c in range(len(b[0])):
            total = b[i][c]
            for j in range(i + 1, n):
                total = total - a[i][j] * x[j][c]
            x[i].append(total / a[i][i])
    return x
