"""Lower bounds of the numbers of a program, and of the entries of its arrays, as far as their operations tell.

A target may divide by what is above zero without looking. A bound holds for every value that is not NaN. The round is at least 1. What a
loop carries is bounded by its start and by what a turn gives whatever it begins with.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from oco.compiler.ir.ops import OPS
from oco.compiler.ir.program import Block, Equation, Function, Literal, Operand, Program
from oco.dsl.records import dataclass

Bounds = dict[str, float]
_UNBOUNDED = frozenset(name for name, row in OPS.items() if row.least is None)
"""Operations whose results may be anything."""


def lower_bounds(program: Program) -> dict[str, Bounds]:
    """For each function by name: bounds of its values, entry by entry, by name; those without one are left out."""
    constants = {g.var.name: float(g.value.min()) for g in program.constants if g.value.size}
    finder = _Finder(constants)
    for f in program.functions:  # results that no argument tells of; callers come after those that they call
        finder.function(f, {})
    finder.counts_calls = True
    for entry in program.entries:
        takes_round = entry is not program.init and entry.body.params
        first = {entry.body.params[0].name: 1.0} if takes_round else {}
        finder.function(entry, first)
    for f in reversed(program.functions):  # callers come after those that they call
        finder.function(f, finder.given(f))
    return finder.bounds


@dataclass
class LowerBounds:
    """Lower bounds of the values of a program, which are worked out when a pass asks for one."""

    program: Program

    @cached_property
    def of(self) -> Mapping[str, Bounds]:
        """Bounds by function."""
        return lower_bounds(self.program)

    def least(self, function: str, value: Operand) -> float | None:
        """Number that no entry of a value in a function is below; None where none is known."""
        return float(value.value) if isinstance(value, Literal) else self.of[function].get(value.name)


class _Finder:
    """`calls`: for each function, the bounds of its arguments at every call. `results`: those of its results at any."""

    def __init__(self, constants: Mapping[str, float]) -> None:
        self.constants = constants
        self.bounds: dict[str, Bounds] = {}
        self.calls: dict[str, list[list[float | None]]] = {}
        self.results: dict[str, list[float | None]] = {}
        self.counts_calls = False

    def given(self, f: Function) -> Bounds:
        """Bounds of the parameters that hold at every call."""
        columns = zip(f.body.params, zip(*self.calls.get(f.name, [])))
        return {p.name: min(b for b in bounds if b is not None) for p, bounds in columns if None not in bounds}

    def function(self, f: Function, first: Bounds) -> None:
        self.bounds[f.name] = dict(first)
        self.block(f.body, self.bounds[f.name])
        if not self.counts_calls:
            self.results[f.name] = [self.bound(r, self.bounds[f.name]) for r in f.body.results]

    def block(self, block: Block, known: Bounds) -> None:
        for e in block.equations:
            if e.op in _UNBOUNDED:
                continue
            args = [self.bound(a, known) for a in e.args]
            if e.op == "call" and self.counts_calls:
                self.calls.setdefault(e.attr("function"), []).append(args)
            for v, bound in zip(e.outs, self.of_outs(e, args, known)):
                if bound is not None and not math.isnan(bound):
                    known[v.name] = bound

    def of_outs(self, e: Equation, args: Sequence[float | None], known: Bounds) -> Sequence[float | None]:
        """Bounds of what an equation gives."""
        if e.op == "call":
            return self.results.get(e.attr("function"), [])
        if e.op in ("while", "for"):
            return self.of_loop(e, args[1:] if e.op == "for" else args, known)
        for inner in e.blocks:
            self.block(inner, known)
        if e.op == "if":
            return [_least(pair) for pair in zip(*([self.bound(r, known) for r in b.results] for b in e.blocks))]
        row = OPS.get(e.op)
        bound = row.least(e, args) if row and row.least else None
        return [bound] * len(e.outs)

    def of_loop(self, e: Equation, starts: Sequence[float | None], known: Bounds) -> Sequence[float | None]:
        """Bounds of what a loop carries, which hold in each turn too."""
        counts, self.counts_calls = self.counts_calls, False
        body, once = e.blocks[-1], dict(known)
        self.block(body, once)
        self.counts_calls = counts
        carried = [_least(pair) for pair in zip(starts, (self.bound(r, once) for r in body.results))]
        for inner in e.blocks if counts else ():  # where calls do not count, nobody asks what is within
            params = inner.params[-len(carried) :] if carried else ()
            known |= {p.name: b for p, b in zip(params, carried) if b is not None}
            self.block(inner, known)
        return carried

    def bound(self, operand: Operand, known: Bounds) -> float | None:
        if isinstance(operand, Literal):
            return None if math.isnan(operand.value) else float(operand.value)
        return known.get(operand.name, self.constants.get(operand.name))


def _least(bounds: Iterable[float | None]) -> float | None:
    """The least of several bounds; None where one is missing."""
    given = list(bounds)
    return None if None in given else min(b for b in given if b is not None)
