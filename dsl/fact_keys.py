"""Catalogue of facts: the keys, the direction of a useful bound on each, and their descriptions."""

from __future__ import annotations

import re

from oco.dsl.records import dataclass


@dataclass(frozen=True, slots=True)
class FactKey:
    """Key of a fact. `relation` is the bound that a theorem can use: "<=" an upper one, ">=" a lower one, "" for a yes
    or no or a point.
    """

    key: str
    relation: str
    words: str


FUNCTION_FACTS: tuple[FactKey, ...] = (
    FactKey("convex", "", "convex in the decisions for every value of the streams"),
    FactKey("bound", "<=", "largest absolute value"),
    FactKey("upper", "<=", "largest value"),
    FactKey("lower", ">=", "smallest value"),
    FactKey("lipschitz.l2", "<=", "largest l2 norm of the gradient"),
    FactKey("lipschitz.l1", "<=", "largest linf norm of the gradient"),
    FactKey("smoothness.l2", "<=", "Lipschitz constant of the gradient in l2"),
    FactKey("strong_convexity.l2", ">=", "modulus of strong convexity in l2"),
    FactKey("structure", "", "linear, affine, quadratic, separable or general"),
)

MODEL_FACTS: tuple[FactKey, ...] = (
    FactKey("loss.exp_concavity", ">=", "theta with exp(-theta times the loss) concave in the decisions"),
    FactKey("domain.diameter.l2", "<=", "largest l2 distance of two decisions"),
    FactKey("domain.diameter.l1", "<=", "largest l1 distance of two decisions"),
    FactKey("domain.radius", "<=", "largest l2 norm of a decision"),
    FactKey("domain.inner_radius", ">=", "radius of a ball that the domain holds"),
    FactKey("domain.bregman_radius", "<=", "largest Bregman divergence of a decision from the domain's centre"),
    FactKey("domain.bregman_diameter", "<=", "largest Bregman divergence of two decisions"),
    FactKey("domain.projection", "", "what a projection onto the domain costs"),
    FactKey("domain.linear_minimisation", "", "what a linear minimisation over the domain costs"),
    FactKey("domain.penalized_step", "", "what a step with penalties for the constraints costs, as in `coldq`"),
    FactKey("feasible.common", "", "one decision satisfies every round's constraints"),
    FactKey("feasible.each_round", "", "each round has a decision that satisfies its constraints"),
    FactKey("feasible.mean", "", "one decision satisfies the constraints in the mean"),
    FactKey("slater.margin", ">=", "by how much one decision satisfies every inequality strictly"),
    FactKey("slater.point", "", "a decision that satisfies every inequality strictly"),
    FactKey("multipliers.bounded", "", "the optimal multipliers are bounded"),
    FactKey("path_length", "<=", "sum over the rounds of the l2 distance between successive best decisions"),
    FactKey("variation.gradient", "<=", "sum over the rounds of the largest squared change of the loss's gradient"),
    FactKey("variation.constraint", "<=", "sum over the rounds of the largest change of the constraints"),
    FactKey("V_x", "<=", "exponent of the path length: it is at most T ** V_x"),
    FactKey("V_g", "<=", "exponent of the variation of the constraints: it is at most T ** V_g"),
)


CLAIMS = ("convex", "feasible.common", "feasible.each_round", "feasible.mean", "slater.point", "multipliers.bounded")
"""Facts of the yes-or-no kind, or the ends of their keys: `assume KEY` says that one holds."""


def is_claim(key: str) -> bool:
    """True for facts of the yes-or-no kind, of the loss, a constraint or the model."""
    plain = of_the_whole(key)
    return any(plain == claim or plain.endswith(f".{claim}") for claim in CLAIMS)


def of_the_whole(key: str) -> str:
    """Key without the entry: `constraints.limits.bound` for `constraints.limits[0].bound`."""
    return re.sub(r"\[[0-9, ]+\]", "", key)


def catalogue(labels: tuple[str, ...]) -> dict[str, FactKey]:
    """Keys of a model with these constraint labels: `loss.convex`, `constraints.service.bound`, `domain.radius`, ..."""
    keys = [FactKey(f"loss.{f.key}", f.relation, f"of the loss: {f.words}") for f in FUNCTION_FACTS]
    for label in labels:
        keys += [
            FactKey(f"constraints.{label}.{f.key}", f.relation, f"of constraint {label}: {f.words}")
            for f in FUNCTION_FACTS
        ]
    return {f.key: f for f in (*keys, *MODEL_FACTS)}
