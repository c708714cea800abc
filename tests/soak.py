"""Many rounds of every algorithm over sets of every kind, with streams that do their worst: nothing drifts out, nothing overflows.

`python tests/soak.py` plays 10^7 rounds in C and 10^5 in NumPy and prints the worst of each; its exit status is 1 where one drifts.
`test_drift.py` plays fewer rounds of some. Sets are looked at by their definitions here, not by the code that projects.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from time import perf_counter
from typing import Any

import numpy as np

import oco
from oco.backends.base import Compiled, Recorded
from oco.compiler.algorithms import ALGORITHMS
from oco.dsl.diagnostics import OcoError
from oco.plan import Plan

Array = np.ndarray[Any, Any]
TOLERANCE = 1e-9
"""Distance by which a decision may lie outside its set, of size about 1, as `docs/domains.md` promises of iterative projections."""

TEXT = """\
model soak
horizon T = {horizon}
decision x{shape} in {domain}
{data} c{shape} {distribution}in [-1, 1]
stream need {distribution}in [0, 1]
minimize {loss}
{constraints}
{feedback}
using {algorithm}
"""
EDGES = "[[0, 1], [0, 2], [1, 2], [1, 3], [2, 3]]"


@dataclass(frozen=True)
class Set:
    """A set in the model's words, the linear loss and a row over it, and how far decisions (rounds first) lie outside of it."""

    domain: str
    shape: str
    outside: Callable[[Array], Array]
    linear: str = "c @ x"
    row: str = "x[0] + x[1]"


def _most(*violations: Array) -> Array:
    """The largest of some excesses in each round."""
    return np.max([e.reshape(len(e), -1).max(axis=1) for e in violations], axis=0)


def _norm(x: Array) -> Array:
    return np.sqrt(np.square(x).sum(axis=1))


def _simplex(x: Array) -> Array:
    return _most(-x, np.abs(x.sum(axis=1, keepdims=True) - 1))


def _flow(x: Array) -> Array:
    """Distance outside the unit flows of the graph `EDGES` from 0 to 3."""
    balance = np.stack([x[:, 0] + x[:, 1] - 1, x[:, 0] - x[:, 2] - x[:, 3], x[:, 1] + x[:, 2] - x[:, 4]], axis=1)
    return _most(-x, np.abs(balance))


def _birkhoff(x: Array) -> Array:
    return _most(-x, np.abs(x.sum(axis=1) - 1), np.abs(x.sum(axis=2) - 1))


def _spectrahedron(x: Array) -> Array:
    trace = np.trace(x, axis1=1, axis2=2)[:, None]
    return _most(-np.linalg.eigvalsh(x), np.abs(trace - 1), np.abs(x - x.transpose(0, 2, 1)))


MATRIX = {"linear": "sum(c * x)", "row": "x[0, 0] + x[1, 1]"}
SETS = {
    "box": Set("box(-0.3, 1)", "[3]", lambda x: _most(-0.3 - x, x - 1)),
    "simplex": Set("simplex", "[3]", _simplex),
    "ball": Set("ball(1)", "[3]", lambda x: _norm(x) - 1),
    "cut box": Set(
        "box(0, 1) with x[0] + 2 * x[1] <= 1, x[1] + x[2] <= 0.7",
        "[3]",
        lambda x: _most(-x, x - 1, (x[:, :1] + 2 * x[:, 1:2]) - 1, x[:, 1:2] + x[:, 2:] - 0.7),
    ),
    "cut ball": Set("ball(1) with x[0] + x[1] <= 0.5", "[3]", lambda x: _most(_norm(x) - 1, x[:, 0] + x[:, 1] - 0.5)),
    "l1 ball": Set("l1_ball(1)", "[3]", lambda x: np.abs(x).sum(axis=1) - 1),
    "budget": Set("budget(0, 1, 1.5)", "[3]", lambda x: _most(-x, x - 1, np.abs(x.sum(axis=1, keepdims=True) - 1.5))),
    "flow": Set(f"flow({EDGES}, 0, 3)", "[5]", _flow, row="x[0] + x[3]"),
    "birkhoff": Set("birkhoff(3)", "[3, 3]", _birkhoff, **MATRIX),
    "nuclear ball": Set(
        "nuclear_ball(1)", "[3, 2]", lambda x: np.linalg.svd(x, compute_uv=False).sum(axis=1) - 1, **MATRIX
    ),
    "spectrahedron": Set("spectrahedron(1)", "[3, 3]", _spectrahedron, **MATRIX),
}


