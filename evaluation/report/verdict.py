"""Verdict on a run in at most 25 lines of 80 columns: its loss beside others', constraints, guarantee, the next command."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import shorten, wrap
from typing import Any

import numpy as np

from oco.compiler.evidence.wealth import read_alarm
from oco.compiler.problem.canonical import Canonical
from oco.compiler.problem.margins import ShareMargin
from oco.dsl.labels import MOST_NAMED
from oco.dsl.records import dataclass
from oco.dsl.statements import Timing
from oco.evaluation.baselines.held import HELD
from oco.evaluation.baselines.rule_table import NOTHING, RuleLine
from oco.evaluation.comparators.base import ComparatorStatus
from oco.evaluation.measured_run import MeasuredRun
from oco.evaluation.numbers import counted, number
from oco.evaluation.report.run_table import FOUR, measure_table, share_of
from oco.evaluation.report.states import cut_states
from oco.evaluation.summary import ROUNDING, RegretLine, RunSummary, rounding_of

Array = np.ndarray[Any, Any]

WIDTH, LINES = 80, 25
LABEL = 12  # width of the column of headings
EQUAL_LOSS = 5e-4  # share by which losses differ that are called equal
EQUAL = 1e-3  # share of its scale by which the mean of an equality may be off
COMPARED = {"static": "best fixed decision", "dynamic": "best of each round"}


@dataclass(frozen=True)
class ConstraintRecord:
    """Constraint over a run in a few words; `broken` where it was not kept."""

    label: str
    words: str
    broken: bool


def verdict(trace: MeasuredRun, run: RunSummary, data: str, algorithm: str, following: Sequence[str]) -> str:
    """Text of the verdict.

    data       words on where the rounds come from; `algorithm` is a sentence
    following  commands that lead on
    """
    constraints = kept_constraints(trace)
    headline = _wrapped(_headline(run, constraints, trace.problem))[:3]
    in_headline = len(constraints) == 1 and constraints[0].words in " ".join(headline)
    shown = [] if in_headline or not constraints else _block("constraints", _constraints(constraints), MOST_NAMED + 1)
    shown += _block("states", cut_states(trace), 2)
    sections = [
        headline,
        [*_block("data", [data], 2), *_block("algorithm", [algorithm], 2), *_block("refuted", refuted_words(run), 3)],
        [*_table(run), *_best_rule(run), *_held(run), *_without_foresight(trace)],
        shown,
        [*_block("certified", certified_words(run), 3), *_block("guarantee", [guarantee_words(run)], 5)],
        _block("warning", [w for w in run.warnings if read_alarm([w]) is None][:1], 2),
        *_next(following),
    ]
    return "\n".join(_fitted(sections))


def _fitted(sections: Sequence[Sequence[str]]) -> list[str]:
    """Sections with lines between them where these fit on the screen; from the end those are left out that do not, but the next command."""
    head, (shown, guarantee, warning, *commands) = list(sections[:3]), sections[3:]
    for kept in (
        [shown, guarantee, warning, *commands],
        [shown, guarantee, *commands[:1]],
        [shown[:2], guarantee[:4], *commands[:1]],
    ):
        parts = [list(part) for part in (*head, *kept) if part]
        for gaps in (4, 3, 2, 1):
            lines = parts[0] + [line for k, part in enumerate(parts[1:]) for line in ([""] * (k < gaps) + part)]
            if len(lines) <= LINES:
                return lines
    return lines[:LINES]


def _wrapped(text: str, width: int = WIDTH) -> list[str]:
    return wrap(text, width, break_on_hyphens=False)


def _block(heading: str, texts: Iterable[str], most: int) -> list[str]:
    """Texts beside a heading, each on lines of its own, `most` of them in all: what goes beyond is cut."""
    lines = [line for text in texts for line in _wrapped(text, WIDTH - LABEL)]
    if len(lines) > most:
        rest = " ".join(lines[most - 1 :])
        lines = [*lines[: most - 1], shorten(rest, WIDTH - LABEL, placeholder=" ...")]
    return [f"{heading if k == 0 else '':<{LABEL}}{line}" for k, line in enumerate(lines)]


def _next(commands: Sequence[str]) -> list[list[str]]:
    """Lines of each command; one that is too long goes on in lines that a shell joins."""
    results = []
    for k, command in enumerate(commands):
        parts = wrap(command, WIDTH - LABEL - 2, break_on_hyphens=False, break_long_words=False)
        text = [part + " \\" for part in parts[:-1]] + parts[-1:]
        results.append([f"{'next' if k + i == 0 else '':<{LABEL}}{line}" for i, line in enumerate(text)])
    return results


def compared(own: float, other: float) -> str:
    """Own loss against another: "6.3% less than", or the difference where a share would say nothing."""
    if abs(own - other) <= EQUAL_LOSS * max(abs(own), abs(other)):
        return "as much as"
    word = "less than" if own < other else "more than"
    if own * other > 0 and abs(own - other) < 10 * abs(other):
        share = 100 * abs(own - other) / abs(other)
        return f"{share:.2g}% {word}" if share < 10 else f"{share:.0f}% {word}"
    return f"{number(abs(own - other), 4)} {word}"


def _in_shares(problem: Canonical) -> str:
    """Words for the best fixed decision that keeps constraints in their shares of the rounds."""
    own = [c for c in problem.inequalities if c.margin is not None]
    kept = f"`{own[0].origin}` {own[0].when}" if len(own) == 1 else "constraints in their shares of rounds"
    return f"the best fixed decision found that keeps {kept}"


def _headline(run: RunSummary, constraints: Sequence[ConstraintRecord], problem: Canonical) -> str:
    """Sentence on the loss, or on what was earned, beside the best fixed decision and the best rule; and one on the constraints.

    Where the model states penalties, violations count in it at these. A fixed decision takes states as they came, which it would have
    moved otherwise: where there are some, the sentence leaves it out.
    """
    verb, sign = ("earned", -1.0) if problem.model.maximized else ("lost", 1.0)
    priced = run.own is not None and run.own.priced is not None
    total = run.loss if run.own is None or run.own.priced is None else run.own.priced
    against, alone = [], ""
    static = next((r for r in run.regret if r.kind == "static" and r.comparator is not None), None)
    violating = static is not None and static.status == ComparatorStatus.LEAST_VIOLATING.value
    fixed = not problem.standing.carried and not (priced and violating)
    if run.in_shares is not None and not priced:
        against.append(f"{compared(sign * total, sign * run.in_shares)} {_in_shares(problem)}")
    elif static is not None and static.comparator is not None and fixed:
        least = "least violating" if violating else "best"
        against.append(f"{compared(sign * total, sign * static.comparator)} the {least} fixed decision")
    if run.rules is not None and run.rules.best is not None:
        rule = run.rules.best
        other, broke = (rule.loss, _broke(run.own, rule)) if rule.priced is None else (rule.priced, "")
        if run.rules.keeping:
            against.append(f"{compared(sign * total, sign * other)} the best rule{broke}")
        else:
            alone = f"; no rule that was played kept {'its constraint' if len(constraints) == 1 else 'its constraints'} as well"
    beside = (f": {' and '.join(against)}" if against else "") + alone
    own = f"{number(sign * total)} {'with penalties ' if priced else ''}in {counted(run.rounds, 'round')}"
    return f"{run.model} {verb} {own}{beside}.{_kept_words(constraints)}"


def _broke(own: RuleLine | None, rule: RuleLine) -> str:
    """Clause where a rule violates clearly less or more than the learner: its loss alone does not tell which is better."""
    if own is None or abs(own.violation - rule.violation) <= max(
        NOTHING, EQUAL_LOSS * max(own.violation, rule.violation)
    ):
        return ""
    return ", which broke less" if rule.violation < own.violation else ", which broke more"


def _kept_words(constraints: Sequence[ConstraintRecord]) -> str:
    broken = [c for c in constraints if c.broken]
    if not constraints:
        return ""
    if not broken:
        return " All constraints were kept." if len(constraints) > 1 else " Its constraint was kept."
    if len(constraints) == 1:
        return f" Its constraint was {broken[0].words}."
    return f" {len(broken)} of {len(constraints)} constraints {'was' if len(broken) == 1 else 'were'} not kept."


def _table(run: RunSummary) -> list[str]:
    """Lines of the table of measures, and of what its numbers are beside: why a regret is not known or not certified, and the best rule."""
    lines = measure_table(run).only(FOUR if run.rules is not None else FOUR[:-1]).lines(WIDTH)
    for line in run.regret:
        if note := _comparator_note(line):
            lines += _wrapped(shorten(f"{line.kind} regret: {note}", 2 * WIDTH - LABEL, placeholder=" ..."))[:2]
    return lines


def _comparator_note(line: RegretLine) -> str:
    """Words on the comparator of a regret, where that is not the certified best; else empty."""
    if line.comparator is None:
        return line.words.partition(": ")[2].removeprefix("it was ") or "not known"
    if line.status == ComparatorStatus.LEAST_VIOLATING.value:
        return f"against the {COMPARED[line.kind].replace('best', 'least broken')}, as none keeps all"
    return "" if line.status == ComparatorStatus.CERTIFIED.value else "the best in hindsight is not certified"


def _best_rule(run: RunSummary) -> list[str]:
    if run.rules is None or run.rules.best is None:
        return []
    less = "" if run.rules.keeping else ", which keeps constraints less well"
    return _wrapped(f"best rule: {run.rules.best.name}{less}")[:2]


def _held(run: RunSummary) -> list[str]:
    """Line on the first decision held."""
    if run.held is None:
        return []
    broke = f", violation {number(run.held.shown_violation, 4)}" if run.violation or run.equality else ""
    return [f"{HELD}: loss {number(run.held.loss)}{broke}"]


def _without_foresight(trace: MeasuredRun) -> list[str]:
    """Line on the best decisions of a model with states: each is the best of its own round."""
    if not trace.problem.standing.carried or "dynamic" not in trace.known_comparators:
        return []
    return ["best of each round: from the states that came, without foresight"]


def kept_constraints(trace: MeasuredRun) -> list[ConstraintRecord]:
    """Constraints of the model with how they were kept, each with all its entries; both sides of an equality are one."""
    inequalities = trace.problem.inequalities
    ends = np.cumsum([0, *(c.size for c in inequalities)])
    columns: dict[tuple[str, Timing], list[int]] = {}
    shares, margins = dict[str, float](), dict[str, ShareMargin | None]()
    for c, start, end in zip(inequalities, ends, ends[1:]):
        name = c.label.removesuffix(".above").removesuffix(".below")
        columns.setdefault((name, c.timing), []).extend(range(start, end))
        shares[name], margins[name] = rounding_of(c), c.margin
    results = []
    budgets, spent = trace.totals[1], trace.last_spent()
    for (label, timing), where in columns.items():
        if trace.totals[0][where].all():
            results.append(_in_total(label, spent[where], budgets[where]))
            continue
        g, slack = trace.constraints[:, where], _slack(trace.promise.scales, where, shares[label])
        margin = margins[label]
        if margin is not None:
            words, broken = _in_share(g, slack, int(margin.allowed(len(g))))
        else:
            words, broken = _each_round(g, slack) if timing is Timing.EACH_ROUND else _on_average(g, slack)
        results.append(ConstraintRecord(label, words, broken))
    start = 0
    for e in trace.problem.equalities:
        off = np.abs(trace.equalities[:, start : start + e.size].sum(axis=0)) / len(trace.equalities)
        entries, start = list(range(ends[-1] + start, ends[-1] + start + e.size)), start + e.size
        apart = bool((off > EQUAL / ROUNDING * _slack(trace.promise.scales, entries)).any())
        words = f"sides differ by {number(float(off.max()), 3)} a round on average"
        results.append(ConstraintRecord(e.label, words if apart else "kept on average over all rounds", apart))
    return results


def _slack(scales: Array | None, columns: Sequence[int], share: float = ROUNDING) -> Array:
    """Excess of each entry below which it is rounding."""
    if scales is None:
        return np.full(len(columns), NOTHING)
    known = scales[list(columns)]
    return np.asarray(share * np.where(np.isfinite(known), np.maximum(known, 1.0), 1.0))


def _of_all(count: int, rounds: int) -> str:
    """`4 of 744 rounds (0.5%)`."""
    return share_of(count, rounds).replace(" (", f" of {rounds:,} rounds (")


def _each_round(g: Array, slack: Array) -> tuple[str, bool]:
    broken = int((g > slack).any(axis=1).sum())
    worst = f", broken by {number(float(g.max()), 4)} at most" if broken else ""
    return f"kept in {_of_all(len(g) - broken, len(g))}{worst}", broken > 0


def _in_share(g: Array, slack: Array, allowed: int) -> tuple[str, bool]:
    """Words on the entry that was broken most often; broken where that is in more rounds than its share allows."""
    count = int((g > slack).sum(axis=0).max())
    entry = "" if g.shape[1] == 1 else " at the entry that was most"
    worst = f", by {number(float(g.max()), 4)} at most" if count else ""
    return f"broken in {_of_all(count, len(g))}{entry}, {allowed:,} allowed{worst}", count > allowed


def _in_total(label: str, spent: Array, total: Array) -> ConstraintRecord:
    """Record of a constraint in total, by its entry that is nearest to its total."""
    k = int(np.argmax(spent - total))
    words = f"{number(float(spent[k]), 4)} of {number(float(total[k]), 4)} spent"
    return ConstraintRecord(label, words, bool((spent > total).any()))


def _on_average(g: Array, slack: Array) -> tuple[str, bool]:
    over = g.sum(axis=0)
    if (over <= len(g) * slack).all():
        return "kept on average over all rounds", False
    worst = float(over.max())
    return f"over by {number(worst, 4)} in all, {number(worst / len(g), 3)} a round", True


def _constraints(constraints: Sequence[ConstraintRecord]) -> list[str]:
    """Lines of the first constraints, those that were broken before the others, and one on the rest."""
    ordered = sorted(constraints, key=lambda c: not c.broken)
    lines = [f"{shorten(c.label, 24, placeholder='...')}: {c.words}" for c in ordered[:MOST_NAMED]]
    if rest := ordered[MOST_NAMED:]:
        broken = sum(c.broken for c in rest)
        lines.append(f"and {len(rest)} more, {broken or 'none'} of them broken")
    return lines


def certified_words(run: RunSummary) -> list[str]:
    """Sentences on what is proved of the run beside every fixed decision, and beside the best of each round; none without a certificate."""
    own = {line.kind: line for line in run.regret if line.certified is not None}
    words = [own["static"].certificate] if "static" in own else []
    if "dynamic" in own:
        words.append(f"the best decision of each round lost less by {number(own['dynamic'].certified)} at most")
    return words


def refuted_words(run: RunSummary) -> list[str]:
    """Sentence on what the data refuted of what the model states: what, since when, and what was done; none where nothing."""
    alarm = read_alarm(run.warnings)
    if alarm is None:
        return []
    since, statement, done = alarm
    return [
        f"since round {since:,}: {statement}; {done or 'the rule stayed: --alert 0.01 goes over to one without it'}"
    ]


def guarantee_words(run: RunSummary) -> str:
    """Sentence on what is promised, beside what holding the first decision gives."""
    line = next((r for r in run.regret if r.guarantee is not None), None)
    if not run.theorem:
        return f"none: {run.withheld or 'no theorem of the algorithm applies to this model'}"
    if line is None or line.guarantee is None:
        return f"{run.theorem} gives a rate and no number; `oco explain` shows it"
    alarm = read_alarm(run.warnings)
    than = "the best fixed decision" if line.kind == "static" else "the best decision of each round"
    if line.vacuous:
        most = "" if line.trivial is None else f", {number(line.trivial, 4)} more than {than},"
        text = f"vacuous: the worst that any decisions can do in {counted(run.rounds, 'round')}{most} is within what {run.theorem} promises"
    else:
        text = f"at most {number(line.guarantee)} more than {than} ({run.theorem}){_beside_trivial(run, line)}"
    text = text if alarm is None or "takes over" not in alarm[2] else f"until round {alarm[0]:,}: {text}"
    total = next((t for t in run.totals if t.guarantee is not None), None)
    if total is not None and not total.vacuous:
        text += f"; violation at most {number(total.guarantee)}"
    for condition in run.conditions[:1]:
        text += f"; if {condition.words}: on these data, {condition.outcome}"
        text += "" if condition.since is None else f" from round {condition.since} on"
    return text


def _beside_trivial(run: RunSummary, line: RegretLine) -> str:
    """Clause on the regret of the first decision held against the same comparator; where that is not known, of any decisions."""
    if line.guarantee is None:
        return ""
    if run.held is None or line.comparator is None:
        return "" if line.trivial is None else f"; any decisions lose {number(line.trivial, 4)} more at most"
    idle = run.held.loss - line.comparator
    more = f"{number(abs(idle))} {'more' if idle >= 0 else 'less'}"
    weak = ", so the promise says less than learning nothing gave" if idle < line.guarantee else ""
    return f"; the first decision held lost {more}{weak}"
