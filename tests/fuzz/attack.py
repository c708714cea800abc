"""Every proved fact under attack: sampling, then climbing towards what would break it, with values by the independent evaluator.

Nothing is differentiated: Lipschitz constants are attacked by values at two decisions, smoothness and convexity by three, so that a
wrong derivative of the compiler cannot hide a wrong fact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from fuzz.case import Case, Function, Violation, product
from fuzz.membership import outside
from fuzz.typed import Array, Decision

from oco.compiler.prover.fact import Fact
from oco.compiler.prover.types import Status
from oco.dsl.statements import Timing

ROUNDING = 1e-13
"""Share of the largest number in the making of a value that proofs in doubles, rounded outwards, may be short of beside true values."""
OFF = 1e-9
"""Distance, in shares of their width, by which decisions may lie outside of a set that is not a box."""
Env = dict[str, Array]


@dataclass(frozen=True, eq=False)
class Pair:
    """Two decisions, a round's streams, and the round."""

    x: Env
    y: Env
    streams: Env
    t: float

    def at(self, share: float) -> Env:
        """The decisions this far from x to y, with the streams."""
        between = {n: self.x[n] + np.longdouble(share) * (self.y[n] - self.x[n]) for n in self.x}
        return {**between, **self.streams}

    @property
    def gap(self) -> Array:
        return np.concatenate([np.ravel(np.asarray(self.y[n], dtype=np.longdouble) - self.x[n]) for n in self.x])


Excess = Callable[[Function, Pair, float], tuple[Any, Any]]
"""(function, pair, proved value) -> by how much the fact fails there, and the size of the numbers that it was worked out from."""


def _values(f: Function, pair: Pair, *shares: float) -> tuple[list[Any], float]:
    found, size = [], 0.0
    for share in shares:
        found.append(f(pair.at(share), pair.t))
        size = max(size, f.largest)
    return found, size


def _upper(f: Function, pair: Pair, value: float) -> tuple[Any, Any]:
    (fx,), size = _values(f, pair, 0.0)
    return fx - value, size


def _lower(f: Function, pair: Pair, value: float) -> tuple[Any, Any]:
    (fx,), size = _values(f, pair, 0.0)
    return value - fx, size


def _bound(f: Function, pair: Pair, value: float) -> tuple[Any, Any]:
    (fx,), size = _values(f, pair, 0.0)
    return abs(fx) - value, size


def _lipschitz(norm: float) -> Excess:
    def excess(f: Function, pair: Pair, value: float) -> tuple[Any, Any]:
        (fx, fy), size = _values(f, pair, 0.0, 1.0)
        return abs(fx - fy) - value * np.linalg.norm(pair.gap.astype(float), norm), size

    return excess


def _smooth(f: Function, pair: Pair, value: float) -> tuple[Any, Any]:
    """|f(x) + f(y) - 2 f(m)| <= L |x - y|^2 / 4 at the middle m."""
    (fx, fm, fy), size = _values(f, pair, 0.0, 0.5, 1.0)
    return abs(fx + fy - 2 * fm) - value / 4 * np.sum(pair.gap**2), size


def _strong(f: Function, pair: Pair, value: float) -> tuple[Any, Any]:
    """f(m) <= (f(x) + f(y)) / 2 - mu |x - y|^2 / 8."""
    (fx, fm, fy), size = _values(f, pair, 0.0, 0.5, 1.0)
    return fm - (fx + fy) / 2 + value / 8 * np.sum(pair.gap**2), size


def _structure(f: Function, pair: Pair, value: Any) -> tuple[Any, Any]:
    """Second differences of what is affine are 0, and third ones of what is quadratic."""
    (a, b, c, d), size = _values(f, pair, 0.0, 1 / 3, 2 / 3, 1.0)
    if value in ("linear", "affine"):
        return abs(a - 2 * b + c) + abs(b - 2 * c + d), size
    return (abs(d - 3 * c + 3 * b - a) if value == "quadratic" else -1.0), size


