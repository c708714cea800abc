"""The choice in words: a table for the terminal, and the same as data for JSON and for richer renderers."""

from __future__ import annotations

import math
import re
import textwrap
from decimal import Decimal
from functools import lru_cache
from typing import Any

from oco.compiler.algorithms.base import Algorithm
from oco.compiler.ir.exact_numbers import decimal
from oco.compiler.ir.symbolic import Formula, Numeral, text
from oco.compiler.ir.symbolic_form import mapped
from oco.compiler.prover.seen_ranges import LOOKED_AT
from oco.compiler.selection.brief import brief_lines
from oco.compiler.selection.choice import Choice
from oco.compiler.selection.explain_settings import settings_data, settings_lines, vacuous_lines
from oco.compiler.selection.seen_by import seen_by
from oco.compiler.selection.verdicts import Applicability, Informativeness, Verdict, constraint_words, withheld
from oco.compiler.theory.objective import ANY_HORIZON
from oco.compiler.theory.settings import Setting
from oco.compiler.theory.theorems import Bound, Guarantee
from oco.dsl.source import Span

WIDTH = 116
APPLIES = {Applicability.CHOSEN: "chosen: ", Applicability.APPLICABLE: "applies: ", Applicability.REFUSED: ""}
SAYS = {Informativeness.VACUOUS: "vacuous; ", Informativeness.RATES: "a rate without a number; "}
UNSEARCHED = "the numbers are for the paper's constants: it comes behind whatever these are"


def explain_text(choice: Choice) -> str:
    """Text of `oco explain`: three lines on the chosen algorithm, a table, a line an algorithm, then the details of each."""
    choice = choice.compared()
    s = choice.situation
    horizon = "unknown" if s.rounds is None else str(s.rounds)
    head = f"{s.canonical.name}: {constraint_words(s)}, T = {horizon}"
    lines = [head, "", *brief_lines(choice), "", *table_lines(choice), ""]
    for words in s.canonical.remarks:
        lines += [*_wrapped("", words, WIDTH), ""]
    for v in choice.verdicts:
        lines += _verdict_lines(v, choice)
    if choice.winner is None:
        lines += ["", *_wrapped("", ". ".join(filter(None, refusal(choice)[:2])), WIDTH)]
    return "\n".join(lines).rstrip() + "\n"


def table_lines(choice: Choice) -> list[str]:
    """Each algorithm with its sum of regret and violations, and whether it applies or why not, in a few words."""
    rounds = choice.situation.rounds or ANY_HORIZON
    lines = [f"{'algorithm':<17} {'sum':>10}  at T = {rounds}, in units of the most that a round can cost"]
    for v in choice.verdicts:
        line = f"{v.name:<17} {_sum(v):>10}  {APPLIES[v.applicability]}{_in_few_words(v)}"
        lines += textwrap.wrap(line, WIDTH, subsequent_indent=" " * 30)
    return lines


def _sum(v: Verdict) -> str:
    """The sum by which guarantees are ranked, in which the trivial bound stands for what is vacuous or without a number."""
    return f"{v.score:.5g}" if math.isfinite(v.score) else "-"


def _in_few_words(v: Verdict) -> str:
    """Informativeness of the guarantee, and the reason of the choice, or the first clause of the first reason and the number of others."""
    says = SAYS.get(v.informativeness, "")
    if v.applicability is Applicability.CHOSEN:
        words = v.reason
    else:
        words = re.split(r", and |[:;] |, not ", v.reasons[0])[0] if v.reasons else ""
    more = f" (and {len(v.reasons) - 1} more)" if len(v.reasons) > 1 else ""
    return f"{words}{more}" if says[:7] in words else f"{says}{words}{more}"


