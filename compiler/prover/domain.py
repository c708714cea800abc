"""Facts of the domain: sizes of the product of the decisions' sets, from those of each set."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

from oco.compiler.domains import Domain
from oco.compiler.problem.canonical import Canonical, DecisionBlock
from oco.compiler.prover.fact import Fact
from oco.compiler.prover.phrasing import number
from oco.compiler.prover.types import ProofRule, Status, Step
from oco.dsl.intervals import interval


def upward(value: float) -> float:
    """A little more than a floating-point result that is correct to a few units in the last place; integers stay."""
    return value if value == 0 or math.isinf(value) or value == round(value) else value * (1 + 2**-50)


def downward(value: float) -> float:
    """Value rounded downwards, where it is not an integer."""
    return value if value == 0 or math.isinf(value) or value == round(value) else value * (1 - 2**-50)


def domain_facts(canonical: Canonical) -> Iterator[Fact]:
    """Diameters, radii and Bregman diameter of the whole decision."""
    blocks = canonical.blocks
    yield _combined(
        "domain.diameter.l2", "largest l2 distance of two points", blocks, lambda d: d.diameter("l2"), _root_sum
    )
    yield _combined("domain.diameter.l1", "largest l1 distance of two points", blocks, lambda d: d.diameter("l1"), _sum)
    yield _combined("domain.radius", "largest l2 norm of a point", blocks, lambda d: d.radius, _root_sum)
    yield _combined("domain.inner_radius", "inner radius", blocks, lambda d: d.inner_radius, _least)
    yield _combined(
        "domain.bregman_radius", "largest divergence from the centre", blocks, lambda d: d.bregman_radius, _sum
    )
    diameter = _combined(
        "domain.bregman_diameter", "largest divergence of two points", blocks, lambda d: d.bregman_diameter, _sum
    )
    if diameter.value is None and all(math.isfinite(b.domain.diameter("l2")) for b in blocks):
        why = Step(ProofRule.DOMAIN, "the divergence of the entropy has no bound near the boundary of the simplex")
        diameter = Fact("domain.bregman_diameter", None, Status.UNKNOWN, why)
    yield diameter


def _combined(
    key: str,
    words: str,
    blocks: tuple[DecisionBlock, ...],
    measure: Callable[[Domain], float],
    combine: Callable[[list[float]], float],
) -> Fact:
    round_off = downward if combine is _least else upward
    loose = any(key.removeprefix("domain.") in b.domain.bounds_only for b in blocks)
    values = [round_off(float(measure(b.domain))) for b in blocks]
    steps = tuple(
        Step(ProofRule.DOMAIN, f"{words} of {b.domain} in {_dimension(b)} is {number(v)}", v, (), b.span, (key, b))
        for b, v in zip(blocks, values)
    )
    if len(blocks) == 1:
        return _known(Fact(key, values[0], Status.PROVED, steps[0], loose=loose))
    total = combine(values)
    how = HOW[combine]
    why = Step(
        ProofRule.PRODUCT_DOMAIN,
        f"over all decisions: the {how} of these, {number(total)}",
        total,
        steps,
        None,
        (key, blocks),
    )
    return _known(Fact(key, total, Status.PROVED, why, loose=loose))


def _known(fact: Fact) -> Fact:
    """The fact, unknown where it is no number."""
    return fact if math.isfinite(fact.value) else Fact(fact.key, None, Status.UNKNOWN, fact.why)


def _dimension(block: DecisionBlock) -> str:
    return "x".join(map(str, block.shape)) + " dimensions" if block.shape else "1 dimension"


def _root_sum(values: list[float]) -> float:
    squares = interval(values, values).square().sum().sqrt()
    return squares.greatest


def _sum(values: list[float]) -> float:
    return interval(values, values).sum().greatest


def _least(values: list[float]) -> float:
    return min(values)


HOW: Mapping[Callable[[list[float]], float], str] = {
    _root_sum: "root of the sum of squares",
    _sum: "sum",
    _least: "least",
}
