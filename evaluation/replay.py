"""Comparison of a run with its repetition, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from oco.dsl.diagnostics import fail
from oco.evaluation.measured_run import MeasuredRun
from oco.evaluation.storage import versions

Array = np.ndarray[Any, Any]


def require_data(trace: MeasuredRun) -> None:
    """Check that a trace holds the data that it was made from. Raises OCO833."""
    if trace.data.absent:
        names = ", ".join(f"`{n}`" for n in trace.data.absent)
        raise fail(
            "OCO833",
            f"the trace does not hold the values of {names}: they were too large to be kept with it",
            hint="run the model over its data again, with the settings of the trace's manifest",
        )


def difference(first: MeasuredRun, again: MeasuredRun) -> str:
    """First difference of two traces in a bit, in words; empty where they are equal."""
    if first.rounds != again.rounds:
        return f"{first.rounds} rounds became {again.rounds}"
    pairs: dict[str, tuple[Array, Array]] = {
        "the loss": (first.loss, again.loss),
        "a constraint": (first.constraints, again.constraints),
        "an equality": (first.equalities, again.equalities),
        "a queue": (first.duals, again.duals),
    }
    for what, (a, b) in pairs.items():
        result = _first(a, b)
        if result is not None:
            return f"{what} of round {result + 1} differs"
    both, mine, other = np.intersect1d(first.record.kept, again.record.kept, return_indices=True)
    for name, values in first.record.decisions.items():
        result = _first(values[mine], again.record.decisions[name][other])
        if result is not None:
            return f"the decision `{name}` of round {both[result] + 1} differs"
    return ""


def _first(a: Array, b: Array) -> int | None:
    """Index of the first row that differs; two nans are equal."""
    if a.shape != b.shape:
        return 0
    differs = ~((a == b) | (np.isnan(a) & np.isnan(b)))
    rows = np.flatnonzero(differs.reshape(len(a), -1).any(axis=1))
    return int(rows[0]) if len(rows) else None


def elsewhere(trace: MeasuredRun) -> str:
    """Versions that a trace was made with, where they differ from the present ones."""
    other = [
        f"{n} {trace.origin.versions[n]}, here {v}"
        for n, v in versions().items()
        if trace.origin.versions.get(n, v) != v
    ]
    return f"the trace was made with {'; '.join(other)}" if other else ""
