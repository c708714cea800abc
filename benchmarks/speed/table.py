"""A round in each of the ways that it can be played, against the best C by hand, in one run: `python benchmarks/speed/table.py [row ...]`.

Process time, the least of several repetitions in turns of random order, without making the learner of a whole horizon; every reference is
checked to give the same decisions. Ratios are to the best C, in the last two columns to NumPy by hand. The best C is compiled with
-ffast-math, and uses what only this problem allows; it is compiled for vectors of eight numbers and of four, and the quicker counts.
Generated code is compiled as the command for emitted files does it.
"""

from __future__ import annotations

import ctypes
import gc
import platform
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from reference.by_hand import Bandit, Capped, Flow, JobScheduling, Portfolio, Simplex
from reference.tracking import Tracking
from roofline import least_seconds, peak
from run import EXAMPLES, HERE, address, drawn, fleet_by_hand, fleet_rounds, fleet_seconds, handwritten, same

import oco
from oco.backends.c99 import backend
from oco.backends.learner import Learner
from oco.backends.python.executed import executed
from oco.dsl.statements import Feedback
from oco.plan import Plan

FAST = ("-O3", "-march=native", "-ffast-math")
NARROW = ("-mprefer-vector-width=256",) if platform.machine() in ("x86_64", "AMD64") else ()
REPEATS = 21
ROUNDS_OF_NUMPY = 200
ROUNDS_OF_FLEET = 30
COLUMNS = ("reference", "whole horizon", "of it fast", "decide + observe", "run, last kept", "run, all kept")
NUMPY = ("emitted NumPy", "NumPy by hand")
Works = dict[str, tuple[Callable[[], object], int]]


@dataclass(frozen=True)
class Line:
    """Row of the table: a model with its algorithm, and the files of its references, of which the plain one may be absent; `numpy` is the
    rule in NumPy by hand, `options` the compiler's for the best C, `share` how far decisions may be apart.
    """

    model: Path
    algorithm: str
    best: str
    reference: str
    rounds: int
    numpy: Any = None
    options: tuple[str, ...] = ()
    share: float = 1e-8


LARGE = ("-DRESIDUAL=1e-6", "-DROWS=943", "-DCOLUMNS=1682")
"""A large nuclear ball, with the residual of a singular pair that generated code ends at: decisions are off by it over the relative gap."""
LINES = {
    "tracking": Line(EXAMPLES / "tracking.oco", "coldq", "tracking.c", "tracking.c", 3000, Tracking),
    "job_scheduling": Line(
        EXAMPLES / "job_scheduling.oco", "coldq", "best/job_scheduling.c", "job_scheduling.c", 1000, JobScheduling
    ),
    "simplex": Line(HERE / "simplex.oco", "mirror-descent", "best/simplex.c", "simplex.c", 1000, Simplex),
    "portfolio": Line(EXAMPLES / "portfolio.oco", "mirror-descent", "best/portfolio.c", "", 900, Portfolio),
    "capped": Line(HERE / "capped.oco", "mirror-descent", "best/capped.c", "", 1000, Capped),
    "nuclear": Line(HERE / "nuclear.oco", "ofw", "nuclear.c", "nuclear.c", 300, options=("-DRESIDUAL=1e-10",)),
    "large": Line(HERE / "nuclear_large.oco", "ofw", "nuclear.c", "", 8, options=LARGE, share=1e-6),
    "bandit": Line(HERE / "bandit.oco", "bgd", "best/bandit.c", "", 5000, Bandit),
    "flow": Line(HERE / "flow.oco", "projection-free", "best/flow.c", "", 504, Flow),
}


