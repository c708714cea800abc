"""A round in each of the ways that it can be played, against the best C by hand, in one run: `python benchmarks/speed/table.py [row ...]`.

Process time, the least of several repetitions that take turns, without making the learner of a whole horizon; every reference is checked to
give the same decisions. The best C is compiled with -ffast-math, and uses what only this problem allows.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from run import EXAMPLES, HERE, address, drawn, handwritten, same

import oco
from oco.backends.learner import Learner
from oco.dsl.statements import Feedback
from oco.plan import Plan

FAST = ("-O3", "-march=native", "-ffast-math")
REPEATS = 7
ROUNDS_OF_NUMPY = 200
COLUMNS = ("reference", "whole horizon", "decide + observe", "run, last kept", "run, all kept", "emitted NumPy")
Works = dict[str, tuple[Callable[[], object], int]]


@dataclass(frozen=True)
class Line:
    """Row of the table: a model with its algorithm, and the files of its references, of which the plain one may be absent."""

    model: Path
    algorithm: str
    best: str
    reference: str
    rounds: int


LINES = {
    "tracking": Line(EXAMPLES / "tracking.oco", "coldq", "tracking.c", "tracking.c", 3000),
    "job_scheduling": Line(EXAMPLES / "job_scheduling.oco", "coldq", "best/job_scheduling.c", "job_scheduling.c", 1000),
    "simplex": Line(HERE / "simplex.oco", "mirror-descent", "best/simplex.c", "simplex.c", 1000),
    "portfolio": Line(EXAMPLES / "portfolio.oco", "mirror-descent", "best/portfolio.c", "", 900),
    "bandit": Line(HERE / "bandit.oco", "bgd", "best/bandit.c", "", 5000),
}


def main() -> None:
    print(f"| a round of | best C | {' | '.join(COLUMNS)} |\n|{' --- |' * (2 + len(COLUMNS))}")
    for name in sys.argv[1:] or LINES:
        line = LINES[name]
        plan = oco.compile(oco.load(line.model), algorithm=line.algorithm, settings="paper")
        seconds = least(works_of(line, plan, drawn(plan, line.rounds)))
        best = seconds.pop("best C")
        cells = [f"{s * 1e6:.3g} us, {s / best:.3g}" if (s := seconds.get(c)) else "" for c in COLUMNS]
        print(f"| {name} | {best * 1e6:.3g} us | {' | '.join(cells)} |", flush=True)


def least(works: Works) -> dict[str, float]:
    """Seconds of a round of each work, the least of several, which take turns."""
    results = dict.fromkeys(works, np.inf)
    for _ in range(REPEATS):
        for name, (work, rounds) in works.items():
            began = time.process_time()
            work()
            results[name] = min(results[name], (time.process_time() - began) / rounds)
    return results


def works_of(line: Line, plan: Plan, data: Mapping[str, np.ndarray]) -> Works:
    """Ways to play these rounds by name, with the number of rounds that each plays."""
    best = by_hand(plan, line.best, FAST, data)
    works: Works = {"best C": (best, line.rounds)}
    if line.reference:
        works["reference"] = by_hand(plan, line.reference, (), data), line.rounds
    players = [plan.player(line.rounds, "c") or plan.learner(backend="c") for _ in range(REPEATS + 1)]
    works["whole horizon"] = (lambda: whole_horizon(players.pop(), data)), line.rounds
    works["decide + observe"] = round_by_round(plan, data, "c", line.rounds), line.rounds
    for keep in ("last", "all"):
        run = lambda keep=keep: plan.run(data, backend="c", keep=keep)  # noqa: E731
        works[f"run, {keep} kept"] = run, line.rounds
    few = min(ROUNDS_OF_NUMPY, line.rounds)
    works["emitted NumPy"] = round_by_round(plan, data, "numpy", few), few
    same(whole_horizon(players.pop(), data), best())
    return works


def by_hand(plan: Plan, file: str, flags: tuple[str, ...], data: Mapping[str, np.ndarray]) -> Callable[[], np.ndarray]:
    """Run of a reference, which draws normal numbers as learners do and puts its decisions into a new array."""
    function, inputs = handwritten(file, *flags), [data[s.name] for s in plan.canonical.streams]
    rounds = len(inputs[0])

    def run() -> np.ndarray:
        decisions = np.empty((rounds, plan.canonical.size))
        rng = np.random.default_rng(0)
        draws = [rng.normal(size=(rounds, *f.type.shape)) for f in plan.program.draws]
        given = [*map(address, [*inputs, *draws]), ctypes.c_double(plan.horizon), address(decisions)]
        function(ctypes.c_int64(rounds), *given)
        return decisions

    return run


def whole_horizon(learner: Learner, data: Mapping[str, np.ndarray]) -> np.ndarray:
    """Decisions of a learner that plays all rounds in one call of C."""
    rounds = len(next(iter(data.values())))
    inputs = [data[f.name] for f in learner.compiled.program.feedback]
    decisions: np.ndarray = learner.advance(inputs, rounds, ["decisions"]).kept["decisions"]
    return decisions


def round_by_round(plan: Plan, data: Mapping[str, np.ndarray], backend: str, rounds: int) -> Callable[[], None]:
    """Rounds through `decide` and `observe`; where the model reveals a loss alone it is a number that is at hand."""
    full = plan.canonical.feedback is Feedback.FULL
    rows = [{n: v[t] for n, v in data.items()} if full else {"loss": float(np.sin(t))} for t in range(rounds)]

    def run() -> None:
        learner = plan.learner(backend=backend)
        decide, observe = learner.decide, learner.observe
        for row in rows:
            decide()
            observe(**row)

    return run


if __name__ == "__main__":
    main()
