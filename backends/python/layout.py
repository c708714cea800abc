"""Matrices that may not lie in memory by rows: transposes, and what NumPy makes of them, which it lays out as what it came from."""

from __future__ import annotations

from collections.abc import Iterable

from oco.compiler.ir.program import Block, Equation, Function, Var
from oco.compiler.ir.rewrite import equations_of

ANEW = frozenset({"dot", "stack", "concat"})
"""Operations whose results lie by rows, whatever their arguments do."""


def turned(function: Function, functions: Iterable[Function]) -> frozenset[str]:
    """Names of the matrices among the results of a function that may not lie by rows; it may call `functions`."""
    turning = {f.name for f in functions if _transposes(f.body)}
    names: set[str] = set()
    for e in function.body.equations:
        inner = any(map(_transposes, e.blocks)) or (e.op == "call" and e.attr("function") in turning)
        taken = bool(names) and (bool(e.blocks) or any(isinstance(a, Var) and a.name in names for a in e.args))
        if e.op == "transpose" or inner or (taken and e.op not in ANEW):
            names |= {v.name for v in e.outs if len(v.type.shape) > 1}
    return frozenset(r.name for r in function.body.results if isinstance(r, Var) and r.name in names)


def _transposes(body: Block) -> bool:
    return any(map(_is_transpose, equations_of(body)))


def _is_transpose(e: Equation) -> bool:
    return e.op == "transpose"
