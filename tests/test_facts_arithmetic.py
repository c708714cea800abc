"""Ranges in proofs in a second arithmetic: intervals of mpmath at 30 digits, with no allowance for rounding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from facts_models import GENERATED
from mpmath import iv
from thorough import corners

from oco.compiler.problem.canonical import Canonical, DecisionBlock, canonical
from oco.compiler.prover.check import check
from oco.compiler.prover.facts import Facts
from oco.compiler.prover.types import ProofRule, Status, Step
from oco.dsl.atoms import ATOMS
from oco.dsl.expressions import Array, Call, Constant, Expr, Index, Name, Slice, walk
from oco.dsl.load import load, parse
from oco.dsl.primitives import ArrayOps

ROOT = Path(__file__).parent.parent
EXAMPLES = ("tracking", "online_qp", "job_scheduling", "datacenter", "portfolio", "blind_pricing")
DIGITS, PLACES, MOST_NUMBERS = 30, 8, 400
RANGES = (ProofRule.INTERVAL, ProofRule.DECLARED_RANGE, ProofRule.CONSTANT, ProofRule.NORM, ProofRule.SUPPORT)
SUPREMA = (
    ProofRule.VERTICES,
    ProofRule.ENTRY_BY_ENTRY,
    ProofRule.BALL,
    ProofRule.TANGENT,
    ProofRule.BRANCH_AND_BOUND,
    ProofRule.NOT_SEARCHED,
)
Values = np.ndarray[Any, Any]


class NotCovered(Exception):
    """An operation that has no rule here."""


class Number:
    """Interval of mpmath that leaves operations with arrays to NumPy."""

    __slots__ = ("own",)

    def __init__(self, own: Any) -> None:
        self.own = iv.mpf(own)

    @property
    def low(self) -> Any:
        return self.own.a

    @property
    def high(self) -> Any:
        return self.own.b

    def __neg__(self) -> Number:
        return Number(-self.own)

    def __abs__(self) -> Number:
        return Number(abs(self.own))

    def __add__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a + b)

    def __sub__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a - b)

    def __mul__(self, other: Any) -> Any:
        return Number(self.own**2) if other is self else self._with(other, lambda a, b: a * b)

    def __truediv__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: refuse() if b.a <= 0 <= b.b else a / b)

    def __radd__(self, other: Any) -> Any:
        return number(other) + self

    def __rsub__(self, other: Any) -> Any:
        return number(other) - self

    def __rmul__(self, other: Any) -> Any:
        return number(other) * self

    def __rtruediv__(self, other: Any) -> Any:
        return number(other) / self

    def _with(self, other: Any, f: Any) -> Any:
        return NotImplemented if isinstance(other, np.ndarray) else Number(f(self.own, number(other).own))


def number(x: Any) -> Number:
    return x if isinstance(x, Number) else Number(float(x))


def entrywise(f: Any) -> Any:
    count = f.__code__.co_argcount
    run = np.frompyfunc(lambda *args: f(*map(number, args)), count, 1)
    return lambda *args: np.asarray(run(*args), dtype=object)


def reduced(f: Any) -> Any:
    fold = np.frompyfunc(f, 2, 1)

    def over(x: Any, *, axis: int | None = None) -> Any:
        flat = np.asarray(x, dtype=object)
        return fold.reduce(flat.ravel() if axis is None else flat, axis=0 if axis is None else axis)

    return over


def larger(a: Number, b: Number) -> Number:
    return Number([max(a.low, b.low), max(a.high, b.high)])


def smaller(a: Number, b: Number) -> Number:
    return Number([min(a.low, b.low), min(a.high, b.high)])


def logarithm(x: Number) -> Number:
    return Number(iv.log(x.own)) if x.low > 0 else refuse()


def root(x: Number) -> Number:
    return Number(iv.sqrt(x.own)) if x.low >= 0 else refuse()


def refuse(*args: Any, **options: Any) -> Any:
    raise NotCovered


RULES: Mapping[str, Any] = {
    "abs": entrywise(lambda x: abs(x)),
    "sqrt": entrywise(root),
    "exp": entrywise(lambda x: Number(iv.exp(x.own))),
    "log": entrywise(logarithm),
    "log1p": entrywise(lambda x: logarithm(1.0 + x)),
    "expm1": entrywise(lambda x: Number(iv.exp(x.own)) - 1.0),
    "maximum": entrywise(larger),
    "minimum": entrywise(smaller),
    "max": reduced(larger),
    "min": reduced(smaller),
    "to_float": lambda x: x,
}
EXACT = (
    "neg",
    "add",
    "sub",
    "mul",
    "div",
    "sum",
    "matmul",
    "outer",
    "transpose",
    "reshape",
    "broadcast",
    "concat",
    "stack",
    "slice",
)
"""Primitives of NumPy that only add, multiply or move the entries of an array of numbers of another kind."""


class IntervalOps(ArrayOps):
    """Primitives over arrays of mpmath's intervals. Raises NotCovered where there is no rule."""

    def __getattr__(self, name: str) -> Any:
        word = name.rstrip("_")
        return RULES.get(word) or (super().__getattr__(name) if word in EXACT else refuse)


