"""The printed text of a model reads back as the same model, and expressions carry no bracket more than they need."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from oco.dsl.build import call
from oco.dsl.builder import ModelBuilder
from oco.dsl.diagnostics import OcoError
from oco.dsl.expressions import Kind, Name
from oco.dsl.limits import DEEPEST
from oco.dsl.load import load, parse
from oco.dsl.model import Model
from oco.dsl.terms import Term, apply
from oco.dsl.text.formatter import format_text
from oco.dsl.text.printer import print_expr, print_model
from tests.strategies import models

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.oco"))


@given(models())
def test_printed_models_read_back_and_are_in_canonical_layout(model: Model) -> None:
    text = print_model(model)
    assert parse(text) == model and format_text(text) == text


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_examples_read_back(path: Path) -> None:
    model = load(path)
    assert parse(print_model(model), folder=path.parent) == model


def _objective(text: str) -> str:
    head = "model m\nhorizon T = 9\nparam a\nparam b\nparam A[2, 2]\nparam v[2]\nparam k in 0..1\ndecision x in box(0, 1)\n"
    objective = parse(f"{head}minimize {text}\n").objective
    assert objective is not None
    return print_expr(objective)


@pytest.mark.parametrize(
    "text",
    [
        "a - (b - x)",
        "a - b - x",
        "a * (b + x)",
        "a / (b / x)",
        "a / b * x",
        "-x ** 2",
        "(-x) ** 2",
        "x ** -a",
        "a ** b ** x",
        "(a ** b) ** x",
        "-(a * x)",
        "-a * x",
        "a - -x",
        "(-2) ** x",
        "-2 ** x",
        "-2 * x",
        "-(2) * x",
        "(A @ A).T[0, 1] * x",
        "(v * x)[k]",
        "sum((x * A)[:, 0:1])",
        "sum(v[0:2] * x)",
        "x + [1, 2] @ [x, 3.5]",
        "sum(repeat(0..2, 2) * x)",
        "sum(A, axis = 0) @ v * x",
        "x + 1.0",
        "x + 1e+22",
        "x + 0.1 - 5e-324",
        "(5).T * x",
        "0.5 * (x - a) ** 2",
    ],
)
def test_expressions_print_as_they_were_written(text: str) -> None:
    assert _objective(text) == text


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("((a) * (x))", "a * x"),
        ("(a * b) * x", "a * b * x"),
        ("a + (b * x)", "a + b * x"),
        ("(-(x)) * a", "-x * a"),
        ("(x * v) @ (v + 1)", "x * v @ (v + 1)"),
        ("x ** (-a)", "x ** -a"),
        ("x + 1e2", "x + 100.0"),
        ("x + 007", "x + 7"),
        ("sum(repeat(0..(1 + 1), 2)) * x", "sum(repeat(0..1+1, 2)) * x"),
    ],
)
def test_brackets_that_are_not_needed_go(text: str, printed: str) -> None:
    assert _objective(text) == printed


def test_long_arrays_get_a_line_for_each_row() -> None:
    builder = ModelBuilder("wide", 5)
    A = builder.param("A", value=np.arange(40.0).reshape(4, 10) / 7)
    x = builder.decision("x", 10, domain=_box())
    builder.minimize(sum(A @ x))
    text = builder.to_oco()
    assert parse(text) == builder.build()
    assert max(map(len, text.splitlines())) < 230
    assert format_text(text) == text


def _box() -> object:
    from oco.dsl.checks import domain_spec
    from oco.dsl.expressions import constant
    from oco.dsl.terms import DomainTerm

    return DomainTerm(domain_spec("box", [constant(0), constant(1)], {}, None))


def test_a_horizon_made_of_params_follows_them() -> None:
    text = "model m\nparam days = 10\nhorizon T = 24 * days\ndecision x in box(0, 1)\nminimize x\n"
    printed = print_model(parse(text))
    assert printed.index("param days") < printed.index("horizon")
    assert parse(printed) == parse(text)


def test_ranges_of_whole_params_keep_their_form() -> None:
    """A whole value does not turn `in [0.5, 2]` into `in 0.5..2`."""
    text = "model m\nhorizon T = 5\nparam a in [0.5, 2] = 1\nparam k in 0..3-1 = 2\ndecision x in box(0, a)\nminimize k * x\n"
    printed = print_model(parse(text))
    assert "param a in [0.5, 2] = 1\nparam k in 0..3-1 = 2\n" in printed
    assert parse(printed) == parse(text)


def test_what_nests_too_deep_to_be_read_back_is_refused_by_the_builder() -> None:
    builder = ModelBuilder("deep", 5)
    x = builder.decision("x", domain=_box())
    below: Term = x
    for _ in range(DEEPEST - 1):
        below = apply("exp", below)
    builder.minimize(below)
    assert parse(builder.to_oco()) == builder.build()
    with pytest.raises(OcoError) as caught:
        builder.subject_to(apply("exp", below) <= 1)
    assert caught.value.code == "OCO107"
    power: Term = x
    for _ in range(DEEPEST):
        power = power * x
    with pytest.raises(OcoError) as caught:
        builder.let("y", power)
    assert caught.value.code == "OCO107"


def test_a_text_that_could_not_be_read_back_is_refused() -> None:
    builder = ModelBuilder("doubled", 5)
    x = builder.decision("x", domain=_box())
    for _ in range(25):
        x = x * x
    builder.minimize(x)
    with pytest.raises(OcoError) as caught:
        builder.to_oco()
    assert caught.value.code == "OCO129"


def test_using_needs_an_algorithm_or_settings() -> None:
    with pytest.raises(OcoError) as caught:
        ModelBuilder("m", 5).using()
    assert caught.value.code == "OCO526"


def test_whole_numbers_go_as_far_as_they_can_be_written() -> None:
    builder = ModelBuilder("large", 5)
    a = builder.param("a", value=-(2**63) + 1)
    x = builder.decision("x", domain=_box())
    builder.minimize(a * x + [2**63 - 1, 0] @ builder.param("v", 2))
    assert parse(builder.to_oco()) == builder.build()
    with pytest.raises(OcoError):
        builder.param("b", value=-(2**63))


def test_what_derivatives_are_made_of_prints_under_plain_names() -> None:
    assert print_expr(call("_sign", Name("x", Kind.DECISION, shape=()))) == "sign(x)"
