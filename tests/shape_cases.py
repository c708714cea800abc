"""Every statement of the language over shapes that are easy to forget: numbers, arrays of one entry, single rows and columns."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice
from math import prod
from typing import Any

import numpy as np

import oco
from oco.compiler.problem.canonical import StreamRange
from oco.dsl.diagnostics import OcoError
from oco.evaluation.revealed import Revealed
from oco.plan import Plan

Shape = tuple[int, ...]
SHAPES: tuple[Shape, ...] = ((), (1,), (1, 1), (1, 3), (3, 1))
TIMINGS = ("each round", "on average")

DOMAINS = (
    "box(0, 1)",
    "box(-1, 1) with {x} <= 0.9",
    "box(-1, 1) with sum({x}) == 0.5",
    "ball(1)",
    "ball(1) with sum({x}) <= 0.5",
    "l1_ball(2)",
    "simplex",
    "nonneg_ball(1)",
    "polytope({rows}, ones({twice}))",
    "ellipsoid(eye({n}))",
    "nuclear_ball(1)",
    "spectrahedron(1)",
    "birkhoff(1)",
    "budget(0, 1, 0.5)",
    "capped_simplex(1)",
    "group_ball(1, zeros({n}))",
    "group_ball(1, repeat(0, {n}))",
    "flow({edges}, 0, 1)",
)
CONSTRAINTS = (
    "s * x <= 0.9",
    "s * x + 0.1 * x >= -0.9",
    "x + s <= 2.5",
    "0.5 * s * x == 0",
    "w * x <= 0.9",
    "x == w",
    "A @ {flat} <= 0.9",
    "s * square(x) <= 0.9",
    "square(x) + s * x <= 2",
    "abs(x) + exp(0.1 * s * x) <= 3",
    "[{first}] + b <= 0.9",
    "[[{first}]] * b <= 0.9",
    "sum(s * x) <= 0.9",
    "b * {first} <= 0.9",
    "x.T @ x <= 2",
    "{row} <= 0.9",
    "s <= 1",
    "maximum(s * x, x) <= 1",
    "h <= 2",
)
STREAMS = (
    "in [-1, 1]",
    "in [w - 1, w]",
    "in [0.5, 0.5]",
    "in 0..1",
    "in [0, 1] iid",
    "in [-1, 1] iid mean = 0",
    "in [-1, 1] iid mean = 0 * w",
    "",
    "~ uniform(-1, 1)",
    "~ uniform(w - 1, w)",
    "~ normal(0, 1) in [-1, 1]",
    "~ normal(0 * w, 1)",
    "~ poisson(2) in [0, 4]",
    "~ exponential(1) in [0, 2]",
    "~ pareto(3, mean = 0.5) in [0, 1]",
    "~ bernoulli(0.5)",
    "~ binomial(2, 0.5)",
    "~ gamma(2, mean = 1) in [0, 3]",
    "~ beta(1, 2)",
    "~ lognormal(0, 1) in [0, 3]",
    "~ categorical([0.5, 0.5])",
    "~ constant(1)",
    "~ constant(w)",
)
LOSSES = (
    "sum(s * x)",
    "sum_squares(x - s)",
    "norm2(x - s)",
    "norm1(x - s)",
    "norm_inf(x - s)",
    "max(x - s)",
    "mean(huber(x - s))",
    "log_sum_exp(s * x)",
    "sum(maximum(x, s))",
    "quad_form({flat}, eye({n}))",
    "sum(h)",
    "s * x",
    "b * {first}",
    "sum(x, axis = 0) @ ones({last})",
    "sum(repeat({flat}, 2))",
    "trace(outer({flat}, {flat}))",
    "dot({flat}, A)",
    "sum(diag({flat}))",
    "sum(s * x) + 0.01 * t * sum(x)",
)
PARAMS = (
    "w{shape} = 0.5",
    "w{shape} in [-1, 2] = 0.5",
    "w{shape} in 0..1 = 1",
    "w{shape} = 0.5 * ones({sizes})",
    "w{shape}",
)
LINES = (
    "measure dynamic regret",
    "feedback gradient",
    "feedback bandit",
    "feedback two_point",
    "assume constraints.q.bound <= 10",
    "assume constraints.q[0].bound <= 10",
    "assume loss.lipschitz.l2 <= 10",
    "assume slater.margin >= 0.1",
    "using mirror-descent",
    "using coldq",
    "using dpp",
    "using recoo",
    "using ofw",
    "using yu-neely",
    "horizon T unknown",
)


def model(
    shape: Shape,
    domain: str = DOMAINS[0],
    stream: str = STREAMS[0],
    loss: str = LOSSES[0],
    constraint: str = CONSTRAINTS[0],
    timing: str = "each round",
    param: str = PARAMS[0],
    line: str = "",
) -> str:
    """A model whose decision x, stream s, param w and named expression h have the shape."""
    n, brackets = prod(shape), f"[{', '.join(map(str, shape))}]" if shape else ""
    first = f"x[{', '.join('0' * len(shape))}]" if shape else "x"
    flat = {0: "[x]", 1: "x", 2: "x[:, 0]" if shape[-1:] == (1,) else "x[0, :]"}[len(shape)]
    signs = [[sign * float(i == j) for j in range(n)] for sign in (1, -1) for i in range(n)]
    words = {
        "x": "x",
        "n": str(n),
        "twice": str(2 * n),
        "rows": str(signs),
        "edges": str([[0, 1]] * n),
        "first": first,
        "flat": flat,
        "last": str(shape[-1]) if shape else "1",
        "row": f"A @ {flat} + x" if len(shape) < 2 else "x @ x.T",
        "shape": brackets,
        "sizes": ", ".join(map(str, shape)) or "1",
    }
    constraint = "" if not constraint else f"subject to\n    q: {constraint} {timing}\n"
    horizon = "" if line.startswith("horizon") else "horizon T = 50\n"
    text = (
        f"model shapes\n{horizon}param {param}\nparam b[1] = 0.5\ndecision x{{shape}} in {domain}\nstream s{{shape}} {stream}\n"
        f"stream A[{n}] in [-1, 1]\nlet h = s * x + w\nminimize {loss}\n{constraint}{line}\n"
    )
    for word, written in words.items():
        text = text.replace(f"{{{word}}}", written)
    return text


def cases() -> Iterator[str]:
    """Models that differ from the first in one statement, and in domain, constraint and timing together."""
    for shape in SHAPES:
        for domain in DOMAINS:
            yield model(shape, domain=domain, constraint="")
            for constraint in CONSTRAINTS:
                yield from (model(shape, domain=domain, constraint=constraint, timing=timing) for timing in TIMINGS)
        yield from (model(shape, stream=stream, constraint=c) for stream in STREAMS for c in CONSTRAINTS[:2])
        yield from (model(shape, loss=loss) for loss in LOSSES)
        yield from (model(shape, param=param) for param in PARAMS)
        yield from (model(shape, line=line, constraint=c) for line in LINES for c in (CONSTRAINTS[0], ""))


def sample(count: int, seed: int) -> list[str]:
    """Different models of the language among the cases: texts that do not parse are passed over."""
    texts = list(dict.fromkeys(cases()))
    random.Random(seed).shuffle(texts)
    return list(islice(filter(parses, texts), count))


def parses(text: str) -> bool:
    """True where the text is a model. Raises what is not an OcoError, and an OcoError that calls itself a bug."""
    try:
        oco.parse(text)
    except OcoError as error:
        if error.code == "OCO999":
            raise
        return False
    return True


def outcome(text: str, settings: str = "optimal", rounds: int = 3) -> str:
    """The code of the first error of check, compile or a few rounds; "" where each round had a decision in the domain.

    Raises whatever is not an OcoError.
    """
    try:
        played(text, settings, rounds)
    except OcoError as error:
        return error.code
    return ""


def played(text: str, settings: str = "optimal", rounds: int = 3) -> Plan:
    """Plan of a model, after a few rounds with decisions in the domain. Raises OcoError, and whatever is none."""
    parsed = oco.parse(text)
    try:
        plan = oco.compile(parsed, settings=settings)
    except OcoError:
        _ = oco.check(parsed).warnings  # raises what is wrong before the choice
        raise
    _ = plan.facts.warnings
    learner, rng = plan.learner(backend="numpy"), np.random.default_rng(1)
    for _ in range(rounds):
        decided = learner.decide()
        assert plan.canonical.blocks[0].domain.contains(decided), (text, decided)
        streams = {s.name: drawn(s, rng) for s in plan.canonical.streams}
        second = learner.second_point() if plan.canonical.feedback.value == "two_point" else None
        learner.observe(**shown(plan, decided, streams, learner.round, second))
    return plan


def shown(plan: Plan, decided: Any, streams: dict[str, Any], round: int, second: Any = None) -> Any:
    """Values that the round reveals under the model's feedback, at the decision and at a second point."""
    if plan.canonical.feedback.value == "full":
        return streams
    return Revealed(plan.canonical)(decided, streams, round, second)[-1]


def drawn(stream: StreamRange, rng: np.random.Generator) -> Any:
    """A value within the range of a stream; of size at most two where the range is wide."""
    lower = np.clip(-1.0, stream.lower, stream.upper)
    upper = np.clip(lower + 2.0, stream.lower, stream.upper)
    value = lower + (upper - lower) * rng.random(stream.shape)
    return np.rint(value).astype(int) if stream.integer else value
