"""Self-contained page of HTML about a run: numbers, plots, facts with their proofs, and origin."""

from __future__ import annotations

import json
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from oco.compiler.prover.fact import Fact
from oco.compiler.prover.facts import Facts
from oco.compiler.prover.types import Step
from oco.compiler.theory.guarantees import vacuous_words
from oco.dsl.text.latex import escaped
from oco.dsl.text.printer import print_model
from oco.dsl.writing import write_text
from oco.evaluation.baselines.rule_table import Beside, RuleTable
from oco.evaluation.measured_run import MeasuredRun, Promise
from oco.evaluation.numbers import counted, number
from oco.evaluation.report import html
from oco.evaluation.report.plots import drawings
from oco.evaluation.report.rule_plots import loss_against_violation
from oco.evaluation.report.run_rows import promised, rule_rows
from oco.evaluation.report.run_table import FOUR, measure_table
from oco.evaluation.report.style import vector
from oco.evaluation.storage import manifest
from oco.evaluation.summary import RunSummary, ViolationLine, summarize

DEPTH = 12  # of a derivation that is spelled out
MANY = 6  # constraints whose facts are listed one by one

CAPTIONS = {
    "regret": "Regret after every round.",
    "violation": "Violation of the constraints after every round.",
    "regret, log": "Regret on logarithmic axes: a power of the round is a straight line.",
    "violation, log": "Violation on logarithmic axes.",
    "certificate": (
        "Marks bound the regret to the best fixed decision of the rounds so far, from those rounds alone. The curve compares with the best "
        "for all rounds, so that it may be lower before the last round."
    ),
    "decisions": "The entries of the decision that move most.",
    "queues": "The queues or multipliers that the algorithm carries.",
}


def write_report(
    trace: MeasuredRun,
    path: str | Path,
    facts: Facts | None = None,
    explanation: str = "",
    beside: Beside | None = None,
) -> None:
    """Write the page. `facts` and `explanation` (the table of algorithms, as text) come from the plan, where there is
    one; `beside` has the rules that were played over the same rounds.
    """
    write_text(Path(path), report(trace, facts, explanation, beside))


def report(trace: MeasuredRun, facts: Facts | None = None, explanation: str = "", beside: Beside | None = None) -> str:
    """Text of the page."""
    result = summarize(trace, beside=beside, certify=True)
    title = f"{result.model} with {result.algorithm}"
    parts = [
        f"<header><h1>{escape(title)}</h1>{html.paragraph(_subtitle(result), 'soft')}</header>",
        *(html.paragraph(note, "soft") for note in result.notes),
        *(html.paragraph(warning, "warn") for warning in result.warnings),
        html.section("Loss, regret and violation", _regret(result)),
        html.section("Constraints", _constraints(result)),
        *([html.section("Rules to compare with", *_rules(result.rules))] if result.rules is not None else []),
        html.section("Pictures", html.gallery(html.drawing(svg, CAPTIONS[n]) for n, svg in drawings(trace).items())),
        html.section("Guarantee and settings", *_promise(trace)),
    ]
    if facts is not None:
        parts.append(html.section("What is known of the model", *_ledger(facts)))
    if explanation:
        parts.append(
            html.section("Algorithms", html.folded("why this one, and why not the others", html.code(explanation)))
        )
    parts.append(html.section("What made it", *_origin(trace)))
    return html.page(title, parts)


def brief(trace: MeasuredRun) -> str:
    """Summary of a trace for a notebook: its numbers, and regret against the comparators that are known already."""
    known = summarize(trace, tuple(k for k in ("static", "dynamic") if k in trace.known_comparators))
    regret = (
        _regret(known)
        if known.regret
        else html.paragraph("trace.regret() finds the comparator and measures regret.", "soft")
    )
    head = f"<strong>{escape(f'{known.model} with {known.algorithm}')}</strong>{html.paragraph(_subtitle(known))}"
    return f'<div class="oco">{html.IN_NOTEBOOK}{head}{regret}{_constraints(known)}</div>'


