"""The ledger in words and as data: a line a fact, JSON with stable keys."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from oco.compiler.prover.derivation import WIDTH, value_text
from oco.compiler.prover.fact import Fact
from oco.compiler.prover.phrasing import number
from oco.compiler.prover.types import ProofRule, Status, Step
from oco.dsl.intervals import Interval

MEASURED = ("path_length", "variation.gradient", "variation.constraint", "V_x", "V_g")
DETAILS = (
    ".exp_concavity",
    ".upper",
    ".lower",
    ".bregman_radius",
    ".bregman_diameter",
    ".structure",
    ".projection",
    ".linear_minimisation",
    ".penalized_step",
)


def listed(facts: Mapping[str, Fact]) -> list[str]:
    """The keys of a screenful: known facts without the entries of vector constraints and what only a theorem asks for."""
    known = (k for k in facts if "[" not in k and not k.endswith(DETAILS) and facts[k].status is not Status.UNKNOWN)
    return _grouped(known)


def _grouped(keys: Iterable[str]) -> list[str]:
    """The loss, one constraint after the other, the domain, and the facts on all constraints together."""
    results: dict[str, list[str]] = {"loss": []}
    for key in keys:
        results.setdefault(_group(key), []).append(key)
    last = ("domain", "")
    return [k for group in sorted(results, key=lambda g: last.index(g) + 1 if g in last else 0) for k in results[group]]


def ledger_text(facts: Mapping[str, Fact]) -> str:
    """A line a fact: value, status and the last step of the derivation. `--why KEY` and `--json` show the rest."""
    return _table(facts[key] for key in listed(facts)) + _unknown(facts)


def summary_text(facts: Mapping[str, Fact]) -> str:
    """The facts about the loss, the constraints and feasibility that a reader asks for first."""
    kinds = ("convex", "lipschitz.l2", "strong_convexity.l2", "bound", "diameter.l2", "bounded", "margin", "common")
    shown = (key for key in facts if "[" not in key and key.endswith(kinds) and _tells(facts[key]))
    return _table(facts[key] for key in _grouped(shown))


def _tells(fact: Fact) -> bool:
    zero = isinstance(fact.value, float) and fact.value == 0 and fact.key.endswith("strong_convexity.l2")
    return fact.status is not Status.UNKNOWN and not zero


def _table(facts: Iterable[Fact]) -> str:
    rows = [(f.key, value_text(f.value), f.grade, reason(f)) for f in facts]
    widths = [max((len(row[i]) for row in rows), default=0) for i in range(3)]
    lines = []
    for row, before in zip(rows, [None, *rows]):
        if before is not None and _group(before[0]) != _group(row[0]):
            lines.append("")
        head = "  ".join(cell.ljust(width) for cell, width in zip(row, widths))
        message = textwrap.shorten(row[3], max(WIDTH - len(head) - 2, 30), placeholder=" ...") if row[3] else ""
        lines.append(f"{head}  {message}".rstrip())
    return "\n".join(lines) + "\n"


def _group(key: str) -> str:
    """Group of a fact: the domain, the loss, one constraint, or all constraints together."""
    first, *rest = key.split(".")
    return f"{first}.{rest[0]}" if first == "constraints" else first if first in ("domain", "loss") else ""


def reason(fact: Fact) -> str:
    """The last step in words; where it says no more than the value, the step before it."""
    step = fact.why
    if step is None:
        return ""
    return step.claim + (f" ({fact.cite})" if fact.cite else "")


def _unknown(facts: Mapping[str, Fact]) -> str:
    keys = [
        key for key in facts if "[" not in key and not key.endswith(DETAILS) and facts[key].status is Status.UNKNOWN
    ]
    if not keys:
        return ""
    ended = [k for k in keys if (why := facts[k].why) is not None and why.rule == ProofRule.NOT_SEARCHED]
    open_ = [k for k in keys if k not in MEASURED and k not in ended]
    lines = _wrapped("unknown: ", open_) + _wrapped("told by data (--data FILE): ", [k for k in keys if k in MEASURED])
    lines += _wrapped(f"unknown, {ProofRule.NOT_SEARCHED}: ", ended)
    if ended:
        more = max(why.value for k in ended if (why := facts[k].why) is not None)
        lines.append(f"`oco --effort {more:g} ...` or `oco.check(model, effort={more:g})` searches on")
    return "\n" + "\n".join(lines) + "\n"


def _wrapped(head: str, keys: list[str]) -> list[str]:
    indent = " " * len(head)
    return textwrap.wrap(", ".join(keys), WIDTH, initial_indent=head, subsequent_indent=indent) if keys else []


def facts_data(facts: Mapping[str, Fact]) -> dict[str, Any]:
    """Facts and steps as JSON values. Steps are numbered and listed once; premises are their numbers."""
    steps: dict[int, int] = {}
    listed: list[dict[str, Any]] = []
    rows = {key: _fact_data(facts[key], steps, listed) for key in facts}
    return {"facts": rows, "steps": listed}


def _fact_data(fact: Fact, steps: dict[int, int], listed: list[dict[str, Any]]) -> dict[str, Any]:
    results = {"value": plain(fact.value), "status": str(fact.status), "loose": fact.loose, "cite": fact.cite}
    why = None if fact.why is None else _step_number(fact.why, steps, listed)
    witness = None
    if fact.witness is not None:
        values = {name: plain(value) for name, value in fact.witness.values.items()}
        witness = {"values": values, "excess": fact.witness.violation, "words": fact.witness.words}
    return results | {"why": why, "witness": witness}


def _step_number(step: Step, steps: dict[int, int], listed: list[dict[str, Any]]) -> int:
    if id(step) not in steps:
        premises = [_step_number(p, steps, listed) for p in step.premises]
        place = None if step.span is None else [step.span.line, step.span.column]
        steps[id(step)] = len(listed)
        row = {
            "rule": str(step.rule),
            "claim": step.claim,
            "value": plain(step.value),
            "premises": premises,
            "place": place,
        }
        listed.append(row)
    return steps[id(step)]


def plain(value: Any) -> Any:
    """A value as JSON can hold it; what is not finite is written as a word."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, Interval):
        return [plain(value.least), plain(value.greatest)]
    if isinstance(value, float) and not np.isfinite(value):
        return number(value)
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
