"""Rows of the tables about a run, as text: its comparators, constraints, and the rules that it is compared with."""

from __future__ import annotations

from collections.abc import Iterator

from oco.compiler.theory.guarantees import vacuous_words
from oco.evaluation.baselines.rule_table import RuleTable
from oco.evaluation.numbers import counted, number
from oco.evaluation.summary import RegretLine, RunSummary, TotalViolation, ViolationLine

Row = tuple[str, str, str]
"""Measure, its value, and a remark."""


def run_rows(run: RunSummary) -> list[Row]:
    """Rows of what the table of measures (`measure_table`) sums up: of each comparator, constraint and rule."""
    rows: list[Row] = [("loss", number(run.loss), f"{number(run.mean_loss)} a round")]
    for line in run.regret:
        rows.append((f"{line.kind} regret", number(line.value), line.words))
        if line.certificate:
            rows.append(("certified", number(line.certified), line.certificate))
    rows += _violations(run)
    for equal in run.equality:
        mean = f"mean {number(equal.mean)} a round"
        rows.append((f"violation of {equal.label}", number(equal.violation), mean))
    if run.total_cost is not None:
        rows.append(("loss + penalties", number(run.total_cost), "violations at the penalties of the model"))
    if run.rules is not None:
        rows += _best_rule(run.rules)
    took = f"{counted(run.rounds, 'round')} in {run.seconds:.2g} s"
    return [*rows, ("rounds a second", f"{run.rounds_per_second:,.0f}", took)]


def _violations(run: RunSummary) -> Iterator[Row]:
    """Rows of the foremost constraints, of the others together, and of all."""
    shown, others = run.most_violated()
    for line in shown:
        if line.total is not None and line.spent is not None:
            yield f"spent of {line.label}", number(line.spent), f"{line.timing}; {_part(line)}"
            continue
        yield f"hard violation of {line.label}", number(line.hard), _broken(line, run.rounds)
        yield f"soft violation of {line.label}", number(line.soft), ""
    if others:
        rest = f"{len(others)} others" if shown else f"all {len(others)} constraints"
        broken = sum(v.rounds > 0 for v in others)
        hard, soft = number(sum(v.hard for v in others)), number(sum(v.soft for v in others))
        yield f"hard violation of {rest}", hard, f"{broken or 'none'} of them broken"
        yield f"soft violation of {rest}", soft, ""
    if len(run.violation) > 1 or any(t.guarantee for t in run.totals):
        for total in run.totals:
            bound = f"; guaranteed: {promised(total)}" if total.guarantee is not None else ""
            yield f"{total.kind} violation, summed", number(total.papers), f"{number(total.scaled)} in scales{bound}"


def _part(line: ViolationLine) -> str:
    return (
        "nothing may be spent"
        if not line.total
        else f"{(line.spent or 0.0) / line.total:.1%} of the total of {number(line.total)}"
    )


def _broken(line: ViolationLine, rounds: int) -> str:
    worst = f", by {number(line.worst)} at most" if line.rounds else ""
    most = "" if line.allowed is None else f" (guaranteed: {int(line.allowed)} or fewer)"
    return f"{line.timing}; broken in {line.rounds} of {counted(rounds, 'round')}{most}{worst}"


def _best_rule(rules: RuleTable) -> Iterator[Row]:
    if (best := rules.best) is not None:
        less = best.cost < rules.learner.cost
        verdict = f"{rules.weighing} is {'less' if less else 'no less'} than the learner's"
        if not rules.keeping:
            verdict = "it keeps constraints less well than the learner"
        broken = f"{best.name}; violation {number(best.shown_violation)}, broken in {counted(best.broken, 'round')}"
        yield "best rule", number(best.loss), f"{broken}; {verdict}"


def promised(line: RegretLine | TotalViolation) -> str:
    """Text of a guaranteed bound, a word where it is vacuous; empty where there is none."""
    if line.guarantee is None:
        return ""
    return vacuous_words(number(line.trivial, unknown="")) if line.vacuous else number(line.guarantee)


def rule_rows(rules: RuleTable, digits: int = 6) -> list[tuple[str, ...]]:
    """Rows of the learner and all rules: mark, name, loss, violation, rounds broken, and cost to so many digits."""
    return [
        (
            mark,
            line.name,
            number(line.loss),
            number(line.shown_violation),
            f"{line.broken:,}",
            number(line.cost, digits),
        )
        for mark, line in rules.marked
    ]
