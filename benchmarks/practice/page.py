"""Tables of docs/practice.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.practice.problems import ROOT
from benchmarks.practice.runs import Priced, Results
from oco.dsl.writing import write_text
from oco.evaluation.baselines.table import RuleLine
from oco.evaluation.numbers import counted, number

PAGE = ROOT / "docs" / "practice.md"
ALIKE = 1e-6
"""Two numbers that are nearer, relatively, are equal: no rule dominates by less."""
SHOWN = 10
"""Number of rules in the table of a problem."""

WORDS = """\
# Against rules that people write

Written by `python -m benchmarks.practice --portfolios DIR --write`. The default learner, compiled as `oco run --data` does with the
`--tradeoff` that stands for the price, beside every rule of `evaluation/baselines` that fits the model. Both decide from the rounds
before; all totals are of the last 80% of the rounds. Rules with a margin, a penalty or a step to tune choose it on the first 20%; the
best rule of a row is known only afterwards, so it flatters the rules. Violation is in the constraint's own units: the sum of what the
rounds were broken by where it binds each round, the excess of their sum where it binds on average. The total is loss +
price x violation. A rule dominates where it has no more loss and no more violation, and less of one.
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
    rows = [_row(r, p) for r in results for p in r.priced]
    parts = [WORDS, table((*head, "dominated by"), rows), _verdict(results)]
    return "\n\n".join([*(p.rstrip() for p in parts), *map(_problem, results)]) + "\n"


def write_page(results: Sequence[Results]) -> None:
    """Write docs/practice.md."""
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


def _verdict(results: Sequence[Results]) -> str:
    rows = [p for r in results for p in r.priced]
    won = sum(total(p.default, p.price) <= total(p.rules[0], p.price) for p in rows)
    free = sum(not dominating(p) for p in rows)
    return (
        f"The default costs no more than the best rule in {won} of {len(rows)} rows, and is dominated by no rule in "
        f"{free}. Where it loses, the table says by how much."
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
