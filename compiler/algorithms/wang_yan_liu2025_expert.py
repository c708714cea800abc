"""Wang, Yan & Liu 2025, appendix J: COLDQ with expert tracking (Algorithm 2), which needs no V_x."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from oco.compiler.algorithms.base import Algorithm
from oco.compiler.algorithms.classic import path_weight
from oco.compiler.algorithms.wang_yan_liu2025 import (
    BASIC,
    COLDQ,
    VIOLATION,
    common_quantities,
    comparator_remarks,
    expert_quantities,
    quantities,
    queue_update,
)
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point, Rows, repeated
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array, rows
from oco.compiler.proximal.penalty import penalized_step
from oco.compiler.theory.formula_values import evaluated
from oco.compiler.theory.moves import path_length
from oco.compiler.theory.schedule import Rounds, Schedule
from oco.compiler.theory.settings import Default, Setting, count, number
from oco.compiler.theory.theorems import (
    Bound,
    Floats,
    Free,
    Guarantee,
    Quantity,
    Situation,
    Theorem,
    Violation,
    constant_settings,
    needed,
)
from oco.dsl.diagnostics import fail
from oco.dsl.limits import MOST_NUMBERS
from oco.dsl.magnitudes import HUGE, SMALLEST
from oco.dsl.statements import Measure

INT32_MAX = 2**31 - 1  # counters of epochs fit an int of C


class ColdqExpert:
    """M copies of Algorithm 1, each with its own decision in its gradient and queue; the weighted mean is played."""

    def init(self, p: Problem, start: Point) -> State:
        experts = p.whole("M") if p.epoch is None else _most_experts(p)
        m, M = np.arange(1, experts + 1), p.count_of("M")
        prior, why = 1 / (m * (m + 1)), "w_1[m] = (M + 1) / (m (m + 1) M)"
        if isinstance(M, float):
            w = p.tracer.constant((M + 1) / M * prior, "w_1", why)
        else:
            w = playing(M, (M + 1.0) / M * p.tracer.constant(prior, "prior", why))
        queue = p.tracer.full(p.setting("gamma"), (experts, p.constraint_count))
        return {"x": repeated(p.tracer, start, experts), "Q": queue, "w": w}

    def decide(self, p: Problem, state: State) -> Point:
        return rows(state, "x").combine(array(state, "w"))

    def update(self, p: Problem, state: State) -> State:
        t, experts, w = p.tracer, rows(state, "x"), array(state, "w")
        M = p.count_of("M")
        played = experts.combine(w)
        slope = p.gradient(played)

        def one(m: Value, Q: Value, *x: Value) -> tuple[Value, ...]:
            copies = Rows(x)
            mine = copies.row(m)
            alpha = p.setting("alpha", m=t.to_float(m) + 1.0)
            g = p.constraints(mine)
            q = queue_update(p, Q[m], g)
            following = penalized_step(p, mine, p.gradient(mine), alpha, q, g)
            return (t.put(Q, q, m), *copies.replaced(m, following).blocks)

        count = experts.count if isinstance(M, float) else t.to_int(t.minimum(M, float(experts.count)))
        Q, *x = t.for_(count, one, (array(state, "Q"), *experts.blocks))
        p.note("step 6, in log space; erratum 17: the weights are updated at t = 1 too")
        loss = experts.apply(slope) - slope.dot(played)
        z = t.log(t.maximum(w, SMALLEST)) - p.setting("kappa") * loss
        z = z if isinstance(M, float) else playing(M, z, -HUGE)
        weight = t.exp(z - t.max(z))
        return {"x": Rows(tuple(x)), "Q": Q, "w": weight / t.sum(weight)}


def playing(M: Value, w: Value, none: float = 0.0) -> Value:
    """Weights of the experts that there are in this epoch; none of the others (`none`, for weights in log space)."""
    numbers = M.tracer.to_float(M.tracer.iota(n=w.shape[0])) + 1.0
    return M.tracer.where(numbers <= M, w, none)


def _settings(s: Situation) -> Mapping[str, Default]:
    return {
        "M": Default("floor(log(1 + T) / log(2) / 2) + 1", "floor(log2(1 + T)/2) + 1 (Corollary 3)"),
        "kappa": Default("1 / sqrt(T)", "T^(-1/2) (Corollary 3)"),
        "alpha": Default("sqrt(t) / 2**(m - 1)", "sqrt(t) / 2^(m-1) (Corollary 3)"),
        "epsilon": Default("0.5", "0.5, the experiments of section 6"),
        "eta": Default("T**(-3/2)", "T^(-3/2) (Corollary 3)"),
        "gamma": Default("epsilon * T**(3/2)", "epsilon T^(3/2) (Corollary 3)"),
    }


def _settings_hold(s: Situation, settings: Mapping[str, Setting]) -> list[str]:
    T = s.horizon or 1
    steps = (settings["alpha"].along(Rounds.of(T), T, m) for m in range(1, _experts(settings, T) + 1))
    result = constant_settings(s, {n: settings[n] for n in ("M", "kappa", "eta", "gamma")})
    result += [] if all(a.nondecreasing for a in steps) else ["alpha must not decrease"]
    return result + ([] if number(settings, "eta", T) <= 1 else ["eta must lie between 0 and 1"])


def _experts(settings: Mapping[str, Setting], horizon: int) -> int:
    return count(settings, "M", horizon)


def _most_experts(p: Problem) -> int:
    """Number of the experts of a restarted method in its longest epoch. Raises OCO721 where they fill the memory."""
    last = _experts(p.spec.settings, INT32_MAX)
    if last * (p.spec.canonical.size + p.constraint_count) > MOST_NUMBERS:
        many = f"M comes to {last:,} experts in an epoch of {INT32_MAX:,} rounds"
        message = f"{many}: at most {MOST_NUMBERS:,} numbers of theirs fit into memory"
        raise fail("OCO721", message, hint="state a horizon, or give a smaller M")
    return last


def _guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    """Appendix K before its last estimates: the best expert by (50), what following it costs by (54), all experts' violation by (59)."""
    diameter, slope = needed(s, "domain.diameter.l2"), needed(s, "loss.lipschitz.l2")

    def alpha(m: int, rounds: Rounds, horizon: int) -> Schedule:
        return settings["alpha"].along(rounds, horizon, m)

    def best(rounds: Rounds, horizon: int) -> Floats:
        result, total = [], _experts(settings, horizon)
        path, kappa = path_length(s, horizon), number(settings, "kappa", horizon)
        for m in range(1, total + 1):
            a = alpha(m, rounds, horizon)
            own = 2 * diameter * path_weight(a, diameter, path) + slope**2 / 4 * a.inverse.sums() + diameter**2 * a.last
            result.append(own + math.log(m * (m + 1) * total / (total + 1)) / kappa)
        return np.asarray(np.min(result, axis=0))

    own = quantities(s, settings)
    regret = Bound(
        f"{s.canonical.measure} regret",
        "sqrt(T)" if s.canonical.measure is Measure.STATIC else "T**((1 + V_x)/2)",
        "best + D*R + kappa*D**2*R**2*T/2",
        (
            *(q for q in own if q.name in ("R", "D", "T")),
            Quantity("kappa", r"\kappa", "rate of the weights", lambda n, T: number(settings, "kappa", T)),
            Quantity(
                "best",
                r"\min_m B[m] + \ln(1/w_1[m])/\kappa",
                "the bound of the best expert and the price of finding it",
                best,
            ),
        ),
        s.loss_range,
    )
    violation = Bound("hard violation", "T**V_g", "all", (_all_experts(s, settings),), s.violation_range)
    return Guarantee("Wang, Yan & Liu 2025, Corollary 3", s.horizon, regret, violation, remarks=comparator_remarks(s))


