"""Tables of docs/practice.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from benchmarks.practice.plots import draw
from benchmarks.practice.problems import ROOT
from benchmarks.practice.runs import Priced, Results
from oco.dsl.writing import write_text
from oco.evaluation.baselines.table import RuleLine
from oco.evaluation.numbers import counted, number

PAGE = ROOT / "docs" / "practice.md"
ALIKE = 1e-6
"""Two numbers that are nearer, relatively, are equal: no rule dominates by less."""
NEAR = 0.02
"""Share of the picked rule's total by which the default may be above it."""
LEAST_GAIN = 0.002
"""Share of the total below which a part gains nothing."""
SHOWN = 10
"""Number of rules in the table of a problem."""

WORDS = """\
# Against rules that people write

Written by `python -m benchmarks.practice --portfolios DIR --write` from `benchmarks/practice/results.json`, to which every run adds what is
not there yet. The default learner, compiled as `oco run --data` does where the model states the price as the penalty of its constraints,
beside every rule of `evaluation/baselines` that fits the model. All decide from the rounds before; all totals are of the last 80% of the
rounds. Rules with a margin, a penalty or a step to tune choose it on the first 20%. The best rule of a row is known only afterwards, so it
flatters the rules; the picked one was the cheapest on the first 20%. Violation is in the constraint's own units: the sum of what the rounds
were broken by where it binds each round, the excess of their sum where it binds on average. The total is loss + price x violation. A rule
dominates where it has no more loss and no more violation, and less of one. Algorithms, tuning and ablation are of the middle price.
"""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Table in Markdown."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows))


def page(results: Sequence[Results]) -> str:
    """Text of the page."""
    head = (
        "problem",
        "price",
        "default",
        "its loss",
        "violation",
        "total",
        "best rule",
        "its loss",
        "violation",
        "total",
    )
    results = [replace(r, priced=rows) for r in results if (rows := tuple(p for p in r.priced if p.rules))]
    rows = [_row(r, p) for r in results for p in r.priced]
    picture = "![loss against violation](practice.svg)"
    parts = [WORDS, table((*head, "dominated by"), rows), _verdict(results), picture]
    parts += [*_tuned(results), *_by_algorithm(results), *_ablation(results)]
    return "\n\n".join([*(p.rstrip() for p in parts), *map(_problem, results)]) + "\n"


def write_page(results: Sequence[Results]) -> None:
    """Write docs/practice.md and its picture."""
    draw(results)
    write_text(PAGE, page(results))


def total(line: RuleLine, price: float) -> float:
    """Loss + price x violation over the scored rounds."""
    return line.loss + price * line.violation


def dominating(p: Priced) -> list[RuleLine]:
    """Rules with no more loss and no more violation than the default, and less of one."""
    own, slack = p.default, ALIKE * max(abs(p.default.loss), 1.0)
    some = ALIKE * max(own.violation, 1.0)
    return [
        r
        for r in p.rules
        if r.loss <= own.loss + slack
        and r.violation <= own.violation + some
        and (r.loss < own.loss - slack or r.violation < own.violation - some)
    ]


def _row(r: Results, p: Priced) -> tuple[str, ...]:
    best = p.rules[0]
    cells = [(number(x.loss), number(x.violation), number(total(x, p.price))) for x in (p.default, best)]
    by = f"{len(dominating(p))} of {len(p.rules)}"
    return r.name, number(p.price), f"`{p.algorithm}`", *cells[0], best.name, *cells[1], by


def _tuned(results: Sequence[Results]) -> list[str]:
    """Totals of the default, the tuned learner and the rule that was picked, a row a problem and price."""
    found = [(r, p, p.tuned) for r in results for p in r.priced if p.tuned is not None]
    if not found:
        return []
    rows = []
    for r, p, tuned in found:
        picked = next((number(total(x, p.price)) for x in p.rules if x.name == p.picked), "-")
        totals = number(total(p.default, p.price)), number(total(tuned, p.price)), picked
        rows.append((r.name, number(p.price), *totals, f"`{tuned.name.removeprefix('tuned: ')}`"))
    better = sum(total(t, p.price) < total(p.default, p.price) * (1 - ALIKE) for _, p, t in found)
    worse = sum(
        total(t, p.price) > total(p.default, p.price) + NEAR * abs(total(p.default, p.price)) for _, p, t in found
    )
    words = (
        "`oco tune` on the first fifth alone, its choice then run from the first round. It costs less than the default in "
        f"{better} of {len(found)} rows, and more by over 2% in {worse}."
    )
    return [f"## Tuned\n\n{words}", table(("problem", "price", "default", "tuned", "picked rule", "settings"), rows)]


