"""Learners in C that round as is fast: beside NumPy on examples, their exponential beside the exact one, and who has them."""

from __future__ import annotations

import ctypes
import math
import mmap
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from test_c99 import needs_compiler

import oco
from oco.backends.c99.arithmetic import EXACT, FAST
from oco.backends.c99.flags import FLAGS, FUSED
from oco.backends.c99.library import linked
from oco.cli import main
from oco.dsl.diagnostics import OcoError

EXAMPLES = Path(__file__).parent.parent / "examples"
WITHIN = 1e-9
"""Greatest differences of decisions between fast C and NumPy, as shares of the widths of their sets."""
PLANS = {
    "tracking": ("coldq", 5.0),
    "job_scheduling": ("coldq", 1000.0),
    "portfolio": ("mirror-descent", 1.0),
}
"""Algorithms of examples, and the least width of an entry of their decisions."""


@cache
def plan_of(name: str) -> oco.Plan:
    return oco.compile(oco.load(EXAMPLES / f"{name}.oco"), PLANS[name][0], settings="paper")


def drawn(plan: oco.Plan, *count: int) -> dict[str, np.ndarray]:
    """Rounds within the bounds of a model."""
    rng = np.random.default_rng(0)
    return {s.name: rng.uniform(s.lower, s.upper, (*count, *s.shape)) for s in plan.canonical.streams}


@needs_compiler
@pytest.mark.parametrize("name", PLANS)
def test_fast_learners_decide_as_numpy(name: str) -> None:
    plan = plan_of(name)
    data = drawn(plan, 400)
    fast, numpy = plan.with_precision("fast").run(data, backend="c"), plan.run(data, backend="numpy")
    assert np.abs(fast.decisions - numpy.decisions).max() <= WITHIN * PLANS[name][1]


@needs_compiler
def test_the_fast_exponential_is_within_its_bound(tmp_path: Path) -> None:
    calls = ["void of_all(const double *x, double *y, int n) { for (int i = 0; i < n; ++i) { y[i] = @exp(x[i]); } }"]
    source, made = tmp_path / "e.c", tmp_path / "e.so"
    head = ["#include <math.h>", "#include <stdint.h>", "#include <string.h>"]
    source.write_text("\n".join([*head, *linked(calls, "x", FAST.pieces)]).replace("x_of_all", "of_all"))
    subprocess.run(["cc", *FLAGS, FUSED, str(source), "-o", str(made), "-lm"], check=True)
    x = np.concatenate([np.linspace(-707.9, 708.9, 200_001), np.linspace(-1, 1, 20_001), [0.0]])
    ends = np.array([-math.inf, -1e300, -708.1, 709.1, 1e300, math.inf, math.nan])
    given, found = np.concatenate([x, ends]), np.empty(len(x) + len(ends))
    ctypes.CDLL(str(made)).of_all(*(ctypes.c_void_p(v.ctypes.data) for v in (given, found)), len(given))
    exact = np.exp(np.longdouble(x))
    assert np.abs(found[: len(x)] / exact - 1).max() <= 1e-13 and found[len(x) - 1] == 1.0
    assert np.array_equal(found[len(x) :], [0, 0, 0, math.inf, math.inf, math.inf, math.nan], equal_nan=True)


@needs_compiler
def test_fleets_are_exact() -> None:
    plan = plan_of("portfolio")
    data = drawn(plan, 20, 3)
    fleets = [p.fleet(3, backend="c") for p in (plan, plan.with_precision("fast"))]
    for t in range(20):
        for fleet in fleets:
            fleet.decide()
            fleet.observe(**{name: v[t] for name, v in data.items()})
    assert np.array_equal(fleets[0].decide(), fleets[1].decide())


def test_a_plan_keeps_its_precision() -> None:
    plan = plan_of("portfolio").with_precision("fast")
    restored = plan.with_horizon(500)
    assert restored.precision == "fast" and plan.with_precision("float64").precision == "exact"
    made, given = plan.__reduce__()
    assert made(*given).precision == "fast"
    assert oco.compile(oco.load(EXAMPLES / "portfolio.oco"), "mirror-descent", precision="fast").precision == "fast"


def test_files_say_how_they_round() -> None:
    plan = plan_of("portfolio")
    exact, fast = plan.files("c"), plan.files("c", "fast")
    assert exact == plan.files("c", "exact") and fast == plan.with_precision("fast").files("c")
    assert FAST.about[:40] in fast["portfolio.h"] and "-ffp-contract=fast" in fast["CMakeLists.txt"]
    assert "-ffp-contract=off" in exact["CMakeLists.txt"] and not EXACT.about
    assert plan.with_precision("fast").files("numpy") == plan.files("numpy")


@pytest.mark.parametrize("name", ["float32", "quick"])
def test_other_precisions_are_refused_for_learners(name: str) -> None:
    with pytest.raises(OcoError) as caught:
        plan_of("portfolio").with_precision(name)
    assert caught.value.code == "OCO740" and "exact, fast" in caught.value.hint


def test_numpy_writes_no_fast_files() -> None:
    with pytest.raises(OcoError) as caught:
        plan_of("portfolio").files("numpy", "fast")
    assert caught.value.code == "OCO740" and '"c"' in caught.value.hint


def test_the_command_writes_fast_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(EXAMPLES / "portfolio.oco")
    assert main(["compile", model, "--backend", "c", "--precision", "fast", "-o", str(tmp_path / "out")]) == 0
    assert "-ffp-contract=fast" in capsys.readouterr().out.replace("\n", "")
    assert "-ffp-contract=fast" in (tmp_path / "out" / "build.rs").read_text()


WEIGHTS = """
model weights
horizon T = 100
decision w[{n}] in simplex
stream cost[{n}] in [0, 1]
stream weight[{n}] in [0, 1]
minimize cost @ w
subject to
    exposure: weight @ w <= 0.5  on average
"""


@needs_compiler
def test_rows_that_are_asked_for_ahead_change_nothing() -> None:
    """Beyond the last row lies nothing: a mapping of whole pages ends there."""
    plans = {n: oco.compile(oco.parse(WEIGHTS.format(n=n)), "mirror-descent", settings="paper") for n in (100, 512)}
    assert ["_ahead(" in p.files("c")["weights.c"] for p in plans.values()] == [False, True]
    rounds, plan = 8, plans[512]
    data = {}
    for seed, name in enumerate(("cost", "weight")):
        memory = mmap.mmap(-1, rounds * 512 * 8)
        data[name] = np.frombuffer(memory).reshape(rounds, 512)
        data[name][:] = np.random.default_rng(seed).uniform(size=(rounds, 512))
    learner = plan.learner(backend="c")
    for t in range(rounds):
        learner.decide()
        learner.observe(**{name: rows[t] for name, rows in data.items()})
    expected = plan.run(data, backend="numpy").decisions
    assert np.abs(plan.run(data, backend="c").decisions - expected).max() <= 1e-12
    assert learner.round == rounds + 1
