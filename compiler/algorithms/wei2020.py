"""Wei, Yu & Neely 2020, "Online primal-dual mirror descent under stochastic constraints": Algorithms 1 and 2.

Constraints and equalities whose data is independent from round to round, losses of an adversary, no Slater point.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from oco.compiler.algorithms.base import Algorithm
from oco.compiler.algorithms.classic import BOUNDED_DOMAIN, BOUNDED_GRADIENT, CONVEX_LOSS, GRADIENTS_SEEN, ONE_SIMPLEX
from oco.compiler.algorithms.common import (
    FEASIBLE_MEAN,
    MIRROR_STEP,
    margin_note,
    named_constraints,
    nothing_to_learn,
    slater_margin,
)
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array, joined, point
from oco.compiler.problem.canonical import Equality, Inequality
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
    scheduled,
)
from oco.dsl.expressions import Kind, names
from oco.dsl.statements import Measure, Timing


class MirrorDescent:
    """mu_t, Q, H of Algorithms 1 and 2. Erratum 4: the loop begins at t = 1 with the data of round 0; Q(1) = H(1) = 0."""

    def init(self, p: Problem, start: Point) -> State:
        of_inequalities = {"Q": p.tracer.zeros((p.constraint_count,))} if p.constraint_count else {}
        of_equalities = {"H": p.tracer.zeros((p.equality_count,))} if p.equality_count else {}
        return joined({"mu": start}, of_inequalities, of_equalities)

    def decide(self, p: Problem, state: State) -> Point:
        return point(state, "mu")

    def update(self, p: Problem, state: State) -> State:
        mu, V, alpha = point(state, "mu"), p.setting("V"), p.setting("alpha")
        p.note("(4): the direction V grad f + sum_i Q_i grad g_i + sum_j H_j h_j")
        direction = V * p.gradient(mu)
        if p.constraint_count:
            direction = direction + p.constraint_combination(mu, array(state, "Q"))
        if p.equality_count:
            direction = direction + p.equality_combination(mu, array(state, "H"))
        following = self.step(p, mu, direction / alpha)
        results: dict[str, Value | Point] = {"mu": following}
        if p.constraint_count:
            p.note("(5), with the data of this round and the new decision (erratum 5)")
            there = p.linearized_constraints(mu, following)
            results["Q"] = p.tracer.maximum(array(state, "Q") + there, 0.0)
        if p.equality_count:
            p.note("(6)")
            results["H"] = array(state, "H") + self.equalities(p, mu, following)
        return results

    def step(self, p: Problem, mu: Point, direction: Point) -> Point:
        """argmin <direction, .> + D(., mu). Erratum 6: D is |x - y|^2 / 2 in the Euclidean case."""
        if not _entropic(p.domain.domains):
            return p.domain.project(mu - direction)
        p.note("Algorithm 2: mix with the uniform point, then the closed form (10)")
        theta, centre = p.setting("theta"), p.domain.domains[0].centre()
        mixed = (1.0 - theta) * mu + Point((p.tracer.full(theta * float(centre.flat[0]), centre.shape),))
        return p.domain.bregman_step(mixed, direction)

    def equalities(self, p: Problem, mu: Point, following: Point) -> Value:
        """h at the new decision; by its row where only the value at mu is seen."""
        if p.full:
            return p.equalities(following)
        return p.equalities(mu) + p.equality_gradients(mu).apply(following - mu)


def _entropic(domains: tuple[object, ...]) -> bool:
    """True if Algorithm 2 applies: the decision lies in one simplex."""
    return len(domains) == 1 and getattr(domains[0], "kind", "") == "simplex"


# Hypotheses.


def _independent(s: Situation) -> Objection | None:
    ranges = {r.name: r for r in s.canonical.streams}
    constraints: tuple[Inequality | Equality, ...] = (*s.canonical.inequalities, *s.canonical.equalities)
    for c in constraints:
        label = c.label if isinstance(c, Equality) else c.origin
        if names(c.expr, Kind.ROUND):
            return Objection(
                f"`{label}` changes with the round t, so it has no fixed distribution",
                f"take t out of `{label}`, or let a stream with a distribution stand for it",
            )
        for name in names(c.expr, Kind.STREAM):
            if not ranges[name].stochastic:
                fix = f"if its values are independent draws, write `stream {name} ... iid` or give its distribution"
                return Objection(f"`{label}` uses the stream `{name}`, which an adversary chooses", fix)
    return None


def _no_hard_constraint(s: Situation) -> Objection | None:
    for c in s.canonical.inequalities:
        if c.timing is Timing.EACH_ROUND:
            return Objection(
                f"`{c.origin}` must hold each round, and the theorem bounds soft violation only: a round may make up for another",
                f"write `on average` after `{c.origin}`",
            )
    return None


def _some_constraint(s: Situation) -> Objection | None:
    if s.constraints + s.equalities:
        return None
    return Objection(
        f"{nothing_to_learn(s)}: without them it is gradient descent with a step that does not shrink",
        "add a constraint, or write `using ogd`",
    )


def _equalities_known(s: Situation) -> Objection | None:
    for c in s.canonical.equalities:
        if s.entries(c.label, c.shape, "bound") is None:
            return Objection(f"nothing bounds the size of `{c.label}`", f"`assume constraints.{c.label}.bound <= ...`")
    return None


def _multipliers(s: Situation) -> Objection | Condition | None:
    if s.holds("multipliers.bounded"):
        return None
    if s.is_refuted("multipliers.bounded"):
        message = f"the multipliers are not bounded (SELM): {s.claim('multipliers.bounded')}"
        return Objection(message, "loosen the constraints, or `assume slater.margin >= ...`")
    words = f"the multipliers of {named_constraints(s)} in the mean are bounded (SELM, as by a Slater point)"
    return Condition("multipliers.bounded", words)


MEAN_CONSTRAINTS = Hypothesis("Constraints bind in the mean over the rounds.", _no_hard_constraint)


IID_CONSTRAINTS = Hypothesis("g^t and h^t are independent and identically distributed over the rounds.", _independent)


def _euclidean(s: Situation) -> Objection | None:
    return (
        Objection("on a simplex Theorem 3.2 speaks", "decide in a set that is no simplex")
        if _entropic(s.domains)
        else None
    )


_COMMON = (
    Hypothesis("There are constraints.", _some_constraint),
    MEAN_CONSTRAINTS,
    IID_CONSTRAINTS,
    GRADIENTS_SEEN,
    CONVEX_LOSS,
    inequalities_convex("Each g_i is convex in the decision."),
    horizon_known("The number of rounds T is known."),
    inequalities_have("bound", "Assumption 2.1(2): sum_i |g_i|^2 <= G^2.", "the size"),
    Hypothesis("Assumption 2.1(2): sum_j |h_j|^2 <= H^2.", _equalities_known, ("constraints.*.bound",)),
    FEASIBLE_MEAN,
    Hypothesis(
        "Assumption 2.2 (SELM): the multipliers of every stretch of sqrt(T) rounds are bounded.",
        _multipliers,
        ("multipliers.bounded",),
    ),
)


# Guarantees.


def _settings(s: Situation) -> Mapping[str, Default]:
    results = {"V": Default("sqrt(T)", "V = sqrt(T) (Theorem 3.1)"), "alpha": Default("T", "alpha = T (Theorem 3.1)")}
    return results | ({"theta": Default("1 / T", "theta = 1/T (Theorem 3.2)")} if _entropic(s.domains) else {})


class _Constants:
    """Assumption 2.1 in numbers. `slope` is the norm of the theorem: l2 with its own dual, or l1 with the entries' largest."""

    def __init__(self, s: Situation, slope: str) -> None:
        self.entropic = slope == "l1"
        domain = s.domains[0]
        self.D1 = needed(s, f"loss.lipschitz.{slope}")
        self.D2 = float(np.linalg.norm(_known(s.inequality_bounds(f"lipschitz.{slope}"))))
        self.G = float(np.linalg.norm(_known(s.inequality_bounds("bound"))))
        self.residual = float(np.linalg.norm(_known(s.equality_bounds("bound"))))
        self.F = s.number("loss.bound")
        self.diameter = needed(s, f"domain.diameter.{slope}")
        self.beta = 1.0 / domain.radius if self.entropic else 1.0
        self.R = domain.bregman_radius if self.entropic else self.diameter**2 / 2


