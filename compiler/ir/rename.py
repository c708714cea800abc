"""Final names for the variables of a function: the hints where they are free, `v`, `v_2`, ... elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from oco.compiler.ir.names import identifier
from oco.compiler.ir.program import Block, Equation, Function, Operand, Var
from oco.compiler.ir.rewrite import bound_names


def rename_function(function: Function, hints: Mapping[str, str], taken: Collection[str]) -> Function:
    """The function with every variable that `hints` knows under a legal name, unique in the function and outside `taken`."""
    return function.having(_Renaming(hints, {*taken, function.name}).block(function.body))


def without_clashes(function: Function, taken: Collection[str]) -> Function:
    """The function with its legal names kept where they are outside `taken`; itself where all are."""
    if {*taken, function.name}.isdisjoint(bound_names(function.body)):
        return function
    return rename_function(function, {}, taken)


class _Renaming:
    def __init__(self, hints: Mapping[str, str], taken: set[str]) -> None:
        self.hints = hints
        self.taken = taken
        self.final: dict[str, Var] = {}

    def bind(self, var: Var) -> Var:
        name = identifier(self.hints.get(var.name, var.name), self.taken)
        self.taken.add(name)
        self.final[var.name] = Var(name, var.type)
        return self.final[var.name]

    def operand(self, operand: Operand) -> Operand:
        return self.final.get(operand.name, operand) if isinstance(operand, Var) else operand

    def block(self, block: Block) -> Block:
        params = tuple(self.bind(p) for p in block.params)
        equations = tuple(self.equation(e) for e in block.equations)
        return Block(params, equations, tuple(self.operand(r) for r in block.results))

    def equation(self, e: Equation) -> Equation:
        args = tuple(map(self.operand, e.args))
        blocks = tuple(map(self.block, e.blocks))
        return e.having(args, blocks, tuple(map(self.bind, e.outs)))
