"""What `oco run` prints and writes: the plan, the measures of each run, the trace and its pictures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from oco.cli.output import console, paint, say
from oco.dsl.diagnostics import fail
from oco.dsl.writing import write_text

if TYPE_CHECKING:
    from oco.evaluation.trace import Trace
    from oco.plan import Plan


def report(plan: Plan) -> None:
    """What was proved, what was chosen and why, settings, and the guarantee in numbers."""
    from oco.compiler.explain import setting_text
    from oco.compiler.facts.ledger import summary_text
    from oco.contract import promises

    paint(summary_text(plan.facts))
    winner = plan.choice.winner
    assert winner is not None
    say()
    say(f"algorithm  {plan.algorithm}: {winner.algorithm.title} ({winner.algorithm.cite})", "bold")
    for reason in winner.reasons:
        say(f"           {reason}")
    for setting in plan.settings.values():
        say(f"setting    {setting_text(setting)}")
    for index, line in enumerate(promises(plan.guarantee)):
        paint(f"{'guarantee' if index == 0 else '':<11}{line}")
    say()


def summary(trace: Trace) -> dict[str, Any]:
    """The measures of a run after its last round, as plain values with stable keys."""
    found: dict[str, Any] = {
        "algorithm": trace.promise.algorithm,
        "seed": trace.seed,
        "rounds": trace.rounds,
        "loss": float(trace.loss.sum()),
    }
    for kind in ("static", "dynamic"):
        comparator = trace.comparator(kind)  # type: ignore[arg-type]
        known = comparator.losses is not None
        found[f"{kind}_regret"] = float(trace.regret(kind)[-1]) if known else None  # type: ignore[arg-type]
        found[f"{kind}_comparator"] = {"words": comparator.words, "status": str(comparator.status)}
    for kind in ("hard", "soft"):
        last = trace.violation(kind)[-1] if trace.labels else np.zeros(0)  # type: ignore[arg-type]
        found[f"{kind}_violation"] = dict(zip(trace.labels, last.tolist()))
    if trace.equality_labels:
        found["equality_violation"] = dict(zip(trace.equality_labels, trace.equality_violation()[-1].tolist()))
    return found | {
        "rounds_per_second": trace.rounds_per_second,
        "notes": list(trace.notes),
        "warnings": list(trace.warnings),
    }


def compared(traces: Sequence[Trace]) -> None:
    """A table with a column a run, or mean and deviation over seeds a column an algorithm."""
    from rich.table import Table

    groups: dict[str, list[dict[str, Any]]] = {}
    for trace in traces:
        groups.setdefault(trace.promise.algorithm, []).append(summary(trace))
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column("")
    for name, runs in groups.items():
        seeds = f" ({len(runs)} seeds)" if len(runs) > 1 else ""
        table.add_column(name + seeds, justify="right")
    for label, values in _rows(groups):
        table.add_row(label, *values)
    console().print(table)
    for said in dict.fromkeys(text for trace in traces for text in _remarks(trace)):
        say(said)


def _rows(groups: dict[str, list[dict[str, Any]]]) -> list[tuple[str, list[str]]]:
    first = next(iter(groups.values()))[0]
    rows = [("rounds", [str(runs[0]["rounds"]) for runs in groups.values()])]
    rows += [(name.replace("_", " "), _cells(groups, name)) for name in ("loss", "static_regret", "dynamic_regret")]
    for kind in ("hard_violation", "soft_violation", "equality_violation"):
        labels = list(first.get(kind, {}))
        for label in labels if len(labels) <= 8 else ():
            rows.append((f"{kind.replace('_', ' ')}, {label}", _cells(groups, kind, label)))
        if len(labels) > 8:
            rows.append((f"{kind.replace('_', ' ')}, worst of {len(labels)}", _cells(groups, kind, None)))
    return [*rows, ("rounds a second", _cells(groups, "rounds_per_second", digits=0))]


def _cells(groups: dict[str, list[dict[str, Any]]], key: str, label: str | None = "", digits: int = 2) -> list[str]:
    """One cell an algorithm: the value, or mean +- deviation over seeds. `label` None takes the worst entry."""
    return [_cell([_value(run[key], label) for run in runs], digits) for runs in groups.values()]


def _value(value: Any, label: str | None) -> float | None:
    if not isinstance(value, dict):
        return value  # type: ignore[no-any-return]
    return max(value.values()) if label is None else value[label]


def _cell(values: list[float | None], digits: int) -> str:
    known = [v for v in values if v is not None]
    if len(known) < len(values):
        return "not known"
    mean = float(np.mean(known))
    places = digits if abs(mean) >= 1 or mean == 0 else 6
    if len(known) == 1:
        return f"{mean:,.{places}f}"
    return f"{mean:,.{places}f} +- {np.std(known, ddof=1):,.{places}f}"


def _remarks(trace: Trace) -> list[str]:
    """How sure the comparators are, and what the learner warned of."""
    said = [comparator.words for comparator in trace.known_comparators.values()]
    return [*said, *(f"warning: {w}" for w in trace.warnings)]


def write_results(traces: Sequence[Trace], folder: Path) -> None:
    """A trace file and pictures for each run, and `summary.json` for all."""
    from oco.evaluation.plots import figures

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise fail("OCO903", f"{folder} cannot be made: {(error.strerror or 'unknown reason').lower()}") from None
    for trace in traces:
        stem = "" if len(traces) == 1 else f"{trace.promise.algorithm}_{trace.seed}_"
        trace.save(folder / f"{stem}trace.nc")
        for name, figure in figures(trace).items():
            figure.savefig(folder / f"{stem}{name}.png", dpi=150)
    runs = [summary(t) for t in traces]
    write_text(folder / "summary.json", json.dumps({"version": 1, "runs": runs}, indent=2) + "\n")