def main() -> None:
    backend.optimizing_pays = lambda *_: True  # as `cc -O3`, also where a run is too short to repay it
    most = peak()
    print(f"Peak: {most.operations / 1e9:.3g} billion operations and {most.bytes / 1e9:.3g} GB a second\n")
    heads = ("a round of", "roofline", "best C", *COLUMNS, *NUMPY)
    print(f"| {' | '.join(heads)} |\n|{' --- |' * len(heads)}")
    for name in sys.argv[1:] or (*LINES, "fleet"):
        if name == "fleet":
            print(f"| {' | '.join(fleet_cells())} |", flush=True)
            continue
        line = LINES[name]
        plan = oco.compile(oco.load(line.model), algorithm=line.algorithm, settings="paper")
        seconds = least(works_of(line, plan, drawn(plan, line.rounds)))
        best = min(seconds.pop("best C"), seconds.pop("best C, narrow"))
        by_hand = seconds.get("NumPy by hand")
        bound, what = least_seconds(plan)
        cells = [cell(seconds.get(c), best) for c in COLUMNS] + [cell(seconds.get(c), by_hand) for c in NUMPY]
        print(f"| {name} | {bound * 1e6:.2g} us, {what} | {best * 1e6:.3g} us | {' | '.join(cells)} |", flush=True)


def fleet_cells() -> list[str]:
    """The row of a fleet of 10,000 learners of tracking, a learner-round: `decide` and `observe` in C, and in NumPy."""
    line = LINES["tracking"]
    plan = oco.compile(oco.load(line.model), algorithm=line.algorithm, settings="paper")
    sides = {"best C": fleet_by_hand(plan, *FAST), "reference": fleet_by_hand(plan)}
    sides |= {"decide + observe": fleet_rounds(plan, "c"), "emitted NumPy": fleet_rounds(plan, "numpy")}
    seconds = {name: min(found) for name, found in fleet_seconds(sides, ROUNDS_OF_FLEET).items()}
    best = seconds.pop("best C")
    cells = [cell(seconds.get(c), best) for c in (*COLUMNS, *NUMPY)]
    return ["fleet of 10,000, tracking", "", f"{best * 1e6:.3g} us", *cells]


def cell(seconds: float | None, beside: float | None) -> str:
    """Time of a round with its ratio to another; "" for none."""
    ratio = "" if seconds is None or beside is None else f", {seconds / beside:.3g}"
    return "" if seconds is None else f"{seconds * 1e6:.3g} us{ratio}"


def least(works: Works) -> dict[str, float]:
    """Seconds of a round of each work, the least of several turns, each in an order of its own: what a work finds in the cache depends on
    what ran before it.
    """
    results, rng = dict.fromkeys(works, np.inf), np.random.default_rng(0)
    for _ in range(REPEATS):
        gc.collect()  # a learner keeps the array of its decisions, and new memory costs more than what was used before
        for name in rng.permutation(list(works)):
            work, rounds = works[name]
            began = time.process_time()
            work()
            results[name] = min(results[name], (time.process_time() - began) / rounds)
    return results


def works_of(line: Line, plan: Plan, data: Mapping[str, np.ndarray]) -> Works:
    """Ways to play these rounds by name, with the number of rounds that each plays."""
    best = by_hand(plan, line.best, (*FAST, *line.options), data)
    narrow = by_hand(plan, line.best, (*FAST, *line.options, *NARROW), data)
    works: Works = {"best C": (best, line.rounds), "best C, narrow": (narrow, line.rounds)}
    if line.reference:
        works["reference"] = by_hand(plan, line.reference, (), data), line.rounds
    players = [plan.player(line.rounds, "c") or plan.learner(backend="c") for _ in range(REPEATS + 1)]
    works["whole horizon"] = (lambda: whole_horizon(players.pop(), data)), line.rounds
    quick = plan.with_precision("fast")
    faster = [quick.player(line.rounds, "c") or quick.learner(backend="c") for _ in range(REPEATS)]
    works["of it fast"] = (lambda: whole_horizon(faster.pop(), data)), line.rounds
    works["decide + observe"] = round_by_round(plan, data, line.rounds), line.rounds
    for keep in ("last", "all"):
        run = lambda keep=keep: plan.run(data, backend="c", keep=keep)  # noqa: E731
        works[f"run, {keep} kept"] = run, line.rounds
    works |= numpy_rules(line, plan, data, min(ROUNDS_OF_NUMPY, line.rounds))
    same(whole_horizon(players.pop(), data), best(), line.share)
    return works


