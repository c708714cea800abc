"""Lee, Ho-Nguyen & Lee 2023, "Projection-free online convex optimization with stochastic constraints": Algorithm 1.

T rounds in Q blocks of K. Within block q a projection-free oracle plays on h_t = f_t + sum_n lambda_q^n g_t^n; after the block each
constraint's multiplier moves by its sum over the block. Erratum 10: an oracle begins anew at each block, from the decision reached.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from oco.compiler.algorithms.base import Algorithm
from oco.compiler.algorithms.classic import BOUNDED_DOMAIN, BOUNDED_GRADIENT, CONVEX_LOSS, GRADIENTS_SEEN
from oco.compiler.algorithms.common import (
    FEASIBLE_MEAN,
    SLATER,
    SOME_INEQUALITY,
    domain_offers,
    margin_note,
    named_constraints,
    sizes,
    slater_margin,
    unknown,
)
from oco.compiler.algorithms.hazan_minasyan2020 import OSPF, SFTRL
from oco.compiler.algorithms.oracles import Oracle
from oco.compiler.algorithms.wang_wan_zhang2025 import largest_slope, setting_quantities
from oco.compiler.algorithms.wang_yan_liu2025 import MEAN_INEQUALITIES_ONLY
from oco.compiler.algorithms.wei2020 import IID_CONSTRAINTS, MEAN_CONSTRAINTS
from oco.compiler.algorithms.weibel2026 import OCG
from oco.compiler.algorithms.xie2020 import ORGFW
from oco.compiler.ir.symbolic import ZERO, Formula, Numeral
from oco.compiler.ir.symbolic_form import product, total
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point, Structured, select
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array, joined, point
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
from oco.dsl.expressions import Kind, names
from oco.dsl.settings import WORD_SETTINGS
from oco.dsl.statements import Feedback, Measure

ORACLES: tuple[Oracle, ...] = (ORGFW, OSPF, OCG, SFTRL)
"""Table 2, but for mfw, which is `meta-frank-wolfe` without multipliers."""


def oracle_of(settings: Mapping[str, Setting]) -> Oracle:
    """The oracle that the setting names."""
    word = str(settings["oracle"].formula)
    return next(o for o in ORACLES if o.name == word)


class PrimalDual:
    """Algorithm 1. lam holds lambda_q, G the sums of the constraints over the block; the oracle keeps more."""

    def init(self, p: Problem, start: Point) -> State:
        none = p.tracer.zeros((p.constraint_count,))
        return joined({"x": start, "lam": none, "G": none}, oracle_of(p.spec.settings).rule.begin(p, start))

    def decide(self, p: Problem, state: State) -> Point:
        return point(state, "x")

    def update(self, p: Problem, state: State) -> State:
        t, x, lam, oracle = p.tracer, point(state, "x"), array(state, "lam"), oracle_of(p.spec.settings).rule
        K = p.count_of("K")
        p.note("the round k of this block")
        k = t.name("k", t.mod(p.played - 1.0, K) + 1.0)
        weight = t.name("weight", 1.0 + t.sum(lam))

        def gradient(y: Point) -> Point:
            """grad h_t(y)."""
            return (p.gradient(y) + p.constraint_combination(y, lam)).named(t, "slope")

        following, kept = oracle.step(p, state, k, gradient, weight)
        p.note("after the block: lambda = [(1 - theta mu) lambda + mu sum_t g_t(x_t)]_+")
        ends = t.name("ends", k >= K)
        G = t.name("G", array(state, "G") + p.constraints(x))
        theta, mu = p.setting("theta"), p.setting("mu")
        moved = t.maximum((1.0 - theta * mu) * lam + mu * G, 0.0)
        anew = oracle.begin(p, following)
        results = {name: _where(t, ends, anew[name], kept[name]) for name in kept}
        return {"x": following, "lam": t.where(ends, moved, lam), "G": t.where(ends, 0.0, G), **results}


def _where(t: Tracer, c: Value, a: Structured, b: Structured) -> Structured:
    """The state variable of one case or the other."""
    if isinstance(a, Point) and isinstance(b, Point):
        return select(t, c, a, b)
    assert isinstance(a, Value) and isinstance(b, Value)
    return t.where(c, a, b)


# Hypotheses.


def _something_to_learn(s: Situation) -> Objection | None:
    slopes = s.inequality_bounds("lipschitz.l2")
    if slopes is None or s.number("loss.lipschitz.l2") is None or s.number("domain.diameter.l2") is None:
        return None
    if largest_slope(s) > 0 and needed(s, "domain.diameter.l2") > 0:
        return None
    return Objection(
        "no decision is better than another: the domain is a point, or loss and constraints do not depend on it",
        "let the loss or a constraint depend on the decision",
    )


def _functions_seen(s: Situation) -> Objection | None:
    if s.canonical.feedback is Feedback.FULL:
        return None
    message = f"{s.canonical.feedback} feedback gives no gradients away from the decision, and it needs them"
    return Objection(message, "write `feedback full`")


def _stochastic_loss(s: Situation) -> Objection | None:
    if names(s.canonical.objective, Kind.ROUND):
        return Objection(
            "the loss changes with the round t, so it has no fixed distribution",
            "take t out of the loss, or let a stream with a distribution stand for it",
        )
    ranges = {r.name: r for r in s.canonical.streams}
    for name in names(s.canonical.objective, Kind.STREAM):
        if not ranges[name].stochastic:
            fix = f"if its values are independent draws, write `stream {name} ... iid` or give its distribution"
            return Objection(f"the loss uses the stream `{name}`, which an adversary chooses", fix)
    return None


def _strong_duality(s: Situation) -> Objection | Condition | None:
    """Slater's condition in the mean, by which sum_n lambda*_n <= F/s; where it fails the multipliers are bounded by a condition alone."""
    answer = SLATER.test(s)
    if not isinstance(answer, Objection):
        return answer
    words = f"strong duality holds for {named_constraints(s)} in the mean, with bounded multipliers"
    return Condition("multipliers.bounded", words)


