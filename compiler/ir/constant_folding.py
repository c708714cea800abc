"""Pass: compute at compile time what needs no data, with the very operations that the interpreter would use.

Numbers fold into literals. Arrays fold into constants of the program, named after what they were, when they are no larger than what
they came from or small. Numbers with a name (`eta`) stay, since they read better; except where folding is needed to keep a division
by zero quiet in targets that raise.
"""

from __future__ import annotations

from dataclasses import field, replace
from functools import cached_property
from typing import Any

import numpy as np

from oco.compiler.ir.names import identifier
from oco.compiler.ir.ops import CONTROL, OPS
from oco.compiler.ir.precision import Tolerance
from oco.compiler.ir.program import Block, Equation, Function, Global, Literal, Operand, Program, Type, Var
from oco.compiler.ir.rewrite import LeftAlone, all_functions, equations_of, keep_notes, map_functions
from oco.compiler.ir.verifier import KINDS
from oco.dsl.records import dataclass

_LARGEST = 1_000_000  # numbers of a constant that a pass makes: emitted modules hold them as text


def fold_constants(program: Program, left_alone: LeftAlone | None = None) -> Program:
    """Replace every equation over constants by its value."""
    folding = _Folding({g.var.name: g for g in program.constants}, program)
    folded = map_functions(program, folding.function, left_alone)
    return replace(folded, constants=tuple(folding.constants.values()))


def _all_names(program: Program) -> set[str]:
    names = {g.var.name for g in program.constants} | {f.name for f in program.functions}
    for f in all_functions(program):
        names |= {p.name for p in f.body.params}
        for e in equations_of(f.body):
            names |= {v.name for v in e.outs} | {p.name for b in e.blocks for p in b.params}
    return names


@dataclass
class _Folding:
    constants: dict[str, Global]
    program: Program
    values: dict[str, Operand] = field(default_factory=dict)

    @cached_property
    def taken(self) -> set[str]:
        """Names that something has, gathered where a constant is made: most passes make none."""
        return _all_names(self.program)

    def function(self, function: Function) -> Function:
        self.values = {}
        return function.having(self.block(function.body))

    def block(self, block: Block) -> Block:
        kept: list[tuple[Equation, bool]] = []
        for e in block.equations:
            e = e.having(tuple(map(self.read, e.args))) if self.values else e
            folded = self.folded(e)
            if folded is None:
                e = e.having(e.args, tuple(map(self.block, e.blocks))) if e.blocks else e
            else:
                self.values[e.outs[0].name] = folded
            kept.append((e, folded is None))
        return block.having(keep_notes(kept), tuple(map(self.read, block.results)))

    def read(self, operand: Operand) -> Operand:
        return self.values.get(operand.name, operand) if isinstance(operand, Var) else operand

    def folded(self, e: Equation) -> Operand | None:
        """The value of an equation whose arguments are all known, if it is worth folding."""
        for a in e.args:
            if isinstance(a, Var) and a.name not in self.constants:
                return None
        if e.op in CONTROL or len(e.outs) != 1:
            return None
        made = e.outs[0].type
        if int(np.prod(made.shape, dtype=np.int64)) > _LARGEST:
            return None
        with np.errstate(all="ignore"):
            value = OPS[e.op].value((self.array(a) for a in e.args), dict(e.attrs))
        array: np.ndarray[Any, Any] = np.array(value, dtype=KINDS[made.dtype], order="C")
        if made.shape:
            # A view reads better where it stands, and a folded transpose would lie otherwise in memory, by which sums round.
            return None if OPS[e.op].view else self.constant(e, array)
        named = any(isinstance(a, Var) and not a.type.shape for a in e.args)
        if named and np.isfinite(array):
            return None
        bare = e.op in ("mul", "div") and any(isinstance(a, Literal) and isinstance(a.value, Tolerance) for a in e.args)
        return Literal(Tolerance(array.item()) if bare else array.item(), made)

    def array(self, operand: Operand) -> Any:
        if isinstance(operand, Var):
            return self.constants[operand.name].value
        return KINDS[operand.type.dtype](operand.value)

    def constant(self, e: Equation, array: np.ndarray[Any, Any]) -> Var:
        """A constant of the program that holds the value; one of the same bits and origin serves again."""
        made = Type(e.outs[0].type.dtype, array.shape)
        for g in self.constants.values():
            if g.var.type == made and g.value.tobytes() == array.tobytes():
                return g.var
        sources = [a.name for a in e.args if isinstance(a, Var)]
        hint = e.outs[0].name if not e.outs[0].name.startswith("v") else "_".join([*sources[:1], e.op])
        var = Var(identifier(hint, self.taken), made)
        self.taken.add(var.name)
        array.setflags(write=False)
        self.constants[var.name] = Global(var, array, f"{e.op} of {', '.join(sources)}" if sources else e.op)
        return var
