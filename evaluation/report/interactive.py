"""Plots to explore: Plotly figures whose points say the round, its time, its data's names and its decisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from oco.compiler.selection.frontier import FrontierPoint
from oco.dsl.diagnostics import fail
from oco.dsl.extras import require_package
from oco.dsl.labels import entry_name
from oco.evaluation.baselines.rule_table import RuleLine, rule_table
from oco.evaluation.baselines.rules import RuleChoice, beside
from oco.evaluation.cost import Trade
from oco.evaluation.measured_run import MeasuredRun
from oco.evaluation.replay import require_data
from oco.evaluation.report.plots import LINES, TIMES, thin
from oco.evaluation.report.rule_plots import LOSS_SPREAD, SPREAD

if TYPE_CHECKING:
    from plotly.graph_objects import Figure, Scatter

Array = np.ndarray[Any, Any]
POINTS = 5000
"""Most points of a curve that are drawn."""
ENTRIES = 8
"""Most entries of decisions that a point names."""


def run_figure(trace: MeasuredRun) -> Figure:
    """Regret with the certificate and the guarantee, violation by constraint and loss by round, one below the other.

    Hovering names the round, its time where the data tell it, and the decision. Raises OCO911 without Plotly.
    """
    require_package("plotly", "an interactive plot")
    from plotly.subplots import make_subplots

    panels = {"regret": _regret(trace), "violation": _violation(trace), "loss of each round": _loss(trace)}
    shown = {title: curves for title, curves in panels.items() if curves}
    figure = make_subplots(
        rows=len(shown), cols=1, shared_xaxes=True, vertical_spacing=0.07, subplot_titles=list(shown)
    )
    for row, curves in enumerate(shown.values(), 1):
        for curve in curves:
            figure.add_trace(curve, row=row, col=1)
    title = f"{trace.problem.name} with {trace.promise.algorithm}, {trace.rounds:,} rounds"
    figure.update_layout(title=title, height=120 + 300 * len(shown), hovermode="closest", template="plotly_white")
    figure.update_xaxes(title_text="round", row=len(shown), col=1)
    return figure


def frontier_figure(points: Sequence[FrontierPoint]) -> Figure:
    """Bound of the regret against that of the violation, as shares of the trivial bounds; a point names its weight.

    Raises OCO713 where there is no frontier, OCO911 without Plotly.
    """
    if not points:
        raise fail("OCO713", "there is no frontier: the bounds have no numbers, or the theorem leaves nothing free")
    require_package("plotly", "an interactive plot")
    from plotly.graph_objects import Figure, Scatter

    names = [f"weight {p.weight:g}<br>regret {p.regret:.6g}<br>violation {p.violation:.6g}" for p in points]
    x, y = [p.regret_share for p in points], [p.violation_share for p in points]
    figure = Figure(Scatter(x=x, y=y, mode="lines+markers", text=names, hovertemplate="%{text}<extra></extra>"))
    figure.update_xaxes(type="log", title_text="bound of the regret / trivial bound")
    figure.update_yaxes(type="log", title_text="bound of the violation / trivial bound")
    figure.update_xaxes(tickvals=_ticks(x))
    figure.update_yaxes(tickvals=_ticks(y))
    figure.update_layout(title="what a weight of violations does to both bounds", template="plotly_white")
    return figure


def _ticks(values: Sequence[float]) -> list[float]:
    """Marks of a logarithmic axis, nearer where it spans less than a power of ten; those of Plotly leave out powers of ten."""
    steps = (1, 2, 5) if max(values) > 10 * min(values) else (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
    return [m * 10.0**e for e in range(-9, 10) for m in steps]


def rules_figure(trace: MeasuredRun, which: str) -> Figure:
    """Loss against violation of a run and of rules played over its rounds; a point names its rule, both and the rounds broken.

    Where violations differ by a factor of `SPREAD` their axis is logarithmic, with those of zero at its left end. Raises OCO831 for
    a word that is no `RuleChoice`, OCO833 where the trace does not hold its data, OCO911 without Plotly.
    """
    require_package("plotly", "an interactive plot")
    if which not in list(RuleChoice):
        raise fail("OCO831", f"{which!r} is no choice of rules", hint='it is "some", two cheap ones, or "all"')
    require_data(trace)
    table = rule_table(trace, beside(RuleChoice(which), trace.problem, trace.data, Trade.at_price(trace.problem, 1.0)))
    return _front((table.learner, *table.lines))


def _front(lines: Sequence[RuleLine]) -> Figure:
    """Points of the learner, which comes first, and of rules."""
    from plotly.graph_objects import Figure, Scatter

    positive = [line.violation for line in lines if line.violation > 0]
    spread = bool(positive) and max(positive) > SPREAD * min(positive)
    end = min(positive) / 10 if spread else 0.0
    losses = [line.loss for line in lines]
    places = [max(line.violation, end) for line in lines]
    names = [_of_rule(line) for line in lines]
    figure = Figure()
    for name, some, symbol, size in (("rules", slice(1, None), "circle", 8), ("the learner", slice(1), "star", 15)):
        marker = {"symbol": symbol, "size": size}
        words = {"text": names[some], "hovertemplate": "%{text}<extra></extra>"}
        figure.add_trace(Scatter(x=places[some], y=losses[some], name=name, mode="markers", marker=marker, **words))
    figure.update_layout(title="loss against violation", hovermode="closest", template="plotly_white")
    figure.update_xaxes(title_text="violation, summed")
    figure.update_yaxes(title_text="loss")
    if spread:
        powers = [10.0**k for k in range(-300, 300) if min(positive) <= 10.0**k <= max(positive)]
        figure.update_xaxes(type="log", tickvals=[end, *powers], ticktext=["0", *(f"{p:g}" for p in powers)])
    if min(losses) > 0 and max(losses) > LOSS_SPREAD * min(losses):
        figure.update_yaxes(type="log")
    return figure


def _of_rule(line: RuleLine) -> str:
    """Name and totals of a rule, as a point shows them."""
    return f"{line.name}<br>loss {line.loss:.6g}<br>violation {line.violation:.6g}<br>{line.broken:,} rounds broken"


def _regret(trace: MeasuredRun) -> list[Scatter]:
    from plotly.graph_objects import Scatter

    curves, top = [], 0.0
    for kind in ("static", "dynamic"):
        if trace.comparator(kind).losses is not None:
            values = trace.regret(kind)
            top = max(top, float(np.abs(values).max(initial=0.0)))
            curves.append(_curve(trace, f"{kind} regret", values))
    if trace.own_certificate is not None:
        rounds, bounds = trace.certified_curve()
        known = np.isfinite(bounds)
        name = "certified bound of the static regret"
        words = "certified after round %{x}<br>%{y:.6g}<extra></extra>"
        curves.append(Scatter(x=rounds[known], y=bounds[known], name=name, mode="markers", hovertemplate=words))
    bound = trace.promise.curves.get("regret")
    if bound is not None and curves and float(bound[-1]) <= TIMES * top:
        curves.append(_curve(trace, "guarantee", np.asarray(bound), dash="dash"))
    return curves


def _violation(trace: MeasuredRun) -> list[Scatter]:
    """Violation so far of the constraints that are violated most, of the kind that the guarantee bounds."""
    soft = "soft" in trace.promise.measures.get("violation", "")
    result = np.concatenate([trace.violation("soft" if soft else "hard"), trace.equality_violation()], axis=1)
    labels = [*trace.labels, *(f"{label} (equality)" for label in trace.equality_labels)]
    order: list[int] = np.argsort(-result[-1], kind="stable")[:LINES].tolist() if labels else []
    return [_curve(trace, labels[k], result[:, k]) for k in order]


def _loss(trace: MeasuredRun) -> list[Scatter]:
    return [_curve(trace, "loss", np.asarray(trace.loss))]


def _curve(trace: MeasuredRun, name: str, values: Array, dash: str | None = None) -> Scatter:
    from plotly.graph_objects import Scatter

    rounds, drawn = thin(np.arange(1, len(values) + 1), values, POINTS)
    words = "%{text}<br>" + name + " %{y:.6g}<extra></extra>"
    text = [_about(trace, int(t)) for t in rounds]
    line = {"dash": dash} if dash else {}
    return Scatter(x=rounds, y=drawn, name=name, mode="lines", line=line, text=text, hovertemplate=words)


def _about(trace: MeasuredRun, round: int) -> str:
    """Round, its time, and its decisions where they were kept."""
    times, place = trace.data.times, int(np.searchsorted(trace.kept, round))
    rows = [f"round {round:,}" + ("" if times is None else f", {np.datetime_as_string(times[round - 1], unit='m')}")]
    if place < len(trace.kept) and trace.kept[place] == round:
        rows += [_decided(trace, name, values[place]) for name, values in trace.record.decisions.items()]
    return "<br>".join(rows)


def _decided(trace: MeasuredRun, name: str, value: Array) -> str:
    """First entries of a decision, by their names."""
    axes = trace.problem.axes.get(name, ())
    if not np.ndim(value):
        return f"{name} = {float(value):.4g}"
    places = list(np.ndindex(*value.shape))[:ENTRIES]
    shown = ", ".join(f"{entry_name(axes, place)}: {float(value[place]):.4g}" for place in places)
    return f"{name} = {shown}" + (", ..." if value.size > ENTRIES else "")
