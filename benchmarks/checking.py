"""Time and memory of `oco check`: the whole command, cold, on the examples; large decisions; and growth with the size of an expression.

Targets: 0.5 s where no fact needs a solver, 2.5 s where one does; 1 s and 500 MB for a decision with a million entries; time in
proportion to the size of the expression. Seconds are of processor time, medians of three. Run: python benchmarks/checking.py
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

COMMAND = "from oco.cli import main; main()"
EXAMPLES = Path(__file__).parent.parent / "examples"
RUNS = 3
LARGE = """model large
horizon T = 10
decision x[1000000] in box(0, 1)
stream p[1000000] in [-1, 3]
minimize sum(p * x) + 0.5 * sum_squares(x) + sum(exp(-x))
subject to
    limit: x <= 2 + p                        each round
    serve: 100 - sum(log(1 + x)) <= 0        each round
"""
TERMS = (24, 48, 96, 192)  # a sum of more nests deeper than the language lets it


def processor_seconds(*command: str) -> float:
    """Processor time of a child process, its own and the system's on its behalf."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *command], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def needs_solver(path: Path) -> bool:
    """Whether checking the model loads CVXPY."""
    code = f"import sys\nfrom oco.cli import main\nmain(['check', {str(path)!r}])\nprint('cvxpy' in sys.modules, file=sys.stderr)"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return found.stderr.rstrip().endswith("True")


def long_model(terms: int) -> str:
    """A loss of that many terms, each of another kind than the one before."""
    kinds = ("exp({c} * x[{i}])", "square(x[{i}] - {c})", "abs(x[{i}] + {c})", "logistic({c} * x[{i}])")
    said = [kinds[k % 4].format(c=f"{0.1 + k / terms:.4f}", i=k % 8) for k in range(terms)]
    return f"model long\nhorizon T = 10\ndecision x[8] in box(0, 1)\nminimize {' + '.join(said)}\n"


def seconds_of_check(text: str) -> float:
    """Processor time of the facts of a model, in this process."""
    from oco.compiler.facts.check import check
    from oco.dsl.load import parse

    model = parse(text)
    start = time.process_time()
    list(check(model).values())
    return time.process_time() - start


def main() -> None:
    start = statistics.median(processor_seconds("-c", "import numpy") for _ in range(RUNS))
    print(f"{'python and numpy alone':24} {start:6.2f} s")
    for path in sorted(EXAMPLES.glob("*.oco")):
        seconds = statistics.median(processor_seconds("-c", COMMAND, "check", str(path)) for _ in range(RUNS))
        target = 2.5 if needs_solver(path) else 0.5
        print(f"{path.stem:24} {seconds:6.2f} s   {seconds / target:4.2f} of {target} s")
    print("\nterms in the loss, seconds, and their ratio to those of half as many")
    before = 0.0
    for terms in TERMS:
        seconds = min(seconds_of_check(long_model(terms)) for _ in range(3))
        print(f"{terms:24} {seconds:6.2f} s" + (f"   {seconds / before:4.2f}" if before else ""))
        before = seconds
    seconds = seconds_of_check(LARGE)
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\n{'a million entries':24} {seconds:6.2f} s {megabytes:6.0f} MB")


if __name__ == "__main__":
    main()
