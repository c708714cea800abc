"""Verification of promises by exact rational arithmetic, from the text of their files alone.

Two things are verified, in this order: that each statement follows by its rule from those before it (`verify_statements`), and that the
statements are about the model whose text the file holds, with the constants that follow from it (`verify_promise`). The lemmas over real
numbers are not verified here: that is the part of Lean.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from oco.compiler.certificates.rational import NotRational
from oco.compiler.problem.canonical import canonical
from oco.compiler.promises.lean_terms import NotRead, formula_value
from oco.compiler.promises.making import is_additive, promise_of
from oco.compiler.promises.promise import INEQUALITIES, LeanPromise, RationalInequality
from oco.compiler.promises.reading import read_promise, refused
from oco.compiler.promises.steps import Bounds, needed_steps, step_bounds
from oco.dsl.diagnostics import OcoError
from oco.dsl.load import parse

SIZES = {"lower": "d", "upper": "d", "slope": "d", "point": "d", "least": "m", "most": "m"}
"""Count that is the length of each vector; of the others it is that of the constraints."""


def verify_promise(text: str, own: LeanPromise | None = None) -> LeanPromise:
    """Promise of a file, verified. Raises OCO871 where a statement does not follow, or is not what the model's text gives.

    own  promise of the plan that the file is of: where it is given, the step has to be that of its learners
    """
    promise = read_promise(text)
    verify_statements(promise)
    numbers, vectors = dict(promise.numbers), dict(promise.vectors)
    try:
        problem = canonical(parse(promise.model))
        step = numbers["S" if "S" in numbers else "c"]
        given = promise_of(problem, promise.theorem, step, vectors.get("point", ()))
    except OcoError as error:
        raise refused(f"its model is none of the family: {error.message}") from None
    for other, what in ((given, "model"), (own or given, "plan")):
        if other != promise:
            raise refused(f"its {_difference(promise, other)} is not what the {what} gives")
    return promise


def verify_statements(promise: LeanPromise) -> None:
    """Raise OCO871 where a statement does not follow by its rule from those before it."""
    if promise.inequalities != INEQUALITIES.get(promise.theorem):
        raise refused("its statements are not those of the theorem")
    counts, vectors = dict(promise.counts), dict(promise.vectors)
    for name, values in vectors.items():
        if len(values) != counts.get(SIZES.get(name, "constraints")):
            raise refused(f"the vector {name} has another length")
    try:
        why = next(_wrong(promise), "")
    except (NotRational, NotRead, KeyError, IndexError, ValueError) as error:
        why = f"a statement cannot be evaluated ({error})"
    if why:
        raise refused(why)


def _wrong(promise: LeanPromise) -> Iterator[str]:
    """Statements that do not follow."""
    vectors = dict(promise.vectors)
    decision, data = _ranges(promise, "lower", "upper"), _ranges(promise, "least", "most")
    yield from ("a range is empty" for low, high in (*decision, *data) if low > high)
    for k, claimed in enumerate(promise.bounds):
        if not _within(step_bounds(promise.steps[k], decision, data, promise.bounds[:k]), claimed):
            yield f"the interval of step {k} does not follow"
    for k, slope in zip(promise.gradient, vectors["slope"], strict=True):
        if -slope > promise.bounds[k][0] or promise.bounds[k][1] > slope:
            yield f"step {k} may be larger than the slope that is stated of it"
    if promise.constraint_steps:
        yield from _wrong_constraints(promise, data)
    yield from (f"the statement {row.name} is false" for row in promise.inequalities if not _holds(row, promise))


def _wrong_constraints(promise: LeanPromise, data: tuple[Bounds, ...]) -> Iterator[str]:
    vectors, of = dict(promise.vectors), dict(promise.at_point)
    point = tuple((v, v) for v in vectors["point"])
    for v, low, high in zip(vectors["point"], vectors["lower"], vectors["upper"], strict=True):
        if not low <= v <= high:
            yield "the point is outside of the domain"
    if tuple(of) != needed_steps(promise.steps, promise.constraint_steps):
        yield "steps at the point are missing"
    before = [of.get(k, (Fraction(0), Fraction(0))) for k in range(len(promise.steps))]
    for k, claimed in promise.at_point:
        if not _within(step_bounds(promise.steps[k], point, data, before), claimed):
            yield f"the interval of step {k} at the point does not follow"
    for n, k in enumerate(promise.constraint_steps):
        if not is_additive(promise.steps, k):
            yield f"the data of step {k} are not additive"
        if promise.bounds[k][1] != vectors["high"][n] or of[k] != (vectors["pointLow"][n], vectors["pointHigh"][n]):
            yield f"the bounds of constraint {n} are not those of its step"


def _ranges(promise: LeanPromise, lower: str, upper: str) -> tuple[Bounds, ...]:
    vectors = dict(promise.vectors)
    return tuple(zip(vectors[lower], vectors[upper], strict=True))


def _within(ends: Bounds, claimed: Bounds) -> bool:
    return claimed[0] <= ends[0] and ends[1] <= claimed[1]


def _holds(row: RationalInequality, promise: LeanPromise) -> bool:
    """True where an inequality holds, for every entry where it is about entries."""
    numbers = dict(promise.numbers) | {name: Fraction(value) for name, value in promise.counts}
    vectors = dict(promise.vectors)
    name = next((n for n in vectors if row.left in (f"{n} i", f"{n} k") or f"{n} k" in f"{row.left} {row.right}"), "")
    indices = [{"i": k, "k": k} for k in range(len(vectors[name]))] if name else [{}]
    for index in indices:
        left, right = (formula_value(side, numbers, vectors, index) for side in (row.left, row.right))
        if not (left < right if row.relation == "<" else left <= right):
            return False
    return True


def _difference(promise: LeanPromise, own: LeanPromise) -> str:
    """Name of the first part in which two promises differ."""
    for part in ("counts", "vectors", "numbers"):
        pairs = dict(getattr(own, part))
        changed: list[str] = [name for name, value in getattr(promise, part) if pairs.get(name) != value]
        if changed:
            return str(changed[0])
    return "computation"