def lifted(low: Any, high: Any) -> Values:
    """Intervals with these ends, in an array of their shape."""
    make = np.frompyfunc(lambda a, b: Number([float(a), float(b)]), 2, 1)
    return np.asarray(make(low, high), dtype=object)


def applied(node: Expr, values: Mapping[int, Any]) -> Values:
    """Value of one node from those of its children."""
    match node:
        case Constant(value=value):
            return lifted(value.array, value.array)
        case Call() if not any(isinstance(a, Slice) for a in node.args):
            return np.asarray(
                ATOMS[node.atom].lower(IntervalOps(), node, *(values[id(a)] for a in node.args)), dtype=object
            )
        case Array(items=items):
            return np.stack([values[id(i)] for i in items])
        case Index(base=base, items=items) if all(isinstance(i, Constant) for i in items):
            return np.asarray(values[id(base)][tuple(i.value.array for i in items)], dtype=object)
    raise NotCovered


def evaluated(expr: Expr, place: Mapping[str, Values]) -> Values:
    """Value at one place."""
    values: dict[int, Any] = {}
    for node in walk(expr):
        values[id(node)] = place[node.name] if isinstance(node, Name) else applied(node, values)
    return values[id(expr)]


def replayed(step: Step) -> Values:
    """Range of an operation over the ranges of the premises."""
    values = {id(p.subject): lifted(*p.value.expanded()) for p in step.premises}
    values |= {id(c): applied(c, {}) for c in step.subject.children if isinstance(c, Constant)}
    try:
        return applied(step.subject, values)
    except KeyError:
        raise NotCovered from None


def exact_points(b: DecisionBlock) -> list[Values]:
    """Vertices whose numbers are those of the set exactly: corners, or points on the axes."""
    if b.domain.is_box:
        low, high = np.broadcast_to(b.domain.lower, b.shape), np.broadcast_to(b.domain.upper, b.shape)
        mixed = np.where(np.arange(low.size).reshape(b.shape) % 2, low, high)
        return [low, high, mixed, low + high - mixed]
    if b.domain.is_ball or b.domain.kind in ("simplex", "l1_ball"):
        signs = (1.0,) if b.domain.kind == "simplex" else (1.0, -1.0)
        return [s * b.domain.radius * np.eye(1, b.domain.size, k).reshape(b.shape) for k in range(2) for s in signs]
    return []


def places(problem: Canonical) -> Iterator[dict[str, Values]]:
    """Decisions and ends of streams in all combinations, thin, up to a number of them."""
    options: dict[str, list[Values]] = {b.name: exact_points(b) for b in problem.blocks}
    for s in problem.streams:
        low, high = (np.full(s.shape, end, dtype=float) for end in (s.lower, s.upper))
        options[s.name] = [e for e in (low, high) if np.isfinite(e).all()]
    options["t"] = [np.asarray(1.0), *([] if problem.horizon is None else [np.asarray(float(problem.horizon))])]
    combined = list(product(*options.values()))
    chosen = np.random.default_rng(0).permutation(len(combined))[:PLACES]
    for k in chosen:
        yield {n: lifted(v, v) for n, v in zip(options, combined[k])}


