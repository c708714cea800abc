"""Tables of docs/practice.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from benchmarks.practice.causes import CAUSES, ELSEWHERE
from benchmarks.practice.chance import BLOCK, LEVEL, RESAMPLES
from benchmarks.practice.plots import draw
from benchmarks.practice.problems import ROOT
from benchmarks.practice.results import OWN, Priced, Results
from benchmarks.practice.totals import (
    ALIKE,
    EARLY_NEAR,
    NEAR,
    WIDE_NEAR,
    against,
    best_of_papers,
    dominating,
    early,
    excess,
    missed,
    picked,
    total,
    wide,
)
from oco.dsl.writing import write_text
from oco.evaluation.baselines.rule_table import RuleLine
from oco.evaluation.numbers import counted, number

PAGE = ROOT / "docs" / "practice.md"
LEAST_GAIN = 0.002
"""Share of the total below which a part gains nothing."""
MOST_NAMED = 3
"""Rules left out for one reason that are named, beyond which they are counted."""
SHOWN = 10
"""Number of rules in the table of a problem."""
SAVINGS = 3
"""Rules that dominate a row and are named with what they save."""

WORDS = """\
# Against rules that people write

Written by `python -m benchmarks.practice --data DIR --write` from `benchmarks/practice/results.json`, to which every run adds what is not
there yet. The default learner, compiled as `oco run --data` does where the model states the price as the penalty of its constraints,
beside every rule of `evaluation/baselines` that fits the model and every algorithm whose theorem applies. All decide from the rounds
before, but that a default that is not `hedged` was chosen by pilots on the first 60% of the rounds, which flatters it. All totals are of
the last 80% of the rounds. Rules with a margin, a penalty or a step to tune choose it on the first 20%. The picked rule was the cheapest
on the first 20%; the best rule is known only afterwards, and flatters the rules. Violation is in the constraint's own units: the sum of
what the rounds were broken by where it binds each round, the excess of their sum where it binds on average. The total is loss + price x
violation. Percentages say by how much the default's total is above another (below 0: it costs less); where the loss is the negative
logarithm of wealth, they are of wealth. A rule dominates where it has no more loss and no more violation, and less of one; beyond chance
where the interval of what it saves, below, is above 0.
"""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Table in Markdown."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows))


def page(results: Sequence[Results]) -> str:
    """Text of the page."""
    results = [replace(r, priced=rows) for r in results if (rows := tuple(p for p in r.priced if p.rules))]
    head = ("problem", "price", "default", "loss", "violation", "total", "over picked rule", "over best rule")
    rows = [_row(r, p) for r in results for p in r.priced]
    picture = "![loss against violation](practice.svg)"
    parts = [WORDS, table((*head, "over the papers", "dominated by"), rows), _verdict(results), picture]
    parts += [
        *_missed(results),
        *_chance(results),
        *_early_and_wide(results),
        *_tuned(results),
        *_by_algorithm(results),
    ]
    return "\n\n".join([*(p.rstrip() for p in [*parts, *_ablation(results)]), *map(_problem, results)]) + "\n"


def write_page(results: Sequence[Results]) -> None:
    """Write docs/practice.md and its picture."""
    draw(results)
    write_text(PAGE, page(results))


def percent(share: float | None) -> str:
    """Share in percent with its sign; a dash for none."""
    return "-" if share is None else f"{share:+.1%}"


def _row(r: Results, p: Priced) -> tuple[str, ...]:
    own, papers = p.default, best_of_papers(p)
    cells = number(own.loss), number(own.violation), number(total(own, p.price)), percent(against(r, p, picked(p)))
    best = f"{percent(against(r, p, p.rules[0]))}: {p.rules[0].name}"
    paper = "-" if papers is None else f"{percent(against(r, p, papers))}: `{papers.name}`"
    by = f"{len(dominating(p))} of {len(p.rules)}"
    by += "" if p.chance is None else f", {_beyond(p)} beyond chance"
    return r.name, number(p.price), f"`{p.algorithm}`", *cells, best, paper, by


def _beyond(p: Priced) -> int:
    """Number of rules that dominate beyond chance."""
    return 0 if p.chance is None else sum(s.beyond_chance for s in p.chance.savings)


def _verdict(results: Sequence[Results]) -> str:
    rows = [(r, p) for r in results for p in r.priced]
    to_picked = sum(_within(against(r, p, picked(p)), NEAR) for r, p in rows)
    to_best = sum(_within(against(r, p, p.rules[0]), NEAR) for r, p in rows)
    papers = [x for r, p in rows if (x := against(r, p, best_of_papers(p))) is not None]
    free, judged = sum(not dominating(p) for _, p in rows), [p for _, p in rows if p.chance is not None]
    by_chance = (
        f", and none beyond chance in {sum(not _beyond(p) for p in judged)} of {len(judged)} others that were judged"
        if judged
        else ""
    )
    return (
        f"Of {counted(len(rows), 'row')} the default costs at most 2% more than the picked rule in {to_picked}, than the best rule in "
        f"{to_best}, and no more than the best algorithm of the papers in {sum(x <= ALIKE for x in papers)} of {len(papers)}; no rule "
        f"dominates it in {free}{by_chance}."
    )


def _within(share: float | None, most: float) -> bool:
    return share is not None and share <= most


def _missed(results: Sequence[Results]) -> list[str]:
    """Rows that miss a target, with the cause, a line a row."""
    rows = [(r, p, words) for r in results for p in r.priced if (words := missed(r, p))]
    if not rows:
        return []
    cells, causes = [(r.name, number(p.price), "; ".join(words)) for r, p, words in rows], dict[str, dict[str, None]]()
    for r, _, _ in rows:
        for cause in CAUSES.get(r.name, ()):
            causes.setdefault(cause, {})[r.name] = None
    words = (
        f"Targets: at most {NEAR:.0%} over each rule, no more than any algorithm of the papers, never dominated; in the first tenth at "
        f"most {EARLY_NEAR:.0%} over the best of two cheap rules; at most {WIDE_NEAR:.0%} of change with bounds ten times as wide."
    )
    reasons = "\n".join(f"* {', '.join(names)}: {cause}." for cause, names in causes.items())
    return [
        f"## Where it fails, and why\n\n{words}",
        table(("problem", "price", "missed"), cells),
        *filter(None, [reasons]),
    ]


def _chance(results: Sequence[Results]) -> list[str]:
    """Savings of the rules that dominate, with intervals, a line a rule."""
    found = [(r, p, p.chance) for r in results for p in r.priced if p.chance is not None]
    if not found:
        return []
    rows = []
    for r, p, of in found:
        for s in of.savings[:SAVINGS]:
            interval = f"{s.low:.3g} to {s.high:.3g}"
            rows.append((r.name, number(p.price), s.name, f"{s.saved:.3g}", interval, f"{of.p_value:.2f}"))
    words = (
        "Rules that dominate, what each saves beside the default over the scored rounds, in units of the loss, and its interval of "
        f"{LEVEL:.0%}: of {RESAMPLES:,} resampled runs, in blocks of {BLOCK} rounds; the {SAVINGS} of a row whose intervals begin highest. "
        "An interval is of one rule, which was chosen afterwards; p says how often the best of all rules of the row would save as many of "
        "its standard deviations if none of them were better than the default (the reality check of White 2000)."
    )
    head = ("problem", "price", "rule that dominates", "saves", "interval", "p of the row")
    return [f"## What may be chance\n\n{words}", table(head, rows)]


def _early_and_wide(results: Sequence[Results]) -> list[str]:
    """First tenth of the rounds beside the cheap rules, and what bounds that are too wide change."""
    found = [(r, p) for r in results for p in r.priced if p.early is not None and p.early_rules]
    if not found:
        return []
    rows = []
    for r, p in found:
        assert p.early is not None
        best = min(p.early_rules, key=lambda x: total(x, p.price))
        numbers = number(total(p.early, p.price)), number(total(best, p.price)), percent(early(r, p)), best.name
        rows.append((r.name, number(p.price), *numbers, percent(wide(r, p))))
    held = sum(_within(early(r, p), EARLY_NEAR) for r, p in found)
    changes = [x for r, p in found if (x := wide(r, p)) is not None]
    same = sum(abs(x) <= WIDE_NEAR for x in changes)
    words = (
        "Totals of the first 10% of the rounds, beside the better of the two cheap rules that `oco run` shows; and the change of the "
        "default's total over the scored rounds at the middle price where the declared bounds of the data are ten times as wide "
        "(`[low / 10, 10 high]` of data that are not negative, else about the middle; streams with a stated distribution keep theirs). "
        f"The first tenth is within {EARLY_NEAR:.0%} in {held} of {len(found)} rows, the change in {same} of {len(changes)}."
    )
    head = ("problem", "price", "default", "cheap rule", "over it", "which", "with wide bounds")
    return [f"## First rounds, and bounds that are too wide\n\n{words}", table(head, rows)]


def _tuned(results: Sequence[Results]) -> list[str]:
    """Totals of the default, the tuned learner and the rule that was picked, a row a problem and price."""
    found = [(r, p, p.tuned) for r in results for p in r.priced if p.tuned is not None]
    if not found:
        return []
    rows, changes, kept = [], [], 0
    for r, p, tuned in found:
        totals = [number(total(x, p.price)) for x in (p.default, tuned)]
        changes.append(excess(total(tuned, p.price), total(p.default, p.price), r.wealth))
        line = "-" if tuned.name == p.default.name else f"`{tuned.name.removeprefix('tuned: ')}`"
        kept += line == "-"
        rows.append((r.name, number(p.price), *totals, percent(changes[-1]), percent(against(r, p, picked(p))), line))
    words = (
        "`oco tune` on the first fifth alone; the line that it prints then run from the first round, compiled with the data as the default "
        f"is. In {kept} of {counted(len(found), 'row')} it keeps the default, for nothing that it tried gains more than chance may on the "
        "rounds held out: the model then stays as it is (-). What is tuned costs less than the default in "
        f"{sum(x < -ALIKE for x in changes)}, and more in {sum(x > ALIKE for x in changes)}, by over 2% in "
        f"{sum(x > NEAR for x in changes)}."
    )
    head = ("problem", "price", "default", "tuned", "over default", "default over picked rule", "settings")
    return [f"## Tuned\n\n{words}", table(head, rows)]


def _by_algorithm(results: Sequence[Results]) -> list[str]:
    """Totals of the default and every algorithm, a row a problem and price."""
    found = [(r, p) for r in results for p in r.priced if p.algorithms]
    if not found:
        return []
    names = sorted({a.name for _, p in found for a in p.algorithms}, key=lambda n: (n != OWN, n))
    rows = []
    for r, p in found:
        totals = {a.name: total(a, p.price) for a in p.algorithms}
        least = min(totals.values())
        cells = ["-" if n not in totals else _cell(totals[n], totals[n] == least) for n in names]
        rows.append((r.name, number(p.price), number(total(p.default, p.price)), *cells))
    words = "Totals of each algorithm, the least of them in bold; a dash where none of its theorems applies."
    return [f"## Algorithms\n\n{words}", table(("problem", "price", "default", *(f"`{n}`" for n in names)), rows)]


def _cell(value: float, least: bool) -> str:
    return f"**{number(value)}**" if least else number(value)


def _ablation(results: Sequence[Results]) -> list[str]:
    """Change of the default's total as each part is left out, a row a problem."""
    found = [(r, p) for r in results for p in r.priced if p.ablation and p.algorithm == OWN]
    if not found:
        return []
    names = list(dict.fromkeys(x.name for _, p in found for x in p.ablation))
    change = {name: [_change(r, p, name) for r, p in found] for name in names}
    rows = [
        (name, *("-" if x is None else "0" if abs(x) < ALIKE else percent(x) for x in change[name])) for name in names
    ]
    idle = [n for n in names if all(x is not None and x < LEAST_GAIN for x in change[n])]
    reasons = [f'"{n}"' + (f" ({ELSEWHERE[n]})" if n in ELSEWHERE else "") for n in idle]
    words = (
        f"Change of the total of `{OWN}` as a part of the construction is left out: above 0 the part gains, 0 where it plays no part, "
        "a dash where it was not played since the experts changed. "
        f"Parts that gain {LEAST_GAIN:.1%} on no problem: {', '.join(reasons) if reasons else 'none'}."
    )
    head = ("", *(f"{r.name}, {number(p.price)}" for r, p in found))
    return [f"## Ablation\n\n{words}", table(head, rows)]


