"""Witnesses against convexity: two decisions and stream values where the function in the middle exceeds the mean of its ends.

The search is heuristic; a witness counts only after its excess was evaluated in interval arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import numpy as np

from oco.compiler.problem.calculus import gradient
from oco.compiler.problem.jacobians import jacobian
from oco.compiler.prover.curvature.hessian import USUAL_ROWS
from oco.compiler.prover.phrasing import coordinates, number
from oco.compiler.prover.ranges.enclosure import Enclosure
from oco.compiler.prover.search_budget import Allowance, size
from oco.compiler.prover.types import Witness
from oco.dsl.diagnostics import OcoError
from oco.dsl.evaluate import Evaluation, evaluate
from oco.dsl.expressions import Expr, Kind, names
from oco.dsl.intervals import point
from oco.dsl.magnitudes import SMALLEST

if TYPE_CHECKING:
    from oco.compiler.prover.context import ProofContext

Floats = np.ndarray[Any, Any]
Decision = Mapping[str, Floats]
LEAST_VIOLATION = 1e-6  # relative to the values involved
PAIRS = 160
SHARE = 0.25
"""Share of the available steps that one search may take."""
STEADY, PART, WRITE = 10, 2, 80
"""Steps that an evaluation takes, more for each part, and for each part and row of a Hessian that is written out."""


def convexity_witness(setting: ProofContext, expr: Expr, seed: int = 0) -> Witness | None:
    """Witness that `expr` is not convex in the decisions; None where the search finds nothing."""
    rng = np.random.default_rng(seed)
    streams = names(expr, Kind.STREAM)
    best: tuple[float, Decision, Decision, Decision] | None = None
    search = setting.search.part(SHARE)
    cost = 3 * (STEADY + PART * Evaluation(expr).steps)
    for x, y, env in _pairs(setting, expr, streams, rng, search):
        if not search.take(cost):
            break
        violation = _violation(expr, x, y, env)
        if np.isfinite(violation) and (best is None or violation > best[0]):
            best = (violation, x, y, env)
            if violation > 1e-3:
                result = _certified(setting, expr, x, y, env)
                if result is not None:
                    return result
    if best is None or best[0] <= LEAST_VIOLATION:
        return None
    return _certified(setting, expr, *best[1:])


def _middle(x: Decision, y: Decision) -> Decision:
    return {n: x[n] / 2 + y[n] / 2 for n in x}


def _violation(expr: Expr, x: Decision, y: Decision, env: Decision) -> float:
    """Relative to the largest of the three values (or 1e-300)."""
    t = float(env["t"])
    ends = float(evaluate(expr, {**env, **x}, t)), float(evaluate(expr, {**env, **y}, t))
    middle = float(evaluate(expr, {**env, **_middle(x, y)}, t))
    return (middle - (ends[0] / 2 + ends[1] / 2)) / max(abs(middle), abs(ends[0]), abs(ends[1]), SMALLEST)


def _certified(setting: ProofContext, expr: Expr, x: Decision, y: Decision, env: Decision) -> Witness | None:
    """The witness, if rounding cannot explain its excess and its decisions are in the domain."""
    blocks = setting.canonical.blocks
    if not all(b.domain.contains(p[b.name]) for b in blocks for p in (x, y)):
        return None

    def at(p: Decision) -> Any:
        box = {n: point(v) for n, v in {**env, **p}.items()}
        return Enclosure({**setting.box, **box})(expr)

    try:
        first, second, middle = at(x), at(y), at(_middle(x, y))
    except OcoError:
        return None
    violation = middle.least - (first.greatest / 2 + second.greatest / 2)
    scale = max(float(v.magnitude.max()) for v in (first, second, middle))
    if not violation > LEAST_VIOLATION * max(scale, SMALLEST):
        return None
    where = " and ".join(", ".join(f"{n} = {coordinates(v)}" for n, v in p.items()) for p in (x, y))
    env = {n: v for n, v in env.items() if n != "t" or names(expr, Kind.ROUND)}
    with_streams = ", ".join(f"{n} = {coordinates(v)}" for n, v in env.items())
    words = f"halfway between {where} the function is {number(violation)} above the mean of its values at the two"
    words += f", with {with_streams}" if env else ""
    values = {f"{n} (first)": v for n, v in x.items()} | {f"{n} (second)": v for n, v in y.items()} | dict(env)
    return Witness(values, violation, words)


def _pairs(
    setting: ProofContext, expr: Expr, streams: list[str], rng: np.random.Generator, search: Allowance
) -> Iterator[tuple[Decision, Decision, Decision]]:
    """Pairs of decisions with stream values: along bad eigenvectors of the Hessian, along few coordinates, and anywhere."""
    blocks = setting.canonical.blocks
    yield from _along_eigenvectors(setting, expr, streams, rng, search)
    for k in range(PAIRS):
        if not search.take(sum(b.domain.sampling_cost for b in blocks)):
            return
        env = _draw(setting, streams, rng)
        samples = {b.name: b.domain.sample(rng, 2) for b in blocks}
        x, y = ({n: s[i] for n, s in samples.items()} for i in (0, 1))
        yield x, _sparse(setting, x, y, rng) if k % 2 else y, env


def _sparse(setting: ProofContext, x: Decision, y: Decision, rng: np.random.Generator) -> Decision:
    """y with all but one or two entries as in x, where that stays in the domain."""
    results = {n: v.copy() for n, v in x.items()}
    name = str(rng.choice(list(x)))
    flat = results[name].reshape(-1)
    for i in rng.choice(flat.size, size=min(flat.size, int(rng.integers(1, 3))), replace=False):
        flat[i] = y[name].reshape(-1)[i]
    block = setting.blocks[name]
    return results if block.domain.contains(results[name]) else y


def _draw(setting: ProofContext, streams: list[str], rng: np.random.Generator) -> dict[str, Floats]:
    """Stream values: corners of their box more often than not. The round: the first, the last, or any."""
    last = setting.canonical.horizon or 1000
    env: dict[str, Floats] = {"t": np.asarray(rng.choice([1.0, float(last), float(rng.integers(1, last + 1))]))}
    for name in streams:
        lo, hi = setting.box[name].expanded()
        lo, hi = np.clip(lo, -1e6, 1e6), np.clip(hi, -1e6, 1e6)
        share = rng.random(lo.shape) if rng.random() < 0.3 else rng.integers(0, 2, lo.shape).astype(float)
        value = lo + share * (hi - lo)
        env[name] = np.round(value) if setting.streams[name].integer else value
    return env


def _along_eigenvectors(
    setting: ProofContext, expr: Expr, streams: list[str], rng: np.random.Generator, search: Allowance
) -> Iterator[tuple[Decision, Decision, Decision]]:
    """Around sampled decisions, along the eigenvector of the least eigenvalue, as far as the domain goes."""
    canonical = setting.canonical
    if not (setting.hessians.smooth(expr) and search.fits(canonical.size, USUAL_ROWS)):
        return
    if not search.take(WRITE * canonical.size * size(expr)):
        return
    order = [b.name for b in canonical.blocks]
    slopes = {n: setting.simplify(g) for n, g in gradient(expr, order).items()}
    second = {n: jacobian(g, order) for n, g in slopes.items()}
    cost = STEADY + PART * sum(size(h) for row in second.values() for h in row.values())
    for _ in takewhile(lambda _: search.take(cost), range(24)):
        env = _draw(setting, streams, rng)
        x = {b.name: b.domain.sample(rng, 1)[0] for b in canonical.blocks}
        hessian = _hessian(setting, second, slopes, {**env, **x})
        if hessian is None:
            continue
        values, vectors = np.linalg.eigh(hessian)
        if values[0] >= 0:
            continue
        direction = _split(setting, vectors[:, 0])
        longest = _longest_step(setting, x, direction)
        for part in (longest, longest / 8):
            yield (
                {n: x[n] - part * direction[n] for n in x},
                {n: x[n] + part * direction[n] for n in x},
                env,
            )


def _hessian(
    setting: ProofContext, second: Mapping[str, Mapping[str, Expr]], slopes: Mapping[str, Expr], env: Decision
) -> Floats | None:
    rows = []
    for b in setting.canonical.blocks:
        row: list[Floats] = []
        for other in setting.canonical.blocks:
            value = evaluate(second[b.name][other.name], env, float(env["t"]))
            lead = b.shape if value.shape != other.shape or slopes[b.name].shape else ()
            full = np.broadcast_to(value, (*lead, *other.shape)) if value.shape != (*b.shape, *other.shape) else value
            row.append(np.broadcast_to(full.reshape(-1, other.domain.size), (b.domain.size, other.domain.size)))
        rows.append(np.concatenate(row, axis=1))
    matrix = np.concatenate(rows)
    return (matrix + matrix.T) / 2 if np.isfinite(matrix).all() else None


def _split(setting: ProofContext, vector: Floats) -> dict[str, Floats]:
    result, at = {}, 0
    for b in setting.canonical.blocks:
        result[b.name] = vector[at : at + b.domain.size].reshape(b.shape)
        at += b.domain.size
    return result


def _longest_step(setting: ProofContext, x: Decision, direction: Decision) -> float:
    """Largest step that stays in the domain both ways, by bisection."""
    blocks = setting.canonical.blocks
    low, high = 0.0, float(max(np.linalg.norm(b.domain.upper - b.domain.lower) for b in blocks))

    def inside(step: float) -> bool:
        return all(b.domain.contains(x[b.name] + s * direction[b.name], 0.0) for b in blocks for s in (step, -step))

    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if inside(middle) else (low, middle)
    return low
