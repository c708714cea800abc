"""Single entries of a value as C expressions: values without a place in memory are traced back to those that have one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field

from oco.backends.c99 import vectors
from oco.backends.c99.expressions import Level, Text, literal
from oco.backends.c99.templates import TEMPLATES
from oco.backends.c99.vectors import is_vector, splat, without_lanes
from oco.compiler.ir.fusion import unit_axes_only
from oco.compiler.ir.program import DType, Equation, Operand, Var
from oco.dsl.diagnostics import InternalError
from oco.dsl.records import dataclass

Index = Sequence[str]


def flat_index(index: Index, shape: Sequence[int]) -> str:
    """Position of an entry in row order: `i * 10 + j`."""
    offset, terms, stride = 0, list[str](), 1
    axes = without_lanes(shape)
    for place, length in reversed(list(zip(index[: len(axes)], axes, strict=True))):
        if place.isdigit():
            offset += int(place) * stride
        else:
            factor = place if place.isidentifier() else f"({place})"
            terms.append(place if stride == 1 else f"{factor} * {stride}")
        stride *= length
    return " + ".join([*reversed(terms), *([str(offset)] if offset or not terms else [])])


def shifted(place: str, by: int) -> str:
    """Position `place + by`."""
    if not by:
        return place
    return str(int(place) + by) if place.isdigit() else f"{place} + {by}"


@dataclass
class Entries:
    """Expressions of entries.

    places   C names of the variables that have a place
    made_by  equations of those that have none
    numbers  arrays that exist one entry at a time, inside a loop
    read     places that expressions have named
    """

    places: dict[str, str]
    made_by: Mapping[str, Equation]
    numbers: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)

    def at(self, operand: Operand, index: Index = ()) -> Text:
        """Entry at an index of C expressions, one for each axis."""
        if not isinstance(operand, Var):
            return literal(operand)
        if operand.name in self.places:
            name = self.places[operand.name]
            self.read.add(name)
            if not operand.type.shape or operand.name in self.numbers:
                return Text(name, Level.UNARY if name[0] == "*" else Level.ATOM)
            return Text(f"{name}[{flat_index(index, operand.type.shape)}]")
        return self.computed(operand, index)

    @contextmanager
    def recorded(self) -> Iterator[set[str]]:
        """Context that yields the places which expressions name within it."""
        before, self.read = self.read, set()
        yield self.read
        self.read = before | self.read

    def computed(self, var: Var, index: Index = ()) -> Text:
        """Entry as computed, not as read from its place."""
        e = self.made_by[var.name]
        if e.op in TEMPLATES:
            return self.elementwise(e, index)
        if e.op not in ACCESS:
            raise InternalError(f"{e.op} needs a place")
        return ACCESS[e.op](self, e, index)

    def elementwise(self, e: Equation, index: Index) -> Text:
        """Entry of an elementwise operation."""
        args = [self.at(a, stretched(index, a.type.shape)) for a in e.args]
        if is_vector(e.outs[0].type):
            operands = list(zip(args, (a.type for a in e.args)))
            if e.op in vectors.TEMPLATES:
                return Text(vectors.TEMPLATES[e.op](operands))
            return Text(vectors.lane_by_lane(TEMPLATES[e.op], operands, e.outs[0].type.dtype))
        return TEMPLATES[e.op](args, e.args[-1].type.dtype)

    def pointer(self, operand: Operand) -> str | None:
        """Pointer to the entries of an array in row order, if they are in memory."""
        if not isinstance(operand, Var):
            return None
        if operand.name in self.places:
            self.read.add(self.places[operand.name])
            return self.places[operand.name]
        e = self.made_by[operand.name]
        return self.pointer(e.args[0]) if e.op == "reshape" and e.args[0].type.shape else None


def stretched(index: Index, shape: Sequence[int]) -> list[str]:
    """Index into an argument that broadcasts to the shape of the result."""
    last = list(index)[len(index) - len(shape) :]
    return ["0" if n == 1 else i for i, n in zip(last, shape, strict=True)]


def _transpose(entries: Entries, e: Equation, index: Index) -> Text:
    return entries.at(e.args[0], list(reversed(index)))


def _broadcast(entries: Entries, e: Equation, index: Index) -> Text:
    return _spread(entries.at(e.args[0], stretched(index, e.args[0].type.shape)), e)


def _slice(entries: Entries, e: Equation, index: Index) -> Text:
    return entries.at(e.args[0], [shifted(i, start) for i, start in zip(index, e.attr("starts"))])


def _reshape(entries: Entries, e: Equation, index: Index) -> Text:
    before, after = e.args[0].type.shape, e.outs[0].type.shape
    if unit_axes_only(before, after):
        left = iter([i for i, n in zip(index, after) if n != 1])
        return entries.at(e.args[0], ["0" if n == 1 else next(left) for n in before])
    name = entries.pointer(e.args[0])
    if name is None:
        raise InternalError("a reshaped value needs a place")
    return Text(f"{name}[{flat_index(index, after)}]")


def _gather(entries: Entries, e: Equation, index: Index) -> Text:
    base, *indices = e.args
    rank = max(len(i.type.shape) for i in indices)
    places = [entries.at(i, stretched(index[:rank], i.type.shape)).at(Level.SUM) for i in indices]
    return entries.at(base, [*places, *index[rank:]])


def _outer(entries: Entries, e: Equation, index: Index) -> Text:
    cut = len(e.args[0].type.shape)
    a, b = entries.at(e.args[0], index[:cut]), entries.at(e.args[1], index[cut:])
    return TEMPLATES["mul"]([a, b], DType.FLOAT)


def _full(entries: Entries, e: Equation, index: Index) -> Text:
    return _spread(entries.at(e.args[0]), e)


def _spread(text: Text, e: Equation) -> Text:
    """Entry of a broadcast value, over the learners of a block too."""
    wide = is_vector(e.outs[0].type) and not is_vector(e.args[0].type)
    return splat(text, e.args[0].type.dtype) if wide else text


def _iota(entries: Entries, e: Equation, index: Index) -> Text:
    return Text(index[0], Level.ATOM if index[0].isidentifier() or index[0].isdigit() else Level.SUM)


def _eye(entries: Entries, e: Equation, index: Index) -> Text:
    return Text(f"{index[0]} == {index[1]} ? 1.0 : 0.0", Level.CONDITIONAL)


def _diag(entries: Entries, e: Equation, index: Index) -> Text:
    if len(index) == 1:
        return entries.at(e.args[0], [index[0], index[0]])
    zero = "0.0" if e.outs[0].type.dtype is DType.FLOAT else "0"
    return Text(
        f"{index[0]} == {index[1]} ? {entries.at(e.args[0], index[:1]).at(Level.OR)} : {zero}", Level.CONDITIONAL
    )


ACCESS = {
    "transpose": _transpose,
    "broadcast": _broadcast,
    "slice": _slice,
    "reshape": _reshape,
    "gather": _gather,
    "outer": _outer,
    "full": _full,
    "iota": _iota,
    "eye": _eye,
    "diag": _diag,
}
