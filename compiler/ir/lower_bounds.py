"""What the numbers of a program, and the entries of its arrays, are at least, as far as their operations tell.

A target may divide by what is above zero without looking. A bound holds for every value that is not NaN. The round is at least 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from oco.compiler.ir.program import Block, Equation, Function, Literal, Operand, Program

Bounds = dict[str, float]
_ROUNDING = 1 - 1e-15


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
    return finder.found


class _Finder:
    """`calls`: for each function, the bounds of its arguments at every call."""

    def __init__(self, constants: Mapping[str, float]) -> None:
        self.constants = constants
        self.found: dict[str, Bounds] = {}
        self.calls: dict[str, list[list[float | None]]] = {}

    def given(self, f: Function) -> Bounds:
        """Bounds of the parameters that hold at every call."""
        columns = zip(f.body.params, zip(*self.calls.get(f.name, [])))
        return {p.name: min(b for b in bounds if b is not None) for p, bounds in columns if None not in bounds}

    def function(self, f: Function, first: Bounds) -> None:
        self.found[f.name] = dict(first)
        self.block(f.body, self.found[f.name])

    def block(self, block: Block, known: Bounds) -> None:
        for e in block.equations:
            args = [self.bound(a, known) for a in e.args]
            if e.op == "call":
                self.calls.setdefault(e.attr("function"), []).append(args)
            for inner in e.blocks:
                self.block(inner, known)
            rule = _RULES.get(e.op)
            bound = rule(e, args) if rule else None
            if bound is not None and not math.isnan(bound):
                known |= dict.fromkeys((v.name for v in e.outs), bound)

    def bound(self, operand: Operand, known: Bounds) -> float | None:
        if isinstance(operand, Literal):
            return None if math.isnan(operand.value) else float(operand.value)
        return known.get(operand.name, self.constants.get(operand.name))


Rule = Callable[[Equation, Sequence[float | None]], float | None]


def _least(*bounds: float) -> float:
    return min(bounds)


def _all(fn: Callable[..., float]) -> Rule:
    """A rule for arguments that all have bounds."""
    return lambda e, args: None if None in args else fn(*args)


def _product(e: Equation, args: Sequence[float | None]) -> float | None:
    a, b = args
    if a is not None and b is not None and a >= 0 and b >= 0:
        return a * b * _ROUNDING
    return 0.0 if e.args[0] == e.args[1] else None


def _quotient(e: Equation, args: Sequence[float | None]) -> float | None:
    (a, b), divisor = args, e.args[1]
    if a is None or b is None or a < 0 or b < 0:
        return None
    return a / divisor.value * _ROUNDING if isinstance(divisor, Literal) and divisor.value > 0 else 0.0


def _root(e: Equation, args: Sequence[float | None]) -> float | None:
    return math.sqrt(args[0]) * _ROUNDING if args[0] is not None and args[0] >= 0 else 0.0


def _larger(e: Equation, args: Sequence[float | None]) -> float | None:
    return max((a for a in args if a is not None), default=None)


def _same(e: Equation, args: Sequence[float | None]) -> float | None:
    """Of operations that give entries of their first argument."""
    return args[0]


def _total(e: Equation, args: Sequence[float | None]) -> float | None:
    return 0.0 if args[0] is not None and args[0] >= 0 else None


_RULES: dict[str, Rule] = {
    "add": _all(lambda a, b: (a + b) * (_ROUNDING if a + b > 0 else 1 / _ROUNDING)),
    "mul": _product,
    "div": _quotient,
    "sqrt": _root,
    "maximum": _larger,
    "minimum": _all(min),
    "where": lambda e, args: _all(min)(e, args[1:]),
    **dict.fromkeys(("to_float", "reshape", "transpose", "broadcast", "slice", "gather", "entries", "full"), _same),
    **dict.fromkeys(("stack", "concat"), _all(_least)),
    "sum": _total,
    "abs": lambda e, args: max(args[0] or 0.0, 0.0),
    "exp": lambda e, args: 0.0,
    "matmul": lambda e, args: 0.0 if e.args[0] == e.args[1] else None,
}