FUNCTIONS_REVEALED = Hypothesis("Losses and constraints are revealed as functions.", _functions_seen)
STOCHASTIC_LOSS = Hypothesis("The losses are independent draws of one distribution.", _stochastic_loss)
STRONG_DUALITY = Hypothesis("(7): strong duality holds, with bounded multipliers.", _strong_duality, ("slater.margin",))
SMOOTH = (
    fact_is_known(
        "loss.smoothness.l2",
        "The losses are L-smooth.",
        "how fast the gradient of the loss changes",
    ),
    inequalities_have("smoothness.l2", "The constraints are L-smooth.", "how fast the gradient changes"),
)
HYPOTHESES = (
    MEAN_CONSTRAINTS,
    IID_CONSTRAINTS,
    GRADIENTS_SEEN,
    CONVEX_LOSS,
    BOUNDED_GRADIENT,
    inequalities_convex("g(x, omega) is convex in the decision."),
    inequalities_have("lipschitz.l2", "f_t and g_t are D-Lipschitz.", "the gradient"),
    inequalities_have("bound", "g_t is bounded: |g_t(x)| <= G.", "the size"),
    BOUNDED_DOMAIN,
    Hypothesis("D > 0 and R > 0.", _something_to_learn, ("loss.lipschitz.l2", "domain.diameter.l2")),
    horizon_known("The number of rounds T is known."),
    FEASIBLE_MEAN,
)


# Settings.


def _settings(s: Situation, oracle: Oracle) -> Mapping[str, Default]:
    """(3), whose exponents are those of the oracle."""
    a, theta = oracle.block_exponent, oracle.alpha * oracle.block_exponent
    smoothnesses = [s.number("loss.smoothness.l2"), s.inequality_bounds("smoothness.l2")]
    smoothness = (
        0.0
        if not oracle.smooth
        else "loss.smoothness.l2"
        if any(b is None for b in smoothnesses)
        else largest_smoothness(s)
    )
    return {
        "oracle": Default(oracle.name, oracle.why),
        "R": Default("domain.diameter.l2", "diameter of the domain"),
        "D": Default(unknown(s, "lipschitz.l2") or largest_slope(s), "Lipschitz constant of losses and constraints"),
        "L": Default(
            smoothness, "smoothness of losses and constraints" if oracle.smooth else "no smoothness is asked for"
        ),
        "beta": Default(0, "0: the least sum of the rates (Theorem 1)"),
        **oracle.settings(s),
        "Q": Default(f"ceiling(T**({1 - a}))", f"T^({1 - a}) blocks (3)"),
        "K": Default(f"ceiling(T**({a}))", f"T^({a}) rounds a block (3)"),
        "theta": Default(f"3 * (C_1 * D + C_2 * L) * T**({theta} - beta)", f"3 (C_1 D + C_2 L) T^({theta} - beta) (3)"),
        "mu": Default("1 / (theta * (Q + 1))", "1/(theta (Q + 1)) (3)"),
    }


