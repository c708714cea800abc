"""Groups of the operations of a block that share a loop (for targets with explicit loops).

Operations that run over the same index space go into one loop where each reads what the loop makes at its own index alone; they move
up to the first such loop that has all they need. An array that only its own loop reads is a number inside it.

Compilers do not vectorize a short loop that mixes running sums with stores, or kinds of entries: there, sums share loops with sums and
truth values with truth values. Long sums over floats are taken in parts, which are stores themselves, and share loops with what makes
their entries. Where the last axis is that of a fleet's learners, nothing of the kind is in the way.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field

from oco.compiler.ir.ops import OPS, POINTWISE, REDUCTIONS
from oco.compiler.ir.program import Block, DType, Equation, Literal, Operand, Var
from oco.compiler.ir.rewrite import read_by
from oco.dsl.records import dataclass

LONG = 64
"""Entries of a loop that is worth fusing with others for the memory that they share, and of a sum that is taken in parts."""
LEAST_TILED = 16
"""Rows of either side from which products of rows with rows take tiles of these, that stay in registers."""
FEWEST_LOGARITHMS = 8
"""Logarithms whose sum is taken as one of a product."""
IN_PARTS = frozenset({"sum", "max", "min", "matmul"})
"""Reductions that may be taken in parts."""
Shape = tuple[int, ...]
Reads = dict[str, bool]
"""Stored variables by name, and whether each is read at the very index that the loop is at."""


@dataclass
class LoopGroup:
    """Equations that share a loop over `shape`; shape None: one equation on its own. `numbers`: arrays that are numbers in the loop."""

    shape: Shape | None
    equations: list[Equation] = field(default_factory=list)
    numbers: set[str] = field(default_factory=set)


def rows_of_product(e: Equation, made_by: Mapping[str, Equation], stored: Collection[str]) -> bool:
    """True if a product is taken row by row, without a transposed copy: the entries summed over lie together in both sides."""

    def is_transposed(x: Operand) -> bool:
        behind = made_by.get(x.name) if isinstance(x, Var) and x.name not in stored else None
        return behind is not None and behind.op == "transpose"

    a, b = e.args
    if len(a.type.shape) != 2 or is_transposed(a):
        return False
    return len(b.type.shape) == 1 or is_transposed(b)


def in_tiles(e: Equation, made_by: Mapping[str, Equation], stored: Collection[str]) -> bool:
    """True if long rows are multiplied with long rows, each read many times: both are in memory then, and no other loop shares theirs."""
    if not rows_of_product(e, made_by, stored) or len(e.outs[0].type.shape) != 2:
        return False
    return e.args[0].type.shape[-1] >= LONG and min(e.outs[0].type.shape) >= LEAST_TILED


def is_gram(e: Equation, made_by: Mapping[str, Equation]) -> bool:
    """True if a product of rows with rows is one of a matrix with itself, entries of its columns times a number each or left out."""

    def bare(x: Operand) -> Operand:
        behind = made_by.get(x.name) if isinstance(x, Var) else None
        if behind is not None and behind.op == "where":
            kept, matrix, other = behind.args
            leaves_out = isinstance(other, Literal) and other.value == 0
            return bare(matrix) if leaves_out and _by_column(kept, x) and matrix.type.shape == x.type.shape else x
        for matrix, factor in (behind.args, behind.args[::-1]) if behind is not None and behind.op == "mul" else ():
            if _by_column(factor, x) and matrix.type.shape == x.type.shape:
                return bare(matrix)
        return x

    a, b = e.args
    return isinstance(b, Var) and b.name in made_by and bare(a) == bare(made_by[b.name].args[0])


def _by_column(x: Operand, matrix: Operand) -> bool:
    """True if an operand that broadcasts to a matrix has one number for all entries of a column."""
    return x.type.shape[-1:] == matrix.type.shape[-1:] and math.prod(x.type.shape[:-1]) == 1


def sums_logarithms(e: Equation, made_by: Mapping[str, Equation], stored: Collection[str]) -> bool:
    """True for the sum of logarithms that nothing else needs, which is the logarithm of a product."""
    (x,) = e.args
    if e.op != "sum" or e.outs[0].type.shape or not isinstance(x, Var) or x.name in stored:
        return False
    return x.name in made_by and made_by[x.name].op == "log" and math.prod(x.type.shape) >= FEWEST_LOGARITHMS


def space(e: Equation, made_by: Mapping[str, Equation], stored: Collection[str]) -> Shape | None:
    """The index space of the loop that computes an equation; None if it is no loop that others may share."""
    shape = e.outs[0].type.shape if e.outs else ()
    if e.op in POINTWISE:
        return shape or None
    if e.op in REDUCTIONS:
        if sums_logarithms(e, made_by, stored):
            return None
        reduced = e.args[0].type.shape
        last = shape and e.attr("axis") == len(reduced) - 1
        return (shape if last else reduced) or None
    if e.op == "matmul":
        if rows_of_product(e, made_by, stored):
            return None if in_tiles(e, made_by, stored) else shape
        return e.args[0].type.shape if not shape else None
    return None


def accumulates(e: Equation) -> bool:
    """True if the result of an equation in a loop is complete only after it."""
    if e.op in POINTWISE:
        return False
    if e.op == "matmul":
        return not e.outs[0].type.shape
    return e.op in REDUCTIONS and not (e.outs[0].type.shape and e.attr("axis") == len(e.args[0].type.shape) - 1)


def groups(
    block: Block, stored: Collection[str], made_by: Mapping[str, Equation], mixed: bool = False
) -> list[LoopGroup]:
    """The block's equations that make something in memory, in an order that keeps every value. `mixed`: all kinds share loops."""
    result = _Grouping(stored, made_by, mixed)
    for e in result.known_first([e for e in block.equations if result.makes(e)]):
        result.add(e)
    result.find_numbers(block)
    return result.groups


