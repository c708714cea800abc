"""Memory and time of ofw-tvc on large sets of matrices: `python benchmarks/low_rank.py [set m n entries rounds]`.

Each case runs in a process of its own. "bare" is that process after it compiled and ran a model of 8 x 10 (so that all libraries are
loaded), and the others are what was resident above that: after the plan was made, after the last round, and at the highest point.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import numpy as np

import oco

CASES = (
    ("nuclear_ball", 943, 1682, 1, 10_000),
    ("nuclear_ball", 100_000, 100_000, 1000, 100),
    ("spectrahedron", 2000, 2000, 1, 10_000),
    ("spectrahedron", 20_000, 20_000, 1000, 100),
)
MODEL = """model completion
horizon T = {rounds}
decision X[{m}, {n}] in {set}(5)
stream row[{entries}] in 0..{m} - 1
stream col[{entries}] in 0..{n} - 1
stream rating[{entries}] in [-1, 1]
minimize 0.5 * sum_squares(X[row, col] - rating)
subject to
    level: mean(X[row, col]) <= 0.5 each round
using ofw-tvc
"""


def resident() -> float:
    """MB of this process in memory."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise OSError("no VmRSS")


def played(name: str, m: int, n: int, entries: int, rounds: int, all_rounds: int) -> tuple[float, float, float]:
    """MB after the plan was made and after the rounds, and seconds a round."""
    plan = oco.compile(oco.parse(MODEL.format(set=name, m=m, n=n, entries=entries, rounds=all_rounds)))
    learner, rng = plan.learner(), np.random.default_rng(0)
    planned, began = resident(), perf_counter()
    left, right = rng.standard_normal((m, 3)), rng.standard_normal((n, 3))
    for _ in range(rounds):
        learner.decide()
        i, j = rng.integers(0, m, entries), rng.integers(0, n, entries)
        learner.observe(row=i, col=j, rating=np.tanh(np.sum(left[i] * right[j], axis=1)))
    return planned, resident(), (perf_counter() - began) / rounds


def case(name: str, m: int, n: int, entries: int, rounds: int) -> None:
    played(name, 8, 8 if m == n else 10, entries, 3, 10)
    bare = resident()
    planned, after, seconds = played(name, m, n, entries, rounds, rounds)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"| {name}, {m} x {n} | {entries} | {rounds} | {bare:.0f} | {planned - bare:.0f} | {after - bare:.0f} | {peak - bare:.0f} "
        f"| {1e3 * seconds:.1f} ms |",
        flush=True,
    )


def main() -> None:
    if len(sys.argv) == 6:
        case(sys.argv[1], *map(int, sys.argv[2:]))
        return
    print("| set | entries a round | rounds | bare MB | after planning | after the rounds | at most | a round |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    for numbers in CASES:
        subprocess.run([sys.executable, __file__, *map(str, numbers)], check=True)


if __name__ == "__main__":
    main()
