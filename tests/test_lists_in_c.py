"""Lists of numbers in place of arrays: taken in C, with the numbers and the errors of Python's way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_c99 import needs_compiler

import oco
from oco.backends.c99.build import stepper
from oco.backends.learner import Learner
from oco.plan import Plan

MODEL = """
model lists
horizon T = 100
decision x[3] in box(-1, 1)
stream A[2, 3] in [-1, 1]
stream k[3] in 0..5
stream s in [0, 1]
minimize sum_squares(A @ x - s) + k @ x
"""
ROW: dict[str, Any] = {"A": [[0.5, -0.25, 1], (0, 0.125, np.float64(1.0))], "k": [1, 0, 5], "s": 1}


@pytest.fixture(scope="module")
def plan() -> Plan:
    return oco.compile(oco.parse(MODEL), algorithm="ogd", settings="paper")


def observed(plan: Plan, row: dict[str, Any], backend: str = "c") -> tuple[float, np.ndarray]:
    learner = plan.learner(backend=backend)
    learner.decide()
    loss = learner.observe(**row).loss
    return loss, learner.decide()


@needs_compiler
@pytest.mark.skipif(stepper() is None, reason="no headers of Python")
def test_lists_are_taken_in_c(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = {"A": np.array(ROW["A"], float), "k": np.array(ROW["k"]), "s": 1.0}
    expected = observed(plan, arrays, "numpy")
    learner = plan.learner(backend="c")
    monkeypatch.setattr(Learner, "feedback", lambda *given: pytest.fail("it went through Python"))
    learner.decide()
    assert learner.observe(**ROW).loss == pytest.approx(expected[0], rel=1e-14)
    np.testing.assert_allclose(learner.decide(), expected[1], rtol=1e-14)


@needs_compiler
@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"A": [[0.5, 0.5, 0.5]]}, "OCO842"),
        ({"A": [[0.5, 0.5, 0.5], [0.5, 0.5]]}, "OCO84"),
        ({"A": [[0.5, 0.5, "a"], [0.5, 0.5, 0.5]]}, "OCO841"),
        ({"A": [[0.5, 0.5, float("nan")], [0.5, 0.5, 0.5]]}, "OCO843"),
        ({"A": [[0.5, 0.5, 2.0], [0.5, 0.5, 0.5]]}, "OCO845"),
        ({"k": [0, 1, 1.5]}, "OCO844"),
        ({"k": [0, 1, 2**70]}, "OCO84"),
        ({"k": [0, 1, 7]}, "OCO845"),
    ],
)
def test_wrong_lists_get_the_errors_of_arrays(plan: Plan, wrong: dict[str, Any], code: str) -> None:
    messages = []
    for backend in ("numpy", "c"):
        with pytest.raises(oco.OcoError, match=code) as caught:
            observed(plan, ROW | wrong, backend)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


@needs_compiler
def test_lists_that_python_alone_reads_mean_the_same(plan: Plan) -> None:
    others = ROW | {"A": [np.array([0.5, -0.25, 1.0]), [0.0, 0.125, True]], "k": np.array([1.0, 0.0, 5.0])}
    assert observed(plan, others)[0] == observed(plan, ROW)[0]


@needs_compiler
def test_a_model_has_as_many_streams_as_it_likes() -> None:
    streams = [f"a{k}" for k in range(70)]
    lines = [f"stream {name} in [-1, 1]" for name in streams]
    text = "\n".join(
        ["model many", "horizon T = 20", "decision x in box(-1, 1)", *lines, f"minimize x * ({' + '.join(streams)})"]
    )
    plan, row = oco.compile(oco.parse(text), algorithm="ogd"), dict(zip(streams, np.linspace(-1, 0.5, 70)))
    (loss, decided), (expected, following) = observed(plan, row), observed(plan, row, "numpy")
    assert loss == pytest.approx(expected, abs=1e-14) and decided == pytest.approx(following, rel=1e-12)