def refusal(choice: Choice) -> tuple[str, str, Span | None]:
    """Why nothing applies, the way out and the place: constraints that cannot hold, else the algorithm that comes nearest."""
    nearest = min(choice.verdicts, key=lambda v: (any(o.drops for o in v.objections), len(v.objections), not v.fix))
    impossible = next((w for w in choice.situation.facts.warnings if w.code == "OCO605"), None)
    if impossible is not None and nearest.fix.startswith("loosen"):
        return f"no algorithm applies to this model: {impossible.message}", impossible.hint, impossible.span
    overflow = next((w for w in choice.situation.facts.warnings if w.code == "OCO613"), None)
    if overflow is not None:
        return f"no algorithm applies to this model: {overflow.message}", overflow.hint, overflow.span
    message = f"no algorithm applies to this model yet: the nearest is {nearest.name}, but {_joined(nearest.reasons)}"
    others = "; `oco explain` says what each other one needs"
    place = next((o.span for o in nearest.objections if o.span is not None), None)
    for stream in choice.situation.canonical.streams:
        if nearest.fix.startswith(f"state bounds of `{stream.name}`"):
            place = stream.stream.span
    return message, f"{nearest.name} would apply if you {nearest.fix}{others}" if nearest.fix else "", place


def _joined(parts: tuple[str, ...]) -> str:
    return "; and ".join(parts)


def _verdict_lines(v: Verdict, choice: Choice) -> list[str]:
    head = f"{v.applicability.value:<11} {v.name:<16} {v.algorithm.title} ({v.algorithm.cite})"
    lines = [head]
    for reason in v.reasons:
        lines += _wrapped("because", reason)
    if v.applicability is Applicability.REFUSED:
        return [*lines, *(_wrapped("unless", f"you {v.fix}") if v.fix else []), ""]
    for setting in v.settings.values() if v.applicability is Applicability.CHOSEN else ():
        lines += _wrapped("setting", setting_text(setting))
    if v.theorem is not None and (why := withheld(v.theorem, seen_by(v.algorithm, choice.situation), v.settings)):
        lines += _wrapped("promise", f"none: {why}") if why not in v.reasons else []
    if v.guarantee is not None:
        lines += _wrapped("by", v.guarantee.theorem)
        for bound in v.guarantee.bounds:
            lines += _wrapped("bound", bound_text(bound, v.guarantee))
        for condition in v.guarantee.provisos:
            lines += _wrapped("note", condition) if condition not in v.reasons else []
        if v.name in choice.unsearched and v.theorem is not None and v.theorem.free:
            lines += _wrapped("note", UNSEARCHED)
    if v.applicability is Applicability.CHOSEN:
        s, weight = choice.played, choice.policy.weight
        for label, text in (*vacuous_lines(s, v), *settings_lines(s, v, weight)):
            lines += _wrapped(label, text)
    return [*lines, ""]


def _wrapped(label: str, text: str, width: int = WIDTH) -> list[str]:
    indent = 28
    first = f"{'':12}{label:<{indent - 12}}" if label else ""
    return textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=" " * (indent if label else 0), break_long_words=False
    )


def setting_text(setting: Setting) -> str:
    """`eta = 1/T = 0.000347 (Corollary 1)`."""
    shown = formula_text(setting.formula)
    value = "" if setting.value is None or shown == f"{setting.value:.6g}" else f" = {setting.value:.6g}"
    return f"{setting.name} = {shown}{value}   [{setting.why}]"


@lru_cache(maxsize=1024)
def formula_text(formula: Formula) -> str:
    """Formula with short numbers."""
    short = _with_short_numbers(formula)
    return (
        f"{float(short.number):.6g}"
        if isinstance(short, Numeral) and isinstance(short.number, Decimal)
        else text(short, 6)
    )


def _with_short_numbers(f: Formula) -> Formula:
    """Formula with a decimal in the place of each number that is longer than eight characters."""
    if isinstance(f, Numeral):
        return Numeral(decimal(f.number)) if len(str(f)) > 8 else f
    return mapped(f, _with_short_numbers)


