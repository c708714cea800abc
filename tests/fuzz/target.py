"""Target of the fuzzers: text in, and nothing but an OcoError out."""

from __future__ import annotations

import warnings
from pathlib import Path

import oco
from oco.dsl.diagnostics import OcoError

HERE = Path(__file__).parent


def run(text: str, compile: bool = True) -> tuple[str, ...]:
    """Stage that a text reached, and the codes of what stopped it. Raises whatever is not an OcoError."""
    way = "parse"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = oco.parse(text, folder=HERE)
            way = "check"
            oco.check(model)
            if compile:
                way = "compile"
                plan = oco.compile(model)
                way = "emit"
                compile_source(plan.source("numpy"))
                way = "done"
    except OcoError as error:
        if any(d.code == "OCO999" for d in error.diagnostics) and error.__cause__ is not None:
            raise error.__cause__ from None  # a bug, whatever it is called
        codes = sorted({d.code for d in error.diagnostics})
        assert error.diagnostics and all(d.message for d in error.diagnostics) and str(error)
        return (way, *codes)
    return (way,)


def compile_source(source: str) -> None:
    """An emitted module is a program of Python, whatever the model was."""
    import builtins

    builtins.compile(source, "emitted", "exec")
