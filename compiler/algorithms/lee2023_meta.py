"""Lee, Ho-Nguyen & Lee 2023: Algorithm 2, the primal-dual meta-Frank-Wolfe method, with Algorithm 3, follow the perturbed leader.

A round makes K Frank-Wolfe steps from x_1; the direction of the k-th is the perturbed leader of the gradients that the rounds before had
at their own k-th points. Several constraints: one multiplier each, and theta grows with their number (N = 1 in the paper).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from oco.compiler.algorithms.base import Algorithm
from oco.compiler.algorithms.classic import BOUNDED_DOMAIN, CONVEX_LOSS
from oco.compiler.algorithms.common import (
    FEASIBLE_MEAN,
    SOME_INEQUALITY,
    domain_offers,
    margin_note,
    sizes,
    slater_margin,
)
from oco.compiler.algorithms.lee2023 import (
    FUNCTIONS_REVEALED,
    SMOOTH,
    STOCHASTIC_LOSS,
    STRONG_DUALITY,
    largest_smoothness,
)
from oco.compiler.algorithms.wang_wan_zhang2025 import setting_quantities
from oco.compiler.algorithms.wang_yan_liu2025 import MEAN_INEQUALITIES_ONLY
from oco.compiler.algorithms.wei2020 import IID_CONSTRAINTS, MEAN_CONSTRAINTS
from oco.compiler.ir.symbolic import HALF
from oco.compiler.ir.symbolic_form import exact, product, total
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point, Rows, repeated
from oco.compiler.lowering.round_problem import Draw, Problem, TraceSpec
from oco.compiler.lowering.rule import State, array, point, rows
from oco.compiler.theory.schedule import Rounds
from oco.compiler.theory.settings import Default, Setting, count, number
from oco.compiler.theory.theorems import (
    Bound,
    Free,
    Guarantee,
    Hypothesis,
    Objection,
    Quantity,
    Restart,
    Situation,
    Theorem,
    Violation,
    constant_settings,
    fact_is_known,
    horizon_known,
    inequalities_convex,
    inequalities_have,
    needed,
    needed_bounds,
)
from oco.dsl.limits import MOST_NUMBERS
from oco.dsl.statements import Feedback, Measure


class MetaFrankWolfe:
    """Algorithm 2. The k-th row of X is x_t^k, of S the sum of the slopes of h_s^k over s <= t.

    Erratum 9: Algorithm 3 sums to t - 1 for v_{t+1}, text and proof to t; and x_{t+1}^1 is x_1, as x_1^k is for every k.
    """

    def init(self, p: Problem, start: Point) -> State:
        K, t = p.whole("K"), p.tracer
        none = Rows(tuple(t.zeros((K, *b.shape)) for b in start.blocks))
        return {"x": start, "lam": t.zeros((p.constraint_count,)), "X": repeated(t, start, K), "S": none}

    def decide(self, p: Problem, state: State) -> Point:
        return point(state, "x")

    def update(self, p: Problem, state: State) -> State:
        t, x, lam = p.tracer, point(state, "x"), array(state, "lam")
        y, X, S = self.steps(p, lam, rows(state, "X"), rows(state, "S"))
        p.note("lambda_{t+1} = [(1 - theta mu) lambda_t + mu g_t(x_t)]_+")
        theta, mu = p.setting("theta"), p.setting("mu")
        return {"x": y, "lam": t.maximum((1.0 - theta * mu) * lam + mu * p.constraints(x), 0.0), "X": X, "S": S}

    def steps(self, p: Problem, lam: Value, X: Rows, S: Rows) -> tuple[Point, Rows, Rows]:
        """x_{t+1}, with the points on the way to it and the sums of slopes."""
        t, blocks, perturbations = p.tracer, len(X.blocks), p.drawn_rows("p")
        p.note("Algorithm 3; erratum 8: perturbations of up to 1/delta, as in the proof, where the listing has delta")
        reach = t.name("reach", 1.0 / p.setting("delta"))

        def step(k: Value, *state: Value) -> tuple[Value, ...]:
            y, X, S = (kind(state[i * blocks : (i + 1) * blocks]) for i, kind in enumerate((Point, Rows, Rows)))
            assert isinstance(y, Point) and isinstance(X, Rows) and isinstance(S, Rows)
            before = X.row(k).named(t, "x_k")
            slope = p.gradient(before) + p.constraint_combination(before, lam)
            sum_k = (S.row(k) + slope).named(t, "S_k")
            v = p.domain.lmo(sum_k + reach * perturbations.row(k)).named(t, "v")
            p.note("x^{k+1} = x^k + gamma_k (v^k - x^k), gamma_k = 2/(k + 1), k from 1")
            gamma = t.name("gamma", 2.0 / (t.to_float(k) + 2.0))
            following = y + gamma * (v - y)
            return (*following.blocks, *X.replaced(k, y).blocks, *S.replaced(k, sum_k).blocks)

        begin = (*X.row(0).blocks, *X.blocks, *S.blocks)
        result = t.for_(p.whole("K"), step, begin)
        return Point(result[:blocks]), Rows(result[blocks : 2 * blocks]), Rows(result[2 * blocks :])


def draws(spec: TraceSpec) -> tuple[Draw, ...]:
    """Drawn anew in every round. Algorithm 3 draws once, and its proof takes the slopes as given: but those of later rounds depend on
    the draw, through the points and the multipliers, so that one draw is not covered where new ones are."""
    K = count(spec.settings, "K", spec.horizon or 1)
    return (Draw("p", "uniform", "the perturbations of the leaders, a row an inner step", rows=K),)


# Hypotheses.


def _fits(s: Situation) -> Objection | None:
    steps = math.isqrt(s.horizon or 1)
    if 2 * steps * s.size <= MOST_NUMBERS:
        return None
    message = f"it keeps two points for each of sqrt(T) = {steps:,} inner steps, {2 * steps * s.size:,} numbers"
    return Objection(message, "write a shorter horizon", slow=True)


def _something_to_learn(s: Situation) -> Objection | None:
    slopes = s.inequality_bounds("lipschitz.l1")
    if slopes is None or s.number("loss.lipschitz.l1") is None or s.number("domain.diameter.l1") is None:
        return None
    if largest_slope(s) > 0 and needed(s, "domain.diameter.l1") > 0:
        return None
    return Objection(
        "no decision is better than another: the domain is a point, or loss and constraints do not depend on it",
        "let the loss or a constraint depend on the decision",
    )


def largest_slope(s: Situation) -> float:
    """D: a bound of the entries of the gradients of the loss and of every constraint."""
    return float(max([needed(s, "loss.lipschitz.l1"), *needed_bounds(s, "lipschitz.l1")]))


_HYPOTHESES = (
    MEAN_CONSTRAINTS,
    IID_CONSTRAINTS,
    FUNCTIONS_REVEALED,
    CONVEX_LOSS,
    inequalities_convex("g(x, omega) is convex in the decision."),
    fact_is_known(
        "loss.lipschitz.l1",
        "Assumption 2: |grad f_t(x)|_inf <= D.",
        "the entries of the gradient of the loss",
    ),
    inequalities_have("lipschitz.l1", "Assumption 2: |grad g_t(x)|_inf <= D.", "the entries of the gradient"),
    inequalities_have("bound", "Assumption 2: |g_t(x)| <= G.", "the size"),
    fact_is_known(
        "domain.diameter.l1",
        "Assumption 2: |x - y|_1 <= R in the domain.",
        "the l1 diameter of the domain",
    ),
    BOUNDED_DOMAIN,
    *SMOOTH,
    Hypothesis("The K = sqrt(T) inner steps of a round fit into memory.", _fits),
    Hypothesis("D > 0 and R > 0.", _something_to_learn, ("loss.lipschitz.l1", "domain.diameter.l1")),
    horizon_known("The number of rounds T is known."),
    FEASIBLE_MEAN,
)


# Settings.


def _settings(s: Situation) -> Mapping[str, Default]:
    return {
        "R": Default("domain.diameter.l1", "l1 diameter of the domain"),
        "D": Default(largest_slope(s), "bound of the gradients' entries"),
        "beta": Default(0, "0: the least regret (Theorem 4)"),
        "K": Default("max(1, floor(T**(1/2 + beta)))", "T^(1/2 + beta) inner steps (5)"),
        "theta": Default(
            f"{12 * s.constraints} * R * D * sqrt(d) / T**(1/2 + beta)", "12 N R D sqrt(d) / T^(1/2 + beta) (5)"
        ),
        "mu": Default("1 / (theta * (T + 2))", "1/(theta (T + 2)) (5)"),
        "delta": Default("1 / (2 * D * sqrt(d) * T**(1/2 + beta))", "1/(2 D sqrt(d) T^(1/2 + beta)) (Algorithm 3)"),
    }


def _settings_hold(s: Situation, settings: Mapping[str, Setting]) -> list[str]:
    if result := constant_settings(s, settings):
        return result
    value = {n: number(settings, n, s.horizon or 1) for n in settings}
    room, diameter, slope = 1 - 1e-12, needed(s, "domain.diameter.l1"), largest_slope(s)
    pull = value["delta"] * s.size * value["R"] * value["D"] ** 2 / 2 * s.constraints
    rules = {
        "K must be an integer, at least 1": value["K"] >= 1 and value["K"] == round(value["K"]),
        "theta, mu and delta must be positive": min(value["theta"], value["mu"], value["delta"]) > 0,
        "beta must lie between 0 and 1/2": 0 <= value["beta"] <= 0.5,
        f"R must bound the l1 diameter: it is {diameter:.6g}": value["R"] >= diameter * room,
        f"D must bound the gradients' entries: it is at least {slope:.6g}": value["D"] >= slope * room,
        "theta/2 - theta^2 mu must exceed N delta d R D^2 / 2": value["theta"] * (0.5 - value["theta"] * value["mu"])
        > pull,
    }
    return [words for words, holds in rules.items() if not holds]


# Guarantees.

# The proof of Theorem 2 for any K, theta, mu, delta and N multipliers. With gamma_k = 2/(k + 1) the weights of Lemma B.5 are exactly
# prod_{j>k} (1 - gamma_j) = k (k + 1) / (K (K + 1)), zero for k = 0, and gamma_k times them sums to one (Lemma B.4's bound makes 3/2 of
# it, which (20) forgets). With a = 2 L R_2^2 / (K + 1), R_2 the l2 diameter, and b = delta d R D^2 / 2 of Lemma B.3 (half of Theorem 5:
# the leader moves along the way from S to S + w), in expectation
#
#   Regret + <lambda, V> <= (1/mu + n theta) |lambda|^2 / 2 + D R + R/delta + n G^2 mu
#                           + sum_t (a (1 + Lambda_t) + b (1 + Lambda_t)^2 - (theta/2 - theta^2 mu) |lambda_t|^2),
#
# Lambda_t = sum_n lambda_t^n <= sqrt(N) |lambda_t|; D R is for the first decision, which is no leader's.
REGRET = "D*R + R/delta + n * (G**2 * mu + a + b + N * (a + 2*b)**2 / (4 * (theta/2 - theta**2 * mu - N*b)))"
VIOLATION = f"sqrt(2 * N * (1/mu + n*theta) * (F*n + {REGRET}))"
# Theorem 4: by Lemma 6.2 the violation is at most the left side at lambda* + 1, and |lambda*|_1 <= F/s. Its proof prints lambda* there.
DUAL_VIOLATION = f"(1/mu + n*theta) * (F/s + sqrt(N))**2 / 2 + {REGRET}"


def _guarantee(s: Situation, settings: Mapping[str, Setting], duality: bool) -> Guarantee:
    """Theorem 2 in numbers, before its settings are put in; with `duality` the violation is the smaller of those of Theorems 2 and 4."""
    bounds, smoothness, diameter = sizes(s), largest_smoothness(s), needed(s, "domain.diameter.l2")

    def curved(rounds: Rounds, horizon: int) -> np.ndarray:
        return np.asarray(2 * smoothness * diameter**2 / (number(settings, "K", horizon) + 1))

    def pull(rounds: Rounds, horizon: int) -> np.ndarray:
        R, D, delta = (number(settings, n, horizon) for n in ("R", "D", "delta"))
        return np.asarray(delta * s.size * R * D**2 / 2)

    range_of_loss = s.loss_range
    slope = needed(s, "loss.lipschitz.l1") * needed(s, "domain.diameter.l1")
    quantities = [
        Quantity("N", "N", "number of constraints", float(s.constraints)),
        Quantity("G", "G", "bound of the constraints together", float(np.linalg.norm(bounds))),
        Quantity("F", "F", "what one round's losses can differ", slope if range_of_loss is None else range_of_loss),
        Quantity("a", "a", "what K steps leave of curvature, 2 L R_2^2 / (K + 1)", curved),
        Quantity("b", "b", "moves of the leader, delta d R D^2 / 2", pull),
        Quantity("n", "n", "rounds", lambda rounds, T: rounds.last),
        *setting_quantities(settings, {"R": "R", "D": "D", "theta": r"\theta", "mu": r"\mu", "delta": r"\delta"}),
    ]
    if duality:
        quantities += [Quantity("s", "s", "Slater margin", slater_margin(s))]
    beta = settings["beta"].formula
    regret = f"T**({total((HALF, beta))})"
    violation = f"T**({total((exact(0.75), product((exact(-0.5), beta))))})"
    message = "in expectation"
    return Guarantee(
        f"Lee, Ho-Nguyen & Lee 2023, {'Theorems 2 and 4' if duality else 'Theorem 2'}",
        s.horizon,
        Bound("static regret", regret, REGRET, tuple(quantities), range_of_loss, message),
        Bound(
            "soft violation",
            regret if duality else violation,
            f"min({VIOLATION}, {DUAL_VIOLATION})" if duality else VIOLATION,
            tuple(quantities),
            s.violation_range,
            message + (margin_note(s) if duality else ""),
        ),
    )


def _theorem(duality: bool) -> Theorem:
    violation = "sqrt(T)" if duality else "T**(3/4)"
    return Theorem(
        name="Theorem 4" if duality else "Theorem 2",
        measures=frozenset({Measure.STATIC}),
        violation=Violation.SOFT,
        expected=True,
        hypotheses=(*_HYPOTHESES, *((STOCHASTIC_LOSS, STRONG_DUALITY) if duality else ())),
        settings=_settings,
        free=(Free("theta"), Free("mu"), Free("delta")),
        norm="l1",
        restart=Restart.NEVER,
        positive=("R", "D", "theta", "mu", "delta"),
        guarantee=lambda s, settings: _guarantee(s, settings, duality),
        rates={"static regret": "sqrt(T)", "soft violation": violation},
        checks=_settings_hold,
    )


META_FRANK_WOLFE = Algorithm(
    name="meta-frank-wolfe",
    multipliers=("lam",),
    title="primal-dual meta-Frank-Wolfe",
    cite="Lee, Ho-Nguyen & Lee 2023, Algorithms 2 and 3",
    rule=MetaFrankWolfe,
    requirements=(
        SOME_INEQUALITY,
        MEAN_INEQUALITIES_ONLY,
        domain_offers("lmo", "Linear functions can be minimized over the domain."),
    ),
    reads=Feedback.FULL,
    theorems=(_theorem(True), _theorem(False)),
    cost="T^(1/2) linear minimisations and gradients",
    cost_rank=3,
    symbols={
        "x": "the decision of this round",
        "lam": "the multiplier of each constraint",
        "X": "the points x^1, ..., x^K on the way to the decision",
        "S": "for each inner step, the sum of its slopes over the rounds",
    },
    draws=draws,
    departures=(
        "The perturbations are drawn anew in every round, where Algorithm 3 draws them once.",
        "theta has the factor N, the number of constraints: each has a multiplier of its own, and the paper has one constraint.",
    ),
)
