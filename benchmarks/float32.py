"""Learners in float beside learners in double, each example compiled as C and played on the same made-up rounds.

`python benchmarks/float32.py [ROUNDS] > docs/float32.md`; ROUNDS are 1000. Needs a C compiler.
"""

from __future__ import annotations

import ctypes
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import oco
from oco.backends.c99.build import compiler
from oco.backends.c99.example import made_up
from oco.backends.c99.interface import Named

EXAMPLES = Path(__file__).parent.parent / "examples"
NAMES = (
    "battery",
    "caching",
    "charging",
    "datacenter",
    "dispatch",
    "job_scheduling",
    "online_qp",
    "pacing",
    "portfolio",
    "staffing",
    "tracking",
    "warehouse",
)
PAGE = """\
# Emitted C in float

`python benchmarks/float32.py > docs/float32.md` wrote this page. `oco compile --backend c --precision float32` writes the whole module
in float: 24 binary digits in place of 53. Each example is played for {rounds} rounds of made-up data within its bounds, as float and as
double. What a round leaves to the next (a state, the decision before, last values) is that of the learner in double, so that both decide
the same rounds. The difference of a decision is the greatest one of any entry, as a share of the greatest width that an entry moved over;
that of the sum of losses is a share of the sum of their sizes. Errors add up over rounds: a learner in float is another learner, near to
the one in double, whose guarantee is that of exact numbers. Where no decision satisfies the known constraints of a round (the decision
before lies outside the domain, or more is to be charged than the hours left allow), a step ends where rounding leads it: `caching` and
`charging` differed by a third of the width in such rounds, with decisions before and states drawn at random, which no run comes to.
In runs of `datacenter`, `dispatch`, `pacing` and `warehouse` the two learners come to decide unlike each other, at sums of losses that
differ by 0.1% to 2%.

| example | algorithm | decisions, median round | decisions, worst round | sum of losses | bytes of a learner, float / double |
| --- | --- | --- | --- | --- | --- |
"""


def binding(plan: Any, precision: str, folder: Path) -> Any:
    """Learner of the binding for Python, its library built."""
    plan.write(folder, backend="c", precision=precision)
    name = plan.program.name
    command = [*compiler(), "-std=c99", "-O2", "-shared", "-fPIC", f"{name}.c", "-o", f"lib{name}.so", "-lm"]
    subprocess.run(command, cwd=folder, check=True)
    spec = importlib.util.spec_from_file_location(f"{name}_{precision}", folder / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Learner()


def rows_of_a_run(plan: Any, rounds: int) -> list[dict[str, Any]]:
    """All values of each round of a run in double: made-up data, and what its rounds leave to the next."""
    learner, program, rng = plan.learner(), plan.program, np.random.default_rng(7)
    given, known = ([*learner.schema()[call]["properties"]] for call in ("observe", "decide"))
    fields = {f.name: Named(f.name, f) for f in (*program.feedback, *program.draws)}
    rows = []
    for _ in range(rounds):
        row = {name: made_up(rng, field, plan.contract) for name, field in fields.items()}
        learner.decide(**{name: row[name] for name in known})
        feedback = learner.observe(**{name: row[name] for name in given})
        rows.append({**row, **feedback.values})
    return rows


def played(
    learner: Any, rows: list[dict[str, Any]], context: tuple[str, ...], draws: tuple[str, ...]
) -> tuple[Any, Any]:
    """Decisions of each round side by side, and losses."""
    decisions, losses = [], []
    for row in rows:
        known = {name: row[name] for name in (*context, *draws)}
        decided = learner.decide(**known)
        data = {name: value for name, value in row.items() if name not in draws}
        losses.append(learner.measure(decided, **data)[0])
        learner.observe(**row)
        decisions.append(np.concatenate([np.atleast_1d(v) for v in decided.values()]))
    return np.array(decisions), np.array(losses)


def line(name: str, rounds: int) -> str:
    """Row of the table for an example."""
    plan = oco.compile(oco.load(EXAMPLES / f"{name}.oco"), backend="numpy")
    program, rows = plan.program, rows_of_a_run(plan, rounds)
    results, sizes = [], []
    with tempfile.TemporaryDirectory() as folder:
        for precision in ("float32", "float64"):
            learner = binding(plan, precision, Path(folder) / precision)
            sizes.append(learner._function("sizeof", ctypes.c_int64)())
            results.append(played(learner, rows, program.context, tuple(f.name for f in program.draws)))
    (ours, lost), (theirs, truly) = results
    width = np.ptp(theirs, axis=0).max() or 1.0
    far = np.abs(ours - theirs).max(axis=1) / width
    total = abs(lost.sum() - truly.sum()) / np.abs(truly).sum()
    return f"| {name} | {plan.algorithm} | {np.median(far):.0e} | {far.max():.0e} | {total:.0e} | {sizes[0]:,} / {sizes[1]:,} |"


def main() -> None:
    """Print the page."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    print(PAGE.format(rounds=rounds), end="")
    for name in NAMES:
        try:
            print(line(name, rounds), flush=True)
        except (oco.OcoError, ValueError) as error:
            print(f"| {name} | | {str(error).splitlines()[0][:80]} | | | |", flush=True)


if __name__ == "__main__":
    main()
