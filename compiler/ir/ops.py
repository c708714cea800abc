"""The table of operations: one row says an operation's name, arguments, type rule, meaning and use.

A backend has one template for each row (a test names the missing ones). The four rows of control flow have blocks instead of a
meaning; `interpret.py` says what they do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from oco.compiler.ir import type_rules as rules
from oco.compiler.ir.program import DType, Equation
from oco.compiler.ir.type_rules import ANY, BOOL, FLOAT, INT, NUMBER, Rule
from oco.dsl.primitives import PRIMITIVES


@dataclass(frozen=True)
class Op:
    """One operation.

    arity     least and greatest number of arguments; greatest None: any
    infer     (types of the arguments, attributes) -> types of the results; raises InternalError when a rule is broken
    attrs     the attributes it needs, each a fixed value
    elementwise  entry by entry, with broadcasting
    accepts   kinds of entries that the arguments may have; the tracer converts whole numbers where only floats are accepted
    """

    name: str
    arity: tuple[int, int | None]
    infer: Rule
    doc: str
    attrs: tuple[str, ...] = ()
    elementwise: bool = False
    accepts: tuple[DType, ...] = ANY

    @property
    def meaning(self) -> Callable[..., Any]:
        """What it computes, in NumPy."""
        return PRIMITIVES[self.name]


def _entrywise(kinds: tuple[DType, ...], result: DType | None, arity: int, **docs: str) -> Iterator[Op]:
    for name, doc in docs.items():
        rule = rules.elementwise(kinds, result)
        yield Op(name.rstrip("_"), (arity, arity), rule, doc, elementwise=True, accepts=kinds)


def _rows() -> Iterator[Op]:
    yield from _entrywise(NUMBER, None, 1, neg="-x", abs="|x|", sign="-1, 0 or 1")
    yield from _entrywise((FLOAT,), None, 1, sqrt="square root", exp="e^x", log="natural logarithm", log1p="log(1 + x)")
    yield from _entrywise((FLOAT,), None, 1, expm1="e^x - 1", floor="greatest whole number that is not above x")
    yield from _entrywise((BOOL,), None, 1, not_="logical negation")
    yield from _entrywise((FLOAT,), BOOL, 1, isfinite="neither infinite nor NaN")
    yield from _entrywise(ANY, FLOAT, 1, to_float="as float64")
    yield from _entrywise(ANY, INT, 1, to_int="as int64, towards zero")
    yield from _entrywise(NUMBER, None, 2, add="a + b", sub="a - b", mul="a b", mod="a mod b, with the sign of b")
    yield from _entrywise(
        NUMBER, None, 2, maximum="the larger (NaN if either is)", minimum="the smaller (NaN if either is)"
    )
    yield from _entrywise((FLOAT,), None, 2, div="a / b", pow="a to the power b")
    yield from _entrywise(NUMBER, BOOL, 2, lt="a < b", le="a <= b")
    yield from _entrywise(ANY, BOOL, 2, eq="a equals b")
    yield from _entrywise((BOOL,), None, 2, and_="both", or_="either")
    yield Op("where", (3, 3), rules.where, "a where the condition holds, else b", elementwise=True)
    for name, doc in {"sum": "total", "max": "largest entry", "min": "smallest entry", "prod": "product"}.items():
        rule = rules.reduction(NUMBER, of_none=name in ("sum", "prod"))
        yield Op(name, (1, 1), rule, doc + ", of all or along an axis", ("axis",), accepts=NUMBER)
    for name, doc in {"any": "whether one holds", "all": "whether all hold"}.items():
        yield Op(name, (1, 1), rules.reduction((BOOL,)), doc + ", of all or along an axis", ("axis",), accepts=(BOOL,))
    for name, doc in {"argmax": "place of the largest entry", "argmin": "place of the smallest entry"}.items():
        yield Op(name, (1, 1), rules.arg_reduction, doc + ", the first of equals, in row order", accepts=NUMBER)
    yield Op("cumsum", (1, 1), rules.vector(NUMBER), "running totals of a vector", accepts=NUMBER)
    yield Op("matmul", (2, 2), rules.matmul, "product of matrices and vectors", accepts=(FLOAT,))
    yield Op("outer", (2, 2), rules.outer, "every product of an entry of a and an entry of b", accepts=(FLOAT,))
    yield Op("transpose", (1, 1), rules.transpose, "axes in reverse order")
    yield Op("reshape", (1, 1), rules.reshape, "the same entries in row order in another shape", ("shape",))
    yield Op("broadcast", (1, 1), rules.broadcast, "stretched to a shape", ("shape",))
    yield Op("concat", (1, None), rules.concat, "one after another along an axis", ("axis",))
    yield Op("stack", (1, None), rules.stack, "one above another along a new first axis")
    yield Op("slice", (1, 1), rules.slice_, "a block of entries, `starts` up to `stops`", ("starts", "stops"))
    yield Op("gather", (2, None), rules.gather, "x[i, j, ...]; an index outside the array has no meaning")
    yield Op("entries", (1, 1), rules.entries, "each entry as a number, in row order")
    yield Op(
        "scatter_add",
        (2, None),
        rules.scatter_add,
        "zeros of `shape` with values added at [i, j, ...]",
        ("shape",),
        accepts=ANY,
    )
    yield Op("put", (3, None), rules.put, "x with x[i, j, ...] replaced")
    yield Op("full", (1, 1), rules.full, "an array of one number", ("shape",))
    yield Op("iota", (0, 0), rules.iota, "0, 1, ..., n - 1", ("n",))
    yield Op("eye", (0, 0), rules.eye, "identity matrix", ("n",))
    yield Op("diag", (1, 1), rules.diag, "diagonal of a matrix, or the matrix with that diagonal")
    yield Op("sort", (1, 1), rules.vector(NUMBER), "a vector in increasing order", accepts=NUMBER)
    yield Op(
        "argsort", (1, 1), rules.vector(NUMBER, INT), "places in increasing order; equals keep theirs", accepts=NUMBER
    )
    doc = "the least key up to which the weights, none negative, add up to an amount; infinite where they never do"
    yield Op("weighted_quantile", (3, 3), rules.weighted_quantile, doc, accepts=(FLOAT,))
    yield Op("solve", (2, 2), rules.solve, "x with a x = b", accepts=(FLOAT,))
    yield Op("svd", (1, 1), rules.svd, "u, s, vt with x = u diag(s) vt, s decreasing", accepts=(FLOAT,))
    yield Op("eigh", (1, 1), rules.eigh, "w, v with x = v diag(w) v.T of a symmetric x, w increasing", accepts=(FLOAT,))


OPS: dict[str, Op] = {row.name: row for row in _rows()}

CONTROL: dict[str, str] = {
    "for": "for i in 0..n-1: values = body(i, values); args (n, *values), blocks (body,)",
    "while": "while condition(values): values = body(values); args values, blocks (condition, body)",
    "if": "then() or orelse(); args (condition,), blocks (then, orelse)",
    "call": "the function named by the attribute `function`, applied to args",
}


def describe(equation: Equation) -> str:
    """`x = add(a, b)`, for messages about broken programs."""
    outs = ", ".join(v.name for v in equation.outs)
    args = ", ".join(str(getattr(a, "name", getattr(a, "value", a))) for a in equation.args)
    return f"{outs} = {equation.op}({args})"
