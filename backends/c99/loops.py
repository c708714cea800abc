"""Operations that share a loop: statements before the loop, and statements of each turn."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from oco.backends.c99.entries import flat_index
from oco.backends.c99.expressions import Level, Text
from oco.backends.c99.statements import entry_of
from oco.backends.c99.vectors import c_type, is_vector, reduction, without_lanes
from oco.backends.c99.writer import Writer
from oco.compiler.ir.loop_groups import IN_PARTS, LONG, accumulates
from oco.compiler.ir.ops import POINTWISE
from oco.compiler.ir.program import DType, Equation, Operand, Var
from oco.compiler.ir.sums_in_parts import PARTS, parts_of
from oco.dsl.records import dataclass

Index = Sequence[str]
Shape = Sequence[int]
PARTS_OF_LONG = 32
"""Running values among which a long sum takes turns."""
FETCHED_AHEAD = 512
"""Entries from which a round's data lie on several pages, at whose ends processors stop to fetch ahead on their own."""
FEW = 8
"""Entries from which a look for NaN in vectors takes less than one beside each comparison."""
TAKES_LONG = frozenset({"exp", "log", "log1p", "expm1", "pow"})
"""Operations by which a loop takes as long as memory takes to bring the rows of the next round."""
Part = tuple[str, Equation]
"""Equation in a loop of sums, with the name of its running value; "" for one that makes an entry."""


@dataclass(frozen=True)
class Reduction:
    """Reduction whose `step` joins the running value {0} and an entry {1}; the running value begins at `start`.
    `of_int`: both for integers.
    """

    start: str
    step: str
    of_int: tuple[str, str] | None = None

    def on(self, kind: DType) -> tuple[str, str]:
        """Start and step for this kind of number."""
        return self.of_int if self.of_int is not None and kind is DType.INT else (self.start, self.step)


REDUCTIONS: dict[str, Reduction] = {
    "sum": Reduction("0", "{0} += {1};"),
    "prod": Reduction("1", "{0} *= {1};"),
    "max": Reduction("-INFINITY", "{0} = @max({0}, {1});", ("INT64_MIN", "{0} = @max_int({0}, {1});")),
    "min": Reduction("INFINITY", "{0} = @min({0}, {1});", ("INT64_MAX", "{0} = @min_int({0}, {1});")),
    "any": Reduction("false", "{0} |= {1};"),
    "all": Reduction("true", "{0} &= {1};"),
}
BESIDE_LOOKS = {"max": "{0} = @at_least({0}, {1});", "min": "{0} = @at_most({0}, {1});"}
"""Steps of reductions that pass over NaN."""


def _running(e: Equation) -> tuple[str, str]:
    """Start of a reduction's running value, and the step that joins an entry to it."""
    x, out = e.args[0], e.outs[0]
    if is_vector(x.type):
        return reduction(e.op, x.type, over_lanes=not is_vector(out.type))
    return REDUCTIONS["sum" if e.op == "matmul" else e.op].on(x.type.dtype)


def rows_ahead(inputs: Iterable[Var]) -> dict[str, int]:
    """Entries of the inputs that are long rows of numbers, by name, where these are many in a round."""
    sizes = {p.name: math.prod(p.type.shape) for p in inputs if c_type(p.type) == "double"}
    long = {name: size for name, size in sizes.items() if size >= LONG}
    return long if sum(long.values()) >= FETCHED_AHEAD else {}


def together(w: Writer, shape: Shape, equations: Sequence[Equation]) -> None:
    """Equations that share a loop."""
    if all(accumulates(e) and not e.outs[0].type.shape for e in equations):
        equations = [e for e in equations if not _extreme(w, shape, e)]
    if not equations:
        return
    if any(accumulates(e) and parts_of(e) > 1 for e in equations):
        _with_short_sums(w, shape, equations)
        return
    for e in equations:
        _begin(w, e)
    sums = [e for e in equations if accumulates(e) and not e.outs[0].type.shape]
    if len(sums) == len(equations) or (sums and _in_long_parts(shape, sums) and all(map(_is_entry, equations))):
        _accumulate(w, shape, [(e.outs[0].name if e in sums else "", e) for e in equations])
        return
    with w.loops(shape) as index:
        for e in equations:
            _turn(w, e, index)


def _extreme(w: Writer, shape: Shape, e: Equation) -> bool:
    """True after writing the largest or least entry of a short array in memory, one comparison after the other; NaN is looked for apart."""
    (out,), several = e.outs, e.op in ("max", "min") and c_type(e.args[0].type) == "double" and shape[-1] >= FEW
    if not several or out.type.shape or _in_long_parts(shape, [e]) or (place := w.entries.pointer(e.args[0])) is None:
        return False
    w.line(f"const double {out.name} = @{'largest' if e.op == 'max' else 'least'}({place}, {math.prod(shape)});")
    w.entries.places[out.name] = out.name
    return True