def numpy_rules(line: Line, plan: Plan, data: Mapping[str, np.ndarray], rounds: int) -> Works:
    """The emitted text of the rule without the learner around it, which looks at its results, and the rule by hand, which decides alike."""
    program, first = plan.program, [plan.contract.start[f.name] for f in plan.program.decision]
    rule = executed(program, plan.compiled("numpy").source, [program.init, program.decide, program.update])
    init, decide, update = (rule[f.name] for f in (program.init, program.decide, program.update))
    alone, draws = plan.canonical.feedback is not Feedback.FULL, [*zip(*drawn_numbers(plan, rounds))] or [()] * rounds
    given = [
        [float(np.sin(t))] if alone else [number_or_row(data[f.name][t]) for f in plan.program.feedback]
        for t in range(rounds)
    ]
    decided: dict[str, list[np.ndarray]] = {}

    def emitted() -> None:
        state, decided["emitted"] = init(*first), []
        for values, drawn_now in zip(given, draws):
            decided["emitted"].append(decide(*state, *drawn_now)[0])
            state = update(*state, *values, *drawn_now)

    def written() -> None:
        learner, decided["written"] = line.numpy(plan.horizon), []
        if hasattr(learner, "begin"):
            learner.begin(first[0])
        for values, drawn_now in zip(given, draws):
            decided["written"].append(learner.decide(*drawn_now))
            learner.update(*values)

    works: Works = {"emitted NumPy": (emitted, rounds)}
    if line.numpy is not None:
        works["NumPy by hand"] = written, rounds
        emitted(), written()
        same(np.array(decided["written"]), np.array(decided["emitted"]))
    return works


def number_or_row(value: np.ndarray) -> float | np.ndarray:
    """Value of a round as learners hand it to a rule: a number of Python's where it has no axes."""
    return value if np.ndim(value) else float(value)


def by_hand(plan: Plan, file: str, flags: tuple[str, ...], data: Mapping[str, np.ndarray]) -> Callable[[], np.ndarray]:
    """Run of a reference, which draws numbers as learners do and puts its decisions after the first one into a new array."""
    function, inputs = handwritten(file, *flags), [data[s.name] for s in plan.canonical.streams]
    rounds, first = len(inputs[0]), np.ravel(plan.contract.start[plan.program.decision[0].name])

    def run() -> np.ndarray:
        decisions = np.empty((rounds, plan.canonical.size))
        decisions[0] = first
        draws = drawn_numbers(plan, rounds)
        given = [*map(address, [*inputs, *draws]), ctypes.c_double(plan.horizon), address(decisions)]
        function(ctypes.c_int64(rounds), *given)
        return decisions

    return run


def drawn_numbers(plan: Plan, rounds: int) -> list[np.ndarray]:
    """Random numbers of all rounds, an array for each of those of a round, in the order in which learners draw them."""
    rng, fields = np.random.default_rng(0), plan.program.draws
    kinds, arrays = plan.contract.distributions, [np.empty((rounds, *f.type.shape)) for f in fields]
    for rows in range(rounds) if len(fields) > 1 else [slice(None)]:
        for array, field in zip(arrays, fields):
            (rng.standard_normal if kinds[field.name] == "normal" else rng.random)(out=array[rows])
    return arrays


def whole_horizon(learner: Learner, data: Mapping[str, np.ndarray]) -> np.ndarray:
    """Decisions of a learner that plays all rounds in one call of C."""
    rounds = len(next(iter(data.values())))
    inputs = [data[f.name] for f in learner.compiled.program.feedback]
    decisions: np.ndarray = learner.advance(inputs, rounds, ["decisions"]).kept["decisions"]
    return decisions


def round_by_round(plan: Plan, data: Mapping[str, np.ndarray], rounds: int) -> Callable[[], None]:
    """Rounds through `decide` and `observe` of learners in C that are made before; where the model reveals a loss alone it is a number
    that is at hand.
    """
    full = plan.canonical.feedback is Feedback.FULL
    rows = [{n: v[t] for n, v in data.items()} if full else {"loss": float(np.sin(t))} for t in range(rounds)]
    learners = [plan.learner(backend="c") for _ in range(REPEATS)]

    def run() -> None:
        learner = learners.pop()
        decide, observe = learner.decide, learner.observe
        for row in rows:
            decide()
            observe(**row)

    return run


if __name__ == "__main__":
    main()