def _known(values: Floats | None) -> Floats:
    assert values is not None
    return values


def _quantities(c: _Constants, settings: Mapping[str, Setting]) -> tuple[Quantity, ...]:
    results = [
        Quantity("D_1", "D_1", "bound of the gradient of the loss", c.D1),
        Quantity("D_2", "D_2", "bound of the constraints' gradients together", c.D2),
        Quantity("G", "G", "bound of the constraints together", c.G),
        Quantity("H_0", r"\bar H", "bound of the equalities together, sup |h(x) - b|", c.residual),
        Quantity("L", r"\ell", "diameter of the domain", c.diameter),
        Quantity("R", "R", "largest divergence from the first decision" if c.entropic else "largest divergence", c.R),
        Quantity("beta", r"\beta", "modulus of the mirror map", c.beta),
        Quantity("V", "V", "weight of the loss", scheduled(settings, "V")),
        Quantity("alpha", r"\alpha", "weight of the divergence", scheduled(settings, "alpha")),
        Quantity("T", "T", "rounds", lambda n, T: n.last),
    ]
    if c.entropic:
        results += [Quantity("theta", r"\theta", "mixing with the uniform point", scheduled(settings, "theta"))]
    return tuple(results)


# Lemma 5.1: M = 4 R H^2 / beta + G^2 + 2 R D_2^2 / beta (erratum 7). The first term bounds half of sup |h - b|^2 where the domain holds
# the origin, the last one D_2^2 L^2; here both stand for themselves, so that they hold on any domain.
DRIFT = "(H_0**2/2 + G**2 + D_2**2 * L**2)"
EUCLIDEAN_REGRET = f"T * ({DRIFT}/V + V * D_1**2 / (2*alpha*beta)) + alpha/V * R"
# (36): |mu~ - mu|_1 is at most 2 theta, not theta; and the l1 diameter of the simplex is 2, not 1 (Supplement A.4).
ENTROPIC_REGRET = f"T * ({DRIFT}/V + V * D_1**2 / (2*alpha*beta) + theta*L*D_1 + alpha*theta*R/V) + alpha/V * R"


