"""How fast generated code is, as ratios to code written by hand and measured in the same run: `python benchmarks/speed/run.py`.

Process time, the median of several repetitions. Every reference is first checked to give the same decisions.
"""

from __future__ import annotations

import ctypes
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import oco
from oco.backends.base import backend
from oco.backends.c99.build import FLAGS, compiler
from oco.backends.learner import make_learner
from oco.plan import Plan

HERE = Path(__file__).parent
EXAMPLES = HERE.parent.parent / "examples"
REPEATS = 7
Row = tuple[str, str, str, str]


def main() -> None:
    print(
        f"{platform.processor() or platform.machine()}, {' '.join(compiler())} {' '.join(FLAGS)}, NumPy {np.__version__}\n"
    )
    tracking = oco.compile(oco.load(EXAMPLES / "tracking.oco"), algorithm="coldq")
    simplex = oco.compile(oco.load(HERE / "simplex.oco"), algorithm="mirror-descent")
    data = drawn(tracking, 5000)
    rows: list[Row] = [
        horizon("tracking, whole horizon in C", tracking, data, "tracking.c"),
        horizon("simplex of 1000, whole horizon in C", simplex, drawn(simplex, 2000), "simplex.c"),
        round_by_round(tracking, data),
        numpy_module(tracking, data),
        fleet(tracking),
    ]
    width = max(len(r[0]) for r in rows)
    for what, ours, theirs, ratio in rows:
        print(f"{what:<{width}}  {ours:>14}  {theirs:>22}  {ratio:>8}")


def drawn(plan: Plan, rounds: int) -> dict[str, np.ndarray]:
    """Rounds within the bounds of a model."""
    rng = np.random.default_rng(0)
    streams = plan.canonical.streams
    return {
        s.name: np.ascontiguousarray(
            s.law.sample(rng, rounds) if s.law else rng.uniform(s.lower, s.upper, (rounds, *s.shape)), dtype=float
        )
        for s in streams
    }


def median(work: Callable[[], object]) -> float:
    """Seconds of process time."""
    seconds = []
    for _ in range(REPEATS):
        began = time.process_time()
        work()
        seconds.append(time.process_time() - began)
    return statistics.median(seconds)


def row(what: str, ours: float, theirs: float | None, words: str = "") -> Row:
    shown = "" if theirs is None else f"{theirs * 1e6:.3g} us {words}"
    return what, f"{ours * 1e6:.3g} us", shown, "" if theirs is None else f"{ours / theirs:.2f}"


def horizon(what: str, plan: Plan, data: dict[str, np.ndarray], reference: str) -> Row:
    """A whole run in one call against the loop in `reference`."""
    rounds = len(next(iter(data.values())))
    inputs = [data[f.name] for f in plan.program.feedback]
    native = plan.compiled("c")
    start = plan.learner(backend="c")._state
    decisions = np.empty((rounds, plan.canonical.size))
    by_hand = handwritten(reference)
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in inputs]
    out = ctypes.c_void_p(decisions.ctypes.data)
    theirs = median(lambda: by_hand(ctypes.c_int64(rounds), *pointers, ctypes.c_double(plan.horizon), out))
    ours = median(lambda: native.run(start, inputs, (), rounds, ["decisions"]))
    found = native.run(start, inputs, (), rounds, ["decisions"]).kept["decisions"]
    assert np.abs(found - decisions).max() < 1e-8 * max(1.0, np.abs(decisions).max()), "the reference decides otherwise"
    return row(what, ours / rounds, theirs / rounds, "by hand")


def handwritten(name: str) -> Callable[..., None]:
    """The function `reference` of a C file, compiled with the flags of generated code."""
    folder = tempfile.mkdtemp()
    made = Path(folder) / "reference.so"
    subprocess.run([*compiler(), *FLAGS, str(HERE / "reference" / name), "-o", str(made), "-lm"], check=True)
    found = ctypes.CDLL(str(made)).reference
    found.restype = None
    call: Callable[..., None] = found
    return call


def round_by_round(plan: Plan, data: dict[str, np.ndarray]) -> Row:
    """decide and observe from Python, four fresh rows in, a decision out."""
    h, noise, a, b = (data[n] for n in ("H", "noise", "A", "b"))
    rounds = len(h) - 1

    compiled = plan.compiled("c")

    def work() -> None:
        learner = make_learner(compiled, plan.contract)
        for t in range(rounds):
            learner.decide()
            learner.observe(H=h[t], noise=noise[t], A=a[t], b=b[t])

    return row("tracking, decide + observe from Python (target 1.0 us)", median(work) / rounds, None)


def numpy_module(plan: Plan, data: dict[str, np.ndarray]) -> Row:
    """The emitted NumPy rule against the same rule called without a learner around it."""
    rounds = 300
    compiled = backend("numpy").compile(plan.program)
    rows = [{n: v[t] for n, v in data.items()} for t in range(rounds)]
    values = [[r[f.name] for f in plan.program.feedback] for r in rows]

    def alone() -> None:
        state = compiled.init(*(plan.contract.start[f.name] for f in plan.program.decision))
        for v in values:
            state = compiled.update(*state, *v)

    def within() -> None:
        learner = make_learner(compiled, plan.contract)
        for r in rows:
            learner.decide()
            learner.observe(**r)

    return row("tracking, NumPy learner", median(within) / rounds, median(alone) / rounds, "rule alone")


def fleet(plan: Plan) -> Row:
    """10,000 learners on one core, a round of each."""
    size = 10_000
    made = plan.fleet(size, backend="c")
    data = drawn(plan, 4 * size)
    rounds = [{n: v.reshape(4, size, *v.shape[1:])[k] for n, v in data.items()} for k in range(4)]
    for r in rounds:
        made.observe(**r)
    return row("tracking, fleet of 10,000, a learner-round", median(lambda: made.observe(**rounds[0])) / size, None)


if __name__ == "__main__":
    sys.exit(main())
