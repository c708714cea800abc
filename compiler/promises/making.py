"""Promises of plans: the ranges, gradients and constraints of a model as recorded computations, and the numbers that follow from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import factorial, isqrt, prod
from typing import Any

import numpy as np

from oco.compiler.certificates.rational import Fractions, NotRational, exact_value, fractions
from oco.compiler.ir.symbolic import HALF, ONE, Symbol
from oco.compiler.ir.symbolic_form import decimal_value, exact, power, product, substituted
from oco.compiler.problem.calculus import gradient
from oco.compiler.problem.canonical import Canonical
from oco.compiler.promises.promise import FAMILY, INEQUALITIES, LeanPromise
from oco.compiler.promises.steps import (
    ArithmeticRule,
    Bounds,
    ProgramStep,
    RecordedNumber,
    Recording,
    needed_steps,
    step_bounds,
)
from oco.compiler.selection.plan import Plan
from oco.dsl import algebra
from oco.dsl.contained import self_contained
from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.expressions import Kind, names
from oco.dsl.statements import Feedback, Measure
from oco.dsl.text.printer import print_model

DIGITS = 10
"""Decimal digits to which roots and bounds are rounded, upwards."""
TERMS = 40
"""Terms of the exponential series that the entropy is compared with."""
ROUNDING = 1e-9
"""Relative difference of a step from one over the strong convexity that is rounding."""
Numbers = tuple[Fraction, ...]


def promise_of_plan(plan: Plan) -> LeanPromise:
    """Promise of a plan, with the steps that its learners take. Raises OCO870 where the plan is outside of the family."""
    problem = plan.canonical.unscaled or plan.canonical
    refuse_outside(problem, plan.algorithm)
    return promise_of(problem, *_step_of(plan), _point_of(plan, problem))


def outside(why: str, hint: str = "") -> OcoError:
    """OCO870 with the reason."""
    return fail("OCO870", f"no promise of this plan is written in Lean: {why}", hint=hint)


def refuse_outside(problem: Canonical, algorithm: str) -> None:
    """Raise OCO870 where a problem or an algorithm is none of the family."""
    if algorithm not in FAMILY:
        hint = f"compile with one of {', '.join(FAMILY)} where it applies: `using ogd`, or `--algorithm nested`"
        raise outside(f"the theorem of `{algorithm}` is not among those that are: {', '.join(FAMILY)}", hint)
    if problem.horizon is None:
        raise outside("the number of rounds is unknown", "write `horizon T = 1000`")
    if problem.measure is not Measure.STATIC or problem.delay or problem.feedback is not Feedback.FULL:
        raise outside("it is of static regret under full feedback that comes in each round")
    if problem.known or problem.previous or problem.moving is not None or problem.equalities:
        raise outside(
            "constraints that are known before the round, `prev`, and equalities on average are not part of it"
        )
    exponential = algorithm == "oeg"
    for block in problem.blocks:
        if not (block.domain.is_simplex if exponential else block.domain.is_box):
            need = "decisions in `simplex`" if exponential else "decisions in boxes"
            raise outside(f"it is for {need}, and `{block.name}` lies in {block.domain}")


def promise_of(problem: Canonical, theorem: str, step: Fraction, point: Numbers) -> LeanPromise:
    """Promise of a theorem of `FAMILY` with steps of this size.

    step   eta_t = step / sqrt(t) of `ogd`, step / t where losses are strongly convex, eta of `oeg`, the setting D of `nested`,
           in the model's units
    point  decision that satisfies the constraints whatever the data, shape (d,); () where there are none

    Raises OCO870.
    """
    refuse_outside(problem, next((name for name, own in FAMILY.items() if theorem in own), theorem))
    recording = Recording(_decision_bounds(problem), _stream_bounds(problem))
    try:
        slopes, constraint_steps = _recorded(problem, recording)
    except NotRational as operation:
        raise outside(
            f"bounds of gradients and constraints are derived in rational arithmetic, which has no `{operation}`"
        ) from None
    except KeyError as name:
        raise outside(f"`{name.args[0]}` is neither a decision nor a stream with a range") from None
    steps, bounds = tuple(recording.steps), tuple(recording.bounds)
    at_point = _at_point(steps, needed_steps(steps, constraint_steps), point, recording.data)
    vectors = {
        "lower": tuple(low for low, _ in recording.decision),
        "upper": tuple(high for _, high in recording.decision),
        "least": tuple(low for low, _ in recording.data),
        "most": tuple(high for _, high in recording.data),
        "slope": tuple(max(-bounds[k][0], bounds[k][1]) for k in slopes),
    }
    if constraint_steps:
        vectors |= _of_constraints(problem, steps, constraint_steps, bounds, dict(at_point), point)
    model = print_model(self_contained(problem.model)).rstrip()
    if "-/" in model or "/-" in model:
        raise outside("its text holds the signs of a comment of Lean")
    assert problem.horizon is not None
    counts = {"d": len(vectors["lower"]), "m": len(vectors["least"]), "T": problem.horizon}
    counts |= {"constraints": len(constraint_steps)} if constraint_steps else {}
    return LeanPromise(
        theorem,
        model,
        tuple(counts.items()),
        tuple(vectors.items()),
        tuple(_numbers(theorem, step, vectors, problem.horizon).items()),
        steps,
        bounds,
        slopes,
        constraint_steps,
        at_point,
        INEQUALITIES[theorem],
    )


def _recorded(problem: Canonical, recording: Recording) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Positions of the steps that give the gradient's entries, and of those that give the constraints."""
    expressions = (problem.objective, *(c.expr for c in problem.inequalities))
    if any(names(e, Kind.ROUND) for e in expressions):
        raise NotRational("t")
    env: dict[str, Any] = {}
    start = 0
    for b in problem.blocks:
        env[b.name] = _entries(recording, ArithmeticRule.DECISION, start, b.shape)
        start += prod(b.shape)
    start = 0
    for s in problem.streams:
        env[s.name] = _entries(recording, ArithmeticRule.STREAM, start, s.shape)
        start += prod(s.shape)
    derivatives = gradient(problem.objective, tuple(b.name for b in problem.blocks))
    parts = [exact_value(algebra.broadcast(derivatives[b.name], b.shape), env, 1).ravel() for b in problem.blocks]
    slopes = tuple(recording.position(v) for part in parts for v in part)
    values = [v for c in problem.inequalities for v in exact_value(c.expr, env, 1).ravel()]
    return slopes, tuple(recording.position(v) for v in values)