def _guarantee(s: Situation, settings: Mapping[str, Setting], theorem: str, slope: str, regret: str) -> Guarantee:
    c = _Constants(s, slope)
    quantities = _quantities(c, settings)
    rate = "sqrt(T) * log(d)" if c.entropic else "sqrt(T)"
    regret_bound = Bound("static regret", rate, regret, quantities, s.loss_range, "in expectation")
    violation = equality = None
    rate = "sqrt(T) * log(T * d)" if c.entropic else "sqrt(T)"
    if s.constraints:
        scale = s.violation_range
        violation = _slater_bound(s, settings, c, scale) or Bound(
            "soft violation", rate, trivial=scale, note="in expectation; its constants c_0, l_0 exist without a number"
        )
    if s.equalities:
        scale = float(np.sum(_known(s.equality_bounds("bound"))))
        equality = Bound(
            "equality violation",
            rate,
            trivial=scale,
            note="in expectation; its constants c_0, l_0 exist without a number",
        )
    return Guarantee(theorem, s.horizon, regret_bound, violation, equality, from_centre=c.entropic)


def euclidean_guarantee(
    s: Situation, settings: Mapping[str, Setting], theorem: str = "Wei, Yu & Neely 2020, Theorem 3.1"
) -> Guarantee:
    """Theorem 3.1, in the l2 norm, with the constants of its proof; `theorem` is its name in reports."""
    return _guarantee(s, settings, theorem, "l2", EUCLIDEAN_REGRET)


def _entropic_guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    return _guarantee(s, settings, "Wei, Yu & Neely 2020, Theorem 3.2", "l1", ENTROPIC_REGRET)


def _slater_bound(s: Situation, settings: Mapping[str, Setting], c: _Constants, trivial: float | None) -> Bound | None:
    """The soft violation in numbers where a Slater point of margin sigma is known and there are no equalities.

    Then q(lambda) <= F - sigma |lambda| takes the place of Lemma 2.3 in the proof of Lemma 5.6, and Lemma 5.3 (A.15 on the simplex)
    turns the bound of E |Q(t)| into one of the violation's l2 norm over the constraints, whose sum is at most sqrt(N) times that.
    """
    margin = slater_margin(s)
    if s.equalities or margin is None or margin <= 0 or c.F is None:
        return None
    bound_f = c.F

    def violation(rounds: Rounds, horizon: int) -> Floats:
        V, alpha = number(settings, "V", horizon), number(settings, "alpha", horizon)
        theta = number(settings, "theta", horizon) if c.entropic else 0.0
        queue = _queue(c, bound_f, margin, V, alpha, theta, horizon)
        moves = (V * c.D1 + c.D2 * queue) / (alpha * c.beta) + theta * c.diameter
        return np.asarray(math.sqrt(s.constraints) * (queue + rounds.last * c.D2 * moves))

    quantity = Quantity(
        "v", r"\sqrt{N} (E|Q(T)| + D_2 \sum_t E|\mu^{t+1} - \mu^t|)", "queue and moves (Lemmas 5.3 and 5.6)", violation
    )
    note = f"in expectation, by the Slater point{margin_note(s)}"
    return Bound("soft violation", "sqrt(T)", "v", (quantity,), trivial, note)


