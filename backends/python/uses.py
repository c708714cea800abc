"""Bindings and uses of a function's variables, which decide where an expression may replace its single use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import field

from oco.compiler.ir.program import Block, Equation, Operand, Var
from oco.compiler.ir.rewrite import equations_of, read_by
from oco.dsl.records import dataclass


@dataclass
class Uses:
    """Uses in a block. `counts`: uses of each variable, anywhere. `movable`: used once, in the block that binds it."""

    counts: Counter[str] = field(default_factory=Counter)
    movable: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, body: Block) -> Uses:
        """Uses in a body."""
        uses = cls()
        uses._block(body)
        return uses

    def _block(self, block: Block) -> None:
        here: Counter[str] = Counter(o.name for o in _operands(block) if isinstance(o, Var))
        self.counts.update(here)
        for e in block.equations:
            for inner in e.blocks:
                self._block(inner)
        bound = {v.name for e in block.equations for v in e.outs}
        self.movable |= {name for name in bound if here[name] == 1 == self.counts[name]}


def _operands(block: Block) -> Iterator[Operand]:
    """Operands as often as they are written: the square of an array is written `x ** 2`."""
    for e in block.equations:
        yield from e.args[:1] if is_square(e) else e.args
    yield from block.results


def is_square(e: Equation) -> bool:
    """True where an array is multiplied by itself. (A scalar does not count: its `**` goes through pow, which may round
    otherwise.)
    """
    return e.op == "mul" and e.args[0] == e.args[1] and bool(e.outs[0].type.shape)


def read_after(block: Block, index: int) -> Counter[str]:
    """Number of reads of each name after the equation at `index`, inner blocks and the results included."""
    return Counter(read_by(Block((), block.equations[index + 1 :], block.results)))


def variables_read(block: Block) -> dict[str, Var]:
    """Variables that are read in a block or in the blocks inside it, by name, in the order of the text."""
    operands = [o for e in equations_of(block) for o in (*e.args, *(r for b in e.blocks for r in b.results))]
    return {o.name: o for o in (*operands, *block.results) if isinstance(o, Var)}


def read_inside(e: Equation) -> set[str]:
    """Names read in the blocks of an equation."""
    return {name for inner in e.blocks for name in read_by(inner)}
