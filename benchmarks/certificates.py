"""Certificates on the problems of `benchmarks/practice`: `python -m benchmarks.certificates [--data DIR] [--missing] [--write]`.

Each problem is compiled as `oco run --data` does and run over all its rounds; the table has the regret to the best fixed decision, its
certificate, what was guaranteed before the first round, the sum of the losses, and what the sums of the certificate add to a round.
`--write` puts it into docs/certificates.md, with the certificate on prefixes of the runs; with `--missing` rows that it has stay.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import numpy as np

import oco
from benchmarks.practice.problems import PROBLEMS, ROOT, Problem, problems
from oco.backends.play import can_play, play
from oco.dsl.diagnostics import OcoError
from oco.dsl.writing import write_text
from oco.evaluation.comparators import ComparatorBudget
from oco.evaluation.numbers import number
from oco.evaluation.report.trace import Trace
from oco.plan import Plan

REPEATS = 5
PREFIXES = 6
PAGE = ROOT / "docs" / "certificates.md"
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"


@dataclass(frozen=True)
class Row:
    """Figures of a problem; `prefixes` has rounds, regret and certificate of parts of the run."""

    name: str
    algorithm: str
    rounds: int
    loss: float
    regret: float | None
    certified: float
    guaranteed: float | None
    exact: bool
    added: float
    asked: float
    prefixes: tuple[tuple[int, float, float], ...]

    @property
    def tight(self) -> str:
        """Verdict on the certificate at the end: its ratio to the regret, else its part of the loss."""
        if self.regret is None:
            return "regret not known"
        excess = self.certified - self.regret
        if excess <= 0.01 * abs(self.regret):
            return "within 1%"
        if self.regret > 0 and self.certified <= 3 * self.regret:
            return f"{self.certified / self.regret:.2f} times the regret"
        return f"{100 * excess / abs(self.loss):.2g}% of the loss above it"


def row(problem: Problem) -> Row:
    """Figures of one problem."""
    plan = oco.compile(problem.model, data=problem.data)
    certified = plan.certified()
    trace = certified.run(problem.data)
    trace.budget = ComparatorBudget(seconds=120.0)
    result = trace.certificate()
    comparator = trace.comparator("static")
    known = comparator.losses is not None
    curve = trace.promise.curves.get("regret")
    ends = tuple(int(n) for n in np.unique(np.geomspace(8, trace.rounds, PREFIXES).astype(int)))
    prefixes = tuple(_prefixes(trace, ends)) if known else ()
    return Row(
        problem.name,
        plan.algorithm,
        trace.rounds,
        float(trace.loss.sum()),
        float(trace.regret()[-1]) if known else None,
        result.bound,
        None if curve is None else float(curve[-1]),
        result.terms.exact,
        _added(plan, certified, problem),
        _asked(certified, problem),
        prefixes,
    )


def _prefixes(trace: Trace, ends: tuple[int, ...]) -> Iterator[tuple[int, float, float]]:
    """Rounds, regret to the best fixed decision of these rounds, and certificate."""
    for end, result in zip(ends, trace.certificates(ends)):
        part = trace.problem, trace.data.first(end)
        best = _best(*part)
        yield end, float(trace.loss[:end].sum()) - best, result.bound


def _best(problem: object, data: object) -> float:
    from oco.evaluation.comparators.compare import compare

    return float(compare(problem, data, "static", ComparatorBudget(seconds=60.0)).value)  # type: ignore[arg-type]


def _added(plan: Plan, certified: Plan, problem: Problem) -> float:
    """Part of a round's processor time that the sums add, with the plan's own backend: least of several runs, in turns."""
    pairs = [[_seconds(own, problem) for own in (plan, certified)] for _ in range(REPEATS)]
    plain, summed = np.min(pairs, axis=0)
    return float(summed / plain - 1)


def _seconds(plan: Plan, problem: Problem) -> float:
    """Processor time of a run, with the backend that `oco run` takes for so many rounds."""
    data = problem.data
    learner = plan.learner(backend=plan.backend_for(data.rounds).name)
    rows = None if can_play(learner) else list(data.first(data.rounds))
    began = process_time()
    if rows is None:
        for _ in play(learner, data.read, data.rounds, (), lambda start, stop: False):
            pass
    else:
        for values in rows:
            learner.decide(**{n: values[n] for n in learner.contexts.names})
            learner.observe(**values)
    return process_time() - began


def _asked(certified: Plan, problem: Problem) -> float:
    """Seconds of a certificate when it is asked for at the end of a run."""
    from time import perf_counter

    learner = certified.learner()
    for values in problem.data.first(min(problem.data.rounds, 300)):
        learner.decide(**{n: values[n] for n in learner.contexts.names})
        learner.observe(**values)
    learner.certificate()
    began = perf_counter()
    learner.certificate()
    return perf_counter() - began


Lines = dict[str, tuple[str, str]]
"""Lines of the two tables by problem; the second is empty where no regret is known."""


def lines_of_page() -> Lines:
    """Lines of the page as it is."""
    figures = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    parts = figures.partition("Regret and certificate")[::2]
    tables = [[r for r in part.splitlines() if r.startswith("| ")] for part in parts]
    first, second = ({r.split("|")[1].strip(): r for r in rows} for rows in tables)
    return {name: (line, second.get(name, "")) for name, line in first.items() if name in PROBLEMS}


def lines_of(r: Row) -> tuple[str, str]:
    """Lines of a problem in the two tables."""
    guaranteed = "" if r.guaranteed is None else number(r.guaranteed, 4)
    cells = r.name, f"`{r.algorithm}`", f"{r.rounds:,}", number(r.loss), number(r.regret), number(r.certified)
    first = f"| {' | '.join([*cells, guaranteed, r.tight, f'{100 * r.added:+.1f}%', f'{1e3 * r.asked:.1f} ms'])} |"
    parts = "; ".join(f"{n:,}: {number(a, 5)}, {number(b, 5)}" for n, a, b in r.prefixes)
    return first, f"| {r.name} | {parts} |" if r.prefixes else ""


def table(own: Lines) -> str:
    """Tables of all problems, in the order of `benchmarks/practice`."""
    heads = "problem", "algorithm", "rounds", "loss", "measured", "certified", "guaranteed", "tight", "a round", "asked"
    lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    ordered = [own[name] for name in PROBLEMS if name in own]
    lines += [first for first, _ in ordered]
    lines += [
        "",
        "Regret and certificate on prefixes of the runs:",
        "",
        "| problem | rounds: regret, certificate |",
        "| --- | --- |",
    ]
    return "\n".join([*lines, *(second for _, second in ordered if second)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", default="", help="names, separated by commas; all by default")
    parser.add_argument("--data", type=Path, default=None, help="folder of price relatives")
    parser.add_argument("--missing", action="store_true", help="only what the page has no row of")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true", help="write docs/certificates.md")
    o = parser.parse_args()
    there, lines = problems(o.data, o.seed), lines_of_page() if o.missing else {}
    names = [w for w in o.problems.split(",") if w] or [n for n in PROBLEMS if n in there]
    for name in names:
        if name in lines:
            continue
        try:
            lines[name] = lines_of(row(there[name]()))
            print("\n".join(lines[name]), flush=True)
        except OcoError as error:
            print(f"{name}: {error}", flush=True)
    print(table(lines))
    if o.write:
        text = PAGE.read_text(encoding="utf-8")
        before, _, rest = text.partition(BEGIN)
        write_text(PAGE, f"{before}{BEGIN}\n\n{table(lines)}\n\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