def _entries(recording: Recording, rule: ArithmeticRule, start: int, shape: tuple[int, ...]) -> Fractions:
    """RecordedNumber entries of a decision or a stream."""
    result = np.empty(shape, dtype=object)
    for k, place in enumerate(np.ndindex(shape)):
        result[place] = RecordedNumber(recording, recording.place(ProgramStep(rule, (start + k,))))
    return result


def _decision_bounds(problem: Canonical) -> list[Bounds]:
    results: list[Bounds] = []
    for b in problem.blocks:
        if b.domain.is_simplex:
            if float(np.max(b.domain.upper)) != 1.0:
                raise outside("it is for simplexes whose entries sum to 1", "write `in simplex`")
            results += [(Fraction(0), Fraction(1))] * prod(b.shape)
        else:
            results += _pairs(b.domain.lower, b.domain.upper, b.shape)
    if any(b.domain.is_simplex for b in problem.blocks) and len(problem.blocks) > 1:
        raise outside("it is for one decision in a simplex")
    return results


def _stream_bounds(problem: Canonical) -> list[Bounds]:
    results: list[Bounds] = []
    for s in problem.streams:
        if not (np.isfinite(s.lower).all() and np.isfinite(s.upper).all()):
            raise outside(f"the stream `{s.name}` has no range", f"write `stream {s.name} in [lo, hi]`")
        results += _pairs(s.lower, s.upper, s.shape)
    return results


def _pairs(lower: Any, upper: Any, shape: tuple[int, ...]) -> list[Bounds]:
    low, high = (fractions(np.broadcast_to(side, shape)).ravel() for side in (lower, upper))
    return list(zip(low, high, strict=True))