ATTACKS: Mapping[str, Excess] = {
    "upper": _upper,
    "lower": _lower,
    "bound": _bound,
    "lipschitz.l2": _lipschitz(2),
    "lipschitz.l1": _lipschitz(1),
    "smoothness.l2": _smooth,
    "strong_convexity.l2": _strong,
    "convex": lambda f, pair, value: _strong(f, pair, 0.0),
    "structure": _structure,
}
"""By the last part of the key of a fact about a function. A test holds that there is one for each that the language lists."""


def facts(case: Case) -> None:
    """No proved fact about the loss or a constraint is broken by a decision, a round's data, or two decisions."""
    rng = case.rng(3)
    pairs = [pair(case, rng) for _ in range(case.tries(30))]
    for f in case.functions:
        for kind, excess in ATTACKS.items():
            fact = case.facts.get(f"{f.prefix}.{kind}")
            if fact is not None and fact.status is Status.PROVED:
                _attack(case, f, fact, excess, pairs, rng)
    domains(case)
    slater(case)


def _attack(case: Case, f: Function, fact: Fact, excess: Excess, pairs: list[Pair], rng: np.random.Generator) -> None:
    """The pair nearest to breaking the fact, and steps from there."""
    exact = all(b.domain.kind == "box" for b in case.problem.blocks)

    def broken(p: Pair) -> float:
        found, size = excess(f, p, fact.value)
        room = ROUNDING * size + (0.0 if exact else _slack(case, fact, p, size))
        return float(found - room) if np.isfinite(found) and np.isfinite(size) else -np.inf

    scores = [broken(p) for p in pairs]
    best, score = pairs[int(np.argmax(scores))], max(scores)
    for _ in range(case.tries(20)):
        if score > 0:
            break
        trial = moved(case, best, rng)
        reached = broken(trial)
        if reached > score:
            best, score = trial, reached
    if score > 0:
        found, size = excess(f, best, fact.value)
        said = f"{fact.value!r} is exceeded by {float(found):.3g} of {size:.3g} at x = {best.x}, y = {best.y}"
        raise Violation(f"fact {_kind(fact)}", f"{fact.key}: {said}, {best.streams}, t = {best.t}")


def _kind(fact: Fact) -> str:
    return next(k for k in ATTACKS if fact.key.endswith(f".{k}"))


def _slack(case: Case, fact: Fact, p: Pair, size: float) -> float:
    """Amount that decisions outside by a share of their width may add to a value."""
    first = fact.key.rpartition(".")[0]
    slope = case.facts.value(f"{fact.key.partition('.lipschitz')[0].rsplit('.', 1)[0]}.lipschitz.l2")
    assert first
    widths = max(float(np.max(b.domain.upper - b.domain.lower, initial=0.0)) for b in case.problem.blocks)
    return OFF * widths * float(slope) if slope is not None and np.isfinite(slope) else OFF * size


# Where to look.


def pair(case: Case, rng: np.random.Generator) -> Pair:
    """Two decisions, far apart or close together, in one coordinate or in all."""
    p = Pair(case.decisions(rng), case.decisions(rng), case.streams(rng), float(rng.choice(case.rounds)))
    return closer(p, float(rng.choice((1.0, 1.0, 0.1, 1e-3))))


def closer(p: Pair, share: float) -> Pair:
    """The second decision moved towards the first."""
    return Pair(p.x, {n: np.asarray(p.x[n] + share * (p.y[n] - p.x[n])) for n in p.x}, p.streams, p.t)


def moved(case: Case, p: Pair, rng: np.random.Generator) -> Pair:
    """A pair nearby: one decision, one stream, the distance or the round changed."""
    draw = rng.random()
    if draw < 0.25:
        return closer(p, float(rng.choice((0.3, 0.03, 1e-3))))
    if draw < 0.45:
        other = case.decisions(rng)
        share = float(rng.choice((1.0, 0.3, 0.05)))
        x = {n: np.asarray(p.x[n] + share * (other[n] - p.x[n])) for n in p.x}
        near = {n: np.asarray(x[n] + (p.y[n] - p.x[n])) for n in p.x}
        inside = all(b.domain.contains(near[b.name], 0.0) for b in case.problem.blocks)
        return Pair(x, near if inside else p.y, p.streams, p.t)
    if draw < 0.6:
        return Pair(p.y, p.x, p.streams, p.t)
    if draw < 0.75 or not p.streams:
        return Pair(p.x, case.decisions(rng), p.streams, float(rng.choice(case.rounds)))
    name = str(rng.choice(list(p.streams)))
    other = case.streams(rng)[name]
    mask = rng.random(np.shape(other)) < rng.choice((0.2, 0.5, 1.0))
    return Pair(p.x, p.y, {**p.streams, name: np.where(mask, other, p.streams[name])}, p.t)


