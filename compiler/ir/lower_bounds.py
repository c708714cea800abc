"""Lower bounds of the numbers of a program, and of the entries of its arrays, as far as their operations tell.

A target may divide by what is above zero without looking. A bound holds for every value that is not NaN. The round is at least 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from oco.compiler.ir.ops import OPS
from oco.compiler.ir.program import Block, Function, Literal, Operand, Program

Bounds = dict[str, float]


def lower_bounds(program: Program) -> dict[str, Bounds]:
    """For each function by name: bounds of its values, entry by entry, by name; those without one are left out."""
    constants = {g.var.name: float(g.value.min()) for g in program.constants if g.value.size}
    finder = _Finder(constants)
    for entry in program.entries:
        takes_round = entry is not program.init and entry.body.params
        first = {entry.body.params[0].name: 1.0} if takes_round else {}
        finder.function(entry, first)
    for f in reversed(program.functions):  # callers come after those that they call
        finder.function(f, finder.given(f))
    return finder.bounds


class _Finder:
    """`calls`: for each function, the bounds of its arguments at every call."""

    def __init__(self, constants: Mapping[str, float]) -> None:
        self.constants = constants
        self.bounds: dict[str, Bounds] = {}
        self.calls: dict[str, list[list[float | None]]] = {}

    def given(self, f: Function) -> Bounds:
        """Bounds of the parameters that hold at every call."""
        columns = zip(f.body.params, zip(*self.calls.get(f.name, [])))
        return {p.name: min(b for b in bounds if b is not None) for p, bounds in columns if None not in bounds}

    def function(self, f: Function, first: Bounds) -> None:
        self.bounds[f.name] = dict(first)
        self.block(f.body, self.bounds[f.name])

    def block(self, block: Block, known: Bounds) -> None:
        for e in block.equations:
            args = [self.bound(a, known) for a in e.args]
            if e.op == "call":
                self.calls.setdefault(e.attr("function"), []).append(args)
            for inner in e.blocks:
                self.block(inner, known)
            row = OPS.get(e.op)
            bound = row.least(e, args) if row and row.least else None
            if bound is not None and not math.isnan(bound):
                known |= dict.fromkeys((v.name for v in e.outs), bound)

    def bound(self, operand: Operand, known: Bounds) -> float | None:
        if isinstance(operand, Literal):
            return None if math.isnan(operand.value) else float(operand.value)
        return known.get(operand.name, self.constants.get(operand.name))
