"""Time and memory of `oco check`: the whole command, cold, on the examples; and a decision with a million entries in process.

Targets: 0.5 s where no fact needs a solver, 2.5 s where one does; 1 s and 500 MB for the large one. Run: python benchmarks/checking.py
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path

COMMAND = "from oco.cli import main; main()"
EXAMPLES = Path(__file__).parent.parent / "examples"
LARGE = """model large
horizon T = 10
decision x[1000000] in box(0, 1)
stream p[1000000] in [-1, 3]
minimize sum(p * x) + 0.5 * sum_squares(x) + sum(exp(-x))
subject to
    limit: x <= 2 + p                        each round
    serve: 100 - sum(log(1 + x)) <= 0        each round
"""


def command(path: Path) -> float:
    """Seconds of `oco check` in a process of its own, the best of three."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", COMMAND, "check", str(path)], check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return min(times)


def large() -> tuple[float, float]:
    """Seconds and megabytes for a million entries, loss, constraints and domain."""
    from oco.compiler.facts.check import check
    from oco.dsl.load import parse

    model = parse(LARGE)
    start = time.perf_counter()
    check(model)
    return time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    for path in sorted(EXAMPLES.glob("*.oco")):
        print(f"{path.stem:24} {command(path):6.2f} s")
    seconds, megabytes = large()
    print(f"{'a million entries':24} {seconds:6.2f} s {megabytes:6.0f} MB")


if __name__ == "__main__":
    main()
