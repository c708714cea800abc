"""Comparisons of totals, loss + price x violation over the scored rounds, and the targets that they are held to."""

from __future__ import annotations

import math
from collections.abc import Sequence

from benchmarks.practice.results import OWN, Priced, Results
from oco.evaluation.baselines.rule_table import RuleLine

ALIKE = 1e-6
"""Two numbers that are nearer, relatively, are equal: no rule dominates by less."""
NEAR = 0.02
"""Share by which the default's total may be above a rule's."""
EARLY_NEAR, WIDE_NEAR = 0.05, 0.05
"""Shares by which the first tenth may be above the best cheap rule's, and by which bounds that are too wide may change the total."""


def total(line: RuleLine, price: float) -> float:
    """Loss + price x violation."""
    return line.loss + price * line.violation


def excess(own: float, other: float, wealth: bool) -> float:
    """Share by which a total is above another; of wealth where the loss is its negative logarithm."""
    if wealth:
        return math.expm1(own - other)
    return (own - other) / abs(other) if other else math.copysign(math.inf, own) if own else 0.0


def against(r: Results, p: Priced, line: RuleLine | None) -> float | None:
    """Share by which the default's total is above that of a line."""
    return None if line is None else excess(total(p.default, p.price), total(line, p.price), r.wealth)


def picked(p: Priced) -> RuleLine | None:
    """Rule that was cheapest on the first fifth."""
    return next((x for x in p.rules if x.name == p.picked), None)


def best_of_papers(p: Priced) -> RuleLine | None:
    """Cheapest algorithm of the papers."""
    return min((a for a in p.algorithms if a.name != OWN), key=lambda a: total(a, p.price), default=None)


def dominating(p: Priced) -> list[RuleLine]:
    """Rules with no more loss and no more violation than the default, and less of one."""
    own, slack = p.default, ALIKE * max(abs(p.default.loss), 1.0)
    some = ALIKE * max(own.violation, 1.0)
    return [
        r
        for r in p.rules
        if r.loss <= own.loss + slack
        and r.violation <= own.violation + some
        and (r.loss < own.loss - slack or r.violation < own.violation - some)
    ]


def early(r: Results, p: Priced) -> float | None:
    """Share by which the default's total in the first tenth is above that of the best cheap rule."""
    if p.early is None or not p.early_rules:
        return None
    return excess(total(p.early, p.price), min(total(x, p.price) for x in p.early_rules), r.wealth)


def wide(r: Results, p: Priced) -> float | None:
    """Share by which bounds that are too wide raise the total."""
    return None if p.wide is None else excess(total(p.wide, p.price), total(p.default, p.price), r.wealth)


def missed(r: Results, p: Priced) -> list[str]:
    """Targets that a row misses, in words."""
    compared: Sequence[tuple[float | None, float, str]] = (
        (against(r, p, picked(p)), NEAR, "over the picked rule"),
        (against(r, p, p.rules[0] if p.rules else None), NEAR, "over the best rule"),
        (against(r, p, best_of_papers(p)), ALIKE, "over the papers"),
        (early(r, p), EARLY_NEAR, "over the cheap rules in the first tenth"),
    )
    words = [f"{x:+.1%} {name}" for x, most, name in compared if x is not None and x > most]
    if by := dominating(p):
        words.append(f"dominated by {len(by)}")
    change = wide(r, p)
    return [*words, f"{change:+.1%} with wide bounds"] if change is not None and abs(change) > WIDE_NEAR else words