def largest_smoothness(s: Situation) -> float:
    """L: a Lipschitz constant of the gradients of the loss and of every constraint."""
    return float(max([needed(s, "loss.smoothness.l2"), *needed_bounds(s, "smoothness.l2")]))


def _settings_hold(s: Situation, settings: Mapping[str, Setting]) -> list[str]:
    T, oracle = s.horizon or 1, oracle_of(settings)
    numbers = {n: v for n, v in settings.items() if n not in WORD_SETTINGS}
    result = constant_settings(s, numbers)
    if result:
        return result
    value = {n: number(settings, n, T) for n in numbers}
    room, diameter, largest = 1 - 1e-12, needed(s, "domain.diameter.l2"), float(oracle.largest_beta)
    rules = {
        "K must be an integer, at least 1": value["K"] >= 1 and value["K"] == round(value["K"]),
        "theta and mu must be positive": value["theta"] > 0 and value["mu"] > 0,
        "2 theta mu must be less than 1": 2 * value["theta"] * value["mu"] < 1,
        f"beta must lie between 0 and {largest:.4g}": 0 <= value["beta"] <= largest + 1e-12,
        f"R must bound the diameter: it is {diameter:.6g}": value["R"] >= diameter * room,
        f"D must bound the gradients: it is at least {largest_slope(s):.6g}": value["D"] >= largest_slope(s) * room,
    }
    if oracle.smooth:
        smoothness = largest_smoothness(s)
        rules[f"L must bound how fast gradients change: it is at least {smoothness:.6g}"] = (
            value["L"] >= smoothness * room
        )
    if "delta" in value:
        rules["delta must be positive"] = value["delta"] > 0
    if "k" in value:
        rules["k must be an integer, at least 1"] = value["k"] >= 1 and value["k"] == round(value["k"])
    return [words for words, holds in rules.items() if not holds]


# Guarantees.

IN_THE_MEAN = ", against the best decision in the mean"

# The proof of Theorem 1 for any K, theta, mu, for blocks that T cuts off, and for N multipliers: with A the oracle's regret in a block of
# D-Lipschitz, L-smooth functions, in expectation
#
#   Regret + sum_n lambda_n V_n <= (1/mu + Q theta) |lambda|^2 / 2 + G^2 K^2 Q mu
#                                  + Q A + sum_q sum_n (A lambda_q^n + (theta^2 mu - theta/2) (lambda_q^n)^2)
#
# for all lambda >= 0, with G^2 = sum_n sup |g_n|^2; the terms of lambda_q are at most A^2 / (2 theta (1 - 2 theta mu)). lambda = 0
# gives the regret; lambda_n = c where V_n > 0, with Regret >= -F T and the best c, the violation.
# x* has E g(x*) <= 0 and does not depend on the draws of the constraints: the best fixed decision in hindsight for losses that an adversary
# fixed before; where the oracle's own bound is one for drawn losses, the best in the mean.
REGRET = "blocks * (G**2 * K**2 * mu + A + N * A**2 / (2 * theta * (1 - 2*theta*mu)))"
VIOLATION = f"sqrt(2 * N * (1/mu + blocks*theta) * (F*n + {REGRET}))"
# Theorem 3: by Lemma 6.1 the violation is at most the left side at lambda* + 1 (where V_n > 0), and |lambda*|_1 <= F/s by Slater's
# condition. Its proof prints lambda* there.
DUAL_VIOLATION = f"(1/mu + blocks*theta) * (F/s + sqrt(N))**2 / 2 + {REGRET}"