def steps_of(facts: Facts) -> dict[int, Step]:
    found: dict[int, Step] = {}
    stack = [f.why for f in facts.values() if f.status is Status.PROVED and f.why is not None]
    while stack:
        step = stack.pop()
        if id(step) not in found:
            found[id(step)] = step
            stack.extend(step.premises)
    return found


def outside(step: Step, value: Values) -> bool:
    """True if no number of an interval is within the claim."""
    if step.rule in SUPREMA:
        return bool(value.item().low > step.value)
    low, high = step.value.expanded()
    return any(v.high < float(a) or v.low > float(b) for v, a, b in zip(value.flat, low.flat, high.flat, strict=True))


def within(step: Step, value: Values) -> bool:
    """True if the claim holds all of an interval."""
    low, high = (np.broadcast_to(end, value.shape) for end in step.value.expanded())
    return all(
        v.low >= float(a) and v.high <= float(b) for v, a, b in zip(value.flat, low.flat, high.flat, strict=True)
    )


def audited(facts: Facts) -> tuple[list[str], Counter[str]]:
    """Claims that a value disproves, and how many steps were tried at places and held by the arithmetic."""
    problem, wrong, counts = canonical(facts.model), [], Counter[str]()
    tried = list(places(problem))
    for step in steps_of(facts).values():
        if step.rule not in (*RANGES, *SUPREMA) or not isinstance(step.subject, Expr):
            continue
        if step.rule in RANGES and (not hasattr(step.value, "lo") or step.value.size > MOST_NUMBERS):
            continue
        for place in tried:
            try:
                value = evaluated(step.subject, place)
            except NotCovered:
                break
            counts[f"tried: {step.rule}"] += 1
            if outside(step, value):
                wrong.append(f"{step.claim} [{step.rule}]: {value}")
                break
        if step.rule is ProofRule.INTERVAL:
            counts["intervals"] += 1
            try:
                counts["held"] += within(step, replayed(step))
            except NotCovered:
                counts["not covered"] += 1
    return wrong, counts


@pytest.fixture(autouse=True)
def digits() -> Iterator[None]:
    before, iv.dps = iv.dps, DIGITS
    yield
    iv.dps = before


@pytest.mark.parametrize("name", EXAMPLES)
def test_ranges_of_examples_hold_in_another_arithmetic(name: str) -> None:
    wrong, counts = audited(check(load(ROOT / "examples" / f"{name}.oco")))
    assert not wrong
    assert counts["held"] == counts["intervals"] >= 10


@pytest.mark.parametrize("text", corners(GENERATED, GENERATED[::3]), ids=range(len(GENERATED)))
def test_ranges_of_generated_models_hold_in_another_arithmetic(text: str) -> None:
    """Ranges of quadratic forms are narrower than those of their parts, and are tried at places alone."""
    wrong, counts = audited(check(parse(text)))
    assert not wrong
    assert counts["held"] + counts["not covered"] >= 0.8 * counts["intervals"] > 0


def test_ranges_that_are_narrower_by_some_roundings_do_not_hold() -> None:
    steps = [s for s in steps_of(check(load(ROOT / "examples" / "online_qp.oco"))).values() if s.rule in RANGES]
    moving = [s for s in steps if s.rule is ProofRule.INTERVAL and np.all(s.value.hi > s.value.lo)]
    assert len(moving) >= 5
    for s in moving:
        high = s.value.hi - 16 * np.spacing(np.maximum(np.abs(s.value.lo), np.abs(s.value.hi)))
        assert within(s, replayed(s)) and not within(replace(s, value=replace(s.value, hi=high)), replayed(s))


def test_a_supremum_that_is_passed_by_a_rounding_is_found() -> None:
    text = "model m\nhorizon T = 9\ndecision x in box(0, 3)\nstream s in [0, 1]\nminimize square(x - 1) + s * x\n"
    facts = check(parse(text))
    problem = canonical(facts.model)
    least = max(evaluated(problem.objective, p).item().low for p in places(problem))
    assert least == 7.0
    claim = Step(ProofRule.VERTICES, "", 7.0, (), None, problem.objective)
    values = [evaluated(problem.objective, p) for p in places(problem)]
    assert not any(outside(claim, v) for v in values)
    assert any(outside(replace(claim, value=float(np.nextafter(7.0, 0.0))), v) for v in values)