def _at_point(
    steps: Sequence[ProgramStep], used: Sequence[int], point: Numbers, data: Sequence[Bounds]
) -> tuple[tuple[int, Bounds], ...]:
    """Intervals of steps at the point, over all data."""
    decision = [(v, v) for v in point]
    results: dict[int, Bounds] = {}
    of = [(Fraction(0), Fraction(0))] * len(steps)
    for k in used:
        results[k] = of[k] = step_bounds(steps[k], decision, data, of)
    return tuple(results.items())


def _of_constraints(
    problem: Canonical,
    steps: Sequence[ProgramStep],
    constraint_steps: Sequence[int],
    bounds: Sequence[Bounds],
    at_point: Mapping[int, Bounds],
    point: Numbers,
) -> dict[str, Numbers]:
    """Vectors of the constraints: bounds of each, its range at the point, its margin there, and the bound of what it is broken by."""
    labels = [c.label for c in problem.inequalities for _ in range(c.size)]
    for label, k in zip(labels, constraint_steps, strict=True):
        if not is_additive(steps, k):
            raise outside(
                f"`{label}` has data in other than additive terms", "give `each round` constraints the form phi(x) <= b"
            )
        if at_point[k][1] > 0:
            raise outside(f"no decision is known that satisfies `{label}` whatever the data")
    low, high = ([at_point[k][side] for k in constraint_steps] for side in (0, 1))
    top = [bounds[k][1] for k in constraint_steps]
    return {
        "point": tuple(point),
        "high": tuple(top),
        "pointLow": tuple(low),
        "pointHigh": tuple(high),
        "margin": tuple(-b for b in high),
        "V": tuple(max(t, b - a, Fraction(0)) for t, a, b in zip(top, low, high)),
    }


def is_additive(steps: Sequence[ProgramStep], last: int) -> bool:
    """True where a step is a polynomial, and no product in it is of a decision and data."""
    used = needed_steps(steps, (last,))
    kinds: dict[int, frozenset[str]] = {}
    mixed: dict[int, bool] = {}
    for k in used:
        own = steps[k]
        if own.rule in (ArithmeticRule.DECISION, ArithmeticRule.STREAM, ArithmeticRule.NUMBER):
            kinds[k] = frozenset() if own.rule is ArithmeticRule.NUMBER else frozenset({own.rule.value})
            mixed[k] = False
            continue
        kinds[k] = frozenset().union(*(kinds[a] for a in own.args))
        mixed[k] = any(mixed[a] for a in own.args)
        if own.rule is ArithmeticRule.MUL and all(kinds[a] for a in own.args):
            mixed[k] = mixed[k] or len(kinds[k]) > 1
        if own.rule is ArithmeticRule.INV and kinds[k]:
            mixed[k] = True
    return not mixed[last]