def _all_experts(s: Situation, settings: Mapping[str, Setting]) -> Quantity:
    """Theorem 2 for each expert, summed."""

    common = common_quantities(s, settings)

    def summed(value: Callable[[Quantity], Floats | np.float64], horizon: int) -> Any:
        of_each = [expert_quantities(s, settings, m) for m in range(1, _experts(settings, horizon) + 1)]
        formula = Bound("hard violation", "T**V_g", VIOLATION, (*common, *of_each[0])).expression
        used = formula.symbols
        shared = {q.latex: value(q) for q in common if q.latex in used}
        return sum(evaluated(formula, shared | {q.latex: value(q) for q in own if q.latex in used}) for own in of_each)

    def curve(rounds: Rounds, horizon: int) -> Floats:
        return np.asarray(np.zeros(len(rounds.last)) + summed(lambda q: q.at(rounds, horizon), horizon))

    def total(rounds: Rounds, horizon: int) -> float:
        return float(summed(lambda q: q.after_all(rounds, horizon), horizon))

    return Quantity("all", r"\sum_m B_g[m]", "the violation bounds of all experts", curve, total)


COLDQ_EXPERT = Algorithm(
    name="coldq-expert",
    multipliers=("Q",),
    title="COLDQ with expert tracking",
    cite="Wang, Yan & Liu 2025, Algorithm 2",
    rule=ColdqExpert,
    requirements=COLDQ.requirements,
    theorems=(
        Theorem(
            name="Corollary 3",
            measures=frozenset({Measure.STATIC, Measure.DYNAMIC}),
            violation=Violation.HARD,
            hypotheses=BASIC,
            settings=_settings,
            free=(Free("alpha"), Free("epsilon"), Free("kappa", powers=(-1, 1))),
            positive=("M", "kappa", "alpha", "eta", "gamma"),
            guarantee=_guarantee,
            rates={"static regret": "sqrt(T)", "dynamic regret": "T**((1 + V_x)/2)", "hard violation": "T**V_g"},
            checks=_settings_hold,
        ),
    ),
    cost="log2(T)/2 projections onto the domain under the round's constraints",
    cost_rank=3,
    symbols={"x": "the decision of each expert", "Q": "the queues of each expert", "w": "the weights of the experts"},
)
