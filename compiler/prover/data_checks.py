"""Checks of data against declarations: values outside the bounds, bounds far wider than the data, outliers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from oco.compiler.problem.canonical import StreamRange
from oco.compiler.prover.context import ProofContext
from oco.compiler.prover.function import ScalarFunction
from oco.compiler.prover.measured import Observed, covered
from oco.compiler.prover.phrasing import number, plural
from oco.dsl.diagnostics import Diagnostic, Severity
from oco.dsl.expressions import Kind, names

WIDE = 3.0  # a declared range this many times as wide as the data's
FEW = 0.005  # share of rounds that may be outliers
INFLATED = 1.5  # factor on a constant that makes them worth a word


def contradictions(setting: ProofContext, seen: Observed) -> Iterator[Diagnostic]:
    """Values outside the declared range: an error that names the round and the entry."""
    for s in setting.canonical.streams:
        if s.name not in seen.streams:
            continue
        values = np.asarray(seen.streams[s.name], dtype=np.float64)
        outside = np.argwhere((values < s.lower) | (values > s.upper))
        if len(outside):
            at = tuple(int(i) for i in outside[0])
            entry = f"[{', '.join(map(str, at[1:]))}]" if len(at) > 1 else ""
            lower, upper = (np.broadcast_to(end, s.shape)[at[1:]] for end in (s.lower, s.upper))
            more = f", as in {plural(len(outside) - 1, 'other place')}" if len(outside) > 1 else ""
            value, bounds = number(float(values[at])), f"[{number(float(lower))}, {number(float(upper))}]"
            message = f"in round {at[0] + 1} of the data {s.name}{entry} is {value}, outside {bounds}{more}"
            yield Diagnostic("OCO621", message, s.stream.span, "widen the range, or leave these rounds out")


def wide_bounds(setting: ProofContext, seen: Observed) -> Iterator[Diagnostic]:
    """Ranges that are much wider than the data, with what the loss's Lipschitz constant would be on the data's."""
    for s in setting.canonical.streams:
        if s.name not in seen.streams or s.distribution is not None or not setting.box[s.name].bounded:
            continue
        values = np.asarray(seen.streams[s.name], dtype=np.float64)
        declared, result = float(np.max(s.upper) - np.min(s.lower)), float(values.max() - values.min())
        if result <= 0 or declared < WIDE * result:
            continue
        hull = f"[{number(float(values.min()))}, {number(float(values.max()))}]"
        message = f"the range of `{s.name}` is {number(declared / result)} times as wide as that of the data, {hull}"
        hint = "constants and guarantees grow with it"
        yield Diagnostic("OCO606", message, s.stream.span, hint, Severity.WARNING)


def outliers(setting: ProofContext, seen: Observed) -> Iterator[Diagnostic]:
    """A few rounds that make the loss's Lipschitz constant much larger than it is without them."""
    used = names(setting.canonical.objective, Kind.STREAM)
    whole = _lipschitz(setting, seen, None)
    for s in setting.canonical.streams:
        if s.name not in seen.streams or s.name not in used:
            continue
        sizes = np.abs(np.asarray(seen.streams[s.name], dtype=np.float64)).reshape(seen.rounds, -1).max(axis=1)
        calm = sizes <= np.quantile(sizes, 1 - FEW)
        if calm.all() or calm.sum() < 2:
            continue
        without = _lipschitz(setting, seen, calm)
        if whole is None or without is None or whole < INFLATED * without:
            continue
        yield _outlier(s, sizes, calm, whole, without)


def _outlier(s: StreamRange, sizes: np.ndarray, calm: np.ndarray, whole: float, without: float) -> Diagnostic:
    worst = int(np.argmax(sizes))
    few = f"{int((~calm).sum())} of {len(sizes)} rounds"
    message = f"{few} make the loss's Lipschitz constant {number(whole)}; without them it is {number(without)}"
    hint = f"the largest is round {worst + 1}, where |{s.name}| reaches {number(float(sizes[worst]))}"
    return Diagnostic("OCO607", message, s.stream.span, hint, Severity.WARNING)


def _lipschitz(setting: ProofContext, seen: Observed, rounds: np.ndarray | None) -> float | None:
    """The loss's Lipschitz constant over the range of the data, by ranges alone."""
    narrow = ProofContext(covered(setting.canonical, seen, rounds), setting.budget)
    f = ScalarFunction(narrow, narrow.canonical.objective, "loss", "the loss")
    total = sum(
        narrow.ranges(g).broadcast(narrow.blocks[n].shape).square().sum().greatest for n, g in f.gradients[0].items()
    )
    return float(np.sqrt(total)) if np.isfinite(total) else None
