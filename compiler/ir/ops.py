"""The table of operations: one row says everything about an operation but how a backend writes it.

The meaning in NumPy stands in `dsl/primitives.py`, since atoms are written over it too; backends whose language has NumPy's functions
write a call of it, others have a template for each row (a test names the missing ones).
The four rows of control flow have blocks instead of a meaning; `interpret.py` says what they do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from oco.compiler.ir import bound_rules as bound
from oco.compiler.ir import lane_rules as lanes
from oco.compiler.ir import mark_rules as marks
from oco.compiler.ir import size_rules as sizes
from oco.compiler.ir import small_entries as entries
from oco.compiler.ir import type_rules as rules
from oco.compiler.ir.bound_rules import BoundRule
from oco.compiler.ir.lane_rules import LaneRule
from oco.compiler.ir.mark_rules import MarkRule
from oco.compiler.ir.program import DType, Equation
from oco.compiler.ir.size_rules import SizeRule
from oco.compiler.ir.small_entries import EntryRule
from oco.compiler.ir.type_rules import ANY, BOOL, FLOAT, INT, NUMBER, Rule
from oco.dsl.primitives import PRIMITIVES
from oco.dsl.records import dataclass


@dataclass(frozen=True)
class Op:
    """One operation.

    arity        least and greatest number of arguments; greatest None: any
    infer        (types of the arguments, attributes) -> types of the results; raises InternalError when a rule is broken
    attrs        the attributes it needs, each a fixed value
    accepts      kinds of entries that promoted arguments may have; the tracer converts integers where only floats are accepted
    elementwise  entry by entry, with broadcasting
    view         costs nothing to look through: entries of the argument in other places
    picks        one entry of the result needs one entry of each argument, without being elementwise or a view
    fold         of a reduction: the operation of two that it repeats
    promoted     the first argument, and the one after the last, of those that are promoted to one dtype; later ones are indices
    expensive    worth computing once and passing on
    cubic        takes the cube of the sides of a matrix
    stays        may cost more than the loop around it, so that it is never moved in front of one
    least        lower bound of the result from those of the arguments; None: none is known
    moves        entries of the result from those of the arguments, of an operation without arithmetic
    marks        how it acts on marks of dependence; None: nonlinear where it is elementwise, moved where it has no arithmetic
    order        attributes that it may have, which say in what order it adds up
    sizes        how sizes of terms pass through it; None: it is no sum of anything
    lanes        how it acts over lanes; None: entrywise where it is elementwise, else one lane after the other
    """

    name: str
    arity: tuple[int, int | None]
    infer: Rule
    doc: str
    attrs: tuple[str, ...] = ()
    accepts: tuple[DType, ...] = ANY
    elementwise: bool = False
    view: bool = False
    picks: bool = False
    fold: str = ""
    promoted: tuple[int, int | None] = (0, None)
    expensive: bool = False
    cubic: bool = False
    stays: bool = False
    least: BoundRule | None = None
    moves: EntryRule | None = None
    order: tuple[str, ...] = ()
    lanes: LaneRule | None = None
    marks: MarkRule | None = None
    sizes: SizeRule | None = None

    @property
    def indices(self) -> int | None:
        """Place of the first argument that is an index; None: none is."""
        return self.promoted[1]

    @property
    def on_marks(self) -> MarkRule | None:
        """Rule for marks of dependence; None: what it depends on is not known."""
        moved = self.moves is not None and self.arity[0] > 0 and not self.picks
        return self.marks or (marks.apply_marks if self.elementwise else self.meaning if moved else None)

    @property
    def meaning(self) -> Callable[..., Any]:
        """Function of NumPy arrays that computes it."""
        return PRIMITIVES[self.name]

    def value(self, args: Iterable[Any], attrs: Mapping[str, Any]) -> Any:
        """Value at NumPy arrays, in whatever order it adds up."""
        return self.meaning(*args, **{name: attrs[name] for name in self.attrs}) if self.attrs else self.meaning(*args)

    @property
    def pointwise(self) -> bool:
        """One entry of the result needs one entry of each argument, or none."""
        return self.elementwise or self.view or self.picks


def _entrywise(kinds: tuple[DType, ...], result: DType | None, arity: int, **docs: str) -> Iterator[Op]:
    for name, doc in docs.items():
        op, rule = name.rstrip("_"), rules.elementwise(kinds, result)
        columns: dict[str, Any] = {"least": _BOUNDS.get(op), "marks": _MARKS.get(op), "sizes": _SIZES.get(op)}
        yield Op(op, (arity, arity), rule, doc, (), kinds, True, expensive=op in _EXPENSIVE, **columns)


_EXPENSIVE = frozenset({"sqrt", "exp", "log", "log1p", "expm1", "pow"})
_BOUNDS: dict[str, BoundRule] = {
    "abs": bound.absolute,
    "sqrt": bound.root,
    "exp": bound.nonnegative,
    "to_float": bound.converted,
    "add": bound.sum_of_two,
    "mul": bound.product,
    "div": bound.quotient,
    "maximum": bound.larger,
    "minimum": bound.smallest,
}
"""Lower bounds of elementwise operations."""
_MARKS: dict[str, MarkRule] = {
    "neg": marks.first_marks,
    "to_float": marks.first_marks,
    "add": marks.add_marks,
    "sub": marks.add_marks,
    "mul": marks.times_marks,
    "div": marks.divide_marks,
}
"""Elementwise operations that are not nonlinear in each argument."""
_SIZES: dict[str, SizeRule] = {
    "neg": sizes.SIGN,
    "abs": sizes.SIGN,
    "add": sizes.SUM,
    "sub": sizes.DIFFERENCE,
    "mul": sizes.EACH,
    "div": sizes.FIRST,
    "maximum": sizes.EACH,
    "minimum": sizes.EACH,
}
"""Elementwise operations whose results are as large as their arguments."""


def _elementwise_rows() -> Iterator[Op]:
    yield from _entrywise(NUMBER, None, 1, neg="-x", abs="|x|", sign="-1, 0 or 1")
    yield from _entrywise((FLOAT,), None, 1, sqrt="square root", exp="e^x", log="natural logarithm", log1p="log(1 + x)")
    yield from _entrywise((FLOAT,), None, 1, expm1="e^x - 1", floor="greatest integer that is not above x")
    yield from _entrywise((BOOL,), None, 1, not_="logical negation")
    yield from _entrywise((FLOAT,), BOOL, 1, isfinite="neither infinite nor NaN")
    yield from _entrywise(ANY, FLOAT, 1, to_float="as float64")
    yield from _entrywise(ANY, INT, 1, to_int="as int64, towards zero")
    yield from _entrywise(NUMBER, None, 2, add="a + b", sub="a - b", mul="a b", mod="a mod b, with the sign of b")
    yield from _entrywise(
        NUMBER,
        None,
        2,
        maximum="the larger (NaN if either is; of zeros either)",
        minimum="the smaller (NaN if either is; of zeros either)",
    )
    yield from _entrywise((FLOAT,), None, 2, div="a / b", pow="a to the power b")
    yield from _entrywise(NUMBER, BOOL, 2, lt="a < b", le="a <= b")
    yield from _entrywise(ANY, BOOL, 2, eq="a equals b")
    yield from _entrywise((BOOL,), None, 2, and_="both", or_="either")
    doc = "a where the condition holds, else b"
    yield Op(
        "where",
        (3, 3),
        rules.where,
        doc,
        elementwise=True,
        promoted=(1, None),
        least=bound.chosen,
        marks=marks.where_marks,
        sizes=sizes.EACH,
    )


def _reduction(name: str, doc: str, kinds: tuple[DType, ...], fold: str, **columns: Any) -> Op:
    rule = rules.reduction(kinds, of_none=fold not in ("maximum", "minimum"))
    over = lanes.reduction_lanes(name)
    doc = f"{doc}, of all or along an axis"
    on_marks = marks.sum_marks if fold == "add" else marks.mixed_marks
    columns |= {"lanes": over, "marks": on_marks}
    return Op(name, (1, 1), rule, doc, ("axis",), kinds, fold=fold, expensive=True, **columns)


def _reductions() -> Iterator[Op]:
    yield _reduction("sum", "total", NUMBER, "add", least=bound.total, order=("parts",), sizes=sizes.SUM)
    yield _reduction("max", "largest entry", NUMBER, "maximum")
    yield _reduction("min", "smallest entry", NUMBER, "minimum")
    yield _reduction("prod", "product", NUMBER, "mul", sizes=sizes.EACH)
    yield _reduction("any", "whether one holds", (BOOL,), "or")
    yield _reduction("all", "whether all hold", (BOOL,), "and")
    for name, doc, further in (
        ("argmax", "place of the largest entry", lambda a, b: a > b),
        ("argmin", "place of the smallest entry", lambda a, b: a < b),
    ):
        over = lanes.place_of_lanes(further)
        yield Op(name, (1, 1), rules.arg_reduction, f"{doc}, the first of equals, in row order", (), NUMBER, lanes=over)
    yield Op(
        "cumsum",
        (1, 1),
        rules.vector(NUMBER),
        "running totals of a vector",
        (),
        NUMBER,
        expensive=True,
        lanes=lanes.cumsum_lanes,
        sizes=sizes.SUM,
    )


def _products_and_shapes() -> Iterator[Op]:
    yield Op(
        "matmul",
        (2, 2),
        rules.matmul,
        "product of matrices and vectors",
        accepts=(FLOAT,),
        expensive=True,
        order=("parts",),
        least=bound.inner_product,
        lanes=lanes.matmul_lanes,
        marks=marks.matmul_marks,
        sizes=sizes.SUM,
    )
    doc = "every product of an entry of a and an entry of b"
    yield Op(
        "outer",
        (2, 2),
        rules.outer,
        doc,
        (),
        (FLOAT,),
        picks=True,
        lanes=lanes.outer_lanes,
        marks=marks.outer_marks,
        sizes=sizes.EACH,
    )
    yield _view("transpose", rules.transpose, "axes in reverse order", entries.transpose_entries, lanes.transpose_lanes)
    doc = "the same entries in row order in another shape"
    yield _view("reshape", rules.reshape, doc, entries.same_entries, lanes.reshape_lanes, "shape")
    doc = "stretched to a shape"
    yield _view("broadcast", rules.broadcast, doc, entries.broadcast_entries, lanes.stretched_lanes, "shape")
    doc = "a block of entries, `starts` up to `stops`"
    yield _view("slice", rules.slice_, doc, entries.slice_entries, lanes.slice_lanes, "starts", "stops")
    yield Op(
        "concat",
        (1, None),
        rules.concat,
        "one after another along an axis",
        ("axis",),
        least=bound.smallest,
        moves=entries.concat_entries,
        lanes=lanes.concat_lanes,
        sizes=sizes.EACH,
    )
    yield Op(
        "stack",
        (1, None),
        rules.stack,
        "one above another along a new first axis",
        least=bound.smallest,
        moves=entries.stack_entries,
        lanes=lanes.stack_lanes,
        sizes=sizes.EACH,
    )


def _view(name: str, rule: Rule, doc: str, moves: EntryRule, over: LaneRule, *attrs: str) -> Op:
    columns: dict[str, Any] = {"least": bound.first, "moves": moves, "lanes": over, "sizes": sizes.FIRST}
    return Op(name, (1, 1), rule, doc, attrs, view=True, **columns)


def _indexing() -> Iterator[Op]:
    yield Op(
        "gather",
        (2, None),
        rules.gather,
        "x[i, j, ...]; an index outside the array has no meaning",
        picks=True,
        promoted=(0, 1),
        least=bound.first,
        moves=entries.gather_entries,
        lanes=lanes.gather_lanes,
        sizes=sizes.FIRST,
    )
    yield Op("entries", (1, 1), rules.entries, "each entry as a number, in row order", least=bound.first)
    doc = "zeros of `shape` with values added at [i, j, ...]"
    columns: dict[str, Any] = {"promoted": (0, 1), "lanes": lanes.scatter_add_lanes, "sizes": sizes.FIRST}
    yield Op("scatter_add", (2, None), rules.scatter_add, doc, ("shape",), (FLOAT,), **columns)
    columns = {"promoted": (0, 2), "lanes": lanes.put_lanes, "sizes": sizes.EACH}
    yield Op("put", (3, None), rules.put, "x with x[i, j, ...] replaced", **columns)


def _constructors() -> Iterator[Op]:
    yield _view("full", rules.full, "an array of one number", entries.full_entries, lanes.stretched_lanes, "shape")
    yield Op("iota", (0, 0), rules.iota, "0, 1, ..., n - 1", ("n",), view=True, moves=entries.iota_entries)
    yield Op("eye", (0, 0), rules.eye, "identity matrix", ("n",), view=True, moves=entries.eye_entries)
    doc = "diagonal of a matrix, or the matrix with that diagonal"
    yield Op(
        "diag",
        (1, 1),
        rules.diag,
        doc,
        picks=True,
        moves=entries.diag_entries,
        lanes=lanes.diag_lanes,
        marks=marks.diag_marks,
        sizes=sizes.FIRST,
    )


def _kernels() -> Iterator[Op]:
    yield Op("sort", (1, 1), rules.vector(NUMBER), "a vector in increasing order", (), NUMBER, stays=True)
    doc = "places in increasing order; equals keep theirs"
    yield Op("argsort", (1, 1), rules.vector(NUMBER, INT), doc, (), NUMBER, stays=True)
    doc = "the least key up to which the weights, none negative, add up to an amount; infinite where they never do"
    yield Op("weighted_quantile", (3, 3), rules.weighted_quantile, doc, (), (FLOAT,), stays=True)
    yield Op("solve", (2, 2), rules.solve, "x with a x = b", (), (FLOAT,), cubic=True, stays=True)
    yield Op(
        "svd", (1, 1), rules.svd, "u, s, vt with x = u diag(s) vt, s decreasing", (), (FLOAT,), cubic=True, stays=True
    )
    doc = "w, v with x = v diag(w) v.T of a symmetric x, w increasing"
    yield Op("eigh", (1, 1), rules.eigh, doc, (), (FLOAT,), cubic=True, stays=True)


def _rows() -> Iterator[Op]:
    yield from _elementwise_rows()
    yield from _reductions()
    yield from _products_and_shapes()
    yield from _indexing()
    yield from _constructors()
    yield from _kernels()


OPS: dict[str, Op] = {row.name: row for row in _rows()}

CONTROL: dict[str, str] = {
    "for": "for i in 0..n-1: values = body(i, values); args (n, *values), blocks (body,)",
    "while": "while condition(values): values = body(values); args values, blocks (condition, body). With the attribute `leaving`, lanes "
    "whose first value is false have left, and keep theirs; the body is meant for the others. `turns` says how many are expected",
    "if": "then() or orelse(); args (condition,), blocks (then, orelse)",
    "map": "body(row, ...) of each row of the args (K, ...), results stacked to (K, ...); blocks (body,)",
    "call": "the function named by the attribute `function`, applied to args",
}

VIEWS = frozenset(name for name, row in OPS.items() if row.view)
POINTWISE = frozenset(name for name, row in OPS.items() if row.pointwise)
REDUCTIONS = frozenset(name for name, row in OPS.items() if row.fold)


def describe(equation: Equation) -> str:
    """`x = add(a, b)`, for messages about broken programs."""
    outs = ", ".join(v.name for v in equation.outs)
    args = ", ".join(str(getattr(a, "name", getattr(a, "value", a))) for a in equation.args)
    return f"{outs} = {equation.op}({args})"
