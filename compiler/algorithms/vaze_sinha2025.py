"""Vaze & Sinha 2025: projection onto the domain cut by every constraint that was seen, with steps that adapt.

    S_0 = X,  S_t = S_{t-1} and {g_t <= 0},  x_{t+1} = P_{S_t}(x_t - eta_t grad f_t(x_t)),  eta_t = D / sqrt(2 sum_{s<=t} |grad f_s(x_s)|^2)

S_t is kept in numbers that do not grow with the rounds where constraints are fixed, additive, monotone or of a finite family (`memory`).

Regret. u in S_T is in every S_t, so |x_{t+1} - u| <= |x_t - eta_t grad f_t - u|, the inequality of gradient descent. Summed with AdaGrad's
steps (Streeter & McMahan 2010; Duchi, Hazan & Singer 2011) sum f_t(x_t) - f_t(u) <= D^2 / (2 eta_T) + sum eta_t |grad f_t|^2 / 2
<= sqrt(2) D sqrt(sum |grad f_t|^2) <= sqrt(2) D G sqrt(T): neither T nor G is used. With mu-strongly convex losses and eta_t = 1 / (mu t)
it is G^2 (1 + log T) / (2 mu) (Hazan 2016, Theorem 3.3).

Violation, for additive constraints phi(x) <= b_t and every T. For t > 1, phi(x_t) <= min_{s<t} b_s =: beta_{t-1}, so

    [phi(x_t) - b_t]_+ <= [beta_{t-1} - b_t]_+ = beta_{t-1} - beta_t,
    sum_t [phi(x_t) - b_t]_+ <= [phi(x_1) - b_1]_+ + b_1 - min_t b_t <= [phi(x_1) - b_1]_+ + range of b.

`memory.violation_bounds` has this chain for fixed, monotone and finite ones.

Where S_t is empty the step is the decision that breaks the memory least: argmin over X of |x - y|^2 / 2 + Q sum_n [g_n(x)]_+ with g_n the
memory's constraints and Q large. Where S_t is not, that is its projection if the multipliers of the projection are at most Q.

A memory that nothing satisfies begins anew with the round that emptied it. It never does while S_t has a point: the argmin costs no more
than the projection z of y on S_t, so Q sum_n [g_n(x)]_+ <= |z - y|^2 / 2 <= (D + eta |grad f_t|)^2 / 2, and twice that is what empties it.
Between two such rounds the bounds above are those of the rounds in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from oco.compiler.algorithms.base import Algorithm
from oco.compiler.algorithms.classic import (
    BOUNDED_DOMAIN,
    BOUNDED_GRADIENT,
    CONVEX_LOSS,
    GRADIENTS_SEEN,
    STRONGLY_CONVEX,
)
from oco.compiler.algorithms.common import EXACT_STEP, FUNCTIONS_SEEN, ROUNDS, SOME_INEQUALITY, named_constraints
from oco.compiler.algorithms.memory import FEW_VALUES, Memory, kept_of, memory_of, violation_bounds
from oco.compiler.algorithms.wang_yan_liu2025 import INEQUALITIES_ONLY
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array, joined, point
from oco.compiler.lowering.significance import significant
from oco.compiler.proximal.penalty import penalized_step
from oco.compiler.proximal.solvable import ask_for_it
from oco.compiler.theory.schedule import Rounds
from oco.compiler.theory.settings import Default, Setting, number
from oco.compiler.theory.theorems import (
    Bound,
    Condition,
    Floats,
    Free,
    Guarantee,
    Hypothesis,
    Objection,
    Quantity,
    Situation,
    Theorem,
    Violation,
    constant_settings,
    inequalities_convex,
    inequalities_have,
    needed,
    scheduled,
)
from oco.dsl.diagnostics import InternalError
from oco.dsl.expressions import changes
from oco.dsl.magnitudes import HUGE, SMALLEST
from oco.dsl.statements import Measure, Timing

LARGE = 1e6
"""Largest multiplier of the projection, in units of the squared diameter over the size of a constraint."""


class Nested:
    """`worst` holds the running maxima of the memory, of all rounds or, with a window of W rounds, those of each of the last W."""

    def init(self, p: Problem, start: Point) -> State:
        t, kept = p.tracer, sum(_memory(p).sizes)
        begin: State = {"x": start} if _strong(p) else {"x": start, "S": t.lift(0.0)}
        if not kept:
            return begin
        shape = (p.whole("window"), kept) if _windowed(p) else (kept,)
        p.note("nothing is seen yet")
        return joined(begin, {"worst": t.full(-HUGE, shape)})

    def decide(self, p: Problem, state: State) -> Point:
        return point(state, "x")

    def update(self, p: Problem, state: State) -> State:
        t, x, memory = p.tracer, point(state, "x"), _memory(p)
        slope = p.gradient(x).named(t, "slope")
        following: dict[str, Value | Point] = {}
        if _strong(p):
            eta = p.setting("eta")
        else:
            p.note("AdaGrad's step: no bound of the gradients and no number of rounds")
            slope = significant(t, slope)
            S = t.name("S", array(state, "S") + slope.squared_norm())
            eta = t.name("eta", p.setting("D") / t.sqrt(2.0 * t.maximum(S, SMALLEST)))
            following["S"] = S
        worst: Value | None = None
        if memory.observed:
            seen = p.values(memory.observed, x)
            p.note("the worst that was seen of each constraint")
            if _windowed(p):
                W = p.whole("window")
                last = t.put(array(state, "worst"), seen, t.mod(p.counted, W))
                worst = t.name("cut", t.max(last, axis=0))
                following["worst"] = last
            else:
                worst = t.name("worst", t.maximum(array(state, "worst"), seen))
                following["worst"] = worst
        p.note("the projection of x - eta grad f onto the domain cut by the memory")
        own = _remembered(p, memory, worst)
        caps = t.full(1.0, (own.constraint_count,)) * p.setting("Q")
        step = eta * slope
        moved = penalized_step(own, x, step, t.lift(0.5), caps, own.constraints(x))
        if memory.observed and not _windowed(p):
            p.note("a memory that nothing satisfies begins anew with this round")
            broken = t.sum(t.maximum(own.constraints(moved), 0.0))
            reach = p.domain.diameter + t.sqrt(step.squared_norm())
            empty = p.setting("Q") * broken > reach * reach
            following["worst"] = t.where(empty, seen, array(following, "worst"))
        return {**following, "x": moved}


def _memory(p: Problem) -> Memory:
    result = memory_of(p.spec.canonical)
    if result is None:
        raise InternalError("constraints that cannot be kept")
    return result


def _windowed(p: Problem) -> bool:
    return "window" in p.spec.settings


def _strong(p: Problem) -> bool:
    """True if the setting of the strongly convex case is there."""
    return "eta" in p.spec.settings


def _remembered(p: Problem, memory: Memory, worst: Value | None) -> Problem:
    """The problem whose constraints are those of the memory, and its numbers among the data."""
    structure, _ = memory.canonical.structure
    scales = p.spec.scales
    if scales is not None:
        scales = replace(scales, inequalities=scales.inequalities[memory.owner])
    spec = replace(p.spec, canonical=memory.canonical, structure=structure, scales=scales)
    seen, start = dict(p.seen), 0
    for name, expr, size in zip(memory.names, memory.observed, memory.sizes):
        assert worst is not None
        seen[name] = p.tracer.reshape(
            worst[start : start + size], tuple(int(n) for n in expr.shape if isinstance(n, int))
        )
        start += size
    return Problem(p.tracer, spec, seen, p.round)


# Hypotheses.


def _kept(s: Situation) -> Objection | None:
    for c, k in zip(s.canonical.inequalities, kept_of(s.canonical)):
        if k.form is None:
            fix = f"write `{c.origin}` with its data in terms without decisions, or such that more of its data never helps"
            return Objection(f"`{c.origin}` {k.why}", fix, span=c.span)
    for c, k in zip(s.canonical.inequalities, kept_of(s.canonical)):
        if k.slow:
            fix = ask_for_it(f"let its data take at most {FEW_VALUES} values")
            return Objection(
                f"`{c.origin}` {k.why}, with a constraint each in every projection", fix, slow=True, span=c.span
            )
    return None


def _each_round(s: Situation) -> Objection | None:
    for c in s.canonical.inequalities:
        if c.timing is Timing.ON_AVERAGE and changes(c.expr):
            message = f"`{c.origin}` binds on average, and the memory holds every decision to the worst round"
            return Objection(message, f"write `each round` after `{c.origin}`")
    return None


def _comparator(s: Situation) -> Objection | Condition | None:
    """One decision is in S_T. Facts speak of every sequence, so also of one that shows the worst of each entry of the data at once."""
    if s.holds("feasible.common"):
        return None
    if s.is_refuted("feasible.common"):
        message = f"no decision satisfies the constraints of every round: {s.claim('feasible.common')}"
        return Objection(message, "loosen the constraints")
    inner = any(k.inner for k in kept_of(s.canonical))
    where = " at the worst of each entry of their data together" if inner else " in every round"
    return Condition("feasible.common", f"one decision satisfies {named_constraints(s)}{where}")


KEPT = Hypothesis("What was seen of each constraint is kept in a few numbers.", _kept)
EACH_ROUND = Hypothesis("Constraints that data enters bind in each round.", _each_round)
COMPARATOR = Hypothesis("One decision satisfies each round's constraints.", _comparator, ("feasible.common",))
_BASIC = (
    BOUNDED_DOMAIN,
    CONVEX_LOSS,
    BOUNDED_GRADIENT,
    EACH_ROUND,
    inequalities_convex("Each g_t^n is convex in the decision."),
    inequalities_have("bound", "The constraints are bounded.", "the size"),
    COMPARATOR,
)


# Settings and guarantees.


def largest_multiplier(s: Situation) -> dict[str, Default]:
    """Setting Q: the multiplier up to which a penalized step is a projection."""
    sizes = s.inequality_bounds("bound")
    known = np.zeros(0) if sizes is None else sizes[(sizes > 0) & np.isfinite(sizes)]
    least = float(known.min()) if known.size else 1.0
    formula = f"{LARGE!r} * domain.diameter.l2**2 / {least!r}"
    return {"Q": Default(formula, "largest multiplier of the projection")}


def _convex_settings(s: Situation) -> Mapping[str, Default]:
    return {"D": Default("domain.diameter.l2", "diameter of the domain"), **largest_multiplier(s)}


def _strong_settings(s: Situation) -> Mapping[str, Default]:
    return {
        "eta": Default("1 / (loss.strong_convexity.l2 * t)", "1/(mu t), Hazan 2016, Theorem 3.3"),
        **largest_multiplier(s),
    }


def _checks(s: Situation, settings: Mapping[str, Setting]) -> list[str]:
    result: list[str] = constant_settings(s, {n: v for n, v in settings.items() if n in ("D", "Q", "window")})
    if "window" not in settings:
        return result
    return [*result, "a window forgets, and the theorem is about a memory of all rounds"]


def _violation(s: Situation) -> Bound:
    """The sum over all entries, for every T."""
    upper = s.inequality_bounds("upper")
    sizes = s.inequality_bounds("bound")
    most = np.full(s.constraints, np.inf) if sizes is None else sizes if upper is None else np.minimum(upper, sizes)
    total = float(violation_bounds(s.canonical, tuple(most.tolist())).sum())
    memory = memory_of(s.canonical)
    quantities = (Quantity("V", "V", "what the memory's numbers can move by, and the first round", total),)
    note = "" if memory is None else memory.words()
    return Bound("hard violation", "1", "V", quantities, s.violation_range, note=note)


def _convex_guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    """For any D_s in the place of D."""
    diameter = needed(s, "domain.diameter.l2")

    def reach(rounds: Rounds, horizon: int) -> Floats:
        guess = number(settings, "D", horizon)
        return np.asarray((diameter**2 / guess + guess) / 2)

    quantities = (
        Quantity("reach", r"(D^2/D_s + D_s)/2", "D where the setting D_s is the diameter D", reach),
        Quantity("G", "G", "bound of the gradient of the loss", needed(s, "loss.lipschitz.l2")),
        ROUNDS,
    )
    regret = Bound("static regret", "sqrt(T)", "sqrt(2) * reach * G * sqrt(T)", quantities, s.loss_range)
    return Guarantee("Vaze & Sinha 2025, nested projections", s.horizon, regret, _violation(s))


def _strong_guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    """D^2/2 sum_t [1/eta_t - 1/eta_{t-1} - mu]_+ + G^2/2 sum_t eta_t, as of gradient descent."""
    eta, mu = scheduled(settings, "eta"), needed(s, "loss.strong_convexity.l2")
    quantities = (
        Quantity("D", "D", "diameter of the domain", needed(s, "domain.diameter.l2")),
        Quantity("G", "G", "bound of the gradient of the loss", needed(s, "loss.lipschitz.l2")),
        Quantity(
            "growth",
            r"\sum_t [1/\eta_t - 1/\eta_{t-1} - \mu]_+",
            "growth of the inverse steps",
            lambda n, T: eta(n, T).inverse.growth(mu),
        ),
        Quantity("steps", r"\sum_t \eta_t", "sum of the steps", lambda n, T: eta(n, T).sums()),
    )
    regret = Bound("static regret", "log(T)", "D**2/2 * growth + G**2/2 * steps", quantities, s.loss_range)
    return Guarantee("Vaze & Sinha 2025, nested projections", s.horizon, regret, _violation(s))


NESTED = Algorithm(
    name="nested",
    plays="x",
    title="projection onto all constraints seen so far",
    cite="Vaze & Sinha 2025",
    rule=Nested,
    adapts=True,
    requirements=(SOME_INEQUALITY, INEQUALITIES_ONLY, FUNCTIONS_SEEN, GRADIENTS_SEEN, KEPT, EXACT_STEP),
    theorems=(
        Theorem(
            name="strongly convex losses",
            accepts=("window",),
            measures=frozenset({Measure.STATIC}),
            violation=Violation.HARD,
            hypotheses=(*_BASIC, STRONGLY_CONVEX),
            settings=_strong_settings,
            free=(Free("eta", 0.001, 1000),),
            positive=("eta", "Q"),
            guarantee=_strong_guarantee,
            rates={"static regret": "log(T)", "hard violation": "1"},
            checks=_checks,
        ),
        Theorem(
            name="convex losses",
            accepts=("window",),
            measures=frozenset({Measure.STATIC}),
            violation=Violation.HARD,
            hypotheses=_BASIC,
            settings=_convex_settings,
            free=(Free("D", 0.001, 1000),),
            positive=("D", "Q"),
            guarantee=_convex_guarantee,
            rates={"static regret": "sqrt(T)", "hard violation": "1"},
            checks=_checks,
        ),
    ),
    cost="one projection onto the domain under the memory's constraints",
    cost_rank=2,
    symbols={
        "x": "the decision of this round",
        "S": "sum of the squared gradients",
        "worst": "running maxima of the data of each constraint",
    },
)
