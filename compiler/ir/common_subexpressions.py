"""Pass: compute once what stands more than once. Equations are pure, so equal operations on equal arguments are equal."""

from __future__ import annotations

from collections.abc import Mapping

from oco.compiler.ir.names import is_temporary
from oco.compiler.ir.program import Block, Equation, Function, Operand, Program, Var
from oco.compiler.ir.rewrite import LeftAlone, keep_notes, map_functions, operand_key, substitute

Key = tuple[object, ...]


def share_subexpressions(program: Program, left_alone: LeftAlone | None = None) -> Program:
    """Compute each value once in a block; inner blocks use the values of outer ones."""
    return map_functions(program, _function, left_alone)


def _function(function: Function) -> Function:
    sharing = _Sharing()
    body = sharing.block(function.body, {})
    return function.having(substitute(body, sharing.better_names()))


class _Sharing:
    def __init__(self) -> None:
        self.same: dict[str, Var] = {}
        self.renamed: dict[str, Var] = {}

    def block(self, block: Block, outer: Mapping[Key, tuple[Var, ...]]) -> Block:
        available = dict(outer)
        kept: list[tuple[Equation, bool]] = []
        for e in block.equations:
            e = e.having(tuple(map(self.read, e.args))) if self.same else e
            e = e.having(e.args, tuple(self.block(b, available) for b in e.blocks)) if e.blocks else e
            key = _key(e)
            known = available.get(key) if not e.blocks else None
            if known is None:
                available[key] = e.outs
            else:
                for new, old in zip(e.outs, known):
                    self.merge(new, old)
            kept.append((e, known is None))
        return block.having(keep_notes(kept), tuple(map(self.read, block.results)))

    def read(self, operand: Operand) -> Operand:
        return self.same.get(operand.name, operand) if isinstance(operand, Var) else operand

    def merge(self, new: Var, old: Var) -> None:
        """`new` is `old`; a name that somebody gave to `new` serves if `old` has none."""
        self.same[new.name] = old
        if is_temporary(old.name) and not is_temporary(new.name):
            self.renamed.setdefault(old.name, new)

    def better_names(self) -> dict[str, Operand]:
        return dict(self.renamed)


def _key(e: Equation) -> Key:
    return (e.op, tuple(map(operand_key, e.args)), repr(e.attrs) if e.attrs else "")
