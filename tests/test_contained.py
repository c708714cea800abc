"""What goes wrong inside parse, check and compile comes out as OcoError: limits under one code, bugs under another, each with its cause."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oco
import oco.compiler.prover.check
import oco.compiler.selection.plan
import oco.dsl.load
from oco.dsl.diagnostics import InternalError, OcoError, contained

MODEL = "model m\nhorizon T = 9\ndecision x[2] in box(0, 1)\nstream c[2] in [0, 1]\nminimize c @ x\n"
STAGES = {
    "parse": ("oco.dsl.load.resolve", lambda: oco.parse(MODEL)),
    "check": ("oco.compiler.prover.check.check_canonical", lambda: oco.check(oco.parse(MODEL))),
    "compile": ("oco.compiler.selection.plan.compile_plan", lambda: oco.compile(oco.parse(MODEL))),
}
LIMITS = (OverflowError("too large"), ZeroDivisionError("by 0"), FloatingPointError("nan"), RecursionError("deep"),
          MemoryError("full"), np.linalg.LinAlgError("singular"))  # fmt: skip
BUGS = (InternalError("no such case"), TypeError("None"), KeyError("x"), AssertionError("it holds"), ValueError("axis"))


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("error", (*LIMITS, *BUGS), ids=lambda e: type(e).__name__)
def test_limits_and_bugs_come_out_in_words(stage, error, monkeypatch):
    place, call = STAGES[stage]

    def broken(*args, **options):
        raise error

    monkeypatch.setattr(place, broken)
    with pytest.raises(OcoError) as caught:
        call()
    assert caught.value.code == ("OCO133" if error in LIMITS else "OCO999")
    assert caught.value.__cause__ is error and type(error).__name__ in caught.value.message
    assert ("report" in caught.value.hint) == (error in BUGS)


@pytest.mark.parametrize("stage", STAGES)
def test_what_is_wrong_with_a_model_and_interruptions_pass_as_they_are(stage, monkeypatch):
    place, call = STAGES[stage]
    for error in (oco.OcoError(oco.Diagnostic("OCO301", "wrong")), KeyboardInterrupt()):

        def broken(*args, error=error, **options):
            raise error

        monkeypatch.setattr(place, broken)
        with pytest.raises(type(error)) as caught:
            call()
        assert caught.value is error


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda model: oco.parse(5), "the text of a model is wanted; here it is a int"),
        (lambda model: oco.parse(MODEL, params=3), "values by the names of params"),
        (lambda model: oco.compile(model, params=3), "values by the names of params"),
        (lambda model: oco.compile(model, algorithm=3), "the name of an algorithm is wanted"),
        (lambda model: oco.compile(model, settings=3), "a kind of settings"),
        (lambda model: oco.compile(model, tradeoff="a"), "a number as the tradeoff is wanted; here it is a str"),
        (lambda model: oco.compile(model, seed=0.5), "an integer as the seed"),
    ],
)
def test_an_argument_of_the_wrong_kind_is_no_bug(call: Any, said: str) -> None:
    with pytest.raises(OcoError, match=said) as caught:
        call(oco.parse(MODEL))
    assert caught.value.code == "OCO526"


class Interrupted:
    """Attribute in whose making Ctrl-C comes."""

    def __set_name__(self, owner: type, name: str) -> None:
        raise KeyboardInterrupt


def test_an_interruption_while_a_class_is_made_is_one() -> None:
    """Python 3.11 raises a RuntimeError there, with the interruption as its cause."""
    with pytest.raises(KeyboardInterrupt), contained("compiling"):
        type("Made", (), {"part": Interrupted()})
