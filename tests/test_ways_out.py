"""Ways out of a refusal, followed to the letter: what a hint says to write is written, and the model compiles."""

from __future__ import annotations

import re

import pytest
from thorough import thorough

import oco
from oco.dsl.diagnostics import OcoError

HEAD = "model m\nhorizon T = 1000\nparam q[4] = [0.1, 0.2, 0.3, 0.4]\nstream c[4] in [-1, 1]\n"
STEEP = [
    thorough("decision w[4] in simplex", "minimize c @ w + sum(rel_entr(w, q))\n"),
    thorough("decision w[4] in simplex", "minimize c @ w - 0.1 * sum(entr(w))\n"),
    ("decision w[4] in box(0, 5)", "minimize c @ w - sum(sqrt(2 * w))\n"),
    thorough("decision w[4] in box(0, 1)", "minimize c @ w - sum(sqrt(1 - w))\n"),
    thorough("decision w[4] in simplex", "minimize c @ w\nsubject to\n    k: sum(kl_div(w, q)) <= 0.1 each round\n"),
    ("decision w[4] in budget(0, 1, 2)", "minimize c @ w\nsubject to\n    k: sum(w * 2 - entr(w)) <= 9 on average\n"),
]


def refused(text: str) -> OcoError:
    with pytest.raises(OcoError) as caught:
        oco.compile(oco.parse(text))
    return caught.value


@pytest.mark.parametrize("settings", ["unit-free", thorough("optimal")])
@pytest.mark.parametrize(("decision", "rest"), STEEP)
def test_a_set_is_cut_where_gradients_are_infinite(decision: str, rest: str, settings: str) -> None:
    """The plan is that of the model with the cut that is written into it."""
    text = f"{HEAD}{decision}\n{rest}"
    plan = oco.compile(oco.parse(text), settings=settings)
    cut = re.search(r"(with w [<>]= [-0-9.e]+)", plan.canonical.model.to_oco())
    assert cut and plan.guarantee is not None and plan.algorithm != "bgd"
    again = oco.compile(oco.parse(text.replace(decision, f"{decision} {cut[1]}")), settings=settings)
    assert again.guarantee is not None and again.algorithm == plan.algorithm
    assert again.guarantee.regret(1000) == plan.guarantee.regret(1000)


def test_the_construct_is_named_at_its_place() -> None:
    """The stream without bounds, where they are to be written."""
    span = refused(f"{HEAD}stream d\ndecision w[4] in simplex\nminimize sum((d * w) ** 2)\n").diagnostics[0].span
    assert span is not None and span.text == "d"


@pytest.mark.parametrize(("stream", "bounds"), [("stream d", "in [-2, 2]"), ("stream d iid", "in [-3, 3]")])
def test_a_stream_without_bounds_is_named(stream: str, bounds: str) -> None:
    text = f"{HEAD}{stream}\ndecision w[4] in simplex\nminimize c @ w + sum((d * w) ** 2)\n"
    error = refused(text)
    assert "bounds of `d`: `in [lo, hi]` behind its declaration" in error.diagnostics[0].hint
    assert oco.compile(oco.parse(text.replace(stream, f"{stream} {bounds}"))).guarantee is not None


ROOT = "decision x[2] in box(0.5, 1)\nstream d[2] in [-1, 1]\n"
UNPROVED = [
    ("loss", "minimize d @ x + (0 - sqrt(x[0] * x[1]))\n"),
    ("constraints.k", "minimize d @ x\nsubject to\n    k: 0.8 - sqrt(x[0] * x[1]) <= 0 each round\n"),
]


@pytest.mark.parametrize(("what", "rest"), UNPROVED)
def test_what_is_convex_and_not_proved_to_be_may_be_assumed(what: str, rest: str) -> None:
    """The geometric mean is concave, which no rule of composition tells of this form."""
    text = f"{HEAD}{ROOT}{rest}"
    error = refused(text)
    line = f"assume {what}.convex"
    assert error.code == "OCO708" and f"`{line}`" in error.diagnostics[0].hint
    assert oco.compile(oco.parse(f"{text}{line}\n")).guarantee is not None