def models(algorithm: str, of: Set, horizon: int) -> Iterator[str]:
    """Models over a set, one kind after another: an algorithm plays the first that it takes."""
    cap, fixed = f"cap: {of.row} - need - 0.5 <= 0", f"cap: {of.row} - 0.5 <= 0  on average"
    share = f"share: {of.row} - 0.1 * need - 0.5 == 0  on average"
    spend = f"spend: {of.row} + 0.6 <= {0.5 * horizon}  in total"
    constraints = [
        (f"{cap}  each round", ""),
        (fixed, ""),
        (f"{cap}  on average", "iid "),
        (share, "iid "),
        ("", ""),
        (spend, ""),
    ]
    for feedback in ("", "predict c = last(c)", "feedback two_point", "feedback bandit"):
        for loss in (of.linear, f"{of.linear} + sum_squares(x)"):
            for constraint, distribution in constraints:
                yield TEXT.format(
                    data="context" if constraint == spend else "stream",
                    horizon=horizon,
                    shape=of.shape,
                    domain=of.domain,
                    distribution=distribution,
                    loss=loss,
                    constraints=f"subject to\n    {constraint}" if constraint else "",
                    feedback=feedback,
                    algorithm=algorithm,
                )


def plan_over(algorithm: str, of: Set, horizon: int) -> Plan | None:
    """A plan of the algorithm over a set; None where it takes no model over it."""
    for text in models(algorithm, of, horizon):
        try:
            plan = oco.compile(oco.parse(text))
            assert plan.program is not None
        except OcoError:
            continue
        return plan
    return None


WAYS: list[Callable[[Array, np.random.Generator], Array]] = [
    lambda u, rng: np.ones_like(u),
    lambda u, rng: np.where(np.arange(u.shape[-1]) % 2 == 0, 1.0, -1.0) * np.ones_like(u),
    lambda u, rng: np.where(np.arange(len(u)) % 2 == 0, 1.0, -1.0)[:, None] * np.ones_like(u),
    lambda u, rng: np.sign(u),
    lambda u, rng: u,
    lambda u, rng: u**41,
    lambda u, rng: np.where(rng.random(len(u)) < 1e-3, 1.0, 0.0)[:, None] * np.sign(u),
    lambda u, rng: np.where(np.arange(len(u)) % 7 == 0, 5e-324, -0.0)[:, None] * np.ones_like(u),
    lambda u, rng: -np.ones_like(u),
]
"""Behaviour of streams for a block of rounds, within [-1, 1]: stay at an end, jump between the ends, heavy tails, rare jumps, nothing."""


def streams(plan: Plan, rounds: int, rng: np.random.Generator) -> Iterator[list[Array]]:
    """Values that each block of rounds reveals, over and over: every input does its own of `WAYS`, all pairs of neighbours in turn."""
    inputs = plan.program.feedback
    sizes = [int(np.prod(f.type.shape)) for f in inputs]
    drawn = [rng.uniform(-1, 1, (rounds, size)) for size in sizes]
    blocks = []
    for k in range(len(WAYS)):
        values = [WAYS[(k * (j + 1)) % len(WAYS)](u, rng) for j, u in enumerate(drawn)]
        blocks.append([_within(plan, f.name, f.type.shape, v) for f, v in zip(inputs, values)])
    return cycle(blocks)


def _within(plan: Plan, name: str, shape: tuple[int, ...], values: Array) -> Array:
    """Values of [-1, 1] in the bounds of an input; those that are small stay small."""
    made, known = values.reshape(len(values), *shape), plan.contract.ranges.get(name)
    lower, upper = (-1.0, 1.0) if known is None else (np.maximum(known.lower, -1.0), np.minimum(known.upper, 1.0))
    return np.ascontiguousarray(np.clip(made, lower, upper))


def draws(plan: Plan, rounds: int, rng: np.random.Generator) -> list[Array]:
    """The algorithm's own random arrays of a block."""
    fields = [(f.name, (rounds, *f.type.shape)) for f in plan.program.draws]
    return [rng.normal(size=s) if plan.contract.distributions.get(n) == "normal" else rng.random(s) for n, s in fields]


