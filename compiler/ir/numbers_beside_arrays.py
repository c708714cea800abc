"""Pass: numbers that stand beside arrays become constants that a target keeps as arrays without axes.

For NumPy, which takes such an array in two thirds of the time that it takes a number of Python's: it need not look for its kind.
"""

from __future__ import annotations

from dataclasses import field, replace

import numpy as np

from oco.compiler.ir.names import identifier
from oco.compiler.ir.program import Block, DType, Equation, Global, Literal, Operand, Program, Type, Var
from oco.compiler.ir.rewrite import all_functions, bound_names, map_functions
from oco.dsl.records import dataclass

_NUMBER = Type(DType.FLOAT)
ENTRYWISE = frozenset({"add", "sub", "mul", "div", "maximum", "minimum", "lt", "le", "eq", "where"})
"""Operations that take a number beside an array; a power is left out, since NumPy knows some by the number that Python gives."""


def keep_numbers_as_arrays(program: Program) -> Program:
    """Put constants in the place of numbers, and of constants that are numbers, beside arrays."""
    taken = {g.var.name for g in program.constants} | {f.name for f in program.functions}
    taken |= {name for f in all_functions(program) for name in bound_names(f.body)}
    numbers = _Numbers({g.var.name: g for g in program.constants if g.var.type == _NUMBER}, taken)
    result = map_functions(program, lambda f: f.having(numbers.block(f.body)))
    return replace(result, constants=(*result.constants, *numbers.made.values()))


@dataclass
class _Numbers:
    """Constants made so far, by the bits and the name of the number. `given`: constants of the program that are numbers."""

    given: dict[str, Global]
    taken: set[str]
    made: dict[tuple[bytes, str], Global] = field(default_factory=dict)

    def block(self, block: Block) -> Block:
        return block.having(tuple(map(self.equation, block.equations)))

    def equation(self, e: Equation) -> Equation:
        if e.blocks:
            return e.having(e.args, tuple(map(self.block, e.blocks)))
        if e.op not in ENTRYWISE or not any(a.type.shape for a in e.args):
            return e
        return e.having(tuple(map(self.beside, e.args)), (), e.outs)

    def beside(self, operand: Operand) -> Operand:
        """The operand as it stands beside an array."""
        if operand.type != _NUMBER:
            return operand
        if isinstance(operand, Literal):
            return self.constant(np.array(operand.value, dtype=float), repr(float(operand.value)).removesuffix(".0"))
        given = self.given.get(operand.name)
        return operand if given is None else self.constant(given.value, operand.name)

    def constant(self, value: np.ndarray, name: str) -> Var:
        """Constant of this value, `n_4` for a 4; the same one each time."""
        key = value.tobytes(), name
        if key not in self.made:
            var = Var(identifier(f"n_{name.replace('-', 'minus_', name[0] == '-')}", self.taken), _NUMBER)
            self.taken.add(var.name)
            self.made[key] = Global(var, value, beside_arrays=True)
        return self.made[key].var
