"""How fast generated code is, as ratios to code written by hand and measured in the same run: `python benchmarks/speed/run.py`.

Process time, the median of several repetitions. Every reference is first checked to give the same decisions.
"""

from __future__ import annotations

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
from collections.abc import Callable, Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
from peers import cvxpy_as_in_papers, cvxpygen
from reference.tracking import Tracking

import oco
from oco.backends.c99.build import FLAGS, compiler
from oco.backends.c99.fleet_source import emit_fleet
from oco.backends.learner import make_learner
from oco.plan import Plan

HERE = Path(__file__).parent
EXAMPLES = HERE.parent.parent / "examples"
REPEATS = 7
FLEET = 10_000
Row = tuple[str, str, str, str, str]


def main() -> None:
    tool = subprocess.run([*compiler(), "--version"], capture_output=True, text=True).stdout.split("\n")[0]
    print(f"{_processor()}, {os.cpu_count()} cores; {tool}, {' '.join(FLAGS)}")
    print(f"Python {platform.python_version()}, NumPy {np.__version__}\n")
    tracking = oco.compile(oco.load(EXAMPLES / "tracking.oco"), algorithm="coldq", settings="paper")
    data = drawn(tracking, 5000)
    print("| work | ours | by hand or other | ratio | target |\n| --- | --- | --- | --- | --- |")
    for row in rows(tracking, data):
        print("| " + " | ".join(row) + " |", flush=True)


def rows(tracking: Plan, data: dict[str, np.ndarray]) -> Iterator[Row]:
    scheduling = oco.compile(oco.load(EXAMPLES / "job_scheduling.oco"), algorithm="coldq", settings="paper")
    simplex = oco.compile(oco.load(HERE / "simplex.oco"), algorithm="mirror-descent", settings="paper")
    nuclear = oco.compile(oco.load(HERE / "nuclear.oco"), algorithm="ofw", settings="paper")
    yield horizon("tracking, whole horizon in C", tracking, data, "tracking.c")
    yield horizon("job_scheduling, whole horizon in C", scheduling, drawn(scheduling, 500), "job_scheduling.c")
    yield horizon("simplex of 1000, whole horizon in C", simplex, drawn(simplex, 2000), "simplex.c")
    yield horizon("OFW on nuclear 50 x 50, whole horizon in C", nuclear, drawn(nuclear, 500), "nuclear.c")
    yield round_by_round(tracking, data)
    yield numpy_module(tracking, data)
    yield fleet(tracking)
    alone = seconds_a_round(tracking, data)
    yield from cvxpy_as_in_papers(data, alone)
    yield from cvxpygen(data, alone)
    yield cold_compile()
    yield source_lines(tracking)
    yield from growth()


def _processor() -> str:
    found = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return found[0].split(":")[1].strip() if found else platform.machine()


def drawn(plan: Plan, rounds: int) -> dict[str, np.ndarray]:
    """Rounds within the bounds of a model."""
    rng = np.random.default_rng(0)
    return {
        s.name: np.ascontiguousarray(
            s.law.sample(rng, rounds) if s.law else rng.uniform(s.lower, s.upper, (rounds, *s.shape)), dtype=float
        )
        for s in plan.canonical.streams
    }


