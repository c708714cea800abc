"""Choice of the values that need a place in memory; the others are computed where used (for targets with explicit loops).

A value may be left without a place if each of its entries is computed from single entries of its arguments (elementwise operations,
views, gathers) and is needed about once. Loops over arrays then fuse: `sum((H x - y)^2)` is one loop with no array in between.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field

from oco.compiler.ir.names import is_temporary
from oco.compiler.ir.ops import OPS, POINTWISE, VIEWS
from oco.compiler.ir.program import Block, Equation, Operand, Type, Var
from oco.compiler.ir.rewrite import read_by
from oco.dsl.records import dataclass

LARGEST_EXPRESSION = 16  # operations of one line of emitted text, so that it can be read
_STORED = math.inf


def size(made: Type) -> int:
    """Number of entries of an array."""
    return math.prod(made.shape)


def stored(body: Block) -> frozenset[str]:
    """Names of the variables of a function's body, inner blocks included, that need a place."""
    plan = _Plan()
    plan.block(body, {})
    return frozenset(plan.stored)


@dataclass
class _Plan:
    """Uses are met before definitions.

    needed     how often each entry of a value is computed if the value has no place
    in_memory  whose entries are found by their place in memory
    """

    stored: set[str] = field(default_factory=set)
    in_memory: set[str] = field(default_factory=set)
    needed: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    nodes: dict[str, int] = field(default_factory=dict)

    def block(self, block: Block, outer: Mapping[str, Equation]) -> None:
        made_by = {**outer, **{v.name: e for e in block.equations for v in e.outs}}
        for r in block.results:
            self.read(r, 1.0)
        for e in reversed(block.equations):
            if e.blocks:
                self.control(e, made_by)
            else:
                self.equation(e, made_by)
        for e in block.equations:  # long expressions are cut, from the leaves up
            self.cut(e)

    def control(self, e: Equation, made_by: Mapping[str, Equation]) -> None:
        self.stored |= {v.name for v in e.outs}
        for a in e.args:
            for read in picked_rows(a, made_by) if e.op == "map" else (a,):
                self.read(read, _STORED if read.type.shape else 1.0)
        for inner in e.blocks:
            self.stored |= {p.name for p in inner.params}
            before = dict(self.needed)
            self.block(inner, made_by)
            for r in inner.results:
                self.read(r, _STORED if r.type.shape else 1.0)
            if e.op != "if":  # what a loop reads is needed in every turn
                for name in self.needed.keys() & made_by.keys():
                    if self.needed[name] > before.get(name, 0.0):
                        self.needed[name] = _STORED

    def equation(self, e: Equation, made_by: Mapping[str, Equation]) -> None:
        has_place = self.decide(e)
        if e.op == "reshape" and not unit_axes_only(e.args[0].type.shape, e.outs[0].type.shape):
            self.in_memory.add(_in_other_shapes(e.args[0], made_by))
        for k, a in enumerate(e.args):
            self.read(a, reads(e, k) * (1.0 if has_place else self.needed[e.outs[0].name]))

    def decide(self, e: Equation) -> bool:
        """Return True if the results of an equation get places in memory."""
        names = [v.name for v in e.outs]
        free = e.op in VIEWS and size(e.outs[0].type) > 0
        named_number = not e.outs[0].type.shape and not is_temporary(names[0])
        if (
            e.op in POINTWISE
            and names[0] not in self.in_memory
            and (free or (self.needed[names[0]] <= 1.0 and not named_number))
        ):
            return False
        self.stored |= set(names)
        return True

    def read(self, operand: Operand, times: float) -> None:
        if isinstance(operand, Var):
            self.needed[operand.name] += times

    def cut(self, e: Equation) -> None:
        if e.op not in POINTWISE:
            return
        nodes = 1 + sum(self.nodes.get(a.name, 0) for a in e.args if isinstance(a, Var) and a.name not in self.stored)
        if nodes > LARGEST_EXPRESSION and e.op not in VIEWS:
            self.stored.add(e.outs[0].name)
        self.nodes[e.outs[0].name] = nodes


def given_up(body: Block, stored: Collection[str]) -> Mapping[str, str]:
    """Arrays of a function's body that nothing reads once a loop begins with them, by name, with what they become: the loop may take
    their memory, or they its.
    """
    made = {v.name: e for e in body.equations for v in e.outs}
    last: dict[str, int] = {}
    becomes: dict[str, tuple[int, str]] = {}
    for k, e in enumerate(body.equations):
        own = [a for a in e.args if isinstance(a, Var)]
        inside = {n for inner in e.blocks for n in read_by(inner)}
        starts = Counter(a.name for a in own)
        if e.op in ("for", "while"):
            first = e.args[1:] if e.op == "for" else e.args
            for out, a in zip(e.outs, first):
                if isinstance(a, Var) and a.type.shape and starts[a.name] == 1 and a.name not in inside:
                    becomes[a.name] = k, out.name
        for name in _in_memory({*starts, *inside}, made, stored):
            last[name] = k
    left = _in_memory({r.name for r in body.results if isinstance(r, Var)}, made, stored)
    return {
        name: out
        for name, (k, out) in becomes.items()
        if name in made and name in stored and not made[name].blocks and last[name] == k and name not in left
    }


def _in_memory(names: Iterable[str], made: Mapping[str, Equation], stored: Collection[str]) -> set[str]:
    """Names of what is read from memory where these values are: those without a place are computed where they are used."""
    result, left = set[str](), list(names)
    while left:
        name = left.pop()
        e = made.get(name)
        if e is None or name in stored:
            result.add(name)
        else:
            left += [a.name for a in e.args if isinstance(a, Var)]
    return result


def picked_rows(operand: Operand, made_by: Mapping[str, Equation]) -> tuple[Operand, ...]:
    """The array whose rows a row of an operand is one of, and the places of these rows; the operand alone where it picks none."""
    e = made_by.get(operand.name) if isinstance(operand, Var) else None
    picks = e is not None and e.op == "gather" and len(e.args) == 2 and len(e.args[0].type.shape) == 2
    return e.args if e is not None and picks and len(e.args[1].type.shape) == 1 else (operand,)


def _in_other_shapes(operand: Operand, made_by: Mapping[str, Equation]) -> str:
    """The name of the array whose entries, in the same order, are those of an operand: one place does for all of its shapes."""
    assert isinstance(operand, Var)  # a literal has no axes
    e = made_by.get(operand.name)
    again = e is not None and e.op == "reshape" and e.args[0].type.shape
    return _in_other_shapes(e.args[0], made_by) if e is not None and again else operand.name


def reads(e: Equation, k: int) -> float:
    """Number of times that each entry of argument k is read when the results are computed once."""
    out, arg = (size(e.outs[0].type) if e.outs else 1), max(size(e.args[k].type), 1)
    match e.op:
        case "call":
            return _STORED if e.args[k].type.shape else 1.0
        case "matmul":
            rows = e.args[0].type.shape[0] if len(e.args[0].type.shape) == 2 else 1
            return float(rows) if k == 1 else 1.0
        case "gather" | "put" if k == 0:
            return max(1.0, out / arg)
        case "scatter_add":
            return 1.0 if k else max(1.0, size(e.args[1].type) / arg)
        case "outer" | "broadcast" | "full":
            return out / arg
        case _ if e.op in OPS and OPS[e.op].elementwise:
            return out / arg
    return 1.0


def unit_axes_only(before: tuple[int, ...], after: tuple[int, ...]) -> bool:
    """True if two shapes differ in axes of length one alone."""
    return [n for n in before if n != 1] == [n for n in after if n != 1]
