"""Speed of the JAX backend beside NumPy and C: `python benchmarks/jax_speed.py` prints the tables of `docs/guides/jax.md`.

On a machine with an accelerator JAX runs there and times are those of a clock; elsewhere they are processor seconds of all threads, which
other work on the machine changes little. Medians of some rounds, after those that compile.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import jax
import numpy as np

import oco

EXAMPLES = Path(__file__).parent.parent / "examples"
BACKENDS = ("numpy", "c", "jax")
SIZES = (100, 1_000, 10_000, 100_000)
SIDE = 200
ROUNDS = 5
MATRIX = """model matrix
horizon T = 1000
decision X[{side}, {side}] in nuclear_ball(5)
stream A[{side}, {side}] in [-1, 1]
minimize 0.5 * sum_squares(X - A)
"""
SETTINGS = (1, 16, 64)
ON_ACCELERATOR = jax.default_backend() != "cpu"
clock = time.perf_counter if ON_ACCELERATOR else time.process_time


def seconds(call: Callable[[], Any], rounds: int = ROUNDS) -> float:
    """Median of the seconds of some calls, after two that compile."""
    call(), call()
    times = []
    for _ in range(rounds):
        began = clock()
        call()
        times.append(clock() - began)
    return median(times)


def fleets() -> Iterator[str]:
    """Rows of learner-rounds a second of fleets of `tracking`."""
    plan, rng = oco.compile(oco.load(EXAMPLES / "tracking.oco"), "coldq", "paper"), np.random.default_rng(0)
    for size in SIZES:
        data = {s.name: rng.uniform(0.0, 1.0, (size, *s.shape)) for s in plan.canonical.streams}
        speeds = []
        for name in BACKENDS:
            fleet = plan.fleet(size, backend=name)

            def step(fleet: Any = fleet, data: dict[str, Any] = data) -> None:
                fleet.decide()
                fleet.observe(**data)

            speeds.append(size / seconds(step))
        yield f"| {size:,} | {' | '.join(f'{speed:,.0f}' for speed in speeds)} |"


def matrices() -> Iterator[str]:
    """Rows of milliseconds a round of one learner whose decision is a matrix."""
    plan, rng = oco.compile(oco.parse(MATRIX.format(side=SIDE)), "ogd", "paper"), np.random.default_rng(0)
    A = rng.uniform(-1, 1, (SIDE, SIDE))
    for name in BACKENDS:
        learner = plan.learner(backend=name)

        def step(learner: Any = learner) -> None:
            learner.decide()
            learner.observe(A=A)

        yield f"| {name} | {1e3 * seconds(step):.1f} |"


def runs() -> Iterator[str]:
    """Rows of rounds a second of whole runs of `tracking`, with the seconds that the first one took more."""
    plan = oco.compile(oco.load(EXAMPLES / "tracking.oco"), "coldq", "paper")
    for name in BACKENDS:
        began = clock()
        plan.run(seed=1, backend=name, keep="last")
        first = clock() - began
        each = seconds(lambda name=name: plan.run(seed=1, backend=name, keep="last"), 3)  # type: ignore[misc]
        yield f"| {name} | {plan.horizon / each:,.0f} | {max(first - each, 0.0):.1f} |"


def settings() -> Iterator[str]:
    """Rows of the seconds of runs of 1,000 rounds with many values of one setting, and of their slopes."""
    plan = oco.compile(oco.load(EXAMPLES / "tracking.oco"), "coldq", "paper")
    loss, rounds = plan.loss_of_settings(rounds=1000), 1000
    trial, given = plan.trial(rounds, 1000), plan.run(rounds=rounds, seed=0).data
    with jax.enable_x64(True):
        costs = jax.jit(jax.vmap(lambda alpha: loss({"alpha": alpha})))
        slopes = jax.jit(jax.vmap(jax.grad(lambda alpha: loss({"alpha": alpha}))))
        for count in SETTINGS:
            at = np.geomspace(0.1, 10.0, count)
            ours = seconds(lambda at=at: jax.block_until_ready(costs(at)), 3)  # type: ignore[misc]
            along = seconds(lambda at=at: jax.block_until_ready(slopes(at)), 3)  # type: ignore[misc]
            theirs = seconds(lambda at=at: [trial({"alpha": x}, given, 0) for x in at], 3)  # type: ignore[misc]
            yield f"| {count} | {ours:.3f} | {along:.3f} | {theirs:.3f} |"


def main() -> None:
    where = (
        f"{jax.devices()[0].device_kind}, seconds of a clock" if ON_ACCELERATOR else "processor seconds, no accelerator"
    )
    print(f"JAX {jax.__version__} on {where}\n")
    tables = (
        ("| learners | NumPy | C | JAX |\n| --- | --- | --- | --- |", fleets),
        ("| backend | ms a round |\n| --- | --- |", matrices),
        ("| backend | rounds a second | seconds to compile |\n| --- | --- | --- |", runs),
        ("| values | costs in JAX | slopes in JAX | runs of `plan.trial` |\n| --- | --- | --- | --- |", settings),
    )
    for head, rows in tables:
        print(head)
        for row in rows():
            print(row, flush=True)
        print()


if __name__ == "__main__":
    main()
