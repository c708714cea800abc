"""Operations inside a loop that they share: what stands before the loop, and what each turn does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oco.backends.c99.entries import flat_index
from oco.backends.c99.expressions import Level, Text
from oco.backends.c99.statements import entry_of
from oco.backends.c99.vectors import c_type, is_vector, reduction
from oco.backends.c99.writer import Writer
from oco.compiler.ir.fusion import POINTWISE
from oco.compiler.ir.loop_groups import accumulates
from oco.compiler.ir.program import DType, Equation, Var

Index = Sequence[str]
LONG = 32
"""Entries from which an inner product of two runs of memory is added up in several parts at once."""


@dataclass(frozen=True)
class Reduction:
    """`step` joins the running value {0} and an entry {1}; the running value begins at `start`. `of_int`: both for whole numbers."""

    start: str
    step: str
    of_int: tuple[str, str] | None = None

    def on(self, kind: DType) -> tuple[str, str]:
        return self.of_int if self.of_int is not None and kind is DType.INT else (self.start, self.step)


REDUCTIONS: dict[str, Reduction] = {
    "sum": Reduction("0", "{0} += {1};"),
    "prod": Reduction("1", "{0} *= {1};"),
    "max": Reduction("-INFINITY", "{0} = @max({0}, {1});", ("INT64_MIN", "{0} = @max_int({0}, {1});")),
    "min": Reduction("INFINITY", "{0} = @min({0}, {1});", ("INT64_MAX", "{0} = @min_int({0}, {1});")),
    "any": Reduction("false", "{0} |= {1};"),
    "all": Reduction("true", "{0} &= {1};"),
}


def _running(e: Equation) -> tuple[str, str]:
    """Where the running value of a reduction begins, and how an entry joins it."""
    (x,), out = e.args, e.outs[0]
    if is_vector(x.type):
        return reduction(e.op, x.type, over_lanes=not is_vector(out.type))
    return REDUCTIONS[e.op].on(x.type.dtype)


def begin(w: Writer, e: Equation) -> None:
    """What stands before the loop: running values, and the array of a result (unless it is a number in the loop)."""
    (out,) = e.outs
    if not accumulates(e):
        if out.name not in w.entries.numbers:
            w.place(out)
        return
    start = "0" if e.op == "matmul" else _running(e)[0]
    if not out.type.shape:
        w.line(f"{c_type(out.type)} {out.name} = {start};")
        w.entries.places[out.name] = out.name
        return
    target = w.place(out)
    with w.loops(out.type.shape) as kept:
        w.line(f"{entry_of(target, kept, out.type)} = {start};")


def turn(w: Writer, e: Equation, index: Index) -> None:
    """What one turn does."""
    if e.op in POINTWISE:
        _put(w, e.outs[0], index, w.entries.computed(e.outs[0], index))
    elif e.op == "matmul":
        _product(w, e, index)
    elif accumulates(e):
        _joined(w, e, index)
    else:
        start, step = _running(e)
        total = w.fresh("total")
        w.line(f"{c_type(e.outs[0].type)} {total} = {start};")
        with w.loops(e.args[0].type.shape[-1:]) as inner:
            w.line(step.format(total, w.entry(e.args[0], [*index, *inner]).at(Level.COMPARISON)))
        _put(w, e.outs[0], index, Text(total))


def _put(w: Writer, out: Var, index: Index, text: Text) -> None:
    """The entry of a result, in its place or as a number."""
    if out.name in w.entries.numbers:
        w.line(f"const {c_type(out.type)} {out.name} = {text.code};")
        w.entries.places[out.name] = out.name
    else:
        w.line(f"{entry_of(w.place(out), index, out.type)} = {text.code};")


def _joined(w: Writer, e: Equation, index: Index) -> None:
    """One entry joins its running value."""
    (x,), axis, out = e.args, e.attr("axis"), e.outs[0]
    kept = [i for k, i in enumerate(index) if k != axis]
    target = entry_of(w.place(out), kept, out.type) if out.type.shape else out.name
    w.line(_running(e)[1].format(target, w.entry(x, index).at(Level.COMPARISON)))


def _product(w: Writer, e: Equation, index: Index) -> None:
    """A term of an inner product, or a row of a matrix times a vector."""
    (a, b), out = e.args, e.outs[0]
    if not out.type.shape:
        w.line(f"{out.name} += {w.entry(a, index).at(Level.PRODUCT)} * {w.entry(b, index).at(Level.UNARY)};")
        return
    length, lies = a.type.shape[-1], (w.entries.pointer(a), w.entries.pointer(b))
    if length >= LONG and b.type.shape == (length,) and all(lies):
        _put(w, out, index, Text(f"@dot({lies[0]} + {flat_index([index[0], '0'], a.type.shape)}, {lies[1]}, {length})"))
        return
    total = w.fresh("total")
    w.line(f"double {total} = 0;")
    with w.loops(a.type.shape[-1:]) as inner:
        left, right = w.entry(a, [index[0], *inner]), w.entry(b, [*inner, *index[1:]])
        w.line(f"{total} += {left.at(Level.PRODUCT)} * {right.at(Level.UNARY)};")
    _put(w, out, index, Text(total))