def _guarantee(s: Situation, settings: Mapping[str, Setting], duality: bool) -> Guarantee:
    """Theorem 1 in numbers, before its settings are put in; with `duality` the violation is the smaller of those of Theorems 1 and 3."""
    oracle, bounds = oracle_of(settings), sizes(s)
    numbers = [n for n in settings if n not in WORD_SETTINGS]

    def blocks(rounds: Rounds, horizon: int) -> Floats:
        return np.ceil(rounds.last / max(number(settings, "K", horizon), 1.0))

    def block_regret(rounds: Rounds, horizon: int) -> Floats:
        return np.asarray(oracle.regret(s, {n: number(settings, n, horizon) for n in numbers}))

    quantities = [
        Quantity("N", "N", "number of constraints", float(s.constraints)),
        Quantity("G", "G", "bound of the constraints together", float(np.linalg.norm(bounds))),
        Quantity("F", "F", "what one round's losses can differ", needed_range(s)),
        Quantity("A", "A", "regret of the oracle in a block", block_regret),
        Quantity("blocks", "Q_n", "blocks begun", blocks),
        Quantity("n", "n", "rounds", lambda rounds, T: rounds.last),
        *setting_quantities(settings, {"K": "K", "theta": r"\theta", "mu": r"\mu"}),
    ]
    if duality:
        quantities += [Quantity("s", "s", "Slater margin", slater_margin(s))]
    violation = f"min({VIOLATION}, {DUAL_VIOLATION})" if duality else VIOLATION
    of_regret, of_violation = _rates(oracle, settings["beta"].formula, duality)
    message, note = "in expectation", margin_note(s) if duality else ""
    return Guarantee(
        f"Lee, Ho-Nguyen & Lee 2023, {'Theorems 1 and 3' if duality else 'Theorem 1'}, with {oracle.cite}",
        s.horizon,
        Bound(
            "static regret",
            of_regret,
            REGRET,
            tuple(quantities),
            s.loss_range,
            message + (IN_THE_MEAN if oracle.stochastic else ""),
        ),
        Bound("soft violation", of_violation, violation, tuple(quantities), s.violation_range, message + note),
    )


def needed_range(s: Situation) -> float:
    """F: the most that one round's losses can differ, known where the gradient and the diameter are."""
    assert s.loss_range is not None
    return s.loss_range


def _rates(oracle: Oracle, beta: Formula, duality: bool) -> tuple[str, str]:
    """T^((2 - alpha)/(3 - 2 alpha) + beta) and T^((5 - 3 alpha)/(6 - 4 alpha) - beta/2), or the first twice, as text."""
    alpha = oracle.alpha
    regret, violation = (2 - alpha) / (3 - 2 * alpha), (5 - 3 * alpha) / (6 - 4 * alpha)
    of_regret = f"T**({total((Numeral(regret), beta))})"
    halved = product((Numeral(Fraction(-1, 2)), beta))
    return of_regret, of_regret if duality else f"T**({total((Numeral(violation), halved))})"


def _theorem(oracle: Oracle, duality: bool) -> Theorem:
    """Theorem 1 with one oracle; with `duality`, Theorem 3."""
    more: list[Hypothesis] = [*SMOOTH] if oracle.smooth else []
    more += [FUNCTIONS_REVEALED] if oracle.stochastic else []
    more += [STOCHASTIC_LOSS] if oracle.stochastic or duality else []
    more += [STRONG_DUALITY] if duality else []
    regret, violation = _rates(oracle, ZERO, duality)
    return Theorem(
        name=f"Theorem {3 if duality else 1} with {oracle.name}",
        measures=frozenset({Measure.STATIC}),
        violation=Violation.SOFT,
        expected=True,
        hypotheses=(*HYPOTHESES, *more),
        settings=lambda s: _settings(s, oracle),
        words={"oracle": oracle.name},
        asked_by=("oracle",) if oracle.on_request else (),
        restart=Restart.NEVER if oracle.grows else Restart.FROM_DECISION,
        free=(Free("K", 0.0001, 10000, "count"), Free("theta"), Free("mu"), *oracle.free),
        positive=("R", "D", "K", "theta", "mu", "k", "delta"),
        guarantee=lambda s, settings: _guarantee(s, settings, duality),
        rates={"static regret": regret, "soft violation": violation},
        checks=_settings_hold,
    )


PROJECTION_FREE = Algorithm(
    name="projection-free",
    multipliers=("lam",),
    frank_wolfe=lambda spec: oracle_of(spec.settings).frank_wolfe,
    title="online primal-dual projection-free method",
    cite="Lee, Ho-Nguyen & Lee 2023, Algorithm 1",
    rule=PrimalDual,
    requirements=(
        SOME_INEQUALITY,
        MEAN_INEQUALITIES_ONLY,
        domain_offers("lmo", "Linear functions can be minimized over the domain."),
    ),
    theorems=tuple(_theorem(o, duality) for o in ORACLES for duality in (True, False)),
    cost="one linear minimisation",
    symbols={
        "x": "the decision of this round",
        "lam": "the multiplier of each constraint in this block",
        "G": "sum of the constraints over this block",
        **{name: words for o in ORACLES for name, words in o.symbols},
    },
    draws=lambda spec: oracle_of(spec.settings).draws(spec),
)
