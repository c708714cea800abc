"""Interactive plots: curves are those of the trace, and points name the round, its time and its decision."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import oco
from oco.evaluation.baselines.rule_table import RuleLine
from oco.evaluation.report.interactive import _front

pytest.importorskip("plotly")

MODEL = """
model looked
horizon T = 60
index zone = [NYC, WEST]
decision x[zone] in box(0, 1)
stream c[zone] in [-1, 1]
minimize c @ x + sum_squares(x)
subject to
    side: sum(x) + c[0] <= 1 each round
using coldq with alpha = 2, epsilon = 1, gamma = 1
"""
BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> oco.evaluation.report.trace.Trace:  # type: ignore[name-defined]
    path = tmp_path_factory.mktemp("data") / "prices.csv"
    rows = np.random.default_rng(3).uniform(-1, 1, (60, 2))
    times = [str(t) for t in np.datetime64("2024-05-01T00:00") + np.arange(60) * np.timedelta64(60, "m")]
    lines = [f"{t},{a:.4f},{b:.4f}" for t, (a, b) in zip(times, rows)]
    path.write_text("\n".join(["time,c.NYC,c.WEST", *lines]) + "\n")
    return oco.compile(oco.parse(MODEL), backend="numpy", certify="static").run(str(path))


def test_curves_are_those_of_the_trace(trace) -> None:
    figure = trace.interactive()
    curves = {curve.name: curve for curve in figure.data}
    np.testing.assert_array_equal(curves["static regret"].y, trace.regret("static"))
    np.testing.assert_array_equal(curves["side"].y, trace.violation("hard")[:, 0])
    np.testing.assert_array_equal(curves["loss"].y, trace.loss)
    _, bounds = trace.certified_curve()
    known = np.isfinite(bounds)
    np.testing.assert_array_equal(curves["certified bound of the static regret"].y, bounds[known])
    assert list(curves["loss"].x) == list(range(1, 61))


def test_points_name_round_time_and_decision(trace) -> None:
    text = next(curve for curve in trace.interactive().data if curve.name == "loss").text[41]
    first, second = trace.decisions[41]
    assert text == f"round 42, 2024-05-02T17:00<br>x = NYC: {first:.4g}, WEST: {second:.4g}"


def test_the_learner_and_rules_stand_at_their_losses_and_violations(trace) -> None:
    rules, own = trace.interactive_rules().data
    assert (len(rules.x), list(own.y)) == (2, [float(trace.loss.sum())])
    np.testing.assert_allclose(own.x, [trace.violation("hard")[-1].sum()])
    for name, x, y in zip(rules.text, rules.x, rules.y):
        assert name.startswith("re-solve with") and f"loss {y:.6g}<br>violation {x:.6g}" in name
    with pytest.raises(oco.OcoError, match="no choice of rules") as caught:
        trace.interactive_rules("cheap")
    assert caught.value.code == "OCO831"


def test_violations_far_apart_have_a_logarithmic_axis_that_ends_at_zero() -> None:
    lines = [
        RuleLine(name, loss, violation, 0, 0.0) for name, loss, violation in (("own", 3, 0), ("a", 1, 5), ("b", 9, 1e4))
    ]
    figure = _front(lines)
    assert figure.layout.xaxis.type == figure.layout.yaxis.type == "log"
    assert list(figure.data[1].x) == [0.5] and list(figure.data[0].x) == [5, 1e4]
    assert figure.layout.xaxis.tickvals[0] == 0.5 and figure.layout.xaxis.ticktext == (
        "0",
        "10",
        "100",
        "1000",
        "10000",
    )
    assert "violation 0<br>" in figure.data[1].text[0]


def test_the_frontier_names_weights_and_bounds() -> None:
    plan = oco.compile(oco.parse(MODEL.split("using")[0]), "coldq")
    figure, points = plan.interactive_frontier(), plan.frontier()
    assert list(figure.data[0].x) == [p.regret_share for p in points]
    assert f"weight {points[0].weight:g}" in figure.data[0].text[0]


@pytest.mark.skipif(BROWSER is None, reason="no Chromium")
def test_a_browser_draws_it(trace, tmp_path: Path) -> None:
    page = tmp_path / "plot.html"
    trace.interactive().write_html(page, include_plotlyjs=True)
    words = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    words += ["--virtual-time-budget=8000", "--dump-dom", page.as_uri()]
    shown = subprocess.run(words, capture_output=True, text=True, timeout=90).stdout
    assert shown.count('class="scatterlayer') == 3 and "certified bound of the static regret" in shown