def brief_latex(trace: MeasuredRun) -> str:
    """LaTeX of the summary of a trace."""
    known = summarize(trace, tuple(k for k in ("static", "dynamic") if k in trace.known_comparators))
    lines = [rf"\textstyle\sum_t f_t(x_t) &= {known.loss:.6g}"]
    lines += [rf"\text{{{r.kind} regret}} &= {r.value:.6g}" for r in known.regret if r.value is not None]
    for row in known.violation:
        measure = "[g_t(x_t)]_+" if row.timing == "each round" else "g_t(x_t)"
        value = row.hard if row.timing == "each round" else row.soft
        lines.append(rf"\text{{{escaped(row.label)}}}:\ \textstyle\sum_t {measure} &= {value:.6g}")
    lines += [
        rf"\text{{{escaped(e.label)}}}:\ |\textstyle\sum_t h_t(x_t)| &= {e.violation:.6g}" for e in known.equality
    ]
    return "$$\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}$$"


def _subtitle(result: RunSummary) -> str:
    return (
        f"{counted(result.rounds, 'round')}, total loss {number(result.loss)} ({number(result.mean_loss)} a round), "
        f"{result.rounds_per_second:,.0f} rounds a second"
    )


def _regret(results: RunSummary) -> str:
    """Measures of the run beside what is certified and guaranteed of them; certificates and conditions in words."""
    against = {f"{r.kind} regret": r.words for r in results.regret}
    rows = [(*cells, against.get(cells[0], "")) for cells in measure_table(results).only(FOUR).cells()]
    table = html.table(("", *FOUR, "compared with"), rows, numbers=(1, 2, 3, 4))
    table += "".join(
        html.paragraph(f"Guarantee of the {r.kind} regret: {promised(r)}.", "soft")
        for r in results.regret
        if r.vacuous and r.trivial is not None
    )
    table += "".join(
        html.paragraph(f"Certificate of the {r.kind} regret: {r.certificate}.", "soft")
        for r in results.regret
        if r.certificate
    )
    if not results.conditions:
        return table
    conditions = [(c.words, c.text) for c in results.conditions]
    return table + html.table(("the guarantee is for sequences for which", "on these data"), conditions)


def _constraints(result: RunSummary) -> str:
    shown, others = result.most_violated()
    rows = [_violated(v, result.rounds) for v in shown]
    rows += [
        (e.label, "equality on average", "", number(e.violation), "", "", number(e.scale, unknown="–"))
        for e in result.equality
    ]
    if not rows and not others:
        return html.paragraph("The model has no constraints.", "soft")
    headings = ("constraint", "binds", "hard violation", "soft violation", "broken in", "by at most", "scale")
    columns, more = (2, 3, 4, 5, 6), []
    if others:
        broken = sum(v.rounds > 0 for v in others) or "none"
        which = f"the other {len(others)} constraints" if rows else f"all {len(others)} constraints"
        rest = html.table(headings, [_violated(v, result.rounds) for v in others], numbers=columns)
        more = [html.folded(f"{which}, {broken} of them broken", rest)]
    totals = [
        (f"{t.kind} violation, summed", number(t.papers), number(t.scaled), promised(t) or "–") for t in result.totals
    ]
    second = html.table(("", "plain sum", "in scales", "guaranteed"), totals, numbers=(1, 2, 3)) if totals else ""
    first = html.table(headings, rows, numbers=columns) if rows else ""
    return "".join((first, *more, second))


def _violated(v: ViolationLine, rounds: int) -> tuple[str, ...]:
    if v.total is not None and v.spent is not None:
        spent = f"{number(v.spent)} of {number(v.total)} spent"
        return v.label, v.timing, number(v.hard), number(v.soft), spent, number(v.worst), number(v.scale, unknown="–")
    broken = f"{v.rounds:,} of {rounds:,}" + ("" if v.allowed is None else f" (guaranteed: at most {int(v.allowed):,})")
    return v.label, v.timing, number(v.hard), number(v.soft), broken, number(v.worst), number(v.scale, unknown="–")