def _begin(w: Writer, e: Equation) -> None:
    """Statements before the loop: running values, and the array of a result (unless it is a number in the loop)."""
    (out,) = e.outs
    if not accumulates(e):
        if out.name not in w.entries.numbers:
            w.place(out)
        return
    start = _running(e)[0]
    if not out.type.shape:
        w.line(f"{c_type(out.type)} {out.name} = {start};")
        w.entries.places[out.name] = out.name
        return
    target = w.place(out)
    with w.loops(out.type.shape) as kept:
        w.line(f"{entry_of(target, kept, out.type)} = {start};")


def _with_short_sums(w: Writer, shape: Shape, equations: Sequence[Equation]) -> None:
    """Equations that share a loop, of which some add up the rows in parts (`sum_in_parts`)."""
    axes = without_lanes(shape)
    lanes = ["0"] * (len(shape) - len(axes))
    short = [e for e in equations if accumulates(e) and parts_of(e) > 1]
    for e in equations:
        if e not in short:
            _begin(w, e)
        elif e.outs[0].type.shape:
            w.place(e.outs[0])
    with w.loops(axes[:-1]) as rows:
        parts = [_begin_parts(w, e) for e in short]

        def turn(entry: str, part: str) -> None:
            index = [*rows, entry, *lanes]
            for e in equations:
                if e in short:
                    w.line(_joined(w, e, f"{parts[short.index(e)]}[{part}]", index))
                else:
                    _turn(w, e, index)

        _in_turns(w, axes[-1], PARTS, turn)
        for e, name in zip(short, parts):
            if e.outs[0].type.shape:
                _put(w, e.outs[0], [*rows, *lanes], _sum_of(name))
            else:
                w.scalar(e.outs[0], _sum_of(name))


def _begin_parts(w: Writer, e: Equation) -> str:
    """Name of an array of the parts of a sum, which begin at zero."""
    name, made = w.fresh("parts"), e.args[0].type
    w.line(f"{c_type(made)} {name}[{PARTS}] = {'{{0}}' if is_vector(made) else '{0}'};")
    return name


def _sum_of(parts: str) -> Text:
    """Sum of parts, halves with halves: none waits for all before it."""
    terms = [f"{parts}[{k}]" for k in range(PARTS)]
    while len(terms) > 2:
        half = len(terms) // 2
        terms = [f"({a} + {b})" for a, b in zip(terms[:half], terms[half:])]
    return Text(" + ".join(terms), Level.SUM)


def _turn(w: Writer, e: Equation, index: Index) -> None:
    """Statements of one turn."""
    (out,) = e.outs
    if e.op in POINTWISE:
        _put(w, out, index, w.entries.computed(out, index))
    elif accumulates(e):
        kept = [i for k, i in enumerate(index) if k != dict(e.attrs).get("axis")]
        w.line(_joined(w, e, entry_of(w.place(out), kept, out.type) if out.type.shape else out.name, index))
    elif parts_of(e) > 1:
        parts, length = _begin_parts(w, e), e.args[0].type.shape[-1]
        _in_turns(w, length, PARTS, lambda k, part: w.line(_joined(w, e, f"{parts}[{part}]", [*index, k])))
        _put(w, out, index, _sum_of(parts))
    elif e.op != "matmul" or not _dot(w, e, index):
        total = out.name if out.name in w.entries.numbers else w.fresh("total")
        w.line(f"{c_type(out.type)} {total} = {_running(e)[0]};")
        _accumulate(w, e.args[0].type.shape[-1:], [(total, e)], index)
        if total == out.name:
            w.entries.places[out.name] = total
        else:
            _put(w, out, index, Text(total))


def _put(w: Writer, out: Var, index: Index, text: Text) -> None:
    """Entry of a result, in its place or as a number."""
    if out.name in w.entries.numbers:
        w.line(f"const {c_type(out.type)} {out.name} = {text.code};")
        w.entries.places[out.name] = out.name
    else:
        w.line(f"{entry_of(w.place(out), index, out.type)} = {text.code};")


def _is_entry(e: Equation) -> bool:
    """True if an equation makes an entry, or joins one to a running value that is a number."""
    return e.op in POINTWISE or (accumulates(e) and not e.outs[0].type.shape)


def _in_long_parts(shape: Shape, sums: Sequence[Equation]) -> bool:
    """True where running values take turns along a long last axis."""
    return shape[-1] >= LONG and all(e.op in IN_PARTS and c_type(e.args[0].type) == "double" for e in sums)


def _accumulate(w: Writer, shape: Shape, totals: Sequence[Part], before: Index = ()) -> None:
    """Loops over `shape`, after the index `before`, in which entries join running values, and are made where nothing else makes them.

    Along a last axis of many entries several running values take turns: none waits for the addition before, and the loop vectorizes.
    """
    if _in_long_parts(shape, [e for total, e in totals if total]):
        _in_parts(w, shape, totals, before)
        return
    with w.loops(shape) as index:
        for total, e in totals:
            _entry_of_sums(w, e, total, [*before, *index])


