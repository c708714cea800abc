"""Pictures: what is drawn is what was measured, nothing lies on anything else, and long runs are thinned without losing peaks."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import oco
from oco.compiler.problem.canonical import canonical
from oco.dsl.diagnostics import OcoError
from oco.dsl.load import parse
from oco.evaluation.baselines.rule_table import RuleLine, RuleTable
from oco.evaluation.data import Data
from oco.evaluation.measured_run import Promise, Record
from oco.evaluation.measures import fitted_exponent
from oco.evaluation.report.plots import FILES, PANELS, figure, figures, thin
from oco.evaluation.report.rule_plots import loss_against_violation
from oco.evaluation.report.trace import Trace

TEXT = """model m
horizon T = {rounds}
decision x[12] in box(0, 1)
stream c[12] in [-1, 1]
minimize c @ x
subject to
    first:  x[0] <= 0.5          each round
    second: x[1] + x[2] <= 0.5   each round
"""


def made(rounds: int = 300, bound: float = 60.0, **promised: Any) -> Trace:
    """A trace with known numbers: no learner is needed to draw one."""
    rng = np.random.default_rng(0)
    problem = canonical(parse(TEXT.format(rounds=rounds)))
    x, c = rng.uniform(0, 1, (rounds, 12)), rng.uniform(-1, 1, (rounds, 12))
    x[:, 11] = x[:, 10]
    g = np.stack([x[:, 0] - 0.5, x[:, 1] + x[:, 2] - 0.5], axis=1)
    record = Record(
        (c * x).sum(axis=1),
        g,
        np.zeros((rounds, 0)),
        np.cumsum(np.maximum(g, 0), axis=0),
        {"x": x},
        np.arange(rounds),
        1.0,
    )
    curve = bound * np.sqrt(np.arange(1, rounds + 1) / rounds)
    measures = {"regret": "static regret", "violation": "hard violation"}
    promise = Promise("test", {}, "Theorem", promised.pop("curves", {"regret": curve}), measures=measures, **promised)
    return Trace(problem, Data(problem, rounds, MappingProxyType({"c": c})), record, promise)


def panel(trace: Trace, name: str) -> Axes:
    ax = Figure(layout="constrained").subplots()
    PANELS[name](trace, ax)
    return ax


def lines(ax: Axes) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    return {
        str(line.get_label()): (np.asarray(line.get_xdata()), np.asarray(line.get_ydata())) for line in ax.get_lines()
    }


def test_the_curves_are_the_measures() -> None:
    trace = made()
    drawn = lines(panel(trace, "regret"))
    assert set(drawn) == {"static regret", "dynamic regret", "guarantee of static regret"}
    np.testing.assert_array_equal(drawn["static regret"][1], trace.regret("static"))
    np.testing.assert_array_equal(drawn["dynamic regret"][0], np.arange(1, 301))
    np.testing.assert_array_equal(drawn["guarantee of static regret"][1], trace.promise.curves["regret"])
    violations = lines(panel(trace, "violation"))
    np.testing.assert_array_equal(violations["second"][1], trace.violation("hard")[:, 1])


def test_logarithmic_axes_show_the_exponent_and_only_positive_values() -> None:
    trace = made()
    ax = panel(trace, "violation, log")
    assert ax.get_xscale() == ax.get_yscale() == "log"
    labels = list(lines(ax))
    exponent = fitted_exponent(trace.violation("hard")[:, 1])
    assert exponent is not None and f"second (fit: t^{exponent:.2f})" in labels
    assert all(np.nanmin(y) > 0 for _, y in lines(ax).values())


def test_a_guarantee_that_would_flatten_the_curves_is_written_instead() -> None:
    ax = panel(made(bound=1e9, vacuous=("regret",)), "regret")
    assert "guarantee" not in " ".join(lines(ax))
    assert "is vacuous" in ax.get_xlabel() and "1e+09" not in ax.get_xlabel()
    assert ax.get_ylim()[1] < 1e4
    known_by_rate = panel(made(curves={}, rates={"regret": "sqrt(T)"}), "regret")
    assert "O(sqrt(T))" in known_by_rate.get_xlabel()


def test_entries_that_are_alike_are_drawn_once() -> None:
    labels = list(lines(panel(made(), "decisions")))
    assert len(labels) == 6 and not any(label.startswith("x[11]") for label in labels)


def test_all_decisions_are_drawn() -> None:
    trace = made()
    x = trace.record.decisions["x"]
    record = replace(trace.record, decisions={"level": x[:, 0], "rate": x[:, 1:3]})
    several = Trace(trace.problem, trace.data, record, trace.promise)
    ax = panel(several, "decisions")
    drawn = lines(ax)
    assert set(drawn) == {"level", "rate[0]", "rate[1]"} and ax.get_title(loc="left") == "decisions level, rate"
    np.testing.assert_array_equal(drawn["rate[1]"][1], x[:, 2])


def test_nothing_lies_on_anything_else() -> None:
    page = figure(made())
    renderer = FigureCanvasAgg(page).get_renderer()
    page.draw(renderer)
    for ax in page.axes:
        title, legend = ax._left_title, ax.get_legend()  # type: ignore[attr-defined]
        assert legend is not None
        boxes = [part.get_window_extent(renderer) for part in (ax, title, legend)]
        for a, b in combinations(boxes, 2):
            apart = a.y0 >= b.y1 - 1 or b.y0 >= a.y1 - 1 or a.x0 >= b.x1 or b.x0 >= a.x1
            assert apart, ax.get_title(loc="left")
    for one, other in combinations(page.axes, 2):
        assert not one.get_tightbbox(renderer).overlaps(other.get_tightbbox(renderer))  # type: ignore[union-attr,arg-type]


def test_files_and_given_axes() -> None:
    trace = made()
    assert set(figures(trace)) == set(FILES) - {"certificate"}
    page = Figure()
    axes = page.subplots(3, 2).ravel()
    assert figure(trace, axes) is page and all(ax.get_title(loc="left") for ax in axes)
    grid, alone = Figure().subplots(2, 2), Figure().subplots()
    trace.plot(axes=grid)
    assert all(ax.get_title(loc="left") for ax in grid.ravel())
    assert trace.plot(ax=alone, panels="violation") is alone.get_figure()
    assert "violation" in alone.get_title(loc="left")
    assert len(trace.plot(panels=["decisions", "regret", "queues"]).axes) == 3
    with pytest.raises(OcoError, match="no panel"):
        trace.plot(panels="loss")


def test_certificate() -> None:
    """Marks are those of the certified curve, no lower than regret to the best decision of all rounds; without sums there is no picture."""
    model = oco.parse(
        "model m\nhorizon T = 40\ndecision x[2] in simplex\nstream c[2] in [0, 1]\nminimize c @ x\nusing oeg\n"
    )
    data = {"c": np.random.default_rng(0).uniform(0, 1, (40, 2))}
    trace = oco.compile(model, certify="static").run(data)
    drawn = lines(panel(trace, "certificate"))
    rounds, bounds = drawn["certified bound of the regret so far"]
    np.testing.assert_array_equal(rounds, trace.certified_curve()[0])
    assert (bounds >= trace.regret("static")[rounds.astype(int) - 1] - 1e-9).all()
    assert bounds[-1] == pytest.approx(trace.certificate().bound, rel=1e-6)
    assert set(figures(trace)) >= {"certificate", "regret"}
    assert "certificate" not in figures(oco.compile(model).run(data))


@pytest.mark.parametrize("log", [False, True])
def test_thinning_keeps_every_peak(log: bool) -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(size=100_000)
    values[[5, 77_777]] = [50.0, -60.0]
    t, y = thin(np.arange(1, 100_001), values, log=log)
    assert len(t) <= 2100 and np.all(np.diff(t) > 0)
    assert y.max() == 50.0 and y.min() == -60.0 and t[0] == 1 and t[-1] == 100_000
    np.testing.assert_array_equal(values[t - 1], y)


def many(rounds: int, broken: int, size: int = 30) -> Trace:
    """A trace with many constraints of a long name, of which the first `broken` are violated in every round."""
    label = "the_name_of_a_constraint_that_says_at_length_what_it_is_about_in_each_of_the_regions"
    text = f"model m\nhorizon T = {rounds}\ndecision x[{size}] in box(0, 1)\nminimize sum(x)\n"
    text += f"subject to\n    {label}: x <= 0.5 each round\n"
    problem = canonical(parse(text))
    x = np.full((rounds, size), 0.25)
    x[:, :broken] = 0.6 + np.arange(broken) / 100
    empty = np.zeros((rounds, 0))
    record = Record(x.sum(axis=1), x - 0.5, empty, empty, {"x": x}, np.arange(rounds), 1.0)
    return Trace(
        problem, Data(problem, rounds, MappingProxyType({})), record, Promise("test", {}, scales=np.ones(size))
    )


@pytest.mark.parametrize(("broken", "curves"), [(0, 1), (2, 3), (4, 5), (9, 6), (30, 5)])
def test_of_many_constraints_the_worst_are_drawn_and_the_others_are_counted(broken: int, curves: int) -> None:
    drawn = lines(panel(many(20, broken), "violation"))
    assert len(drawn) == curves
    never = [label for label, (_, y) in drawn.items() if not y.any()]
    words = f"{30 - broken} others" if broken else "all 30"
    assert never == ([f"{words}, never violated"] if broken < 30 else [])
    if broken:
        worst = next(iter(drawn.values()))[1]
        np.testing.assert_allclose(worst[-1], 20 * (0.1 + (broken - 1) / 100))
    sums = [y for label, (_, y) in drawn.items() if label == "sum of all 30"]
    assert len(sums) == (broken > 4)
    for y in sums:
        np.testing.assert_allclose(y[-1], 20 * sum(0.1 + k / 100 for k in range(broken)))


def test_a_legend_is_no_wider_than_its_picture() -> None:
    page = figure(many(20, 3))
    renderer = FigureCanvasAgg(page).get_renderer()
    page.draw(renderer)
    for ax in page.axes:
        legend = ax.get_legend()
        assert legend is not None and legend.get_window_extent(renderer).x1 <= page.bbox.x1
        entries = [text.get_text() for text in legend.get_texts()]
        assert len(set(entries)) == len(entries), "a label keeps its index"


def test_ticks_of_a_logarithmic_axis_can_be_told_apart() -> None:
    page = figure(many(20, 1), panels="violation, log")
    low, high = page.axes[0].get_ylim()
    assert high >= 10 * low * (1 - 1e-9)
    flat = made(300)
    flat.record.constraints[:] = -1.0
    flat.record.constraints[0] = [1.0, 1 - 1e-7]
    page = figure(flat, panels="violation, log")
    page.draw_without_rendering()
    low, high = page.axes[0].get_ylim()
    shown = [t.get_text() for t in page.axes[0].get_yticklabels(which="both") if low <= t.get_position()[1] <= high]
    shown = [text for text in shown if text]
    assert shown and len(set(shown)) == len(shown)


def test_one_round_is_a_point() -> None:
    trace = many(1, 2)
    for name in ("violation", "violation, log", "decisions"):
        ax = panel(trace, name)
        assert all(line.get_marker() == "o" for line in ax.get_lines() if len(np.asarray(line.get_xdata()))), name
        assert "from round" not in str([line.get_label() for line in ax.get_lines()])
    ax.figure.draw_without_rendering()  # type: ignore[union-attr]
    assert all(float(t) == int(t) for t in ax.get_xticks())


def test_a_run_without_constraints_or_queues_has_pictures_too() -> None:
    problem = canonical(parse("model m\nhorizon T = 5\ndecision x in box(0, 1)\nstream c in [0, 1]\nminimize c * x\n"))
    none = np.zeros((5, 0))
    record = Record(np.ones(5), none, none, none, {"x": np.linspace(0, 1, 5)}, np.arange(5), 0.1)
    trace = Trace(problem, Data(problem, 5, {"c": np.ones(5)}), record, Promise("test", {}))
    assert set(figures(trace)) == {"regret", "decisions"} and len(figure(trace).axes) == 3
    figure(trace).draw_without_rendering()


def test_multipliers_are_called_as_their_constraints_and_those_that_are_alike_are_drawn_once() -> None:
    trace = made(multiplied=("first", "second"))
    assert set(lines(panel(trace, "queues"))) == {"first", "second"}
    trace.record.duals[:, 1] = trace.record.duals[:, 0]
    assert set(lines(panel(trace, "queues"))) == {"first, 2 alike"}
    assert set(lines(panel(made(), "queues"))) == {"dual 0", "dual 1"}


def test_a_curve_that_begins_late_is_marked_where_it_begins_on_logarithmic_axes() -> None:
    trace = made(rounds=300)
    trace.constraints[:249, 0] = -1.0
    trace.constraints[249, 0] = 0.25
    drawn = panel(trace, "violation, log").get_lines()
    marks = [line for line in drawn if line.get_marker() == "o"]
    assert [(*map(float, m.get_xdata()), *map(float, m.get_ydata())) for m in marks] == [(250.0, 0.25)]
    assert any("(from round 250)" in str(line.get_label()) for line in drawn)
    assert not [line for line in panel(trace, "violation").get_lines() if line.get_marker() == "o"]


def test_a_curve_that_ends_below_zero_says_so_on_logarithmic_axes() -> None:
    trace = made()
    trace.constraints[:, 0] = np.where(np.arange(300) < 20, 0.5, -1.0)
    soft = replace(trace.promise, measures={"violation": "soft violation"}, curves={})
    drawn = panel(Trace(trace.problem, trace.data, trace.record, soft), "violation, log").get_lines()
    assert str(drawn[0].get_label()) == "first (ends at 0)"


def test_every_rule_has_its_number_once_beside_a_point_near_it() -> None:
    """Rules of equal cost share a label; a robust rule that loses much makes the axis of losses logarithmic."""
    from matplotlib.figure import Figure

    places = [(10.0, 300.0), (10.0, 301.0), (10.0, 302.0), (1000.0, 250.0), (10.0, 300.5), (0.0, 5000.0)]
    lines = tuple(RuleLine(f"rule {k}", loss, broken, 1, 1.0) for k, (broken, loss) in enumerate(places))
    ax = Figure().subplots()
    loss_against_violation(RuleTable(RuleLine("own", 290.0, 20.0, 1, 0.5), lines, (), "cost"), ax)
    assert {t.get_text(): t.xy for t in ax.texts} == {"1-3, 5": places[0], "4": places[3], "6": places[5]}
    assert ax.get_yscale() == "log"
