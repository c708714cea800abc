"""Dead monitor: what a learner notices of itself and of the bounds that its guarantee rests on, on every backend, and says once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from driving import plan_of
from test_c99 import has_compiler

import oco
from oco.backends import monitor
from oco.backends.monitor import is_watched
from oco.compiler.ir.interpret import interpret
from oco.dsl.load import parse

PLAIN = "model m\nhorizon T = 400\ndecision x[3] in box(-1, 1)\nstream p[3] in [-1, 1]\nminimize 5 * p @ x\n"
CAPPED = PLAIN + "subject to\n    cap: x[0] + x[1] - 0.5 <= 0    each round\n"
BACKENDS = ["numpy", pytest.param("c", marks=pytest.mark.skipif(not has_compiler(), reason="no C compiler"))]


def warned(model: str, data: dict[str, Any], **options: Any) -> tuple[str, ...]:
    return oco.compile(parse(model), **options).run(data).warnings


def test_a_learner_that_stands_still_says_so() -> None:
    data = {"p": np.ones((400, 3))}
    said = warned(PLAIN, data, algorithm="ogd", settings={"eta": 1e-9})
    assert sum("has not left the start" in w for w in said) == 1
    assert not any("has not left the start" in w for w in warned(PLAIN, data, algorithm="ogd"))


def test_bounds_that_are_broken_or_far_too_wide_are_told() -> None:
    rng = np.random.default_rng(0)
    small = {"p": 1e-4 * rng.uniform(-1, 1, (400, 3))}
    assert any("more than 100 times as much" in w for w in warned(PLAIN, small, algorithm="ogd"))
    model = PLAIN.replace("minimize", "assume loss.bound <= 0.5\nminimize")
    assert any("|the loss| reached" in w and "may not hold" in w for w in warned(model, {"p": np.ones((400, 3))}))


def test_a_live_learner_looks_at_itself_and_says_things_once() -> None:
    learner = oco.compile(parse(PLAIN), "ogd", {"eta": 1e-9}, "numpy").learner()
    for _ in range(300):
        learner.decide()
        learner.observe(p=np.ones(3))
    assert len([w for w in learner.warnings if "has not left the start" in w]) == 1


def test_multipliers_at_a_bound_are_told() -> None:
    model = CAPPED.replace("- 0.5 <=", "+ 0.5 * p[0] <=")
    data = {"p": np.where(np.arange(400)[:, None] % 2 == 0, 1.0, -1.0) * np.ones(3)}
    said = warned(model, data, algorithm="coldq", settings={"gamma": 1e9})
    assert any("acts as a fixed penalty" in w for w in said)


# Gradients.

STEEP = """
model steep
horizon T = 300
decision x[2] in box(-1, 1)
stream p[2] in [-1, 1]
stream a[2, 2] in [-1, 1]
minimize 5 * p @ x
subject to
    cap: a @ x <= 0.2 each round