def _ablation(results: Sequence[Results]) -> list[str]:
    """Change of the default's total as each part is left out, a row a problem."""
    found = [(r, p) for r in results for p in r.priced if p.ablation and p.algorithm == "hedged"]
    if not found:
        return []
    names = [x.name for x in found[0][1].ablation]
    change = {name: [_change(p, next(x for x in p.ablation if x.name == name)) for _, p in found] for name in names}
    rows = [(r.name, *(f"{change[n][k]:+.1%}" for n in names)) for k, (r, _) in enumerate(found)]
    idle = [f'"{n}"' for n in names if max(change[n]) < LEAST_GAIN]
    words = (
        "Change of the total of `hedged` at the middle price as a part of the construction is left out: above 0 the part gains. "
        f"Parts that gain {LEAST_GAIN:.1%} on no problem: {', '.join(idle) if idle else 'none'}."
    )
    return [f"## Ablation\n\n{words}", table(("problem", *names), rows)]


def _change(p: Priced, x: RuleLine) -> float:
    own = total(p.default, p.price)
    return (total(x, p.price) - own) / abs(own) if own else 0.0


def _verdict(results: Sequence[Results]) -> str:
    rows = [p for r in results for p in r.priced]
    won = sum(total(p.default, p.price) <= total(p.rules[0], p.price) for p in rows)
    free = sum(not dominating(p) for p in rows)
    return (
        f"The default costs no more than the best rule in {won} of {len(rows)} rows, and is dominated by no rule in "
        f"{free}. Where it loses, the table says by how much."
    )


def _by_algorithm(results: Sequence[Results]) -> list[str]:
    """Totals of the default, the rule that was picked, the best rule and every algorithm, a row a problem and price."""
    found = [(r, p) for r in results for p in r.priced if p.algorithms]
    if not found:
        return []
    names = list(dict.fromkeys(a.name for _, p in found for a in p.algorithms))
    rows = []
    for r, p in found:
        totals = {a.name: total(a, p.price) for a in p.algorithms}
        picked = next(total(x, p.price) for x in p.rules if x.name == p.picked)
        least = min(totals.values())
        cells = ["-" if n not in totals else _cell(totals[n], totals[n] == least) for n in names]
        ours = number(total(p.default, p.price))
        rows.append((r.name, number(p.price), ours, number(picked), number(total(p.rules[0], p.price)), *cells))
    head = ("problem", "price", "default", "picked rule", "best rule", *(f"`{n}`" for n in names))
    words = "Totals of each algorithm, the least of them in bold; a dash where none of its theorems applies."
    return [f"## Algorithms\n\n{words}", table(head, rows), _within(found)]


def _cell(value: float, least: bool) -> str:
    return f"**{number(value)}**" if least else number(value)


def _within(found: Sequence[tuple[Results, Priced]]) -> str:
    """Sentence that counts rows where the default is within 2% of the picked rule, and where it is the best algorithm."""
    near = best = 0
    for _, p in found:
        own, picked = total(p.default, p.price), next(total(x, p.price) for x in p.rules if x.name == p.picked)
        near += own <= picked + NEAR * abs(picked)
        least = min(total(a, p.price) for a in p.algorithms)
        best += own <= least + ALIKE * abs(least)
    return (
        f"The default costs no more than the picked rule plus 2% in {near} of {len(found)} rows, and as little as the best "
        f"algorithm in {best}."
    )


def _problem(r: Results) -> str:
    """Cheapest rules of a problem at its middle price, with the default among them."""
    p = r.priced[len(r.priced) // 2]
    lines = sorted([*p.rules[:SHOWN], p.default], key=lambda line: total(line, p.price))
    rows = [
        (
            f"**{x.name}**" if x is p.default else x.name,
            number(x.loss),
            number(x.violation),
            f"{x.broken:,}",
            number(total(x, p.price)),
        )
        for x in lines
    ]
    out = "".join(f"\n\nLeft out: {x.name} ({x.why})." for x in r.left_out)
    rest = f" The {SHOWN} cheapest of {len(p.rules)} rules." if len(p.rules) > SHOWN else ""
    words = f"{r.words[0].upper()}{r.words[1:]}. {counted(r.rounds, 'round')} scored, price {number(p.price)}.{rest}"
    if r.words.startswith("`"):
        words = words.replace(words[: len(r.words)], r.words)
    return f"## {r.name}\n\n{words}\n\n{table(('', 'loss', 'violation', 'rounds broken', 'total'), rows)}{out}"
