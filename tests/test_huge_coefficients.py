"""Coefficients whose products are beyond doubles: told with a place, or refused with a code; never an error of Python."""

from __future__ import annotations

import numpy as np
import pytest
from shape_cases import outcome
from thorough import thorough, turns

import oco
from oco.dsl import algebra
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Kind, Name

HEAD = "model m\nhorizon T = 100\ndecision x[2] in {domain}\nstream s[2] in [-1, 1]\n"
LOSS = HEAD.format(domain="box(-1, 1)") + "minimize s @ x + {}\n"
CONSTRAINT = HEAD.format(domain="ball(1)") + "minimize s @ x\nsubject to\n    q: {} <= 1\n"
SUMS = ("sum({})", "sum_squares({})", "norm2({}) ** 2", "sum(huber({}))", "1e300 * sum({})", "log_sum_exp({})")
SCALED = ("1e160 * x", "1e300 * (1e300 * x)", "1e200 * (1e200 / (x + 2))", "1e200 * x * 1e200 * s")


@pytest.mark.parametrize("every", [False, thorough(True)], ids=["some", "every"])
@pytest.mark.parametrize(("function", "text"), turns(SUMS, (LOSS, CONSTRAINT)))
def test_coefficients_beyond_doubles_end_in_a_code_or_in_rounds(text: str, function: str, every: bool) -> None:
    """Under each function all coefficients, or one of them that is another for the next function and in the constraint."""
    turn = (SUMS.index(function) + 2 * (text == CONSTRAINT)) % 4
    for scaled in SCALED if every else SCALED[turn::4]:
        assert outcome(text.format(function.format(scaled))) != "OCO999", scaled


@pytest.mark.parametrize("value", [1e-250, 2.0, 1e150])
def test_products_that_numbers_cannot_hold_keep_their_value(value: float) -> None:
    """`1e200 * (1e200 * x)` and `1e200 * (1e200 / x)`, where the product of the numbers is infinite and the value may not be."""
    x, huge = Name("x", Kind.DECISION, shape=()), algebra.number(1e200)
    with np.errstate(over="ignore"):
        for built, expected in (
            (algebra.mul(huge, algebra.mul(huge, x)), 1e200 * (1e200 * np.float64(value))),
            (algebra.mul(huge, algebra.div(huge, x)), 1e200 * (1e200 / np.float64(value))),
            (algebra.mul(algebra.number(3), algebra.mul(algebra.number(2), x)), 6 * value),
        ):
            assert evaluate(built, {"x": np.asarray(value)}, 1.0) == expected


@pytest.mark.parametrize("loss", ["exp(exp(exp(exp(1000 * x[0]))))", "sum_squares(1e160 * x)", "sum(exp(800 * x))"])
def test_a_function_that_overflows_is_told_with_a_decision_where_it_does(loss: str) -> None:
    (found,) = [w for w in oco.check(oco.parse(LOSS.format(loss))).warnings if w.code == "OCO613"]
    assert found.span is not None and found.span.line == 5 and "at " in found.message and found.hint


@pytest.mark.parametrize(
    "loss", ["sum(exp(300 * x))", "sum_squares(1e70 * x)", "-sum(sqrt(x + 1))", "-sum(log(x + 2))", "norm2(x)"]
)
def test_functions_that_doubles_hold_are_not_called_so(loss: str) -> None:
    assert "OCO613" not in [w.code for w in oco.check(oco.parse(LOSS.format(loss))).warnings]
