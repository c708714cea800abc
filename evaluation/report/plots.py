"""Plots of a run: regret and violation against the round beside their guarantees, certificates, decisions, queues."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from oco.dsl.diagnostics import fail
from oco.dsl.extras import require_package
from oco.dsl.labels import entry_name
from oco.dsl.records import dataclass
from oco.evaluation.measured_run import MeasuredRun
from oco.evaluation.measures import fitted_exponent
from oco.evaluation.numbers import number
from oco.evaluation.report.columns import Column, largest
from oco.evaluation.report.style import COLOURS, finish, in_style, vector

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


Array = np.ndarray[Any, Any]

POINTS = 2000  # the most points of a curve that are drawn
LINES = 6  # the most curves in one picture
LATE = 0.1  # the share of the rounds after which a curve begins late on a logarithmic axis
TIMES = 4.0  # a guarantee more than so many times above a curve is written on a linear axis, not drawn
DECADE = 10.0  # the least ratio of the ends of a logarithmic axis of values
DECADES = 4.0  # and on a logarithmic axis when it is more than so many powers of ten above


@dataclass(frozen=True)
class Curve:
    """Values after rounds 1..T, with their name."""

    label: str
    values: Array


def thin(rounds: Array, values: Array, points: int = POINTS, log: bool = False) -> tuple[Array, Array]:
    """About `points` points of a curve at most: the first, least, greatest and last value of each stretch of rounds, so
    no peak is lost.
    """
    if len(values) <= points:
        return rounds, values
    ends = (np.geomspace if log else np.linspace)(1, len(values), points // 4 + 1)
    edges = np.unique(np.concatenate([[0], ends.astype(np.int64)]))
    kept: list[int] = []
    for low, high in pairwise(edges):
        part = values[low:high]
        kept += [low, low + int(np.argmin(part)), low + int(np.argmax(part)), high - 1]
    picked = np.unique(kept)
    return rounds[picked], values[picked]


def figure(
    trace: MeasuredRun,
    axes: Axes | Sequence[Axes] | Array | None = None,
    size: tuple[float, float] = (11.0, 11.0),
    *,
    ax: Axes | None = None,
    panels: str | Sequence[str] | None = None,
) -> Figure:
    """Draw all plots of a trace on one page: regret and violation (linear, and on logarithmic axes), decisions, queues.

    axes    to draw on instead, one for each panel: any array of them as `plt.subplots` gives it, or (also as `ax`) one
    panels  names of `PANELS`, such as "violation" or "regret, log"; by default all that have something to show, in
            their order
    """
    require_package("matplotlib", "a plot")
    from oco.evaluation.report.figure import OffscreenFigure

    names = present(trace) if panels is None else [panels] if isinstance(panels, str) else list(panels)
    if unknown := [name for name in names if name not in PANELS]:
        raise fail("OCO831", f"there is no panel {unknown[0]!r}", hint=f"there are: {', '.join(PANELS)}")
    if (places := ax if axes is None else axes) is not None:
        flat = np.ravel(np.asarray(places, dtype=object))
        for one, name in zip(flat, names):
            PANELS[name](trace, one)
        given: Figure = flat[0].figure.figure  # of the axes' figure, which may be a part, the whole
        return given
    with in_style():
        page = OffscreenFigure(figsize=size, layout="constrained")
        rows, columns = -(-len(names) // 2), min(len(names), 2)
        for k, name in enumerate(names):
            PANELS[name](trace, page.add_subplot(rows, columns, k + 1))
    return page


def present(trace: MeasuredRun) -> list[str]:
    """Panels that have something to show."""
    absent = {"queues"} if not trace.duals.shape[1] else set()
    absent |= {"violation", "violation, log"} if not (trace.labels or trace.equality_labels) else set()
    absent |= {"certificate"} if trace.own_certificate is None else set()
    return [name for name in PANELS if name not in absent]


def figures(trace: MeasuredRun) -> dict[str, Figure]:
    """Separate figures by name, as `oco run --out` writes them."""
    with in_style():
        return _figures(trace)


def drawings(trace: MeasuredRun) -> dict[str, str]:
    """Panels as SVG texts (see `vector`)."""
    return {name: vector(partial(PANELS[name], trace)) for name in present(trace)}


def _figures(trace: MeasuredRun) -> dict[str, Figure]:
    require_package("matplotlib", "a plot")
    from oco.evaluation.report.figure import OffscreenFigure

    pages: dict[str, Figure] = {}
    shown = present(trace)
    for name, panels in FILES.items():
        if name not in shown:
            continue
        page = OffscreenFigure(figsize=(5.6 * len(panels), 3.9), layout="constrained")
        for ax, panel in zip(np.atleast_1d(page.subplots(1, len(panels))), panels):
            PANELS[panel](trace, ax)
        pages[name] = page
    return pages


def regret(trace: MeasuredRun, ax: Axes, log: bool = False) -> None:
    """Plot regret against the best fixed decision and against the best decision of each round, as far as they are
    known.
    """
    curves = []
    for kind in ("static", "dynamic"):
        comparator = trace.comparator(kind)
        if comparator.losses is not None:
            note = "" if not len(comparator.impossible) else ", least violating comparator"
            curves.append(Curve(f"{kind} regret{note}", trace.regret(kind)))
    _chart(trace, ax, curves, "regret", "regret", log)


def certificate(trace: MeasuredRun, ax: Axes) -> None:
    """Plot static regret beside the certified bound of the regret to the best fixed decision of the rounds so far."""
    rounds, bounds = trace.certified_curve()
    known = np.isfinite(bounds)
    if known.any():
        label = "certified bound of the regret so far"
        ax.plot(rounds[known], bounds[known], "x", color=COLOURS[1], ms=7, mew=1.8, label=label, zorder=3)
    measured = trace.comparator("static").losses is not None
    curves = [Curve("static regret", trace.regret("static"))] if measured else []
    _chart(trace, ax, curves, "certificate", "regret", log=False)
    ax.set_ylabel("regret")


def violation(trace: MeasuredRun, ax: Axes, log: bool = False) -> None:
    """Plot the violation of each constraint, of the kind that the guarantee bounds; hard where it bounds none."""
    kind = "soft" if "soft" in trace.promise.measures.get("violation", "") else "hard"
    result = trace.violation(kind)  # type: ignore[arg-type]
    curves = [Curve(label, result[:, i]) for i, label in enumerate(trace.labels)]
    if len(curves) > LINES:
        curves = _worst(curves, result)
    equal = trace.equality_violation()
    names = trace.equality_labels
    curves += [
        Curve(f"{label} (equality)", equal[:, i]) for i, label in enumerate(names[: max(0, LINES - len(curves))])
    ]
    _chart(trace, ax, curves, f"{kind} violation" if result.shape[1] else "equality violation", "violation", log)


def _worst(curves: Sequence[Curve], result: Array) -> list[Curve]:
    """Curves to show of many constraints: the most violated ones, the sum of all where more are violated, one line for
    the rest.
    """
    violated = np.flatnonzero(result.max(axis=0) > 0)
    order = violated[np.argsort(-result[-1, violated], kind="stable")]
    shown = [curves[i] for i in order[: LINES - 2]]
    if len(order) > len(shown):
        shown.append(Curve(f"sum of all {len(curves)}", result.sum(axis=1)))
    never = len(curves) - len(violated)
    words = f"{never} others" if len(violated) else f"all {never}"
    return [*shown, Curve(f"{words}, never violated", np.zeros(len(result)))] if never else shown


def decisions(trace: MeasuredRun, ax: Axes) -> None:
    """Plot the entries of the decisions that move most, over the rounds."""
    kept = trace.record.decisions
    names, parts = list(kept), [values.reshape(len(values), -1) for values in kept.values()]
    shown, different = largest(parts, lambda values: values.std(axis=0), LINES)
    for colour, column in zip(COLOURS, shown):
        t, y = thin(trace.kept, parts[column.part][:, column.index])
        name = names[column.part]
        place = tuple(int(k) for k in np.unravel_index(column.index, kept[name].shape[1:]))
        label = f"{name}[{entry_name(trace.problem.axes.get(name, ()), place)}]" if place else name
        ax.plot(t, y, color=colour, lw=0.9, label=_counted(label, column), **_marked(t))
    more = f", the {len(shown)} of {different} different entries that move most" if different > len(shown) else ""
    finish(
        ax, f"{'decision' if len(kept) == 1 else 'decisions'} {', '.join(kept)}{more}", "value", times=trace.data.times
    )


def _counted(label: str, column: Column) -> str:
    return f"{label}, {column.count} alike" if column.count > 1 else label


def queues(trace: MeasuredRun, ax: Axes) -> None:
    """Plot the queues or multipliers of the algorithm."""
    duals, names = trace.duals, trace.promise.multiplied
    labels = names if duals.shape[1] == len(names) else [f"dual {k}" for k in range(duals.shape[1])]
    shown, _ = largest([duals], lambda values: np.abs(values).max(axis=0, initial=0.0), LINES)
    for colour, column in zip(COLOURS, shown):
        t, y = thin(np.arange(1, len(duals) + 1), duals[:, column.index])
        ax.plot(t, y, color=colour, lw=1.1, label=_counted(labels[column.index], column), **_marked(t))
    if not len(shown):
        ax.text(
            0.5, 0.5, "the algorithm keeps no queues", ha="center", va="center", transform=ax.transAxes, color="0.4"
        )
    finish(ax, "queues", "value", times=trace.data.times)


def _chart(trace: MeasuredRun, ax: Axes, curves: Sequence[Curve], title: str, promised: str, log: bool) -> None:
    bound, note = trace.promise.curves.get(promised), ""
    rounds = np.arange(1, trace.rounds + 1)
    top = max((float(np.max(np.abs(c.values), initial=0.0)) for c in curves), default=0.0)
    for k, (colour, curve) in enumerate(zip(COLOURS, curves)):
        _line(ax, rounds, curve, colour, log, width=1.5 if k else 2.6)  # so that equal curves are both seen
    if not curves:
        ax.text(0.5, 0.5, f"no {title} to show", ha="center", va="center", transform=ax.transAxes, alpha=0.6)
    if bound is not None:
        name = f"guarantee of {trace.promise.measures.get(promised, promised)}"
        note = _guarantee(ax, name, bound, top, promised in trace.promise.vacuous, log)
    elif promised in trace.promise.rates:
        note = f"guarantee: O({trace.promise.rates[promised].replace('**', '^')}), constants not known"
    if log:
        ax.set_xscale("log")
        drawn = np.concatenate([[], *(np.asarray(line.get_ydata(), dtype=np.float64) for line in ax.get_lines())])
        if np.any(drawn > 0):
            low, high = drawn[drawn > 0].min(), np.nanmax(drawn)
            if high < DECADE * low:  # ticks that can be distinguished
                middle = np.sqrt(low) * np.sqrt(high)
                ax.set_ylim(middle / np.sqrt(DECADE), middle * np.sqrt(DECADE))
            ax.set_yscale("log")
        ax.set_xlim(1, max(2, trace.rounds))
    else:
        ax.margins(y=0.12)
    finish(ax, f"{title}, logarithmic axes" if log else title, title, note, times=None if log else trace.data.times)


def _line(ax: Axes, rounds: Array, curve: Curve, colour: str, log: bool, width: float) -> None:
    label = curve.label
    values = curve.values
    if log:
        exponent = fitted_exponent(values)
        label += f" (fit: t^{round(exponent, 2) + 0.0:.2f})" if exponent is not None else ""  # no -0.00
        values = np.where(values > 0, values, np.nan)
        if np.all(np.isnan(values)):
            ax.plot([], [], color=colour, label=f"{curve.label} (never positive)")
            return
        label += f" (ends at {number(curve.values[-1])})" if curve.values[-1] <= 0 else ""
        first = int(np.argmax(values > 0)) + 1
        if first > max(1.0, LATE * len(values)):  # on these axes little more than a point
            label += f" (from round {first:,})"
            ax.plot(first, values[first - 1], "o", color=colour, ms=2.5 * width)
    t, y = thin(rounds, np.nan_to_num(values, nan=0.0), log=log)
    ax.plot(t, np.where(y > 0, y, np.nan) if log else y, color=colour, lw=width, label=label, **_marked(t, width))


def _marked(rounds: Array, width: float = 1.5) -> dict[str, Any]:
    """Marker for a curve of one round, which is a point."""
    return {"marker": "o", "ms": 3 * width, "clip_on": False} if len(rounds) == 1 else {}


def _guarantee(ax: Axes, name: str, bound: Array, top: float, vacuous: bool, log: bool) -> str:
    """Draw the bound where it fits beside the curves; else print its value, so that it does not flatten them."""
    last = float(bound[-1])
    far = last > TIMES * top if not log else top <= 0 or np.log10(max(last, 1e-300) / top) > DECADES
    if far or not np.isfinite(last):
        at = f"{name} at round {len(bound):,}"
        return f"{at} is vacuous" if vacuous else f"{at}: {last:.3g}, above this picture"
    from matplotlib import rcParams

    t, y = thin(np.arange(1, len(bound) + 1), bound, log=log)
    ink = rcParams["text.color"]
    ax.plot(t, y, color=ink, lw=1.1, ls=(0, (5, 3)), label=name + (" (vacuous)" if vacuous else ""), **_marked(t))
    return ""


PANELS: Mapping[str, Callable[[MeasuredRun, Axes], None]] = {
    "regret": regret,
    "violation": violation,
    "regret, log": lambda trace, ax: regret(trace, ax, log=True),
    "violation, log": lambda trace, ax: violation(trace, ax, log=True),
    "certificate": certificate,
    "decisions": decisions,
    "queues": queues,
}

FILES: Mapping[str, tuple[str, ...]] = {
    "regret": ("regret", "regret, log"),
    "violation": ("violation", "violation, log"),
    "certificate": ("certificate",),
    "decisions": ("decisions",),
    "queues": ("queues",),
}