def bound_text(bound: Bound, guarantee: Guarantee) -> str:
    """`static regret <= 12345 (O(sqrt(T)))`, and whether that says anything."""
    rounds = guarantee.horizon
    number = None if rounds is None else bound.number(rounds)
    note = f", {bound.note}" if bound.note else ""
    rate = f"O({bound.rate})"
    if rounds is None and bound.formula:
        return f"{bound.measure} = {rate} for every T{note}"
    if number is None or rounds is None:
        return f"{bound.measure} = {rate}, a rate without a number{note}"
    per_round = number / rounds
    if bound.vacuous(rounds) and bound.worst is not None:
        worst = "cost more than" if "regret" in bound.measure else "add more to it than"
        seen = bound.most != bound.trivial
        most = f"{'on the data no decisions' if seen else 'no round can'} {worst} {bound.worst:.4g}"
        spread = f" of {LOOKED_AT} rounds spread over it" if rounds > LOOKED_AT else ""
        mean = f" a round in the mean{spread}" if seen else ""
        return f"{bound.measure} = {rate}{note}: vacuous, for {most}{mean}, {bound.trivial_total(rounds):.4g} in all"
    return f"{bound.measure} <= {number:.6g} = {rate}: {per_round:.4g} a round{note}"


def explain_data(choice: Choice) -> dict[str, Any]:
    """The choice as plain data with stable keys."""
    choice = choice.compared()
    winner = choice.winner
    return {
        "measure": str(choice.situation.canonical.measure),
        "horizon": choice.situation.rounds,
        "algorithm": None if winner is None else winner.name,
        "settings": {} if winner is None else {n: _setting_data(x) for n, x in winner.settings.items()},
        "guarantee": None if winner is None or winner.guarantee is None else guarantee_data(winner.guarantee),
        "settings_found": {} if winner is None else settings_data(choice.played, winner, choice.policy.weight),
        "verdicts": [_verdict_data(v) for v in choice.verdicts],
    }


def _setting_data(setting: Setting) -> dict[str, Any]:
    return {"formula": str(setting.formula), "value": setting.value, "why": setting.why, "given": setting.given}


def guarantee_data(guarantee: Guarantee) -> dict[str, Any]:
    """JSON values of a guarantee: theorem, bounds and conditions."""
    bounds = [
        {
            "measure": b.measure,
            "number": None if guarantee.horizon is None else b.number(guarantee.horizon),
            "rate": b.rate,
            "vacuous": guarantee.horizon is not None and b.vacuous(guarantee.horizon),
            "latex": b.latex,
            "quantities": {q.name: q.meaning for q in b.quantities},
        }
        for b in guarantee.bounds
    ]
    return {"theorem": guarantee.theorem, "bounds": bounds, "conditions": list(guarantee.provisos)}


def _verdict_data(v: Verdict) -> dict[str, Any]:
    return {
        "algorithm": v.name,
        "title": v.algorithm.title,
        "cite": v.algorithm.cite,
        "cost": v.algorithm.cost,
        "standing": v.applicability.value,
        "theorem": None if v.theorem is None else v.theorem.name,
        "reasons": list(v.reasons),
        "fix": v.fix,
        "strength": v.informativeness.value,
        "sum": v.score if math.isfinite(v.score) else None,
        "guarantee": None if v.guarantee is None else guarantee_data(v.guarantee),
    }


def algorithm_data(a: Algorithm) -> dict[str, Any]:
    """An algorithm and its theorems, in words: what `oco algorithms` lists."""
    theorems = [
        {
            "name": t.name,
            "measures": sorted(str(m) for m in t.measures),
            "hypotheses": [h.words for h in t.hypotheses],
            "rates": dict(t.rates),
            "expected": t.expected,
        }
        for t in a.theorems
    ]
    requirements = [h.words for h in a.requirements]
    return {
        "name": a.name,
        "title": a.title,
        "cite": a.cite,
        "cost": a.cost,
        "requirements": requirements,
        "departures": list(a.departures),
        "theorems": theorems,
    }
