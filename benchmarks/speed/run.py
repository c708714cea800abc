"""Speed of generated code, as ratios to code written by hand and measured in the same run: `python benchmarks/speed/run.py`.

Process time, the median of several repetitions, in turns with the reference. Every reference is checked to give the same decisions.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import platform
import resource
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
from growth import growth
from peers import cvxpy_as_in_papers, cvxpygen
from reference.tracking import Tracking

import oco
from oco.backends.c99.build import FLAGS, compiler
from oco.backends.c99.fleet_source import emit_fleet
from oco.backends.registry import make_learner
from oco.plan import Plan

HERE = Path(__file__).parent
EXAMPLES = HERE.parent.parent / "examples"
FLEET = 10_000
Row = tuple[str, str, str, str, str]


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("rows", nargs="*", metavar="row", help=f"rows to measure, by default all: {', '.join(ROWS)}")
    given.add_argument("--repeats", type=int, default=7, help="measurements of each side (default: 7)")
    wanted = given.parse_args()
    if unknown := [name for name in wanted.rows if name not in ROWS]:
        given.error(f"no row is called {', '.join(unknown)}; there are {', '.join(ROWS)}")
    if wanted.repeats < 1:
        given.error("--repeats is at least 1")
    tool = subprocess.run([*compiler(), "--version"], capture_output=True, text=True).stdout.split("\n")[0]
    print(f"{_processor()}, {os.cpu_count()} cores; {tool}, {' '.join(FLAGS)}")
    print(f"Python {platform.python_version()}, NumPy {np.__version__}\n")
    tracking = oco.compile(oco.load(EXAMPLES / "tracking.oco"), algorithm="coldq", settings="paper")
    bench = Bench(tracking, drawn(tracking, 5000), wanted.repeats)
    print("| work | ours | by hand or other | ratio | target |\n| --- | --- | --- | --- | --- |")
    for name in wanted.rows or ROWS:
        for row in ROWS[name](bench):
            print("| " + " | ".join(row) + " |", flush=True)


@dataclass(frozen=True, eq=False)
class Bench:
    """The plan of tracking, rounds of it, and how often each side is measured."""

    tracking: Plan
    data: dict[str, np.ndarray]
    repeats: int


def _processor() -> str:
    found = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return found[0].split(":")[1].strip() if found else platform.machine()


def drawn(plan: Plan, rounds: int) -> dict[str, np.ndarray]:
    """Rounds within the bounds of a model."""
    rng = np.random.default_rng(0)
    return {
        s.name: np.ascontiguousarray(
            s.distribution.sample(rng, rounds) if s.distribution else rng.uniform(s.lower, s.upper, (rounds, *s.shape)),
            dtype=float,
        )
        for s in plan.canonical.streams
    }


def medians(repeats: int, *works: Callable[[], object]) -> list[float]:
    """Seconds of process time of each work, which take turns."""
    seconds: list[list[float]] = [[] for _ in works]
    for _ in range(repeats):
        for found, work in zip(seconds, works):
            began = time.process_time()
            work()
            found.append(time.process_time() - began)
    return [statistics.median(found) for found in seconds]


def micro(seconds: float) -> str:
    return f"{seconds * 1e6:.3g} us"


def row(what: str, ours: float, theirs: float, words: str, target: str) -> Row:
    return what, micro(ours), f"{micro(theirs)} {words}", f"{ours / theirs:.2f}", target


def same(found: np.ndarray, expected: np.ndarray, share: float = 1e-8) -> None:
    """The reference decides alike, to this share."""
    assert np.abs(found - expected).max() < share * max(1.0, np.abs(expected).max()), "the reference decides otherwise"


def horizon(bench: Bench, what: str, plan: Plan, data: dict[str, np.ndarray], reference: str) -> Row:
    """A whole run in one call against the loop in `reference`."""
    rounds = len(next(iter(data.values())))
    inputs = [data[f.name] for f in plan.program.feedback]
    native = plan.compiled("c")
    start = plan.learner(backend="c")._state
    decisions = np.empty((rounds, plan.canonical.size))
    by_hand = handwritten(reference)
    given = [ctypes.c_int64(rounds), *map(address, inputs), ctypes.c_double(plan.horizon), address(decisions)]

    def run() -> np.ndarray:
        kept: np.ndarray = native.run(start, inputs, (), rounds, ["decisions"]).kept["decisions"]
        return kept

    ours, theirs = medians(bench.repeats, run, lambda: by_hand(*given))
    same(run(), decisions)
    return row(f"{what}, whole horizon in C", ours / rounds, theirs / rounds, "by hand", "1.5")


def whole_horizon(
    what: str, model: Path, algorithm: str, rounds: int, reference: str
) -> Callable[[Bench], Iterator[Row]]:
    def rows(bench: Bench) -> Iterator[Row]:
        plan = oco.compile(oco.load(model), algorithm=algorithm, settings="paper")
        yield horizon(bench, what, plan, drawn(plan, rounds), reference)

    return rows


def experts(bench: Bench) -> Iterator[Row]:
    """Weights on experts that solve every round, against one exact step a round: both emitted."""
    hedged = oco.compile(oco.load(EXAMPLES / "tracking.oco"), algorithm="hedged")
    rounds = len(bench.data["H"])

    def whole(plan: Plan) -> Callable[[], object]:
        native, start = plan.compiled("c"), plan.learner(backend="c")._state
        inputs = [bench.data[f.name] for f in plan.program.feedback]
        return lambda: native.run(start, inputs, (), rounds, ["decisions"])

    ours, one = medians(bench.repeats, whole(hedged), whole(bench.tracking))
    count = next(f.type.shape[0] for f in hedged.program.state if f.name == "S")
    what = f"tracking, {count} experts of hedged, whole horizon in C"
    yield row(what, ours / rounds, one / rounds, "for one exact step", "25, 5 us")


def peers(bench: Bench) -> Iterator[Row]:
    plan, rounds = bench.tracking, len(bench.data["H"])
    native, start = plan.compiled("c"), plan.learner(backend="c")._state
    inputs = [bench.data[f.name] for f in plan.program.feedback]
    (alone,) = medians(bench.repeats, lambda: native.run(start, inputs, (), rounds, ["decisions"]))
    yield from cvxpy_as_in_papers(bench.data, alone / rounds)
    yield from cvxpygen(bench.data, alone / rounds)


def address(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def built(name: str, *options: str) -> str:
    """The path of a C file compiled with the flags of generated code."""
    made = str(Path(tempfile.mkdtemp()) / "reference.so")
    subprocess.run([*compiler(), *FLAGS, *options, str(HERE / "reference" / name), "-o", made, "-lm"], check=True)
    return made


def library(name: str, *options: str) -> ctypes.CDLL:
    """A C file as a library."""
    return ctypes.CDLL(built(name, *options))


def handwritten(name: str, *options: str) -> Callable[..., None]:
    """The function `reference` of a C file."""
    found = library(name, *options).reference
    found.restype = None
    call: Callable[..., None] = found
    return call


def extension(name: str) -> Any:
    """A module for Python written in C."""
    options = [f"-I{sysconfig.get_paths()['include']}", f"-I{np.get_include()}"]
    spec = spec_from_file_location(name, built(f"{name}.c", *options))
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def round_by_round(bench: Bench) -> Iterator[Row]:
    """decide and observe from Python, four fresh rows in, a decision out, against an extension module written by hand."""
    plan, data = bench.tracking, bench.data
    h, noise, a, b = (data[n] for n in ("H", "noise", "A", "b"))
    rounds = len(h) - 1
    compiled, by_hand = plan.compiled("c"), extension("tracking_module")

    def emitted() -> Any:
        learner = make_learner(compiled, plan.contract)
        decide, observe = learner.decide, learner.observe
        for t in range(rounds):
            decide()
            observe(H=h[t], noise=noise[t], A=a[t], b=b[t])
        return decide()

    def written() -> Any:
        by_hand.begin(plan.horizon)
        decide, observe = by_hand.decide, by_hand.observe
        for t in range(rounds):
            decide()
            observe(h[t], noise[t], a[t], b[t])
        return decide()

    ours, theirs = medians(bench.repeats, emitted, written)
    same(emitted(), written())
    what = "tracking, decide + observe from Python"
    yield row(what, ours / rounds, theirs / rounds, "an extension by hand", "1.0 us, 3")


def numpy_module(bench: Bench) -> Iterator[Row]:
    """The emitted NumPy rule against NumPy written by hand."""
    plan, data, rounds = bench.tracking, bench.data, 300
    compiled = plan.compiled("numpy")
    given = [[data[f.name][t] for f in plan.program.feedback] for t in range(rounds)]
    first = [plan.contract.start[f.name] for f in plan.program.decision]
    decided: dict[str, list[np.ndarray]] = {}

    def emitted() -> None:
        state, decided["ours"] = compiled.init(*first), []
        for values in given:
            state = compiled.update(*state, *values)
            decided["ours"].append(compiled.decide(*state)[0])

    def by_hand() -> None:
        learner, decided["theirs"] = Tracking(plan.horizon), []
        for values in given:
            decided["theirs"].append(learner.update(*values))

    ours, theirs = medians(bench.repeats, emitted, by_hand)
    same(np.array(decided["ours"]), np.array(decided["theirs"]))
    yield row("tracking, emitted NumPy", ours / rounds, theirs / rounds, "by hand in NumPy", "1.3")


Round = Callable[[int], np.ndarray]
"""A round of a fleet by its number, from 1, which gives the decisions."""


def fleet_rounds(plan: Plan, backend: str) -> Round:
    """Decide and observe of many learners of tracking."""
    ours, data = plan.fleet(FLEET, backend=backend), _fleet_data(plan)

    def emitted(t: int) -> np.ndarray:
        decided: np.ndarray = ours.decide()
        ours.observe(**data[t % 4])
        return decided

    return emitted


def fleet_by_hand(plan: Plan, *options: str) -> Round:
    """Decide and observe of learners side by side in vectors, written by hand."""
    by_hand, blocks, data = handwritten("tracking_fleet.c", *options), -(-FLEET // 8), _fleet_data(plan)
    order = [f.name for f in plan.program.feedback]
    state = [np.full((blocks, 10, 8), 2.5), np.full((blocks, 2, 8), plan.horizon / 2)]
    outs = [np.empty((FLEET, 10)), np.empty(FLEET), np.empty((FLEET, 2))]

    def written(t: int) -> np.ndarray:
        sizes = [ctypes.c_int64(FLEET), ctypes.c_int64(t), ctypes.c_double(plan.horizon)]
        by_hand(*sizes, *map(address, [*state, *(data[t % 4][n] for n in order), *outs]))
        return outs[0]

    return written


def _fleet_data(plan: Plan) -> list[dict[str, np.ndarray]]:
    data = drawn(plan, 4 * FLEET)
    return [{n: v.reshape(4, FLEET, *v.shape[1:])[k] for n, v in data.items()} for k in range(4)]


def fleet_seconds(sides: Mapping[str, Round], rounds: int) -> dict[str, list[float]]:
    """Seconds of a learner-round of each side in each round; those after the first find the data in the cache, and take turns in that."""
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for t in range(1, rounds + 1):
        decided = []
        for name in list(sides)[:: 1 if t % 2 else -1]:
            began = time.process_time()
            decided.append(sides[name](t))
            seconds[name].append((time.process_time() - began) / FLEET)
        for other in decided[1:]:
            same(other, decided[0])
    return seconds


def fleet(bench: Bench) -> Iterator[Row]:
    """Many learners on one core, a round of each: decide and observe, against vectors written by hand that give the same."""
    plan = bench.tracking
    sides = {"C": fleet_rounds(plan, "c"), "by hand": fleet_by_hand(plan)}
    mine, theirs = map(statistics.median, fleet_seconds(sides, 6 * bench.repeats).values())
    lanes = emit_fleet(plan.program, plan.contract).lanes
    yield row(f"tracking, fleet of 10,000 in blocks of {lanes}, a learner-round", mine, theirs, "by hand", "1.5")


def cold_compile(_: Bench) -> Iterator[Row]:
    """`oco compile --backend c` of tracking and the compiler on what it writes, a process and an empty cache each."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-c",
            "from oco.cli import main; main()",
            "compile",
            str(EXAMPLES / "tracking.oco"),
            "--algorithm",
            "coldq",
        ]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([*command, "--backend", "c", "-o", f"{folder}/c"], check=True, capture_output=True)
        made = ["-c", f"{folder}/c/tracking.c", "-o", f"{folder}/tracking.o"]
        subprocess.run([*compiler(), "-std=c99", "-O2", *made], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    yield "oco compile --backend c of tracking, then cc -O2", f"{spent:.2f} s", "", "", "1.5 s"


ROWS: dict[str, Callable[[Bench], Iterator[Row]]] = {
    "tracking": whole_horizon("tracking", EXAMPLES / "tracking.oco", "coldq", 5000, "tracking.c"),
    "job-scheduling": whole_horizon(
        "job_scheduling", EXAMPLES / "job_scheduling.oco", "coldq", 500, "job_scheduling.c"
    ),
    "simplex": whole_horizon("simplex of 1000", HERE / "simplex.oco", "mirror-descent", 2000, "simplex.c"),
    "nuclear": whole_horizon("OFW on nuclear 50 x 50", HERE / "nuclear.oco", "ofw", 300, "nuclear.c"),
    "experts": experts,
    "rounds": round_by_round,
    "numpy": numpy_module,
    "fleet": fleet,
    "peers": peers,
    "compile": cold_compile,
    "growth": lambda _: growth(),
}


if __name__ == "__main__":
    sys.exit(main())
