"""Cost of the sums of a certificate in a round: `python -m benchmarks.certificate_cost [--write]`.

Processor time of a round with and without them, tenth percentile of several runs in turns, in C (many rounds in one call) and in NumPy
(`decide` and `observe`). `--write` puts the table into docs/certificates.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from time import process_time

import numpy as np

import oco
from benchmarks.certificates import PAGE
from oco.backends.play import play
from oco.dsl.writing import write_text
from oco.evaluation.data import Data, load_data
from oco.plan import Plan

ROUNDS, FEWER = 1000, 256
REPEATS = {"c": 200, "numpy": 40}
BEGIN, END = "<!-- cost -->", "<!-- end of cost -->"
HEAD = "model m\nhorizon T = 1000\ndecision x[10] in box(0, 1)\nstream a[10] in [-1, 1]\nstream b in [0, 1]\n"
CAP = "subject to\n    cap: sum(x) <= 1 + b each round\n"
PROBLEMS = {
    "`a @ x`": ("ogd", "minimize a @ x\n"),
    "`a @ x`, `sum(x) <= 1 + b`": ("nested", "minimize a @ x\n" + CAP),
    "`a @ x`, `sum(x) <= 1 + b`, with multipliers": ("coldq", "minimize a @ x\n" + CAP),
    "`sum_squares(x - a)`": ("ogd", "minimize sum_squares(x - a)\n"),
    "`a @ x`, `a @ x + sum(x) <= 4 * b`": (
        "coldq",
        "minimize a @ x\nsubject to\n    cap: a @ x + sum(x) <= 4 * b each round\n",
    ),
    "`square(a @ x - b)`": ("ogd", "minimize square(a @ x - b)\n"),
    "`-log(11 + a @ x)`": ("ogd", "minimize -log(11 + a @ x)\n"),
    "`norm1(x - a)`": ("ogd", "minimize norm1(x - a)\n"),
}


def seconds(plan: Plan, data: Data, backend: str) -> float:
    """Processor time of a round."""
    learner = plan.learner(backend=backend)
    if backend == "c":
        began = process_time()
        for _ in play(learner, data.read, ROUNDS, (), lambda start, stop: False):
            pass
        return (process_time() - began) / ROUNDS
    rows = list(data.first(FEWER))
    began = process_time()
    for row in rows:
        learner.decide()
        learner.observe(**row)
    return (process_time() - began) / FEWER


def lines() -> Iterator[str]:
    """Rows of the table."""
    rng = np.random.default_rng(0)
    streams = {"a": rng.uniform(-1, 1, (ROUNDS, 10)), "b": rng.random(ROUNDS)}
    yield "| loss and constraints | algorithm | C, without | with | | NumPy, without | with | |"
    yield f"|{' --- |' * 8}"
    for words, (algorithm, text) in PROBLEMS.items():
        plan = oco.compile(oco.parse(HEAD + text), algorithm)
        certified, data, cells = plan.certified(), load_data(plan.canonical, streams), list[str]()
        for backend, count in REPEATS.items():
            pairs = np.array([[seconds(own, data, backend) for own in (plan, certified)] for _ in range(count)])
            plain, summed = np.quantile(pairs, 0.1, axis=0)
            unit, digits = (1e9, 0) if backend == "c" else (1e6, 1)
            shown = [f"{s * unit:.{digits}f} {'ns' if backend == 'c' else 'us'}" for s in (plain, summed)]
            cells += [*shown, f"{100 * (summed / plain - 1):+.0f}%"]
        yield f"| {words} | `{algorithm}` | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write docs/certificates.md")
    write, rows = parser.parse_args().write, list[str]()
    for line in lines():
        print(line, flush=True)
        rows.append(line)
    if write:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        table = "\n".join(rows)
        write_text(PAGE, f"{before}{BEGIN}\n\n{table}\n\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
