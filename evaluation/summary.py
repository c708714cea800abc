"""Summary of a run: printed by the command line, written by `--json`, and placed at the head of a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from oco.compiler.problem.canonical import Equality, Inequality
from oco.compiler.theory.conditions import ConditionLine
from oco.dsl.records import dataclass
from oco.dsl.statements import Timing
from oco.evaluation.baselines.held import HeldLines, held_lines
from oco.evaluation.baselines.rule_table import Beside, RuleLine, RuleTable, rule_line, rule_table
from oco.evaluation.comparators import Comparator
from oco.evaluation.comparators.shares import in_shares
from oco.evaluation.conditions import condition_lines
from oco.evaluation.cost import Trade
from oco.evaluation.measured_run import MeasuredRun, RegretKind

ROUNDING = 1e-12  # of a constraint's scale: a constraint that binds exactly is not broken by the last bits of its sum
MET = 1e-6  # of its scale: to that a known constraint is met, which convex ones are by iterations


@dataclass(frozen=True)
class RegretLine:
    """Regret after the last round against one comparator; `value` is None where the comparator was not computed.

    `guarantee` is the theorem's bound where it applies to this kind of regret; `vacuous` is True where that says
    nothing; `trivial` bounds it whatever is decided. `certified` is the bound of a certificate, `certificate` a sentence about it or about
    why there is none.
    """

    kind: str
    value: float | None
    comparator: float | None
    gap: float | None
    status: str
    words: str
    guarantee: float | None = None
    vacuous: bool = False
    trivial: float | None = None
    certified: float | None = None
    certificate: str = ""


@dataclass(frozen=True)
class ViolationLine:
    """Violation of one constraint after the last round. `rounds`: number in which it was broken beyond rounding;
    `worst`: the largest excess; `penalty`: the loss that the model says a unit of it is worth; `allowed`: the number of rounds that the
    guarantee of a constraint in a share of the rounds allows it to be broken in; `spent` and `total` of a constraint in total.
    """

    label: str
    timing: str
    hard: float
    soft: float
    scale: float | None
    rounds: int
    worst: float
    penalty: float | None = None
    allowed: float | None = None
    spent: float | None = None
    total: float | None = None


@dataclass(frozen=True)
class EqualityLine:
    """Violation of one equality on average: |sum_t h_t|, and its mean over the rounds."""

    label: str
    violation: float
    mean: float
    scale: float | None
    penalty: float | None = None


@dataclass(frozen=True)
class TotalViolation:
    """Violation of all constraints together: the papers' plain sum, and the sum of each divided by its scale;
    `guarantee` bounds the plain sum, and `trivial` whatever is decided.
    """

    kind: str
    papers: float
    scaled: float
    guarantee: float | None = None
    vacuous: bool = False
    trivial: float | None = None


@dataclass(frozen=True)
class RunSummary:
    """Summary of a run that fits on one screen. `own` has its totals, `held` those of its first decision in all rounds, `idle` those of
    doing nothing, `in_shares` is the loss of the best fixed decision that was found to keep constraints in their shares of the rounds, in
    hindsight; `withheld` says why nothing is promised although the hypotheses of a theorem hold."""

    model: str
    algorithm: str
    theorem: str
    rounds: int
    seconds: float
    rounds_per_second: float
    loss: float
    mean_loss: float
    regret: tuple[RegretLine, ...]
    violation: tuple[ViolationLine, ...]
    equality: tuple[EqualityLine, ...]
    totals: tuple[TotalViolation, ...]
    conditions: tuple[ConditionLine, ...]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    rules: RuleTable | None = None
    own: RuleLine | None = None
    held: RuleLine | None = None
    idle: RuleLine | None = None
    in_shares: float | None = None
    withheld: str = ""

    @property
    def total_cost(self) -> float | None:
        """Loss and the violations at their penalties, in units of the loss; None where the model states no penalty."""
        if not (any(v.penalty for v in self.violation) or any(v.penalty for v in self.equality)):
            return None
        hard = sum((v.penalty or 0.0) * v.hard for v in self.violation if v.timing == Timing.EACH_ROUND)
        soft = sum((v.penalty or 0.0) * max(v.soft, 0.0) for v in self.violation if v.timing == Timing.ON_AVERAGE)
        return self.loss + hard + soft + sum((v.penalty or 0.0) * v.violation for v in self.equality)

    def most_violated(self, most: int = 12) -> tuple[tuple[ViolationLine, ...], tuple[ViolationLine, ...]]:
        """Constraints to show, in their order, and the others: where there are more than `most`, the worst broken ones
        are shown.
        """
        if len(self.violation) <= most:
            return self.violation, ()
        broken = sorted((v for v in self.violation if v.rounds), key=lambda v: -v.hard)[:most]
        return tuple(v for v in self.violation if v in broken), tuple(v for v in self.violation if v not in broken)

    def to_json(self) -> dict[str, Any]:
        """Plain values; null for numbers that are not finite."""
        result = _plain(asdict(self))
        assert isinstance(result, dict)
        return {"version": 1, "total_cost": self.total_cost} | result


def summarize(
    trace: MeasuredRun,
    kinds: tuple[RegretKind, ...] = ("static", "dynamic"),
    beside: Beside | None = None,
    certify: bool = False,
    known: HeldLines | None = None,
) -> RunSummary:
    """Summary of a trace, with the comparators that it needs, the rules that were played beside it, and a certificate if asked for.

    known  totals of what is held in all rounds; None: they are worked out
    """
    held, idle = known or held_lines(trace)
    shares = in_shares(trace.problem, trace.data, trace.budget)
    return RunSummary(
        model=trace.problem.name,
        algorithm=trace.promise.algorithm,
        theorem=trace.promise.theorem,
        withheld=trace.promise.withheld,
        rounds=trace.rounds,
        seconds=trace.seconds,
        rounds_per_second=trace.rounds_per_second,
        loss=float(trace.loss.sum()),
        mean_loss=float(trace.loss.mean()),
        regret=tuple(_certified(trace, _regret(trace, kind), certify) for kind in kinds),
        violation=_violations(trace),
        equality=_equalities(trace),
        totals=_totals(trace),
        conditions=condition_lines(trace, kinds),
        notes=trace.notes,
        warnings=trace.warnings,
        rules=rule_table(trace, beside) if beside is not None else None,
        own=rule_line("the learner", trace, Trade.at_price(trace.problem, 1.0)),
        held=held,
        idle=idle,
        in_shares=None if shares is None else shares.value,
    )


def _guarantee(trace: MeasuredRun, measure: str, word: str) -> tuple[float | None, bool, float | None]:
    """Guaranteed bound of "regret" or "violation" at the last round, where the guarantee is of the kind `word`; a flag that it is
    vacuous; and the trivial bound.
    """
    promise = trace.promise
    if measure not in promise.curves or word not in promise.measures.get(measure, word):
        return None, False, None
    return promise.at_end(measure), measure in promise.vacuous, promise.trivial.get(measure)


def _regret(trace: MeasuredRun, kind: RegretKind) -> RegretLine:
    result: Comparator = trace.comparator(kind)
    promised = _guarantee(trace, "regret", kind)
    if result.losses is None:
        return RegretLine(kind, None, None, None, result.status.value, result.words, *promised)
    value = float(trace.regret(kind)[-1])
    return RegretLine(kind, value, result.value, result.gap, result.status.value, result.words, *promised)


def _certified(trace: MeasuredRun, line: RegretLine, certify: bool) -> RegretLine:
    """Line with the certified bound of its regret, where one is asked for or the learner kept it."""
    own = trace.own_certificate
    if line.kind == "dynamic" and own is not None and own.dynamic is not None:
        impossible = own.dynamic == -np.inf
        words = "some round allows no decision" if impossible else "the best decision of each round, bounded as it came"
        return replace(line, certified=None if impossible else own.dynamic, certificate=words)
    if line.kind != "static" or not (certify or trace.own_certificate is not None):
        return line
    bound, words = trace.certified()
    return replace(line, certified=bound, certificate=words)


def _scale(trace: MeasuredRun, index: int) -> float | None:
    return None if trace.promise.scales is None else float(trace.promise.scales[index])


def _violations(trace: MeasuredRun) -> tuple[ViolationLine, ...]:
    timings = [c.when for c in trace.problem.inequalities for _ in range(c.size)]
    penalties = _penalties(trace.problem.inequalities)
    margins = [c.margin for c in trace.problem.inequalities for _ in range(c.size)]
    in_total, most = trace.totals
    shares = [rounding_of(c) for c in trace.problem.inequalities for _ in range(c.size)]
    totals = [trace.last_violation(kind) for kind in ("hard", "soft")] if timings else []
    spent = trace.last_spent()
    lines = []
    for i, label in enumerate(trace.labels):
        g = trace.constraints[:, i]
        hard, soft = (float(total[i]) for total in totals)
        scale = _scale(trace, i)
        slack = shares[i] * scale if scale is not None and np.isfinite(scale) else 0.0
        broken, worst = int((g > slack).sum()), max(float(g.max()), 0.0)
        margin = margins[i]
        allowed = None if margin is None else margin.allowed(trace.rounds)
        line = ViolationLine(label, timings[i], hard, soft, scale, broken, worst, penalties[i], allowed)
        lines.append(_spent(line, float(most[i]), float(spent[i])) if in_total[i] else line)
    return tuple(lines)


def _spent(line: ViolationLine, total: float, spent: float) -> ViolationLine:
    """Line of a constraint in total: rounds break it together or not at all."""
    over = max(spent - total, 0.0)
    return replace(line, rounds=int(over > 0), worst=over, spent=spent, total=total)


def rounding_of(c: Inequality) -> float:
    """Share of its scale by which a constraint may be off before it counts as broken."""
    return MET if c.known else ROUNDING


def _penalties(constraints: Sequence[Inequality | Equality]) -> list[float | None]:
    """Penalty of each entry; None where the model states none."""
    return [p for c in constraints for p in c.penalties or (None,) * c.size]


def _equalities(trace: MeasuredRun) -> tuple[EqualityLine, ...]:
    sums = trace.equalities.sum(axis=0)
    first, penalties = len(trace.labels), _penalties(trace.problem.equalities)
    return tuple(
        EqualityLine(label, abs(float(sums[i])), float(sums[i]) / trace.rounds, _scale(trace, first + i), penalties[i])
        for i, label in enumerate(trace.equality_labels)
    )


def _totals(trace: MeasuredRun) -> tuple[TotalViolation, ...]:
    if not trace.labels:
        return ()
    lines = []
    for kind in ("hard", "soft"):
        papers, scaled = (float(trace.last_violation(kind, total=t)) for t in ("papers", "scaled"))
        lines.append(TotalViolation(kind, papers, scaled, *_guarantee(trace, "violation", kind)))
    return tuple(lines)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