@dataclass(frozen=True)
class Worst:
    """The farthest outside the set, and the largest number of the state but the round, over some rounds."""

    rounds: int
    outside: float
    largest: float
    finite: bool

    @property
    def stays(self) -> bool:
        return self.finite and self.outside <= TOLERANCE and self.largest < 1e100


def soaked(plan: Plan, of: Set, backend: str, rounds: int, block: int = 50_000) -> Worst:
    """Play rounds in blocks of streams."""
    rng, compiled = np.random.default_rng(0), plan.compiled(backend)
    state = compiled.init(*(plan.contract.start[f.name] for f in plan.program.decision))
    block = min(block, rounds)
    outside, largest, finite, played = -np.inf, 0.0, True, 0
    for inputs in islice(streams(plan, block, rng), -(-rounds // block)):
        recorded = _block(compiled, state, inputs, draws(plan, block, rng), block)
        state, x = recorded.state, recorded.kept["decisions"].reshape(-1, *plan.program.decision[0].type.shape)
        finite = finite and recorded.rounds == block and bool(np.isfinite(x).all())
        finite = finite and all(np.isfinite(v).all() for v in state)
        if not finite:
            break
        played += block
        outside = max(outside, float(of.outside(x).max()))
        largest = max(largest, *(float(np.abs(v).max(initial=0)) for v in map(np.asarray, state[1:])))
    assert not finite or int(state[0]) == played + 1
    return Worst(played, outside, largest, finite)


def _block(compiled: Compiled, state: Any, inputs: list[Array], drawn: list[Array], rounds: int) -> Recorded:
    """A block in one call of the compiled program, or round by round."""
    if compiled.run is not None:
        return compiled.run(state, inputs, drawn, rounds, ["decisions"])
    found = []
    program = compiled.program
    fields = [f.name for f in program.feedback]
    known = [fields.index(name) for name in program.context]
    places = {f.name: k for k, f in enumerate(program.state)}
    kept = {fields.index(name): places[field] for name, field in program.previous}
    for t in range(rounds):
        own = [d[t] for d in drawn]
        if compiled.prepare is not None:
            state = compiled.prepare(*state, *(inputs[k][t] for k in known))
        found.append(np.asarray(compiled.decide(*state, *own)[0]))
        seen = (state[kept[k]] if k in kept else v[t] for k, v in enumerate(inputs))
        state = compiled.update(*state, *seen, *own)
    return Recorded(rounds, state, {"decisions": np.stack(found)})


SLOW_SETS = ("flow", "birkhoff", "nuclear ball", "spectrahedron", "cut ball", "l1 ball", "budget")
"""Sets of which a tenth of the rounds is played."""
SHORT, LONG = 1_000, 10**7


def cases() -> Iterator[tuple[str, str, int, str, int]]:
    """Algorithm, set, horizon, backend, rounds: far beyond a short horizon, where steps are long, and up to the end of a long one."""
    for algorithm in (a.name for a in ALGORITHMS):
        for name in SETS:
            yield algorithm, name, SHORT, "c", 10**6 if name in SLOW_SETS else 10**7
        if algorithm != "meta-frank-wolfe":  # its state grows with the root of the horizon
            yield algorithm, "simplex", LONG, "c", 10**7
        yield algorithm, "box", SHORT, "numpy", 10**5


def main() -> int:
    """Print a line for each case that an algorithm takes."""
    drifted, total, wanted = 0, 0, sys.argv[1:]
    for algorithm, name, horizon, backend, rounds in cases():
        if wanted and algorithm not in wanted:
            continue
        plan = plan_over(algorithm, SETS[name], horizon)
        if plan is None or (backend == "c" and not shutil.which("cc")):
            continue
        began = perf_counter()
        worst = soaked(plan, SETS[name], backend, rounds)
        took, total, drifted = perf_counter() - began, total + worst.rounds, drifted + (not worst.stays)
        print(
            f"{algorithm:17}{name:14}T = {horizon:<9}{backend:6}{worst.rounds:9} rounds  outside {max(worst.outside, 0):7.1e}"
            f"  largest {worst.largest:7.1e}{'' if worst.stays else '  DRIFTS'}  ({took:.1f} s)",
            flush=True,
        )
    print(f"{total:.3g} rounds, {drifted} cases drift")
    return 1 if drifted else 0


if __name__ == "__main__":
    sys.exit(main())