# Facts about the domain.


def domains(case: Case) -> None:
    """Diameters and radii hold for pairs of decisions, and a ball of the inner radius lies in the set."""
    rng, facts = case.rng(4), case.facts
    sizes: dict[str, Callable[[Array, Array], float]] = {
        "domain.diameter.l2": lambda x, y: float(np.linalg.norm(x - y)),
        "domain.diameter.l1": lambda x, y: float(np.abs(x - y).sum()),
        "domain.radius": lambda x, y: float(np.linalg.norm(x)),
    }
    if all(b.domain.geometry == "euclidean" for b in case.problem.blocks):
        centre = np.concatenate([np.ravel(b.domain.centre()) for b in case.problem.blocks])
        sizes["domain.bregman_diameter"] = lambda x, y: float(np.sum((x - y) ** 2)) / 2
        sizes["domain.bregman_radius"] = lambda x, y: float(np.sum((x - centre) ** 2)) / 2
    for _ in range(case.tries(30)):
        x, y = (np.concatenate([np.ravel(v) for v in case.decisions(rng).values()]) for _ in range(2))
        for key, size in sizes.items():
            fact = facts[key]
            rounding = ROUNDING * float(np.max(np.abs([x, y]), initial=0.0))
            if fact.status is Status.PROVED and size(x, y) > fact.value * (1 + OFF) + rounding * x.size:
                raise Violation(f"fact {key}", f"{fact.value} is less than {size(x, y)} at {x}, {y}")
    for block, decision in zip(case.problem.blocks, case.tree.of(Decision)):
        for _ in range(case.tries(4)):
            step = block.domain.tangent(rng.normal(size=block.shape))
            length = float(np.linalg.norm(step))
            if length > 1e-9:
                x = block.domain.inner_centre + block.domain.inner_radius / length * step
                _inside(case, decision, x, "inner radius")


def _inside(case: Case, decision: Decision, x: Array, what: str) -> None:
    domain = next(b.domain for b in case.problem.blocks if b.name == decision.name)
    rounding = ROUNDING * float(np.max(np.abs(x), initial=0.0)) / OFF  # also of entries that are fixed
    widths = np.maximum(np.broadcast_to(domain.upper - domain.lower, domain.shape), rounding)
    share = outside(case.evaluator, decision, x, widths)
    if share > OFF:
        raise Violation(what, f"{decision.text}: {x} lies outside by {share:.3g} of its width")


# Slater points.


def slater(case: Case) -> None:
    """At the Slater point every inequality has the margin to spare: in every round where one binds each round, else in the mean."""
    with product():
        margin, point = case.facts["slater.margin"], case.facts["slater.point"]
    if margin.status is not Status.PROVED or not case.problem.inequalities:
        return
    x = point.value if isinstance(point.value, dict) else {case.problem.blocks[0].name: point.value}
    for decision in case.tree.of(Decision):
        _inside(case, decision, np.asarray(x[decision.name]), "slater point outside the domain")
    rng, labels = case.rng(5), {c.label for c in case.problem.inequalities}
    for env in _rounds(case, rng):
        for f in (f for f in case.functions if f.prefix.removeprefix("constraints.").partition("[")[0] in labels):
            for t in case.rounds:
                g = f({**x, **env}, t)
                if g > -margin.value + ROUNDING * f.largest + 1e-9 * abs(margin.value):
                    raise Violation("slater margin", f"{f.prefix} is {g} at {x}, {env}, t = {t}: not {-margin.value}")


def _rounds(case: Case, rng: np.random.Generator) -> Iterator[Env]:
    each_round = any(c.timing is Timing.EACH_ROUND for c in case.problem.inequalities)
    means = {s.name: np.broadcast_to(s.mean, s.shape) for s in case.problem.streams if s.mean is not None}
    for _ in range(case.tries(40)):
        yield {**case.streams(rng), **({} if each_round else means)}
