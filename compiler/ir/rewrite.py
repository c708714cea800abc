"""Tools that passes share: walks over blocks, substitution, and the pieces of a program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import count

from oco.compiler.ir.program import Block, Equation, Function, Operand, Program, Var


class LeftAlone:
    """Functions that a pass left as they are, which it need not look at again: it makes of a function what it made before."""

    def __init__(self) -> None:
        self._functions: dict[int, Function] = {}  # an id names a function only while the function lives

    def unless(self, change: Callable[[Function], Function]) -> Callable[[Function], Function]:
        """The change of a pass, not made where it changes nothing."""

        def changed(f: Function) -> Function:
            if id(f) in self._functions:
                return f
            result = change(f)
            if result != f:
                return result
            self._functions[id(f)] = f
            return f

        return changed


def map_functions(
    program: Program, change: Callable[[Function], Function], left_alone: LeftAlone | None = None
) -> Program:
    """The program with every function replaced, but for those that the pass is known to leave alone."""
    change = change if left_alone is None else left_alone.unless(change)
    return replace(
        program,
        functions=tuple(change(f) for f in program.functions),
        init=change(program.init),
        decide=change(program.decide),
        update=change(program.update),
        measure=None if program.measure is None else change(program.measure),
        slopes=None if program.slopes is None else change(program.slopes),
        prepare=None if program.prepare is None else change(program.prepare),
        certificate=None if program.certificate is None else change(program.certificate),
    )


def all_functions(program: Program) -> Iterator[Function]:
    """Helper functions, then the entries."""
    yield from program.functions
    yield from program.entries


def equations_of(block: Block) -> Iterator[Equation]:
    """Every equation of a block and of the blocks inside it."""
    for e in block.equations:
        yield e
        for inner in e.blocks:
            yield from equations_of(inner)


def blocks_of(block: Block) -> Iterator[Block]:
    """A block and the blocks inside it, in no order."""
    waiting = [block]
    while waiting:
        inner = waiting.pop()
        yield inner
        for e in inner.equations:
            if e.blocks:
                waiting += e.blocks


def bound_names(block: Block) -> list[str]:
    """Every name bound in a block or in the blocks inside it, in no order."""
    names: list[str] = []
    for b in blocks_of(block):
        names += [p.name for p in b.params]
        names += [v.name for e in b.equations for v in e.outs]
    return names


def free_names(f: Function, program: Program) -> Iterator[str]:
    """Names for new variables of a function, none of which is bound in it or is a constant of its program."""
    taken = {g.var.name for g in program.constants} | set(bound_names(f.body))  # once the first is asked for
    yield from (name for k in count(2) if (name := f"v_{k}") not in taken)


def read_by(block: Block) -> list[str]:
    """Names read in a block or in the blocks inside it, its own results among them, as often as they are read, in no order."""
    names: list[str] = []
    for b in blocks_of(block):
        names += [a.name for e in b.equations for a in e.args if isinstance(a, Var)]
        names += [r.name for r in b.results if isinstance(r, Var)]
    return names


def substitute(block: Block, values: Mapping[str, Operand]) -> Block:
    """The block with variables replaced by other operands wherever they are read or bound."""
    if not values:
        return block

    def read(operand: Operand) -> Operand:
        return values.get(operand.name, operand) if isinstance(operand, Var) else operand

    def bound(var: Var) -> Var:
        result = values.get(var.name, var)
        return result if isinstance(result, Var) else var

    def equation(e: Equation) -> Equation:
        blocks = tuple(substitute(b, values) for b in e.blocks)
        return e.having(tuple(map(read, e.args)), blocks, tuple(map(bound, e.outs)))

    equations = tuple(equation(e) for e in block.equations)
    return Block(tuple(map(bound, block.params)), equations, tuple(map(read, block.results)))


def keep_notes(equations: Iterable[tuple[Equation, bool]]) -> tuple[Equation, ...]:
    """The equations that are kept; the comment of one that goes moves to the next that stays."""
    kept: list[Equation] = []
    pending = ""
    for e, stays in equations:
        if stays and not pending:
            kept.append(e)
            continue
        note = "; ".join(n for n in (pending, e.note) if n)
        if stays:
            kept.append(replace(e, note=note) if note != e.note else e)
        pending = "" if stays else note
    return tuple(kept)


def operand_key(operand: Operand) -> tuple[str, ...]:
    """Tells operands apart bit by bit: -0.0 is not 0.0."""
    return (operand.name,) if isinstance(operand, Var) else ("", repr(operand.value), operand.type.dtype)
