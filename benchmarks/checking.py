"""Time and memory of `oco check`: the whole command, cold, on the examples; large decisions; and growth with the size of an expression.

Targets: 0.5 s where no fact needs a solver, 2.5 s where one does; 1 s and 500 MB for a decision with a million entries; time and memory
in proportion to the size of the expression. Seconds are of processor time, medians of three; Python keeps its bytecode, as it does of an
installed package. Run: python benchmarks/checking.py
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
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
TERMS = (40, 80, 160, 320, 640)
IN_ONE_LET = 60  # terms: those of a longer sum are put together where they are alike
PLAIN_TERMS = (40, 160, 640, 2560)


def processor_seconds(env: dict[str, str], *command: str) -> float:
    """Processor time of a child process, its own and the system's on its behalf."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *command], check=True, capture_output=True, env=env)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def median_seconds(env: dict[str, str], *command: str) -> float:
    processor_seconds(env, *command)  # leaves the bytecode behind
    return statistics.median(processor_seconds(env, *command) for _ in range(RUNS))


def needs_solver(path: Path) -> bool:
    """True where checking the model loads CVXPY."""
    code = f"import sys\nfrom oco.cli import main\nmain(['check', {str(path)!r}])\nprint('cvxpy' in sys.modules, file=sys.stderr)"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return found.stderr.rstrip().endswith("True")


def long_model(terms: int) -> str:
    """A loss of that many terms, each of another kind than the one before, in lets that are added up."""
    kinds = ("exp({c} * x[{i}])", "square(x[{i}] - {c})", "abs(x[{i}] + {c})", "logistic({c} * x[{i}])")
    said = [kinds[k % 4].format(c=f"{0.1 + k / terms:.4f}", i=k % 8) for k in range(terms)]
    parts = [" + ".join(said[k : k + IN_ONE_LET]) for k in range(0, terms, IN_ONE_LET)]
    lets = "".join(f"let part{k} = {part}\n" for k, part in enumerate(parts))
    total = " + ".join(f"part{k}" for k in range(len(parts)))
    return f"model long\nhorizon T = 10\ndecision x[8] in box(0, 1)\n{lets}minimize {total}\n"


def plain_model(terms: int) -> str:
    """A product of vectors, written out."""
    said = " + ".join(f"x[{k}] * c[{k}]" for k in range(terms))
    return (
        f"model plain\nhorizon T = 10\ndecision x[{terms}] in box(0, 1)\nstream c[{terms}] in [0, 1]\nminimize {said}\n"
    )


def seconds_of_check(text: str) -> float:
    """Processor time of reading a model and of its facts, in this process."""
    from oco.compiler.prover.check import check
    from oco.dsl.load import parse

    start = time.process_time()
    list(check(parse(text)).values())
    return time.process_time() - start


def megabytes_of_check(text: str) -> float:
    """The most memory that Python's objects and arrays hold while a model is read and its facts are worked out."""
    tracemalloc.start()
    seconds_of_check(text)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / 2**20


def growth(title: str, counts: tuple[int, ...], model: Callable[[int], str]) -> None:
    """Time and memory against the number of terms."""
    print(f"\n{title}, and the ratio to the row above")
    before = None
    for terms in counts:
        text = model(terms)
        found = statistics.median(seconds_of_check(text) for _ in range(RUNS)), megabytes_of_check(text)
        ratios = "" if before is None else f"   {found[0] / before[0]:4.2f} {found[1] / before[1]:4.2f}"
        print(f"{terms:24} {found[0]:6.2f} s {found[1]:6.1f} MB{ratios}", flush=True)
        before = found


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | {"PYTHONPYCACHEPREFIX": folder}
        start = median_seconds(env, "-c", "import numpy")
        print(f"{'python and numpy alone':24} {start:6.2f} s")
        for path in sorted(EXAMPLES.glob("*.oco")):
            seconds = median_seconds(env, "-c", COMMAND, "check", str(path))
            target = 2.5 if needs_solver(path) else 0.5
            print(f"{path.stem:24} {seconds:6.2f} s   {seconds / target:4.2f} of {target} s", flush=True)
    seconds = seconds_of_check(LARGE)
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\n{'a million entries':24} {seconds:6.2f} s {megabytes:6.0f} MB")
    growth("terms of many kinds in lets", TERMS, long_model)
    growth("terms in a sum of alike ones", PLAIN_TERMS, plain_model)


if __name__ == "__main__":
    main()