def _queue(c: _Constants, F: float, sigma: float, V: float, alpha: float, theta: float, horizon: int) -> float:
    """The bound of E |Q(t)|_2 of Lemma 5.6, by Lemma 5.9 over stretches of t_0 = sqrt(T) rounds.

    Lemma 5.9 leaves out e^(zeta / 4 delta_max) of the lemma that it cites, and holds: with r = zeta / (4 t_0 delta_max^2) the second
    moment costs 0.55 r^2 t_0^2 delta_max^2, so that e^(r Z) falls by 0.21 (zeta / delta_max)^2 above theta, and 1.29 / 0.21 < 8.
    """
    t0 = math.ceil(math.sqrt(horizon))
    squared_travel = c.diameter**2 * c.D2**2
    drift = c.G**2 + squared_travel + V**2 * c.D1**2 / (2 * alpha * c.beta) + V * F
    divergence = c.R + (math.log(1 / theta) / c.beta if c.entropic and theta > 0 else 0.0)
    if c.entropic:
        drift += V * theta * c.diameter * c.D1 + alpha * theta * c.R
    total = 2 * drift * t0 + 2 * (1.5 * c.G**2 + squared_travel) * t0**2 + 2 * alpha * divergence
    start = max((total + 2 * V * t0 * F) / (sigma * t0), sigma * t0 / 2)
    step, fall = c.G + c.D2 * c.diameter, sigma / 2
    return start + t0 * 4 * step**2 / fall * math.log(8 * step**2 / fall**2)


_RATES = {"static regret": "sqrt(T)", "soft violation": "sqrt(T)", "equality violation": "sqrt(T)"}

MIRROR_DESCENT = Algorithm(
    name="mirror-descent",
    title="online primal-dual mirror descent",
    cite="Wei, Yu & Neely 2020, Algorithms 1 and 2",
    rule=MirrorDescent,
    requirements=(MIRROR_STEP,),
    theorems=(
        Theorem(
            name="Theorem 3.1",
            measures=frozenset({Measure.STATIC}),
            violation=Violation.SOFT,
            expected=True,
            hypotheses=(
                *_COMMON,
                Hypothesis("The mirror map is that of the Euclidean norm.", _euclidean),
                BOUNDED_DOMAIN,
                BOUNDED_GRADIENT,
                inequalities_have("lipschitz.l2", "Assumption 2.1(1): sum_i |grad g_i|^2 <= D_2^2.", "the gradient"),
            ),
            settings=_settings,
            free=(Free("V"), Free("alpha")),
            positive=("V", "alpha"),
            guarantee=euclidean_guarantee,
            rates=_RATES,
            checks=constant_settings,
        ),
        Theorem(
            name="Theorem 3.2",
            measures=frozenset({Measure.STATIC}),
            violation=Violation.SOFT,
            expected=True,
            hypotheses=(
                *_COMMON,
                ONE_SIMPLEX,
                fact_is_known(
                    "loss.lipschitz.l1",
                    "Assumption 2.1(1): |grad f^t|_inf <= D_1.",
                    "the entries of the gradient of the loss",
                ),
                inequalities_have(
                    "lipschitz.l1", "Assumption 2.1(1): sum_i |grad g_i|_inf^2 <= D_2^2.", "the gradient"
                ),
            ),
            settings=_settings,
            free=(Free("V"), Free("alpha"), Free("theta")),
            norm="l1",
            restart=Restart.FROM_CENTRE,
            positive=("V", "alpha", "theta"),
            guarantee=_entropic_guarantee,
            rates={
                "static regret": "sqrt(T) * log(d)",
                "soft violation": "sqrt(T) * log(T * d)",
                "equality violation": "sqrt(T) * log(T * d)",
            },
            checks=constant_settings,
        ),
    ),
    cost="one mirror step",
    symbols={
        "mu": "the decision of this round",
        "Q": "multipliers of the inequalities",
        "H": "multipliers of the equalities",
    },
)