assume loss.lipschitz.l2 <= {loss}
assume constraints.cap[1].lipschitz.l2 <= {cap}
{feedback}
"""


def drawn(rounds: int = 300, scale: float = 1.0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(2)
    return {"p": scale * rng.uniform(-1, 1, (rounds, 2)), "a": rng.uniform(-1, 1, (rounds, 2, 2))}


def steep(loss: float = 7.1, cap: float = 1.5, feedback: str = "") -> oco.Model:
    return parse(STEEP.format(loss=loss, cap=cap, feedback=feedback))


def about(said: list[str] | tuple[str, ...], words: str) -> list[str]:
    return [w for w in said if words in w]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_gradient_larger_than_its_bound_is_told_once(backend: str) -> None:
    """The gradient of the loss is 5 |p| <= 5 sqrt(2) = 7.07, that of cap[n] is |a[n]| <= sqrt(2)."""
    data = drawn()
    right, wrong = oco.compile(steep(), "coldq"), oco.compile(steep(2, 0.1), "coldq")
    assert not about(right.run(data, backend=backend).warnings, "gradient")
    said = wrong.run(data, backend=backend).warnings
    (loss,), (cap,) = about(said, "the gradient of the loss reached"), about(said, "the gradient of cap[1] reached")
    assert "in the l2 norm, and its bound is 2: the guarantee does not hold" in loss and "loss.lipschitz.l2 <=" in loss
    assert "its bound is 0.1" in cap and "constraints.cap[1].lipschitz.l2" in cap and not about(said, "cap[0]")
    learner = wrong.learner(backend=backend)
    for p, a in zip(data["p"], data["a"]):
        learner.decide()
        learner.observe(p=p, a=a)
    assert len(about(learner.warnings, "the gradient of")) == 2


@pytest.mark.skipif(not has_compiler(), reason="no C compiler")
def test_a_compiled_learner_sees_what_one_in_numpy_sees() -> None:
    """Numbers, names in any order, two decisions: what the quick way hands over is what the slow one has."""
    model = (
        "model m\nhorizon T = 400\ndecision x[2] in box(-1, 1)\ndecision y in box(0, 2)\nstream p[2] in [-1, 1]\n"
        "stream q in [0, 3]\nminimize p @ x + square(y - q)\nsubject to\n    cap: q * x[0] + y - 2 <= 0    each round\n"
    )
    plan, rng, seen = oco.compile(parse(model), "coldq"), np.random.default_rng(3), []
    data = [(rng.uniform(-1, 1, 2), rng.uniform(0, 3)) for _ in range(300)]
    for backend in ("numpy", "c"):
        learner = plan.learner(backend=backend)
        for p, q in data:
            learner.decide()
            learner.observe(q=float(q), p=p)
        found = learner.monitor
        assert found.values.any() and found.slopes.any() and found.duals
        seen.append((found.values, found.slopes, *found.duals.values(), found.broken, learner.warnings))
    for (*arrays, broken, said), (*others, also_broken, also_said) in [seen]:
        assert (broken, said) == (also_broken, also_said)
        for one, other in zip(arrays, others, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_single_steep_round_is_found(backend: str) -> None:
    """A run looks at the rounds with the largest data, wherever they are."""
    data = drawn(scale=0.1)
    data["p"][177] = [0.9, -0.9]
    said = oco.compile(steep(loss=1.0), "coldq").run(data, backend=backend).warnings
    assert about(said, f"the gradient of the loss reached {5 * 0.9 * 2**0.5:.6g}")


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_gradient_far_below_its_bound_is_told(backend: str) -> None:
    data = drawn(scale=1e-3)
    (said,) = about(oco.compile(steep(), "coldq").run(data, backend=backend).warnings, "more than 100 times as much")
    assert "the gradient of the loss was at most" in said and "its bound is 7.071" in said
    tight = parse(STEEP.format(loss=7.1, cap=1.5, feedback="assume loss.bound <= 1e-5"))
    trace = oco.compile(tight, "coldq").run(data, backend=backend)
    assert np.abs(trace.loss).max() > 1e-7
    assert not about(trace.warnings, "100 times as much")


def test_gradients_that_the_user_gives_are_looked_at() -> None:
    plan = oco.compile(steep(2, 1.5, "feedback gradient"), "mahdavi")
    learner = plan.learner()
    for _ in range(64):
        slopes = np.array([[0.5, 0], [0, 0.5]])
        learner.decide()
        learner.observe(loss=0.0, gradient=[3.0, 4.0], constraints=[0.0, 0.0], constraint_gradients=slopes)
    assert about(learner.warnings, "the gradient of the loss reached 5 in the l2 norm, and its bound is 2")
    assert not about(learner.warnings, "cap")


def test_the_written_module_says_it_once(tmp_path: Path) -> None:
    oco.compile(steep(2, 0.1), "coldq").write(tmp_path / "learner.py")
    code = """
import warnings, numpy as np
from learner import Learner
learner, rng = Learner(), np.random.default_rng(0)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    for _ in range(64):
        learner.decide()
        learner.observe(p=[1.0, 1.0], a=np.ones((2, 2)))
print(*(w.message for w in said), sep="\\n")
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    loss, cap = done.stdout.splitlines()
    assert loss.startswith(f"the gradient of the loss reached {5 * 2**0.5:.6g}, and its bound is 2")
    assert cap.startswith(f"the gradient of cap[1] reached {2**0.5:.6g}, and its bound is 0.1")


def test_slopes_are_those_of_the_theorem_s_norm() -> None:
    """On a simplex a gradient is measured by its largest entry, else by its length; of several decisions together."""
    text = (
        "model m\nhorizon T = 50\ndecision w[3] in {domain}\nstream r[3] in [-2, 2]\nstream G[2, 3] ~ uniform(-1, 1)\n"
        "minimize r @ w\nsubject to\n    exposure: G @ w <= 0.5 on average\n"
    )
    rng = np.random.default_rng(1)
    r, G, w = rng.uniform(-2, 2, 3), rng.uniform(-1, 1, (2, 3)), np.full(3, 1 / 3)
    sizes: dict[str, Callable[[Any], Any]] = {
        "simplex": lambda v: np.abs(v).max(axis=-1),
        "box(0, 1)": lambda v: np.linalg.norm(v, axis=-1),
    }
    for domain, size in sizes.items():
        program = plan_of(text.format(domain=domain), "mirror-descent").program
        loss, constraints = interpret(program, "slopes", [1, w, r, G])
        np.testing.assert_allclose(loss, size(r))
        np.testing.assert_allclose(constraints, size(G))


