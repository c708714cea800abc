"""Origin of the settings, in words: units, free constants, and the paper's own beside them."""

from __future__ import annotations

from typing import Any

from oco.compiler.selection.horizons import useful_from
from oco.compiler.selection.judging import judge
from oco.compiler.selection.request import AlgorithmRequest
from oco.compiler.selection.resolve_again import given_words
from oco.compiler.selection.verdicts import Verdict
from oco.compiler.theory.guarantees import Guarantee
from oco.compiler.theory.objective import normalized_sum
from oco.compiler.theory.scales import Scales
from oco.compiler.theory.theorems import Situation


def settings_lines(s: Situation, v: Verdict, weight: float) -> list[tuple[str, str]]:
    """Labelled lines about the settings of a chosen algorithm; none where they are the paper's, in the user's units."""
    if v.scales is None:
        return []
    lines = [("units", units_text(s, v.scales))]
    if v.best is not None:
        lines += [("best", f"{b.name} {_times(b.name, b.number)}: {b.how}") for b in v.best.constants]
        lines += [("best", v.best.note)] if v.best.note else []
    paper = literal(s, v)
    if paper is not None and paper.guarantee is not None and v.guarantee is not None:
        lines += [("paper", f"{_numbers(paper.guarantee)} with the paper's settings, in the model's units")]
        lines += [("unit-free" if v.best is None else "optimal", f"{_numbers(v.guarantee)} with these")]
        lines += sums(s, v, paper, weight)
    return lines


def sums(s: Situation, v: Verdict, paper: Verdict, weight: float) -> list[tuple[str, str]]:
    """The sum that is minimized, of both."""
    before = None if paper.guarantee is None else normalized_sum(s, paper.guarantee, weight)
    if v.best is None or v.best.least is None or before is None:
        return []
    criterion = "regret / range of the loss" + (
        f" + {weight:g} (violations / their scales)" if v.guarantee is not None and v.guarantee.violation_bound else ""
    )
    return [("sum", f"{criterion}: {v.best.least:.5g}, {before:.5g} with the paper's settings")]


def _times(name: str, number: float) -> str:
    return f"times {number:g}"


def units_text(s: Situation, scales: Scales) -> str:
    """`settings are for u = (x - 500) / 5000, the loss / 1.5e+08, service / 3318`."""
    moved = [f"({b.name} - {_middle(o)})" if o.any() else b.name for b, o in zip(s.canonical.blocks, scales.origins)]
    decisions = ", ".join(f"{m} / {scales.radius:.4g}" for m in moved)
    sizes = [*scales.inequalities, *scales.equalities]
    origins = [getattr(c, "origin", c.label) for c in s.canonical.constraints for _ in range(c.size)]
    of = {o: [x for n, x in zip(origins, sizes) if n == o] for o in dict.fromkeys(origins)}
    constraints = "".join(
        f", {o} / {min(x):.4g}" + (f"..{max(x):.4g}" if max(x) > min(x) else "") for o, x in of.items()
    )
    return f"settings are for {decisions}, the loss / {scales.loss:.4g}{constraints}"


def _middle(origin: Any) -> str:
    return f"{float(origin):g}" if origin.ndim == 0 else "the middle"


def literal(s: Situation, v: Verdict) -> Verdict | None:
    """Verdict on the algorithm with the paper's settings in the user's units; None where they have no guarantee."""
    result = judge(v.algorithm, s, AlgorithmRequest(given=given_words(v)))
    return result if result.guarantee is not None else None


def _numbers(guarantee: Guarantee) -> str:
    T = guarantee.horizon
    parts = []
    for b in guarantee.bounds:
        number = None if T is None else b.number(T)
        if T is not None and b.vacuous(T):
            parts.append(f"{b.measure} vacuous")
        else:
            parts.append(f"{b.measure} O({b.rate})" if number is None else f"{b.measure} <= {number:.5g}")
    return ", ".join(parts)


def vacuous_lines(s: Situation, v: Verdict) -> list[tuple[str, str]]:
    """From which horizon a vacuous guarantee says something."""
    return [("vacuous", f"{measure}: {useful}") for measure, useful in useful_from(s, v).items()]


def settings_data(s: Situation, v: Verdict, weight: float) -> dict[str, Any]:
    """Origin of the settings as plain data with stable keys."""
    paper = literal(s, v) if v.scales is not None else None
    sums_of = (
        None if v.best is None else v.best.least,
        None if paper is None or paper.guarantee is None else normalized_sum(s, paper.guarantee, weight),
    )
    return {
        "units": None if v.scales is None else units_text(s, v.scales),
        "constants": {} if v.best is None else v.best.numbers,
        "derivations": {} if v.best is None else {b.name: b.how for b in v.best.constants},
        "tradeoff": weight,
        "sum": sums_of[0],
        "paper_sum": sums_of[1],
        "useful_from": {m: u.horizon for m, u in useful_from(s, v).items()},
    }