def median(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """Seconds of process time."""
    seconds = []
    for _ in range(repeats):
        began = time.process_time()
        work()
        seconds.append(time.process_time() - began)
    return statistics.median(seconds)


def micro(seconds: float) -> str:
    return f"{seconds * 1e6:.3g} us"


def row(what: str, ours: float, theirs: float, words: str, target: str) -> Row:
    return what, micro(ours), f"{micro(theirs)} {words}", f"{ours / theirs:.2f}", target


def same(found: np.ndarray, expected: np.ndarray) -> None:
    """The reference decides alike, to a share of 1e-8."""
    assert np.abs(found - expected).max() < 1e-8 * max(1.0, np.abs(expected).max()), "the reference decides otherwise"


def horizon(what: str, plan: Plan, data: dict[str, np.ndarray], reference: str) -> Row:
    """A whole run in one call against the loop in `reference`."""
    rounds = len(next(iter(data.values())))
    inputs = [data[f.name] for f in plan.program.feedback]
    native = plan.compiled("c")
    start = plan.learner(backend="c")._state
    decisions = np.empty((rounds, plan.canonical.size))
    by_hand = handwritten(reference)
    pointers = [address(a) for a in inputs]
    given = [ctypes.c_int64(rounds), *pointers, ctypes.c_double(plan.horizon), address(decisions)]
    theirs = median(lambda: by_hand(*given))
    ours = median(lambda: native.run(start, inputs, (), rounds, ["decisions"]))
    same(native.run(start, inputs, (), rounds, ["decisions"]).kept["decisions"], decisions)
    return row(what, ours / rounds, theirs / rounds, "by hand", "1.5")


def seconds_a_round(plan: Plan, data: dict[str, np.ndarray]) -> float:
    """Of a whole run in C."""
    inputs, rounds = [data[f.name] for f in plan.program.feedback], len(data["H"])
    native, start = plan.compiled("c"), plan.learner(backend="c")._state
    return median(lambda: native.run(start, inputs, (), rounds, ["decisions"])) / rounds


def address(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def built(name: str, *options: str) -> str:
    """The path of a C file compiled with the flags of generated code."""
    made = str(Path(tempfile.mkdtemp()) / "reference.so")
    subprocess.run([*compiler(), *FLAGS, *options, str(HERE / "reference" / name), "-o", made, "-lm"], check=True)
    return made


def handwritten(name: str) -> Callable[..., None]:
    """The function `reference` of a C file."""
    found = ctypes.CDLL(built(name)).reference
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


def round_by_round(plan: Plan, data: dict[str, np.ndarray]) -> Row:
    """decide and observe from Python, four fresh rows in, a decision out, against an extension module written by hand."""
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

    ours, theirs = median(emitted) / rounds, median(written) / rounds
    same(emitted(), written())
    return row("tracking, decide + observe from Python", ours, theirs, "an extension by hand", "1.0 us, 3")


def numpy_module(plan: Plan, data: dict[str, np.ndarray]) -> Row:
    """The emitted NumPy rule against NumPy written by hand."""
    rounds = 300
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

    ours, theirs = median(emitted) / rounds, median(by_hand) / rounds
    same(np.array(decided["ours"]), np.array(decided["theirs"]))
    return row("tracking, emitted NumPy", ours, theirs, "by hand in NumPy", "1.3")


def fleet(plan: Plan) -> Row:
    """Many learners on one core, a round of each, against vectors written by hand."""
    ours = plan.fleet(FLEET, backend="c")
    order = [f.name for f in plan.program.feedback]
    data = drawn(plan, 4 * FLEET)
    rounds = [{n: v.reshape(4, FLEET, *v.shape[1:])[k] for n, v in data.items()} for k in range(4)]
    by_hand, blocks = handwritten("tracking_fleet.c"), -(-FLEET // 8)
    state = [np.full((blocks, 10, 8), 2.5), np.full((blocks, 2, 8), plan.horizon / 2)]
    outs = [np.empty((FLEET, 10)), np.empty(FLEET), np.empty((FLEET, 2))]
    seconds: tuple[list[float], list[float]] = ([], [])
    for t in range(1, 13):
        values = rounds[t % 4]
        arrays = [*state, *(values[n] for n in order), *outs]
        sizes = [ctypes.c_int64(FLEET), ctypes.c_int64(t), ctypes.c_double(plan.horizon)]
        decided = ours.decide()
        began = time.process_time()
        ours.observe(**values)
        between = time.process_time()
        by_hand(*sizes, *map(address, arrays))
        seconds[0].append((between - began) / FLEET)
        seconds[1].append((time.process_time() - between) / FLEET)
        same(decided, outs[0])
    lanes = emit_fleet(plan.program, plan.contract).lanes
    mine, theirs = map(statistics.median, seconds)
    return row(f"tracking, fleet of 10,000 in blocks of {lanes}, a learner-round", mine, theirs, "by hand", "1.5")


def cold_compile() -> Row:
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
    return "oco compile --backend c of tracking, then cc -O2", f"{spent:.2f} s", "", "", "1.5 s"


def source_lines(plan: Plan) -> Row:
    return "lines of C for tracking", str(len(plan.source("c").splitlines())), "", "", "600"


GROWTH = """
import resource, sys, numpy as np, oco
plan = oco.compile(oco.load(sys.argv[1]), algorithm="coldq", settings="paper")
rounds, learner = int(sys.argv[2]), plan.learner(backend="c")
block = {n: v for n, v in zip("H noise A b".split(), (np.full(s, 0.5) for s in ((1000, 4, 10), (1000, 4), (1000, 2, 10), (1000, 2))))}
import time
inputs = [block[f.name] for f in plan.program.feedback]
began = time.process_time()
for _ in range(rounds // 1000):
    learner.advance(inputs, 1000, ["loss"])
print(time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def growth() -> Iterator[Row]:
    """Time and memory of ever more rounds in blocks of a thousand, a process each."""
    found = []
    for rounds in (10**3, 10**4, 10**5, 10**6, 10**7):
        command = [sys.executable, "-c", GROWTH, str(EXAMPLES / "tracking.oco"), str(rounds)]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        found.append((rounds, float(out[0]), int(out[1])))
    shown = ", ".join(f"{micro(seconds / rounds)}" for rounds, seconds, _ in found)
    yield "a round of 10^3, 10^4, ..., 10^7 rounds", shown, "", "", "linear"
    least, most = min(m for _, _, m in found), max(m for _, _, m in found)
    yield "resident memory over the same", f"{most / 1024:.0f} MB at most", "", f"{most / least:.3f}", "1.05"


if __name__ == "__main__":
    sys.exit(main())