def _rules(rules: RuleTable) -> list[str]:
    """Picture and table of the learner and of the rules that were played over the same rounds."""
    headings = ("", "rule", "loss", "violation, summed", "rounds broken", f"{rules.weighing} a round")
    plot = html.drawing(
        vector(partial(loss_against_violation, rules)), "Loss against violation, a point for each rule."
    )
    left_out = [html.paragraph(f"Left out: {name}, since {why}.", "soft") for name, why in rules.left_out]
    return [html.gallery([plot]), html.table(headings, rule_rows(rules), numbers=(2, 3, 4, 5)), *left_out]


def _promise(trace: MeasuredRun) -> list[str]:
    promise = trace.promise
    names = promise.measures or {name: name for name in promise.rates}
    rows = [
        (names.get(name, name), f"O({rate.replace('**', '^')})", _last(promise, name))
        for name, rate in promise.rates.items()
    ]
    none = f"Nothing is promised: {promise.withheld}." if promise.withheld else "No theorem speaks for this run."
    words = f"By {promise.theorem}." if promise.theorem else none
    settings = html.table(("setting", "formula", "value"), _settings(promise), numbers=(2,)) if promise.settings else ""
    bounds = (
        html.table(("measure", "rate", f"bound after {counted(trace.rounds, 'round')}"), rows, numbers=(2,))
        if rows
        else ""
    )
    return [html.paragraph(words), bounds, settings]


def _last(promise: Promise, name: str) -> str:
    """Bound of a measure after the last round; a word where it is vacuous."""
    if name not in promise.curves:
        return "–"
    if name in promise.vacuous:
        return vacuous_words(number(promise.trivial.get(name), unknown=""))
    return number(promise.at_end(name))


def _settings(promise: Promise) -> list[tuple[str, str, str]]:
    """Name, formula and number of each setting; no formula where it equals the number."""
    values = {name: f"{value:.6g}" for name, value in promise.values.items()}
    return [
        (name, "" if values.get(name) == formula else formula, values.get(name, "–"))
        for name, formula in promise.settings.items()
    ]


def _ledger(facts: Facts) -> list[str]:
    """Table of the facts with their status; the derivation opens on demand. Facts of many constraints are folded
    together.
    """
    known = [fact for fact in facts.values() if fact.known or fact.witness is not None]
    of = {fact.key: ".".join(fact.key.split(".")[:2]) for fact in known if fact.key.startswith("constraints.")}
    if len(set(of.values())) <= MANY:
        return [_fact(fact) for fact in known]
    parts: dict[str, list[str]] = {}
    for fact in known:
        parts.setdefault(of.get(fact.key, fact.key), []).append(_fact(fact))
    return [html.folded(which, *each) if which in of.values() else each[0] for which, each in parts.items()]


def _fact(fact: Fact) -> str:
    value = _value(fact.value)
    steps = [_derivation(fact.why, 0)] if fact.why is not None else []
    cite = [html.paragraph(fact.cite, "soft")] if fact.cite else []
    witness = [html.paragraph(fact.witness.words)] if fact.witness is not None else []
    return html.folded(f"{fact.key} = {value}" if value else fact.key, *witness, *steps, *cite, tag=fact.status.value)


def _value(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | float | np.number):
        return number(float(value))
    if isinstance(value, np.ndarray) and value.size > 6:
        return f"an array of shape {list(value.shape)}"
    return str(value)


def _derivation(step: Step, depth: int) -> str:
    """Derivation step above the steps that it rests on."""
    words = f"{step.claim} ({step.rule})"
    if not step.premises or depth >= DEPTH:
        return html.paragraph(words)
    return html.folded(words, *(_derivation(p, depth + 1) for p in step.premises))


def _origin(trace: MeasuredRun) -> list[str]:
    known = manifest(trace)
    kept = {name: known[name] for name in ("oco", "numpy", "algorithm", "seed", "drawn")}
    return [
        html.folded("the model", html.code(print_model(trace.problem.model))),
        html.code(json.dumps(kept, indent=2)),
    ]