def _in_parts(w: Writer, shape: Shape, totals: Sequence[Part], before: Index) -> None:
    """Loops in which entry k of the last axis joins the running value k modulo `PARTS_OF_LONG`."""
    parts = [(w.fresh("parts") if total else "", total, e) for total, e in totals]
    sums = [part for part in parts if part[0]]
    looks = _looks_for_nan(w, [e for _, _, e in sums])
    for name, total, _ in sums:
        w.line(f"double {name}[{PARTS_OF_LONG}];")
        with w.loops((PARTS_OF_LONG,)) as part:
            w.line(f"{name}[{part[0]}] = {total};")
    with w.loops(shape[:-1]) as rows:

        def turn(entry: str, part: str) -> None:
            for name, _, e in parts:
                looked = e.op in BESIDE_LOOKS and e.args[0] in looks
                _entry_of_sums(w, e, f"{name}[{part}]" if name else "", [*before, *rows, entry], looked)
            for x, nan in looks.items():
                number = w.entry(x, [*before, *rows, entry]).code
                w.line(f"{nan} |= {number} != {number} ? -1 : 0;")

        _in_turns(w, shape[-1], PARTS_OF_LONG, turn, partial(_ask_ahead, w, [e for _, _, e in parts]))
    for name, total, e in sums:
        nan = looks.get(e.args[0], "") if e.op in BESIDE_LOOKS else ""
        joined = f"@{'sum' if e.op == 'matmul' else e.op}_of_{PARTS_OF_LONG}({name})"
        w.line(f"{total} = {f'{nan} ? NAN : {joined}' if nan else joined};")


def _looks_for_nan(w: Writer, sums: Sequence[Equation]) -> dict[Operand, str]:
    """Declared variables that tell whether an array in memory holds NaN, for those whose largest or least entry is looked for."""
    names: dict[Operand, str] = {}
    for x in (e.args[0] for e in sums if e.op in BESIDE_LOOKS):
        if x not in names and isinstance(x, Var) and x.name in w.entries.places:
            names[x] = w.fresh("nan")
            w.line(f"int64_t {names[x]} = 0;")
    return names


def _in_turns(
    w: Writer,
    length: int,
    count: int,
    turn: Callable[[str, str], None],
    ahead: Callable[[], None] = lambda: None,
) -> None:
    """Loops over the entries of an axis, `count` of them a block. `turn` writes what is done with an entry k and the part k modulo `count`,
    `ahead` what is done before a block.
    """
    whole, block = length // count * count, w.fresh("i", "j", "k", "l", "m")
    with w.braces(f"for (int {block} = 0; {block} < {whole}; {block} += {count})"):
        ahead()
        with w.loops((count,)) as (part,):
            turn(f"{block} + {part}", part)
    w.taken.discard(block)
    if whole < length:
        with w.loops((length - whole,)) as (part,):
            turn(f"{whole} + {part}", part)


def _ask_ahead(w: Writer, equations: Sequence[Equation]) -> None:
    """Statements that ask for more of the next round's rows, in a loop that computes for long or reads no row: memory is idle then.

    Rows of many rounds lie one after the other; where they do not, what is asked for is not used, and nothing faults.
    """
    inside = [i for e in equations for i in _entrywise(w, e)]
    reads_rows = any(isinstance(a, Var) and a.name in w.rows for e in inside for a in e.args)
    if reads_rows and not any(e.op in TAKES_LONG for e in inside):
        return
    for name, size in w.rows.items():
        w.line(f"{w.asked(name)} = @ahead({name}, {size}, {w.asked(name)});")


def _entrywise(w: Writer, e: Equation) -> Iterator[Equation]:
    """An equation of a loop, and those by which its entries are computed there."""
    yield e
    for a in e.args:
        behind = w.entries.made_by.get(a.name) if isinstance(a, Var) and a.name not in w.entries.places else None
        if behind is not None:
            yield from _entrywise(w, behind)


def _entry_of_sums(w: Writer, e: Equation, total: str, index: Index, looked: bool = False) -> None:
    """Statement of one turn of a loop of sums. `looked`: NaN is looked for beside it, so that a comparison need not."""
    if total:
        w.line(_joined(w, e, total, index, BESIDE_LOOKS[e.op] if looked else ""))
    else:
        _put(w, e.outs[0], index, w.entries.computed(e.outs[0], index))


def _joined(w: Writer, e: Equation, total: str, index: Index, step: str = "") -> str:
    """Statement by which the entry at an index joins its running value, by this step if one is given."""
    if e.op != "matmul":
        return (step or _running(e)[1]).format(total, w.entry(e.args[0], index).at(Level.COMPARISON))
    (a, b), rows = e.args, len(e.args[0].type.shape) - 1
    left, right = w.entry(a, [*index[:rows], index[-1]]), w.entry(b, [index[-1], *index[rows:-1]])
    return f"{total} += {left.at(Level.PRODUCT)} * {right.at(Level.UNARY)};"


def _dot(w: Writer, e: Equation, index: Index) -> bool:
    """True after writing a row of a matrix times a vector where both are in memory; False where they are not."""
    (a, b), out = e.args, e.outs[0]
    length, lies = a.type.shape[-1], (w.entries.pointer(a), w.entries.pointer(b))
    if length < LONG or b.type.shape != (length,) or not all(lies):
        return False
    _put(w, out, index, Text(f"@dot({lies[0]} + {flat_index([index[0], '0'], a.type.shape)}, {lies[1]}, {length})"))
    return True
