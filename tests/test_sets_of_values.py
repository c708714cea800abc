"""Streams that take values of a set: reading, printing, ranges, and what data must be."""

from __future__ import annotations

import numpy as np
import pytest

import oco
from oco.compiler.problem.canonical import canonical
from oco.compiler.prover.check import check
from oco.dsl.diagnostics import OcoError
from oco.dsl.text.formatter import format_text

TEXT = """model m

horizon T = 20

decision w[2] in ball(1)

stream a[2] in [-1, 1]
stream y in {-1, 1}
stream step in {0, 0.5, 2}

minimize logistic(-y * (a @ w)) + step * w[0]
"""


def test_range_and_kind_follow_from_the_values() -> None:
    y, step = canonical(oco.parse(TEXT)).streams[1:]
    assert (y.lower, y.upper, y.integer) == (-1, 1, True)
    assert (step.lower, step.upper, step.integer) == (0, 2, False)
    assert check(oco.parse(TEXT))["loss.convex"].value


def test_text_is_printed_and_formatted_as_written() -> None:
    model = oco.parse(TEXT)
    assert "stream y in {-1, 1}\nstream step in {0, 0.5, 2}\n" in model.to_oco()
    assert oco.parse(model.to_oco()) == model
    assert format_text(TEXT.replace("{-1, 1}", "{ -1,1 }")) == TEXT
    assert "\\{-1, 1\\}" in model._repr_latex_()


def test_values_are_sorted_and_said_once() -> None:
    assert oco.parse(TEXT.replace("{-1, 1}", "{1, -1, 1}")) == oco.parse(TEXT)


def test_builder_takes_a_python_set() -> None:
    m = oco.Model("m", horizon=20)
    w = m.decision("w", 2, domain=oco.ball(1))
    a, y = m.stream("a", 2, bounds=(-1, 1)), m.stream("y", bounds={-1, 1})
    step = m.stream("step", bounds={0, 0.5, 2})
    m.minimize(oco.logistic(-y * (a @ w)) + step * w[0])
    assert [s.values for s in m.build().streams] == [(), (-1, 1), (0, 0.5, 2)]
    assert m.build() == oco.parse(TEXT)
    with pytest.raises(OcoError, match="OCO526"):
        m.stream("z", bounds={"a"})


def data(y: float) -> dict[str, np.ndarray]:
    rounds = {"a": np.zeros((20, 2)), "y": np.ones(20), "step": np.full(20, 0.5)}
    rounds["y"][7] = y
    return rounds


def test_other_values_in_data_are_named_at_their_place() -> None:
    plan = oco.compile(oco.parse(TEXT))
    plan.run(data(-1.0))
    with pytest.raises(OcoError, match=r"`y` is 0, which is not one of \{-1, 1\}") as caught:
        plan.run(data(0.0))
    assert caught.value.code == "OCO830"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("stream y in {}", "OCO127"),
        ("stream y in {-1, x}", "OCO120"),
        ("stream y in {-1, 1", "OCO105"),
        ("stream y in {0, 1} ~ bernoulli(0.5)", "OCO427"),
        ("param y in {0, 1} = 1", "OCO120"),
        ("decision y in {0, 2}", "OCO120"),
        ("let y = {0, 1}", "OCO213"),
        ("let y = {w[0] + 1} * 2", "OCO213"),
    ],
)
def test_mistakes_are_told(line: str, code: str) -> None:
    with pytest.raises(OcoError) as caught:
        oco.parse(TEXT.replace("stream y in {-1, 1}", line))
    assert code in {d.code for d in caught.value.diagnostics}