def _change(r: Results, p: Priced, name: str) -> float | None:
    line = next((x for x in p.ablation if x.name == name), None)
    return None if line is None else excess(total(line, p.price), total(p.default, p.price), r.wealth)


def _problem(r: Results) -> str:
    """Cheapest rules of a problem at its middle price, with the default among them."""
    p = r.priced[len(r.priced) // 2]
    lines = sorted([*p.rules[:SHOWN], p.default], key=lambda line: total(line, p.price))
    rows = [_line(x, p) for x in lines]
    reasons = dict.fromkeys(x.why for x in r.left_out)
    out = "".join(f"\n\nLeft out: {_named([x.name for x in r.left_out if x.why == why])} ({why})." for why in reasons)
    rest = f" The {SHOWN} cheapest of {len(p.rules)} rules." if len(p.rules) > SHOWN else ""
    start = r.words if r.words.startswith("`") else f"{r.words[0].upper()}{r.words[1:]}"
    words = f"{start}. {counted(r.rounds, 'round')} scored, price {number(p.price)}.{rest}"
    return f"## {r.name}\n\n{words}\n\n{table(('', 'loss', 'violation', 'rounds broken', 'total'), rows)}{out}"


def _named(names: Sequence[str]) -> str:
    """Names of rules; their number where they are many."""
    return "; ".join(names) if len(names) <= MOST_NAMED else counted(len(names), "rule")


def _line(x: RuleLine, p: Priced) -> tuple[str, ...]:
    name = f"**{x.name}**" if x is p.default else x.name
    return name, number(x.loss), number(x.violation), f"{x.broken:,}", number(total(x, p.price))