def taken_over(
    block: Block, loops: Sequence[LoopGroup], stored: Collection[str], made_by: Mapping[str, Equation]
) -> dict[str, str]:
    """Long arrays that a loop reads last, entry by entry, by the name of an array that it makes of them: this may lie where they lay."""
    reads = _Grouping(stored, made_by, False)
    made = {v.name: k for k, group in enumerate(loops) for e in group.equations for v in e.outs}
    last = {name: k for k, group in enumerate(loops) for e in group.equations for name in reads.reads(e)}
    last |= dict.fromkeys(reads.read_by_results(block), len(loops))
    results: dict[str, str] = {}
    for k, group in enumerate(loops):
        for place, e in enumerate(group.equations):
            if not _makes_long_array(e, group):
                continue
            others = [reads.reads(other) for other in group.equations if other is not e]
            later = {name for other in group.equations[place + 1 :] for name in reads.reads(other)}
            for name, here in reads.reads(e).items():
                alone = made.get(name, k) < k and last[name] == k and here and name not in later
                if alone and name not in results.values() and all(o.get(name, True) for o in others):
                    old = next((v for v in made_by[name].outs if v.name == name), None)
                    if old is not None and old.type == e.outs[0].type:
                        results[e.outs[0].name] = name
                        break
    return results


def _makes_long_array(e: Equation, group: LoopGroup) -> bool:
    """True if an equation of a loop fills a long array in memory, entry by entry."""
    if group.shape is None or e.op not in POINTWISE:
        return False
    (out,) = e.outs
    return out.type.shape == group.shape and group.shape[-1] >= LONG and out.name not in group.numbers


def _shares(e: Equation, other: Equation, shape: Shape) -> bool:
    """True if two equations in one loop leave it as easy to vectorize as two loops."""
    if accumulates(e) or accumulates(other):
        both = accumulates(e) and accumulates(other)
        return both or (shape[-1] >= LONG and _fits_parts(e) and _fits_parts(other))
    kinds = {x.outs[0].type.dtype for x in (e, other)}
    rows = e.op not in POINTWISE or other.op not in POINTWISE  # the loop inside is the one to vectorize
    return len(kinds) == 1 and (rows or DType.BOOL in kinds or shape[-1] >= LONG)


