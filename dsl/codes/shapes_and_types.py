"""Shapes, types and indexing (OCO3xx)."""

from __future__ import annotations

from oco.dsl.codes.base import Code, Stage


def _minimizing(objective: str, *lines: str) -> str:
    """Model with a decision, a matrix and a vector, that minimizes an expression."""
    declared = ("decision x[3] in box(0, 1)", "stream A[2, 3] in [-1, 1]", "stream b[2] in [-1, 1]")
    return "\n".join(("model example", "horizon T = 10", *declared, *lines, f"minimize {objective}")) + "\n"


def _code(title: str, explanation: str, example: str, remedy: str) -> Code:
    return Code(title, explanation, example, remedy, stage=Stage.CHECK)


SHAPES: dict[str, Code] = {
    "OCO301": _code(
        "shapes that do not fit entry by entry",
        "`+ - * / **`, comparisons and functions of each entry take arguments of one shape. As in NumPy, shapes are compared from the last "
        "axis on, and an axis of length 1, or one that is missing, stretches to the other's length.",
        _minimizing("sum(x + b)"),
        "Give both sides one shape. For the matrix product write @; for the transpose write .T.",
    ),
    "OCO302": _code(
        "a product whose inner lengths differ",
        "In `a @ b` the last axis of `a` meets the first axis of `b`: [2, 3] @ [3] gives [2]. Both sides are vectors or matrices.",
        _minimizing("sum(x @ A)"),
        "Exchange the sides or transpose one: `A @ x`, `A.T @ b`. To multiply by a number write *.",
    ),
    "OCO303": _code(
        "the wrong number of arguments",
        "Every function takes a fixed number of arguments; only maximum, minimum (also written max, min), ones and zeros take any number.",
        _minimizing("norm2(x, 0)"),
        "Leave out what is too much, or give what is missing. An axis is given by name: sum(A, axis = 0).",
    ),
    "OCO304": _code(
        "an option that the function does not have",
        "Options are written name = number after the arguments. sum, mean, max, min, norm1, norm2, norm_inf and log_sum_exp have `axis` "
        "and `over`, and sum has `by`.",
        _minimizing("sum(x, weight = 2)"),
        "Leave the option out, or use one that the message names.",
    ),
    "OCO305": _code(
        "an axis that is not there",
        "The axes of an expression of shape [2, 3] are 0 and 1; -1 is the last one.",
        _minimizing("max(sum(A @ x, axis = 1))"),
        "Use an axis of the argument.",
    ),
    "OCO306": _code(
        "a vector or matrix is needed",
        "Some functions are defined for vectors only (outer, dot), for matrices only (nuclear_norm, sigma_max) or for square matrices only "
        "(trace, quad_form).",
        _minimizing("trace(A) + sum(x)"),
        "Give an argument of the shape that the message names.",
    ),
    "OCO307": _code(
        "a length that is not an integer",
        "Lengths, repeats, the ends of `a..b` and of slices are integers fixed before the first round: numbers, params that are whole "
        "numbers, and their sums, differences and products.",
        _minimizing("ones(1.5) @ x"),
        "Use an integer or a param that is one.",
    ),
    "OCO308": _code(
        "a length below 1",
        "Arrays without entries are not allowed, and `a..b` counts upwards.",
        _minimizing("sum(repeat(b, 0)) + sum(x)"),
        "Give a length of at least 1; in `a..b` the second end is at least the first.",
    ),
    "OCO310": _code(
        "more indices than axes",
        "A vector takes one index, a matrix one or two.",
        _minimizing("x[0, 1] + sum(x)"),
        "Leave the indices out that are too many.",
    ),
    "OCO311": _code(
        "an index that is not an integer",
        "Indices are integers, slices, params or streams of integers (declared with `in 0..k-1`), or arrays of them.",
        _minimizing("x[1.5]"),
        "Declare what is used as an index with `in 0..k-1`, or write the number without a decimal point.",
    ),
    "OCO312": _code(
        "an index outside the axis",
        "Indices count from 0, so an axis of 3 entries has the indices 0, 1 and 2. Negative indices do not count from the end.",
        _minimizing("x[3]"),
        "Use an index between 0 and the length less one.",
    ),
    "OCO313": _code(
        "a slice outside the axis",
        "`x[a:b]` takes the entries a, a + 1, ..., b - 1; it needs 0 <= a < b <= the length of the axis.",
        _minimizing("sum(x[1:4])"),
        "Move the ends inside. Either may be left out: x[1:] goes to the end.",
    ),
    "OCO314": _code(
        "index arrays that do not pair",
        "Several index arrays select entry by entry, as in NumPy: X[row, col] takes X[row[0], col[0]], X[row[1], col[1]], ...",
        _minimizing("sum(A[[0, 1], [0, 1, 2]]) + sum(x)"),
        "Give the index arrays one length.",
    ),
    "OCO327": _code(
        "a name that the axis does not have",
        "`x[NYC]` is the entry of that name along an axis whose length is an index, as in `decision x[zone]`. Words that are declared mean "
        'what they were declared as; `x["NYC"]` always means the name.',
        "index zone = [NYC, WEST]\n" + _minimizing('sum(x) * ones(zone)["NYCC"]'),
        "Take one of the index's names, or add it there.",
    ),
    "OCO551": _code(
        "an index that is no axis of the argument",
        "`sum(x, over = zone)` adds up along the axis of x whose length is the index `zone`, as in `decision x[plant, zone]`. The argument "
        "has one such axis; `over` stands alone, without `axis` and `by`.",
        "index zone = [NYC, WEST]\n" + _minimizing("sum(x) + sum(sum(A, over = zone))"),
        "Name the index of one of the axes that the message lists, or give the number of the axis: `axis = 0`.",
    ),
    "OCO552": _code(
        "groups that do not fit the entries",
        "`sum(x, by = at)` adds up the entries of each group: `at` is a param with the group of each entry along one axis of x, `param "
        "at[plant] in zone` or whole numbers from 0 with a stated range.",
        "param at[2] in 0..1 = [0, 1]\n" + _minimizing("max(sum(x, by = at))"),
        "Give `at` an entry for each entry of one axis of the argument.",
    ),
    "OCO315": _code(
        "an array with entries of different shapes",
        "The entries of `[a, b, c]` are all numbers, or all of one shape; the array is not empty.",
        _minimizing("sum([x, b])"),
        "Bring the entries to one shape.",
    ),
}