def root_above(square: Fraction) -> Fraction:
    """Root of a number, rounded upwards to `DIGITS` digits."""
    if square <= 0:
        return Fraction(0)
    digits, value = DIGITS, square
    while value >= 100:
        value, digits = value / 100, digits - 1
    while value < 1:
        value, digits = value * 100, digits + 1
    unit = Fraction(10) ** digits
    whole = square * unit * unit
    floor = isqrt(whole.numerator // whole.denominator)
    return Fraction(floor if floor * floor == whole else floor + 1) / unit


def above(value: Fraction) -> Fraction:
    """Number that is not negative, rounded upwards to `DIGITS` digits."""
    if value <= 0:
        return Fraction(0)
    digits, scaled = DIGITS, value
    while scaled >= 10:
        scaled, digits = scaled / 10, digits - 1
    while scaled < 1:
        scaled, digits = scaled * 10, digits + 1
    unit = Fraction(10) ** digits
    return -(-value * unit // 1) / unit


def _numbers(theorem: str, step: Fraction, vectors: Mapping[str, Numbers], rounds: int) -> dict[str, Fraction]:
    """Constants of the theorem, each the least of its digits that satisfies its statement."""
    if step <= 0:
        raise outside("its step is not positive")
    slope = vectors["slope"]
    if theorem == "oeg":
        G, L = max(slope), log_above(len(slope))
        if step * G > 1:
            raise outside(
                "its steps are longer than one over the bound of the gradient", "take more rounds, or smaller steps"
            )
        spread = (Fraction(1, 2) + 2 * step * G / 9) * (step * G) ** 2
        return {"c": step, "G": G, "L": L, "R": above((L + rounds * spread) / step)}
    G = root_above(sum((b * b for b in slope), Fraction(0)))
    D = root_above(sum(((b - a) ** 2 for a, b in zip(vectors["lower"], vectors["upper"])), Fraction(0)))
    if theorem.endswith("_strong"):
        L = log_above(rounds)
        return {"c": step, "G": G, "D": D, "L": L, "R": above(step * G * G / 2 * (1 + L))}
    if theorem == "nested":
        r = root_above(Fraction(2 * rounds))
        return {"S": step, "G": G, "D": D, "r": r, "R": above(r * G * ((D * D / step + step) / 2))}
    r = root_above(Fraction(rounds))
    return {"c": step, "G": G, "D": D, "r": r, "R": above(r * (D * D / (2 * step) + step * G * G))}


def log_above(d: int) -> Fraction:
    """Number L, in millionths, whose exponential series reaches d: no less than log d."""
    low, high = 0, 10**6 * max(1, d.bit_length())
    while low < high:
        middle = (low + high) // 2
        L = Fraction(middle, 10**6)
        if sum((L**k / factorial(k) for k in range(TERMS)), Fraction(0)) >= d:
            high = middle
        else:
            low = middle + 1
    return Fraction(low, 10**6)


def _step_of(plan: Plan) -> tuple[str, Fraction]:
    """Theorem of the plan, and the step of its learners in the model's units; see `promise_of`."""
    winner, settings = plan.choice.winner, plan.settings
    scales = None if winner is None else winner.scales
    radius, loss = (1.0, 1.0) if scales is None else (float(scales.radius), float(scales.loss))
    if "window" in settings:
        raise outside("its memory is of a window of rounds")
    if "D" in settings:
        return "nested", Fraction(repr(settings["D"].number(plan.horizon or 1) * radius))
    formula, t = settings["eta"].formula, Symbol("t")
    eta = formula if plan.horizon is None else substituted(formula, {"T": exact(plan.horizon)})
    growths = {"": ONE} if plan.algorithm == "oeg" else {"": power(t, HALF), "_strong": t}
    fronts = {name: value for name, g in growths.items() if not (value := product((eta, g))).symbols}
    name = f"{plan.algorithm}{next(iter(fronts), '?')}"
    if name not in FAMILY[plan.algorithm]:
        hint = "set the step: `using ogd(eta = 0.5 / sqrt(t))`"
        raise outside(f"its steps {settings['eta']} are neither c / sqrt(t) nor c / t", hint)
    unit = radius / loss if plan.algorithm == "oeg" else radius**2 / loss
    step = float(decimal_value(next(iter(fronts.values())))) * unit
    convexity = plan.facts.value("loss.strong_convexity.l2") or 0.0
    if name.endswith("_strong") and step * convexity < 1 - ROUNDING:
        raise outside("its steps c / t are shorter than one over the strong convexity of the losses")
    return name, Fraction(repr(step))


def _point_of(plan: Plan, problem: Canonical) -> Numbers:
    """Slater point that is proved, else the centre of the domain; cut to the box."""
    if not problem.inequalities:
        return ()
    fact = plan.facts.get("slater.point")
    value = None if fact is None or not fact.known else fact.value
    blocks = [np.broadcast_to(b.domain.centre(), b.shape) for b in problem.blocks]
    given = np.concatenate([np.ravel(np.asarray(b, dtype=np.float64)) for b in blocks])
    if value is not None and np.size(value) == given.size and not isinstance(value, Mapping):
        given = np.ravel(np.asarray(value, dtype=np.float64))
    return tuple(
        min(max(v, low), high) for v, (low, high) in zip(fractions(given), _decision_bounds(problem), strict=True)
    )
