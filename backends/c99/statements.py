"""Operations that need more than one entry of their arguments: statements of C, one row an operation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from oco.backends.c99.entries import flat_index, stretched
from oco.backends.c99.expressions import Level
from oco.backends.c99.vectors import c_type, is_vector, zero
from oco.backends.c99.writer import Writer
from oco.compiler.ir.loop_groups import LEAST_TILED, in_tiles, is_gram
from oco.compiler.ir.program import DType, Equation, Operand, Type, Var
from oco.compiler.ir.type_rules import broadcast_shapes

Statement = Callable[[Writer, Equation], None]


def entry_of(name: str, index: Sequence[str], made: Type) -> str:
    """Entry of an array at an index."""
    return f"{name}[{flat_index(index, made.shape)}]"


def _place_of(symbol: str) -> Statement:
    """Index of an extreme entry, the first of equals; NaN counts as the most extreme."""

    def write(w: Writer, e: Equation) -> None:
        (x,), out = e.args, e.outs[0]
        best, value, place = w.fresh("best"), w.fresh("value"), w.fresh("place")
        w.line(f"double {best} = (double){w.entry(x, ['0'] * len(x.type.shape)).at(Level.UNARY)};")
        w.line(f"int64_t {out.name} = 0;")
        w.entries.places[out.name] = out.name
        with w.loops(x.type.shape) as index:
            w.line(f"const double {value} = (double){w.entry(x, index).at(Level.UNARY)};")
            w.line(f"const int {place} = {flat_index(index, x.type.shape)};")
            with w.braces(f"if ({value} {symbol} {best} || ({value} != {value} && {best} == {best}))"):
                w.line(f"{best} = {value};")
                w.line(f"{out.name} = {place};")

    return write


def _cumsum(w: Writer, e: Equation) -> None:
    (x,), out = e.args, e.outs[0]
    target, total = w.place(out), w.fresh("total")
    w.line(f"{c_type(x.type)} {total} = 0;")
    with w.loops(x.type.shape) as index:
        w.line(f"{total} += {w.entry(x, index).code};")
        w.line(f"{entry_of(target, index, out.type)} = {total};")


SHORT_ROW = 128
"""Entries of a row of a product up to which it is summed in a separate array."""


def _matmul(w: Writer, e: Equation) -> None:
    """Matrix product in tiles, or column by column, adding multiples. (`loops.py` has the products that go row by row.)"""
    if in_tiles(e, w.entries.made_by, w.entries.places):
        _row_products(w, e)
    else:
        _sum_of_multiples(w, e, e.args[0].type.shape[:-1], e.args[1].type.shape[1:])


def _row_products(w: Writer, e: Equation) -> None:
    """Inner products of the rows of a matrix with those of another, which is transposed in the equation."""
    (a, b), (m, n) = e.args, e.outs[0].type.shape
    assert isinstance(b, Var)
    other, inner = w.entries.made_by[b.name].args[0], a.type.shape[-1]
    rows, columns, target, panel = w.memory(a), w.memory(other), w.place(e.outs[0]), w.scratch(LEAST_TILED * inner)
    symmetric = "true" if is_gram(e, w.entries.made_by) else "false"
    w.line(f"@row_products({rows}, {columns}, {target}, {panel}, {m}, {n}, {inner}, {symmetric});")


def _sum_of_multiples(w: Writer, e: Equation, rows: tuple[int, ...], columns: tuple[int, ...]) -> None:
    """Product out_ik = sum_j a_ij b_jk, with k (or i, where there is no k) in the innermost loop."""
    (a, b), out = e.args, e.outs[0]
    target = w.place(out)
    if rows and columns and columns[-1] <= SHORT_ROW and not is_vector(out.type):
        _row_by_row(w, e, target, rows, columns)
        return
    with w.loops(out.type.shape) as index:
        w.line(f"{entry_of(target, index, out.type)} = 0;")
    outer = rows if columns else ()
    factor = w.fresh("factor")
    with w.loops(outer) as row, w.loops(a.type.shape[-1:]) as inner:
        fixed = w.entry(a, [*row, *inner]) if columns else w.entry(b, inner)
        w.line(f"const double {factor} = {fixed.code};")
        with w.loops(columns or rows) as last:
            moving = w.entry(b, [*inner, *last]) if columns else w.entry(a, [*last, *inner])
            place = [*row, *last] if columns else last
            w.line(f"{entry_of(target, place, out.type)} += {factor} * {moving.at(Level.UNARY)};")


def _row_by_row(w: Writer, e: Equation, target: str, rows: tuple[int, ...], columns: tuple[int, ...]) -> None:
    """Product with each row of the result in an array of its own, which stays in registers."""
    a, b = e.args
    factor, total = w.fresh("factor"), w.fresh("row")
    with w.loops(rows) as row:
        w.line(f"double {total}[{columns[-1]}] = {{0}};")
        with w.loops(a.type.shape[-1:]) as inner:
            w.line(f"const double {factor} = {w.entry(a, [*row, *inner]).code};")
            with w.loops(columns) as last:
                w.line(f"{total}[{last[-1]}] += {factor} * {w.entry(b, [*inner, *last]).at(Level.UNARY)};")
        with w.loops(columns) as last:
            w.line(f"{entry_of(target, [*row, *last], e.outs[0].type)} = {total}[{last[-1]}];")


def _concat(w: Writer, e: Equation) -> None:
    axis, out, done = e.attr("axis"), e.outs[0], 0
    target = w.place(out)
    for x in e.args:
        with w.loops(x.type.shape) as index:
            moved = [f"{i} + {done}" if k == axis and done else i for k, i in enumerate(index)]
            moved = [str(done) if k == axis and i == f"0 + {done}" else i for k, i in enumerate(moved)]
            w.line(f"{entry_of(target, moved, out.type)} = {w.entry(x, index).code};")
        done += x.type.shape[axis]


def _stack(w: Writer, e: Equation) -> None:
    out = e.outs[0]
    target = w.place(out)
    for k, x in enumerate(e.args):
        with w.loops(x.type.shape) as index:
            w.line(f"{entry_of(target, [str(k), *index], out.type)} = {w.entry(x, index).code};")


def _put(w: Writer, e: Equation) -> None:
    x, value, *indices = e.args
    target = w.place(e.outs[0])
    if w.entries.pointer(x) != target:
        w.fill(target, x)
    _scattered(w, target, e.outs[0].type, value, indices, "=")


def _scatter_add(w: Writer, e: Equation) -> None:
    value, *indices = e.args
    out = e.outs[0]
    target = w.place(out)
    with w.loops(out.type.shape) as index:
        w.line(f"{entry_of(target, index, out.type)} = {zero(out.type)};")
    _scattered(w, target, out.type, value, indices, "+=")


def _scattered(w: Writer, target: str, made: Type, value: Operand, indices: Sequence[Operand], sign: str) -> None:
    """Statement `target[i, j, ...] = value`, over the common shape of the indices and the remaining axes."""
    common = broadcast_shapes(*(i.type.shape for i in indices))
    with w.loops((*common, *made.shape[len(indices) :])) as index:
        places = [w.entry(i, stretched(index[: len(common)], i.type.shape)).at(Level.SUM) for i in indices]
        entry = w.entry(value, stretched(index, value.type.shape)).code
        w.line(f"{entry_of(target, [*places, *index[len(common) :]], made)} {sign} {entry};")


def _entries(w: Writer, e: Equation) -> None:
    """No statement: the entries are read in place."""
    array = w.memory(e.args[0])
    w.entries.places |= {out.name: f"{array}[{k}]" for k, out in enumerate(e.outs)}


def _sort(w: Writer, e: Equation) -> None:
    (x,), out = e.args, e.outs[0]
    target = w.place(out)
    w.fill(target, x)
    name = "@sort" if x.type.dtype is DType.FLOAT else "@sort_int"
    w.line(f"{name}({target}, {x.type.shape[0]});")


def _argsort(w: Writer, e: Equation) -> None:
    (x,) = e.args
    if x.type.dtype is DType.FLOAT:
        keys = w.memory(x)
    else:
        keys = w.array(w.fresh("keys"), Type(DType.FLOAT, x.type.shape))
        with w.loops(x.type.shape) as index:
            w.line(f"{entry_of(keys, index, x.type)} = (double){w.entry(x, index).at(Level.UNARY)};")
    space = w.array(w.fresh("space"), e.outs[0].type)
    w.line(f"@argsort({keys}, {w.place(e.outs[0])}, {space}, {x.type.shape[0]});")


def _weighted_quantile(w: Writer, e: Equation) -> None:
    keys, weights, amount = e.args
    n, out = keys.type.shape[0], e.outs[0]
    places = w.memory(keys), w.memory(weights)
    space = w.array(w.fresh("space"), Type(DType.FLOAT, (2 * n,)))
    w.line(f"const double {out.name} = @weighted_quantile({', '.join(places)}, {w.number(amount)}, {space}, {n});")
    w.entries.places[out.name] = out.name


def sum_of_logs(w: Writer, e: Equation) -> None:
    """Sum of logarithms that has no loop with others (`loop_groups.sums_logarithms`)."""
    (logs,), out = e.args, e.outs[0]
    assert isinstance(logs, Var)
    x = w.entries.made_by[logs.name].args[0]
    least = w.least(x)
    helper = "@sum_of_logs_above" if least is not None and least >= 1 / 8 else "@sum_of_logs"
    w.line(f"const double {out.name} = {helper}({w.memory(x)}, {math.prod(x.type.shape)});")
    w.entries.places[out.name] = out.name


def _solve(w: Writer, e: Equation) -> None:
    a, b = e.args
    target = w.place(e.outs[0])
    used = w.copy("matrix", a)
    w.fill(target, b)
    columns = b.type.shape[1] if len(b.type.shape) == 2 else 1
    w.line(f"@solve({used}, {target}, {a.type.shape[0]}, {columns});")


def _svd(w: Writer, e: Equation) -> None:
    (x,) = e.args
    m, n = x.type.shape
    space = w.scratch((m + n + 100) * min(m, n) + 2 * max(m, n))
    u, s, vt = (w.place(v) for v in e.outs)
    w.line(f"@svd({w.memory(x)}, {u}, {s}, {vt}, {space}, {m}, {n});")


def _eigh(w: Writer, e: Equation) -> None:
    (x,) = e.args
    values, vectors = (w.place(v) for v in e.outs)
    n = x.type.shape[0]
    w.line(f"@eigh({w.copy('matrix', x)}, {values}, {vectors}, {w.scratch(100 * n)}, {n});")


STATEMENTS: dict[str, Statement] = {
    "argmax": _place_of(">"),
    "argmin": _place_of("<"),
    "cumsum": _cumsum,
    "matmul": _matmul,
    "concat": _concat,
    "stack": _stack,
    "entries": _entries,
    "put": _put,
    "scatter_add": _scatter_add,
    "sort": _sort,
    "argsort": _argsort,
    "weighted_quantile": _weighted_quantile,
    "solve": _solve,
    "svd": _svd,
    "eigh": _eigh,
}
