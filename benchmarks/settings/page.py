"""The tables of docs/settings.md, and what can be counted in them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from benchmarks.settings.problems import EXAMPLES, ROOT, WHEN, example, own
from benchmarks.settings.runs import KINDS, Key, Row
from oco.compiler.selection.plan import compile_plan
from oco.dsl.writing import write_text

PAGE = ROOT / "docs" / "settings.md"
MARK = "<!-- tables: written by `python -m benchmarks.settings --write` -->"
SAME = 1e-3
"""Two numbers that are nearer, relatively, are the same."""
NOTHING = 1e-9
FALLS = 0.5
"""Ratio up to which a quantity counts as falling: at most so much at the longest horizon of what it is at the shortest."""
OUTCOMES = ("better in both", "better in one", "one better, one worse", "the same", "worse in one", "worse in both")

Rows = Mapping[Key, Row]


def write_page(rows: Rows) -> None:
    words = PAGE.read_text(encoding="utf-8").split(MARK)[0]
    parts = [
        "Rounds that are tight are rare:",
        exponents(rows, "rare"),
        "Every other round is tight:",
        exponents(rows, "even"),
        counts(rows),
        examples(rows),
        "Methods that apply to none of these, each on a problem of its own (`OWN` in the benchmark):",
        alone(rows),
    ]
    write_text(PAGE, words + MARK + "\n\n" + "\n\n".join(parts) + "\n")


def _lines(head: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows))


# Exponents.


def exponents(rows: Rows, problem: str) -> str:
    """Means over the seeds that have all horizons, and the exponents of T in the sizes: their mean and standard deviation."""
    of_problem = [r for r in rows.values() if r.model == problem and not r.said]
    head = [
        "algorithm",
        "settings",
        "T",
        "average regret",
        "exponent of its size",
        "average violation",
        "exponent",
        "falls",
    ]
    return _lines(head, (_fitted(of_problem, a, kind) for a in WHEN for kind in KINDS))


def _fitted(rows: Sequence[Row], algorithm: str, kind: str) -> list[str]:
    found = {(r.rounds, r.seed): r for r in rows if (r.algorithm, r.kind) == (algorithm, kind)}
    horizons = sorted({T for T, _ in found})
    seeds = [k for k in sorted({k for _, k in found}) if all((T, k) in found for T in horizons)]
    cells, falls = [algorithm, kind, ", ".join(f"{T:.0e}".replace("e+0", "e") for T in horizons)], []
    for measure in ("regret", "violation"):
        values = np.array([[getattr(found[T, k], measure) for T in horizons] for k in seeds])
        text, fallen = _exponent(np.abs(values), horizons)
        cells += [", ".join(f"{x:.3g}" for x in values.mean(axis=0)) if values.size else "", text]
        falls += [measure] if fallen else []
    return [*cells, {2: "both", 1: "".join(falls), 0: "neither"}[len(falls)]]


def _exponent(sizes: np.ndarray, horizons: Sequence[int]) -> tuple[str, bool]:
    """Slopes of log size in log T, a seed a line, as text; and whether sizes fall."""
    if len(horizons) < 2 or not sizes.size:
        return "", False
    falls = bool(sizes[:, -1].mean() <= max(FALLS * sizes[:, 0].mean(), NOTHING))
    if (sizes < NOTHING).any():
        return "nothing left" if falls else "-", falls
    slopes = np.polyfit(np.log(horizons), np.log(sizes).T, 1)[0]
    spread = f"{slopes.std(ddof=1):.2f}" if len(slopes) > 1 else "one seed"
    return f"{slopes.mean():+.2f} ({spread})", falls


# Examples.


def examples(rows: Rows) -> str:
    """Table of each example with the algorithm that comes first by its guarantee: regret and violation a round over the horizons."""
    horizons = sorted({r.rounds for r in rows.values() if r.model in EXAMPLES})
    head = ["model", "algorithm", "settings", *(f"T = {T}" for T in horizons)]
    first = {
        name: compile_plan(next(iter(example(name).models.values())), None, "optimal").algorithm for name in EXAMPLES
    }
    return _lines(
        head,
        (
            [name, first[name], kind, *(_cell(rows.get((name, first[name], T, kind, 0))) for T in horizons)]
            for name in EXAMPLES
            for kind in KINDS
        ),
    )


def alone(rows: Rows) -> str:
    """Table of the methods that apply to no example, each on its own problem, at the horizons that were run."""
    problems = {p.name: next(iter(p.models)) for p in own()}
    horizons = sorted({r.rounds for r in rows.values() if r.model in problems})
    return _lines(
        ["model", "algorithm", "settings", *(f"T = {T}" for T in horizons)],
        (
            [name, a, kind, *(_cell(rows.get((name, a, T, kind, 0))) for T in horizons)]
            for name, a in problems.items()
            for kind in KINDS
        ),
    )


def _cell(row: Row | None) -> str:
    if row is None or row.said:
        return "not run" if row is None else row.said
    return f"{'-' if math.isnan(row.regret) else format(row.regret, '.3g')}, {row.violation:.3g}"


def counts(rows: Rows) -> str:
    """Number of examples on which other settings do better than the paper's; and where `optimal` is worse in loss and violation."""
    found = {kind: dict(_compared(rows, kind)) for kind in KINDS[1:]}
    table = _lines(
        ["against `paper`", *(f"`{kind}`" for kind in found)],
        ([word, *(str(Counter(f.values())[word]) for f in found.values())] for word in OUTCOMES),
    )
    worse = [f"`{m}`, {a}, T = {T}" for (m, a, T), word in found["optimal"].items() if word == OUTCOMES[-1]]
    all_runs = [r for r in rows.values() if r.model in EXAMPLES]
    left = sum(bool(r.said) for r in all_runs)
    said = f"`optimal` is worse in both on: {'; '.join(worse)}." if worse else "`optimal` is nowhere worse in both."
    return f"{table}\n\n{said} Of {len(all_runs)} runs {left} have no number."


def _compared(rows: Rows, kind: str) -> Iterator[tuple[tuple[str, str, int], str]]:
    """Runs with the paper's settings and others that both ended, and how the others did."""
    for (model, algorithm, rounds, paper, seed), before in rows.items():
        after = rows.get((model, algorithm, rounds, kind, seed))
        if model not in EXAMPLES or paper != "paper" or after is None or before.said or after.said:
            continue
        signs = sorted((_sign(before.loss, after.loss), _sign(before.violation, after.violation)))
        yield (
            (model, algorithm, rounds),
            OUTCOMES[{(-1, -1): 0, (-1, 0): 1, (-1, 1): 2, (0, 0): 3, (0, 1): 4, (1, 1): 5}[signs[0], signs[1]]],
        )


def _sign(before: float, after: float) -> int:
    """-1 where less came after, 1 where more did, 0 where it is the same."""
    if abs(after - before) <= max(SAME * max(abs(before), abs(after)), NOTHING):
        return 0
    return -1 if after < before else 1
