"""Pass: arrays of one or two entries an axis become numbers, an entry each.

For targets where an operation is a call: on two numbers it costs a tenth of what it costs on an array of two (`Q` of two constraints
becomes `Q_0, Q_1`). Fields and large arrays stay arrays: what is computed from them alone is taken apart once (`entries`), where its
entries are needed, and numbers are put together (`stack`) where they meet a large array.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from itertools import product
from typing import Any

import numpy as np

from oco.compiler.ir.names import identifier
from oco.compiler.ir.ops import OPS
from oco.compiler.ir.program import Block, Equation, Function, Literal, Operand, Program, Type, Var
from oco.compiler.ir.rewrite import bound_names, map_functions
from oco.compiler.ir.small_entries import Entries, EntryRule, Place, entry_of, places
from oco.compiler.ir.words import soft, word_in, word_of
from oco.dsl.records import dataclass

LARGEST = 2
"""Entries an axis: with more, the text grows beyond what is read at a glance."""
_VERSION = re.compile(r"_\d+$")


def unroll_small_arrays(program: Program, largest: int = LARGEST) -> Program:
    """Put numbers in the place of arrays that have at most `largest` entries along each axis."""
    names = {g.var.name for g in program.constants} | {f.name for f in program.functions}
    entries = {f.name for f in program.entries}
    constants = {g.var.name: g.value for g in program.constants}

    def unrolled(function: Function) -> Function:
        wanted: set[str] = set()
        while True:  # what is taken apart late, in an inner block, is taken apart at once the next time
            result = _Unrolling(set(bound_names(function.body)) | names, wanted, largest, constants)
            body = result.function(function.body, function.name in entries)
            if result.wanted == wanted:
                return function.having(body)
            wanted = result.wanted

    return map_functions(program, unrolled)


@dataclass
class _Unrolling:
    """One walk over one function. `parts`: the entries of an array; `whole`: the array of a variable, where there is one."""

    taken: set[str]
    known: set[str]
    largest: int
    constants: Mapping[str, np.ndarray[Any, Any]]
    wanted: set[str] = field(default_factory=set)
    parts: dict[str, Entries] = field(default_factory=dict)
    whole: dict[str, Operand] = field(default_factory=dict)
    made: list[Equation] = field(default_factory=list)
    note: str = ""

    def small(self, made: Type) -> bool:
        return bool(made.shape) and min(made.shape) >= 1 and max(made.shape) <= self.largest

    def apart(self, v: Var) -> tuple[Var, ...]:
        """A new variable for each entry."""
        if not self.small(v.type):
            return (v,)
        return tuple(self.entry(v, place) for place in places(v.type.shape))

    def entry(self, v: Var, place: Place) -> Var:
        """`Q_0`, `Q_1` of Q; the first entry of its next value is `Q_0_2`."""
        stem = _stem(v)
        return self.fresh(stem if stem == "v" else "_".join([stem, *map(str, place)]), Type(v.type.dtype))

    def fresh(self, name: str, made: Type) -> Var:
        result = identifier(name, self.taken)
        self.taken.add(result)
        return Var(result, made)

    def emit(self, op: str, args: Sequence[Operand], outs: Sequence[Var], **attrs: object) -> None:
        self.made.append(Equation(tuple(outs), op, tuple(args), tuple(attrs.items()), (), self.note))
        self.note = ""

    # both forms of a value
    def array(self, operand: Operand) -> Operand:
        """The value as an array; a number as it is."""
        if not operand.type.shape:
            return self.number(operand)
        if not isinstance(operand, Var) or operand.name not in self.parts:
            return operand
        if operand.name in self.whole:
            return self.whole[operand.name]
        kind, shape = operand.type.dtype, operand.type.shape
        parts = self.parts[operand.name]
        flat = Var(self.fresh("v", operand.type).name, Type(kind, (len(parts),)))
        self.emit("stack", parts, [flat])
        result = flat
        if len(shape) > 1:
            result = self.fresh("v", operand.type)
            self.emit("reshape", [flat], [result], shape=shape)
        return result

    def entries(self, operand: Operand) -> Entries:
        """The entries of a small array in row order, or the number."""
        if not isinstance(operand, Var) or not operand.type.shape:
            return (self.number(operand),)
        if operand.name in self.constants:
            value, kind = self.constants[operand.name], Type(operand.type.dtype)
            return tuple(Literal(entry.item(), kind) for entry in value.flat)
        if operand.name not in self.parts:
            self.wanted.add(operand.name)
            self.take_apart(operand)
        return self.parts[operand.name]

    def number(self, operand: Operand) -> Operand:
        result = self.parts.get(operand.name) if isinstance(operand, Var) else None
        return operand if result is None else result[0]

    def take_apart(self, v: Var) -> None:
        outs = self.apart(v)
        self.whole[v.name], self.parts[v.name] = v, outs
        self.emit("entries", [v], outs)

    def born(self, v: Var) -> None:
        """An array that an operation made: taken apart at once if that will be needed."""
        if v.name in self.known and self.small(v.type):
            self.wanted.add(v.name)
            self.take_apart(v)

    # blocks
    def function(self, body: Block, is_entry: bool) -> Block:
        if not is_entry:
            return self.block(body)
        for p in body.params:
            self.born(p)
        self.equations(body)
        results = tuple(map(self.array, body.results))
        return Block(body.params, tuple(self.made), results)

    def block(self, block: Block) -> Block:
        """The block over entries: its parameters and results are taken apart."""
        outer, self.made = self.made, []
        known = dict(self.parts), dict(self.whole)
        params = tuple(p for v in block.params for p in self.bound(v))
        self.equations(block)
        results = tuple(r for o in block.results for r in self.flat(o))
        result = Block(params, tuple(self.made), results)
        self.made, (self.parts, self.whole) = outer, known
        return result

    def bound(self, v: Var) -> tuple[Var, ...]:
        parts = self.apart(v)
        if self.small(v.type):
            self.parts[v.name] = parts
        return parts

    def flat(self, operand: Operand) -> Entries:
        return self.entries(operand) if self.small(operand.type) else (self.number(operand),)

    def equations(self, block: Block) -> None:
        for e in block.equations:
            if e.note:
                self.note = f"{self.note}; {e.note}" if self.note else e.note
            if e.blocks or e.op == "call":
                self.control(e)
            elif not self.by_entries(e):
                args = tuple([self.array(a) for a in e.args])
                note, self.note = self.note, ""
                self.made.append((e if note == e.note else replace(e, note=note)).having(args))
                for v in e.outs:
                    self.born(v)

    def control(self, e: Equation) -> None:
        args = tuple(r for a in e.args for r in self.flat(a))
        note, self.note = self.note, ""
        blocks = tuple(map(self.block, e.blocks))
        outs = tuple(o for v in e.outs for o in self.bound(v))
        self.made.append(replace(e, outs=outs, args=args, blocks=blocks, note=note))

    # operations
    def by_entries(self, e: Equation) -> bool:
        """Write the operation entry by entry, if that is worth it."""
        out = e.outs[0]
        arrays = [v.type for v in (*e.args, out) if v.type.shape]
        if not arrays or len(e.outs) > 1 or not all(map(self.small, arrays)):
            return False
        row = OPS[e.op]
        if row.moves:
            return self.moved(e, row.moves)
        if row.fold:
            return self.set(out, self.folded(e, row.fold))
        if row.elementwise:
            return not self.stays(e) and self.set(out, self.entrywise(e.op, e.args, out))
        if e.op == "outer":
            return self.set(out, self.outer(self.entries(e.args[0]), self.entries(e.args[1]), out))
        return e.op == "matmul" and self.set(out, self.products(e))

    def set(self, v: Var, values: Sequence[Operand]) -> bool:
        """The value of a variable, by entries."""
        self.parts[v.name] = tuple(values)
        return True

    def stays(self, e: Equation) -> bool:
        """True if every array that goes in is there as one, so that one operation does. A single entry is as good as a number."""
        if math.prod(e.outs[0].type.shape) == 1:
            return False
        arrays = [a for a in e.args if isinstance(a, Var) and a.type.shape]
        return all(a.name not in self.parts or a.name in self.whole for a in arrays)

    def apply(self, op: str, args: Sequence[Operand], out: Var) -> Operand:
        self.emit(op, args, [out])
        return out

    def entrywise(self, op: str, args: Sequence[Operand], out: Var) -> list[Operand]:
        each = [(self.entries(a), a.type.shape) for a in args]
        return [
            self.apply(op, [entry_of(parts, shape, place) for parts, shape in each], self.entry(out, place))
            for place in places(out.type.shape)
        ]

    def outer(self, a: Entries, b: Entries, out: Var) -> list[Operand]:
        pairs = zip(product(a, b), places(out.type.shape), strict=True)
        return [self.apply("mul", factors, self.entry(out, place)) for factors, place in pairs]

    def total(self, op: str, terms: Sequence[Operand], out: Var) -> Operand:
        """The terms put together from the first to the last."""
        result = terms[0]
        for k, term in enumerate(terms[1:], start=2):
            result = self.apply(
                op, (result, term), out if k == len(terms) else self.fresh(soft(word_in(out.name) or "v"), out.type)
            )
        return result

    def moved(self, e: Equation, move: EntryRule) -> bool:
        """An operation that takes entries from one place to another."""
        if e.args and e.op != "gather" and self.small(e.args[0].type) and self.stays(e):
            return False
        values = move(e, [self.entries(a) for a in e.args])
        return values is not None and self.set(e.outs[0], values)

    def folded(self, e: Equation, op: str) -> list[Operand]:
        (x,), axis, out = e.args, e.attr("axis"), e.outs[0]
        parts, shape = self.entries(x), x.type.shape
        groups: dict[tuple[int, ...], list[Operand]] = {}
        for place, entry in zip(places(shape), parts, strict=True):
            key = () if axis is None else place[:axis] + place[axis + 1 :]
            groups.setdefault(key, []).append(entry)
        return [self.total(op, group, self.sum_at(out, place)) for place, group in groups.items()]

    def sum_at(self, out: Var, place: Place) -> Var:
        """The variable of one entry of a result, which is a number or a small array."""
        return self.entry(out, place) if out.type.shape else self.fresh(_stem(out), out.type)

    def products(self, e: Equation) -> list[Operand]:
        """Rows times columns, added up in order."""
        (a, b), out = e.args, e.outs[0]
        left, right, inner = self.entries(a), self.entries(b), a.type.shape[-1]
        rows, columns = math.prod(a.type.shape[:-1]), math.prod(b.type.shape[1:])
        result, single = list[Operand](), Type(out.type.dtype)
        for (i, k), place in zip(product(range(rows), range(columns)), places(out.type.shape), strict=True):
            pairs = [(left[i * inner + j], right[j * columns + k]) for j in range(inner)]
            terms = [self.apply("mul", pair, self.fresh(_product(pair), single)) for pair in pairs]
            result.append(self.total("add", terms, self.sum_at(out, place)))
        return result


def _stem(v: Var) -> str:
    """The name without the number of its version."""
    return _VERSION.sub("", v.name)


def _product(pair: Sequence[Operand]) -> str:
    """Name of a product of two entries."""
    return word_of("mul", tuple(o.name if isinstance(o, Var) else "v" for o in pair))