def _fits_parts(e: Equation) -> bool:
    """True if an equation may stand in a loop in which running values take turns."""
    if e.op in POINTWISE:
        return e.outs[0].type.dtype is DType.FLOAT
    return accumulates(e) and not e.outs[0].type.shape and e.op in IN_PARTS and e.args[0].type.dtype is DType.FLOAT


class _Grouping:
    def __init__(self, stored: Collection[str], made_by: Mapping[str, Equation], mixed: bool) -> None:
        self.stored, self.made_by, self.mixed = stored, made_by, mixed
        self.groups: list[LoopGroup] = []
        self.home: dict[str, int] = {}
        self.complete: set[str] = set()
        """Values that a loop has at its index, not only at its end."""

    def makes(self, e: Equation) -> bool:
        """True if an equation makes something in memory."""
        return bool(e.blocks) or e.op not in POINTWISE or e.outs[0].name in self.stored

    def known_first(self, equations: Sequence[Equation]) -> list[Equation]:
        """Equations in their order, after the numbers that none of the others is needed for, which keep no loops apart then."""
        first, later, waiting = list[Equation](), list[Equation](), set[str]()
        for e in equations:
            number = e.op in POINTWISE and not e.outs[0].type.shape
            if number and waiting.isdisjoint(self.reads(e)):
                first.append(e)
            else:
                later.append(e)
                waiting |= {v.name for v in e.outs}
        return [*first, *later]

    def add(self, e: Equation) -> None:
        shape = None if e.blocks or e.op == "call" else space(e, self.made_by, self.stored)
        first = 0
        reads = self.reads(e)
        for name, here in reads.items():
            if name in self.home:
                shares = here and name in self.complete
                first = max(first, self.home[name] + (0 if shares else 1))
        place = next((k for k in range(first, len(self.groups)) if self.fits(e, shape, self.groups[k])), None)
        if place is None:
            place = len(self.groups)
            self.groups.append(LoopGroup(shape))
        self.groups[place].equations.append(e)
        for v in e.outs:
            self.home[v.name] = place
            if shape is not None and not accumulates(e):
                self.complete.add(v.name)

    def fits(self, e: Equation, shape: Shape | None, group: LoopGroup) -> bool:
        """True if an equation may join a loop."""
        if shape is None or shape != group.shape:
            return False
        return self.mixed or all(_shares(e, other, shape) for other in group.equations)

    def reads(self, e: Equation) -> Reads:
        """Values that an equation reads from memory, looking through those that have no place."""
        results: Reads = {}
        if e.blocks:
            for inner in e.blocks:
                for name in read_by(inner):
                    self._through(name, False, results)
        for k, a in enumerate(e.args):
            self._operand(a, self._here(e, k), results)
        return results

    def read_by_results(self, block: Block) -> set[str]:
        """Values that the results of a block are read from."""
        results: Reads = {}
        for r in block.results:
            self._operand(r, False, results)
        return set(results)

    def _operand(self, a: Operand, here: bool, results: Reads) -> None:
        if isinstance(a, Var):
            self._through(a.name, here, results)

    def _through(self, name: str, here: bool, results: Reads) -> None:
        e = self.made_by.get(name)
        if name in self.stored or e is None or e.op not in POINTWISE:
            results[name] = results.get(name, True) and here
            return
        for k, a in enumerate(e.args):
            self._operand(a, here and self._here(e, k), results)

    def _here(self, e: Equation, k: int) -> bool:
        """True if argument k is read at the index that the loop of the equation is at."""
        if e.op in OPS and OPS[e.op].elementwise:
            return e.args[k].type.shape == e.outs[0].type.shape
        if e.op in REDUCTIONS:
            return accumulates(e)
        return e.op == "matmul" and accumulates(e)

    def find_numbers(self, block: Block) -> None:
        """Arrays that are read in their own loop alone, each at its own index."""
        outside = self.read_by_results(block)
        for k, group in enumerate(self.groups):
            for e in group.equations:
                for name, here in self.reads(e).items():
                    if self.home.get(name) != k or not here:
                        outside.add(name)
        for group in self.groups:
            if group.shape is None:
                continue
            for e in group.equations:
                (out,) = e.outs
                if out.type.shape == group.shape and out.name not in outside and not accumulates(e):
                    group.numbers.add(out.name)