def test_rounds_that_are_looked_at() -> None:
    assert [t for t in range(1, 20_000) if is_watched(t)] == [64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384]
    assert is_watched(3 * 8192)


def test_the_bandit_and_large_jacobians_are_left_alone() -> None:
    bandit = parse(STEEP.format(loss=7.1, cap=1.5, feedback="feedback bandit"))
    assert oco.compile(bandit, "bfw-tvc").program.slopes is None
    many = parse(
        "model m\nhorizon T = 9\ndecision x[400] in box(0, 1)\nminimize sum(x)\nsubject to\n    c: x <= 1 each round\n"
    )
    (_, constraints) = oco.compile(many, "coldq").program.slopes.body.results  # type: ignore[union-attr]
    assert constraints.type.shape == (0,)


TRACKED = """
model m
horizon T = 300
decision x[2] in box(-10, 10)
stream p[2] in [-{wide}, {wide}]
stream a[3, 2] in [-{wide}, {wide}]
minimize sum_squares(x - p)
subject to
    cap: a @ x - 1 <= 0    each round
"""


def test_values_alone_do_not_show_that_a_bound_is_wide() -> None:
    """f = |x - p|^2 <= 2 (10 + 1)^2 over the domain, and 1/1000 of that at decisions near p: the bound is right all the same."""
    rng = np.random.default_rng(0)
    data = {"p": rng.uniform(0.4, 0.95, (300, 2)), "a": rng.uniform(-1, 0, (300, 3, 2))}
    run = oco.compile(parse(TRACKED.format(wide=1)), "coldq").run(data)
    assert run.loss.max() * 100 < 2 * 11.0**2
    assert not about(run.warnings, "100 times as much")


def test_still_data_do_not_show_that_a_bound_is_wide() -> None:
    """With p = 0.1 in every round decisions come to lie at p, where gradients are small; at the corners they are 2 sqrt(2) 10.1 = 28.6."""
    data = {"p": np.full((300, 2), 0.1), "a": np.full((300, 3, 2), 0.5)}
    model = TRACKED.format(wide=1)
    run = oco.compile(parse(model), "coldq").run(data)
    steepest = np.linalg.norm(2 * (run.decisions - 0.1), axis=1).max()
    assert 100 * steepest < 2 * 2**0.5 * 11 and 100 * run.loss.max() < 2 * 11.0**2
    assert not about(run.warnings, "100 times as much")
    wide = TRACKED.format(wide=100_000)
    (said,) = about(oco.compile(parse(wide), "coldq").run(data).warnings, "the gradient of the loss was")
    assert "from which it differs by at most 56.57 at others" in said  # 2 |x - y| <= 2 sqrt(2) 20


def test_wide_bounds_are_told_once_with_the_fact_that_settings_hang_on() -> None:
    rng = np.random.default_rng(0)
    data = {"p": rng.uniform(-1, 1, (300, 2)), "a": rng.uniform(-1, 1, (300, 3, 2))}
    said = about(oco.compile(parse(TRACKED.format(wide=10_000)), "coldq").run(data).warnings, "100 times as much")
    loss, caps = about(said, "the gradient of the loss"), about(said, "the gradient of cap")
    assert len(said) == 2 and len(loss) == len(caps) == 1
    assert "`assume loss.lipschitz.l2 <= ...`" in loss[0] and "narrow the bounds of the streams" in loss[0]
    assert "(and so with 2 other constraints)" in caps[0] and "`assume constraints.cap" in caps[0]


@pytest.mark.parametrize("shape", [(1,), (2, 3), (1000, 4, 10), (5000,), (700, 7)])
def test_the_largest_rounds_are_found_part_by_part(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(0).normal(size=shape)
    sizes = np.abs(values).reshape(len(values), -1)
    expected = {int(t) for s in (sizes.max(axis=1), (sizes**2).sum(axis=1)) for t in np.argsort(s)[-2:]}
    for together in (1, 100, 1 << 15):
        monkeypatch.setattr(monitor, "TOGETHER", together)
        chosen = monitor.slope_rounds({"v": values}, len(values), np.arange(len(values)))
        assert expected <= set(chosen) and monitor._largest_rounds(values) == expected


def test_gradients_are_evaluated_in_all_rounds_whose_decisions_are_kept_where_these_are_few() -> None:
    assert monitor.slope_rounds({"v": np.zeros((5000, 2))}, 5000, np.array([7, 4999])) == [7, 4999]
